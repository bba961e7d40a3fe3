//! The values of memtier_benchmark's options: numbers, ranges, ratios, weights, patterns.
//!
//! Owns how they are read and what is said to those that cannot be. Does not know the options.

use super::keys::Pattern;
use super::options::Instead;

/// The longest value in bytes: what a server takes.
pub const DATA_BYTES_MAX: u64 = 512 << 20;

/// Refuses the command line.
pub fn refuse<T>(why: String) -> Result<T, Instead> {
    Err(Instead::Refused(why))
}

/// What is shown of bytes.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A whole number between two bounds, both of them included.
pub fn number(name: &str, value: &[u8], least: u64, most: u64) -> Result<u64, Instead> {
    let number = std::str::from_utf8(value)
        .ok()
        .and_then(|text| text.trim().parse::<u64>().ok())
        .filter(|number| (least..=most).contains(number));
    match number {
        Some(number) => Ok(number),
        None if most == u64::MAX => {
            refuse(format!("--{name} must be a number of at least {least}"))
        }
        None => refuse(format!("--{name} must be a number from {least} to {most}")),
    }
}

/// A number above 0.
pub fn positive(name: &str, value: &[u8]) -> Result<f64, Instead> {
    std::str::from_utf8(value)
        .ok()
        .and_then(|text| text.trim().parse::<f64>().ok())
        .filter(|number| number.is_finite() && *number > 0.0)
        .ok_or_else(|| Instead::Refused(format!("--{name} must be a number above 0")))
}

/// A number of at least 0.
pub fn not_negative(name: &str, value: &[u8]) -> Result<f64, Instead> {
    std::str::from_utf8(value)
        .ok()
        .and_then(|text| text.trim().parse::<f64>().ok())
        .filter(|number| number.is_finite() && *number >= 0.0)
        .ok_or_else(|| Instead::Refused(format!("--{name} must be a number of at least 0")))
}

/// Whole numbers between colons.
pub fn ratio(name: &str, value: &[u8]) -> Result<Vec<u32>, Instead> {
    value
        .split(|&byte| byte == b':')
        .map(|part| number(name, part, 0, 1 << 30).map(|number| number as u32))
        .collect()
}

/// Two numbers with a dash between them.
pub fn range(name: &str, value: &[u8], most: u64) -> Result<(u64, u64), Instead> {
    let Some(at) = value.iter().position(|&byte| byte == b'-') else {
        return refuse(format!("--{name} is two numbers, such as 10-20"));
    };
    let from = number(name, &value[..at], 0, most)?;
    let to = number(name, &value[at + 1..], 0, most)?;
    if from > to {
        return refuse(format!("--{name} must begin with the smaller number"));
    }
    Ok((from, to))
}

/// Sizes in bytes with their weights; those of weight 0 are left out.
pub fn weights(name: &str, value: &[u8]) -> Result<Vec<(usize, u32)>, Instead> {
    let mut weights = Vec::new();
    for item in value.split(|&byte| byte == b',') {
        let Some(at) = item.iter().position(|&byte| byte == b':') else {
            return refuse(format!(
                "--{name} is sizes with weights, such as 32:80,1024:20"
            ));
        };
        let size = number(name, &item[..at], 1, DATA_BYTES_MAX)? as usize;
        let weight = number(name, &item[at + 1..], 0, 1 << 20)? as u32;
        if weight > 0 {
            weights.push((size, weight));
        }
    }
    if weights.is_empty() {
        return refuse(format!("--{name} needs a weight above 0"));
    }
    Ok(weights)
}

/// Percentiles between commas.
pub fn percentiles(value: &[u8]) -> Result<Vec<f64>, Instead> {
    let percentile = |item: &[u8]| {
        let item = item.strip_prefix(b"p").unwrap_or(item);
        positive("print-percentiles", item).and_then(|percentile| {
            if percentile <= 100.0 {
                Ok(percentile)
            } else {
                refuse("--print-percentiles must be at most 100".to_owned())
            }
        })
    };
    value.split(|&byte| byte == b',').map(percentile).collect()
}

/// The letter of a key pattern.
pub fn pattern(name: &str, value: &[u8]) -> Result<Pattern, Instead> {
    Ok(match value {
        b"R" => Pattern::Random,
        b"S" => Pattern::Sequential,
        b"P" => Pattern::Parallel,
        b"G" => Pattern::Gaussian,
        b"Z" => Pattern::Zipf,
        _ => return refuse(format!("--{name} consists of the letters G, P, R, S and Z")),
    })
}
