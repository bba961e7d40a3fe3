//! LATENCY: what took long, and how long commands take.

mod graph;

use std::fmt::Write as _;

use super::reply_help;
use crate::command::{Argument, CommandRow, Flags, Numbered};
use crate::dispatch::Context;
use crate::error::CommandError;
use crate::histogram::Durations;
use crate::latency::{LatencyEvent, LatencySeries};

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[CommandRow {
    name: "latency",
    arity: -2,
    flags: Flags::NONE,
    group: "server",
    since: "2.8.13",
    complexity: "Depends on subcommand.",
    summary: "Commands about what took long.",
    subcommands: SUBCOMMANDS,
    ..CommandRow::DEFAULT
}];

const SUBCOMMANDS: &[CommandRow] = &[
    CommandRow {
        name: "doctor",
        summary: "Reports in words what took long and what can be done.",
        handler: doctor,
        ..REPORT
    },
    CommandRow {
        name: "graph",
        arity: 3,
        summary: "Draws how long an event took lately.",
        arguments: &[Argument::string("event")],
        handler: graph,
        ..REPORT
    },
    CommandRow {
        name: "help",
        flags: Flags::LOADING.with(Flags::STALE),
        tips: &[],
        summary: "Lists the subcommands.",
        handler: help,
        ..REPORT
    },
    CommandRow {
        name: "histogram",
        arity: -2,
        since: "7.0.0",
        complexity: "O(N) in the number of commands with durations to be returned",
        summary: "Returns how the durations of commands are distributed.",
        arguments: &[Argument::string("command").optional().multiple()],
        handler: histogram,
        ..REPORT
    },
    CommandRow {
        name: "history",
        arity: 3,
        summary: "Returns how long an event took lately.",
        arguments: &[Argument::string("event")],
        handler: history,
        ..REPORT
    },
    CommandRow {
        name: "latest",
        summary: "Returns the newest and the longest duration of every event.",
        handler: latest,
        ..REPORT
    },
    CommandRow {
        name: "reset",
        arity: -2,
        tips: &["request_policy:all_nodes", "response_policy:agg_sum"],
        summary: "Forgets some events, or all.",
        arguments: &[Argument::string("event").optional().multiple()],
        handler: reset,
        ..REPORT
    },
];

/// What the subcommands have in common.
const REPORT: CommandRow = CommandRow {
    arity: 2,
    flags: Flags::ADMIN
        .with(Flags::NO_SCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    tips: &[
        "nondeterministic_output",
        "request_policy:all_nodes",
        "response_policy:special",
    ],
    group: "server",
    since: "2.8.13",
    complexity: "O(1)",
    ..CommandRow::DEFAULT
};

/// The series of the event that the request names, if it was ever long enough.
fn named(cx: &Context<'_, '_>) -> Option<(LatencyEvent, LatencySeries)> {
    let event = LatencyEvent::of_name(&cx.args[2])?;
    Some((event, cx.engine.latency.series(event)?))
}

/// All events that were ever long enough.
fn all(cx: &Context<'_, '_>) -> Vec<(LatencyEvent, LatencySeries)> {
    LatencyEvent::ALL
        .into_iter()
        .filter_map(|event| Some((event, cx.engine.latency.series(event)?)))
        .collect()
}

fn history(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let samples = named(cx).map_or_else(Vec::new, |(_, series)| series.samples);
    cx.reply.array(samples.len());
    for sample in samples {
        cx.reply.array(2);
        cx.reply.integer(sample.at_s as i64);
        cx.reply.integer(sample.took_ms as i64);
    }
    Ok(())
}

fn latest(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let events = all(cx);
    cx.reply.array(events.len());
    for (event, series) in events {
        let newest = series.samples.last();
        cx.reply.array(4);
        cx.reply.bulk(event.name().as_bytes());
        cx.reply
            .integer(newest.map_or(0, |sample| sample.at_s) as i64);
        cx.reply
            .integer(newest.map_or(0, |sample| sample.took_ms) as i64);
        cx.reply.integer(series.longest_ms as i64);
    }
    Ok(())
}

fn reset(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let forget = |event| cx.engine.latency.reset(event);
    let forgotten = if cx.args.len() == 2 {
        LatencyEvent::ALL
            .into_iter()
            .filter(|event| forget(*event))
            .count()
    } else {
        cx.args
            .iter()
            .skip(2)
            .filter_map(LatencyEvent::of_name)
            .filter(|event| forget(*event))
            .count()
    };
    cx.reply.integer(forgotten as i64);
    Ok(())
}

fn graph(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let Some((event, series)) = named(cx) else {
        return Err(CommandError::quoting(
            "ERR No samples available for event '",
            &cx.args[2],
            "'",
        ));
    };
    let drawn = graph::draw(event.name(), &series, cx.unit.clock_us() / 1_000_000);
    cx.reply.verbatim("txt", drawn.as_bytes());
    Ok(())
}

fn histogram(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let commands = &cx.engine.commands;
    let mut wanted: Vec<(String, Numbered)> = Vec::new();
    if cx.args.len() == 2 {
        for command in commands.numbered() {
            wanted.extend(command.with_subcommands());
        }
    }
    for name in cx.args.iter().skip(2) {
        let mut words = name.splitn(2, |byte| *byte == b'|');
        let Some(command) = words
            .next()
            .and_then(|container| commands.find_numbered(container))
        else {
            continue;
        };
        match words.next() {
            None => wanted.extend(command.with_subcommands()),
            Some(word) => wanted.extend(command.subcommand(word).map(|part| {
                let name = format!("{}|{}", command.row.name, part.row.name);
                (name, part)
            })),
        }
    }
    let found: Vec<(String, Durations)> = wanted
        .into_iter()
        .map(|(name, command)| (name, cx.engine.command_accounts.durations(command.index)))
        .filter(|(_, durations)| durations.count() > 0)
        .collect();
    cx.reply.map(found.len());
    for (name, durations) in found {
        cx.reply.bulk(name.as_bytes());
        cx.reply.map(2);
        cx.reply.bulk(b"calls");
        cx.reply.integer(durations.count() as i64);
        cx.reply.bulk(b"histogram_usec");
        let distribution = durations.distribution();
        cx.reply.map(distribution.len());
        for (bound_us, count) in distribution {
            cx.reply.integer(bound_us as i64);
            cx.reply.integer(count as i64);
        }
    }
    Ok(())
}

fn doctor(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let settings = cx.worker.settings();
    let report = match settings.latency_monitor_threshold_ms() {
        None => "Latency is not monitored: latency-monitor-threshold is 0. CONFIG SET latency-monitor-threshold 100 would \
                 record whatever takes 100 milliseconds or more.\n"
            .to_owned(),
        Some(threshold_ms) => diagnosis(
            &all(cx),
            threshold_ms,
            settings.slowlog_log_slower_than_us(),
        ),
    };
    cx.reply.verbatim("txt", report.as_bytes());
    Ok(())
}

/// What took long, and what can be done about it.
fn diagnosis(
    events: &[(LatencyEvent, LatencySeries)],
    threshold_ms: u64,
    slower_than_us: Option<u64>,
) -> String {
    if events.is_empty() {
        return format!("Nothing has taken {threshold_ms} milliseconds or more.\n");
    }
    let mut report = format!("Events of {threshold_ms} milliseconds or more:\n\n");
    for (number, (event, series)) in events.iter().enumerate() {
        let spikes = Spikes::of(series);
        let _ = writeln!(
            report,
            "{}. {}: {} latency spikes (average {}ms, mean deviation {}ms, period {:.2} sec). Worst all time event {}ms.",
            number + 1,
            event.name(),
            series.samples.len(),
            spikes.average_ms,
            spikes.deviation_ms,
            spikes.period_s,
            series.longest_ms
        );
    }
    report.push_str("\nWhat can be done:\n\n");
    let seen = |event| events.iter().any(|(other, _)| *other == event);
    if seen(LatencyEvent::Command) || seen(LatencyEvent::FastCommand) {
        let logged = slower_than_us.is_some_and(|least| least / 1_000 <= threshold_ms);
        report.push_str(if logged {
            "- SLOWLOG GET names the commands that were slow; INFO slowlog tells how long they had waited before they ran.\n"
        } else {
            "- The slow log does not see all of these commands: set slowlog-log-slower-than to the threshold, in microseconds.\n"
        });
    }
    if seen(LatencyEvent::FastCommand) {
        report.push_str(
            "- Fast commands are slow when their values are large or when the process does not get a processor: compare INFO \
             threads, and look for swapping and for other processes.\n",
        );
    }
    if seen(LatencyEvent::ExpireCycle) {
        report.push_str(
            "- Many keys expire at the same time: spread their deadlines, or lower active-expire-effort.\n",
        );
    }
    report
}

/// A series in a few figures.
struct Spikes {
    average_ms: u64,
    /// On average, how far samples are from the average.
    deviation_ms: u64,
    /// On average, how far samples are apart.
    period_s: f64,
}

impl Spikes {
    fn of(series: &LatencySeries) -> Self {
        let samples = &series.samples;
        let count = samples.len().max(1) as u64;
        let average_ms = samples.iter().map(|sample| sample.took_ms).sum::<u64>() / count;
        let deviation_ms = samples
            .iter()
            .map(|sample| sample.took_ms.abs_diff(average_ms))
            .sum::<u64>()
            / count;
        let span_s = match (samples.first(), samples.last()) {
            (Some(first), Some(last)) => last.at_s - first.at_s,
            _ => 0,
        };
        Self {
            average_ms,
            deviation_ms,
            period_s: span_s as f64 / count as f64,
        }
    }
}

fn help(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    reply_help(
        &mut cx.reply,
        &[
            "LATENCY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "DOCTOR",
            "    Return a human readable latency analysis report.",
            "GRAPH <event>",
            "    Return an ASCII latency graph for the <event> class.",
            "HISTORY <event>",
            "    Return time-latency samples for the <event> class.",
            "LATEST",
            "    Return the latest latency samples for all events.",
            "RESET [<event> ...]",
            "    Reset latency data of one or more <event> classes.",
            "    (default: reset all data for all event classes)",
            "HISTOGRAM [COMMAND ...]",
            "    Return a cumulative distribution of latencies in the format of a histogram for the specified command names.",
            "    If no commands are specified then all histograms are replied.",
            "HELP",
            "    Print this help.",
        ],
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::LatencySample;

    fn series(samples: &[(u64, u64)]) -> LatencySeries {
        LatencySeries {
            samples: samples
                .iter()
                .map(|&(at_s, took_ms)| LatencySample { at_s, took_ms })
                .collect(),
            longest_ms: samples.iter().map(|(_, ms)| *ms).max().unwrap_or(0),
        }
    }

    #[test]
    fn the_report_tells_figures_and_what_follows_from_them() {
        assert_eq!(
            diagnosis(&[], 10, None),
            "Nothing has taken 10 milliseconds or more.\n"
        );
        let events = [
            (LatencyEvent::Command, series(&[(100, 30), (101, 20)])),
            (LatencyEvent::ExpireCycle, series(&[(100, 11)])),
        ];
        let report = diagnosis(&events, 10, Some(10_000));
        assert!(
            report.contains(
                "1. command: 2 latency spikes (average 25ms, mean deviation 5ms, period 0.50 sec). Worst all time event 30ms.\n"
            ),
            "{report}"
        );
        assert!(report.contains(
            "2. expire-cycle: 1 latency spikes (average 11ms, mean deviation 0ms, period 0.00 sec)."
        ));
        assert!(report.contains("SLOWLOG GET") && report.contains("active-expire-effort"));
        assert!(!report.contains("Fast commands"));
        let unseen = diagnosis(&events, 10, None);
        assert!(unseen.contains("slowlog-log-slower-than") && !unseen.contains("SLOWLOG GET"));
    }
}
