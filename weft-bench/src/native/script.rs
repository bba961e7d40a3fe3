//! Scripts: commands that are sent before everything else, and units of several commands.
//!
//! Owns the form of the file. A line is a command as redis-cli takes it, with braces (`command`). Spaces at the beginning of a
//! line mean nothing.
//!
//! ```text
//!  # a remark
//!  setup                                          what is sent once, in this order
//!    - XGROUP CREATE jobs workers $ MKSTREAM      with a dash in front an error does not matter
//!  unit work weight 3                             a name, and how often it is drawn (1 if that is not said)
//!    XREADGROUP GROUP workers c{connection} COUNT 10 STREAMS jobs >
//!      -> ids = 0.1.*.0                           of the answer to the line before: a name, and the path to the fields
//!    XACK jobs workers {ids}
//! ```

use super::command::{Capture, Command};
use super::spec::{Setup, Unit};

/// What a script says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    /// What is sent once.
    pub setup: Vec<Setup>,
    /// What is sent over and over. At least one.
    pub units: Vec<Unit>,
}

/// Reads a script. The error names the line.
pub fn parse(text: &str) -> Result<Script, String> {
    let mut script = Script::default();
    let mut section = Section::None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        read_line(line, &mut script, &mut section)
            .map_err(|why| format!("line {}: {why}", index + 1))?;
    }
    if script.units.is_empty() {
        return Err("there is no unit: a line such as 'unit work' begins one".to_owned());
    }
    if let Some(unit) = script.units.iter().find(|unit| unit.commands.is_empty()) {
        return Err(format!("unit '{}' has no command", unit.name));
    }
    Ok(script)
}

/// Where the lines belong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    None,
    Setup,
    Unit,
}

fn read_line(line: &str, script: &mut Script, section: &mut Section) -> Result<(), String> {
    if let Some(capture) = line.strip_prefix("->") {
        let command = match section {
            Section::Unit => script
                .units
                .last_mut()
                .and_then(|unit| unit.commands.last_mut()),
            _ => None,
        };
        let command = command.ok_or("a capture belongs behind a command of a unit")?;
        command.captures.push(Capture::parse(capture)?);
        return Ok(());
    }
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    match &words[..] {
        ["setup"] => *section = Section::Setup,
        ["unit", name] => {
            script.units.push(unit(name, 1));
            *section = Section::Unit;
        }
        ["unit", name, "weight", weight] => {
            let weight = weight
                .parse()
                .ok()
                .filter(|&weight: &u32| weight > 0)
                .ok_or_else(|| format!("'{weight}' is no weight: a whole number above 0"))?;
            script.units.push(unit(name, weight));
            *section = Section::Unit;
        }
        ["unit", ..] => {
            return Err("a unit begins with 'unit NAME' or 'unit NAME weight N'".to_owned());
        }
        _ => match section {
            Section::None => {
                return Err("a command belongs behind 'setup' or 'unit NAME'".to_owned());
            }
            Section::Setup => {
                let (text, may_fail) = match line.strip_prefix('-') {
                    Some(text) => (text, true),
                    None => (line, false),
                };
                script.setup.push(Setup {
                    command: Command::parse(text)?,
                    may_fail,
                });
            }
            Section::Unit => {
                let unit = script.units.last_mut().ok_or("there is no unit")?;
                unit.commands.push(Command::parse(line)?);
            }
        },
    }
    Ok(())
}

fn unit(name: &str, weight: u32) -> Unit {
    Unit {
        name: name.to_owned(),
        weight,
        commands: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_have_a_setup_and_units() {
        let script = parse(
            "# jobs\nsetup\n  - XGROUP CREATE jobs workers $ MKSTREAM\n  SET a 1\n\nunit work weight 3\n  \
             XREADGROUP GROUP workers c{connection} STREAMS jobs >\n    -> ids = 0.1.*.0\n  XACK jobs workers {ids}\n\
             unit add\n  XADD jobs * f {value}\n",
        )
        .unwrap();
        assert_eq!(script.setup.len(), 2);
        assert!(script.setup[0].may_fail && !script.setup[1].may_fail);
        assert_eq!(script.setup[0].command.name(), "XGROUP");
        let [work, add] = &script.units[..] else {
            panic!("{script:?}");
        };
        assert_eq!((work.name.as_str(), work.weight), ("work", 3));
        assert_eq!(work.commands.len(), 2);
        assert_eq!(
            work.commands[0].captures,
            [Capture::parse("ids = 0.1.*.0").unwrap()]
        );
        assert_eq!((add.name.as_str(), add.weight), ("add", 1));
    }

    #[test]
    fn mistakes_name_their_line() {
        for (text, says) in [
            (
                "",
                "there is no unit: a line such as 'unit work' begins one",
            ),
            ("unit a\n", "unit 'a' has no command"),
            (
                "SET a 1\n",
                "line 1: a command belongs behind 'setup' or 'unit NAME'",
            ),
            (
                "unit a\n-> b\n",
                "line 2: a capture belongs behind a command of a unit",
            ),
            (
                "\nunit a weight 0\nPING\n",
                "line 2: '0' is no weight: a whole number above 0",
            ),
            (
                "unit\n",
                "line 1: a unit begins with 'unit NAME' or 'unit NAME weight N'",
            ),
            (
                "unit a\nGET {\n",
                "line 2: a brace is not closed; a brace that stands for itself is written {{",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err(), says, "{text}");
        }
    }
}
