//! From files, standard input and command line to a list of directives, each with the place it came from.
//!
//! Follows `include`, with patterns and nesting, through a reader that is passed in; does no I/O itself and knows no
//! parameter. Bounds: nesting, number of files and total bytes, so that a file that includes itself ends in an error.

use std::fmt;
use std::sync::Arc;

use super::Version;
use super::command_line::CommandLine;
use super::syntax;

/// Reads what the configuration names. The server implements it on the file system, tests in memory.
pub trait ConfigurationFiles {
    /// The bytes of a file; on failure the operating system's words, such as `No such file or directory`.
    fn read(&mut self, path: &str) -> Result<Vec<u8>, String>;
    /// The paths that a pattern with `*`, `?` or `[` matches, in the order they are to be read; empty if there are none.
    fn expand(&mut self, pattern: &str) -> Vec<String>;
    /// All of standard input.
    fn read_stdin(&mut self) -> Result<Vec<u8>, String>;
}

/// Where a line stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// In a file, by the path it was opened under.
    File(Arc<str>),
    /// On standard input.
    Stdin,
    /// On the command line.
    CommandLine,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File(path) => write!(f, "file '{path}'"),
            Source::Stdin => f.write_str("standard input"),
            Source::CommandLine => f.write_str("command line"),
        }
    }
}

/// The place of a line: source, number and text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Where it stands.
    pub source: Source,
    /// Line number from 1. Options count on after the lines of the file and standard input, as in the reference.
    pub line: usize,
    /// The line without blanks around it; of a line that carries a password only the name.
    pub text: String,
}

/// One line that is neither blank nor a comment nor an `include`.
#[derive(Clone)]
pub struct Directive {
    /// Its place.
    pub origin: Arc<Origin>,
    /// Its first word in lower case.
    pub name: Vec<u8>,
    /// Its other words.
    pub arguments: Vec<Vec<u8>>,
}

/// Why the server does not start. The display form is what it prints.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartError {
    /// A line is wrong.
    Line {
        /// The line's place.
        origin: Arc<Origin>,
        /// What is wrong with it.
        reason: String,
    },
    /// A file cannot be read.
    Unreadable {
        /// The path as written.
        path: String,
        /// The operating system's words.
        reason: String,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Line { origin, reason } => write!(
                f,
                "\n*** FATAL CONFIG FILE ERROR (Redis {}) ***\n\
                 Reading the configuration file, at line {}\n>>> '{}'\n{reason}\n({}, line {})\n",
                Version::COMPATIBLE,
                origin.line,
                origin.text,
                origin.source,
                origin.line,
            ),
            StartError::Unreadable { path, reason } => {
                write!(f, "Fatal error, can't open config file '{path}': {reason}")
            }
        }
    }
}

impl std::error::Error for StartError {}

const DEPTH_MAX: usize = 16;
const FILES_MAX: usize = 1000;
const BYTES_MAX: usize = 64 << 20;

/// Reads everything that the command line names, in the order in which later lines override earlier ones.
pub fn directives(
    command_line: &CommandLine,
    files: &mut dyn ConfigurationFiles,
) -> Result<Vec<Directive>, StartError> {
    let mut reader = Reader {
        files,
        directives: Vec::new(),
        files_read: 0,
        bytes_read: 0,
    };
    let mut lines_before = 0;
    if let Some(path) = &command_line.file {
        let text = reader
            .files
            .read(path)
            .map_err(|reason| StartError::Unreadable {
                path: path.clone(),
                reason,
            })?;
        lines_before += line_ends(&text);
        reader.lines(&Source::File(path.as_str().into()), 0, &text, 0)?;
    }
    if command_line.stdin {
        let path = "standard input";
        let text = reader
            .files
            .read_stdin()
            .map_err(|reason| StartError::Unreadable {
                path: path.into(),
                reason,
            })?;
        reader.lines(&Source::Stdin, lines_before, &text, 0)?;
        lines_before += line_ends(&text);
    }
    for (index, option) in command_line.options.iter().enumerate() {
        reader.line(&Source::CommandLine, lines_before + 2 + index, option, 0)?;
    }
    Ok(reader.directives)
}

fn line_ends(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| byte == b'\n').count()
}

struct Reader<'a> {
    files: &'a mut dyn ConfigurationFiles,
    directives: Vec<Directive>,
    files_read: usize,
    bytes_read: usize,
}

impl Reader<'_> {
    fn lines(
        &mut self,
        source: &Source,
        lines_before: usize,
        text: &[u8],
        depth: usize,
    ) -> Result<(), StartError> {
        for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
            self.line(source, lines_before + index + 1, line, depth)?;
        }
        Ok(())
    }

    fn line(
        &mut self,
        source: &Source,
        line: usize,
        text: &[u8],
        depth: usize,
    ) -> Result<(), StartError> {
        let text = syntax::trim(text);
        if text.is_empty() || text.starts_with(b"#") {
            return Ok(());
        }
        let origin = Arc::new(Origin {
            source: source.clone(),
            line,
            text: printable(text),
        });
        let wrong = |reason: &str| StartError::Line {
            origin: origin.clone(),
            reason: reason.to_owned(),
        };
        let Some(mut words) = syntax::split(text) else {
            return Err(wrong("Unbalanced quotes in configuration line"));
        };
        if words.is_empty() {
            return Ok(());
        }
        let mut name = words.remove(0);
        name.make_ascii_lowercase();
        if name != b"include" {
            self.directives.push(Directive {
                origin,
                name,
                arguments: words,
            });
            return Ok(());
        }
        let [path] = words.as_slice() else {
            return Err(wrong("Bad directive or wrong number of arguments"));
        };
        let path = String::from_utf8_lossy(path).into_owned();
        let paths = if path.contains(['*', '?', '[']) {
            self.files.expand(&path)
        } else {
            vec![path]
        };
        for path in paths {
            self.files_read += 1;
            if depth == DEPTH_MAX || self.files_read > FILES_MAX {
                return Err(wrong(
                    "too many included files; does a file include itself?",
                ));
            }
            let text = self
                .files
                .read(&path)
                .map_err(|reason| StartError::Unreadable {
                    path: path.clone(),
                    reason,
                })?;
            self.bytes_read = self.bytes_read.saturating_add(text.len());
            if self.bytes_read > BYTES_MAX {
                return Err(wrong("the included files are too large"));
            }
            self.lines(&Source::File(path.into()), 0, &text, depth + 1)?;
        }
        Ok(())
    }
}

/// The line as it may be printed: one that can carry a password shows only its name.
fn printable(text: &[u8]) -> String {
    let end = text
        .iter()
        .position(|byte| matches!(byte, b' ' | b'\t'))
        .unwrap_or(text.len());
    let mut word = text[..end].to_ascii_lowercase();
    word.retain(|byte| !matches!(byte, b'"' | b'\''));
    let name = syntax::split(text)
        .and_then(|words| words.into_iter().next())
        .unwrap_or_default();
    let has_value = end < text.len() || word.contains(&b'=');
    for name in [word, name.to_ascii_lowercase()] {
        if has_value && super::is_sensitive(&name) {
            let shown = name.split(|&byte| byte == b'=').next().unwrap_or_default();
            return format!("{} (value not shown)", String::from_utf8_lossy(shown));
        }
    }
    String::from_utf8_lossy(text).into_owned()
}
