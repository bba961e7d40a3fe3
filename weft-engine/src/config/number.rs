//! Numbers that only configuration lines write: lenient integers, memory sizes, octal modes.
//!
//! Pure functions from bytes; `None` for what the reference refuses. No bounds are applied here. Strict integers and decimals
//! are `weft-data`'s.

/// An integer as C's `strtoll` reads it: leading white space, a sign and leading zeros are fine; clamped to 64 bits.
pub(super) fn lenient_i64(text: &[u8]) -> Option<i64> {
    lenient(text, 10)
}

/// An integer in octal digits, as leniently; the empty text is 0.
pub(super) fn octal(text: &[u8]) -> Option<i64> {
    if text.is_empty() {
        Some(0)
    } else {
        lenient(text, 8)
    }
}

fn lenient(text: &[u8], radix: u32) -> Option<i64> {
    let text = &text[text
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r'))
        .count()..];
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let mut value = 0_i64;
    for byte in digits {
        let digit = i64::from(char::from(*byte).to_digit(radix)?);
        value = value.saturating_mul(i64::from(radix));
        value = if negative {
            value.saturating_sub(digit)
        } else {
            value.saturating_add(digit)
        };
    }
    Some(value)
}

/// Bytes: at most 127 digits (none is 0) and an optional unit. Digits beyond 64 bits count as the greatest number, and the
/// product with the unit wraps, as the reference's does; callers see such sizes as negative.
pub(crate) fn memory(text: &[u8]) -> Option<u64> {
    let digits_len = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, unit) = text.split_at(digits_len);
    let factor: u64 = match unit.to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    if digits.len() > 127 {
        return None;
    }
    let number = digits.iter().fold(0_u64, |number, digit| {
        number
            .saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'))
    });
    Some(number.wrapping_mul(factor))
}

/// At most six decimals, without trailing zeros.
pub(super) fn six_decimals(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Bytes in the greatest unit that divides them: `512mb`, `1500000`.
pub(super) fn memory_text(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        bytes if bytes % (1 << 30) == 0 => format!("{}gb", bytes >> 30),
        bytes if bytes % (1 << 20) == 0 => format!("{}mb", bytes >> 20),
        bytes if bytes % (1 << 10) == 0 => format!("{}kb", bytes >> 10),
        bytes => bytes.to_string(),
    }
}
