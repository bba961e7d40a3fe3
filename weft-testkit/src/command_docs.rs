//! What two servers say about their commands, compared: COMMAND INFO whole, COMMAND DOCS without its prose.
//!
//! Compared are arity, flags, first and last key and step, ACL categories, tips, key specs and subcommands; and
//! arguments (names, types, tokens, flags, nesting), since, group, deprecation, the versions of the history and the
//! first O(...) term of the complexity. Summaries, notes and other sentences are each server's own words.

use std::collections::BTreeSet;

use crate::command_table::names;
use crate::door::DoorSession;
use crate::error::KitError;
use crate::wire::Wire;

/// Names of the fields of an entry of COMMAND INFO, in their order.
const INFO_FIELDS: [&str; 10] = [
    "name",
    "arity",
    "flags",
    "first key",
    "last key",
    "step",
    "ACL categories",
    "tips",
    "key specs",
    "subcommands",
];
/// Fields of COMMAND INFO whose elements have no order.
const INFO_SETS: [usize; 3] = [2, 6, 7];
const INFO_KEY_SPECS: usize = 8;
const INFO_SUBCOMMANDS: usize = 9;

/// Fields of COMMAND DOCS that are compared as they are.
const DOCS_EXACT: [&str; 4] = ["since", "group", "deprecated_since", "module"];
/// Fields of COMMAND DOCS whose presence alone is compared: their text is prose.
const DOCS_PRESENT: [&str; 2] = ["summary", "replaced_by"];
/// Fields of one argument that are compared as they are.
const ARGUMENT_EXACT: [&str; 7] = [
    "name",
    "type",
    "token",
    "display_text",
    "key_spec_index",
    "since",
    "deprecated_since",
];

/// What a comparison found.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Commands compared.
    pub commands: usize,
    /// Differences, one sentence each.
    pub differences: Vec<String>,
    /// Subcommands that the server under test does not have: not built yet, which is no difference.
    pub missing: Vec<String>,
}

impl Comparison {
    fn differs(&mut self, what: String) {
        self.differences.push(what);
    }
}

/// Compares all commands that the server under test has.
pub fn compare(
    reference: &mut dyn DoorSession,
    subject: &mut dyn DoorSession,
) -> Result<Comparison, KitError> {
    let mut comparison = Comparison::default();
    let told = &mut comparison;
    let known = names(&reference.ask(&["COMMAND"])?)?;
    for name in names(&subject.ask(&["COMMAND"])?)? {
        if !known.contains(&name) {
            told.differs(format!("{name}: the reference has no such command"));
            continue;
        }
        told.commands += 1;
        let info = [
            reference.ask(&["COMMAND", "INFO", &name])?,
            subject.ask(&["COMMAND", "INFO", &name])?,
        ];
        match [&info[0], &info[1]].map(|reply| reply.elements().and_then(|list| list.first())) {
            [Some(reference), Some(subject)] => compare_info(&name, reference, subject, told),
            _ => told.differs(format!("{name}: COMMAND INFO has no entry")),
        }
        let docs = [
            reference.ask(&["COMMAND", "DOCS", &name])?,
            subject.ask(&["COMMAND", "DOCS", &name])?,
        ];
        match [&docs[0], &docs[1]].map(|reply| reply.pairs().first().map(|(_, docs)| *docs)) {
            [Some(reference), Some(subject)] => compare_docs(&name, reference, subject, told),
            _ => told.differs(format!("{name}: COMMAND DOCS has no entry")),
        }
    }
    Ok(comparison)
}

fn compare_info(name: &str, reference: &Wire, subject: &Wire, told: &mut Comparison) {
    let (left, right) = (
        reference.elements().unwrap_or_default(),
        subject.elements().unwrap_or_default(),
    );
    if right.len() != INFO_FIELDS.len() {
        told.differs(format!(
            "{name}: COMMAND INFO has {} fields instead of {}",
            right.len(),
            INFO_FIELDS.len()
        ));
        return;
    }
    for (place, field) in INFO_FIELDS.iter().enumerate() {
        let (Some(left), Some(right)) = (left.get(place), right.get(place)) else {
            continue;
        };
        if place == INFO_SUBCOMMANDS {
            let entries = |of: &Wire| -> Vec<(String, Wire)> {
                let list = of.elements().unwrap_or_default();
                let name = |entry: &Wire| {
                    entry
                        .elements()
                        .and_then(|fields| fields.first())
                        .map(Wire::string)
                };
                list.iter()
                    .map(|entry| (name(entry).unwrap_or_default(), entry.clone()))
                    .collect()
            };
            for_each_both(
                name,
                "subcommand",
                entries(left),
                entries(right),
                told,
                &mut |name, left, right, told| {
                    compare_info(name, left, right, told);
                },
            );
        } else if place == INFO_KEY_SPECS {
            let specs = |of: &Wire| {
                of.elements()
                    .unwrap_or_default()
                    .iter()
                    .map(key_spec)
                    .collect::<Vec<_>>()
            };
            tell(name, field, &specs(left), &specs(right), told);
        } else if INFO_SETS.contains(&place) {
            tell(name, field, &set(left), &set(right), told);
            if std::mem::discriminant(left) != std::mem::discriminant(right) {
                told.differs(format!("{name}: {field}: another kind of sequence"));
            }
        } else {
            tell(name, field, &nested(left), &nested(right), told);
        }
    }
}

/// A key spec as text, its flags sorted and its notes left out.
fn key_spec(spec: &Wire) -> String {
    let fields: Vec<String> = spec
        .pairs()
        .into_iter()
        .filter(|(field, _)| field.text() != Some(b"notes"))
        .map(|(field, value)| match field.text() {
            Some(b"flags") => format!("flags {:?}", set(value)),
            _ => format!("{} {}", field.string(), nested(value)),
        })
        .collect();
    fields.join(", ")
}

fn nested(value: &Wire) -> String {
    match value {
        Wire::Sequence(_, elements) => {
            let parts: Vec<String> = elements.iter().map(nested).collect();
            format!("({})", parts.join(" "))
        }
        Wire::Integer(value) => value.to_string(),
        other => other.string(),
    }
}

fn compare_docs(name: &str, reference: &Wire, subject: &Wire, told: &mut Comparison) {
    for field in DOCS_EXACT {
        tell(
            name,
            field,
            &text(reference, field),
            &text(subject, field),
            told,
        );
    }
    for field in DOCS_PRESENT {
        tell(
            name,
            &format!("presence of {field}"),
            &reference.field(field).is_some(),
            &subject.field(field).is_some(),
            told,
        );
    }
    tell(
        name,
        "doc_flags",
        &reference.field("doc_flags").map(set),
        &subject.field("doc_flags").map(set),
        told,
    );
    tell(
        name,
        "complexity",
        &complexity_term(reference),
        &complexity_term(subject),
        told,
    );
    tell(
        name,
        "versions of the history",
        &history(reference),
        &history(subject),
        told,
    );
    compare_arguments(name, reference, subject, told);
    let subcommands = |of: &Wire| -> Vec<(String, Wire)> {
        let pairs = of.field("subcommands").map(Wire::pairs).unwrap_or_default();
        pairs
            .into_iter()
            .map(|(name, docs)| (name.string(), docs.clone()))
            .collect()
    };
    for_each_both(
        name,
        "documented subcommand",
        subcommands(reference),
        subcommands(subject),
        told,
        &mut |name, left, right, told| compare_docs(name, left, right, told),
    );
}

fn compare_arguments(name: &str, reference: &Wire, subject: &Wire, told: &mut Comparison) {
    let list = |of: &Wire| {
        of.field("arguments")
            .and_then(Wire::elements)
            .unwrap_or_default()
            .to_vec()
    };
    let (left, right) = (list(reference), list(subject));
    if left.len() != right.len() {
        let names = |list: &[Wire]| {
            list.iter()
                .map(|argument| text(argument, "name"))
                .collect::<Vec<_>>()
        };
        told.differs(format!(
            "{name}: arguments: {:?} instead of {:?}",
            names(&right),
            names(&left)
        ));
        return;
    }
    for (place, (left, right)) in left.iter().zip(&right).enumerate() {
        let name = format!(
            "{name}: argument {} ({})",
            place + 1,
            text(left, "name").unwrap_or_default()
        );
        for field in ARGUMENT_EXACT {
            tell(
                &name,
                field,
                &left.field(field).map(nested),
                &right.field(field).map(nested),
                told,
            );
        }
        tell(
            &name,
            "flags",
            &left.field("flags").map(set),
            &right.field("flags").map(set),
            told,
        );
        compare_arguments(&name, left, right, told);
    }
}

fn for_each_both(
    name: &str,
    what: &str,
    reference: Vec<(String, Wire)>,
    subject: Vec<(String, Wire)>,
    told: &mut Comparison,
    compare: &mut dyn FnMut(&str, &Wire, &Wire, &mut Comparison),
) {
    for (missing, _) in reference
        .iter()
        .filter(|(left, _)| subject.iter().all(|(right, _)| left != right))
    {
        told.missing.push(missing.clone());
    }
    for (own, right) in &subject {
        match reference.iter().find(|(left, _)| left == own) {
            Some((_, left)) => compare(own, left, right, told),
            None => told.differs(format!("{name}: the reference has no {what} {own}")),
        }
    }
}

fn tell<T: PartialEq + std::fmt::Debug>(
    name: &str,
    field: &str,
    reference: &T,
    subject: &T,
    told: &mut Comparison,
) {
    if reference != subject {
        told.differs(format!(
            "{name}: {field}: {subject:?} instead of {reference:?}"
        ));
    }
}

fn set(list: &Wire) -> BTreeSet<String> {
    list.elements()
        .unwrap_or_default()
        .iter()
        .map(Wire::string)
        .collect()
}

fn text(of: &Wire, field: &str) -> Option<String> {
    of.field(field).map(Wire::string)
}

fn history(of: &Wire) -> Vec<String> {
    let entries = of
        .field("history")
        .and_then(Wire::elements)
        .unwrap_or_default();
    entries
        .iter()
        .filter_map(|entry| entry.elements().and_then(|fields| fields.first()))
        .map(Wire::string)
        .collect()
}

/// The first O(...) term of a complexity: its shape without the sentences around it.
fn complexity_term(of: &Wire) -> Option<String> {
    let text = text(of, "complexity")?;
    let rest = &text[text.find("O(")?..];
    let mut depth = 0;
    let end = rest.char_indices().find_map(|(place, c)| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => return None,
        }
        (depth == 0).then_some(place + 1)
    });
    Some(rest[..end.unwrap_or(rest.len())].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Kind;

    #[test]
    fn the_shape_of_a_complexity_is_its_first_term() {
        let docs = |text: &str| {
            Wire::Sequence(
                Kind::Map,
                vec![
                    Wire::Bulk(b"complexity".to_vec()),
                    Wire::Bulk(text.as_bytes().to_vec()),
                ],
            )
        };
        let term = |text: &str| complexity_term(&docs(text));
        assert_eq!(
            term("O(log(N)+M) here, O(1) there"),
            Some("O(log(N)+M)".to_owned())
        );
        assert_eq!(term("Depends on the script"), None);
        assert_eq!(term("O(broken"), Some("O(broken".to_owned()));
    }
}
