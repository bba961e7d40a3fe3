//! Requests that are the same every time but for a few numbers.
//!
//! Owns the encoded bytes of a batch and the places of the numbers in it. A batch is copied into the output and the
//! numbers are written over the copy; long stretches without a number are lent to the output instead. Does not know
//! where the numbers come from. Invariant: a number is [`NUMBER_BYTES`] digits, as long as the placeholder it replaces.

use memchr::memmem;
use weft_resp::RequestWriter;
use weft_rope::{Output, Rope};

/// What an argument says where a random number shall stand.
pub const PLACEHOLDER: &[u8] = b"__rand_int__";

/// Digits of a number: as many as the placeholder has bytes.
pub const NUMBER_BYTES: usize = PLACEHOLDER.len();

/// One more than the greatest number that has so many digits.
pub const NUMBER_END: u64 = 1_000_000_000_000;

/// A stretch of so many bytes without a number is lent: an output copies what is shorter.
const LENT_BYTES_MIN: usize = 16 << 10;

/// A batch of requests.
#[derive(Debug, Clone)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone)]
enum Piece {
    Copied { bytes: Vec<u8>, numbers: Vec<usize> },
    Lent(Rope),
}

impl Template {
    /// `repeat` times the request `request`, with a number for each [`PLACEHOLDER`] in it if `numbered`.
    pub fn new(request: &[u8], repeat: usize, numbered: bool) -> Template {
        let places: Vec<usize> = if numbered {
            memmem::find_iter(request, PLACEHOLDER).collect()
        } else {
            Vec::new()
        };
        let mut template = Template { pieces: Vec::new() };
        for _ in 0..repeat {
            let mut from = 0;
            for &place in &places {
                template.stretch(&request[from..place]);
                template.number();
                from = place + NUMBER_BYTES;
            }
            template.stretch(&request[from..]);
        }
        template.share_equal_ropes();
        template
    }

    /// Appends the batch to `out`, with the numbers that `number` gives, each below [`NUMBER_END`].
    #[inline]
    pub fn append(&self, out: &mut Output, mut number: impl FnMut() -> u64) {
        for piece in &self.pieces {
            match piece {
                Piece::Copied { bytes, numbers } => {
                    let tail = out.tail();
                    let start = tail.len();
                    tail.extend_from_slice(bytes);
                    for &place in numbers {
                        let place = start + place;
                        write_number(&mut tail[place..place + NUMBER_BYTES], number());
                    }
                }
                Piece::Lent(rope) => out.push_rope(rope),
            }
        }
    }

    fn stretch(&mut self, stretch: &[u8]) {
        if stretch.len() >= LENT_BYTES_MIN {
            self.pieces.push(Piece::Lent(Rope::from_slice(stretch)));
        } else if !stretch.is_empty() {
            self.copied().0.extend_from_slice(stretch);
        }
    }

    fn number(&mut self) {
        let (bytes, numbers) = self.copied();
        numbers.push(bytes.len());
        bytes.extend_from_slice(&[b'0'; NUMBER_BYTES]);
    }

    /// The last piece, if bytes can be added to it; else a new one.
    fn copied(&mut self) -> (&mut Vec<u8>, &mut Vec<usize>) {
        if !matches!(self.pieces.last(), Some(Piece::Copied { .. })) {
            self.pieces.push(Piece::Copied {
                bytes: Vec::new(),
                numbers: Vec::new(),
            });
        }
        match self.pieces.last_mut() {
            Some(Piece::Copied { bytes, numbers }) => (bytes, numbers),
            _ => unreachable!("such a piece was just pushed"),
        }
    }

    /// A batch of large requests holds their bytes once.
    fn share_equal_ropes(&mut self) {
        let mut distinct: Vec<Rope> = Vec::new();
        for piece in &mut self.pieces {
            if let Piece::Lent(rope) = piece {
                match distinct
                    .iter()
                    .find(|known| known.len() == rope.len() && known.slices(..).eq(rope.slices(..)))
                {
                    Some(known) => *rope = known.clone(),
                    None => distinct.push(rope.clone()),
                }
            }
        }
    }
}

/// The bytes of one request with these arguments.
pub fn encode<A: AsRef<[u8]>>(arguments: &[A]) -> Vec<u8> {
    let mut request = Vec::new();
    let mut writer = RequestWriter::new(&mut request);
    writer.begin(arguments.len());
    for argument in arguments {
        writer.arg(argument.as_ref());
    }
    request
}

/// Writes `value` with leading zeroes over the [`NUMBER_BYTES`] bytes of `place`.
fn write_number(place: &mut [u8], mut value: u64) {
    for pair in place.rchunks_exact_mut(2) {
        pair.copy_from_slice(&PAIRS[(value % 100) as usize]);
        value /= 100;
    }
}

/// "00" to "99".
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut value = 0;
    while value < 100 {
        pairs[value] = [b'0' + (value / 10) as u8, b'0' + (value % 10) as u8];
        value += 1;
    }
    pairs
};

#[cfg(test)]
mod tests {
    use super::*;

    fn appended(template: &Template, first: u64) -> String {
        let mut out = Output::new();
        let mut next = first;
        template.append(&mut out, || {
            next += 1;
            next - 1
        });
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn numbers_are_written_in_place() {
        let request = encode(&["MSET", "key:__rand_int__:__rand_int__", "__rand_int__x"]);
        let template = Template::new(&request, 2, true);
        assert_eq!(
            appended(&template, 98),
            "*3\r\n$4\r\nMSET\r\n$29\r\nkey:000000000098:000000000099\r\n$13\r\n000000000100x\r\n\
             *3\r\n$4\r\nMSET\r\n$29\r\nkey:000000000101:000000000102\r\n$13\r\n000000000103x\r\n"
        );
        // The template is as it was.
        assert!(appended(&template, 999_999_999_990).contains("key:999999999990:999999999991\r"));
        assert!(appended(&template, 0).contains("key:000000000000:000000000001\r"));
    }

    #[test]
    fn without_numbers_the_placeholder_stays() {
        let request = encode(&["GET", "key:__rand_int__"]);
        let template = Template::new(&request, 1, false);
        assert_eq!(
            appended(&template, 0),
            "*2\r\n$3\r\nGET\r\n$16\r\nkey:__rand_int__\r\n"
        );
    }

    #[test]
    fn large_stretches_are_lent() {
        let value = "v".repeat(100_000);
        let request = encode(&["SET", "key:__rand_int__", &value]);
        let template = Template::new(&request, 2, true);
        let lent: Vec<&Rope> = template
            .pieces
            .iter()
            .filter_map(|piece| match piece {
                Piece::Lent(rope) => Some(rope),
                Piece::Copied { .. } => None,
            })
            .collect();
        assert_eq!(lent.len(), 2);
        assert!(std::ptr::eq(lent[0].chunks(), lent[1].chunks()));
        let once = |number: u32| {
            format!("*3\r\n$3\r\nSET\r\n$16\r\nkey:{number:012}\r\n$100000\r\n{value}\r\n")
        };
        assert_eq!(appended(&template, 7), once(7) + &once(8));
    }

    #[test]
    fn every_count_of_digits() {
        let mut place = [b'x'; NUMBER_BYTES];
        let mut value = 1;
        while value < NUMBER_END {
            for value in [value - 1, value, value + 1] {
                write_number(&mut place, value);
                assert_eq!(place, *format!("{value:012}").as_bytes());
            }
            value *= 10;
        }
    }
}
