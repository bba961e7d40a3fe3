//! A cell of a sweep: one load, the same for every server and every setting of threads.
//!
//! Owns what a mix of commands is called and what each command looks like. Keys of each type have a prefix of their own, so
//! that commands of different types can be mixed. Does not send anything.

use std::fmt;

/// One load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Connections.
    pub connections: usize,
    /// Requests under way on each.
    pub pipeline: u32,
    /// Commands.
    pub mix: Mix,
    /// Bytes of a value.
    pub value_bytes: usize,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, ", self.mix)?;
        match self.value_bytes {
            bytes if bytes >= 1024 && bytes % 1024 == 0 => write!(f, "{} KiB", bytes / 1024)?,
            bytes => write!(f, "{bytes} B")?,
        }
        let ending = if self.connections == 1 { "" } else { "s" };
        write!(f, ", {} connection{ending}", self.connections)?;
        if self.pipeline > 1 {
            write!(f, ", pipeline {}", self.pipeline)?;
        }
        Ok(())
    }
}

/// Commands, each with how often it comes among the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix {
    parts: Vec<(&'static Verb, u32)>,
}

/// A command that a mix can name.
#[derive(Debug, PartialEq, Eq)]
pub struct Verb {
    /// Its name, in lower case.
    pub name: &'static str,
    /// What its keys start with.
    pub prefix: &'static str,
    /// Its words; `{key}` and `{value}` stand for what changes.
    pub words: &'static [&'static str],
    /// What makes a key that is there beforehand, if the command is of no use without one.
    pub filled_by: Option<&'static [&'static str]>,
}

const SET: &[&str] = &["SET", "{key}", "{value}"];
const HSET: &[&str] = &["HSET", "{key}", "field1", "{value}", "field2", "{value}"];

const fn verb(
    name: &'static str,
    prefix: &'static str,
    words: &'static [&'static str],
    filled_by: Option<&'static [&'static str]>,
) -> Verb {
    Verb {
        name,
        prefix,
        words,
        filled_by,
    }
}

/// All that a mix can name.
pub const VERBS: &[Verb] = &[
    verb("get", "key:", &["GET", "{key}"], Some(SET)),
    // Keys are there, so that no round differs from the next by the keys it has to make.
    verb("set", "key:", SET, Some(SET)),
    verb("incr", "counter:", &["INCR", "{key}"], None),
    verb("lpush", "list:", &["LPUSH", "{key}", "{value}"], None),
    verb("rpush", "list:", &["RPUSH", "{key}", "{value}"], None),
    verb("lpop", "list:", &["LPOP", "{key}"], None),
    verb("rpop", "list:", &["RPOP", "{key}"], None),
    verb("hset", "hash:", HSET, Some(HSET)),
    verb("hget", "hash:", &["HGET", "{key}", "field1"], Some(HSET)),
    verb("hgetall", "hash:", &["HGETALL", "{key}"], Some(HSET)),
    verb("sadd", "set:", &["SADD", "{key}", "{value}"], None),
    verb("spop", "set:", &["SPOP", "{key}"], None),
    verb("zadd", "zset:", &["ZADD", "{key}", "1", "{value}"], None),
    verb("ping", "", &["PING"], None),
];

impl Mix {
    /// Reads `get`, or `set:1,get:9`.
    ///
    /// # Errors
    /// What is wrong with it, as a clause.
    pub fn parse(text: &str) -> Result<Mix, String> {
        let mut parts = Vec::new();
        for part in text.split(',') {
            let (name, times) = part.split_once(':').unwrap_or((part, "1"));
            let verb = VERBS
                .iter()
                .find(|verb| verb.name.eq_ignore_ascii_case(name.trim()))
                .ok_or_else(|| {
                    let names: Vec<&str> = VERBS.iter().map(|verb| verb.name).collect();
                    format!("'{name}' is none of {}", names.join(", "))
                })?;
            let times = times
                .trim()
                .parse()
                .ok()
                .filter(|times| (1..=TIMES_MAX).contains(times))
                .ok_or_else(|| format!("'{part}': how often is a number from 1 to {TIMES_MAX}"))?;
            parts.push((verb, times));
        }
        Ok(Mix { parts })
    }

    /// The commands, each with how often it comes.
    pub fn parts(&self) -> &[(&'static Verb, u32)] {
        &self.parts
    }

    /// What makes the keys that have to be there, with their prefix; each once.
    pub fn filling(&self) -> Vec<(&'static str, &'static [&'static str])> {
        let mut filling = Vec::new();
        for (verb, _) in &self.parts {
            if let Some(words) = verb.filled_by
                && !filling.contains(&(verb.prefix, words))
            {
                filling.push((verb.prefix, words));
            }
        }
        filling
    }
}

/// The greatest number in a mix: a share of one in a thousand can be told.
const TIMES_MAX: u32 = 1000;

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |items: Vec<String>, by| items.join(by);
        let names = self.parts.iter().map(|(verb, _)| verb.name.to_uppercase());
        f.write_str(&join(names.collect(), "/"))?;
        if self.parts.len() > 1 {
            let times = self.parts.iter().map(|(_, times)| times.to_string());
            write!(f, " {}", join(times.collect(), ":"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(mix: &str, connections: usize, pipeline: u32, value_bytes: usize) -> String {
        let mix = Mix::parse(mix).unwrap();
        let cell = Cell {
            connections,
            pipeline,
            mix,
            value_bytes,
        };
        cell.to_string()
    }

    #[test]
    fn cells_have_names() {
        assert_eq!(
            cell("get", 50, 16, 3),
            "GET, 3 B, 50 connections, pipeline 16"
        );
        assert_eq!(
            cell("set:1,GET:9", 1, 1, 102_400),
            "SET/GET 1:9, 100 KiB, 1 connection"
        );
    }

    #[test]
    fn mixes_are_read() {
        let mix = Mix::parse("hset, hgetall:2,get").unwrap();
        let parts = mix.parts().iter().map(|(verb, times)| (verb.name, *times));
        let parts: Vec<_> = parts.collect();
        assert_eq!(parts, [("hset", 1), ("hgetall", 2), ("get", 1)]);
        assert_eq!(mix.filling(), [("hash:", HSET), ("key:", SET)]);
        assert!(Mix::parse("lpush,lpop").unwrap().filling().is_empty());
        for text in ["", "get:", "get:0", "get:1001", "got", "get;set"] {
            assert!(Mix::parse(text).is_err(), "{text}");
        }
    }
}
