//! The end of the process by a fault on purpose, as DEBUG asks for: what supervisors and crash reporters are tested with.
//!
//! The log says first what is about to happen. A panic's own line and backtrace come from the hook that every panic meets.

use std::alloc::{Layout, handle_alloc_error};

use rustix::process::{Signal, getpid, kill_process};
use weft_engine::action::Fault;
use weft_engine::identity::WEFT_VERSION;

use crate::log::Log;

/// Ends the process.
pub fn commit(log: &Log, fault: Fault) -> ! {
    match fault {
        Fault::Segfault => {
            log.warning(format_args!(
                "Weft {WEFT_VERSION} crashed by signal: {}, sent to itself for DEBUG SEGFAULT",
                Signal::SEGV.as_raw()
            ));
            // The first one only takes the language's own handler away, which is there to tell a stack that has overflowed.
            loop {
                let _ = kill_process(getpid(), Signal::SEGV);
            }
        }
        Fault::Panic => panic!("DEBUG PANIC called"),
        Fault::Assert => panic!("=== ASSERTION FAILED === DEBUG ASSERT called, which never holds"),
        Fault::OutOfMemory => {
            let most = Layout::from_size_align(isize::MAX as usize, 1);
            let layout = most.unwrap_or(Layout::new::<u8>());
            log.warning(format_args!(
                "Out Of Memory allocating {} bytes!",
                layout.size()
            ));
            handle_alloc_error(layout)
        }
    }
}
