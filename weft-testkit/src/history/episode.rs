//! Plays episodes over many connections and records what was seen.
//!
//! Every connection has a thread, and every thread its own records: while they record, threads share nothing but a clock.
//! The moment before sending is read before the first byte of a batch goes out, the moment of an answer after the bytes
//! that completed it were read.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::load::{Draw, Shape, Text};
use super::record::{Answer, BLOCK, Key, NEVER, Operation, Record};
use crate::error::KitError;
use crate::wire::{Wire, write_request};

/// An answer that takes longer is a failure of the run.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes read at once.
const READ_BYTES: usize = 64 * 1024;
/// The paddings of long values: within the key's entry, in an allocation of its own, as a rope.
const PADDINGS: [usize; 4] = [0, 40, 1_000, 70_000];

/// What all connections do next.
#[derive(Debug)]
pub struct Episode {
    /// The shape of its load.
    pub shape: &'static Shape,
    /// What everything random comes from.
    pub seed: u64,
    /// What its keys are called, before their number.
    pub prefix: String,
}

struct Task {
    episode: Arc<Episode>,
    begin: Arc<Barrier>,
    connections: usize,
}

struct Player {
    tasks: Sender<Task>,
    thread: JoinHandle<()>,
}

/// Connections to a server, ready to play.
pub struct Players {
    players: Vec<Player>,
    seen: Receiver<Result<Vec<Record>, KitError>>,
}

impl Players {
    /// Connects so many times.
    pub fn connect(address: (String, u16), connections: usize) -> Result<Self, KitError> {
        let (send, seen) = channel();
        let clock = Instant::now();
        let mut players = Vec::new();
        for number in 0..connections {
            let (tasks, received) = channel();
            let mut connection = Connection::new(address.clone(), number as u32, clock)?;
            let send = send.clone();
            let thread = std::thread::Builder::new()
                .name(format!("connection-{number}"))
                .spawn(move || {
                    for Task {
                        episode,
                        begin,
                        connections,
                    } in received
                    {
                        begin.wait();
                        let records = connection.play(&episode, number, connections);
                        connection.number += connections as u32;
                        if send.send(records).is_err() {
                            return;
                        }
                    }
                })
                .map_err(KitError::io("start a thread"))?;
            players.push(Player { tasks, thread });
        }
        Ok(Players { players, seen })
    }

    /// Plays one episode to its end and returns all that was seen.
    pub fn play(&self, episode: Episode) -> Result<Vec<Record>, KitError> {
        let active = self.players.len().min(episode.shape.connections);
        let episode = Arc::new(episode);
        let begin = Arc::new(Barrier::new(active));
        for player in &self.players[..active] {
            let task = Task {
                episode: Arc::clone(&episode),
                begin: Arc::clone(&begin),
                connections: self.players.len(),
            };
            if player.tasks.send(task).is_err() {
                return Err(KitError::Unexpected(
                    "a connection's thread ended".to_owned(),
                ));
            }
        }
        let mut history = Vec::new();
        for _ in 0..active {
            match self.seen.recv() {
                Ok(records) => history.extend(records?),
                Err(_) => {
                    return Err(KitError::Unexpected(
                        "a connection's thread ended".to_owned(),
                    ));
                }
            }
        }
        Ok(history)
    }
}

impl Drop for Players {
    fn drop(&mut self) {
        for player in self.players.drain(..) {
            drop(player.tasks);
            // A thread that panicked has said so.
            let _ = player.thread.join();
        }
    }
}

struct Connection {
    address: (String, u16),
    /// Its number in records: a new one whenever it is made anew, and in every episode.
    number: u32,
    stream: TcpStream,
    clock: Instant,
    received: Vec<u8>,
    buffer: Vec<u8>,
}

impl Connection {
    fn new(address: (String, u16), number: u32, clock: Instant) -> Result<Self, KitError> {
        Ok(Connection {
            stream: open(&address)?,
            address,
            number,
            clock,
            received: Vec::new(),
            buffer: vec![0; READ_BYTES],
        })
    }

    fn play(
        &mut self,
        episode: &Episode,
        number: usize,
        connections: usize,
    ) -> Result<Vec<Record>, KitError> {
        let mut draw = Draw::new(episode.shape, episode.seed, number, connections);
        let mut records = Vec::with_capacity(episode.shape.operations + episode.shape.pipeline);
        while records.len() < episode.shape.operations {
            let mut batch = draw.batch();
            for operation in &mut batch {
                self.look_at_guard(operation, episode, &mut records)?;
            }
            let mut bytes = Vec::new();
            for operation in &batch {
                for request in requests(operation, episode) {
                    write_request(&mut bytes, &request);
                }
            }
            let dies = draw.dies();
            let rest = draw.rest_us();
            if rest > 0 {
                std::thread::sleep(Duration::from_micros(rest));
            }
            let invoked_ns = self.now_ns();
            self.stream
                .write_all(&bytes)
                .map_err(KitError::io("send a request"))?;
            for operation in batch {
                let answer = if dies {
                    None
                } else {
                    let reply = self.last_reply(&operation)?;
                    Some(answer(&operation, &reply, episode.shape.text)?)
                };
                let returned_ns = answer.as_ref().map_or(NEVER, |_| self.now_ns());
                records.push(Record {
                    connection: self.number,
                    operation,
                    answer,
                    invoked_ns,
                    returned_ns,
                    begun_before: false,
                });
            }
            if dies {
                self.stream = open(&self.address)?;
                self.received.clear();
                self.number += connections as u32;
            }
        }
        Ok(records)
    }

    /// Watches the keys that guard a transaction and reads what they hold.
    fn look_at_guard(
        &mut self,
        operation: &mut Operation,
        episode: &Episode,
        records: &mut Vec<Record>,
    ) -> Result<(), KitError> {
        let Operation::Transaction { guard, .. } = operation else {
            return Ok(());
        };
        if guard.is_empty() {
            return Ok(());
        }
        let look = Operation::GetMany(guard.iter().map(|(key, _)| *key).collect());
        let mut request = words(&look, episode);
        let mut bytes = Vec::new();
        request[0] = b"WATCH".to_vec();
        write_request(&mut bytes, &request);
        request[0] = b"MGET".to_vec();
        write_request(&mut bytes, &request);
        let invoked_ns = self.now_ns();
        self.stream
            .write_all(&bytes)
            .map_err(KitError::io("send a request"))?;
        self.reply()?;
        let reply = self.reply()?;
        let seen = answer(&look, &reply, episode.shape.text)?;
        if let Answer::Values(values) = &seen {
            for (place, value) in guard.iter_mut().zip(values) {
                place.1 = *value;
            }
        }
        records.push(Record {
            connection: self.number,
            operation: look,
            answer: Some(seen),
            invoked_ns,
            returned_ns: self.now_ns(),
            begun_before: false,
        });
        Ok(())
    }

    /// The reply that tells what came of an operation.
    fn last_reply(&mut self, operation: &Operation) -> Result<Wire, KitError> {
        if let Operation::Transaction { parts, .. } = operation {
            for _ in 0..=parts.len() {
                let reply = self.reply()?;
                if !matches!(reply, Wire::Simple(_)) {
                    return Ok(reply);
                }
            }
        }
        self.reply()
    }

    fn reply(&mut self) -> Result<Wire, KitError> {
        loop {
            if let Some((reply, length)) = Wire::scan_first(&self.received) {
                self.received.drain(..length);
                return Ok(reply);
            }
            let count = self
                .stream
                .read(&mut self.buffer)
                .map_err(KitError::io("wait for a reply"))?;
            if count == 0 {
                return Err(KitError::Unexpected(
                    "the server closed a connection".to_owned(),
                ));
            }
            self.received.extend_from_slice(&self.buffer[..count]);
        }
    }

    fn now_ns(&self) -> u64 {
        self.clock.elapsed().as_nanos() as u64
    }
}

fn open(address: &(String, u16)) -> Result<TcpStream, KitError> {
    let stream = TcpStream::connect((address.0.as_str(), address.1))
        .map_err(KitError::io("connect to the server"))?;
    stream
        .set_nodelay(true)
        .and_then(|()| stream.set_read_timeout(Some(ANSWER_TIMEOUT)))
        .map_err(KitError::io("set up a connection"))?;
    Ok(stream)
}

fn requests(operation: &Operation, episode: &Episode) -> Vec<Vec<Vec<u8>>> {
    operation.requests(
        &|key: Key| format!("{}{key}", episode.prefix).into_bytes(),
        &|value| value_text(value, episode.shape.text),
    )
}

fn words(operation: &Operation, episode: &Episode) -> Vec<Vec<u8>> {
    operation.words(
        &|key: Key| format!("{}{key}", episode.prefix).into_bytes(),
        &|value| value_text(value, episode.shape.text),
    )
}

fn value_text(value: i64, text: Text) -> Vec<u8> {
    let mut bytes = value.to_string().into_bytes();
    if text == Text::Padded {
        let padding = PADDINGS[(value / BLOCK) as usize % PADDINGS.len()];
        bytes.push(b'.');
        // The padding's letter follows from the value, so that a mixture of two values shows.
        bytes.resize(bytes.len() + padding, b'a' + ((value / BLOCK) % 26) as u8);
    }
    bytes
}

/// What a reply says; an error if it is of no shape that the operation can have.
fn answer(operation: &Operation, reply: &Wire, text: Text) -> Result<Answer, KitError> {
    let unexpected = || {
        let bytes = reply.to_bytes();
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
        KitError::Unexpected(format!("{operation} was answered {shown:?}"))
    };
    let value = |reply: &Wire| match reply {
        Wire::NullBulk => Some(None),
        Wire::Bulk(bytes) => value_of(bytes, text).map(Some),
        _ => None,
    };
    let is_ok = matches!(reply, Wire::Simple(text) if text == b"OK");
    match operation {
        Operation::Transaction { .. } if matches!(reply, Wire::NullArray) => {
            Some(Answer::Value(None))
        }
        Operation::Transaction { parts, .. } => {
            let elements = reply
                .elements()
                .filter(|elements| elements.len() == parts.len())
                .ok_or_else(unexpected)?;
            let parts = parts.iter().zip(elements);
            let answers: Result<Vec<Answer>, KitError> = parts
                .map(|(part, reply)| answer(part, reply, text))
                .collect();
            Some(Answer::Parts(answers?))
        }
        Operation::Get(_) | Operation::Set { get: true, .. } => value(reply).map(Answer::Value),
        Operation::Set { .. } if matches!(reply, Wire::NullBulk) => Some(Answer::Value(None)),
        Operation::Set { .. } | Operation::SetMany(_) | Operation::FlushAll => {
            is_ok.then_some(Answer::Done)
        }
        Operation::GetMany(keys) => reply
            .elements()
            .filter(|elements| elements.len() == keys.len())
            .and_then(|elements| elements.iter().map(value).collect())
            .map(Answer::Values),
        Operation::Increment(_)
        | Operation::Delete(_)
        | Operation::Exists(_)
        | Operation::Expire(..) => reply.integer().map(Answer::Integer),
    }
    .ok_or_else(unexpected)
}

fn value_of(bytes: &[u8], text: Text) -> Option<i64> {
    let digits = bytes.split(|byte| *byte == b'.').next()?;
    let value: i64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (value_text(value, text) == bytes).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_their_text_and_mixtures_do_not() {
        for number in 1..60 {
            for text in [Text::Number, Text::Padded] {
                let bytes = value_text(number * BLOCK, text);
                assert_eq!(value_of(&bytes, text), Some(number * BLOCK));
            }
        }
        let mut mixed = value_text(BLOCK, Text::Padded);
        assert_eq!(mixed.len(), 7 + 1 + 40);
        mixed[20] = b'c';
        assert_eq!(value_of(&mixed, Text::Padded), None);
    }
}
