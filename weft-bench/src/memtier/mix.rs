//! What a client sends: its commands in turn, each as often as its ratio says, until it has sent enough.
//!
//! Owns the state of every client of a thread. A client is a connection. Invariant: what client K sends depends on its
//! seed only, not on when its answers come.

use std::sync::{Arc, OnceLock};

use fastrand::Rng;
use weft_resp::RequestWriter;
use weft_rope::Output;

use super::command::{Command, Piece, Word};
use super::keys::{KeySpace, Keys, Pattern};
use super::values::Values;
use crate::load::{Asked, Next, Workload};

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
    /// Nanoseconds between two requests of a connection; 0: no limit.
    pub interval_ns: u64,
    /// When the time is over; set by the first client that asks.
    pub end_ns: OnceLock<u64>,
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
}

/// The clients of one thread.
#[derive(Debug)]
pub struct Clients {
    mix: Arc<Mix>,
    threads: usize,
    clients: Vec<Client>,
    /// For the word that is being put together.
    word: Vec<u8>,
    key: Vec<u8>,
}

#[derive(Debug)]
struct Client {
    random: Rng,
    /// One for each turn.
    keys: Vec<Keys>,
    turn: usize,
    /// How often the command of the turn is still to be sent.
    left_of_turn: u32,
    sent: u64,
    sent_on_connection: u64,
    due_ns: u64,
    /// Where in the interval between two requests its first one lies, from 0 to 1: connections at the same rate do not
    /// all send at once.
    phase: f64,
}

impl Clients {
    /// Those of the `total` clients that belong to thread `thread` of `threads`; `random` gives each its seed.
    pub fn new(
        mix: &Arc<Mix>,
        thread: usize,
        threads: usize,
        total: usize,
        mut random: impl FnMut() -> Rng,
    ) -> Clients {
        let client = |number: usize| Client {
            random: random(),
            keys: mix
                .turns
                .iter()
                .map(|turn| Keys::new(&mix.keys, turn.pattern, number as u64, total as u64))
                .collect(),
            turn: 0,
            left_of_turn: mix.turns[0].times,
            sent: 0,
            sent_on_connection: 0,
            due_ns: 0,
            phase: number as f64 / total as f64,
        };
        Clients {
            mix: Arc::clone(mix),
            threads,
            clients: (thread..total).step_by(threads).map(client).collect(),
            word: Vec::new(),
            key: Vec::new(),
        }
    }
}

/// So far a connection may fall behind its rate and make up for it.
const DEBT_NS_MAX: u64 = 100_000_000;

impl Workload for Clients {
    fn next(&mut self, asked: &Asked, out: &mut Output) -> Next {
        let mix = &*self.mix;
        let client = &mut self.clients[asked.connection / self.threads];
        let enough = match mix.limit {
            Limit::Requests(requests) => client.sent >= requests,
            Limit::Time(time_ns) => {
                asked.now_ns >= *mix.end_ns.get_or_init(|| asked.now_ns + time_ns)
            }
        };
        if enough {
            return Next::Finished;
        }
        if asked.fresh {
            client.sent_on_connection = 0;
        }
        if mix.reconnect_interval > 0 && client.sent_on_connection >= mix.reconnect_interval {
            return if asked.quiet {
                Next::Reconnect
            } else {
                Next::Idle
            };
        }
        if mix.interval_ns > 0 {
            if client.sent == 0 && client.due_ns == 0 {
                client.due_ns = asked.now_ns + (mix.interval_ns as f64 * client.phase) as u64;
            }
            if asked.now_ns < client.due_ns {
                return Next::At(client.due_ns);
            }
            let oldest = asked.now_ns.saturating_sub(DEBT_NS_MAX);
            client.due_ns = client.due_ns.max(oldest) + mix.interval_ns;
        }
        let turn = &mix.turns[client.turn];
        let keys = &mut client.keys[client.turn];
        let mut request = Request {
            mix,
            keys,
            random: &mut client.random,
            key: &mut self.key,
            word: &mut self.word,
        };
        request.write(&turn.action, out.tail());
        client.sent += 1;
        client.sent_on_connection += 1;
        client.left_of_turn -= 1;
        if client.left_of_turn == 0 {
            client.turn = (client.turn + 1) % mix.turns.len();
            client.left_of_turn = mix.turns[client.turn].times;
        }
        Next::Requests {
            count: 1,
            class: turn.class,
        }
    }
}

/// The request that is being written.
struct Request<'a> {
    mix: &'a Mix,
    keys: &'a mut Keys,
    random: &'a mut Rng,
    key: &'a mut Vec<u8>,
    word: &'a mut Vec<u8>,
}

impl Request<'_> {
    fn write(&mut self, action: &Action, out: &mut Vec<u8>) {
        let mut writer = RequestWriter::new(out);
        match action {
            Action::Set => self.set(&mut writer),
            Action::Get => {
                self.draw_key();
                if self.mix.offset == 0 {
                    writer.begin(2);
                    writer.arg(b"GET");
                    writer.arg(self.key);
                } else {
                    writer.begin(4);
                    writer.arg(b"GETRANGE");
                    writer.arg(self.key);
                    writer.arg_integer(self.mix.offset as i64);
                    writer.arg(b"-1");
                }
            }
            Action::GetMany(count) => {
                writer.begin(1 + *count as usize);
                writer.arg(b"MGET");
                for _ in 0..*count {
                    self.draw_key();
                    writer.arg(self.key);
                }
            }
            Action::Command(command) => self.command(command, &mut writer),
        }
    }

    fn set(&mut self, writer: &mut RequestWriter<'_>) {
        let key = self.draw_key();
        let value = self.mix.values.next(key, self.random);
        if self.mix.offset > 0 {
            writer.begin(4);
            writer.arg(b"SETRANGE");
            writer.arg(self.key);
            writer.arg_integer(self.mix.offset as i64);
        } else if let Some((from, to)) = self.mix.expiry {
            writer.begin(4);
            writer.arg(b"SETEX");
            writer.arg(self.key);
            writer.arg_integer(self.random.u64(from..=to) as i64);
        } else {
            writer.begin(3);
            writer.arg(b"SET");
            writer.arg(self.key);
        }
        writer.arg(value);
    }

    fn command(&mut self, command: &Command, writer: &mut RequestWriter<'_>) {
        let key = if command.has_key() {
            self.draw_key()
        } else {
            self.mix.keys.minimum
        };
        writer.begin(command.words.len());
        for word in &command.words {
            match word {
                Word::Text(text) => writer.arg(text),
                Word::Key => writer.arg(self.key),
                Word::Data => writer.arg(self.mix.values.next(key, self.random)),
                Word::Mixed(pieces) => {
                    self.word.clear();
                    for piece in pieces {
                        self.word.extend_from_slice(match piece {
                            Piece::Text(text) => text,
                            Piece::Key => self.key,
                            Piece::Data => self.mix.values.next(key, self.random),
                        });
                    }
                    writer.arg(self.word);
                }
            }
        }
    }

    /// Draws the next key: its number; its text is in `key` then.
    fn draw_key(&mut self) -> u64 {
        let number = self.keys.next(self.random);
        self.key.clear();
        self.key.extend_from_slice(&self.mix.key_prefix);
        self.key
            .extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        number
    }
}
