//! A plot as SVG: figures against settings of threads, a line for each server.
//!
//! Owns scales, ticks, lines, markers and legend. Colours are the page's, by class, so that they follow light and dark; lines
//! differ by marker and dash too, so that colour is never the only difference. Every point says its value when pointed at.
//! Does not know what the figures mean.

use std::fmt::Write;

/// A plot.
#[derive(Clone, Debug)]
pub struct Plot {
    /// What it shows, with the unit.
    pub title: String,
    /// What stands under the horizontal axis.
    pub settings: Vec<String>,
    /// Lines.
    pub lines: Vec<Line>,
    /// Whether the vertical axis is logarithmic; else it begins at zero.
    pub logarithmic: bool,
}

/// A line.
#[derive(Clone, Debug)]
pub struct Line {
    /// In the legend.
    pub name: String,
    /// The number of its colour and marker.
    pub colour: usize,
    /// How it is drawn.
    pub stroke: Stroke,
    /// A point for each setting that was measured. A single one of [`Line::everywhere`] is drawn across the plot.
    pub points: Vec<Option<Point>>,
    /// The value of a line that has no settings.
    pub everywhere: Option<Point>,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// Without gaps.
    Solid,
    /// In dashes.
    Dashed,
    /// In dots.
    Dotted,
}

impl Stroke {
    fn class(self) -> &'static str {
        match self {
            Stroke::Solid => "solid",
            Stroke::Dashed => "dashed",
            Stroke::Dotted => "dotted",
        }
    }
}

/// A value and where it lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The value.
    pub value: f64,
    /// The ends of its interval, if it has one.
    pub interval: Option<(f64, f64)>,
}

/// So many colours and markers there are; further lines begin again.
pub const COLOURS: usize = 6;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 40.0;

/// About so many lines cross the plot.
const TICKS: f64 = 5.0;

impl Plot {
    /// The plot, with an id that no other has on the page.
    pub fn svg(&self, id: &str) -> String {
        let scale = self.scale();
        let mut svg = String::new();
        // Writing to a string does not fail.
        let _ = write!(
            svg,
            "<figure><figcaption id=\"{id}-title\">{}</figcaption>\
             <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-labelledby=\"{id}-title {id}-text\">\
             <desc id=\"{id}-text\">{}</desc>",
            escaped(&self.title),
            escaped(&self.description())
        );
        self.grid(&scale, &mut svg);
        for (number, line) in self.lines.iter().enumerate() {
            self.line(line, number, &scale, &mut svg);
        }
        svg.push_str("</svg>");
        self.legend(&mut svg);
        svg.push_str("</figure>");
        svg
    }

    /// The plot in words.
    fn description(&self) -> String {
        let mut lines = Vec::new();
        for line in &self.lines {
            let values = self.settings.iter().zip(&line.points);
            let mut values: Vec<String> = values
                .filter_map(|(setting, point)| {
                    Some(format!("{setting}: {}", short(point.as_ref()?.value)))
                })
                .collect();
            values.extend(line.everywhere.map(|point| short(point.value)));
            lines.push(format!("{}: {}", line.name, values.join(", ")));
        }
        format!("By threads. {}.", lines.join(". "))
    }

    fn x(&self, setting: usize) -> f64 {
        let room = WIDTH - LEFT - RIGHT;
        LEFT + room * (setting as f64 + 0.5) / self.settings.len().max(1) as f64
    }

    fn scale(&self) -> Scale {
        let points = self.lines.iter().flat_map(|line| {
            let points = line.points.iter().flatten().copied();
            points.chain(line.everywhere)
        });
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for point in points.filter(|point| point.value.is_finite()) {
            let (low, high) = point.interval.unwrap_or((point.value, point.value));
            // An interval that reaches far does not press the values together.
            most = most.max(point.value).max(high.min(point.value * 1.5));
            least = least.min(point.value).min(low.max(point.value / 1.5));
        }
        match self.logarithmic && least > 0.0 && least.is_finite() {
            true => Scale::logarithmic(least, most),
            false => Scale::linear(most),
        }
    }

    fn grid(&self, scale: &Scale, svg: &mut String) {
        for &tick in &scale.ticks {
            let y = scale.y(tick);
            let _ = write!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"y\" x=\"{}\" y=\"{:.1}\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                y + 4.0,
                short(tick)
            );
        }
        for (place, setting) in self.settings.iter().enumerate() {
            let _ = write!(
                svg,
                "<text class=\"x\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                self.x(place),
                HEIGHT - BOTTOM + 17.0,
                escaped(setting)
            );
        }
        let _ = write!(
            svg,
            "<text class=\"x axis\" x=\"{:.1}\" y=\"{:.1}\">threads</text>",
            (LEFT + WIDTH - RIGHT) / 2.0,
            HEIGHT - 6.0
        );
    }

    fn line(&self, line: &Line, number: usize, scale: &Scale, svg: &mut String) {
        let (colour, stroke) = (line.colour % COLOURS, line.stroke.class());
        if let Some(point) = line.everywhere {
            let y = scale.y(point.value);
            let _ = write!(
                svg,
                "<path class=\"s{colour} {stroke}\" d=\"M{LEFT} {y:.1}H{}\"><title>{}: {}</title></path>",
                WIDTH - RIGHT,
                escaped(&line.name),
                short(point.value)
            );
        }
        // Lines of one setting that lie on each other can still be told apart.
        let aside = 3.0 * (number as f64 - (self.lines.len() as f64 - 1.0) / 2.0);
        let aside = if self.lines.len() > 1 {
            aside.clamp(-9.0, 9.0)
        } else {
            0.0
        };
        let placed: Vec<(usize, f64, f64, Point)> = line
            .points
            .iter()
            .enumerate()
            .filter_map(|(place, point)| {
                let point = (*point)?;
                Some((place, self.x(place) + aside, scale.y(point.value), point))
            })
            .collect();
        if placed.len() > 1 {
            let steps: Vec<String> = placed
                .iter()
                .map(|(_, x, y, _)| format!("{x:.1} {y:.1}"))
                .collect();
            let _ = write!(
                svg,
                "<path class=\"s{colour} {stroke}\" d=\"M{}\"/>",
                steps.join("L")
            );
        }
        for (place, x, y, point) in placed {
            let mut told = format!(
                "{}, threads {}: {}",
                line.name,
                self.settings[place],
                short(point.value)
            );
            if let Some((low, high)) = point.interval {
                let _ = write!(told, " ({} to {})", short(low), short(high));
                let (top, bottom) = (scale.y(high), scale.y(low));
                let _ = write!(
                    svg,
                    "<path class=\"s{colour} bar\" d=\"M{x:.1} {top:.1}V{bottom:.1}M{0:.1} {top:.1}h6M{0:.1} {bottom:.1}h6\"/>",
                    x - 3.0
                );
            }
            let _ = write!(
                svg,
                "<path class=\"m{colour}\" d=\"{}\"><title>{}</title></path>",
                marker(colour, x, y),
                escaped(&told)
            );
        }
    }

    fn legend(&self, svg: &mut String) {
        svg.push_str("<ul class=\"legend\">");
        for line in &self.lines {
            let (colour, stroke) = (line.colour % COLOURS, line.stroke.class());
            let _ = write!(
                svg,
                "<li><svg viewBox=\"0 0 28 12\" aria-hidden=\"true\"><path class=\"s{colour} {stroke}\" d=\"M0 6H28\"/>\
                 <path class=\"m{colour}\" d=\"{}\"/></svg>{}</li>",
                marker(colour, 14.0, 6.0),
                escaped(&line.name)
            );
        }
        svg.push_str("</ul>");
    }
}

/// A shape around a point.
fn marker(colour: usize, x: f64, y: f64) -> String {
    match colour {
        // A circle, a square, a triangle, a diamond, a triangle on its head, a cross.
        0 => format!("M{:.1} {y:.1}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", x - 4.0),
        1 => format!("M{:.1} {:.1}h7v7h-7z", x - 3.5, y - 3.5),
        2 => format!("M{x:.1} {:.1}l4.5 8h-9z", y - 4.8),
        3 => format!("M{x:.1} {:.1}l5 5l-5 5l-5 -5z", y - 5.0),
        4 => format!("M{x:.1} {:.1}l4.5 -8h-9z", y + 4.8),
        _ => format!("M{:.1} {:.1}h3v-3h3v3h3v3h-3v3h-3v-3h-3z", x - 4.5, y - 1.5),
    }
}

/// From values to heights.
#[derive(Clone, Debug)]
struct Scale {
    ticks: Vec<f64>,
    least: f64,
    most: f64,
    logarithmic: bool,
}

impl Scale {
    fn linear(most: f64) -> Scale {
        let step = round_step(most.max(1e-9) / TICKS);
        let count = (most / step).ceil().clamp(1.0, 2.0 * TICKS) as u32;
        Scale {
            ticks: (0..=count).map(|tick| f64::from(tick) * step).collect(),
            least: 0.0,
            most: f64::from(count) * step,
            logarithmic: false,
        }
    }

    fn logarithmic(least: f64, most: f64) -> Scale {
        let mut ticks = Vec::new();
        // Wide ranges have their decades only.
        let steps: &[f64] = if most / least > 1000.0 {
            &[1.0]
        } else {
            &[1.0, 2.0, 5.0]
        };
        let first = least.log10().floor() as i32;
        for decade in first..=most.log10().ceil() as i32 {
            ticks.extend(steps.iter().map(|step| step * 10_f64.powi(decade)));
        }
        // From the last tick that is not above the least to the first that is not below the most.
        let from = ticks.iter().rposition(|tick| *tick <= least).unwrap_or(0);
        let to = ticks.iter().position(|tick| *tick >= most);
        let to = to
            .unwrap_or(ticks.len() - 1)
            .max(from + 1)
            .min(ticks.len() - 1);
        let ticks = ticks[from..=to].to_vec();
        Scale {
            least: ticks[0],
            most: ticks[ticks.len() - 1],
            ticks,
            logarithmic: true,
        }
    }

    fn y(&self, value: f64) -> f64 {
        let share = match self.logarithmic {
            true => (value.max(self.least) / self.least).ln() / (self.most / self.least).ln(),
            false => (value - self.least) / (self.most - self.least),
        };
        let bottom = HEIGHT - BOTTOM;
        bottom - share.clamp(0.0, 1.0) * (bottom - TOP)
    }
}

/// 1, 2 or 5 times a power of ten, at least `step`.
fn round_step(step: f64) -> f64 {
    let decade = 10_f64.powf(step.log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0].into_iter();
    decade
        * factors
            .into_iter()
            .find(|it| it * decade >= step * 0.999)
            .unwrap_or(10.0)
}

/// A number in few characters.
pub fn short(value: f64) -> String {
    let (value, suffix) = match value.abs() {
        size if size >= 999_500.0 => (value / 1e6, "M"),
        size if size >= 9995.0 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let text = match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    };
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text}{suffix}")
}

/// Text as it stands in HTML and SVG.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            Scale::linear(112_000.0).ticks,
            [0.0, 50_000.0, 100_000.0, 150_000.0]
        );
        assert_eq!(
            Scale::linear(0.9).ticks,
            [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]
        );
        assert_eq!(
            Scale::logarithmic(130.0, 900.0).ticks,
            [100.0, 200.0, 500.0, 1000.0]
        );
        assert_eq!(
            Scale::logarithmic(1.0, 5000.0).ticks,
            [1.0, 10.0, 100.0, 1000.0, 10_000.0]
        );
        assert_eq!(Scale::logarithmic(100.0, 100.0).ticks, [100.0, 200.0]);
        assert_eq!(Scale::linear(0.0).ticks.len(), 2);
    }

    #[test]
    fn heights_follow_the_scale() {
        let linear = Scale::linear(100.0);
        assert_eq!((linear.y(0.0), linear.y(100.0)), (HEIGHT - BOTTOM, TOP));
        let logarithmic = Scale::logarithmic(10.0, 1000.0);
        let middle = (HEIGHT - BOTTOM + TOP) / 2.0;
        assert!((logarithmic.y(100.0) - middle).abs() < 1e-9);
        assert_eq!(logarithmic.y(0.0), HEIGHT - BOTTOM);
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (0.25, "0.25"),
            (5.0, "5"),
            (5.256, "5.26"),
            (1200.0, "1200"),
            (9999.0, "10k"),
            (123_456.0, "123k"),
            (1_234_567.0, "1.23M"),
        ] {
            assert_eq!(short(value), text);
        }
    }
}
