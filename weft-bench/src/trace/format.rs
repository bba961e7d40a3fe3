//! The file of a trace.
//!
//! [`Writer`] makes it, [`Trace`] takes it apart. Invariants: a trace from anywhere can be opened, its size bounds what is
//! allocated, and what is cut off at its end costs only that; requests are in the order in which they were recorded.
//!
//! ```text
//!  "WEFTTRC" VERSION(1)                                                  then records, each with a tag:
//!  1 LEN BYTES                                                           a client; they are numbered from 0
//!  2 LEN BYTES                                                           a name of a command; they are numbered from 1
//!  3 MICROSECONDS CLIENT DATABASE NAME COUNT (LEN BYTES)*                a request
//!  0 REQUESTS CRC                                                        the end
//!
//!  MICROSECONDS: since the request before.  NAME 0: the first argument is the name; otherwise the name is not counted.
//!  CRC: CRC-32C of all bytes before it, 4 bytes, little-endian.  All other numbers: LEB128, 7 bits a byte, lowest first.
//! ```

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use crc::{CRC_32_ISCSI, Crc, Digest, Table};

/// What a trace begins with.
const MAGIC: &[u8; 7] = b"WEFTTRC";

/// The version of the form.
const VERSION: u8 = 1;

/// Names are numbered up to here; others are spelled out.
const NAMES_MAX: usize = 4096;
/// The longest name that is numbered.
const NAME_BYTES_MAX: usize = 64;
/// The longest address.
const ADDRESS_BYTES_MAX: usize = 512;
/// The most clients; those behind it are taken for the last.
pub const CLIENTS_MAX: usize = 1 << 20;
/// The most arguments of a request: what a server takes.
const ARGUMENTS_MAX: u64 = 1 << 20;

const END: u8 = 0;
const CLIENT: u8 = 1;
const NAME: u8 = 2;
const REQUEST: u8 = 3;

type Checksum = Crc<u32, Table<16>>;

static CHECKSUM: Checksum = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

/// Writes a trace.
pub struct Writer<W> {
    out: W,
    digest: Digest<'static, u32, Table<16>>,
    record: Vec<u8>,
    clients: HashMap<Vec<u8>, u64>,
    names: HashMap<Vec<u8>, u64>,
    last_us: Option<u64>,
    requests: u64,
    bytes: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a trace.
    pub fn new(out: W) -> io::Result<Writer<W>> {
        let mut writer = Writer {
            out,
            digest: CHECKSUM.digest(),
            record: Vec::new(),
            clients: HashMap::new(),
            names: HashMap::new(),
            last_us: None,
            requests: 0,
            bytes: 0,
        };
        writer.record.extend_from_slice(MAGIC);
        writer.record.push(VERSION);
        writer.put()?;
        Ok(writer)
    }

    /// Adds a request: when, in microseconds, by whom, in which database, and the arguments, of which there is at least one.
    /// A time before that of the last request counts as the same.
    pub fn request(
        &mut self,
        at_us: u64,
        client: &[u8],
        database: u32,
        arguments: &[Vec<u8>],
    ) -> io::Result<()> {
        let client = self.client(client)?;
        let name = self.name(&arguments[0])?;
        let before_us = self.last_us.unwrap_or(at_us);
        self.last_us = Some(before_us.max(at_us));
        let spelled = match name {
            0 => arguments,
            _ => &arguments[1..],
        };
        self.record.push(REQUEST);
        for number in [
            at_us.saturating_sub(before_us),
            client,
            u64::from(database),
            name,
            spelled.len() as u64,
        ] {
            put_number(number, &mut self.record);
        }
        for argument in spelled {
            put_text(argument, &mut self.record);
        }
        self.requests += 1;
        self.put()
    }

    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Requests so far.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Clients so far.
    pub fn clients(&self) -> usize {
        self.clients.len()
    }

    /// Ends the trace.
    pub fn finish(mut self) -> io::Result<W> {
        self.record.push(END);
        put_number(self.requests, &mut self.record);
        self.put()?;
        let checksum = self.digest.finalize();
        self.out.write_all(&checksum.to_le_bytes())?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn client(&mut self, address: &[u8]) -> io::Result<u64> {
        let address = &address[..address.len().min(ADDRESS_BYTES_MAX)];
        if let Some(&number) = self.clients.get(address) {
            return Ok(number);
        }
        let number = self.clients.len() as u64;
        if self.clients.len() >= CLIENTS_MAX {
            return Ok(number - 1);
        }
        self.clients.insert(address.to_vec(), number);
        self.record.push(CLIENT);
        put_text(address, &mut self.record);
        self.put()?;
        Ok(number)
    }

    fn name(&mut self, name: &[u8]) -> io::Result<u64> {
        if let Some(&number) = self.names.get(name) {
            return Ok(number);
        }
        if self.names.len() >= NAMES_MAX || name.len() > NAME_BYTES_MAX {
            return Ok(0);
        }
        let number = self.names.len() as u64 + 1;
        self.names.insert(name.to_vec(), number);
        self.record.push(NAME);
        put_text(name, &mut self.record);
        self.put()?;
        Ok(number)
    }

    /// Writes the record.
    fn put(&mut self) -> io::Result<()> {
        self.digest.update(&self.record);
        self.bytes += self.record.len() as u64;
        self.out.write_all(&self.record)?;
        self.record.clear();
        Ok(())
    }
}

fn put_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_text(text: &[u8], out: &mut Vec<u8>) {
    put_number(text.len() as u64, out);
    out.extend_from_slice(text);
}

/// Why bytes are no trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceError {
    /// They do not begin like one.
    Magic,
    /// They are of a version that is not known here.
    Version(u8),
    /// At this byte stands what cannot be there.
    Malformed(usize),
    /// The checksum is not that of the bytes.
    Checksum,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceError::Magic => f.write_str("this is no trace of weft-bench record"),
            TraceError::Version(version) => {
                write!(
                    f,
                    "a trace of version {version}, and this program knows version {VERSION}"
                )
            }
            TraceError::Malformed(at) => write!(f, "the trace is damaged at byte {at}"),
            TraceError::Checksum => f.write_str("the trace is damaged: its checksum is wrong"),
        }
    }
}

/// A trace.
#[derive(Debug)]
pub struct Trace {
    bytes: Arc<[u8]>,
    names: Vec<Range<usize>>,
    /// The requests of each client, in order.
    pub clients: Vec<Client>,
    /// From the first request to the last, in microseconds.
    pub length_us: u64,
    /// Requests.
    pub requests: u64,
    /// Whether its end is there. If not, the recording was cut off.
    pub complete: bool,
}

/// A client.
#[derive(Clone, Debug, Default)]
pub struct Client {
    /// Its requests.
    pub requests: Vec<Place>,
}

/// Where a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// When, in microseconds since the first request of the trace.
    pub at_us: u64,
    /// Behind the time and the client.
    offset: usize,
}

/// A request, to be looked at.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The database.
    pub database: u32,
    /// The name.
    pub name: &'a [u8],
    /// How many arguments follow.
    pub count: usize,
    arguments: &'a [u8],
}

impl<'a> Request<'a> {
    /// The arguments behind the name.
    pub fn arguments(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut reader = Reader {
            bytes: self.arguments,
            at: 0,
        };
        (0..self.count).map_while(move |_| reader.text().map(|range| &reader.bytes[range]))
    }
}

impl Trace {
    /// Opens a trace.
    pub fn open(bytes: Arc<[u8]>) -> Result<Trace, TraceError> {
        let version = match bytes.strip_prefix(MAGIC) {
            Some([version, ..]) => *version,
            _ => return Err(TraceError::Magic),
        };
        if version != VERSION {
            return Err(TraceError::Version(version));
        }
        let mut trace = Trace {
            bytes: Arc::clone(&bytes),
            names: Vec::new(),
            clients: Vec::new(),
            length_us: 0,
            requests: 0,
            complete: false,
        };
        let mut reader = Reader {
            bytes: &bytes,
            at: MAGIC.len() + 1,
        };
        while reader.at < bytes.len() && !trace.complete {
            let start = reader.at;
            match trace.record(&mut reader) {
                Some(Ok(())) => {}
                // A record that goes on behind the end was not written to its end.
                None => break,
                Some(Err(TraceError::Malformed(_))) => return Err(TraceError::Malformed(start)),
                Some(Err(error)) => return Err(error),
            }
        }
        Ok(trace)
    }

    /// Reads a record. `None`: the bytes end in it.
    fn record(&mut self, reader: &mut Reader<'_>) -> Option<Result<(), TraceError>> {
        let malformed = Some(Err(TraceError::Malformed(0)));
        match reader.byte()? {
            CLIENT => {
                let address = reader.text()?;
                if address.len() > ADDRESS_BYTES_MAX || self.clients.len() >= CLIENTS_MAX {
                    return malformed;
                }
                self.clients.push(Client::default());
            }
            NAME => {
                let name = reader.text()?;
                if name.len() > NAME_BYTES_MAX || self.names.len() >= NAMES_MAX {
                    return malformed;
                }
                self.names.push(name);
            }
            REQUEST => {
                let after_us = reader.number()?;
                let client = reader.number()?;
                let offset = reader.at;
                let database = reader.number()?;
                let name = reader.number()?;
                let count = reader.number()?;
                if database > u64::from(u32::MAX)
                    || name > self.names.len() as u64
                    || count > ARGUMENTS_MAX
                    || (name == 0 && count == 0)
                {
                    return malformed;
                }
                for _ in 0..count {
                    reader.text()?;
                }
                let clients = usize::try_from(client)
                    .ok()
                    .and_then(|client| self.clients.get_mut(client));
                let (Some(client), Some(at_us)) = (clients, self.length_us.checked_add(after_us))
                else {
                    return malformed;
                };
                self.length_us = at_us;
                client.requests.push(Place { at_us, offset });
                self.requests += 1;
            }
            END => {
                let requests = reader.number()?;
                let checked = &reader.bytes[..reader.at];
                let written = reader.bytes.get(reader.at..reader.at + 4)?;
                if CHECKSUM.checksum(checked).to_le_bytes() != written {
                    return Some(Err(TraceError::Checksum));
                }
                if requests != self.requests {
                    return malformed;
                }
                self.complete = true;
            }
            _ => return malformed,
        }
        Some(Ok(()))
    }

    /// The request at a place of this trace.
    pub fn request(&self, place: Place) -> Request<'_> {
        let mut reader = Reader {
            bytes: &self.bytes,
            at: place.offset,
        };
        // What stands here was looked at when the trace was opened.
        let mut number = || reader.number().unwrap_or(0);
        let (database, name, count) = (number() as u32, number() as usize, number() as usize);
        let (name, count) = match name.checked_sub(1).and_then(|index| self.names.get(index)) {
            Some(range) => (&self.bytes[range.clone()], count),
            None => match reader.text() {
                Some(range) => (&self.bytes[range], count.saturating_sub(1)),
                None => (&[][..], 0),
            },
        };
        Request {
            database,
            name,
            count,
            arguments: &self.bytes[reader.at..],
        }
    }
}

/// Takes bytes apart. `None` throughout: they end too early, or a number is too great.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn text(&mut self) -> Option<Range<usize>> {
        let len = usize::try_from(self.number()?).ok()?;
        let start = self.at;
        let end = start
            .checked_add(len)
            .filter(|&end| end <= self.bytes.len())?;
        self.at = end;
        Some(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Told = (u64, u32, Vec<Vec<u8>>);

    fn arguments(line: &str) -> Vec<Vec<u8>> {
        line.split(' ')
            .map(|word| word.as_bytes().to_vec())
            .collect()
    }

    fn written() -> Vec<u8> {
        let mut writer = Writer::new(Vec::new()).unwrap();
        writer
            .request(1000, b"a:1", 0, &arguments("SET k v"))
            .unwrap();
        writer.request(1500, b"b:2", 3, &arguments("PING")).unwrap();
        writer
            .request(1400, b"a:1", 0, &arguments("SET k "))
            .unwrap();
        let long = "X".repeat(NAME_BYTES_MAX + 1);
        writer
            .request(9_000_000, b"a:1", 0, &arguments(&long))
            .unwrap();
        assert_eq!((writer.requests(), writer.clients()), (4, 2));
        let bytes = writer.bytes();
        let out = writer.finish().unwrap();
        assert_eq!(out.len() as u64, bytes + 2 + 4);
        out
    }

    fn told(trace: &Trace, client: usize) -> Vec<Told> {
        trace.clients[client]
            .requests
            .iter()
            .map(|place| {
                let request = trace.request(*place);
                let mut arguments = vec![request.name.to_vec()];
                arguments.extend(request.arguments().map(<[u8]>::to_vec));
                assert_eq!(arguments.len(), request.count + 1);
                (place.at_us, request.database, arguments)
            })
            .collect()
    }

    #[test]
    fn what_was_written_is_read() {
        let trace = Trace::open(written().into()).unwrap();
        assert!(trace.complete);
        assert_eq!((trace.requests, trace.clients.len()), (4, 2));
        assert_eq!(trace.length_us, 8_999_000);
        assert_eq!(
            told(&trace, 0),
            [
                (0, 0, arguments("SET k v")),
                (500, 0, arguments("SET k ")),
                (8_999_000, 0, arguments(&"X".repeat(NAME_BYTES_MAX + 1))),
            ]
        );
        assert_eq!(told(&trace, 1), [(500, 3, arguments("PING"))]);
    }

    #[test]
    fn a_trace_that_was_cut_off_is_read_as_far_as_it_goes() {
        let bytes = written();
        let mut requests = Vec::new();
        for end in 8..bytes.len() {
            let trace = Trace::open(bytes[..end].into()).unwrap();
            assert!(!trace.complete);
            requests.push(trace.requests);
        }
        assert!(requests.is_sorted());
        assert_eq!(requests.last(), Some(&4));
    }

    #[test]
    fn what_is_damaged_is_refused() {
        let opened = |bytes: &[u8]| Trace::open(bytes.into()).map(|trace| trace.requests);
        assert_eq!(opened(b""), Err(TraceError::Magic));
        assert_eq!(opened(b"WEFTTRC"), Err(TraceError::Magic));
        assert_eq!(opened(b"WEFTTRC\x02"), Err(TraceError::Version(2)));
        assert_eq!(opened(b"WEFTTRC\x01\x09"), Err(TraceError::Malformed(8)));
        // A request of a client that there is not.
        assert_eq!(
            opened(b"WEFTTRC\x01\x03\x00\x00\x00\x00\x01\x01a"),
            Err(TraceError::Malformed(8))
        );
        let bytes = written();
        for at in 8..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x55;
            // Refused, or cut off where a length became too great.
            if let Ok(trace) = Trace::open(damaged.into()) {
                assert!(!trace.complete, "byte {at}");
                (0..trace.clients.len()).for_each(|client| drop(told(&trace, client)));
            }
        }
    }

    #[test]
    fn random_bytes_are_read_without_harm() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..20_000 {
            let mut bytes = b"WEFTTRC\x01".to_vec();
            bytes.extend((0..random.usize(..60)).map(|_| random.u8(..6)));
            if let Ok(trace) = Trace::open(bytes.into()) {
                (0..trace.clients.len()).for_each(|client| drop(told(&trace, client)));
            }
        }
    }
}
