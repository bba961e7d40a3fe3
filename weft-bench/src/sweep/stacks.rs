//! Bars of parts, as SVG: where the time of a request goes, a bar for each server and setting of threads.
//!
//! Owns the bars' layout and legend. Colours are the page's, by class; every part says its value when pointed at.

use std::fmt::Write;

use super::plot::{escaped, short};

/// Bars of the same parts.
#[derive(Clone, Debug)]
pub struct Stacks {
    /// What they show, with the unit.
    pub title: String,
    /// The parts' names.
    pub parts: Vec<String>,
    /// The bars: their names, and a value for each part.
    pub bars: Vec<(String, Vec<f64>)>,
}

const WIDTH: f64 = 420.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = 44.0;
const BAR: f64 = 20.0;
const GAP: f64 = 9.0;

impl Stacks {
    /// The bars, with an id that no other has on the page.
    pub fn svg(&self, id: &str) -> String {
        let height = GAP + self.bars.len() as f64 * (BAR + GAP);
        let sum = |values: &[f64]| values.iter().sum::<f64>();
        let sums = self.bars.iter().map(|(_, values)| sum(values));
        let most = sums.fold(f64::MIN_POSITIVE, f64::max);
        let mut svg = String::new();
        // Writing to a string does not fail.
        let _ = write!(
            svg,
            "<figure><figcaption id=\"{id}-title\">{}</figcaption>\
             <svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"{id}-title {id}-text\">\
             <desc id=\"{id}-text\">{}</desc>",
            escaped(&self.title),
            escaped(&self.description())
        );
        for (place, (name, values)) in self.bars.iter().enumerate() {
            let y = GAP + place as f64 * (BAR + GAP);
            let middle = y + BAR / 2.0 + 4.0;
            let _ = write!(
                svg,
                "<text class=\"y\" x=\"{}\" y=\"{middle}\">{}</text>",
                LEFT - 8.0,
                escaped(name)
            );
            let mut x = LEFT;
            for (part, value) in values.iter().enumerate() {
                let width = value / most * (WIDTH - LEFT - RIGHT);
                let _ = write!(
                    svg,
                    "<rect class=\"m{part}\" x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{BAR}\">\
                     <title>{}, {}: {}</title></rect>",
                    escaped(name),
                    escaped(&self.parts[part]),
                    short(*value)
                );
                x += width;
            }
            let _ = write!(
                svg,
                "<text x=\"{:.1}\" y=\"{middle}\">{}</text>",
                x + 6.0,
                short(sum(values))
            );
        }
        svg.push_str("</svg><ul class=\"legend\">");
        for (part, name) in self.parts.iter().enumerate() {
            let _ = write!(
                svg,
                "<li><svg class=\"patch\" viewBox=\"0 0 12 12\" aria-hidden=\"true\">\
                 <rect class=\"m{part}\" width=\"12\" height=\"12\"/></svg>{}</li>",
                escaped(name)
            );
        }
        svg.push_str("</ul></figure>");
        svg
    }

    /// The bars in words.
    fn description(&self) -> String {
        let bars = self.bars.iter().map(|(name, values)| {
            let parts = self.parts.iter().zip(values);
            let parts: Vec<String> = parts
                .map(|(part, value)| format!("{part} {}", short(*value)))
                .collect();
            format!("{name}: {}", parts.join(", "))
        });
        let bars: Vec<String> = bars.collect();
        format!("{}.", bars.join(". "))
    }
}
