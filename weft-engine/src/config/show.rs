//! Writing values: the texts that `CONFIG GET` answers.

use super::kind::{
    EVENT_CLASSES, EVENTS_ALL, EVENTS_BESIDE_ALL, FOREIGN_SHUTDOWN_FLAGS, Kind, OUTPUT_CLASSES,
    SHUTDOWN_FLAGS, Value,
};
use super::number;

impl Kind {
    /// The text that `CONFIG GET` answers. `io_threads_auto` is what `io-threads auto` amounts to.
    pub(super) fn show(self, value: &Value, io_threads_auto: u16) -> Vec<u8> {
        match (self, value) {
            (Kind::Bool, Value::Bool(on)) => if *on { "yes" } else { "no" }.into(),
            (Kind::Octal { .. }, Value::Integer(mode)) => format!("{mode:o}").into(),
            (Kind::IoThreads { .. }, Value::Integer(0)) => io_threads_auto.to_string().into(),
            (Kind::MemoryOrPercent, Value::Integer(percent @ ..0)) => {
                format!("{}%", percent.unsigned_abs()).into()
            }
            (_, Value::Integer(number)) => number.to_string().into(),
            (Kind::Choice { words, also }, Value::Choice(index)) => words
                .iter()
                .chain(also)
                .nth(usize::from(*index))
                .map_or_else(Vec::new, |word| word.as_bytes().to_vec()),
            (Kind::ShutdownFlags, Value::Flags(flags)) => shutdown_words(*flags).into(),
            (_, Value::Flags(flags)) => event_letters(*flags),
            (_, Value::Text(text)) => text.to_vec(),
            (_, Value::Words(words)) => words.join(&b' '),
            (_, Value::SavePoints(points)) => {
                let points: Vec<_> = points
                    .iter()
                    .map(|point| format!("{} {}", point.seconds, point.changes))
                    .collect();
                points.join(" ").into()
            }
            (_, Value::OutputLimits(limits)) => {
                let mut text = String::new();
                for (class, limit) in OUTPUT_CLASSES.iter().zip(limits) {
                    let space = if text.is_empty() { "" } else { " " };
                    text += &format!(
                        "{space}{class} {} {} {}",
                        limit.hard_bytes, limit.soft_bytes, limit.soft_seconds
                    );
                }
                text.into()
            }
            (_, Value::OomScores([first, second, third])) => {
                format!("{first} {second} {third}").into()
            }
            (_, Value::Percentiles(percentiles)) => {
                let percentiles: Vec<_> = percentiles
                    .iter()
                    .map(|value| number::six_decimals(*value))
                    .collect();
                percentiles.join(" ").into()
            }
            (_, Value::Primary(Some((host, port)))) => {
                let mut text = host.to_vec();
                text.extend_from_slice(format!(" {port}").as_bytes());
                text
            }
            (_, Value::Primary(None)) | (_, Value::Bool(_)) | (_, Value::Choice(_)) => Vec::new(),
        }
    }
}

/// The words of a set of shutdown flags, `default` for none.
pub(super) fn shutdown_words(flags: u32) -> String {
    let words: Vec<_> = SHUTDOWN_FLAGS
        .iter()
        .chain(FOREIGN_SHUTDOWN_FLAGS)
        .filter(|(_, bit)| flags & bit != 0)
        .map(|(name, _)| *name)
        .collect();
    if words.is_empty() {
        "default".into()
    } else {
        words.join(" ")
    }
}

/// The letters of a set of event classes. With all of `A`, the classes that stand outside it and are neither `K`, `E` nor
/// `m` are not shown, as the reference does.
fn event_letters(flags: u32) -> Vec<u8> {
    let mut letters = Vec::new();
    let mut shown = flags;
    if flags & EVENTS_ALL == EVENTS_ALL {
        letters.push(b'A');
        shown &= EVENTS_BESIDE_ALL;
    }
    letters.extend(
        EVENT_CLASSES
            .iter()
            .filter(|(_, bit)| shown & bit != 0)
            .map(|(letter, _)| *letter),
    );
    letters
}
