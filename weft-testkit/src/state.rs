//! The whole state of two servers compared: databases, keys, types, values and times to live.

use crate::door::DoorSession;
use crate::error::KitError;
use crate::quoting::{quoted, word};
use crate::wire::Wire;

/// Databases of a server with the default configuration.
const DATABASES: usize = 16;
/// Milliseconds that a time to live may differ by: the two servers were told at different moments.
const PTTL_TOLERANCE_MS: u64 = 1000;
/// Differences that are told in full.
const TOLD_MAX: usize = 5;
/// Characters of a value that are shown.
const SHOWN_MAX: usize = 200;

/// Compares everything the servers hold; what differs, or `None`. Both connections end in database 0.
pub fn difference(servers: [&mut dyn DoorSession; 2]) -> Result<Option<String>, KitError> {
    let [reference, subject] = servers;
    let left = describe(reference)?;
    let right = describe(subject)?;
    let mut told = Vec::new();
    let (mut one, mut other) = (left.iter().peekable(), right.iter().peekable());
    loop {
        let order = match (one.peek(), other.peek()) {
            (None, None) => break,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(left), Some(right)) => left.place().cmp(&right.place()),
        };
        match order {
            std::cmp::Ordering::Less => told.extend(
                one.next()
                    .map(|key| format!("only the reference has {key}")),
            ),
            std::cmp::Ordering::Greater => told.extend(
                other
                    .next()
                    .map(|key| format!("only the subject has {key}")),
            ),
            std::cmp::Ordering::Equal => {
                if let (Some(left), Some(right)) = (one.next(), other.next())
                    && !left.equals(right)
                {
                    told.push(format!(
                        "the reference has {left}\n  the subject has {right}"
                    ));
                }
            }
        }
    }
    if told.is_empty() {
        return Ok(None);
    }
    let more = told.len().saturating_sub(TOLD_MAX);
    told.truncate(TOLD_MAX);
    if more > 0 {
        told.push(format!("and {more} more"));
    }
    Ok(Some(told.join("\n  ")))
}

#[derive(Debug)]
struct Key {
    database: usize,
    name: Vec<u8>,
    kind: String,
    value: Wire,
    ttl_ms: i64,
}

impl Key {
    fn place(&self) -> (usize, &[u8]) {
        (self.database, &self.name)
    }

    fn equals(&self, other: &Key) -> bool {
        let ttl_equal = self.ttl_ms == other.ttl_ms
            || (self.ttl_ms >= 0
                && other.ttl_ms >= 0
                && self.ttl_ms.abs_diff(other.ttl_ms) <= PTTL_TOLERANCE_MS);
        self.kind == other.kind && self.value == other.value && ttl_equal
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut value = match &self.value {
            Wire::Bulk(bytes) => quoted(bytes),
            other => format!("{other:?}"),
        };
        if value.chars().count() > SHOWN_MAX {
            value = value.chars().take(SHOWN_MAX).chain("...".chars()).collect();
        }
        write!(
            f,
            "db{} {} ({}, PTTL {}): {value}",
            self.database,
            word(&self.name),
            self.kind,
            self.ttl_ms
        )
    }
}

fn describe(server: &mut dyn DoorSession) -> Result<Vec<Key>, KitError> {
    let mut keys = Vec::new();
    for database in 0..DATABASES {
        server.ask(&["SELECT", &database.to_string()])?;
        if server.ask(&["DBSIZE"])? == Wire::Integer(0) {
            continue;
        }
        for name in names(server)? {
            let kind = server.ask(&[&b"TYPE"[..], &name])?.string();
            let ttl_ms = server
                .ask(&[&b"PTTL"[..], &name])?
                .integer()
                .unwrap_or(i64::MIN);
            let value = value(server, &kind, &name)?;
            keys.push(Key {
                database,
                name,
                kind,
                value,
                ttl_ms,
            });
        }
    }
    server.ask(&["SELECT", "0"])?;
    keys.sort_by(|left, right| left.place().cmp(&right.place()));
    Ok(keys)
}

/// All keys of the selected database.
fn names(server: &mut dyn DoorSession) -> Result<Vec<Vec<u8>>, KitError> {
    let mut names = Vec::new();
    let mut cursor = b"0".to_vec();
    loop {
        let reply = server.ask(&[&b"SCAN"[..], &cursor, b"COUNT", b"1000"])?;
        let Some([next, batch]) = reply.elements() else {
            return Err(KitError::Unexpected(format!(
                "SCAN is answered with {reply:?}"
            )));
        };
        let batch = batch.elements().unwrap_or_default();
        names.extend(
            batch
                .iter()
                .filter_map(|name| name.text())
                .map(<[u8]>::to_vec),
        );
        cursor = next.text().unwrap_or(b"0").to_vec();
        if cursor == b"0" {
            break;
        }
    }
    names.sort();
    names.dedup();
    Ok(names)
}

fn value(server: &mut dyn DoorSession, kind: &str, name: &[u8]) -> Result<Wire, KitError> {
    let request: Vec<&[u8]> = match kind {
        "string" => vec![b"GET", name],
        "list" => vec![b"LRANGE", name, b"0", b"-1"],
        "hash" => vec![b"HGETALL", name],
        "set" => vec![b"SMEMBERS", name],
        "zset" => vec![b"ZRANGE", name, b"0", b"-1", b"WITHSCORES"],
        "stream" => vec![b"XRANGE", name, b"-", b"+"],
        _ => vec![b"TYPE", name],
    };
    let reply = server.ask(&request)?;
    let reply = match (kind, reply) {
        ("stream", Wire::Sequence(found, mut entries)) => {
            // What else it holds and what its groups have read; not when, which differs.
            let about: [&[&[u8]]; 2] = [&[b"XINFO", b"STREAM", name], &[b"XINFO", b"GROUPS", name]];
            for request in about {
                let mut reply = server.ask(request)?;
                if let Wire::Sequence(_, elements) = &mut reply
                    && request[1] == b"STREAM"
                    && elements.len() > 6
                {
                    // The reference may keep nodes without entries (D-19).
                    elements.drain(2..6);
                }
                entries.push(reply);
            }
            Wire::Sequence(found, entries)
        }
        (_, reply) => reply,
    };
    // Hashes and sets have no order of their own.
    Ok(match (kind, reply) {
        ("set", Wire::Sequence(found, mut members)) => {
            members.sort_by_key(Wire::to_bytes);
            Wire::Sequence(found, members)
        }
        ("hash", Wire::Sequence(found, elements)) => {
            let mut pairs: Vec<Vec<Wire>> = elements.chunks(2).map(<[Wire]>::to_vec).collect();
            pairs.sort_by_key(|pair| pair.iter().flat_map(Wire::to_bytes).collect::<Vec<u8>>());
            Wire::Sequence(found, pairs.concat())
        }
        (_, reply) => reply,
    })
}
