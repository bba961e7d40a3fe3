//! What the options ask to be sent in turn, and what of it counts together.
//!
//! Owns the classes of requests and what reports call them. Does not send.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use super::command::Command;
use super::mix::{Action, Lines, Turn};
use super::monitor::{self, Reference};
use super::options::{Breakdown, Options};

/// Classes of the requests that are no commands of the user's.
pub const SETS: u16 = 0;
pub const GETS: u16 = 1;
pub const WAITS: u16 = 2;

/// The class of a SCAN that goes on, where the one that begins is 0.
pub const SCAN_GOES_ON: u16 = 1;

/// What is sent, and what it is called.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The commands in turn; at least one.
    pub turns: Vec<Turn>,
    /// By class.
    pub kinds: Vec<Kind>,
}

/// A class of requests. Kinds of one title share a line of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The line's: "Sets".
    pub title: String,
    /// The distribution's: "SET".
    pub name: String,
    /// Whether absent answers are misses.
    pub misses: bool,
    /// Whether bytes are told.
    pub bytes: bool,
    /// Whether requests of it are ever sent.
    pub sent: bool,
}

impl Workload {
    /// What the options ask for. The error is for the user.
    pub fn new(options: &Options) -> Result<Workload, String> {
        let mut workload = match &options.commands[..] {
            [] => Workload::sets_and_gets(options),
            _ => Workload::commands(options)?,
        };
        workload.turns.retain(|turn| turn.times > 0);
        match workload.kinds.len() < usize::from(u16::MAX) - 1 {
            true => Ok(workload),
            false => Err("too many commands".to_owned()),
        }
    }

    /// How many classes there are, with the one of requests that are in no report.
    pub fn classes(&self) -> usize {
        self.kinds.len() + 1
    }

    /// The class of requests that are in no report.
    pub fn unreported(&self) -> u16 {
        self.kinds.len() as u16
    }

    fn sets_and_gets(options: &Options) -> Workload {
        let get = match options.multi_key_get {
            0 => Action::Get,
            keys => Action::GetMany(keys),
        };
        let (sets, gets) = options.ratio;
        let (set_pattern, get_pattern) = options.key_patterns;
        let turn = |action, times, pattern, class| Turn {
            action,
            times,
            pattern,
            class,
        };
        let kind = |name: &str, misses, sent| Kind {
            title: format!("{name}s"),
            name: name.to_uppercase(),
            misses,
            bytes: name != "Wait",
            sent,
        };
        Workload {
            turns: vec![
                turn(Action::Set, sets, set_pattern, SETS),
                turn(get, gets, get_pattern, GETS),
            ],
            kinds: vec![
                kind("Set", false, true),
                kind("Get", true, true),
                kind("Wait", false, options.wait.is_some()),
            ],
        }
    }

    fn commands(options: &Options) -> Result<Workload, String> {
        let mut lines = Vec::new();
        if let Some(path) = &options.monitor {
            let (commands, total) = monitor::load(path)?;
            eprintln!(
                "Loaded {} monitor commands from {total} total lines",
                commands.len()
            );
            lines = commands;
        }
        let mut workload = Workload {
            turns: Vec::new(),
            kinds: Vec::new(),
        };
        for option in &options.commands {
            let turn = |action, class| Turn {
                action,
                times: option.ratio,
                pattern: option.pattern,
                class,
            };
            let shown = String::from_utf8_lossy(&option.text);
            let reference = monitor::reference(&option.text).filter(|_| options.monitor.is_some());
            match reference {
                Some(Reference::Any) => {
                    let commands = lines
                        .iter()
                        .map(|command| (command.clone(), workload.class_of_name(command)));
                    let lines = Lines {
                        commands: commands.collect(),
                        random: options.monitor_random,
                        next: AtomicUsize::new(0),
                    };
                    let class = lines.commands[0].1;
                    workload
                        .turns
                        .push(turn(Action::Lines(Arc::new(lines)), class));
                }
                Some(Reference::Line(number)) => {
                    let command = number.checked_sub(1).and_then(|index| lines.get(index));
                    let command = command.ok_or_else(|| {
                        format!(
                            "invalid monitor placeholder '{shown}' (valid range: __monitor_line1__ to \
                             __monitor_line{}__ or __monitor_line@__)",
                            lines.len()
                        )
                    })?;
                    let class = workload.class_of_name(command);
                    workload
                        .turns
                        .push(turn(Action::Command(command.clone()), class));
                }
                None => {
                    let command = Command::parse(&option.text)
                        .map_err(|error| format!("--command={shown}: {error}"))?;
                    let name = command.name();
                    let title = match options.breakdown {
                        _ if options.scan_steps_max.is_some() => format!("{name} 0s"),
                        Breakdown::Command => format!("{name}s"),
                        Breakdown::Line => shown.into_owned(),
                    };
                    let class = workload.add_kind(title, name.to_uppercase());
                    workload.turns.push(turn(Action::Command(command), class));
                }
            }
        }
        if options.scan_steps_max.is_some() {
            "SCAN 0".clone_into(&mut workload.kinds[0].name);
            workload.add_kind("Scan <cursor>s".to_owned(), "SCAN <cursor>".to_owned());
        }
        Ok(workload)
    }

    /// The class of all commands of a name that come from a file.
    fn class_of_name(&mut self, command: &Command) -> u16 {
        let title = format!("{}s", command.name());
        match self.kinds.iter().position(|kind| kind.title == title) {
            Some(class) => class as u16,
            None => self.add_kind(title, command.name().to_uppercase()),
        }
    }

    fn add_kind(&mut self, title: String, name: String) -> u16 {
        self.kinds.push(Kind {
            title,
            name,
            misses: false,
            bytes: true,
            sent: true,
        });
        (self.kinds.len() - 1) as u16
    }
}
