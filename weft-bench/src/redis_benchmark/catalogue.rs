//! The tests of redis-benchmark: names, titles and the request that each sends.
//!
//! Owns the table. Keys, members and values are redis-benchmark's, so that one tool finds what the other has stored.

use weft_resp::RequestWriter;

use crate::load::PLACEHOLDER;

/// One test.
#[derive(Debug)]
pub struct Test {
    /// What the report calls it.
    pub title: &'static str,
    /// What `-t` calls it, and families it belongs to.
    pub names: &'static [&'static str],
    request: Request,
}

#[derive(Debug)]
enum Request {
    /// A line without counts.
    Inline(&'static str),
    Command(&'static [Word]),
}

#[derive(Debug, Clone, Copy)]
enum Word {
    Text(&'static str),
    /// One key of this name.
    Key(&'static str),
    /// Keys that begin with this name, one for every number.
    Keys(&'static str),
    /// A member or field, one for every number.
    Element,
    /// A number where there are numbers, else 0.
    Score,
    /// The value of `-d` bytes.
    Data,
}

use Word::{Data, Element, Key, Keys, Score, Text};

const PING: &[&str] = &["ping_inline", "ping"];
const LRANGES: &[&str] = &[
    "lrange",
    "lrange_100",
    "lrange_300",
    "lrange_500",
    "lrange_600",
];
const KEY: Word = Keys("key");

/// All tests, in their order.
pub const TESTS: &[Test] = &[
    Test {
        title: "PING_INLINE",
        names: PING,
        request: Request::Inline("PING"),
    },
    test("PING_MBULK", &["ping_mbulk", "ping"], &[Text("PING")]),
    test("SET", &["set"], &[Text("SET"), KEY, Data]),
    test("GET", &["get"], &[Text("GET"), KEY]),
    test("INCR", &["incr"], &[Text("INCR"), Keys("counter")]),
    test("LPUSH", &["lpush"], &[Text("LPUSH"), Key("mylist"), Data]),
    test("RPUSH", &["rpush"], &[Text("RPUSH"), Key("mylist"), Data]),
    test("LPOP", &["lpop"], &[Text("LPOP"), Key("mylist")]),
    test("RPOP", &["rpop"], &[Text("RPOP"), Key("mylist")]),
    test("SADD", &["sadd"], &[Text("SADD"), Key("myset"), Element]),
    test(
        "HSET",
        &["hset"],
        &[Text("HSET"), Key("myhash"), Element, Data],
    ),
    test("SPOP", &["spop"], &[Text("SPOP"), Key("myset")]),
    test(
        "ZADD",
        &["zadd"],
        &[Text("ZADD"), Key("myzset"), Score, Element],
    ),
    test("ZPOPMIN", &["zpopmin"], &[Text("ZPOPMIN"), Key("myzset")]),
    test(
        "LPUSH (needed to benchmark LRANGE)",
        LRANGES,
        &[Text("LPUSH"), Key("mylist"), Data],
    ),
    test(
        "LRANGE_100 (first 100 elements)",
        &["lrange", "lrange_100"],
        LRANGE_100,
    ),
    test(
        "LRANGE_300 (first 300 elements)",
        &["lrange", "lrange_300"],
        LRANGE_300,
    ),
    test(
        "LRANGE_500 (first 500 elements)",
        &["lrange", "lrange_500"],
        LRANGE_500,
    ),
    test(
        "LRANGE_600 (first 600 elements)",
        &["lrange", "lrange_600"],
        LRANGE_600,
    ),
    test("MSET (10 keys)", &["mset"], MSET),
    test(
        "XADD",
        &["xadd"],
        &[
            Text("XADD"),
            Key("mystream"),
            Text("*"),
            Text("myfield"),
            Data,
        ],
    ),
];

const LRANGE_100: &[Word] = &[Text("LRANGE"), Key("mylist"), Text("0"), Text("99")];
const LRANGE_300: &[Word] = &[Text("LRANGE"), Key("mylist"), Text("0"), Text("299")];
const LRANGE_500: &[Word] = &[Text("LRANGE"), Key("mylist"), Text("0"), Text("499")];
const LRANGE_600: &[Word] = &[Text("LRANGE"), Key("mylist"), Text("0"), Text("599")];
#[rustfmt::skip]
const MSET: &[Word] = &[
    Text("MSET"),
    KEY, Data, KEY, Data, KEY, Data, KEY, Data, KEY, Data,
    KEY, Data, KEY, Data, KEY, Data, KEY, Data, KEY, Data,
];

const fn test(title: &'static str, names: &'static [&'static str], words: &'static [Word]) -> Test {
    Test {
        title,
        names,
        request: Request::Command(words),
    }
}

impl Test {
    /// The encoded request. `numbered`: placeholders will be replaced. With a tag, keys lie in its slot.
    pub fn encode(&self, data: &[u8], numbered: bool, tag: Option<&str>) -> Vec<u8> {
        let mut request = Vec::new();
        let mut writer = RequestWriter::new(&mut request);
        match self.request {
            Request::Inline(line) => writer.inline(line),
            Request::Command(words) => {
                writer.begin(words.len());
                for word in words {
                    match word {
                        Text(text) => writer.arg(text.as_bytes()),
                        Key(name) => writer.arg(key(name, tag).as_bytes()),
                        Keys(name) => writer.arg(&numbered_text(&key(name, tag))),
                        Element => writer.arg(&numbered_text("element")),
                        Score if numbered => writer.arg(PLACEHOLDER),
                        Score => writer.arg(b"0"),
                        Data => writer.arg(data),
                    }
                }
            }
        }
        request
    }
}

fn key(name: &str, tag: Option<&str>) -> String {
    match tag {
        Some(tag) => format!("{name}:{{{tag}}}"),
        None => name.to_owned(),
    }
}

fn numbered_text(name: &str) -> Vec<u8> {
    [name.as_bytes(), b":", PLACEHOLDER].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(title: &str, numbered: bool, tag: Option<&str>) -> String {
        let test = TESTS.iter().find(|test| test.title == title).unwrap();
        String::from_utf8(test.encode(b"abc", numbered, tag)).unwrap()
    }

    #[test]
    fn requests_are_redis_benchmarks() {
        assert_eq!(encoded("PING_INLINE", false, None), "PING\r\n");
        assert_eq!(encoded("PING_MBULK", false, None), "*1\r\n$4\r\nPING\r\n");
        assert_eq!(
            encoded("SET", true, None),
            "*3\r\n$3\r\nSET\r\n$16\r\nkey:__rand_int__\r\n$3\r\nabc\r\n"
        );
        assert_eq!(
            encoded("ZADD", true, None),
            "*4\r\n$4\r\nZADD\r\n$6\r\nmyzset\r\n$12\r\n__rand_int__\r\n$20\r\nelement:__rand_int__\r\n"
        );
        assert_eq!(
            encoded("ZADD", false, None),
            "*4\r\n$4\r\nZADD\r\n$6\r\nmyzset\r\n$1\r\n0\r\n$20\r\nelement:__rand_int__\r\n"
        );
        assert_eq!(
            encoded("INCR", false, Some("06S")),
            "*2\r\n$4\r\nINCR\r\n$26\r\ncounter:{06S}:__rand_int__\r\n"
        );
        assert_eq!(
            encoded("LPOP", false, Some("06S")),
            "*2\r\n$4\r\nLPOP\r\n$12\r\nmylist:{06S}\r\n"
        );
        let mset = encoded("MSET (10 keys)", true, None);
        assert!(mset.starts_with("*21\r\n$4\r\nMSET\r\n"));
        assert_eq!(
            mset.matches("key:__rand_int__\r\n$3\r\nabc\r\n").count(),
            10
        );
    }
}
