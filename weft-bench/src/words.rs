//! Command lines of the modes that are this program's own: options with a value each, and how values are read.
//!
//! Owns the walk over the words and the texts about what is wrong with them. Knows no option. An option is `--name value` or
//! `--name=value`.

use std::fmt::Display;
use std::str::FromStr;

/// The words of a command line, taken from the front.
#[derive(Debug)]
pub struct Words<'a> {
    rest: std::slice::Iter<'a, Vec<u8>>,
    /// The option that was taken last, and its value if it was joined to it.
    name: String,
    joined: Option<String>,
}

impl<'a> Words<'a> {
    /// All of them.
    pub fn new(words: &'a [Vec<u8>]) -> Words<'a> {
        Words {
            rest: words.iter(),
            name: String::new(),
            joined: None,
        }
    }

    /// The next option's name, or the next word if it is none; `None` at the end.
    ///
    /// # Errors
    /// That the option before had a value and takes none.
    pub fn option(&mut self) -> Result<Option<String>, String> {
        if self.joined.is_some() {
            return Err(format!("{} takes no value", self.name));
        }
        let Some(word) = self.rest.next() else {
            return Ok(None);
        };
        let word = text(word)?;
        self.name = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => {
                self.joined = Some(value.to_owned());
                name.to_owned()
            }
            _ => word,
        };
        Ok(Some(self.name.clone()))
    }

    /// The option's value.
    ///
    /// # Errors
    /// That there is none.
    pub fn value(&mut self) -> Result<String, String> {
        if let Some(value) = self.joined.take() {
            return Ok(value);
        }
        match self.rest.next() {
            Some(word) => text(word),
            None => Err(format!("{} needs a value", self.name)),
        }
    }

    /// The option's value, read and within bounds.
    ///
    /// # Errors
    /// That it is not.
    pub fn number<T>(&mut self, least: T, most: T) -> Result<T, String>
    where
        T: FromStr + PartialOrd + Display + Copy,
    {
        let value = self.value()?;
        self.read(&value, least, most)
    }

    /// The same for a list that commas separate.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub fn numbers<T>(&mut self, least: T, most: T) -> Result<Vec<T>, String>
    where
        T: FromStr + PartialOrd + Display + Copy,
    {
        let value = self.value()?;
        value
            .split(',')
            .map(|value| self.read(value, least, most))
            .collect()
    }

    fn read<T>(&self, value: &str, least: T, most: T) -> Result<T, String>
    where
        T: FromStr + PartialOrd + Display + Copy,
    {
        value
            .trim()
            .parse()
            .ok()
            .filter(|number| least <= *number && *number <= most)
            .ok_or_else(|| format!("{} is from {least} to {most}, not '{value}'", self.name))
    }
}

fn text(word: &[u8]) -> Result<String, String> {
    String::from_utf8(word.to_vec()).map_err(|_| format!("'{}' is not text", word.escape_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Vec<u8>> {
        text.split(' ')
            .map(|word| word.as_bytes().to_vec())
            .collect()
    }

    #[test]
    fn options_and_values_are_told_apart() {
        let words = words("--a 1 --b=2,3 --c x=y rest --d=z");
        let mut words = Words::new(&words);
        let option = |words: &mut Words<'_>| words.option().unwrap().unwrap();
        assert_eq!(option(&mut words), "--a");
        assert_eq!(words.number(1, 5), Ok(1));
        assert_eq!(option(&mut words), "--b");
        assert_eq!(words.numbers(1, 5), Ok(vec![2, 3]));
        assert_eq!(option(&mut words), "--c");
        assert_eq!(words.value().unwrap(), "x=y");
        assert_eq!(option(&mut words), "rest");
        assert_eq!(option(&mut words), "--d");
        assert_eq!(words.option().unwrap_err(), "--d takes no value");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str, read: fn(&mut Words<'_>) -> Result<f64, String>| {
            let words = words(text);
            let mut words = Words::new(&words);
            words.option().unwrap();
            read(&mut words).unwrap_err()
        };
        let number = |words: &mut Words<'_>| words.number(1.0, 5.0);
        assert_eq!(error("--a 7", number), "--a is from 1 to 5, not '7'");
        assert_eq!(error("--a x", number), "--a is from 1 to 5, not 'x'");
        assert_eq!(error("--a", number), "--a needs a value");
    }
}
