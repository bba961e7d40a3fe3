//! Tests of the whole module against values taken once from Redis 8.2.3.

mod command_line;
mod files;
mod get;
mod properties;
mod rewrite;
mod sample;
mod set;
mod table;
mod title;

use std::collections::BTreeMap;

use super::*;

/// A machine with two usable CPUs.
const FACTS: Facts = Facts { usable_cpus: 2 };

/// Files in memory. `$` stands for standard input.
#[derive(Default)]
struct Files(BTreeMap<String, Vec<u8>>);

impl Files {
    fn of(files: &[(&str, &str)]) -> Files {
        Files(
            files
                .iter()
                .map(|(path, text)| (path.to_string(), text.as_bytes().to_vec()))
                .collect(),
        )
    }
}

impl ConfigurationFiles for Files {
    fn read(&mut self, path: &str) -> Result<Vec<u8>, String> {
        self.0
            .get(path)
            .cloned()
            .ok_or_else(|| "No such file or directory".to_owned())
    }

    fn expand(&mut self, pattern: &str) -> Vec<String> {
        self.0
            .keys()
            .filter(|path| glob::matches(pattern.as_bytes(), path.as_bytes(), false))
            .cloned()
            .collect()
    }

    fn read_stdin(&mut self) -> Result<Vec<u8>, String> {
        self.read("$")
    }
}

/// Loads one file with this text.
fn load(text: &[u8]) -> Result<Config, StartError> {
    let command_line = CommandLine {
        file: Some("/etc/c.conf".to_owned()),
        ..CommandLine::default()
    };
    let mut files = Files::default();
    files.0.insert("/etc/c.conf".to_owned(), text.to_vec());
    Config::load(&command_line, &mut files, FACTS)
}

/// The value of one parameter as `CONFIG GET` answers it.
fn get(config: &Config, name: &str) -> Option<String> {
    config
        .get(&[name.as_bytes()])
        .pop()
        .map(|(_, value)| String::from_utf8_lossy(&value).into_owned())
}

/// `CONFIG SET` with these names and values, with protected parameters allowed; the error reply or what changed.
fn set(config: &mut Config, arguments: &[&str]) -> Result<Vec<&'static str>, String> {
    let arguments: Vec<&[u8]> = arguments
        .iter()
        .map(|argument| argument.as_bytes())
        .collect();
    config
        .set(&arguments, true)
        .map(|changes| changes.into_iter().map(|change| change.id.name()).collect())
        .map_err(|error| error.to_string())
}

/// Reads a line of oracle values: words in JSON's quotes, an arrow, an outcome. Characters are bytes (Latin-1).
fn quoted_words(line: &str) -> Option<(Vec<Vec<u8>>, &str)> {
    if line.starts_with('#') || line.is_empty() {
        return None;
    }
    let (mut rest, outcome) = line.rsplit_once(" => ").expect("a line with an outcome");
    let mut words = Vec::new();
    while let Some(quoted) = rest.trim_start().strip_prefix('"') {
        let mut word = Vec::new();
        let mut bytes = quoted.bytes().enumerate();
        let end = loop {
            let (at, byte) = bytes.next().expect("a closed quote");
            match byte {
                b'"' => break at,
                b'\\' => {
                    let (at, escaped) = bytes.next().expect("an escaped character");
                    word.push(match escaped {
                        b'n' => b'\n',
                        b't' => b'\t',
                        b'r' => b'\r',
                        b'f' => 12,
                        b'b' => 8,
                        b'u' => {
                            bytes.nth(3);
                            let code = &quoted[at + 1..at + 5];
                            u8::from_str_radix(code, 16).expect("a character below 256")
                        }
                        other => other,
                    });
                }
                byte => word.push(byte),
            }
        };
        rest = &quoted[end + 1..];
        words.push(word);
    }
    Some((words, outcome))
}

/// The words of such a line as text.
fn texts(words: Vec<Vec<u8>>) -> Vec<String> {
    words
        .into_iter()
        .map(|word| String::from_utf8_lossy(&word).into_owned())
        .collect()
}
