//! Starting the program again in place of the running process: DEBUG RESTART and DEBUG CRASH-AND-RECOVER.
//!
//! Knows how the program was started. All its descriptors but the standard ones are closed by the system on the way.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::fs::{Access, access};

use crate::log::{Log, system_text};

/// How the program was started.
pub struct Restart {
    /// None if the system could not tell.
    program: Option<PathBuf>,
    arguments: Vec<OsString>,
    folder: PathBuf,
    from_input: bool,
}

impl Restart {
    /// The arguments, the program's name first; the folder it was started in; whether it read its configuration from
    /// standard input, which cannot be read twice.
    pub fn new(arguments: &[OsString], folder: PathBuf, from_input: bool) -> Self {
        Self {
            program: std::env::current_exe().ok(),
            arguments: arguments.to_vec(),
            folder,
            from_input,
        }
    }

    /// Whether it can be done; if not, the log says why.
    pub fn is_possible(&self, log: &Log) -> bool {
        let reason = match &self.program {
            _ if self.from_input => "the configuration came from standard input".to_owned(),
            None => "the system does not tell where the program is".to_owned(),
            Some(program) => match access(program, Access::EXEC_OK) {
                Ok(()) => return true,
                Err(error) => format!(
                    "no permission to execute {}: {}",
                    program.display(),
                    system_text(&error.into())
                ),
            },
        };
        log.warning(format_args!("Can't restart: {reason}"));
        false
    }

    /// Waits so long and starts the program. Returns only if that fails; then the log says why.
    pub fn now(&self, delay: Duration, log: &Log) {
        std::thread::sleep(delay);
        let Some((program, (name, rest))) = self.program.as_ref().zip(self.arguments.split_first())
        else {
            return;
        };
        let error = Command::new(program)
            .arg0(name)
            .args(rest)
            .current_dir(&self.folder)
            .exec();
        log.warning(format_args!("Can't restart: {}", system_text(&error)));
    }
}
