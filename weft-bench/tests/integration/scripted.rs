//! A server that answers by a script: always the same, after a known time.
//!
//! One thread accepts, one serves each connection. Everything it received stands in `received`, request by request.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use weft_resp::{Reply, decode_reply};

/// How a server behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// Every command succeeds.
    Plain,
    /// Every delivery is answered after so many milliseconds.
    Slow(u64),
    /// A connection's fourth command and those after it are errors.
    Errors,
    /// A connection's fourth command closes it.
    Closes,
    /// A connection's fourth command is answered with what is no reply.
    Garbage,
    /// Errors inside arrays, and pushes between replies: neither ends a run.
    Noise,
    /// Nothing but AUTH is allowed, and that fails.
    Locked,
    /// There is no CONFIG.
    NoConfig,
    /// SELECT fails.
    NoDatabases,
    /// CLUSTER NODES tells of two primaries, both of which are this server.
    Cluster,
}

/// A running server.
pub struct Scripted {
    pub port: u16,
    folder: TempDir,
    received: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Scripted {
    pub fn start(script: Script) -> Scripted {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let local = UnixListener::bind(folder.path().join("socket")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&received);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let log = Arc::clone(&log);
                stream.set_nodelay(true).unwrap();
                thread::spawn(move || serve(script, port, stream, &log));
            }
        });
        let log = Arc::clone(&received);
        thread::spawn(move || {
            for stream in local.incoming().map_while(Result::ok) {
                let log = Arc::clone(&log);
                thread::spawn(move || serve(script, port, stream, &log));
            }
        });
        Scripted {
            port,
            folder,
            received,
        }
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// The requests so far, words joined by spaces, in the order of their arrival.
    pub fn received(&self) -> Vec<String> {
        let received = self.received.lock().unwrap();
        received
            .iter()
            .map(|request| String::from_utf8_lossy(request).into_owned())
            .collect()
    }
}

fn serve<S: Read + Write>(script: Script, port: u16, mut stream: S, log: &Mutex<Vec<Vec<u8>>>) {
    let mut pending = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    let mut count = 0;
    loop {
        let Ok(read @ 1..) = stream.read(&mut buffer) else {
            return;
        };
        pending.extend_from_slice(&buffer[..read]);
        let mut replies = Vec::new();
        while let Some((words, len)) = request(&pending) {
            pending.drain(..len);
            log.lock().unwrap().push(words.join(&b' '));
            match answer(script, port, &words, &mut count) {
                Some(reply) => replies.extend_from_slice(reply.as_bytes()),
                None => return,
            }
        }
        if let Script::Slow(milliseconds) = script {
            // The delay is what is measured, not a wait for something.
            thread::sleep(Duration::from_millis(milliseconds));
        }
        if stream.write_all(&replies).is_err() {
            return;
        }
    }
}

/// The words of the first request, and its length.
pub fn request(bytes: &[u8]) -> Option<(Vec<Vec<u8>>, usize)> {
    const INLINE: &[u8] = b"PING\r\n";
    if bytes.starts_with(INLINE) {
        return Some((vec![b"PING".to_vec()], INLINE.len()));
    }
    let (reply, len) = decode_reply(bytes).expect("a request")?;
    let Reply::Array(words) = reply else {
        panic!("no request: {reply:?}");
    };
    let word = |word| match word {
        Reply::Bulk(word) => word,
        other => panic!("no argument: {other:?}"),
    };
    Some((words.into_iter().map(word).collect(), len))
}

/// `None`: the connection is closed.
fn answer(script: Script, port: u16, words: &[Vec<u8>], count: &mut u32) -> Option<String> {
    let name = words[0].to_ascii_uppercase();
    let reply = match (&name[..], script) {
        (b"AUTH", Script::Locked) => {
            "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
        }
        (_, Script::Locked) => "-NOAUTH Authentication required.\r\n",
        (b"CONFIG", Script::NoConfig) => "-ERR unknown command 'CONFIG'\r\n",
        (b"CONFIG", _) if words[2] == b"save" => "*2\r\n$4\r\nsave\r\n$7\r\n3600 1 \r\n",
        (b"CONFIG", _) => "*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n",
        (b"CLUSTER", Script::Cluster) => {
            let text = format!(
                "aaa 127.0.0.1:{port}@1 myself,master - 0 0 1 connected 0-8191\n\
                 bbb 127.0.0.1:{port}@1 master - 0 0 2 connected 8192-16383\n"
            );
            return Some(format!("${}\r\n{text}\r\n", text.len()));
        }
        (b"CLUSTER", _) => "-ERR This instance has cluster support disabled\r\n",
        (b"SELECT", Script::NoDatabases) => "-ERR DB index is out of range\r\n",
        (b"HELLO", _) => "%1\r\n$5\r\nproto\r\n:3\r\n",
        (b"FAIL", _) => "-ERR unknown command 'fail'\r\n",
        (b"GET", Script::Plain | Script::Slow(_)) => "$3\r\nabc\r\n",
        (b"LRANGE", _) => "*2\r\n$3\r\nabc\r\n$-1\r\n",
        _ => {
            *count += 1;
            match script {
                Script::Errors if *count > 3 => "-FOO bar\r\n",
                Script::Closes if *count > 3 => return None,
                Script::Garbage if *count > 3 => "hello\r\n",
                Script::Noise => {
                    ">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n*2\r\n-ERR inside\r\n+OK\r\n"
                }
                _ => "+OK\r\n",
            }
        }
    };
    Some(reply.to_owned())
}
