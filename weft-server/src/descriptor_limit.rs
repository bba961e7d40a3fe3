//! Enough file descriptors for `maxclients`.

use weft_os::descriptors::raise_limit;

use crate::log::{Log, system_text};

/// Descriptors the server needs besides those of its clients: listeners, log, files being read or written. Redis keeps
/// the same number back, so that the same limits allow the same number of clients.
const RESERVED: u64 = 32;

/// Raises the limit so that `clients` fit, as far as the system lets it. Returns how many fit, at most `clients`; less
/// is logged.
pub fn secure(clients: usize, log: &Log) -> usize {
    let wanted = clients as u64 + RESERVED;
    let raised = raise_limit(wanted);
    if let Some(error) = raised.error.filter(|_| raised.now < wanted) {
        let possible = raised.now.saturating_sub(RESERVED) as usize;
        if possible > 0 {
            log.warning(format_args!(
                "You requested maxclients of {clients} requiring at least {wanted} max file descriptors."
            ));
            log.warning(format_args!(
                "Server can't set maximum open files to {wanted} because of OS error: {}.",
                system_text(&error)
            ));
            log.warning(format_args!(
                "Current maximum open files is {}. maxclients has been reduced to {possible} to compensate for low ulimit. \
                 If you need higher maxclients increase 'ulimit -n'.",
                raised.now
            ));
        } else {
            log.warning(format_args!(
                "Your current 'ulimit -n' of {} is not enough for the server to start. Please increase your open file limit \
                 to at least {wanted}. Exiting.",
                raised.now
            ));
        }
        return possible;
    }
    if raised.now > raised.before {
        log.notice(format_args!(
            "Increased maximum number of open files to {} (it was originally set to {}).",
            raised.now, raised.before
        ));
    }
    clients
}
