//! The sample file: it loads, says the defaults, and explains every line.

use super::*;

/// The lines that set something, with and without the mark of a comment.
fn settings_of(file: &str) -> Vec<(bool, &str)> {
    let lines = file.lines().filter_map(|line| {
        let bare = line.strip_prefix("# ").unwrap_or(line);
        let name = bare.split(' ').next()?;
        let is_setting = lookup(name.as_bytes()).is_some_and(|(_, known)| known == name);
        // A comment that begins with a parameter's name reads on as a sentence.
        (is_setting && !bare.ends_with('.')).then_some((line.starts_with('#'), bare))
    });
    lines.collect()
}

#[test]
fn the_sample_loads_and_sets_what_it_says() {
    let file = sample_file();
    let config = load(file.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(get(&config, "bind").as_deref(), Some("127.0.0.1 -::1"));
    for id in ParameterId::ALL {
        if *id != ParameterId::Bind {
            let value = config.settings().value(*id);
            assert_eq!(value, settings::default_value(*id), "{}", id.name());
        }
    }
    assert_eq!(config.rewrite(file.as_bytes()), file.as_bytes());
}

#[test]
fn its_commented_lines_are_the_defaults_of_all_that_is_in_effect() {
    let file = sample_file();
    let found = settings_of(&file);
    let live = ParameterId::ALL
        .iter()
        .filter(|id| id.parameter().stage == Stage::Live)
        .count();
    assert_eq!(found.len(), live);
    for (commented, line) in found {
        let config = load(line.as_bytes()).unwrap_or_else(|error| panic!("{line}: {error}"));
        let (id, _) =
            lookup(line.split(' ').next().unwrap_or_default().as_bytes()).expect("a name");
        let is_default = config.settings().value(id) == settings::default_value(id);
        assert_eq!(is_default, commented, "{line}");
    }
}

#[test]
fn no_line_is_long_and_none_stands_without_explanation() {
    let file = sample_file();
    assert!(file.lines().all(|line| line.len() <= 100), "{file}");
    for (_, setting) in settings_of(&file) {
        let (before, _) = file.split_once(&format!("{setting}\n")).expect("the line");
        assert!(before.contains("# Values: "), "{setting}");
        let above = before.trim_end_matches("# ").lines().last();
        assert!(
            above.is_some_and(|line| line.starts_with("# ")),
            "{setting}"
        );
    }
    let mut sections = super::super::table::SECTIONS.iter().map(|(first, _)| first);
    assert!(sections.by_ref().is_sorted());
}
