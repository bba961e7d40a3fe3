//! A connection that sends one command over and over: the slow command whose effect on others is measured.
//!
//! Owns a thread. Answers are skimmed, not kept, so that this side takes as little of the processors as can be. An error
//! ends it, for a command that fails quickly stalls nobody. Asked to stop it finishes the command under way, so that
//! nothing of it reaches into the next measurement.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use weft_os::cpu::thread_time;
use weft_resp::{DecodeLimits, ReplyClass, ReplyScanner};

use crate::load::{encode, system_text};

/// The longest that one command may take.
const PATIENCE: Duration = Duration::from_secs(300);

const BUFFER_BYTES: usize = 256 << 10;

/// So much of an error is told.
const ERROR_BYTES_MAX: usize = 200;

/// A command under way, again and again.
#[derive(Debug)]
pub struct Looped {
    thread: JoinHandle<Result<Runs, String>>,
    stop: Arc<AtomicBool>,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Runs {
    /// How often it was answered.
    pub count: u64,
    /// Seconds of processor time on this side.
    pub cpu_seconds: f64,
}

impl Looped {
    /// Connects and starts.
    ///
    /// # Errors
    /// That it cannot connect.
    pub fn start<A: AsRef<[u8]>>(server: SocketAddr, command: &[A]) -> Result<Looped, String> {
        let failed = |error: std::io::Error| format!("the slow client: {}", system_text(&error));
        let stream = TcpStream::connect(server).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        let request = encode(command);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("looped".to_owned())
            .spawn(move || run(stream, &request, &stopped))
            .map_err(failed)?;
        Ok(Looped { thread, stop })
    }

    /// Waits for the command under way and ends.
    ///
    /// # Errors
    /// What the server answered, if it was an error; or that the connection broke.
    pub fn stop(self) -> Result<Runs, String> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.join() {
            Ok(ended) => ended,
            Err(_) => Err("the slow client has panicked".to_owned()),
        }
    }
}

fn run(mut stream: TcpStream, request: &[u8], stop: &AtomicBool) -> Result<Runs, String> {
    let mut scanner = ReplyScanner::new(DecodeLimits::default());
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        let lost = |error: std::io::Error| format!("the slow client: {}", system_text(&error));
        stream.write_all(request).map_err(lost)?;
        let mut error: Vec<u8> = Vec::new();
        loop {
            let received = stream.read(&mut buffer).map_err(lost)?;
            if received == 0 {
                return Err("the slow client: the server closed the connection".to_owned());
            }
            let bytes = &buffer[..received];
            let scanned = scanner
                .scan(bytes)
                .map_err(|error| format!("the slow client: {error}"))?;
            let class = scanned
                .as_ref()
                .map_or(scanner.class(), |it| Some(it.class));
            if class == Some(ReplyClass::Error) {
                error.extend(
                    bytes
                        .iter()
                        .take(ERROR_BYTES_MAX - error.len().min(ERROR_BYTES_MAX)),
                );
            }
            match scanned {
                // One request is under way at a time, so that nothing comes behind its answer.
                Some(reply) if reply.class == ReplyClass::Error => {
                    let text = String::from_utf8_lossy(&error);
                    return Err(format!("is answered with {}", text.trim()));
                }
                Some(_) => break,
                None => {}
            }
        }
        count += 1;
    }
    let time = thread_time();
    Ok(Runs {
        count,
        cpu_seconds: (time.user_us + time.system_us) as f64 / 1e6,
    })
}
