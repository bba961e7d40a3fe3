//! Traffic of others: recorded from MONITOR, and played back.
//!
//! `monitor` reads the lines of MONITOR, `format` is the file, `record` makes one and `replay` plays it.

mod format;
mod monitor;
pub mod record;
pub mod replay;

use std::path::PathBuf;

use crate::native::options::{self, Instead};

/// The words of a command line that recording and replaying understand alike.
#[derive(Default)]
struct Others<'a> {
    /// Options of the native mode, with their values.
    shared: Vec<&'a [u8]>,
    trace: Option<PathBuf>,
}

impl<'a> Others<'a> {
    /// Takes a word: an option of these names, with its value if that is the next word, or the name of the trace.
    fn take(
        &mut self,
        word: &'a [u8],
        names: &[&str],
        rest: &mut impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), Instead> {
        match options::shared(word, names) {
            Some(valued) => {
                self.shared.push(word);
                if valued {
                    self.shared.extend(rest.next());
                }
            }
            None if word.starts_with(b"-") || self.trace.is_some() => {
                let word = word.escape_ascii();
                return Err(Instead::Refused(format!("'{word}' means nothing here")));
            }
            None => {
                self.trace = Some(PathBuf::from(String::from_utf8_lossy(word).into_owned()));
            }
        }
        Ok(())
    }

    /// The name of the trace.
    fn trace(&mut self) -> Result<PathBuf, Instead> {
        let missing = || Instead::Refused("the name of the trace is missing".to_owned());
        self.trace.take().ok_or_else(missing)
    }
}
