//! The drawing of LATENCY GRAPH: a column per sample, four lines high, and below each how long ago it was.

use std::fmt::Write as _;

use crate::latency::LatencySeries;

/// Lines of a drawing.
const LINES: u64 = 4;

/// How a column ends within its uppermost line, from low to high. What is below is filled.
const ENDS: [char; 3] = ['_', 'o', '#'];
const FILL: char = '|';

/// Columns of a line of text.
const WIDTH: usize = 80;

/// Draws the newest samples of an event as they looked at `now_s`.
pub(super) fn draw(event: &str, series: &LatencySeries, now_s: u64) -> String {
    let kept = series.samples.len().saturating_sub(WIDTH);
    let samples = &series.samples[kept..];
    let durations = || samples.iter().map(|sample| sample.took_ms);
    let (high, low) = (
        durations().max().unwrap_or(0),
        durations().min().unwrap_or(0),
    );
    let mut drawn = String::new();
    let _ = writeln!(
        drawn,
        "{event} - high {high} ms, low {low} ms (all time high {} ms)",
        series.longest_ms
    );
    drawn.push_str(&"-".repeat(WIDTH));
    drawn.push('\n');
    for line in (0..LINES).rev() {
        drawn.extend(durations().map(|took_ms| mark(height(took_ms, low, high), line)));
        drawn.push('\n');
    }
    drawn.push('\n');
    let ages: Vec<String> = samples
        .iter()
        .map(|sample| age(now_s.saturating_sub(sample.at_s)))
        .collect();
    let longest = ages.iter().map(String::len).max().unwrap_or(0);
    for at in 0..longest {
        drawn.extend(
            ages.iter()
                .map(|age| age.as_bytes().get(at).map_or(' ', |byte| char::from(*byte))),
        );
        drawn.push('\n');
    }
    drawn
}

/// From 0 for the shortest to the whole height for the longest; if all are alike, 0.
fn height(took_ms: u64, low: u64, high: u64) -> u64 {
    let steps = LINES * ENDS.len() as u64 - 1;
    (took_ms - low) * steps / (high - low).max(1)
}

/// What a column of that height shows in a line, counted from below.
fn mark(height: u64, line: u64) -> char {
    let ends = ENDS.len() as u64;
    match height / ends {
        top if top > line => FILL,
        top if top == line => ENDS[(height % ends) as usize],
        _ => ' ',
    }
}

/// A number of seconds in the largest unit that it reaches.
fn age(seconds: u64) -> String {
    const UNITS: [(u64, char); 3] = [(86_400, 'd'), (3_600, 'h'), (60, 'm')];
    let (length, unit) = UNITS
        .into_iter()
        .find(|(length, _)| seconds >= *length)
        .unwrap_or((1, 's'));
    format!("{}{unit}", seconds / length)
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
            longest_ms: 90,
        }
    }

    #[test]
    fn columns_stand_as_high_as_their_share_and_over_their_age() {
        let samples = series(&[(100, 30), (7_000, 20), (7_290, 25), (7_299, 29)]);
        let expected = [
            "command - high 30 ms, low 20 ms (all time high 90 ms)",
            &"-".repeat(80),
            "#  _",
            "|  |",
            "| #|",
            "|_||",
            "",
            "2511",
            "hm0s",
            "  s ",
        ]
        .join("\n");
        let drawn = draw("command", &samples, 7_300);
        assert_eq!(drawn, expected + "\n");
    }

    #[test]
    fn a_lone_sample_is_low_and_only_what_fits_is_drawn() {
        let drawn = draw("command", &series(&[(100, 30)]), 100);
        assert!(drawn.ends_with("\n \n \n \n_\n\n0\ns\n"), "{drawn}");
        let many: Vec<(u64, u64)> = (0..160).map(|at| (at, at)).collect();
        let drawn = draw("command", &series(&many), 160);
        let widest = drawn.lines().skip(1).map(str::len).max();
        assert_eq!(widest, Some(80));
        assert!(drawn.starts_with("command - high 159 ms, low 80 ms"));
    }
}
