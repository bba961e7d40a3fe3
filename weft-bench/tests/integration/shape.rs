//! The shape of a report: its text with the figures taken out.
//!
//! Numbers become `#`, with their decimals; runs of spaces become one; lines that are then the same as the one before are
//! left out, since how many lines a distribution has depends on the figures. Progress is left out altogether.

/// The shape of what a program printed.
pub fn shape(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.split('\n') {
        let line = masked(&without_progress(line));
        if line.is_empty() || lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    lines.join("\n")
}

/// What stays visible of a line that is printed over and over.
fn without_progress(line: &str) -> String {
    let parts: Vec<&str> = line
        .split('\r')
        .filter(|part| !part.contains("(overall:") && !part.trim().is_empty())
        .collect();
    parts.join("\\r")
}

fn masked(line: &str) -> String {
    let mut shape = String::new();
    let mut rest = line.trim_end();
    while let Some(first) = rest.chars().next() {
        let digits =
            |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if first.is_ascii_digit() {
            rest = &rest[digits(rest)..];
            shape.push('#');
            if let Some(decimals) = rest.strip_prefix('.').map(digits)
                && decimals > 0
            {
                shape.push('.');
                shape.extend(std::iter::repeat_n('#', decimals));
                rest = &rest[1 + decimals..];
            }
        } else {
            if first != ' ' || !shape.ends_with(' ') {
                shape.push(first);
            }
            rest = &rest[first.len_utf8()..];
        }
    }
    // A rate over no time at all.
    shape.replace(" inf ", " #.## ")
}

#[test]
fn figures_are_taken_out_and_texts_stay() {
    let text = " \rGET: rps=0.0 (overall: -nan) avg_msec=-nan (overall: -nan)\r       \rGET: 12.50 requests per second, p50=0.6 msec\n\
        0.000% <= 0.103 milliseconds (cumulative count 0)\n50.000% <= 10.103 milliseconds (cumulative count 12)\n\n\n   a   12\n";
    assert_eq!(
        shape(text),
        "GET: #.## requests per second, p#=#.# msec\n#.###% <= #.### milliseconds (cumulative count #)\n\n\n a #\n"
    );
}
