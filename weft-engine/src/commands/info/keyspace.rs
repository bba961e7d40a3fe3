//! Keyspace and Keysizes: what the databases hold.

use weft_data::collection::Kind;
use weft_keyspace::{Census, Lengths};

use super::{Facts, Lines};

pub(super) fn keyspace(facts: &Facts<'_, '_, '_>, lines: &mut Lines) {
    for (database, keys, census) in facts.databases() {
        let deadlines = census.deadlines;
        let fielded = facts.cx.engine.keyspace.fielded_count(*database);
        let average_ttl_ms = census
            .deadline_sum
            .checked_div(u128::from(deadlines))
            .map_or(0, |average| {
                average.saturating_sub(u128::from(facts.now_us / 1000))
            });
        lines.field(
            &format!("db{database}"),
            format_args!(
                "keys={keys},expires={deadlines},avg_ttl={average_ttl_ms},subexpiry={fielded}"
            ),
        );
    }
}

pub(super) fn keysizes(facts: &Facts<'_, '_, '_>, lines: &mut Lines) {
    for (database, _, census) in facts.databases() {
        let mut line = |what: &str, lengths: &Lengths| {
            let classes: Vec<String> = lengths
                .iter()
                .enumerate()
                .filter(|(_, count)| **count > 0)
                .map(|(class, count)| format!("{}={count}", short(Census::shortest(class))))
                .collect();
            if !classes.is_empty() {
                lines.field(&format!("db{database}_distrib_{what}"), classes.join(","));
            }
        };
        line("strings_sizes", census.strings());
        line("lists_items", census.collections(Kind::List));
        line("sets_items", census.collections(Kind::Set));
        line("zsets_items", census.collections(Kind::SortedSet));
        line("hashes_items", census.collections(Kind::Hash));
    }
}

/// A power of two in the largest unit that divides it.
fn short(number: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("T", 40), ("G", 30), ("M", 20), ("K", 10)];
    match UNITS.iter().find(|(_, bits)| number >> bits > 0) {
        Some((unit, bits)) => format!("{}{unit}", number >> bits),
        None => number.to_string(),
    }
}
