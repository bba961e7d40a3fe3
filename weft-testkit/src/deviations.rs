//! Known differences from the reference, as data: each belongs to an entry of DEVIATIONS.md.
//!
//! ```text
//! deviation D-7                 the entry's heading in DEVIATIONS.md begins with it
//! command getex                 a command's name, or * for any
//! reference -ERR one text       what the reference replies, in the notation of case files
//! weft any                      what Weft replies
//! ```

use std::collections::BTreeSet;
use std::path::Path;

use crate::error::KitError;
use crate::literal::Expected;
use crate::wire::Wire;

/// The list, relative to the root of the checkout.
pub const LIST: &str = "weft-testkit/deviations.txt";
/// The document that explains them.
pub const DOCUMENT: &str = "DEVIATIONS.md";

/// All known differences.
#[derive(Debug, Default)]
pub struct Deviations {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    id: String,
    command: String,
    reference: Expected,
    weft: Expected,
}

impl Deviations {
    /// Reads the list of a checkout and checks that DEVIATIONS.md has every entry.
    pub fn read(root: &Path) -> Result<Self, KitError> {
        let text = std::fs::read_to_string(root.join(LIST))
            .map_err(KitError::io(format!("read {LIST}")))?;
        let document = std::fs::read_to_string(root.join(DOCUMENT))
            .map_err(KitError::io(format!("read {DOCUMENT}")))?;
        let deviations = Self::parse(&text)?;
        let headings: BTreeSet<&str> = document
            .lines()
            .filter_map(|line| line.strip_prefix("## "))
            .filter_map(|heading| heading.split_whitespace().next())
            .collect();
        match deviations
            .entries
            .iter()
            .find(|entry| !headings.contains(entry.id.as_str()))
        {
            Some(entry) => Err(KitError::syntax(
                LIST,
                0,
                format!("{DOCUMENT} has no section {}", entry.id),
            )),
            None => Ok(deviations),
        }
    }

    fn parse(text: &str) -> Result<Self, KitError> {
        let mut entries = Vec::new();
        let lines = text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line.trim()));
        let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        while let Some((number, line)) = lines.next() {
            let id = value(line, "deviation", number)?.to_owned();
            let mut following = |keyword: &str| {
                let (number, line) = lines.next().ok_or_else(|| {
                    KitError::syntax(LIST, number, format!("{id} has no line {keyword:?}"))
                })?;
                value(line, keyword, number).map(|text| (number, text.to_owned()))
            };
            let (_, command) = following("command")?;
            let (reference_line, reference) = following("reference")?;
            let (weft_line, weft) = following("weft")?;
            let parse = |text: &str, number| {
                Expected::parse(text).map_err(|what| KitError::syntax(LIST, number, what))
            };
            entries.push(Entry {
                command,
                reference: parse(&reference, reference_line)?,
                weft: parse(&weft, weft_line)?,
                id,
            });
        }
        Ok(Deviations { entries })
    }

    /// The entry that explains a difference.
    pub fn explain(&self, command: &str, reference: &Wire, weft: &Wire) -> Option<&str> {
        self.entries
            .iter()
            .find(|entry| {
                (entry.command == "*" || entry.command == command)
                    && entry.reference.matches(reference)
                    && entry.weft.matches(weft)
            })
            .map(|entry| entry.id.as_str())
    }
}

fn value<'a>(line: &'a str, keyword: &str, number: usize) -> Result<&'a str, KitError> {
    line.strip_prefix(keyword)
        .filter(|rest| rest.starts_with(' '))
        .map(str::trim)
        .ok_or_else(|| {
            KitError::syntax(
                LIST,
                number,
                format!("a line \"{keyword} ...\" was expected"),
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_explained_by_its_entry_only() {
        let list = "# why\ndeviation D-1\ncommand getex\nreference -ERR one\nweft -ERR other\n";
        let deviations = Deviations::parse(list).expect("a list");
        let error = |text: &str| Wire::Error(text.as_bytes().to_vec());
        assert_eq!(
            deviations.explain("getex", &error("ERR one"), &error("ERR other")),
            Some("D-1")
        );
        assert_eq!(
            deviations.explain("get", &error("ERR one"), &error("ERR other")),
            None
        );
        assert_eq!(
            deviations.explain("getex", &error("ERR one"), &error("ERR third")),
            None
        );
        assert!(Deviations::parse("deviation D-1\ncommand getex\n").is_err());
    }
}
