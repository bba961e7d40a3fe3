//! Parsing of arguments that many commands share: numbers, words, expiry times.

use weft_data::number;

use crate::error::CommandError;

/// The argument as a 64-bit integer.
pub(super) fn integer(text: &[u8]) -> Result<i64, CommandError> {
    number::parse_i64(text).ok_or(CommandError::NotInteger)
}

/// The argument as a 32-bit integer.
pub(super) fn integer32(text: &[u8]) -> Result<i32, CommandError> {
    const RANGE: &str = "ERR value is out of range, value must between -2147483648 and 2147483647";
    i32::try_from(integer(text)?).map_err(|_| CommandError::Text(RANGE))
}

/// Whether the argument is this word (given in upper case), in any letter case.
pub(super) fn is(text: &[u8], word: &str) -> bool {
    text.eq_ignore_ascii_case(word.as_bytes())
}

/// The unit of an expiry time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
}

/// What an expiry time counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeBase {
    /// From now.
    Relative,
    /// From 1970.
    Absolute,
}

/// An expiry time as given, not yet put against the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpiryTime {
    /// The number.
    pub(super) value: i64,
    /// Its unit.
    pub(super) unit: TimeUnit,
    /// Its origin.
    pub(super) base: TimeBase,
}

impl ExpiryTime {
    /// Milliseconds since 1970, or none where that leaves the range of 64 bits.
    pub(super) fn absolute_ms(self, now_ms: u64) -> Option<i64> {
        let ms = match self.unit {
            TimeUnit::Seconds => self.value.checked_mul(1000)?,
            TimeUnit::Milliseconds => self.value,
        };
        match self.base {
            TimeBase::Absolute => Some(ms),
            TimeBase::Relative => ms.checked_add(i64::try_from(now_ms).ok()?),
        }
    }

    /// The same for commands that take positive times only.
    pub(super) fn positive_ms(
        self,
        now_ms: u64,
        command: &'static str,
    ) -> Result<u64, CommandError> {
        let refused = CommandError::InvalidExpire(command);
        if self.value <= 0 {
            return Err(refused);
        }
        self.absolute_ms(now_ms)
            .and_then(|ms| u64::try_from(ms).ok())
            .ok_or(refused)
    }
}
