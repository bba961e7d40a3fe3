//! What clients send: the commands in turn, and how each is written.
//!
//! Owns what all clients of a run have in common. Does not know when requests are sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fastrand::Rng;
use weft_resp::RequestWriter;

use super::cluster::Cluster;
use super::command::{Command, Piece, Word};
use super::keys::{KeySpace, Keys, Pattern};
use super::options::{Reconnect, Staircase, WaitOption};
use super::values::Values;
use crate::distribution::normal;
use crate::slots;

/// What all clients of a run have in common.
#[derive(Debug)]
pub struct Mix {
    /// The commands in turn.
    pub turns: Vec<Turn>,
    pub key_prefix: Vec<u8>,
    pub keys: KeySpace,
    pub values: Values,
    /// Seconds from and to.
    pub expiry: Option<(u64, u64)>,
    /// Where in the value is written and read; 0: all of it.
    pub offset: usize,
    pub limit: Limit,
    /// A connection is opened again after so many requests; 0: never.
    pub reconnect_interval: u64,
    /// What happens when a connection broke.
    pub reconnect: Option<Reconnect>,
    /// Nanoseconds between two requests of a connection; 0: no limit.
    pub interval_ns: u64,
    pub wait: Option<WaitOption>,
    pub staircase: Option<Staircase>,
    /// Nanoseconds between the openings of two connections of a thread, from and to.
    pub start_jitter_ns: (u64, u64),
    /// SCAN goes on where its last answer says, at most so often; 0: to the end.
    pub scan_steps_max: Option<u64>,
    pub cluster: Option<Cluster>,
    /// The class of requests that are in no report.
    pub unreported: u16,
    /// Whether what comes of each client is told apart.
    pub by_client: bool,
}

/// When a client has sent enough.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// After so many requests.
    Requests(u64),
    /// After so many nanoseconds.
    Time(u64),
}

/// A command, how often it is sent before the next one's turn, and on which keys.
#[derive(Clone, Debug)]
pub struct Turn {
    pub action: Action,
    /// At least 1.
    pub times: u32,
    pub pattern: Pattern,
    pub class: u16,
}

/// What is sent.
#[derive(Clone, Debug)]
pub enum Action {
    Set,
    Get,
    /// Of so many keys.
    GetMany(u32),
    Command(Command),
    Lines(Arc<Lines>),
}

/// Commands from a file, for all clients together.
#[derive(Debug)]
pub struct Lines {
    /// With their classes; at least one.
    pub commands: Vec<(Command, u16)>,
    /// Drawn rather than taken in order.
    pub random: bool,
    pub next: AtomicUsize,
}

impl Lines {
    /// The next command.
    pub fn next(&self, random: &mut Rng) -> &(Command, u16) {
        let index = match self.random {
            true => random.usize(..self.commands.len()),
            // Relaxed: the number stands for itself.
            false => self.next.fetch_add(1, Ordering::Relaxed) % self.commands.len(),
        };
        &self.commands[index]
    }
}

impl Action {
    /// Whether a key is drawn for it.
    pub fn has_key(&self) -> bool {
        match self {
            Action::Set | Action::Get | Action::GetMany(_) => true,
            Action::Command(command) => command.has_key(),
            Action::Lines(_) => false,
        }
    }
}

/// Puts requests together.
#[derive(Debug, Default)]
pub struct Writer {
    key: Vec<u8>,
    /// For the word that is being put together.
    word: Vec<u8>,
}

impl Writer {
    /// Appends a request on the key of this number; further keys come from `keys`. Returns its class if that is another
    /// one than the turn's.
    #[inline]
    pub fn write(
        &mut self,
        mix: &Mix,
        action: &Action,
        key: u64,
        keys: &mut Keys,
        random: &mut Rng,
        out: &mut Vec<u8>,
    ) -> Option<u16> {
        let mut writer = RequestWriter::new(out);
        match action {
            Action::Set => {
                self.set_key(mix, key);
                self.write_set(mix, key, random, &mut writer);
            }
            Action::Get => {
                self.set_key(mix, key);
                if mix.offset == 0 {
                    writer.begin(2);
                    writer.arg(b"GET");
                    writer.arg(&self.key);
                } else {
                    writer.begin(4);
                    writer.arg(b"GETRANGE");
                    writer.arg(&self.key);
                    writer.arg_integer(mix.offset as i64);
                    writer.arg(b"-1");
                }
            }
            Action::GetMany(count) => {
                writer.begin(1 + *count as usize);
                writer.arg(b"MGET");
                let mut key = key;
                for number in 0..*count {
                    if number > 0 {
                        key = keys.next(random);
                    }
                    self.set_key(mix, key);
                    writer.arg(&self.key);
                }
            }
            Action::Command(command) => self.write_command(mix, command, key, random, &mut writer),
            Action::Lines(lines) => {
                let (command, class) = lines.next(random);
                self.write_command(mix, command, key, random, &mut writer);
                return Some(*class);
            }
        }
        None
    }

    fn write_set(&self, mix: &Mix, key: u64, random: &mut Rng, writer: &mut RequestWriter<'_>) {
        if mix.offset > 0 {
            writer.begin(4);
            writer.arg(b"SETRANGE");
            writer.arg(&self.key);
            writer.arg_integer(mix.offset as i64);
        } else if let Some((from, to)) = mix.expiry {
            writer.begin(4);
            writer.arg(b"SETEX");
            writer.arg(&self.key);
            writer.arg_integer(random.u64(from..=to) as i64);
        } else {
            writer.begin(3);
            writer.arg(b"SET");
            writer.arg(&self.key);
        }
        writer.arg(mix.values.next(key, random));
    }

    fn write_command(
        &mut self,
        mix: &Mix,
        command: &Command,
        key: u64,
        random: &mut Rng,
        writer: &mut RequestWriter<'_>,
    ) {
        self.set_key(mix, key);
        writer.begin(command.words.len());
        for word in &command.words {
            match word {
                Word::Text(text) => writer.arg(text),
                Word::Key => writer.arg(&self.key),
                Word::Data => writer.arg(mix.values.next(key, random)),
                Word::Mixed(pieces) => {
                    self.put_together(mix, pieces, key, random);
                    writer.arg(&self.word);
                }
            }
        }
    }

    fn put_together(&mut self, mix: &Mix, pieces: &[Piece], key: u64, random: &mut Rng) {
        self.word.clear();
        for piece in pieces {
            self.word.extend_from_slice(match piece {
                Piece::Text(text) => text,
                Piece::Key => &self.key,
                Piece::Data => mix.values.next(key, random),
            });
        }
    }

    fn set_key(&mut self, mix: &Mix, number: u64) {
        self.key.clear();
        self.key.extend_from_slice(&mix.key_prefix);
        self.key
            .extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    }

    /// The slot of a request on the key of this number; `None`: it has no key.
    pub fn slot(&mut self, mix: &Mix, action: &Action, key: u64, random: &mut Rng) -> Option<u16> {
        self.set_key(mix, key);
        let Action::Command(command) = action else {
            return action.has_key().then(|| slots::slot(&self.key));
        };
        for word in &command.words {
            match word {
                Word::Key => return Some(slots::slot(&self.key)),
                Word::Mixed(pieces) if pieces.contains(&Piece::Key) => {
                    self.put_together(mix, pieces, key, random);
                    return Some(slots::slot(&self.word));
                }
                _ => {}
            }
        }
        None
    }
}

/// Appends a WAIT.
pub fn write_wait(wait: &WaitOption, random: &mut Rng, out: &mut Vec<u8>) {
    let mut writer = RequestWriter::new(out);
    writer.begin(3);
    writer.arg(b"WAIT");
    let (from, to) = wait.replicas;
    writer.arg_integer(random.u64(from..=to) as i64);
    // Nearly all of the normal distribution lies within three standard deviations.
    let (from, to) = (wait.timeout.0 as f64, wait.timeout.1 as f64);
    let drawn = f64::midpoint(from, to) + (to - from) / 6.0 * normal(random);
    writer.arg_integer(drawn.round().clamp(from, to) as i64);
}
