//! The server's log, by default in the format that tools which read Redis's log expect:
//! `PID:ROLE dd Mon yyyy hh:mm:ss.mmm LEVEL message`, local time; with `log-format` as Valkey's pairs or JSON.
//!
//! Owns the level, the destination and the form of a line. A log file is opened anew for every line, so that it can be
//! rotated by renaming it; a line that cannot be written is lost, never waited for or retried.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{Timestamp, ZonedDateTime};
use weft_engine::config::{LogFormat, LogLevel, LogTimestamp};

use crate::syslog::Syslog;

/// How important a line is. A log of some level shows that level and those after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// For those who work on the server.
    Debug,
    /// Every connection.
    Verbose,
    /// What an operator wants to know.
    Notice,
    /// What an operator has to know.
    Warning,
    /// Above every line: a log of this level shows none.
    Nothing,
}

impl Level {
    const fn of(number: u8) -> Self {
        match number {
            0 => Self::Debug,
            1 => Self::Verbose,
            2 => Self::Notice,
            3 => Self::Warning,
            _ => Self::Nothing,
        }
    }

    const fn mark(self) -> char {
        match self {
            Self::Debug => '.',
            Self::Verbose => '-',
            Self::Notice => '*',
            Self::Warning | Self::Nothing => '#',
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Verbose => "info",
            Self::Notice => "notice",
            Self::Warning | Self::Nothing => "warning",
        }
    }
}

impl From<LogLevel> for Level {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Debug => Self::Debug,
            LogLevel::Verbose => Self::Verbose,
            LogLevel::Notice => Self::Notice,
            LogLevel::Warning => Self::Warning,
            LogLevel::Nothing => Self::Nothing,
        }
    }
}

/// Writes lines to standard output or to a file, and to the system's log if told to.
pub struct Log {
    level: AtomicU8,
    serving: AtomicBool,
    destination: Mutex<Destination>,
}

struct Destination {
    /// None: standard output.
    file: Option<PathBuf>,
    syslog: Option<Syslog>,
    form: Form,
}

/// What a line looks like.
#[derive(Clone, Copy)]
struct Form {
    layout: LogFormat,
    time: LogTimestamp,
}

impl Log {
    /// A log on standard output, of level "notice".
    pub const fn to_standard_output() -> Self {
        Self {
            level: AtomicU8::new(Level::Notice as u8),
            serving: AtomicBool::new(false),
            destination: Mutex::new(Destination {
                file: None,
                syslog: None,
                form: Form {
                    layout: LogFormat::Legacy,
                    time: LogTimestamp::Legacy,
                },
            }),
        }
    }

    /// Goes on in another place. The file is created if it does not exist.
    ///
    /// # Errors
    /// Those of opening the file; then nothing has changed.
    pub fn redirect(&self, file: Option<&Path>, syslog: Option<Syslog>) -> io::Result<()> {
        // Absolute, so that a later change of the working directory does not move the log.
        let file = file.map(std::path::absolute).transpose()?;
        if let Some(path) = &file {
            open(path)?;
        }
        let mut destination = self.lock();
        destination.file = file;
        destination.syslog = syslog;
        Ok(())
    }

    /// Lines look like this from now on.
    pub fn set_form(&self, layout: LogFormat, time: LogTimestamp) {
        self.lock().form = Form { layout, time };
    }

    fn lock(&self) -> MutexGuard<'_, Destination> {
        self.destination
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows lines of this level and above from now on.
    pub fn set_level(&self, level: Level) {
        self.level.store(level as u8, Ordering::Relaxed);
    }

    /// From now on lines come from a server, not from one that is still starting.
    pub fn set_serving(&self) {
        self.serving.store(true, Ordering::Relaxed);
    }

    /// Whether a line of this level would be shown.
    pub fn shows(&self, level: Level) -> bool {
        level >= Level::of(self.level.load(Ordering::Relaxed))
    }

    /// A line of level "verbose".
    pub fn verbose(&self, message: impl Display) {
        self.line(Level::Verbose, message);
    }

    /// A line of level "notice".
    pub fn notice(&self, message: impl Display) {
        self.line(Level::Notice, message);
    }

    /// A line of level "warning".
    pub fn warning(&self, message: impl Display) {
        self.line(Level::Warning, message);
    }

    /// What a signal brought about: without a time and whatever the level and form, as Redis has it.
    pub fn signal(&self, message: impl Display) {
        let seconds = Timestamp::now().as_second();
        let message = message.to_string();
        let line = format!(
            "{}:signal-handler ({seconds}) {message}\n",
            std::process::id()
        );
        self.lock().write(Level::Notice, &line, &message);
    }

    /// Text without the parts of a line before the message.
    pub fn plain(&self, text: &str) {
        if self.shows(Level::Notice) {
            self.lock().write(Level::Notice, text, text);
        }
    }

    fn line(&self, level: Level, message: impl Display) {
        if self.shows(level) {
            let serving = self.serving.load(Ordering::Relaxed);
            let message = message.to_string();
            // One line at a time: the destination stays locked until it is out, and times come in order.
            let destination = self.lock();
            let line = destination
                .form
                .line(level, serving, &ZonedDateTime::now(), &message);
            destination.write(level, &line, &message);
        }
    }
}

impl Destination {
    /// The system's log gets the message alone: it has its own way of saying who and when.
    fn write(&self, level: Level, line: &str, message: &str) {
        let _ = match &self.file {
            Some(path) => open(path).and_then(|mut file| file.write_all(line.as_bytes())),
            None => {
                let mut output = io::stdout().lock();
                output
                    .write_all(line.as_bytes())
                    .and_then(|()| output.flush())
            }
        };
        if let Some(syslog) = &self.syslog {
            syslog.send(level, message);
        }
    }
}

impl Form {
    fn line(self, level: Level, serving: bool, now: &ZonedDateTime, message: &str) -> String {
        let process = std::process::id();
        let time = self.time(now);
        match self.layout {
            LogFormat::Legacy => {
                let role = if serving { 'M' } else { 'C' };
                format!("{process}:{role} {time} {} {message}\n", level.mark())
            }
            LogFormat::Logfmt => format!(
                "pid={process} role=primary timestamp=\"{time}\" level={} message=\"{}\"\n",
                level.word(),
                escaped(message)
            ),
            LogFormat::Json => format!(
                "{{\"pid\":{process},\"role\":\"primary\",\"timestamp\":\"{time}\",\"level\":\"{}\",\"message\":\"{}\"}}\n",
                level.word(),
                escaped(message)
            ),
        }
    }

    fn time(self, now: &ZonedDateTime) -> String {
        match self.time {
            LogTimestamp::Legacy => local_time(now),
            LogTimestamp::Iso8601 => now.strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string(),
            LogTimestamp::Milliseconds => now.timestamp().as_millisecond().to_string(),
        }
    }
}

/// For between quotes, as JSON has it.
fn escaped(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    for letter in message.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            '\n' => text += "\\n",
            '\t' => text += "\\t",
            letter if letter < ' ' => text += &format!("\\u{:04x}", u32::from(letter)),
            letter => text.push(letter),
        }
    }
    text
}

fn open(path: &Path) -> io::Result<std::fs::File> {
    OpenOptions::new().append(true).create(true).open(path)
}

fn local_time(now: &ZonedDateTime) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let month = MONTHS[now.month() as usize - 1];
    let (day, year) = (now.day(), now.year());
    let (hour, minute, second, millisecond) =
        (now.hour(), now.minute(), now.second(), now.millisecond());
    format!("{day:02} {month} {year} {hour:02}:{minute:02}:{second:02}.{millisecond:03}")
}

/// What the system calls an error, without the number that Rust puts after it.
pub fn system_text(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::{Offset, TimeZone};

    use super::*;

    fn moment() -> ZonedDateTime {
        let zone = TimeZone::fixed(Offset::from_seconds(19_800).unwrap());
        let moment: jiff::civil::DateTime = "2026-03-05T04:06:07.089".parse().unwrap();
        moment.to_zoned_datetime(zone).unwrap()
    }

    fn written(log: &Log, write: impl FnOnce(&Log)) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        log.redirect(Some(&path), None).unwrap();
        write(log);
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn times_have_fixed_widths_and_english_months() {
        assert_eq!(local_time(&moment()), "05 Mar 2026 04:06:07.089");
    }

    #[test]
    fn every_layout_and_time_reads_as_valkey_s() {
        let line = |layout, time, message| {
            let form = Form { layout, time };
            form.line(Level::Verbose, true, &moment(), message)
        };
        let id = std::process::id();
        for (time, shown) in [
            (LogTimestamp::Legacy, "05 Mar 2026 04:06:07.089"),
            (LogTimestamp::Iso8601, "2026-03-05T04:06:07.089+05:30"),
            (LogTimestamp::Milliseconds, "1772663767089"),
        ] {
            assert_eq!(
                line(LogFormat::Legacy, time, "a \"b\""),
                format!("{id}:M {shown} - a \"b\"\n")
            );
            assert_eq!(
                line(LogFormat::Logfmt, time, "a \"b\""),
                format!(
                    "pid={id} role=primary timestamp=\"{shown}\" level=info message=\"a \\\"b\\\"\"\n"
                )
            );
            assert_eq!(
                line(LogFormat::Json, time, "a\n\\\u{1}é"),
                format!(
                    "{{\"pid\":{id},\"role\":\"primary\",\"timestamp\":\"{shown}\",\"level\":\"info\",\"message\":\"a\\n\\\\\\u0001é\"}}\n"
                )
            );
        }
    }

    #[test]
    fn a_line_carries_process_role_time_and_mark() {
        let log = Log::to_standard_output();
        let text = written(&log, |log| {
            log.notice("starting");
            log.set_serving();
            log.warning(format_args!("trouble {}", 7));
            log.verbose("unseen");
        });
        let lines: Vec<&str> = text.lines().collect();
        let id = std::process::id();
        assert_eq!(lines.len(), 2);
        assert!(
            lines[0].starts_with(&format!("{id}:C ")) && lines[0].ends_with(" * starting"),
            "{}",
            lines[0]
        );
        assert!(
            lines[1].starts_with(&format!("{id}:M ")) && lines[1].ends_with(" # trouble 7"),
            "{}",
            lines[1]
        );
        let time = lines[0]
            .split_once(' ')
            .unwrap()
            .1
            .strip_suffix(" * starting")
            .unwrap();
        assert_eq!(time.len(), "05 Mar 2026 04:06:07.089".len());
    }

    #[test]
    fn the_level_decides_what_is_shown() {
        for (level, marks) in [
            (Level::Debug, "-*#"),
            (Level::Verbose, "-*#"),
            (Level::Notice, "*#"),
            (Level::Warning, "#"),
            (Level::Nothing, ""),
        ] {
            let log = Log::to_standard_output();
            log.set_level(level);
            let text = written(&log, |log| {
                log.verbose("");
                log.notice("");
                log.warning("");
            });
            let seen: String = text
                .lines()
                .filter_map(|line| line.trim_end().chars().last())
                .collect();
            assert_eq!(seen, marks, "{level:?}");
        }
    }

    #[test]
    fn a_file_that_was_renamed_is_created_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = Log::to_standard_output();
        log.redirect(Some(&path), None).unwrap();
        log.notice("one");
        std::fs::rename(&path, folder.path().join("log.1")).unwrap();
        log.notice("two");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.ends_with("two\n") && text.lines().count() == 1);
    }

    #[test]
    fn system_errors_are_quoted_without_their_number() {
        assert_eq!(
            system_text(&io::Error::from_raw_os_error(98)),
            "Address already in use"
        );
        assert_eq!(system_text(&io::Error::other("as it is")), "as it is");
    }
}
