//! Names that say nothing: no crate, module or file may have one.

const FORBIDDEN: &[&str] = &[
    "util", "utils", "common", "base", "misc", "helpers", "helper", "manager",
];

/// Looks at every part of a path.
pub(crate) fn check_path(file: &str, complaints: &mut Vec<String>) {
    for part in file.split('/') {
        let stem = part.split('.').next().unwrap_or(part);
        if let Some(word) = forbidden_word(stem) {
            complaints.push(format!("{file}: {word:?} names nothing"));
        }
    }
}

/// Looks at the modules that a file declares.
pub(crate) fn check_modules(file: &str, text: &str, complaints: &mut Vec<String>) {
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let line = line
            .strip_prefix("pub ")
            .or_else(|| line.strip_prefix("pub(crate) "))
            .unwrap_or(line);
        let Some(name) = line.strip_prefix("mod ") else {
            continue;
        };
        let name: String = name
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        if let Some(word) = forbidden_word(&name) {
            complaints.push(format!(
                "{file}:{}: module {name}: {word:?} names nothing",
                number + 1
            ));
        }
    }
}

fn forbidden_word(name: &str) -> Option<&str> {
    name.split(['_', '-']).find(|word| FORBIDDEN.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_words_are_forbidden() {
        let count = |file: &str, text: &str| {
            let mut complaints = Vec::new();
            check_path(file, &mut complaints);
            check_modules(file, text, &mut complaints);
            complaints.len()
        };
        assert_eq!(
            count("a/src/database.rs", "mod keyspace;\npub mod commonplace;\n"),
            0
        );
        assert_eq!(count("a/src/utils.rs", ""), 1);
        assert_eq!(count("a/key_helpers/b.rs", ""), 1);
        assert_eq!(count("weft-common/src/lib.rs", ""), 1);
        assert_eq!(count("a.rs", "    pub(crate) mod misc {\n"), 1);
    }
}
