//! The step between this program and a server: a process that ties itself to its parent and its processors, and becomes
//! the server.
//!
//! This program starts itself in this mode, which no one else uses. Done before the server's own code runs, it needs neither
//! `unsafe` nor a tool such as taskset, and holds for the server's threads as well.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use weft_os::cpu_list::CpuList;

use crate::load::system_text;

/// The mode's name.
pub const LAUNCHER: &str = "launch-server";

/// What stands for "on any processor".
pub const ANYWHERE: &str = "any";

/// What the process answers when it could not become the server.
const NOT_STARTED: u8 = 127;

/// Becomes the server. Arguments: the parent's id, processors or [`ANYWHERE`], the words of the server's command line.
pub fn launch(arguments: &[Vec<u8>]) -> ExitCode {
    let [parent, processors, program, rest @ ..] = arguments else {
        eprintln!("weft-bench: this mode is for the program itself");
        return ExitCode::from(NOT_STARTED);
    };
    let failed = |why: String| {
        eprintln!("{why}");
        ExitCode::from(NOT_STARTED)
    };
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return failed(format!("cannot be tied to the parent: {error}"));
    }
    // Whoever lost its parent before that gets no signal any more.
    let still_there =
        getppid().is_some_and(|id| id.as_raw_nonzero().to_string().as_bytes() == &parent[..]);
    if !still_there {
        return ExitCode::from(NOT_STARTED);
    }
    let processors = String::from_utf8_lossy(processors);
    if processors != ANYWHERE {
        let pinned = CpuList::parse(&processors)
            .and_then(|list| list.pin_thread().map_err(|error| system_text(&error)));
        if let Err(why) = pinned {
            return failed(format!("cannot run on processors {processors}: {why}"));
        }
    }
    let error = Command::new(OsStr::from_bytes(program))
        .args(rest.iter().map(|word| OsStr::from_bytes(word)))
        .exec();
    failed(format!(
        "cannot run {}: {}",
        String::from_utf8_lossy(program),
        system_text(&error)
    ))
}
