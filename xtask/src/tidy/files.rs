//! The files of the checkout, their headers, and what may stand in none of them.

use std::io;
use std::path::Path;
use std::process::Command;

/// Lines that a file's header may have.
const HEADER_LINES_MAX: usize = 15;

/// Text that belongs to one machine or to a registry, in two halves, so that this list does not find itself.
const FOREIGN: &[(&str, &str)] = &[
    ("/ro", "ot/"),
    ("/wo", "rk/"),
    ("/ho", "me/"),
    ("/Use", "rs/"),
    ("crates", ".io"),
    ("pypi", ".org"),
    ("pythonhosted", ".org"),
    ("npmjs", ".org"),
    ("npmjs", ".com"),
    ("deb.debian", ".org"),
];

/// Paths of all files that are, or are to be, under version control, relative to the root.
pub(crate) fn tracked(root: &Path) -> io::Result<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-co", "--exclude-standard", "-z"])
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        ));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text
        .split('\0')
        .filter(|path| !path.is_empty())
        .map(str::to_owned)
        .collect())
}

/// A lock file names its registry by its format; nothing else may.
pub(crate) fn check_places(file: &str, text: &str, complaints: &mut Vec<String>) {
    if file.ends_with("Cargo.lock") {
        return;
    }
    for (number, line) in text.lines().enumerate() {
        for (left, right) in FOREIGN {
            if line.contains(&format!("{left}{right}")) {
                complaints.push(format!(
                    "{file}:{}: {left}{right} is a path or host of one place",
                    number + 1
                ));
            }
        }
    }
}

/// Every source file begins with what it owns, in at most fifteen lines.
pub(crate) fn check_header(file: &str, text: &str, complaints: &mut Vec<String>) {
    match text
        .lines()
        .take_while(|line| line.starts_with("//!"))
        .count()
    {
        0 => complaints.push(format!("{file}: does not begin with a //! header")),
        lines if lines > HEADER_LINES_MAX => {
            complaints.push(format!(
                "{file}: its header has {lines} lines, more than {HEADER_LINES_MAX}"
            ));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_there_and_short() {
        let complaints = |text: &str| {
            let mut complaints = Vec::new();
            check_header("a.rs", text, &mut complaints);
            complaints.len()
        };
        assert_eq!(complaints("//! Owns it.\n\nfn main() {}\n"), 0);
        assert_eq!(complaints("fn main() {}\n"), 1);
        assert_eq!(complaints(&"//! x\n".repeat(15)), 0);
        assert_eq!(complaints(&"//! x\n".repeat(16)), 1);
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        let complaints = |file: &str, text: &str| {
            let mut complaints = Vec::new();
            check_places(file, text, &mut complaints);
            complaints
        };
        let text = format!("a\nsee {}{}x\n", FOREIGN[0].0, FOREIGN[0].1);
        assert_eq!(complaints("a.md", &text).len(), 1);
        assert!(complaints("a.md", &text)[0].starts_with("a.md:2: "));
        assert_eq!(complaints("Cargo.lock", &text).len(), 0);
        assert_eq!(complaints("a.md", "/usr/bin/env").len(), 0);
    }
}
