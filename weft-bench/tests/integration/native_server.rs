//! A server that answers as a function says, which may take its time.
//!
//! One thread accepts, one serves each connection, request by request: a slow answer holds up its connection only, unless the
//! function holds up all of them.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use weft_resp::{Reply, decode_reply};

/// A request: the connection's number and the words.
pub type Request = (usize, Vec<String>);

/// Requests, and word of those that come.
#[derive(Default)]
struct Log {
    requests: Mutex<Vec<Request>>,
    comes: Condvar,
}

/// A running server.
pub struct Server {
    pub port: u16,
    received: Arc<Log>,
}

impl Server {
    /// Starts one. `None` from the function closes the connection; an empty answer is none.
    pub fn start(
        answer: impl Fn(usize, &[Vec<u8>]) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::new(Log::default());
        let log = Arc::clone(&received);
        let answer = Arc::new(answer);
        let connections = AtomicUsize::new(0);
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                stream.set_nodelay(true).unwrap();
                let number = connections.fetch_add(1, Ordering::Relaxed);
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                thread::spawn(move || {
                    serve(&mut stream, |words| {
                        let shown = words
                            .iter()
                            .map(|word| String::from_utf8_lossy(word).into_owned());
                        log.requests.lock().unwrap().push((number, shown.collect()));
                        log.comes.notify_all();
                        answer(number, words)
                    });
                });
            }
        });
        Server { port, received }
    }

    /// One that keeps strings: SET, GET, MGET; everything else is `OK`.
    pub fn store() -> Server {
        let store = Store::default();
        Server::start(move |_, words| Some(store.answer(words)))
    }

    /// The requests so far, in the order of their arrival.
    pub fn received(&self) -> Vec<Request> {
        self.received.requests.lock().unwrap().clone()
    }

    /// Waits until so many requests have come.
    pub fn wait_for(&self, count: usize) {
        let requests = self.received.requests.lock().unwrap();
        let few = |requests: &mut Vec<Request>| requests.len() < count;
        drop(self.received.comes.wait_while(requests, few).unwrap());
    }

    /// The requests so far with this name.
    pub fn received_named(&self, name: &str) -> Vec<Request> {
        let mut received = self.received();
        received.retain(|(_, words)| words[0].eq_ignore_ascii_case(name));
        received
    }
}

/// Answers what comes over a stream, until `answer` gives nothing or the other side closes.
pub fn serve<S: Read + Write>(
    stream: &mut S,
    mut answer: impl FnMut(&[Vec<u8>]) -> Option<Vec<u8>>,
) {
    let mut pending = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        pending.extend_from_slice(&buffer[..read]);
        while let Some(words) = request(&mut pending) {
            match answer(&words) {
                Some(reply) if stream.write_all(&reply).is_ok() => {}
                _ => return,
            }
        }
    }
}

/// The first request, which is taken out.
fn request(bytes: &mut Vec<u8>) -> Option<Vec<Vec<u8>>> {
    let (reply, len) = decode_reply(bytes).expect("a request")?;
    bytes.drain(..len);
    let Reply::Array(words) = reply else {
        panic!("no request: {reply:?}");
    };
    let word = |word| match word {
        Reply::Bulk(word) => word,
        other => panic!("no argument: {other:?}"),
    };
    Some(words.into_iter().map(word).collect())
}

/// Keeps strings.
#[derive(Default)]
pub struct Store(Mutex<HashMap<Vec<u8>, Vec<u8>>>);

impl Store {
    pub fn answer(&self, words: &[Vec<u8>]) -> Vec<u8> {
        let mut values = self.0.lock().unwrap();
        let bulk = |value: Option<&Vec<u8>>| match value {
            Some(value) => [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat(),
            None => b"$-1\r\n".to_vec(),
        };
        match &words[0].to_ascii_uppercase()[..] {
            b"SET" => {
                values.insert(words[1].clone(), words[2].clone());
                b"+OK\r\n".to_vec()
            }
            b"GET" => bulk(values.get(&words[1])),
            b"MGET" => {
                let mut reply = format!("*{}\r\n", words.len() - 1).into_bytes();
                let found = words[1..].iter().map(|key| bulk(values.get(key)));
                found.for_each(|value| reply.extend(value));
                reply
            }
            _ => b"+OK\r\n".to_vec(),
        }
    }
}
