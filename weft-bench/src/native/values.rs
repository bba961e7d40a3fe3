//! What is stored: sizes of values, and their bytes.
//!
//! Owns one block of random letters that all values are windows into. A value that can be verified is written anew: it
//! carries its key and a checksum. Does not know commands.
//!
//! ```text
//!  weft:CCCCCCCC:KEY:LETTERS      CCCCCCCC: CRC-32C of everything behind it and its colon, in hexadecimal digits
//! ```

use std::fmt;
use std::sync::Arc;

use crc::{CRC_32_ISCSI, Crc};
use fastrand::Rng;
use weft_rope::{Output, Rope};

/// The longest value in bytes: what a server takes.
pub const VALUE_BYTES_MAX: usize = 512 << 20;

/// Values are windows into this many bytes more than the longest one has.
const WINDOWS: usize = 64 << 10;

/// A value of so many bytes is lent to the output rather than copied.
const LENT_BYTES_MIN: usize = 16 << 10;

/// What a value that can be verified begins with.
pub const MARK: &[u8] = b"weft:";

/// The mark, the checksum, and a colon.
const SEALED_BYTES: usize = MARK.len() + 8 + 1;

static CHECKSUM: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);

/// Sizes of values in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// All the same.
    Fixed(usize),
    /// Each as likely as any other, from the first to the second.
    Range(usize, usize),
    /// Sizes with their weights, of which the sum is above 0.
    Weighted(Vec<(usize, u32)>),
}

impl Sizes {
    /// Reads `128`, `16-1k` or `100=90,10k=10`. The error says what would be right.
    pub fn parse(text: &str) -> Result<Sizes, String> {
        let size = |part: &str| {
            super::words::count(part)
                .and_then(|size| usize::try_from(size).ok())
                .filter(|&size| size <= VALUE_BYTES_MAX)
                .ok_or_else(|| format!("'{part}' in '{text}' is no size up to 512m"))
        };
        if text.contains('=') {
            let mut sizes = Vec::new();
            for part in text.split(',') {
                let (bytes, weight) = part
                    .split_once('=')
                    .ok_or_else(|| format!("'{part}' in '{text}' has no weight (SIZE=WEIGHT)"))?;
                let weight: u32 = weight
                    .parse()
                    .ok()
                    .filter(|weight| (1..=1_000_000).contains(weight))
                    .ok_or_else(|| {
                        format!("'{weight}' in '{text}' is no weight from 1 to 1000000")
                    })?;
                sizes.push((size(bytes)?, weight));
            }
            return Ok(Sizes::Weighted(sizes));
        }
        match text.split_once('-') {
            Some((from, to)) => {
                let (from, to) = (size(from)?, size(to)?);
                match from <= to {
                    true => Ok(Sizes::Range(from, to)),
                    false => Err(format!("'{text}' begins above its end")),
                }
            }
            None => Ok(Sizes::Fixed(size(text)?)),
        }
    }

    fn longest(&self) -> usize {
        match self {
            Sizes::Fixed(size) | Sizes::Range(_, size) => *size,
            Sizes::Weighted(sizes) => sizes.iter().map(|(size, _)| *size).max().unwrap_or(0),
        }
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sizes::Fixed(size) => write!(f, "{size}"),
            Sizes::Range(from, to) => write!(f, "{from}-{to}"),
            Sizes::Weighted(sizes) => {
                let parts: Vec<String> = sizes
                    .iter()
                    .map(|(size, weight)| format!("{size}={weight}"))
                    .collect();
                f.write_str(&parts.join(","))
            }
        }
    }
}

/// The letters that all values are made of.
#[derive(Clone, Debug)]
pub struct Letters {
    bytes: Arc<[u8]>,
    /// The same, to be lent.
    rope: Option<Rope>,
    windows: usize,
}

impl Letters {
    /// Enough for values of these sizes.
    pub fn new<'a>(sizes: impl Iterator<Item = &'a Sizes>, seed: u64) -> Letters {
        let longest = sizes.map(Sizes::longest).max().unwrap_or(0);
        let mut random = Rng::with_seed(seed);
        let bytes: Arc<[u8]> = std::iter::repeat_with(|| random.u8(b'A'..=b'Z'))
            .take(longest + WINDOWS)
            .collect();
        Letters {
            rope: (longest >= LENT_BYTES_MIN).then(|| Rope::from_slice(&bytes)),
            bytes,
            windows: WINDOWS,
        }
    }
}

/// Gives values of some sizes.
#[derive(Clone, Debug)]
pub struct Values {
    sizes: Sizes,
    weights: u32,
    letters: Letters,
}

impl Values {
    /// Values of these sizes, for which the letters suffice.
    pub fn new(sizes: &Sizes, letters: &Letters) -> Values {
        Values {
            weights: match sizes {
                Sizes::Weighted(sizes) => sizes.iter().map(|(_, weight)| *weight).sum(),
                _ => 0,
            },
            sizes: sizes.clone(),
            letters: letters.clone(),
        }
    }

    #[inline]
    fn size(&self, random: &mut Rng) -> usize {
        match &self.sizes {
            Sizes::Fixed(size) => *size,
            Sizes::Range(from, to) => random.usize(*from..=*to),
            Sizes::Weighted(sizes) => {
                let mut drawn = random.u32(..self.weights.max(1));
                let size = sizes.iter().find(|(_, weight)| {
                    let here = drawn < *weight;
                    drawn = drawn.saturating_sub(*weight);
                    here
                });
                size.map_or(0, |(size, _)| *size)
            }
        }
    }

    /// Appends a value as an argument of a request.
    #[inline]
    pub fn write_argument(&self, random: &mut Rng, out: &mut Output) {
        let size = self.size(random);
        let start = random.usize(..self.letters.windows);
        let tail = out.tail();
        argument_head(size, tail);
        match &self.letters.rope {
            Some(rope) if size >= LENT_BYTES_MIN => {
                out.push_rope_range(rope, start..start + size);
                out.tail().extend_from_slice(b"\r\n");
            }
            _ => {
                tail.extend_from_slice(&self.letters.bytes[start..start + size]);
                tail.extend_from_slice(b"\r\n");
            }
        }
    }

    /// Appends a value.
    pub fn write(&self, random: &mut Rng, out: &mut Vec<u8>) {
        let size = self.size(random);
        let start = random.usize(..self.letters.windows);
        out.extend_from_slice(&self.letters.bytes[start..start + size]);
    }

    /// Appends a value that carries its key and a checksum. It is longer than its size where the two do not fit in.
    pub fn write_sealed(&self, key: &[u8], random: &mut Rng, out: &mut Vec<u8>) {
        let head = SEALED_BYTES + key.len() + 1;
        let size = self.size(random).saturating_sub(head);
        let start = random.usize(..self.letters.windows);
        let letters = &self.letters.bytes[start..start + size];
        let mut digest = CHECKSUM.digest();
        digest.update(key);
        digest.update(b":");
        digest.update(letters);
        out.extend_from_slice(MARK);
        out.extend_from_slice(&hexadecimal(digest.finalize()));
        out.push(b':');
        out.extend_from_slice(key);
        out.push(b':');
        out.extend_from_slice(letters);
    }
}

/// Appends what stands before an argument of so many bytes.
#[inline]
pub fn argument_head(len: usize, out: &mut Vec<u8>) {
    out.push(b'$');
    out.extend_from_slice(itoa::Buffer::new().format(len).as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn hexadecimal(number: u32) -> [u8; 8] {
    let mut digits = [0; 8];
    for (place, digit) in digits.iter_mut().enumerate() {
        let nibble = number >> (28 - 4 * place) & 15;
        *digit = b"0123456789abcdef"[nibble as usize];
    }
    digits
}

/// What stands in a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// It is whole: everything behind the checksum, which begins with the key and a colon.
    Whole(&'a [u8]),
    /// It carries a checksum that is not its own.
    Broken,
    /// It carries none.
    Foreign,
}

/// Looks into a value.
pub fn content(value: &[u8]) -> Content<'_> {
    let Some(rest) = value.strip_prefix(MARK) else {
        return Content::Foreign;
    };
    match rest.split_at_checked(8) {
        Some((checksum, rest)) => match rest.strip_prefix(b":") {
            Some(body) if hexadecimal(CHECKSUM.checksum(body)) == checksum => Content::Whole(body),
            _ => Content::Broken,
        },
        None => Content::Broken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Values {
        let sizes = Sizes::parse(text).unwrap();
        let letters = Letters::new(std::iter::once(&sizes), 1);
        Values::new(&sizes, &letters)
    }

    fn written(values: &Values, random: &mut Rng) -> Vec<u8> {
        let mut out = Output::new();
        values.write_argument(random, &mut out);
        let bytes = out.to_vec();
        let end = bytes.iter().position(|&byte| byte == b'\r').unwrap();
        let len: usize = std::str::from_utf8(&bytes[1..end])
            .unwrap()
            .parse()
            .unwrap();
        let value = &bytes[end + 2..bytes.len() - 2];
        assert_eq!(value.len(), len);
        assert!(value.iter().all(u8::is_ascii_uppercase));
        value.to_vec()
    }

    #[test]
    fn sizes_are_as_asked_for() {
        let random = &mut Rng::with_seed(1);
        assert_eq!(written(&values("5"), random).len(), 5);
        assert_eq!(written(&values("0"), random).len(), 0);
        assert_eq!(written(&values("100k"), random).len(), 102_400);
        let range = values("10-12");
        let mut seen = [0; 13];
        (0..3000).for_each(|_| seen[written(&range, random).len()] += 1);
        assert!(seen[10..].iter().all(|&count| count > 900), "{seen:?}");
        let weighted = values("1=80,9=20");
        let short = (0..10_000)
            .filter(|_| written(&weighted, random).len() == 1)
            .count();
        assert!((7800..8200).contains(&short), "{short}");
    }

    #[test]
    fn sealed_values_tell_what_became_of_them() {
        let random = &mut Rng::with_seed(1);
        let mut value = Vec::new();
        values("64").write_sealed(b"key:7", random, &mut value);
        assert_eq!(value.len(), 64);
        match content(&value) {
            Content::Whole(body) => assert!(body.starts_with(b"key:7:")),
            other => panic!("{other:?}"),
        }
        for at in MARK.len()..value.len() {
            let mut broken = value.clone();
            broken[at] ^= 1;
            assert_eq!(content(&broken), Content::Broken, "byte {at}");
        }
        assert_eq!(content(&value[..value.len() - 1]), Content::Broken);
        assert_eq!(content(b"abc"), Content::Foreign);
        assert_eq!(content(MARK), Content::Broken);
        let mut short = Vec::new();
        values("3").write_sealed(b"key:7", random, &mut short);
        assert!(matches!(content(&short), Content::Whole(b"key:7:")));
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "x", "5-", "9-5", "1=", "1=0", "600m", "-1"] {
            assert!(Sizes::parse(text).is_err(), "{text}");
        }
        assert_eq!(
            Sizes::parse("9-5").unwrap_err(),
            "'9-5' begins above its end"
        );
    }
}
