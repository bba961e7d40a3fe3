//! The reference page of all parameters, rendered from the table.
//!
//! The stored page is checked against this rendering, so that it cannot go stale. Knows nothing but the rows.

use super::kind::{EVENT_CLASSES, Kind, SHUTDOWN_FLAGS, Unit};
use super::table::{Access, Parameter, ParameterId, RETIRED, Stage};

/// The page, in Markdown.
pub fn reference_page() -> String {
    let mut page = String::from(
        "# Configuration parameters\n\n\
         Generated from the parameter table; `cargo xtask tidy` checks it. Every name works in a configuration file, on the \
         command line (`--name value`) and with `CONFIG GET`.\n",
    );
    let mut parameters: Vec<_> = ParameterId::ALL.iter().map(|id| id.parameter()).collect();
    parameters.sort_by_key(|parameter| parameter.name);
    let sections = [
        ("In effect", "These do what they say."),
        (
            "Kept, without effect yet",
            "These are checked, kept and returned; the start warns about those that were set.",
        ),
        (
            "Accepted, with nothing to switch",
            "These are checked, kept and returned; what they would change is always as their last sentence says.",
        ),
        (
            "Only the default is accepted",
            "Another value stops the start and is refused by `CONFIG SET`.",
        ),
    ];
    for (section, (title, note)) in sections.into_iter().enumerate() {
        page += &format!("\n## {title}\n\n{note}\n\n");
        page += "| Name | Values | Default | Changes | What it is |\n|---|---|---|---|---|\n";
        for parameter in parameters
            .iter()
            .filter(|parameter| section_of(parameter.stage) == section)
        {
            page += &row(parameter);
        }
    }
    page += "\n## Accepted and ignored\n\nLines of older files that mean nothing any more: ";
    page += &RETIRED
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ");
    page += ".\n";
    page
}

/// Whether a stored page equals the rendered one; otherwise the first line that differs.
pub fn reference_is_current(stored: &str) -> Result<(), String> {
    let page = reference_page();
    if stored == page {
        return Ok(());
    }
    let mut lines = page.lines();
    let mut stored = stored.lines();
    let mut number = 0;
    loop {
        number += 1;
        match (lines.next(), stored.next()) {
            (None, None) => return Err("the line ends differ".to_owned()),
            (expected, found) if expected != found => {
                return Err(format!(
                    "line {number}: expected `{}`, found `{}`",
                    expected.unwrap_or_default(),
                    found.unwrap_or_default()
                ));
            }
            _ => {}
        }
    }
}

/// The index of the section that a row of this stage stands in.
fn section_of(stage: Stage) -> usize {
    match stage {
        Stage::Live => 0,
        Stage::Stored => 1,
        Stage::Moot(_) => 2,
        Stage::Refused(_) => 3,
    }
}

fn row(parameter: &Parameter) -> String {
    let mut names = format!("`{}`", parameter.name);
    for alias in parameter.aliases.iter().chain(parameter.foreign_aliases) {
        names += &format!(", `{alias}`");
    }
    let default = if parameter.default.is_empty() {
        "empty".to_owned()
    } else {
        format!("`{}`", parameter.default)
    };
    let changes = match parameter.access {
        Access::Mutable => "at any time",
        Access::Immutable => "at start",
        Access::Protected => "if allowed",
    };
    let mut summary = parameter.summary.to_owned();
    match parameter.stage {
        Stage::Moot(reason) => summary += &format!(" Here {reason}."),
        Stage::Refused(reason) => summary += &format!(" Refused for now: {reason}."),
        Stage::Live | Stage::Stored => {}
    }
    format!(
        "| {names} | {} | {default} | {changes} | {summary} |\n",
        values(parameter.kind)
    )
}

/// What values look like.
pub(super) fn values(kind: Kind) -> String {
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    match kind {
        Kind::Bool => "`yes` or `no`".into(),
        Kind::Integer { min, max, unit, .. } => {
            let what = if unit == Unit::Memory {
                "bytes"
            } else {
                "a number"
            };
            match (min, max) {
                (i64::MIN, i64::MAX) => what.into(),
                (min, i64::MAX) => format!("{what} from {min}"),
                (min, max) => format!("{what} from {min} to {max}"),
            }
        }
        Kind::MemoryOrPercent => "bytes, or a percentage up to `100%`".into(),
        Kind::Octal { max } => format!("an octal number up to {max:o}"),
        Kind::IoThreads { max } => format!("`auto`, or a number from 1 to {max}"),
        Kind::Choice {
            words: listed,
            also,
        } => {
            let all: Vec<_> = listed.iter().chain(also).copied().collect();
            words(&all)
        }
        Kind::ShutdownFlags => {
            let flags: Vec<_> = SHUTDOWN_FLAGS.iter().map(|(name, _)| *name).collect();
            format!("any of {}", words(&flags))
        }
        Kind::KeyspaceEvents => {
            let letters: String = EVENT_CLASSES
                .iter()
                .map(|(letter, _)| char::from(*letter))
                .collect();
            format!("letters of `A{letters}`")
        }
        Kind::Text | Kind::NullableText | Kind::Secret => "text".into(),
        Kind::FileName { .. } => "a name without directory".into(),
        Kind::HostName => "a host name".into(),
        Kind::NodeName => "a name".into(),
        Kind::ProcTitle => "text with placeholders".into(),
        Kind::Addresses => "up to 16 addresses".into(),
        Kind::SavePoints => "pairs of seconds and changes".into(),
        Kind::OutputLimits => "class, two sizes and seconds, repeated".into(),
        Kind::OomScores => "three numbers from -2000 to 2000".into(),
        Kind::Percentiles => "numbers from 0 to 100".into(),
        Kind::Primary => "host and port, or `no one`".into(),
    }
}
