//! A command of the user's: its words, and where keys and values stand in them.

use std::fmt;

use memchr::memmem;
use weft_resp::RequestWriter;

/// What stands for a key in a command.
const KEY: &[u8] = b"__key__";

/// What stands for a value.
const DATA: &[u8] = b"__data__";

/// A command that can be sent again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Its words; at least one.
    pub words: Vec<Word>,
}

/// One word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// Always the same.
    Text(Vec<u8>),
    /// The key.
    Key,
    /// The value.
    Data,
    /// Pieces put together.
    Mixed(Vec<Piece>),
}

/// A piece of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Text(Vec<u8>),
    Key,
    Data,
}

/// Why a text is no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandError {
    Empty,
    /// A quotation mark is not closed.
    OpenQuote,
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CommandError::Empty => "a command needs a name",
            CommandError::OpenQuote => "a quotation mark in a command is not closed",
        })
    }
}

impl Command {
    /// Reads words between spaces. Quotation marks, single or double, keep spaces in a word; between double ones a
    /// backslash takes the next character as it is.
    pub fn parse(text: &[u8]) -> Result<Command, CommandError> {
        let words: Vec<Word> = split(text)?.iter().map(|word| Word::parse(word)).collect();
        if words.is_empty() {
            return Err(CommandError::Empty);
        }
        Ok(Command { words })
    }

    /// Its name, as reports show it: "Hset" for `HSET`.
    pub fn name(&self) -> String {
        let name = match &self.words[0] {
            Word::Text(name) => String::from_utf8_lossy(name).to_lowercase(),
            _ => "command".to_owned(),
        };
        let mut letters = name.chars();
        match letters.next() {
            Some(first) => first.to_uppercase().chain(letters).collect(),
            None => name,
        }
    }

    /// Appends it, with another second word: a SCAN that goes on.
    pub fn write_scan(&self, cursor: &[u8], out: &mut Vec<u8>) {
        let mut writer = RequestWriter::new(out);
        writer.begin(self.words.len());
        for (place, word) in self.words.iter().enumerate() {
            match word {
                _ if place == 1 => writer.arg(cursor),
                Word::Text(text) => writer.arg(text),
                // SCAN is about all keys.
                Word::Key | Word::Data | Word::Mixed(_) => writer.arg(b""),
            }
        }
    }

    /// Whether a key stands in it.
    pub fn has_key(&self) -> bool {
        self.words.iter().any(|word| match word {
            Word::Key => true,
            Word::Mixed(pieces) => pieces.contains(&Piece::Key),
            _ => false,
        })
    }
}

impl Word {
    fn parse(word: &[u8]) -> Word {
        let mut pieces = Vec::new();
        let mut rest = word;
        while !rest.is_empty() {
            let key = memmem::find(rest, KEY).map(|at| (at, KEY, Piece::Key));
            let data = memmem::find(rest, DATA).map(|at| (at, DATA, Piece::Data));
            let Some((at, placeholder, piece)) = [key, data]
                .into_iter()
                .flatten()
                .min_by_key(|found| found.0)
            else {
                break;
            };
            if at > 0 {
                pieces.push(Piece::Text(rest[..at].to_vec()));
            }
            pieces.push(piece);
            rest = &rest[at + placeholder.len()..];
        }
        match &pieces[..] {
            [] => Word::Text(word.to_vec()),
            [Piece::Key] if rest.is_empty() => Word::Key,
            [Piece::Data] if rest.is_empty() => Word::Data,
            _ => {
                if !rest.is_empty() {
                    pieces.push(Piece::Text(rest.to_vec()));
                }
                Word::Mixed(pieces)
            }
        }
    }
}

fn split(text: &[u8]) -> Result<Vec<Vec<u8>>, CommandError> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match (quote, byte) {
            (Some(mark), _) if byte == mark => quote = None,
            (Some(b'"'), b'\\') => word.get_or_insert_default().extend(bytes.next()),
            (None, b'"' | b'\'') => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            (None, b' ' | b'\t' | b'\n') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(byte),
        }
    }
    if quote.is_some() {
        return Err(CommandError::OpenQuote);
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Word {
        Word::Text(text.as_bytes().to_vec())
    }

    #[test]
    fn placeholders_are_found_in_words() {
        let command =
            Command::parse(b"HSET user:__key__ f __data__ __key__ a__data____key__z").unwrap();
        let piece = |text: &str| Piece::Text(text.as_bytes().to_vec());
        assert_eq!(
            command.words,
            [
                text("HSET"),
                Word::Mixed(vec![piece("user:"), Piece::Key]),
                text("f"),
                Word::Data,
                Word::Key,
                Word::Mixed(vec![piece("a"), Piece::Data, Piece::Key, piece("z")])
            ]
        );
        assert!(command.has_key());
        assert_eq!(command.name(), "Hset");
        assert!(!Command::parse(b"ping").unwrap().has_key());
    }

    #[test]
    fn quotation_marks_keep_spaces() {
        let words = |command: &str| Command::parse(command.as_bytes()).map(|command| command.words);
        assert_eq!(
            words(r#"  set "a b"  'c "d' "e\"f" "" g"h i"j "#),
            Ok(["set", "a b", "c \"d", "e\"f", "", "gh ij"]
                .map(text)
                .to_vec())
        );
        assert_eq!(words("  "), Err(CommandError::Empty));
        assert_eq!(words("set \"a"), Err(CommandError::OpenQuote));
    }
}
