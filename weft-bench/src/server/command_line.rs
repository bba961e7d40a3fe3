//! A server's command line as the user writes it: words, quotes, and places for what differs from start to start.
//!
//! Owns `{threads}`, `{port}` and `{dir}` and how words are told apart (as a shell does, without its substitutions). Does
//! not start anything.

use std::path::Path;

use crate::substitute::replaced;

const THREADS: &str = "{threads}";
const PORT: &str = "{port}";
const FOLDER: &str = "{dir}";

/// A server's command line with its places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    text: String,
    words: Vec<String>,
}

impl CommandLine {
    /// Reads a command line.
    ///
    /// # Errors
    /// What is wrong with it, as a clause.
    pub fn parse(text: &str) -> Result<CommandLine, String> {
        let words = split_words(text)?;
        if words.is_empty() {
            return Err("the command line is empty".to_owned());
        }
        Ok(CommandLine {
            text: text.to_owned(),
            words,
        })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it has a place for the number of threads.
    pub fn takes_threads(&self) -> bool {
        self.words.iter().any(|word| word.contains(THREADS))
    }

    /// The words of one start. A command line without a place for the port gets `--port` and the port at its end. A word
    /// with a slash that names something here is made absolute, since every server runs in a folder of its own.
    pub fn filled(&self, threads: &str, port: u16, folder: &Path) -> Vec<String> {
        let port = port.to_string();
        let folder = folder.to_string_lossy();
        let mut words: Vec<String> = self
            .words
            .iter()
            .map(|word| match word.contains('/') {
                true => absolute(word),
                false => word.clone(),
            })
            .map(|mut word| {
                for (place, value) in [(THREADS, threads), (PORT, &port), (FOLDER, &folder)] {
                    let bytes = replaced(word.as_bytes(), place.as_bytes(), value.as_bytes());
                    word = String::from_utf8_lossy(&bytes).into_owned();
                }
                word
            })
            .collect();
        if !self.words.iter().any(|word| word.contains(PORT)) {
            words.extend(["--port".to_owned(), port]);
        }
        words
    }
}

/// The word, or the absolute path of what it names here.
fn absolute(word: &str) -> String {
    match std::path::absolute(word) {
        Ok(path) if path.exists() => path.to_string_lossy().into_owned(),
        _ => word.to_owned(),
    }
}

/// The words of a line: separated by blanks; quotes of both kinds and backslashes as in a shell.
///
/// # Errors
/// What is wrong with it, as a clause.
pub fn split_words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next() {
                        Some(end) if end == character => break,
                        Some('\\') if character == '"' => word.extend(characters.next()),
                        Some(inside) => word.push(inside),
                        None => return Err(format!("a {character} is not closed in: {text}")),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(characters.next()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Vec<String> {
        let command = CommandLine::parse(text).unwrap();
        command.filled("4", 7000, Path::new("/tmp/x"))
    }

    #[test]
    fn words_are_a_shells() {
        for (text, words) in [
            ("a  b", vec!["a", "b"]),
            ("a '' \"\"", vec!["a", "", ""]),
            (
                r#"--save '' x"y z"'"' a\ b "q\"q""#,
                vec!["--save", "", "xy z\"", "a b", "q\"q"],
            ),
            ("", vec![]),
        ] {
            assert_eq!(split_words(text).unwrap(), words, "{text}");
        }
        assert_eq!(
            split_words("a 'b").unwrap_err(),
            "a ' is not closed in: a 'b"
        );
        assert!(CommandLine::parse("  ").is_err());
    }

    #[test]
    fn places_are_filled() {
        assert_eq!(
            filled("redis-server --io-threads {threads} --save ''"),
            [
                "redis-server",
                "--io-threads",
                "4",
                "--save",
                "",
                "--port",
                "7000"
            ]
        );
        assert_eq!(
            filled("srv --listen=:{port} --threads={threads} --dir {dir}/d"),
            ["srv", "--listen=:7000", "--threads=4", "--dir", "/tmp/x/d"]
        );
        let takes = |text| CommandLine::parse(text).unwrap().takes_threads();
        assert!(takes("a {threads}") && !takes("a {port}"));
    }

    #[test]
    fn what_is_here_is_found_from_elsewhere() {
        let here = std::env::current_dir().unwrap();
        let words = filled("src/main.rs Cargo.toml ./no/such --x {port}");
        let path = here.join("src/main.rs");
        assert_eq!(words[0], path.to_string_lossy());
        assert_eq!(words[1..3], ["Cargo.toml", "./no/such"]);
    }
}
