//! The command line of the kit: a command, options with values, and words.

use std::collections::BTreeMap;

use weft_testkit::error::KitError;

/// Options that stand alone.
const FLAGS: &[&str] = &["check", "forced", "migrate", "strict"];

/// A parsed command line.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    /// The first word.
    pub(crate) command: String,
    /// The other words.
    pub(crate) words: Vec<String>,
    options: BTreeMap<String, Vec<String>>,
}

impl Arguments {
    pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut parsed = Arguments::default();
        let mut words = words;
        let mut first = true;
        while let Some(word) = words.next() {
            if let Some(option) = word.strip_prefix("--") {
                let (name, value) = match option.split_once('=') {
                    Some((name, value)) => (name, value.to_owned()),
                    None if FLAGS.contains(&option) => (option, String::new()),
                    None => (
                        option,
                        words
                            .next()
                            .ok_or_else(|| format!("--{option} needs a value"))?,
                    ),
                };
                parsed
                    .options
                    .entry(name.to_owned())
                    .or_default()
                    .push(value);
            } else if std::mem::take(&mut first) {
                parsed.command = word;
            } else {
                parsed.words.push(word);
            }
        }
        Ok(parsed)
    }

    /// The values of an option that may be repeated.
    pub(crate) fn all(&self, name: &str) -> &[String] {
        self.options
            .get(name)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// The last value of an option.
    pub(crate) fn one(&self, name: &str) -> Option<&str> {
        self.all(name).last().map(String::as_str)
    }

    /// The number of an option.
    pub(crate) fn number(&self, name: &str, default: usize) -> Result<usize, KitError> {
        self.parsed(name, default)
    }

    /// The number of an option, which may have a fraction.
    pub(crate) fn real(&self, name: &str, default: f64) -> Result<f64, KitError> {
        self.parsed(name, default)
    }

    /// The values of an option that are separated by commas, each read by `read`.
    pub(crate) fn list<T>(
        &self,
        name: &str,
        default: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>, KitError> {
        let words = self.one(name).unwrap_or(default).split(',');
        let each = |word| {
            read(word).ok_or_else(|| {
                KitError::syntax(&format!("--{name}"), 0, format!("{word:?} is not possible"))
            })
        };
        words.map(each).collect()
    }

    fn parsed<T: std::str::FromStr>(&self, name: &str, default: T) -> Result<T, KitError> {
        self.one(name).map_or(Ok(default), |text| {
            text.parse().map_err(|_| {
                KitError::syntax(&format!("--{name}"), 0, format!("{text:?} is no number"))
            })
        })
    }
}
