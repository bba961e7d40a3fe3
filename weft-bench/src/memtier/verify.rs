//! Compares what a server has stored with what was sent to it.
//!
//! Owns the walk over all keys. It works where values follow from their keys, as they do when they are to be verified. Keys that
//! are absent are counted and are no error: few tests write every key.

use std::fmt;

use fastrand::Rng;
use weft_client::{Connection, Reply};

use super::mix::Mix;
use crate::load::Target;
use crate::reach::{self, Manner, Server};
use crate::slots;

/// So many keys are asked for at once.
const KEYS_AT_ONCE: u64 = 1000;

/// So many wrong values are described.
const TOLD: usize = 5;

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verified {
    pub right: u64,
    pub absent: u64,
    pub wrong: u64,
    /// The first few that are wrong.
    pub told: Vec<String>,
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Data verification completed: {} keys verified successfully, {} absent, {} with errors",
            self.right, self.absent, self.wrong
        )
    }
}

/// What one node is asked for at once.
#[derive(Default)]
struct Batch {
    requests: Vec<Vec<Vec<u8>>>,
    /// Of their keys.
    numbers: Vec<u64>,
}

/// Reads every key there is. `log_in` makes a connection ready for use. The error is for the user.
pub fn verify(
    mix: &Mix,
    server: &Server,
    manner: &Manner,
    log_in: impl Fn(&mut Connection) -> Result<(), String>,
) -> Result<Verified, String> {
    let servers = match &mix.cluster {
        Some(cluster) => cluster.nodes(),
        None => std::slice::from_ref(server),
    };
    // By node; those that have not joined have none, and no slots.
    let mut connections = Vec::new();
    for server in servers {
        if matches!(&server.target, Target::Later(place) if place.get().is_none()) {
            connections.push(None);
            continue;
        }
        let mut connection = reach::connect_by(manner, server)
            .map_err(|lost| format!("cannot connect to {}: {}", lost.name, lost.why))?;
        log_in(&mut connection)?;
        connections.push(Some(connection));
    }
    let mut verified = Verified::default();
    let mut from = mix.keys.minimum;
    loop {
        let to = from.saturating_add(KEYS_AT_ONCE - 1).min(mix.keys.maximum);
        let mut batches: Vec<Batch> = servers.iter().map(|_| Batch::default()).collect();
        for number in from..=to {
            let mut key = mix.key_prefix.clone();
            key.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
            let node = match &mix.cluster {
                Some(cluster) => cluster.owner(slots::slot(&key)),
                None => 0,
            };
            batches[node].requests.push(vec![b"GET".to_vec(), key]);
            batches[node].numbers.push(number);
        }
        for (connection, batch) in connections.iter_mut().zip(&batches) {
            let (Batch { requests, numbers }, Some(connection)) = (batch, connection) else {
                continue;
            };
            let replies = connection
                .pipeline(requests)
                .map_err(|error| format!("data verification: {error}"))?;
            for ((request, &number), reply) in requests.iter().zip(numbers).zip(replies) {
                verified.compare(mix, &request[1], number, &reply.reply);
            }
        }
        if to == mix.keys.maximum {
            return Ok(verified);
        }
        from = to + 1;
    }
}

impl Verified {
    fn compare(&mut self, mix: &Mix, key: &[u8], number: u64, reply: &Reply) {
        let why = match reply {
            Reply::NullBulk | Reply::Null => {
                self.absent += 1;
                return;
            }
            // The value follows from the key alone.
            Reply::Bulk(value) if value[..] == *mix.values.next(number, &mut Rng::with_seed(0)) => {
                self.right += 1;
                return;
            }
            Reply::Bulk(value) => format!("another value, of {} bytes", value.len()),
            Reply::Error(error) => String::from_utf8_lossy(error).into_owned(),
            _ => "no string".to_owned(),
        };
        self.wrong += 1;
        if self.told.len() < TOLD {
            self.told
                .push(format!("key {}: {why}", String::from_utf8_lossy(key)));
        }
    }
}
