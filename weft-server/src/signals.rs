//! Signals: SIGTERM and SIGINT ask for an orderly end, SIGHUP means nothing.
//!
//! Signals arrive in a thread of their own, where anything may be done. SIGPIPE needs no care: Rust programs ignore it.

use std::io;
use std::process;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::log::Log;
use crate::messages::ToMain;

/// Starts the thread.
///
/// # Errors
/// Those of installing handlers and of starting a thread.
pub fn watch(log: Arc<Log>, main: Sender<ToMain>) -> io::Result<()> {
    // A flag nobody reads: the handler only keeps the signal from ending the process.
    signal_hook::flag::register(SIGHUP, Arc::new(AtomicBool::new(false)))?;
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let work = move || {
        let mut asked = false;
        for signal in signals.forever() {
            if asked && signal == SIGINT {
                log.signal("You insist... exiting now.");
                process::exit(1);
            }
            asked = true;
            let name = if signal == SIGINT {
                "SIGINT"
            } else {
                "SIGTERM"
            };
            log.signal(format_args!("Received {name} scheduling shutdown..."));
            let _ = main.send(ToMain::Shutdown);
        }
    };
    thread::Builder::new()
        .name("weft-signals".into())
        .spawn(work)
        .map(drop)
}
