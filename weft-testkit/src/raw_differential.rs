//! Random byte streams to the reference and to the engine under test, and all that comes back compared.
//!
//! A stream is a few requests, multibulk and inline, bent at the level of bytes: headers, quotes, line ends. The sender
//! then says that nothing follows, and reads until the server ends too, so silence need not be guessed. A stream is
//! cut at random places on its way. What differs is reduced to the shortest stream that shows it.

use crate::delivery::Delivery;
use crate::differential::Pair;
use crate::door::{Door, Protocol};
use crate::error::KitError;
use crate::quoting::quoted;
use crate::reduction::shorten;
use crate::wire::write_request;

/// Requests of one stream, at most.
const REQUESTS_MAX: usize = 6;
/// Reductions stop after so many tries.
const TRIES_MAX: usize = 2000;
/// A server that hangs up while more is on its way resets the connection, and what it said last may be lost on the
/// way; so a difference has to show this many times in a row.
const AGREEMENTS_TRIED: usize = 4;
/// Characters of a stream or an answer that are shown.
const SHOWN_MAX: usize = 800;

/// Requests that say something about what reached them; none depends on time or on the process.
const REQUESTS: &[&[&[u8]]] = &[
    &[b"PING"],
    &[b"PING", b"howdy"],
    &[b"ECHO", b"a b"],
    &[b"ECHO", b""],
    &[b"ECHO", b"\x00\r\n\xff"],
    &[b"SET", b"k", b"v"],
    &[b"GET", b"k"],
    &[b"APPEND", b"k", b"x\r\n"],
    &[b"STRLEN", b"k"],
    &[b"MSET", b"a", b"1", b"b", b"2"],
    &[b"DEL", b"k", b"a", b"b"],
    &[b"FOO", b"bar"],
    &[b""],
];
const INLINE: &[&str] = &[
    "PING\r\n",
    "ping\n",
    "  SET  k   v \r\n",
    "ECHO \"a \\x41\\n\\\"b\"\r\n",
    "ECHO 'a \\' b'\r\n",
    "GET k\t\r\n",
    "\r\n",
    "ECHO ''\r\n",
    "FOO bar\r\n",
    "ECHO \"\\xzz\\q\"\r\n",
];
/// What is put in at random places. The words that make a server hang up on HTTP are left to the cases: the reference
/// then drops the replies to earlier requests of the same read.
const PIECES: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"\r",
    b" ",
    b"\t",
    b"\"",
    b"'",
    b"\\",
    b"\\x",
    b"\\x0",
    b"\0",
    b"*",
    b"$",
    b"-",
    b"+",
    b"0",
    b"1",
    b"9",
    b"*0\r\n",
    b"*-1\r\n",
    b"*1\r\n",
    b"*2\r\n",
    b"$0\r\n\r\n",
    b"$-1\r\n",
    b"$3\r\n",
    b"*2147483648\r\n",
    b"$536870913\r\n",
    b"*x\r\n",
    b"$x\r\n",
    b"99999999999999999999",
    b"\xff",
];

/// A stream to which the answers differ.
#[derive(Debug)]
pub struct StreamFinding {
    /// The bytes sent.
    pub stream: Vec<u8>,
    /// All bytes that came back from the reference and from the engine under test.
    pub answers: [Vec<u8>; 2],
}

impl std::fmt::Display for StreamFinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |bytes: &[u8]| quoted(bytes).chars().take(SHOWN_MAX).collect::<String>();
        writeln!(f, "case found by a random stream")?;
        writeln!(f, ">> {}", shown(&self.stream))?;
        writeln!(f, "# the reference answers {}", shown(&self.answers[0]))?;
        writeln!(f, "# the server under test {}", shown(&self.answers[1]))
    }
}

/// Sends `count` streams; the differences, at most `findings_max`.
pub fn run(
    pair: &mut Pair,
    count: usize,
    seed: u64,
    findings_max: usize,
) -> Result<Vec<StreamFinding>, KitError> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut findings = Vec::new();
    for number in 0..count {
        let protocol = Protocol::ALL[number % 2];
        let stream = stream(&mut random);
        let cuts = random.u64(..);
        let Some(answers) = differing(pair, &stream, protocol, cuts)? else {
            continue;
        };
        let mut tries = 0;
        let mut shows = |bytes: &[u8]| {
            tries += 1;
            if tries > TRIES_MAX {
                Ok(None)
            } else {
                differing(pair, bytes, protocol, cuts)
            }
        };
        let (stream, answers) = shorten(stream, answers, &mut shows)?;
        findings.push(StreamFinding { stream, answers });
        if findings.len() == findings_max {
            break;
        }
    }
    Ok(findings)
}

fn stream(random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..random.usize(1..=REQUESTS_MAX) {
        if random.u8(..3) == 0 {
            bytes.extend_from_slice(INLINE[random.usize(..INLINE.len())].as_bytes());
        } else {
            write_request(&mut bytes, REQUESTS[random.usize(..REQUESTS.len())]);
        }
    }
    for _ in 0..random.usize(..4) {
        let place = random.usize(..=bytes.len());
        let end = (place + random.usize(1..4)).min(bytes.len());
        match random.u8(..4) {
            0 => {
                bytes.drain(place..end);
            }
            1 => {
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = random.u8(..);
                }
            }
            _ => {
                let piece = PIECES[random.usize(..PIECES.len())];
                bytes.splice(place..place, piece.iter().copied());
            }
        }
    }
    if random.u8(..8) == 0 {
        bytes.truncate(random.usize(..=bytes.len()));
    }
    bytes
}

/// Sends a stream to both; what came back, if it differs.
fn differing(
    pair: &mut Pair,
    stream: &[u8],
    protocol: Protocol,
    cuts: u64,
) -> Result<Option<[Vec<u8>; 2]>, KitError> {
    let answer = |door: &mut dyn Door| -> Result<Vec<u8>, KitError> {
        door.revive(false)?;
        door.reset()?;
        let mut session = door.connect(protocol)?;
        let mut random = fastrand::Rng::with_seed(cuts);
        if !stream.is_empty() {
            Delivery::Split.send(session.as_mut(), stream, &mut random)?;
        }
        session.finish()
    };
    let mut tries = 1;
    loop {
        let answers = [
            answer(pair.reference.as_mut())?,
            answer(pair.subject.as_mut())?,
        ];
        if answers[0] == answers[1] || lacks_a_command(&answers) {
            return Ok(None);
        }
        if tries == AGREEMENTS_TRIED {
            return Ok(Some(answers));
        }
        tries += 1;
    }
}

/// Whether a bent name has become that of a command which only the reference has.
fn lacks_a_command(answers: &[Vec<u8>; 2]) -> bool {
    let [reference, subject] = answers.each_ref().map(|answer| {
        let text = b"-ERR unknown command ";
        answer
            .windows(text.len())
            .filter(|window| window == text)
            .count()
    });
    subject > reference
}
