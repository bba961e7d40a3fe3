//! Until when a command waits, as its arguments say it.

use weft_data::number;

use crate::dispatch::Context;
use crate::error::CommandError;

const NEGATIVE: CommandError = CommandError::Text("ERR timeout is negative");
const OUT_OF_RANGE: CommandError = CommandError::Text("ERR timeout is out of range");

/// When a wait that begins now ends, on the scale of the engine's clock; `None`: never, which only exactly 0 means.
///
/// # Errors
/// If `text` is no number of seconds from 0 to what Redis can keep, which is what 64 bits take in milliseconds since 1970.
pub(super) fn seconds(cx: &Context<'_, '_>, text: &[u8]) -> Result<Option<u64>, CommandError> {
    let seconds = number::parse_f64(text).ok_or(CommandError::Text(
        "ERR timeout is not a float or out of range",
    ))?;
    if seconds < 0.0 {
        return Err(NEGATIVE);
    }
    // So small a fraction of a millisecond is one, too.
    let ms = (seconds * 1000.0).ceil();
    if ms >= i64::MAX as f64 {
        return Err(OUT_OF_RANGE);
    }
    after(cx, ms as u64)
}

/// The same for a number of milliseconds.
pub(super) fn milliseconds(cx: &Context<'_, '_>, text: &[u8]) -> Result<Option<u64>, CommandError> {
    let ms = number::parse_i64(text).ok_or(CommandError::Text(
        "ERR timeout is not an integer or out of range",
    ))?;
    after(cx, u64::try_from(ms).map_err(|_| NEGATIVE)?)
}

fn after(cx: &Context<'_, '_>, ms: u64) -> Result<Option<u64>, CommandError> {
    if ms == 0 {
        return Ok(None);
    }
    if ms > (i64::MAX as u64).saturating_sub(cx.unit.clock_us() / 1000) {
        return Err(OUT_OF_RANGE);
    }
    let wait_ns = ms.checked_mul(1_000_000);
    let deadline = wait_ns.and_then(|wait| wait.checked_add(cx.unit.monotonic_ns()));
    // Centuries are for ever.
    Ok(deadline.filter(|at| *at <= i64::MAX as u64))
}
