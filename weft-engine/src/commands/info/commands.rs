//! The sections about commands: Commandstats, Errorstats, Latencystats, and Weft's own Slowlog.

use super::{Facts, Lines};
use crate::command::Numbered;
use crate::command_statistics::{CommandTotals, ErrorTotals};

/// Every command and subcommand, with its full name.
fn all<'f>(facts: &'f Facts<'_, '_, '_>) -> impl Iterator<Item = (String, Numbered)> + 'f {
    let commands = facts.cx.engine.commands.numbered().iter();
    commands.flat_map(|command| command.with_subcommands())
}

pub(super) fn commandstats(facts: &Facts<'_, '_, '_>, lines: &mut Lines) {
    for (name, command) in all(facts) {
        let totals = facts.cx.engine.command_accounts.totals(command.index);
        if totals == CommandTotals::default() {
            continue;
        }
        let CommandTotals {
            calls,
            spent_ns,
            rejected,
            failed,
        } = totals;
        let per_call = if calls == 0 {
            0.0
        } else {
            spent_ns as f64 / 1000.0 / calls as f64
        };
        lines.field(
            &format!("cmdstat_{name}"),
            format_args!(
                "calls={calls},usec={},usec_per_call={per_call:.2},rejected_calls={rejected},failed_calls={failed}",
                spent_ns / 1000
            ),
        );
    }
}

pub(super) fn errorstats(facts: &Facts<'_, '_, '_>, lines: &mut Lines) {
    match facts.cx.engine.command_accounts.errors() {
        ErrorTotals::TooMany => lines.field("errorstat_ERRORSTATS_DISABLED", "count=1"),
        ErrorTotals::Kinds(kinds) => {
            for (code, count) in kinds {
                let name = format!("errorstat_{}", as_name(&code));
                lines.field(&name, format_args!("count={count}"));
            }
        }
    }
}

/// Without what has a meaning in INFO's lines.
fn as_name(code: &[u8]) -> String {
    let name = String::from_utf8_lossy(code);
    name.replace([':', '#', '\r', '\n'], "_")
}

pub(super) fn latencystats(facts: &Facts<'_, '_, '_>, lines: &mut Lines) {
    let settings = facts.cx.worker.settings();
    if !settings.latency_tracking() {
        return;
    }
    let percentiles = settings.latency_tracking_info_percentiles();
    for (name, command) in all(facts) {
        let durations = facts.cx.engine.command_accounts.durations(command.index);
        if durations.count() == 0 {
            continue;
        }
        let values: Vec<String> = percentiles
            .iter()
            .map(|(shown, percent)| {
                let us = durations.percentile_ns(*percent) as f64 / 1000.0;
                format!("p{shown}={us:.3}")
            })
            .collect();
        lines.field(
            &format!("latency_percentiles_usec_{name}"),
            values.join(","),
        );
    }
}

/// How long the commands of SLOWLOG GET had waited before they ran, by their numbers.
pub(super) fn slowlog(facts: &Facts<'_, '_, '_>, lines: &mut Lines) {
    let entries = facts.cx.engine.slow_log.newest(usize::MAX);
    lines.field("slowlog_length", entries.len());
    for entry in entries {
        lines.field(
            &format!("slowlog_{}", entry.id),
            format_args!(
                "waited_usec={},took_usec={}",
                entry.waited_us, entry.took_us
            ),
        );
    }
}
