//! Reading the ends of ranges: ranks, scores and members.

use std::ops::Range;

use weft_data::number::{parse_f64, parse_score_bound};
use weft_data::sorted_set::{MemberBound, MemberRange, ScoreRange};

use crate::error::CommandError;

/// A score as an argument.
pub(super) fn score(text: &[u8]) -> Result<f64, CommandError> {
    parse_f64(text).ok_or(CommandError::NotFloat)
}

/// A range of scores from its ends.
pub(super) fn score_range(min: &[u8], max: &[u8]) -> Result<ScoreRange, CommandError> {
    let end = |text: &[u8]| {
        let (excluded, number) = match text {
            [b'(', number @ ..] => (true, number),
            number => (false, number),
        };
        let refused = CommandError::Text("ERR min or max is not a float");
        Ok((parse_score_bound(number).ok_or(refused)?, excluded))
    };
    let ((min, min_excluded), (max, max_excluded)) = (end(min)?, end(max)?);
    Ok(ScoreRange {
        min,
        min_excluded,
        max,
        max_excluded,
    })
}

/// A range of members from its ends.
pub(super) fn member_range<'a>(
    min: &'a [u8],
    max: &'a [u8],
) -> Result<MemberRange<'a>, CommandError> {
    let end = |text: &'a [u8]| match text {
        b"-" => Ok(MemberBound::Lowest),
        b"+" => Ok(MemberBound::Highest),
        [b'[', member @ ..] => Ok(MemberBound::Included(member)),
        [b'(', member @ ..] => Ok(MemberBound::Excluded(member)),
        _ => Err(CommandError::Text(
            "ERR min or max not valid string range item",
        )),
    };
    Ok(MemberRange {
        min: end(min)?,
        max: end(max)?,
    })
}

/// The ranks from `start` to `stop` inclusive among `len` members, negative numbers counted from the end.
pub(super) fn ranks(start: i64, stop: i64, len: u64) -> Range<u64> {
    let len = len as i64;
    let from_start = |rank: i64| if rank < 0 { (len + rank).max(0) } else { rank };
    let start = from_start(start);
    let stop = if stop < 0 { len + stop } else { stop };
    if start > stop || start >= len {
        0..0
    } else {
        start as u64..(stop.min(len - 1) + 1) as u64
    }
}
