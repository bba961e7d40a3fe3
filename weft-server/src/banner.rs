//! What the start says about itself, in the lines that service managers and test suites wait for.
//!
//! Owns their wording only. The picture is shown as Redis shows its own: on a terminal, or if `always-show-logo` asks.

use weft_engine::identity::WEFT_VERSION;

use crate::log::Log;

/// The first lines, before anything has been set up.
pub fn starting(log: &Log, configured: bool) {
    log.notice("oO0OoO0OoO0Oo Weft is starting oO0OoO0OoO0Oo");
    log.notice(format_args!(
        "Weft version={WEFT_VERSION}, bits={}, pid={}, just started",
        usize::BITS,
        std::process::id()
    ));
    if configured {
        log.notice("Configuration loaded");
    } else {
        log.notice("No configuration given, using the defaults. To use a file: weft-server /path/to/weft.conf");
    }
}

/// Which server this is and where it listens.
pub fn running(log: &Log, port: u16, picture: bool) {
    if picture {
        log.plain(&self::picture(port));
    } else {
        log.notice(format_args!("Running mode=standalone, port={port}."));
    }
}

fn picture(port: u16) -> String {
    let (bits, process) = (usize::BITS, std::process::id());
    format!(
        "
   | | | | | | |
  -+-|-+-|-+-|-+-      Weft {WEFT_VERSION} {bits} bit
   | | | | | | |       Running in standalone mode
  -|-+-|-+-|-+-|-      Port: {port}
   | | | | | | |       PID: {process}
  -+-|-+-|-+-|-+-
   | | | | | | |

"
    )
}

/// The server can be connected to over these kinds of sockets.
pub fn ready(log: &Log, tcp: bool, unix: bool) {
    if tcp {
        log.notice("Ready to accept connections tcp");
    }
    if unix {
        log.notice("Ready to accept connections unix");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_picture_has_the_line_test_suites_look_for() {
        let picture = super::picture(7777);
        assert!(picture.contains(&format!(" PID: {}\n", std::process::id())));
        assert!(picture.contains(" Port: 7777\n"));
    }
}
