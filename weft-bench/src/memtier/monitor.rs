//! Commands from lines that MONITOR printed.
//!
//! Owns the reading of such a file: `1460100081.165665 [0 127.0.0.1:51706] "set" "key" "value"`, one command a line, arguments
//! quoted. Other lines, such as the `OK` at the beginning, are left out.

use std::path::Path;

use super::command::{Command, Word};

/// What stands for a line of the file in a command, followed by the line's number or by [`ANY`].
const PLACEHOLDER: &[u8] = b"__monitor_line";

/// What closes it.
const PLACEHOLDER_END: &[u8] = b"__";

/// Stands for whichever line's turn it is.
const ANY: &[u8] = b"@";

/// Which lines a command of the command line stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// One, counted from 1.
    Line(usize),
    /// All, one after the other or at random.
    Any,
}

/// Reads a reference. `None`: the text is a command of its own. The error names what is wrong.
pub fn reference(text: &[u8]) -> Option<Reference> {
    let number = text
        .trim_ascii()
        .strip_prefix(PLACEHOLDER)?
        .strip_suffix(PLACEHOLDER_END)?;
    if number == ANY {
        return Some(Reference::Any);
    }
    let number = std::str::from_utf8(number).ok()?.parse().ok()?;
    Some(Reference::Line(number))
}

/// The commands of a file, and how many lines it has. The error is for the user.
pub fn load(path: &Path) -> Result<(Vec<Command>, usize), String> {
    let text = std::fs::read(path).map_err(|error| {
        format!(
            "failed to open monitor input file: {}: {error}",
            path.display()
        )
    })?;
    let mut lines = text.split(|&byte| byte == b'\n').collect::<Vec<_>>();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    let commands: Vec<Command> = lines.iter().filter_map(|line| command(line)).collect();
    match commands.is_empty() {
        true => Err(format!("{}: there is no command in it", path.display())),
        false => Ok((commands, lines.len())),
    }
}

/// The command of a line.
fn command(line: &[u8]) -> Option<Command> {
    // What stands before the first quotation mark is when it came, on which database and from whom.
    let start = line.iter().position(|&byte| byte == b'"')?;
    let mut rest = &line[start..];
    let mut words = Vec::new();
    while let Some(quoted) = rest.trim_ascii_start().strip_prefix(b"\"") {
        let (word, after) = argument(quoted)?;
        words.push(Word::Text(word));
        rest = after;
    }
    match rest.trim_ascii().is_empty() && !words.is_empty() {
        true => Some(Command { words }),
        false => None,
    }
}

/// The argument up to its closing quotation mark, and what follows that. `None`: it is not closed.
fn argument(mut rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    loop {
        let (&byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            b'"' => return Some((word, rest)),
            b'\\' => {
                let (&escaped, after) = rest.split_first()?;
                rest = after;
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'a' => 7,
                    b'b' => 8,
                    b'x' => {
                        let digits = rest.get(..2)?;
                        rest = &rest[2..];
                        u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?
                    }
                    other => other,
                });
            }
            other => word.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_told_from_commands() {
        assert_eq!(reference(b"__monitor_line12__"), Some(Reference::Line(12)));
        assert_eq!(reference(b" __monitor_line@__ "), Some(Reference::Any));
        for text in [&b"GET x"[..], b"__monitor_line__", b"__monitor_linex__"] {
            assert_eq!(reference(text), None);
        }
    }

    #[test]
    fn arguments_are_as_the_server_received_them() {
        let words = |line: &[u8]| {
            command(line).map(|command| {
                let text = |word| match word {
                    Word::Text(text) => text,
                    other => panic!("{other:?}"),
                };
                command.words.into_iter().map(text).collect::<Vec<_>>()
            })
        };
        assert_eq!(
            words(br#"1460100081.165665 [0 127.0.0.1:51706] "set" "a b\"\\\x00\xff\n" """#),
            Some(vec![
                b"set".to_vec(),
                b"a b\"\\\0\xff\n".to_vec(),
                Vec::new()
            ])
        );
        assert_eq!(
            words(b"1.5 [3 unix:/tmp/x] \"PING\"\r"),
            Some(vec![b"PING".to_vec()])
        );
        for line in [
            &b"OK"[..],
            b"",
            b"1.5 [0 lua] \"PING",
            b"1.5 [0 lua] \"PING\" x",
        ] {
            assert_eq!(words(line), None, "{:?}", line.escape_ascii().to_string());
        }
    }
}
