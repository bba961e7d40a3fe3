//! From the command line to settings that have been tried out: files read, `dir` entered, log opened.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use weft_engine::config::{
    CommandLine, Config, ConfigurationFiles, Facts, ParameterId, StartError,
};

use crate::files;
use crate::log::{Log, system_text};
use crate::service::Supervisor;
use crate::syslog::Syslog;

/// What the start goes on with.
pub struct Loaded {
    /// The settings.
    pub config: Config,
    /// The configuration file's absolute path, if there is one.
    pub file: Option<PathBuf>,
    /// What was read from standard input, if anything.
    pub input: Option<Vec<u8>>,
    /// Who waits for the server.
    pub supervisor: Supervisor,
}

/// Why the server does not start.
#[derive(Debug)]
pub enum Failure {
    /// To be printed as it is.
    Print(String),
    /// To be logged.
    Log(String),
}

/// Reads the configuration, enters the working directory and opens the log.
///
/// # Errors
/// What is wrong with the configuration.
pub fn load(command_line: &CommandLine, log: &Log) -> Result<Loaded, Failure> {
    let file = command_line
        .file
        .as_deref()
        .map(|path| std::path::absolute(path).unwrap_or_else(|_| path.into()));
    let mut system = FileSystem::default();
    let usable_cpus = u16::try_from(weft_os::cpu::usable_count()).unwrap_or(u16::MAX);
    let mut command_line = command_line.clone();
    if let Some(path) = &file {
        // Errors name the file in full: the directory the server was started in is not always plain to see.
        command_line.file = Some(path.to_string_lossy().into_owned());
    }
    let mut config =
        Config::load(&command_line, &mut system, Facts { usable_cpus }).map_err(refusal)?;
    enter_folder(&mut config)?;
    open_log(&config, log)?;
    let supervised = config.settings().supervised();
    let supervisor = Supervisor::of(supervised);
    if let Some(variable) = supervisor.missed(supervised) {
        log.warning(format_args!(
            "'supervised' names a service manager, but {variable} is not set: nobody is told that the server is ready."
        ));
    }
    Ok(Loaded {
        config,
        file,
        input: system.input,
        supervisor,
    })
}

fn refusal(error: StartError) -> Failure {
    match error {
        StartError::Unreadable { .. } => Failure::Log(error.to_string()),
        _ => Failure::Print(error.to_string()),
    }
}

fn enter_folder(config: &mut Config) -> Result<(), Failure> {
    let folder = config.settings().dir();
    if !folder.is_empty() {
        files::enter_folder(folder)
            .map_err(|error| refusal(config.start_error(ParameterId::Dir, system_text(&error))))?;
    }
    if let Ok(here) = std::env::current_dir() {
        config.settle(ParameterId::Dir, here.as_os_str().as_bytes());
    }
    Ok(())
}

fn open_log(config: &Config, log: &Log) -> Result<(), Failure> {
    let settings = config.settings();
    let syslog = settings.flag(ParameterId::SyslogEnabled).then(|| {
        let [ident, facility] =
            [ParameterId::SyslogIdent, ParameterId::SyslogFacility].map(|id| settings.show(id));
        Syslog::connect(
            &String::from_utf8_lossy(&ident),
            &String::from_utf8_lossy(&facility),
        )
    });
    let path = settings
        .logfile()
        .map(|path| Path::new(OsStr::from_bytes(path)));
    log.set_level(settings.loglevel().into());
    log.set_form(settings.log_format(), settings.log_timestamp_format());
    log.redirect(path, syslog.flatten()).map_err(|error| {
        let reason = format!("Can't open the log file: {}", system_text(&error));
        refusal(config.start_error(ParameterId::Logfile, reason))
    })
}

/// Configuration files as the system has them.
#[derive(Default)]
struct FileSystem {
    input: Option<Vec<u8>>,
}

impl ConfigurationFiles for FileSystem {
    fn read(&mut self, path: &str) -> Result<Vec<u8>, String> {
        std::fs::read(path).map_err(|error| system_text(&error))
    }

    fn expand(&mut self, pattern: &str) -> Vec<String> {
        // Sorted, as the crate promises; entries that cannot be looked at do not match.
        let Ok(paths) = glob::glob(pattern) else {
            return Vec::new();
        };
        paths
            .flatten()
            .map(|path| path.to_string_lossy().into_owned())
            .collect()
    }

    fn read_stdin(&mut self) -> Result<Vec<u8>, String> {
        let mut text = Vec::new();
        std::io::stdin()
            .lock()
            .read_to_end(&mut text)
            .map_err(|error| system_text(&error))?;
        self.input = Some(text.clone());
        Ok(text)
    }
}
