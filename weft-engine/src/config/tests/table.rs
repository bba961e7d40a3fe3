//! The table itself: names, defaults, kinds.

use std::collections::HashSet;

use super::*;

#[test]
fn names_are_unique_and_lower_case() {
    let mut names = HashSet::new();
    for id in ParameterId::ALL {
        let parameter = id.parameter();
        for name in std::iter::once(&parameter.name)
            .chain(parameter.aliases)
            .chain(parameter.foreign_aliases)
        {
            assert!(names.insert(*name), "{name} stands twice");
            assert!(
                name.bytes()
                    .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_')),
                "{name}"
            );
            assert!(
                name.len() <= 64,
                "{name} is longer than a looked-up name may be"
            );
        }
    }
    for name in RETIRED {
        assert!(!names.contains(name), "{name} is retired and a parameter");
    }
}

#[test]
fn every_default_is_accepted_and_shown_in_a_form_that_is_accepted() {
    let config = Config::new(FACTS);
    for id in ParameterId::ALL {
        let shown = config.settings().show(*id);
        let kind = id.parameter().kind;
        if *id == ParameterId::Replicaof {
            assert_eq!(shown, b"");
            continue;
        }
        let again = kind.parse(&[&shown], config.settings().value(*id), Door::Set);
        let again = again.unwrap_or_else(|reason| panic!("{}: {reason}", id.name()));
        assert_eq!(kind.show(&again, 2), shown, "{}", id.name());
    }
}

#[test]
fn summaries_are_one_sentence() {
    for id in ParameterId::ALL {
        let summary = id.parameter().summary;
        assert!(
            summary.ends_with('.') && !summary.contains(". "),
            "{}: {summary}",
            id.name()
        );
        assert!(!summary.contains('|'), "{}", id.name());
    }
}

#[test]
fn the_reference_page_lists_every_parameter_once_and_notices_staleness() {
    let page = reference_page();
    for id in ParameterId::ALL {
        let row = format!("\n| `{}`", id.name());
        let rows = page
            .match_indices(&row)
            .filter(|(at, _)| matches!(page.as_bytes().get(at + row.len()), Some(b' ' | b',')));
        assert_eq!(rows.count(), 1, "{}", id.name());
    }
    assert_eq!(reference_is_current(&page), Ok(()));
    let stale = page.replacen(
        "| `port` | a number from 0 to 65535 | `6379` |",
        "| `port` | a number | `6379` |",
        1,
    );
    let error = reference_is_current(&stale).expect_err("a difference");
    assert!(
        error.contains("| `port` | a number from 0 to 65535 |"),
        "{error}"
    );
    assert!(reference_is_current("").is_err());
    assert!(reference_is_current(page.trim_end()).is_err());
}
