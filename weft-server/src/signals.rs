//! Signals: SIGTERM and SIGINT ask for an orderly end, as `shutdown-on-sigterm` and `shutdown-on-sigint` say; SIGHUP means
//! nothing.
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
use weft_engine::action::Shutdown;
use weft_engine::config::ParameterId;
use weft_engine::engine::Engine;

use crate::log::Log;
use crate::messages::ToMain;

/// Starts the thread.
///
/// # Errors
/// Those of installing handlers and of starting a thread.
pub fn watch(log: Arc<Log>, engine: Arc<Engine>, main: Sender<ToMain>) -> io::Result<()> {
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
            let (name, parameter) = if signal == SIGINT {
                ("SIGINT", ParameterId::ShutdownOnSigint)
            } else {
                ("SIGTERM", ParameterId::ShutdownOnSigterm)
            };
            log.signal(format_args!("Received {name} scheduling shutdown..."));
            if engine.config().settings().saves_at_signal(parameter) {
                // As SHUTDOWN SAVE: who asks for that does not want to lose anything.
                log.notice("User requested shutdown...");
                log.warning(format_args!(
                    "{}: {}",
                    parameter.name(),
                    Shutdown::CANNOT_SAVE
                ));
                log.warning(
                    "Errors trying to shut down the server. Check the logs for more information.",
                );
                continue;
            }
            asked = true;
            let _ = main.send(ToMain::Shutdown(Shutdown::default()));
        }
    };
    thread::Builder::new()
        .name("weft-signals".into())
        .spawn(work)
        .map(drop)
}
