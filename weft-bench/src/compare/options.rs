//! The options of a comparison.
//!
//! Owns the command line down to the values. Does not read files.

use std::path::PathBuf;

use crate::words::Words;

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: weft-bench compare BASE NEW [options]
       weft-bench compare FILE --servers A=B | --threads A=B [options]

Compares result files of weft-bench sweep or of native runs: what changed from BASE to NEW, and how sure that is. Each may
be several files, separated by commas: repeated runs. Rounds are paired in their order.

  --servers A=B           compares server A of the base with server B of the new one
  --threads A=B           the same for settings of threads
  --threshold FIGURE=P    so many percent worse is a regression; may be repeated, and 'none' instead of a number means
                          never (default: rate=5, p99_us=10, cpu_us_per_op=10; of failure_rate percentage points: 0.1)
  --json FILE             the comparison

The 95 % interval is that of the ratio of means, from the logarithms of the paired ratios. Where it holds 1 no difference
is shown. Exit status: 0 no regression; 1 a regression: shown, and beyond its threshold; 2 nothing could be compared.
";

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Files of the base; one series continues the other.
    pub base: Vec<PathBuf>,
    /// Of the new one.
    pub new: Vec<PathBuf>,
    /// `--servers`.
    pub servers: Option<(String, String)>,
    /// `--threads`.
    pub threads: Option<(String, String)>,
    /// By figure, in percent; of the failure rate in percentage points. `None`: no regression whatever happens.
    pub thresholds: Vec<(String, Option<f64>)>,
    /// `--json`.
    pub json: Option<PathBuf>,
}

/// Thresholds in percent, unless others are given.
const THRESHOLDS: [(&str, f64); 4] = [
    ("rate", 5.0),
    ("p99_us", 10.0),
    ("cpu_us_per_op", 10.0),
    ("failure_rate", 0.1),
];

/// Reads a command line. `None`: `--help`.
///
/// # Errors
/// What is wrong with it.
pub fn parse(arguments: &[Vec<u8>]) -> Result<Option<Options>, String> {
    let thresholds = THRESHOLDS.map(|(name, percent)| (name.to_owned(), Some(percent)));
    let mut options = Options {
        base: Vec::new(),
        new: Vec::new(),
        servers: None,
        threads: None,
        thresholds: thresholds.to_vec(),
        json: None,
    };
    let mut sides: Vec<Vec<PathBuf>> = Vec::new();
    let mut words = Words::new(arguments);
    while let Some(name) = words.option()? {
        match &name[..] {
            "--servers" => options.servers = Some(pair(&name, &words.value()?)?),
            "--threads" => options.threads = Some(pair(&name, &words.value()?)?),
            "--threshold" => {
                let (figure, value) = pair(&name, &words.value()?)?;
                let percent = match &value[..] {
                    "none" => None,
                    number => {
                        Some(number.parse().ok().filter(|it| *it >= 0.0).ok_or_else(|| {
                            format!("--threshold {figure} is a number of percent, or none")
                        })?)
                    }
                };
                options.thresholds.retain(|(known, _)| *known != figure);
                options.thresholds.push((figure, percent));
            }
            "--json" => options.json = Some(PathBuf::from(words.value()?)),
            "--help" | "-h" => return Ok(None),
            other if other.starts_with("--") => return Err(format!("there is no option {other}")),
            files => sides.push(files.split(',').map(PathBuf::from).collect()),
        }
    }
    let mut sides = sides.into_iter();
    (options.base, options.new) = match (sides.next(), sides.next(), sides.next()) {
        (Some(base), Some(new), None) => (base, new),
        (Some(both), None, None) if options.servers.is_some() || options.threads.is_some() => {
            (both.clone(), both)
        }
        _ => return Err("two results are compared: BASE and NEW".to_owned()),
    };
    Ok(Some(options))
}

fn pair(name: &str, text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((left, right)) if !left.is_empty() && !right.is_empty() => {
            Ok((left.to_owned(), right.to_owned()))
        }
        _ => Err(format!("{name} is A=B, not '{text}'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Options, String> {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        Ok(parse(&words)?.expect("no help is asked for"))
    }

    #[test]
    fn files_and_thresholds() {
        let options = parsed(&[
            "a,b",
            "--threshold",
            "rate=2.5",
            "c",
            "--threshold=p99_us=none",
        ]);
        let options = options.unwrap();
        assert_eq!(options.base, [PathBuf::from("a"), PathBuf::from("b")]);
        assert_eq!(options.new, [PathBuf::from("c")]);
        let threshold = |name: &str| options.thresholds.iter().find(|it| it.0 == name);
        assert_eq!(threshold("rate").unwrap().1, Some(2.5));
        assert_eq!(threshold("p99_us").unwrap().1, None);
        assert_eq!(threshold("cpu_us_per_op").unwrap().1, Some(10.0));
    }

    #[test]
    fn one_file_has_two_sides_if_it_is_said_which() {
        let options = parsed(&["a", "--servers", "redis=weft"]).unwrap();
        assert_eq!(options.base, options.new);
        assert_eq!(
            parsed(&["a"]).unwrap_err(),
            "two results are compared: BASE and NEW"
        );
        assert!(parsed(&["a", "b", "c"]).is_err());
        assert_eq!(
            parsed(&["a", "b", "--servers", "x"]).unwrap_err(),
            "--servers is A=B, not 'x'"
        );
        assert_eq!(
            parsed(&["a", "b", "--threshold", "rate=-1"]).unwrap_err(),
            "--threshold rate is a number of percent, or none"
        );
    }
}
