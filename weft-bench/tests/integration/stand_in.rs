//! A server in a process of its own, for modes that start servers: this test program, started again.
//!
//! It holds one lock while it answers, as a server with one executing thread does; `SLEEP MS` holds it for a known time.
//! INFO tells a version, the process, processor time, and the five steps, which grow by known amounts with every request.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use crate::scripted::request;

/// The port to listen at; without it the test below does nothing.
const PORT: &str = "STAND_IN_PORT";

/// A file to which the process adds its id.
const IDS: &str = "STAND_IN_IDS";

/// A command line that starts one, with a place for threads.
pub fn command_line(ids: &Path) -> String {
    let program = std::env::current_exe().unwrap();
    format!(
        "env {PORT}={{port}} {IDS}='{}' THREADS={{threads}} '{}' --exact stand_in::serves --ignored --nocapture",
        ids.display(),
        program.display()
    )
}

/// The ids of those that were started.
pub fn ids(file: &Path) -> Vec<u32> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|id| id.parse().unwrap()).collect()
}

/// Whether a process is there and is no corpse.
pub fn is_alive(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.trim_start().chars().next());
    state.is_some_and(|state| state != 'Z')
}

/// No test: the server. Run on purpose only, by a command line from above.
#[test]
#[ignore = "it is a server that other tests start"]
fn serves() {
    let Ok(port) = std::env::var(PORT) else {
        return;
    };
    let listener = TcpListener::bind(("127.0.0.1", port.parse().unwrap())).unwrap();
    if let Ok(path) = std::env::var(IDS) {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .unwrap();
        writeln!(file, "{}", std::process::id()).unwrap();
    }
    static LOCK: Mutex<u64> = Mutex::new(0);
    for stream in listener.incoming().map_while(Result::ok) {
        stream.set_nodelay(true).unwrap();
        thread::spawn(move || serve(stream, &LOCK));
    }
}

fn serve(mut stream: TcpStream, lock: &Mutex<u64>) {
    let mut pending = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let Ok(read @ 1..) = stream.read(&mut buffer) else {
            return;
        };
        pending.extend_from_slice(&buffer[..read]);
        let mut replies = Vec::new();
        while let Some((words, len)) = request(&pending) {
            pending.drain(..len);
            let mut count = lock.lock().unwrap();
            *count += 1;
            replies.extend(answer(&words, *count));
        }
        if stream.write_all(&replies).is_err() {
            return;
        }
    }
}

fn answer(words: &[Vec<u8>], count: u64) -> Vec<u8> {
    let name = words[0].to_ascii_uppercase();
    match &name[..] {
        b"GET" => b"$3\r\nabc\r\n".to_vec(),
        b"SLEEP" => {
            let ms = String::from_utf8_lossy(&words[1]).parse().unwrap();
            // The delay is what is measured, not a wait for something.
            thread::sleep(Duration::from_millis(ms));
            b"+OK\r\n".to_vec()
        }
        b"FAIL" => b"-ERR it fails\r\n".to_vec(),
        b"SHUTDOWN" => std::process::exit(0),
        b"INFO" => {
            let text = match &words[1][..] {
                b"server" => {
                    format!("weft_version:9.9\r\nprocess_id:{}\r\n", std::process::id())
                }
                b"cpu" => "used_cpu_user:1.0\r\nused_cpu_sys:1.0\r\n".to_owned(),
                _ => {
                    let steps = [
                        ("read", 1),
                        ("parse", 0),
                        ("execute", 2),
                        ("encode", 0),
                        ("write", 4),
                    ];
                    let steps = steps.map(|(step, us)| format!("{step}_us={}", us * count));
                    format!("weft_worker_0:busy_percent=1,{}\r\n", steps.join(","))
                }
            };
            format!("${}\r\n{text}\r\n", text.len()).into_bytes()
        }
        _ => b"+OK\r\n".to_vec(),
    }
}
