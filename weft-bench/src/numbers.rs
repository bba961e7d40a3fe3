//! Numbers as C's `atoi` reads them, on which command lines of old tools rely.

/// The number at the start of `value`, 0 if there is none; one that is too large is the largest.
pub fn atoi(value: &[u8]) -> i64 {
    let value = value.trim_ascii_start();
    let (negative, digits) = match value {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let magnitude =
        digits
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .fold(0_i64, |sum, byte| {
                sum.saturating_mul(10)
                    .saturating_add(i64::from(byte - b'0'))
            });
    if negative { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_in_c() {
        for (text, value) in [
            ("12", 12),
            ("5x", 5),
            ("1e3", 1),
            ("abc", 0),
            ("", 0),
            (" 7", 7),
            ("-5", -5),
            ("+5", 5),
            ("99999999999999999999", i64::MAX),
        ] {
            assert_eq!(atoi(text.as_bytes()), value, "{text}");
        }
    }
}
