//! An early end that somebody asked for: SIGINT, SIGTERM.
//!
//! Owns the flag. The first signal lets the run under way end with what it has, so that servers are stopped and results are
//! written; the second one ends the program at once, as if nobody had listened.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_default};

use crate::load::Progress;
use crate::native::Watch;

/// Whether somebody has asked.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on the signals are noted.
    pub fn new() -> Interrupt {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // Where it cannot be had, the signal ends the program as ever. The order matters: the first looks at the flag
            // before the second sets it.
            let _ = register_conditional_default(signal, Arc::clone(&flag));
            let _ = register(signal, Arc::clone(&flag));
        }
        Interrupt(flag)
    }

    /// Whether a signal has come.
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Watch for Interrupt {
    fn moment(&mut self, _: &Progress) -> bool {
        !self.came()
    }
}
