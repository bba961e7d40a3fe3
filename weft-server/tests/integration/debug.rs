//! DEBUG SLEEP, which only a whole server can show.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
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
    let over = AtomicBool::new(false);
    let longest: Vec<Duration> = thread::scope(|scope| {
        let threads: Vec<_> = clients
            .into_iter()
            .map(|mut client| {
                let over = &over;
                scope.spawn(move || {
                    let mut longest = Duration::ZERO;
                    while !over.load(Ordering::Relaxed) {
                        let asked = Instant::now();
                        client.ask("GET k", "$-1\r\n");
                        longest = longest.max(asked.elapsed());
                    }
                    longest
                })
            })
            .collect();
        let begin = Instant::now();
        sleeper.ask(&format!("DEBUG SLEEP {}", SLEEP.as_secs_f64()), "+OK\r\n");
        assert!(begin.elapsed() >= SLEEP);
        over.store(true, Ordering::Relaxed);
        let join = |thread: thread::ScopedJoinHandle<'_, Duration>| thread.join().unwrap();
        threads.into_iter().map(join).collect()
    });
    // Whatever worker they are on, all of them wait for the end. On a busy machine one may have asked a little late.
    assert!(
        longest.iter().all(|longest| *longest >= SLEEP / 2),
        "{longest:?}"
    );
}
