//! The end after a failed internal check: a thread that panics leaves nothing that could be relied on.
//!
//! Owns what is reported and how the process ends (`crash-log-enabled`, `use-exit-on-panic`, `debug-context`).

use std::backtrace::Backtrace;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use weft_engine::config::{ParameterId, Settings};

use crate::log::Log;

/// What the settings say about crashes.
pub struct Crash {
    reports: AtomicBool,
    exits: AtomicBool,
    context: Mutex<String>,
}

impl Crash {
    /// From now on a panic anywhere ends the process.
    pub fn watch(log: &Arc<Log>, settings: &Settings) -> Arc<Self> {
        let crash = Arc::new(Self {
            reports: AtomicBool::new(true),
            exits: AtomicBool::new(false),
            context: Mutex::default(),
        });
        crash.obey(settings);
        let (log, in_hook) = (Arc::clone(log), Arc::clone(&crash));
        std::panic::set_hook(Box::new(move |panic| {
            let thread = thread::current();
            let name = thread.name().unwrap_or("unnamed").to_owned();
            if in_hook.reports.load(Ordering::Relaxed) {
                log.warning(format_args!(
                    "Thread {name}: {panic}\n{}{}",
                    in_hook.told_context(),
                    Backtrace::force_capture()
                ));
            } else {
                log.warning(format_args!("Thread {name}: {panic}"));
            }
            if in_hook.exits.load(Ordering::Relaxed) {
                process::exit(1);
            }
            process::abort();
        }));
        crash
    }

    /// Follows changed settings.
    pub fn obey(&self, settings: &Settings) {
        let flag = |id| settings.flag(id);
        self.reports
            .store(flag(ParameterId::CrashLogEnabled), Ordering::Relaxed);
        self.exits
            .store(flag(ParameterId::UseExitOnPanic), Ordering::Relaxed);
        let context = settings.text(ParameterId::DebugContext);
        *self.context.lock().unwrap_or_else(PoisonError::into_inner) =
            String::from_utf8_lossy(context).into_owned();
    }

    /// A line, or nothing. Whoever crashes waits for nobody.
    fn told_context(&self) -> String {
        match self.context.try_lock() {
            Ok(context) if !context.is_empty() => format!("debug-context: {context}\n"),
            _ => String::new(),
        }
    }
}
