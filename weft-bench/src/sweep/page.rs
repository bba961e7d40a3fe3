//! The results of a sweep as a page: plots, tables and what they say, in one file that needs nothing else.
//!
//! Owns the page's parts and looks, light and dark. No script, no font and no picture is fetched from anywhere. The
//! tables say in figures whatever the plots show.

use std::fmt::Write;

use super::plot::{Line, Plot, Point, Stroke, escaped};
use super::results::{Results, Series};
use super::sample::{FIGURES, Sample, median_of};
use super::stacks::Stacks;
use super::table::{conclusions, counted};
use crate::columns::figure;
use crate::server::STEPS;

const STYLE: &str = "\
:root{color-scheme:light dark;--back:#fbfbfa;--card:#fff;--text:#1d1f23;--soft:#5d636e;--rule:#dfe1e5;--accent:#1f6fd0;\
--c0:#1f6fd0;--c1:#c9480f;--c2:#11845b;--c3:#8a3fb5;--c4:#9a6a00;--c5:#b3245e}\
@media(prefers-color-scheme:dark){:root{--back:#15171a;--card:#1d2024;--text:#e7e9ec;--soft:#a3a9b4;--rule:#363b43;--accent:#6fb0ff;\
--c0:#6fb0ff;--c1:#ff9a63;--c2:#4fd0a0;--c3:#cf9bf2;--c4:#e6b84a;--c5:#ff8db5}}\
*{box-sizing:border-box}\
body{margin:0 auto;padding:2rem 1.25rem 4rem;max-width:1360px;background:var(--back);color:var(--text);\
font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}\
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .25rem}h2{font-size:1.15rem;margin:0 0 .75rem}p{margin:.25rem 0}\
.soft,dt{color:var(--soft)}dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;margin:1rem 0}dd{margin:0;overflow-wrap:anywhere}\
code{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}\
section{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:1.1rem 1.25rem;margin:1.25rem 0}\
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(300px,1fr));gap:1rem 1.5rem}\
figure{margin:0;min-width:0}figcaption{font-weight:600;font-size:.9rem;margin-bottom:.25rem}\
figure>svg{display:block;width:100%;height:auto}svg text{font:11px system-ui,sans-serif;fill:var(--soft);font-variant-numeric:tabular-nums}\
text.y{text-anchor:end}text.x{text-anchor:middle}.grid{stroke:var(--rule);stroke-width:1}\
path{fill:none;stroke-width:2;stroke-linejoin:round}.bar{stroke-width:1.2}.dashed{stroke-dasharray:7 4}.dotted{stroke-dasharray:1.5 4;stroke-linecap:round}\
.s0{stroke:var(--c0)}.s1{stroke:var(--c1)}.s2{stroke:var(--c2)}.s3{stroke:var(--c3)}.s4{stroke:var(--c4)}.s5{stroke:var(--c5)}\
.m0,.m1,.m2,.m3,.m4,.m5{stroke:var(--card);stroke-width:1}\
.m0{fill:var(--c0)}.m1{fill:var(--c1)}.m2{fill:var(--c2)}.m3{fill:var(--c3)}.m4{fill:var(--c4)}.m5{fill:var(--c5)}\
.legend{display:flex;flex-wrap:wrap;gap:.1rem .9rem;list-style:none;margin:.25rem 0 0;padding:0;font-size:.8rem;color:var(--soft)}\
.legend li{display:flex;align-items:center;gap:.35rem}.legend svg{width:28px;height:12px}.legend .patch{width:12px}rect[class]{stroke:none}.loads th:nth-child(2),.loads td:nth-child(2){text-align:left}\
.scroll{overflow-x:auto;margin-top:1rem}table{border-collapse:collapse;width:100%;font-size:.82rem;font-variant-numeric:tabular-nums}\
th,td{padding:.3rem .6rem;text-align:right;white-space:nowrap;border-bottom:1px solid var(--rule)}th{color:var(--soft);font-weight:600}\
th:first-child,td:first-child,td:last-child,th:last-child{text-align:left}tr.best td{font-weight:600}tr.best td:nth-child(2)::after{content:' \\2605';color:var(--accent)}\
ul.says{margin:.9rem 0 0;padding-left:1.1rem;font-size:.88rem}ul.says li{margin:.15rem 0}";

/// The page.
pub fn html(results: &Results) -> String {
    let mut page = String::new();
    let title = results.label.as_deref().unwrap_or("Servers by threads");
    // Writing to a string does not fail.
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
         <title>{0}</title><style>{STYLE}</style></head><body><header><h1>{0}</h1>\
         <p class=\"soft\">Measured by weft-bench {1} on {2}</p></header>{3}",
        escaped(title),
        env!("CARGO_PKG_VERSION"),
        date(results.unix_seconds),
        circumstances(results)
    );
    summary(results, &mut page);
    for (place, cell) in results.cells.iter().enumerate() {
        let _ = write!(page, "<section><h2>{}</h2>", escaped(cell));
        page.push_str("<div class=\"plots\">");
        for (number, plot) in plots(results, place).iter().enumerate() {
            page.push_str(&plot.svg(&format!("p{place}-{number}")));
        }
        if let Some(stacks) = stacks(results, place) {
            page.push_str(&stacks.svg(&format!("p{place}-steps")));
        }
        page.push_str("</div>");
        table(results, place, &mut page);
        page.push_str("<ul class=\"says\">");
        for line in conclusions(results, place) {
            let _ = write!(page, "<li>{}</li>", escaped(&line));
        }
        page.push_str("</ul></section>");
    }
    page.push_str("</body></html>\n");
    page
}

fn circumstances(results: &Results) -> String {
    let mut list = String::from("<dl>");
    let mut entry = |name: &str, value: String| {
        let _ = write!(list, "<dt>{}</dt><dd>{value}</dd>", escaped(name));
    };
    for server in &results.servers {
        let version = server.version.as_deref().unwrap_or("unknown version");
        entry(
            &server.name,
            format!(
                "{}, <code>{}</code>",
                escaped(version),
                escaped(&server.command)
            ),
        );
    }
    let machine = &results.machine;
    let pinned = match &results.settings.server_processors {
        Some(processors) => format!("; servers on processors {processors}"),
        None => String::new(),
    };
    let ending = if machine.processors == 1 { "" } else { "s" };
    entry(
        "machine",
        escaped(&format!(
            "{}, {} processor{ending} for server and client{pinned}",
            machine.system, machine.processors
        )),
    );
    let settings = &results.settings;
    entry(
        "measurements",
        escaped(&format!(
            "{} rounds of {} s after {} s of warming up, closed loop, in turns; medians, with 95 % intervals of the rate",
            settings.rounds, settings.seconds, settings.warm_up_seconds
        )),
    );
    list.push_str("</dl>");
    list
}

/// The best setting of every server under every load, if there is more than one load.
fn summary(results: &Results, page: &mut String) {
    if results.cells.len() < 2 {
        return;
    }
    page.push_str(
        "<section><h2>The best settings</h2><div class=\"scroll loads\"><table><thead><tr><th scope=\"col\">load</th>\
         <th scope=\"col\">server</th><th scope=\"col\">threads</th><th scope=\"col\">rate/s</th>\
         <th scope=\"col\">p99 us</th><th scope=\"col\">CPU us/op</th><th scope=\"col\">bound by</th></tr></thead><tbody>",
    );
    for (cell, name) in results.cells.iter().enumerate() {
        for (server, facts) in results.servers.iter().enumerate() {
            let chosen = match results.sweet_spot(server, cell) {
                Some((_, chosen)) => Some(chosen),
                None => results.of(server, cell).first().copied(),
            };
            let Some(series) = chosen.filter(|series| !series.samples.is_empty()) else {
                continue;
            };
            let bound = series.bound().map_or("-".to_owned(), |it| it.by.short());
            let _ = write!(
                page,
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                escaped(name),
                escaped(&facts.name),
                escaped(&series.threads),
                figure(median_of(&series.samples, |sample| sample.rate)),
                figure(median_of(&series.samples, |sample| sample.p99_us)),
                figure(median_of(&series.samples, |sample| sample.server.cpu_us)),
                escaped(&bound)
            );
        }
    }
    page.push_str("</tbody></table></div></section>");
}

fn plots(results: &Results, cell: usize) -> [Plot; 3] {
    let mut settings: Vec<String> = Vec::new();
    for series in results.series.iter().filter(|it| it.cell == cell) {
        if series.threads != "-" && !settings.contains(&series.threads) {
            settings.push(series.threads.clone());
        }
    }
    let plot = |title: &str, logarithmic, figures: &[Drawn]| {
        let mut lines = Vec::new();
        for (colour, server) in results.servers.iter().enumerate() {
            let of_server = results.of(colour, cell);
            for drawn in figures {
                let name = match drawn.name {
                    "" => server.name.clone(),
                    name => format!("{} {name}", server.name),
                };
                let of = |threads: &str| {
                    let series = of_server.iter().find(|it| it.threads == threads)?;
                    drawn.point(series)
                };
                lines.push(Line {
                    name,
                    colour,
                    stroke: drawn.stroke,
                    points: settings.iter().map(|threads| of(threads)).collect(),
                    everywhere: of("-"),
                });
            }
        }
        Plot {
            title: title.to_owned(),
            settings: settings.clone(),
            lines,
            logarithmic,
        }
    };
    let drawn = |name, stroke, of: fn(&Sample) -> f64| Drawn {
        name,
        stroke,
        of,
        with_interval: false,
    };
    let rate = Drawn {
        with_interval: true,
        ..drawn("", Stroke::Solid, |sample| sample.rate)
    };
    [
        plot("Throughput, requests a second", false, &[rate]),
        plot(
            "Latency, microseconds",
            true,
            &[
                drawn("p50", Stroke::Solid, |sample| sample.p50_us),
                drawn("p99", Stroke::Dashed, |sample| sample.p99_us),
                drawn("p99.9", Stroke::Dotted, |sample| sample.p999_us),
            ],
        ),
        plot(
            "Server CPU, microseconds per request",
            false,
            &[drawn("", Stroke::Solid, |sample| sample.server.cpu_us)],
        ),
    ]
}

/// Where the time goes, of the servers that tell.
fn stacks(results: &Results, cell: usize) -> Option<Stacks> {
    let mut bars = Vec::new();
    for (server, facts) in results.servers.iter().enumerate() {
        for series in results.of(server, cell) {
            if let Some(us) = series.steps_us() {
                let name = match &series.threads[..] {
                    "-" => facts.name.clone(),
                    threads => format!("{} {threads}", facts.name),
                };
                bars.push((name, us.to_vec()));
            }
        }
    }
    (!bars.is_empty()).then(|| Stacks {
        title: "Time by step, microseconds per request, by the server's clock".to_owned(),
        parts: STEPS.map(str::to_owned).to_vec(),
        bars,
    })
}

/// A figure as a line.
struct Drawn {
    /// Behind the server's name.
    name: &'static str,
    stroke: Stroke,
    of: fn(&Sample) -> f64,
    with_interval: bool,
}

impl Drawn {
    fn point(&self, series: &Series) -> Option<Point> {
        if series.samples.is_empty() {
            return None;
        }
        let interval = series.rate().filter(|_| self.with_interval);
        Some(Point {
            value: median_of(&series.samples, self.of),
            interval: interval.map(|interval| (interval.low, interval.high)),
        })
    }
}

fn table(results: &Results, cell: usize, page: &mut String) {
    page.push_str("<div class=\"scroll\"><table><thead><tr><th scope=\"col\">server</th><th scope=\"col\">threads</th>");
    for column in &FIGURES {
        let _ = write!(page, "<th scope=\"col\">{}</th>", escaped(column.title));
        if column.name == "rate" {
            page.push_str("<th scope=\"col\">&#177;</th>");
        }
    }
    page.push_str("<th scope=\"col\">bound by</th></tr></thead><tbody>");
    for (server, facts) in results.servers.iter().enumerate() {
        let best = results.sweet_spot(server, cell);
        for series in results.of(server, cell) {
            let is_best = best
                .as_ref()
                .is_some_and(|(_, it)| it.threads == series.threads);
            let (class, title) = match is_best {
                true => (
                    " class=\"best\"",
                    format!(" title=\"best: {}\"", escaped(&counted(&series.threads))),
                ),
                false => ("", String::new()),
            };
            let _ = write!(
                page,
                "<tr{class}{title}><td>{}</td><td>{}</td>",
                escaped(&facts.name),
                escaped(&series.threads)
            );
            for column in &FIGURES {
                let median = median_of(&series.samples, column.of);
                let text = match column.name {
                    "failure_rate" if median > 0.0 => format!("{:.2} %", median * 100.0),
                    _ => figure(median),
                };
                let _ = write!(page, "<td>{text}</td>");
                if column.name == "rate" {
                    let reach = series.rate().map(|rate| rate.high - rate.mean);
                    let _ = write!(page, "<td>{}</td>", reach.map_or("-".to_owned(), figure));
                }
            }
            let bound = series.bound().map_or("-".to_owned(), |it| it.by.short());
            let _ = write!(page, "<td>{}</td></tr>", escaped(&bound));
        }
    }
    page.push_str("</tbody></table></div>");
}

/// A day and time in UTC.
pub fn date(unix_seconds: u64) -> String {
    let (days, seconds) = (unix_seconds / 86_400, unix_seconds % 86_400);
    // Years of 365 days and their leap days, counted from 1970; few steps for any date that a clock shows.
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let (mut year, mut day) = (1970, days);
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in months {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    format!(
        "{year:04}-{month:02}-{:02} {:02}:{:02} UTC",
        day + 1,
        seconds / 3600,
        seconds / 60 % 60
    )
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::results;
    use super::*;

    /// Checks that every element is closed where it was opened, and that texts hold no bare signs.
    fn check_well_formed(page: &str) {
        let body = page.strip_prefix("<!DOCTYPE html>\n").unwrap();
        let mut open: Vec<&str> = Vec::new();
        let mut rest = body;
        while let Some(start) = rest.find('<') {
            assert!(!rest[..start].contains('>'), "{}", &rest[..start]);
            let end = rest[start..].find('>').expect("a tag ends") + start;
            let tag = &rest[start + 1..end];
            rest = &rest[end + 1..];
            assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name), "before {rest:.60}");
            } else if !tag.ends_with('/') {
                let name = tag.split(' ').next().unwrap();
                open.push(name);
                if name == "style" {
                    rest = &rest[rest.find("</style>").unwrap()..];
                }
            }
        }
        assert_eq!((open.len(), rest), (0, "\n"));
        for (place, _) in page.match_indices('&') {
            let entity = &page[place..page.len().min(place + 6)];
            let known = ["&lt;", "&gt;", "&amp;", "&quot;", "&#177;"];
            assert!(known.iter().any(|it| entity.starts_with(it)), "{entity}");
        }
    }

    #[test]
    fn the_page_is_well_formed_and_stands_alone() {
        let page = html(&results());
        check_well_formed(&page);
        assert!(page.contains("<h1>a &lt;b&gt; &amp; c</h1>"));
        for outside in ["http:", "https:", "url(", "@import", "<script", "src="] {
            assert!(!page.contains(outside), "{outside}");
        }
        // Three plots and the steps for each load, each with a title and a text of its own.
        assert_eq!(page.matches("role=\"img\"").count(), 8);
        assert!(page.contains("weft 2: read 1, parse 0.5, execute 0.25, encode 0.125, write 3."));
        let mut ids: Vec<&str> = page.split(" id=\"").skip(1).collect();
        ids.iter_mut()
            .for_each(|id| *id = id.split('"').next().unwrap());
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!((ids.len(), all), (16, 16));
        assert!(page.contains("By threads. weft: 1: 100k, 2: 200k. other: 1: 70k."));
    }

    #[test]
    fn a_server_without_settings_is_a_line_across() {
        let mut results = results();
        results.series[2].threads = "-".to_owned();
        let page = html(&results);
        check_well_formed(&page);
        assert!(page.contains("<title>other: 70k</title>"));
        results.series.clear();
        check_well_formed(&html(&results));
    }

    #[test]
    fn dates() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_793_000_000, "2026-10-26 07:33 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(date(seconds), text);
        }
    }
}
