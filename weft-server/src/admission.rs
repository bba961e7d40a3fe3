//! Who may connect: `maxclients` and protected mode.
//!
//! Owns the decision and the texts of the refusals. Shared by the acceptor, which asks, and the workers, which count
//! connections down and bring new settings; nobody waits for anybody here, so that a change of settings that waits for
//! the acceptor cannot stop it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use weft_engine::engine::Engine;
use weft_reactor::PeerAddress;

/// Sent to whoever is one too many.
const TOO_MANY: &[u8] = b"-ERR max number of clients reached\r\n";

/// Sent to strangers in protected mode.
const PROTECTED: &[u8] = b"-DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default user. \
In this mode connections are only accepted from the loopback interface. \
If you want to connect from external computers to Redis you may adopt one of the following solutions: \
1) Just disable protected mode sending the command 'CONFIG SET protected-mode no' from the loopback interface by connecting to Redis from the same host the server is running, \
however MAKE SURE Redis is not publicly accessible from internet if you do so. \
Use CONFIG REWRITE to make this change permanent. \
2) Alternatively you can just disable the protected mode by editing the Redis configuration file, and setting the protected mode option to 'no', and then restarting the server. \
3) If you started the server manually just for testing, restart it with the '--protected-mode no' option. \
4) Set up an authentication password for the default user. \
NOTE: You only need to do one of the above things in order for the server to start accepting connections from the outside.\r\n";

/// What a new connection has to pass.
#[derive(Default)]
pub struct Admission {
    clients: AtomicUsize,
    clients_max: AtomicUsize,
    local_only: AtomicBool,
    refused: AtomicUsize,
    refresh: Mutex<()>,
}

impl Admission {
    /// Takes over what the settings say now. Must not be called with the configuration locked.
    pub fn refresh(&self, engine: &Engine) {
        // Of two threads the later one reads the later settings.
        let turn = self.refresh.lock().unwrap_or_else(PoisonError::into_inner);
        let settings = Arc::clone(engine.config().settings());
        self.set(
            settings.maxclients(),
            settings.protected_mode() && settings.requirepass().is_none(),
        );
        drop(turn);
    }

    fn set(&self, clients_max: usize, local_only: bool) {
        self.clients_max.store(clients_max, Ordering::Relaxed);
        self.local_only.store(local_only, Ordering::Relaxed);
    }

    /// Counts one more client in, or says what to send it before closing. Only the acceptor calls it.
    ///
    /// # Errors
    /// The refusal, as bytes of the protocol.
    pub fn enter(&self, peer: &PeerAddress) -> Result<(), &'static [u8]> {
        let refusal =
            if self.clients.load(Ordering::Relaxed) >= self.clients_max.load(Ordering::Relaxed) {
                TOO_MANY
            } else if self.local_only.load(Ordering::Relaxed) && !is_local(peer) {
                PROTECTED
            } else {
                self.clients.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            };
        self.refused.fetch_add(1, Ordering::Relaxed);
        Err(refusal)
    }

    /// A client is gone.
    pub fn leave(&self) {
        self.clients.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many were refused since the last call.
    pub fn take_refused(&self) -> usize {
        self.refused.swap(0, Ordering::Relaxed)
    }
}

/// Whether a peer is on this machine for sure: it came over a Unix socket or from a loopback address.
pub fn is_local(peer: &PeerAddress) -> bool {
    match peer {
        PeerAddress::Unix => true,
        PeerAddress::Internet(address) => address.ip().to_canonical().is_loopback(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(address: &str) -> PeerAddress {
        PeerAddress::Internet(address.parse().unwrap())
    }

    #[test]
    fn only_loopback_and_unix_sockets_are_local() {
        for local in [
            "127.0.0.1:1",
            "127.9.8.7:1",
            "[::1]:1",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert!(is_local(&from(local)), "{local}");
        }
        assert!(is_local(&PeerAddress::Unix));
        for strange in [
            "192.0.2.1:1",
            "10.0.0.1:1",
            "0.0.0.0:1",
            "[::]:1",
            "[fe80::1]:1",
            "[::ffff:10.0.0.1]:1",
        ] {
            assert!(!is_local(&from(strange)), "{strange}");
        }
    }

    #[test]
    fn strangers_are_refused_in_protected_mode_only() {
        let admission = Admission::default();
        admission.set(100, true);
        assert_eq!(admission.enter(&from("192.0.2.1:5")), Err(PROTECTED));
        assert_eq!(admission.enter(&from("127.0.0.1:5")), Ok(()));
        assert_eq!(admission.enter(&PeerAddress::Unix), Ok(()));
        admission.set(100, false);
        assert_eq!(admission.enter(&from("192.0.2.1:5")), Ok(()));
        assert_eq!(admission.take_refused(), 1);
        assert_eq!(admission.take_refused(), 0);
    }

    #[test]
    fn the_limit_counts_who_left() {
        let admission = Admission::default();
        admission.set(2, true);
        assert_eq!(admission.enter(&PeerAddress::Unix), Ok(()));
        assert_eq!(admission.enter(&PeerAddress::Unix), Ok(()));
        assert_eq!(admission.enter(&PeerAddress::Unix), Err(TOO_MANY));
        // Whoever is one too many is told that, stranger or not.
        assert_eq!(admission.enter(&from("192.0.2.1:5")), Err(TOO_MANY));
        admission.leave();
        assert_eq!(admission.enter(&PeerAddress::Unix), Ok(()));
        assert_eq!(admission.take_refused(), 2);
    }
}
