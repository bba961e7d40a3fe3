//! What a native run does: the workload and where it goes.
//!
//! Owns the description, its defaults and its checks. `options` makes one of a command line; anybody can make one in code.

use std::path::PathBuf;
use std::time::Duration;

use super::command::{Argument, Command, Part};
use super::keys::KeySpace;
use super::pace::{Arrivals, Pace, Think};
use super::values::Sizes;

/// A run of native mode.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// What the user calls it; may be empty.
    pub name: String,
    /// Where connections go, in turn. At least one.
    pub targets: Vec<Endpoint>,
    /// Who the client is, if a password says so.
    pub user: Option<Vec<u8>>,
    /// Its password.
    pub password: Option<Vec<u8>>,
    /// The database.
    pub database: u32,
    /// `HELLO 3` first.
    pub resp3: bool,
    /// Connections, of all threads together.
    pub connections: usize,
    /// How many requests of a connection may be under way. `None`: 1 in a closed loop, 1000 in an open one.
    pub pipeline: Option<u32>,
    /// Threads that drive the connections.
    pub threads: usize,
    /// When it ends.
    pub limit: Limit,
    /// What is sent in the first so much time is not recorded, and comes on top of the limit.
    pub warmup: Duration,
    /// When requests are sent.
    pub pace: Pace,
    /// A connection is opened again after so many units; 0: never.
    pub reconnect_every: u64,
    /// What random numbers start from.
    pub seed: u64,
    /// What is sent once before everything else.
    pub setup: Vec<Setup>,
    /// Whether every key is set once before everything else.
    pub fill: bool,
    /// What is sent. At least one.
    pub units: Vec<Unit>,
    /// The keys.
    pub keys: KeySpace,
    /// The sizes of the values.
    pub value_sizes: Sizes,
    /// Values carry their key and a checksum, and answers are looked at.
    pub verify: bool,
    /// The process whose use of the processors is reported.
    pub server_pid: Option<u32>,
    /// So long after the end of its time, a run waits for answers.
    pub drain: Duration,
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Host and port.
    Tcp(String, u16),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// After so many units; a command that is not part of a script is one.
    Requests(u64),
    /// After so much time.
    Time(Duration),
}

/// A command that is sent once before everything else.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The command. Captures nothing.
    pub command: Command,
    /// An error in answer to it does not matter.
    pub may_fail: bool,
}

/// Commands that are sent one after the other on one connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    /// Its name.
    pub name: String,
    /// How often it is drawn, against the others. At least 1.
    pub weight: u32,
    /// The commands. At least one.
    pub commands: Vec<Command>,
}

/// Requests under way on a connection in an open loop: enough that the server's delay delays no request.
const PIPELINE_OPEN: u32 = 1000;

/// More than makes sense anywhere.
pub const CONNECTIONS_MAX: usize = 1 << 20;
/// More than makes sense anywhere.
pub const THREADS_MAX: usize = 1024;
/// More than makes sense anywhere.
pub const PIPELINE_MAX: u32 = 1 << 20;
/// Units and commands of them are few: people have written them.
const UNITS_MAX: usize = 1000;
/// Commands of a unit. Names of captured fields are as many at most.
pub const COMMANDS_MAX: usize = 60;

impl Default for Spec {
    fn default() -> Spec {
        Spec {
            name: String::new(),
            targets: vec![Endpoint::Tcp("127.0.0.1".to_owned(), 6379)],
            user: None,
            password: None,
            database: 0,
            resp3: false,
            connections: 50,
            pipeline: None,
            threads: 1,
            limit: Limit::Time(Duration::from_secs(10)),
            warmup: Duration::ZERO,
            pace: Pace::Closed { think: Think::None },
            reconnect_every: 0,
            seed: 1,
            setup: Vec::new(),
            fill: false,
            units: Unit::sets_and_gets(1, 9),
            keys: KeySpace::default(),
            value_sizes: Sizes::Fixed(128),
            verify: false,
            server_pid: None,
            drain: Duration::from_secs(10),
        }
    }
}

impl Unit {
    /// One command by itself.
    pub fn single(command: Command, weight: u32) -> Unit {
        Unit {
            name: command.text.clone(),
            weight,
            commands: vec![command],
        }
    }

    /// `SET` and `GET` with these weights.
    pub fn sets_and_gets(sets: u32, gets: u32) -> Vec<Unit> {
        [("SET {key} {value}", sets), ("GET {key}", gets)]
            .into_iter()
            .filter(|(_, weight)| *weight > 0)
            .map(|(text, weight)| {
                let command = Command::parse(text).expect("the text is a command");
                Unit::single(command, weight)
            })
            .collect()
    }
}

impl Spec {
    /// Whether units consist of several commands, so that a connection works on one unit at a time.
    pub fn is_scripted(&self) -> bool {
        let several = |unit: &Unit| unit.commands.len() > 1;
        self.units.iter().any(several)
    }

    /// How many requests of a connection may be under way.
    pub fn window(&self) -> u32 {
        if self.is_scripted() {
            let commands = self.units.iter().map(|unit| unit.commands.len());
            return commands.max().unwrap_or(1) as u32;
        }
        match (self.pace, self.pipeline) {
            (Pace::Storm { .. }, _) => 1,
            (_, Some(pipeline)) => pipeline.max(1),
            (Pace::Open { .. }, None) => PIPELINE_OPEN,
            (Pace::Closed { .. }, None) => 1,
        }
    }

    /// The arrivals per second that are asked for, if any are.
    pub fn asked_rate(&self) -> Option<(f64, Arrivals)> {
        match self.pace {
            Pace::Closed { .. } => None,
            Pace::Open { rate, arrivals } | Pace::Storm { rate, arrivals } => {
                Some((rate, arrivals))
            }
        }
    }

    /// Whether it can be run. The error says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        let range = |name: &str, value: u64, most: u64| match (1..=most).contains(&value) {
            true => Ok(()),
            false => Err(format!("{name} is {value}, not from 1 to {most}")),
        };
        range(
            "the number of connections",
            self.connections as u64,
            CONNECTIONS_MAX as u64,
        )?;
        range(
            "the number of threads",
            self.threads as u64,
            THREADS_MAX as u64,
        )?;
        if let Some(pipeline) = self.pipeline {
            range("the pipeline", u64::from(pipeline), u64::from(PIPELINE_MAX))?;
        }
        range("the number of keys", self.keys.count, u64::MAX)?;
        if self.targets.is_empty() {
            return Err("there is no server to send to".to_owned());
        }
        if self.user.is_some() && self.password.is_none() {
            return Err("there is a user without a password".to_owned());
        }
        range(
            "the number of units",
            self.units.len() as u64,
            UNITS_MAX as u64,
        )?;
        if let Some((rate, _)) = self.asked_rate()
            && !(rate > 0.0 && rate <= 1e9)
        {
            return Err(format!(
                "the rate is {rate}, not above 0 and up to 1e9 per second"
            ));
        }
        if self.drain > Duration::from_secs(86_400) {
            return Err("the time to wait for answers is longer than a day".to_owned());
        }
        for setup in &self.setup {
            check_captured(std::slice::from_ref(&setup.command))?;
        }
        for unit in &self.units {
            check_unit(unit)?;
        }
        Ok(())
    }
}

fn check_unit(unit: &Unit) -> Result<(), String> {
    let count = unit.commands.len();
    if !(1..=COMMANDS_MAX).contains(&count) {
        return Err(format!(
            "unit '{}' has {count} commands, not from 1 to {COMMANDS_MAX}",
            unit.name
        ));
    }
    if unit.weight == 0 {
        return Err(format!("unit '{}' has the weight 0", unit.name));
    }
    check_captured(&unit.commands).map_err(|why| format!("unit '{}': {why}", unit.name))
}

/// Whether what is used has been captured before.
fn check_captured(commands: &[Command]) -> Result<(), String> {
    let mut known: Vec<&str> = Vec::new();
    for command in commands {
        for name in captured(command) {
            if !known.contains(&name) {
                return Err(format!(
                    "'{}' uses {{{name}}}, which no command before it captures",
                    command.text
                ));
            }
        }
        known.extend(command.captures.iter().map(|capture| capture.name.as_str()));
        if known.len() > COMMANDS_MAX {
            return Err(format!("more than {COMMANDS_MAX} fields are captured"));
        }
    }
    Ok(())
}

/// The names of what a command uses of earlier answers.
pub fn captured(command: &Command) -> impl Iterator<Item = &str> {
    command.arguments.iter().flat_map(|argument| {
        let (whole, parts): (Option<&str>, &[Part]) = match argument {
            Argument::Captured(name) => (Some(name), &[]),
            Argument::One(parts) => (None, parts),
            Argument::Keys(..) | Argument::Pairs(..) => (None, &[]),
        };
        let of_parts = parts.iter().filter_map(|part| match part {
            Part::Captured(name) => Some(name.as_str()),
            _ => None,
        });
        whole.into_iter().chain(of_parts)
    })
}

#[cfg(test)]
mod tests {
    use super::super::command::Capture;
    use super::*;

    #[test]
    fn what_is_used_must_have_been_captured() {
        let mut read = Command::parse("XREADGROUP GROUP g c STREAMS s >").unwrap();
        let ack = Command::parse("XACK s g {ids}").unwrap();
        let unit = |commands: Vec<Command>| Unit {
            name: "u".to_owned(),
            weight: 1,
            commands,
        };
        let mut spec = Spec {
            units: vec![unit(vec![read.clone(), ack.clone()])],
            ..Spec::default()
        };
        assert_eq!(
            spec.check().unwrap_err(),
            "unit 'u': 'XACK s g {ids}' uses {ids}, which no command before it captures"
        );
        read.captures.push(Capture::parse("ids = 0.1.*.0").unwrap());
        spec.units = vec![unit(vec![read, ack])];
        assert_eq!(spec.check(), Ok(()));
        assert_eq!(spec.window(), 2);
    }

    #[test]
    fn numbers_are_checked() {
        let check = |change: fn(&mut Spec)| {
            let mut spec = Spec::default();
            change(&mut spec);
            spec.check()
        };
        assert_eq!(check(|_| {}), Ok(()));
        assert_eq!(
            check(|spec| spec.connections = 0),
            Err("the number of connections is 0, not from 1 to 1048576".to_owned())
        );
        assert!(check(|spec| spec.user = Some(b"me".to_vec())).is_err());
        assert!(check(|spec| spec.units.clear()).is_err());
        assert!(
            check(|spec| spec.pace = Pace::Open {
                rate: 0.0,
                arrivals: Arrivals::Poisson
            })
            .is_err()
        );
    }
}
