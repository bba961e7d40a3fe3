//! The sample configuration file, rendered from the table: every parameter that is in effect, explained, with its default.
//!
//! Lines that say a default are commented out. Knows nothing but the rows.

use super::reference::values;
use super::table::{Access, Parameter, ParameterId, SECTIONS, Stage};

/// Columns of a line.
const WIDTH: usize = 100;

/// What the sample sets other than to its default, and why.
const SET: &[(ParameterId, &str, &str)] = &[(
    ParameterId::Bind,
    "127.0.0.1 -::1",
    "Here the server can only be reached from this machine. Whoever names other addresses should set a password first.",
)];

const HEAD: &[&str] = &[
    "Configuration of a Weft server. It is given to the server as its first argument: `weft-server /etc/weft/weft.conf`. \
     Options on the command line (`--port 7000`) override it. Files of Redis and Valkey work in its place.",
    "",
    "A line is the name of a parameter and its values. Lines that begin with `#` are comments; below they hold the defaults, \
     so that removing the `#` changes nothing. Values with blanks or special characters stand in quotes, where \\n, \\\" and \
     \\x41 mean what they do in C. If a name stands twice, the last line wins, except where the values belong to \
     different parts.",
    "",
    "Bytes can be written with a unit, in small or capital letters: 1k is 1000 bytes and 1kb is 1024, 1m is 1000000 and 1mb is \
     1048576, 1g is 1000000000 and 1gb is 1073741824.",
    "",
    "`include /etc/weft/local.conf` reads another file at that place; with `*` and `?` in the name, all files that match.",
    "",
    "CONFIG GET shows what is in force, CONFIG SET changes it while the server runs, and CONFIG REWRITE writes the changes \
     into this file, keeping its comments. All other parameters that are accepted are listed in configuration.md.",
];

/// The file.
pub fn sample_file() -> String {
    let mut file = String::new();
    for paragraph in HEAD {
        comment(&mut file, paragraph);
    }
    let mut sections = SECTIONS.iter().peekable();
    let mut title = None;
    for id in ParameterId::ALL {
        if let Some((_, text)) = sections.next_if(|(first, _)| first == id) {
            title = Some(*text);
        }
        let parameter = id.parameter();
        if parameter.stage != Stage::Live {
            continue;
        }
        if let Some(text) = title.take() {
            file += &format!("\n# {text}\n# {}\n", "=".repeat(text.len()));
        }
        file.push('\n');
        entry(&mut file, *id, parameter);
    }
    file
}

fn entry(file: &mut String, id: ParameterId, parameter: &Parameter) {
    comment(file, parameter.summary);
    let changes = match parameter.access {
        Access::Mutable => "Can be changed while the server runs.",
        Access::Immutable => "Fixed at the start.",
        Access::Protected => {
            "Can be changed while the server runs where enable-protected-configs allows it."
        }
    };
    comment(
        file,
        &format!("Values: {}. {changes}", values(parameter.kind)),
    );
    let set = SET.iter().find(|(set, ..)| *set == id);
    if let Some((_, _, why)) = set {
        comment(file, why);
    }
    let default = match parameter.default {
        "" => "\"\"".to_owned(),
        template if template.contains('{') => format!("\"{template}\""),
        plain => plain.to_owned(),
    };
    match set {
        Some((_, value, _)) => {
            comment(file, &format!("Default: {default}"));
            *file += &format!("{} {value}\n", parameter.name);
        }
        None => *file += &format!("# {} {default}\n", parameter.name),
    }
}

/// Appends a text as comment lines.
fn comment(file: &mut String, text: &str) {
    let mut line = String::from("#");
    for word in text.split(' ') {
        if line.len() > 1 && line.len() + 1 + word.len() > WIDTH {
            *file += &line;
            file.push('\n');
            line = String::from("#");
        }
        if !word.is_empty() {
            line.push(' ');
            line += word;
        }
    }
    *file += &line;
    file.push('\n');
}
