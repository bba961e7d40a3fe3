//! DEBUG SLEEP, which only a whole server can show.

use std::time::{Duration, Instant};

use crate::harness::Server;

#[test]
fn debug_sleep_stops_every_worker() {
    const SLEEP: Duration = Duration::from_millis(500);
    let server = Server::start(&["--enable-debug-command", "yes", "--io-threads", "2"]);
    let mut clients: Vec<_> = (0..8).map(|_| server.connect()).collect();
    clients[0].ask("DEBUG WORKERS 2", "+OK\r\n");
    clients
        .iter_mut()
        .for_each(|client| client.ask("GET k", "$-1\r\n"));
    let mut sleeper = server.connect();
    let begin = Instant::now();
    sleeper.send(format!("DEBUG SLEEP {}\r\n", SLEEP.as_secs_f64()));
    // Whatever worker they are on, at some time all of them wait for the end of the sleep.
    let mut longest = vec![Duration::ZERO; clients.len()];
    while begin.elapsed() < SLEEP {
        clients
            .iter_mut()
            .for_each(|client| client.send("GET k\r\n"));
        let sent = Instant::now();
        for (client, longest) in clients.iter_mut().zip(&mut longest) {
            client.expect(b"$-1\r\n");
            *longest = sent.elapsed().max(*longest);
        }
    }
    sleeper.expect(b"+OK\r\n");
    assert!(begin.elapsed() >= SLEEP);
    // The sleep may have begun a little after the clients last asked before it.
    assert!(
        longest.iter().all(|longest| *longest >= SLEEP / 2),
        "{longest:?}"
    );
}
