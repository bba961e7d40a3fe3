//! `weft-bench record`: makes a trace of what a server's clients send.
//!
//! Owns the command line, the connection on which MONITOR runs, and the lines that come in pieces. Commands of scripts are
//! left out, since the command that calls the script is there; so is what the server has blackened. Invariants: a line longer
//! than [`LINE_BYTES_MAX`] is passed over, not kept; an end that somebody asks for leaves a complete trace.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use weft_resp::{Reply, decode_reply};

use super::Others;
use super::format::Writer;
use super::monitor::{self, Source};
use crate::interrupt::Interrupt;
use crate::load::{Target, encode, system_text};
use crate::native::options::Instead;
use crate::native::{Spec, opening, reached, words};

const USAGE: &str = "\
Usage: weft-bench record [options] TRACE

Writes what the clients of a server send into the file TRACE, until Ctrl-C. `weft-bench replay` plays it.
MONITOR slows a server down, and what it shows holds the data of your users: keep the file accordingly.

  -h, --host HOST, -p, --port PORT, -s, --socket PATH, -u, --uri URI
  --user NAME, -a, --password PASSWORD
  --from FILE          read lines that `redis-cli MONITOR` printed, not a server (-: the standard input)
  -d, --duration TIME  end after this time
  -n, --requests N     end after so many requests
  --max-size SIZE      end before the trace is greater than this (1g)
  --progress, --no-progress  show progress; otherwise if there is a terminal
";

/// Options that mean what they mean in `weft-bench run`.
const SHARED: [&str; 6] = ["host", "port", "socket", "uri", "user", "password"];

/// A longer line is passed over. MONITOR takes up to four bytes for one.
const LINE_BYTES_MAX: usize = 256 << 20;

/// How often the end of the time is looked for.
const PATIENCE: Duration = Duration::from_millis(200);

/// A number in a trace takes so many bytes at most, and a request so many besides its arguments: its numbers, the record of a
/// client, and the end.
const NUMBER_BYTES: usize = 10;
const OVERHEAD_BYTES: usize = 700;

/// What a server shows in place of a secret.
const BLACKENED: &[u8] = b"(redacted)";

/// What the command line asks for.
#[derive(Debug)]
struct Options {
    /// The server, and who the client is.
    spec: Spec,
    from: Option<PathBuf>,
    trace: PathBuf,
    duration: Option<Duration>,
    requests: u64,
    bytes: u64,
    progress: bool,
}

/// What was recorded.
#[derive(Debug, Default)]
struct Told {
    scripted: u64,
    blackened: u64,
    unreadable: u64,
    first_unreadable: Option<String>,
}

/// Does what the command line says, without the program's and the mode's name in it.
pub fn main(arguments: &[Vec<u8>]) -> ExitCode {
    let ended = match parse(arguments) {
        Ok(options) => record(&options),
        Err(Instead::Usage) => {
            return match io::stdout().write_all(USAGE.as_bytes()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            };
        }
        Err(Instead::Refused(why)) => Err(format!(
            "{why}\nTry 'weft-bench record --help' for the options."
        )),
    };
    match ended {
        Ok(summary) => {
            eprintln!("{summary}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("weft-bench record: {why}");
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: &[Vec<u8>]) -> Result<Options, Instead> {
    let refused = |why: String| Instead::Refused(why);
    let mut others = Others::default();
    let mut from = None;
    let mut duration = None;
    let (mut requests, mut bytes) = (u64::MAX, 1 << 30);
    let mut progress = io::stderr().is_terminal();
    let mut rest = arguments.iter().map(Vec::as_slice);
    while let Some(word) = rest.next() {
        let (name, attached) = match memchr::memchr(b'=', word) {
            Some(at) if word.starts_with(b"--") => (&word[..at], Some(&word[at + 1..])),
            _ => (word, None),
        };
        let mut text = || {
            let name = String::from_utf8_lossy(name).into_owned();
            let value = attached.or_else(|| rest.next());
            let value =
                value.ok_or_else(|| refused(format!("{name} takes a value, and none follows")))?;
            std::str::from_utf8(value).map_err(|_| refused(format!("{name} takes text")))
        };
        let wrong = |name: &str, takes: &str, value: &str| {
            refused(format!("{name} takes {takes}, not '{value}'"))
        };
        match name {
            b"--help" => return Err(Instead::Usage),
            b"--from" => from = Some(PathBuf::from(text()?)),
            b"-d" | b"--duration" => {
                let value = text()?;
                let time = words::duration(value);
                duration =
                    Some(time.ok_or_else(|| wrong("--duration", "a time such as 30s", value))?);
            }
            b"-n" | b"--requests" => {
                let value = text()?;
                requests = words::count(value)
                    .filter(|&count| count > 0)
                    .ok_or_else(|| wrong("--requests", "a whole number from 1 on", value))?;
            }
            b"--max-size" => {
                let value = text()?;
                bytes = words::count(value)
                    .filter(|&count| count > 0)
                    .ok_or_else(|| wrong("--max-size", "a size such as 500m", value))?;
            }
            b"--progress" => progress = true,
            b"--no-progress" => progress = false,
            _ => others.take(word, &SHARED, &mut rest)?,
        }
    }
    if from.is_some() && !others.shared.is_empty() {
        return Err(refused(
            "lines come --from a file or from a server, not from both".to_owned(),
        ));
    }
    Ok(Options {
        spec: Spec::parse(&others.shared).map_err(Instead::Refused)?,
        from,
        trace: others.trace()?,
        duration,
        requests,
        bytes,
        progress,
    })
}

/// Records. The summary, or what is wrong.
fn record(options: &Options) -> Result<String, String> {
    let interrupt = Interrupt::new();
    let source: Box<dyn Read> = match &options.from {
        Some(path) if path.as_os_str() == "-" => Box::new(io::stdin()),
        Some(path) => Box::new(File::open(path).map_err(|error| at(path, &error))?),
        None => monitored(&options.spec)?,
    };
    let file = File::create(&options.trace).map_err(|error| at(&options.trace, &error))?;
    let unwritable = |error: io::Error| at(&options.trace, &error);
    let mut writer = Writer::new(BufWriter::new(file)).map_err(unwritable)?;
    let mut lines = Lines::new(source);
    let mut told = Told::default();
    let started = Instant::now();
    let mut shown = started;
    let mut ended = "";
    let mut looked = 0_u32;
    loop {
        let line = lines.next().map_err(|error| system_text(&error))?;
        looked = looked.wrapping_add(1);
        // Lines come fast, and the clock is read now and then.
        if looked.is_multiple_of(256) || matches!(line, Next::Nothing) {
            if options.progress && shown.elapsed() >= Duration::from_secs(1) {
                shown = Instant::now();
                eprint!(
                    "\r{} requests, {} bytes ",
                    writer.requests(),
                    writer.bytes()
                );
            }
            let over = options
                .duration
                .is_some_and(|time| started.elapsed() >= time);
            if over || interrupt.came() {
                break;
            }
        }
        let line = match line {
            Next::Line(line) => line,
            Next::TooLong => {
                told.unreadable(|| format!("longer than {LINE_BYTES_MAX} bytes"));
                continue;
            }
            Next::Nothing => continue,
            Next::End => {
                if options.from.is_none() {
                    ended = "the server closed the connection; ";
                }
                break;
            }
        };
        let taken = told.line(line, &mut writer, options.bytes);
        if !taken.map_err(unwritable)? {
            ended = "the trace has its greatest size; ";
            break;
        }
        if writer.requests() >= options.requests {
            break;
        }
    }
    if options.progress {
        eprintln!();
    }
    let (requests, clients, bytes) = (writer.requests(), writer.clients(), writer.bytes());
    writer.finish().map_err(unwritable)?;
    let mut summary = format!(
        "{ended}{requests} requests of {clients} clients in {bytes} bytes; left out: {} of scripts, {} with secrets, {} \
         unreadable",
        told.scripted, told.blackened, told.unreadable
    );
    if let Some(first) = told.first_unreadable {
        summary.push_str(&format!("\nthe first unreadable line has {first}"));
    }
    Ok(summary)
}

fn at(path: &std::path::Path, error: &io::Error) -> String {
    format!("{}: {}", path.display(), system_text(error))
}

impl Told {
    /// Takes a line into the trace, if it belongs there. False: it would make the trace greater than `bytes`.
    fn line<W: Write>(
        &mut self,
        line: &[u8],
        writer: &mut Writer<W>,
        bytes: u64,
    ) -> io::Result<bool> {
        // What redis-cli and the server say before the first line, and empty lines.
        if matches!(line.trim_ascii(), b"" | b"OK" | b"+OK") {
            return Ok(true);
        }
        let line = match monitor::parse(line) {
            Ok(line) => line,
            Err(error) => {
                let shown = &line[..line.len().min(100)];
                self.unreadable(|| format!("{error}: {}", shown.escape_ascii()));
                return Ok(true);
            }
        };
        let Source::Client(client) = line.source else {
            self.scripted += 1;
            return Ok(true);
        };
        if line.arguments.iter().any(|argument| argument == BLACKENED) {
            self.blackened += 1;
            return Ok(true);
        }
        let lens = line.arguments.iter().map(|it| it.len() + NUMBER_BYTES);
        let sum = lens.sum::<usize>() + OVERHEAD_BYTES;
        if writer.bytes() + sum as u64 > bytes {
            return Ok(false);
        }
        writer.request(line.at_us, client, line.database, &line.arguments)?;
        Ok(true)
    }

    fn unreadable(&mut self, what: impl FnOnce() -> String) {
        self.unreadable += 1;
        self.first_unreadable.get_or_insert_with(what);
    }
}

/// A connection on which MONITOR runs.
fn monitored(spec: &Spec) -> Result<Box<dyn Read>, String> {
    let server = reached(&spec.targets[0]).map_err(|failure| failure.to_string())?;
    match &server.target {
        Target::Tcp(_) | Target::Later(_) => {
            let address = server.target.address().ok_or("no address")?;
            let stream = TcpStream::connect(address).map_err(|error| system_text(&error))?;
            let stream = begun(stream, spec)?;
            stream
                .set_read_timeout(Some(PATIENCE))
                .map_err(|error| system_text(&error))?;
            Ok(Box::new(stream))
        }
        Target::Unix(path) => {
            let stream = UnixStream::connect(path).map_err(|error| system_text(&error))?;
            let stream = begun(stream, spec)?;
            stream
                .set_read_timeout(Some(PATIENCE))
                .map_err(|error| system_text(&error))?;
            Ok(Box::new(stream))
        }
    }
}

/// Says who the client is, and starts MONITOR.
fn begun<S: Read + Write>(mut stream: S, spec: &Spec) -> Result<S, String> {
    let mut commands = opening(spec);
    commands.push(vec![b"MONITOR".to_vec()]);
    for command in commands {
        stream
            .write_all(&encode(&command))
            .map_err(|error| system_text(&error))?;
        // Byte by byte, so that no line of MONITOR is read here.
        let mut reply = Vec::new();
        let reply = loop {
            let mut byte = [0];
            match stream.read(&mut byte) {
                Ok(0) => return Err("the server closed the connection".to_owned()),
                Ok(_) => reply.push(byte[0]),
                Err(error) => return Err(system_text(&error)),
            }
            match decode_reply(&reply) {
                Ok(Some((reply, _))) => break reply,
                Ok(None) => {}
                Err(error) => return Err(error.to_string()),
            }
        };
        if let Reply::Error(text) = reply {
            let name = String::from_utf8_lossy(&command[0]).into_owned();
            return Err(format!("{name} failed: {}", String::from_utf8_lossy(&text)));
        }
    }
    Ok(stream)
}

/// Bytes in lines.
struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    /// The bytes that have been handed out.
    taken: usize,
    /// The bytes behind them in which no line end has been found.
    searched: usize,
    /// The rest of a line that is too long is passed over.
    passing: bool,
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
enum Next<'a> {
    /// A line, without its end.
    Line(&'a [u8]),
    /// A line that was too long.
    TooLong,
    /// Nothing yet.
    Nothing,
    End,
}

impl<R: Read> Lines<R> {
    fn new(source: R) -> Lines<R> {
        Lines {
            source,
            buffer: Vec::new(),
            taken: 0,
            searched: 0,
            passing: false,
        }
    }

    fn next(&mut self) -> io::Result<Next<'_>> {
        loop {
            let from = self.taken + self.searched;
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[from..]) {
                let line = self.taken..from + found;
                self.taken = line.end + 1;
                self.searched = 0;
                if std::mem::take(&mut self.passing) {
                    return Ok(Next::TooLong);
                }
                return Ok(Next::Line(&self.buffer[line]));
            }
            self.buffer.drain(..self.taken);
            self.taken = 0;
            self.searched = self.buffer.len();
            if self.searched > LINE_BYTES_MAX {
                self.passing = true;
            }
            if self.passing {
                self.buffer.clear();
                self.searched = 0;
            }
            let len = self.buffer.len();
            self.buffer.resize(len + (64 << 10), 0);
            let read = self.source.read(&mut self.buffer[len..]);
            self.buffer.truncate(len + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) if self.buffer.is_empty() => return Ok(Next::End),
                Ok(0) => {
                    // The last line has no end.
                    self.taken = self.buffer.len();
                    self.searched = 0;
                    return Ok(Next::Line(&self.buffer));
                }
                Ok(_) => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                    ) =>
                {
                    return Ok(Next::Nothing);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    return Ok(Next::Nothing);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<Vec<u8>> {
        line.split(' ')
            .map(|word| word.as_bytes().to_vec())
            .collect()
    }

    #[test]
    fn lines_come_whole_however_they_are_cut() {
        struct Cut<'a>(&'a [u8], usize);
        impl Read for Cut<'_> {
            fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
                let len = self.0.len().min(self.1).min(out.len());
                out[..len].copy_from_slice(&self.0[..len]);
                self.0 = &self.0[len..];
                Ok(len)
            }
        }
        for step in 1..12 {
            let mut lines = Lines::new(Cut(b"one\ntwo\n\nthree", step));
            for expected in ["one", "two", "", "three"] {
                assert_eq!(lines.next().unwrap(), Next::Line(expected.as_bytes()));
            }
            assert_eq!(lines.next().unwrap(), Next::End);
            assert_eq!(lines.next().unwrap(), Next::End);
        }
    }

    #[test]
    fn the_command_line_is_checked() {
        let options = parse(&words("-p 7000 -a pw --max-size=5m -n 10 out")).unwrap();
        assert_eq!((options.bytes, options.requests), (5 << 20, 10));
        assert_eq!(options.trace, PathBuf::from("out"));
        let refused = |line: &str| match parse(&words(line)) {
            Err(Instead::Refused(why)) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused("-p 7000"), "the name of the trace is missing");
        assert_eq!(refused("a b"), "'b' means nothing here");
        assert_eq!(refused("--rate 5 a"), "'--rate' means nothing here");
        assert_eq!(
            refused("-d x a"),
            "--duration takes a time such as 30s, not 'x'"
        );
        assert_eq!(
            refused("-p 1 --from x a"),
            "lines come --from a file or from a server, not from both"
        );
    }

    #[test]
    fn what_does_not_belong_in_a_trace_is_left_out_and_counted() {
        let mut writer = Writer::new(Vec::new()).unwrap();
        let mut told = Told::default();
        for line in [
            "OK",
            "1.000000 [0 a:1] \"SET\" \"k\" \"v\"",
            "1.000001 [0 lua] \"SET\" \"k\" \"v\"",
            "1.000002 [0 a:1] \"AUTH\" \"(redacted)\"",
            "Error: Server closed the connection",
            "",
        ] {
            assert!(told.line(line.as_bytes(), &mut writer, 1 << 20).unwrap());
        }
        let full = told.line(b"1.000000 [0 a:1] \"PING\"", &mut writer, 100);
        assert!(!full.unwrap());
        assert_eq!(writer.requests(), 1);
        assert_eq!((told.scripted, told.blackened, told.unreadable), (1, 1, 1));
        assert_eq!(
            told.first_unreadable.unwrap(),
            "no time at its beginning: Error: Server closed the connection"
        );
    }
}
