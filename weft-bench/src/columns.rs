//! Tables for the terminal: words left, figures right, every column as wide as it has to be.
//!
//! Owns the layout. Knows no figure.

use std::fmt;

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// How many columns at the start hold words.
    words: usize,
    rows: Vec<Vec<String>>,
}

impl Columns {
    /// A table with these titles; the first `words` columns hold words, the others figures.
    pub fn new(words: usize, titles: &[&str]) -> Columns {
        Columns {
            words,
            rows: vec![titles.iter().map(|title| (*title).to_owned()).collect()],
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let width = width(column);
                let gap = if column == 0 { "" } else { "  " };
                match column < self.words {
                    true => line.push_str(&format!("{gap}{cell:<width$}")),
                    false => line.push_str(&format!("{gap}{cell:>width$}")),
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A figure with about three significant digits, and commas between thousands.
pub fn figure(value: f64) -> String {
    let decimals = match value.abs() {
        _ if value == 0.0 || !value.is_finite() => 0,
        magnitude if magnitude >= 100.0 => 0,
        magnitude if magnitude >= 10.0 => 1,
        magnitude if magnitude >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", &text[..]),
    };
    let (whole, fraction) = match digits.find('.') {
        Some(point) => digits.split_at(point),
        None => (digits, ""),
    };
    if !whole.bytes().all(|byte| byte.is_ascii_digit()) {
        return "-".to_owned();
    }
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_have_to_be() {
        let mut table = Columns::new(1, &["name", "x", "long"]);
        table.row(vec!["a".to_owned(), "1,000".to_owned(), "2".to_owned()]);
        assert_eq!(table.to_string(), "name      x  long\na     1,000     2\n");
    }

    #[test]
    fn figures_have_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.01234, "0.012"),
            (5.256, "5.26"),
            (51.26, "51.3"),
            (512.4, "512"),
            (1234.5, "1,234"),
            (1_234_567.0, "1,234,567"),
            (-1234.0, "-1,234"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(figure(value), text, "{value}");
        }
    }
}
