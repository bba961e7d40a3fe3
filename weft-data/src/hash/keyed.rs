//! Large hashes: fields as members, their long values apart, and the order in which they expire.
//!
//! ```text
//! payload = flags, deadline, value      deadline: 6 bytes, high first, where the flags say so
//!                                       value: its bytes, or the number of a long one, 4 bytes, high first
//! ```
use weft_rope::Rope;

use super::deadlines::Deadlines;
use super::flat::Flat;
use super::{Deadline, Encoding, Field, Limits, ROPE_MIN, Value};
use crate::cow_vec::CowVec;
use crate::members::Members;
use crate::slab::Handle;

/// Fields by name.
#[derive(Clone, Debug)]
pub(super) struct Keyed {
    fields: Members,
    deadlines: Deadlines,
    long: LongValues,
    called: Encoding,
}

/// Flags of a payload.
const EXPIRES: u8 = 1;
const LONG: u8 = 2;

/// What is known of a field before it is written.
struct Standing {
    handle: Handle,
    deadline: Option<u64>,
    /// The number of its long value.
    long: Option<u32>,
}

/// A payload taken apart.
struct Payload<'a> {
    deadline: Option<u64>,
    body: Body<'a>,
}

#[derive(Clone, Copy)]
enum Body<'a> {
    Bytes(&'a [u8]),
    Long(u32),
}

impl<'a> Payload<'a> {
    #[inline]
    fn read(payload: &'a [u8]) -> Self {
        let (flags, rest) = payload
            .split_first()
            .expect("a field's payload begins with flags");
        let (deadline, body) = if flags & EXPIRES != 0 {
            let (deadline, body) = rest.split_at(6);
            let deadline = deadline
                .iter()
                .fold(0, |ms, &byte| ms << 8 | u64::from(byte));
            (Some(deadline), body)
        } else {
            (None, rest)
        };
        let body = if flags & LONG != 0 {
            Body::Long(
                body.iter()
                    .fold(0, |number, &byte| number << 8 | u32::from(byte)),
            )
        } else {
            Body::Bytes(body)
        };
        Self { deadline, body }
    }

    fn long(&self) -> Option<u32> {
        match self.body {
            Body::Long(number) => Some(number),
            Body::Bytes(_) => None,
        }
    }
}

impl Keyed {
    /// The same fields as flat bytes.
    pub(super) fn from_flat(flat: Flat<'_>, seed: u64) -> Self {
        let mut keyed = Self {
            fields: Members::new(seed),
            deadlines: Deadlines::default(),
            long: LongValues::default(),
            called: flat.called(),
        };
        for field in flat.iter() {
            keyed.write(None, field.name, field.value, field.deadline);
        }
        keyed
    }

    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    pub(super) const fn called(&self) -> Encoding {
        self.called
    }

    pub(super) fn allocated_bytes(&self) -> usize {
        self.fields.allocated_bytes()
            + self.deadlines.allocated_bytes()
            + self.long.allocated_bytes()
    }

    pub(super) fn due(&self) -> Option<u64> {
        self.deadlines.first().map(|(deadline, _)| deadline)
    }

    pub(super) fn due_len(&self, now_ms: u64) -> usize {
        self.deadlines.count_by(now_ms)
    }

    #[inline]
    pub(super) fn get(&self, name: &[u8]) -> Option<Field<'_>> {
        self.fields.get(name).map(|handle| self.field(handle))
    }

    #[inline]
    fn field(&self, handle: Handle) -> Field<'_> {
        let (name, payload) = self.fields.record(handle);
        let payload = Payload::read(payload);
        let value = match payload.body {
            Body::Bytes(bytes) => Value::Bytes(bytes),
            Body::Long(number) => Value::Rope(self.long.get(number)),
        };
        Field {
            name,
            value,
            deadline: payload.deadline,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Field<'_>> {
        self.fields.iter().map(|handle| self.field(handle))
    }

    pub(super) fn nth(&self, number: usize) -> Option<Field<'_>> {
        self.fields.nth(number).map(|handle| self.field(handle))
    }

    pub(super) fn scan<'a>(
        &'a self,
        cursor: u64,
        at_least: usize,
        each: &mut impl FnMut(Field<'a>),
    ) -> u64 {
        self.fields
            .scan(cursor, at_least, |handle| each(self.field(handle)))
    }

    pub(super) fn call_at_least(&mut self, called: Encoding) {
        if self.called == Encoding::Listpack || called == Encoding::Hashtable {
            self.called = called;
        }
    }

    pub(super) fn set(
        &mut self,
        name: &[u8],
        value: Value<'_>,
        deadline: Deadline,
        limits: &Limits,
    ) -> bool {
        if name.len() > limits.value || value.len() > limits.value {
            self.call_at_least(Encoding::Hashtable);
        }
        if matches!(deadline, Deadline::At(_)) {
            self.call_at_least(Encoding::ListpackEx);
        }
        let before = self.fields.get(name).map(|handle| self.standing(handle));
        let is_new = before.is_none();
        let old = before.as_ref().and_then(|before| before.deadline);
        self.write(before, name, value, deadline.applied_to(old));
        if is_new && self.len() > limits.entries {
            self.call_at_least(Encoding::Hashtable);
        }
        is_new
    }

    /// What is known of a field that is there.
    fn standing(&self, handle: Handle) -> Standing {
        let payload = Payload::read(self.fields.payload(handle));
        Standing {
            handle,
            deadline: payload.deadline,
            long: payload.long(),
        }
    }

    /// Writes a field, in the place of `before` if it is there.
    fn write(
        &mut self,
        before: Option<Standing>,
        name: &[u8],
        value: Value<'_>,
        deadline: Option<u64>,
    ) {
        let long_before = before.as_ref().and_then(|before| before.long);
        let long = match value {
            Value::Rope(rope) => Some(self.long.put(long_before, rope.clone())),
            Value::Bytes(bytes) if bytes.len() >= ROPE_MIN => {
                Some(self.long.put(long_before, Rope::from_slice(bytes)))
            }
            Value::Bytes(_) => {
                if let Some(number) = long_before {
                    self.long.remove(number);
                }
                None
            }
        };
        let number = long.unwrap_or(0).to_be_bytes();
        let body = match (long, value) {
            (None, Value::Bytes(bytes)) => bytes,
            _ => &number,
        };
        let handle_before = before.as_ref().map(|before| before.handle);
        let handle = self.write_payload(handle_before, name, body, long.is_some(), deadline);
        self.move_deadline(
            before.map(|before| (before.handle, before.deadline)),
            handle,
            deadline,
        );
    }

    fn write_payload(
        &mut self,
        before: Option<Handle>,
        name: &[u8],
        body: &[u8],
        is_long: bool,
        deadline: Option<u64>,
    ) -> Handle {
        let mut head = [0; 7];
        head[0] = if is_long { LONG } else { 0 };
        let head = match deadline {
            Some(ms) => {
                head[0] |= EXPIRES;
                head[1..].copy_from_slice(&ms.to_be_bytes()[2..]);
                &head[..]
            }
            None => &head[..1],
        };
        match before {
            Some(handle) => self.fields.replace(handle, name, &[head, body]),
            None => self.fields.insert_new(name, &[head, body]),
        }
    }

    /// Keeps the order of deadlines right when a field gets another deadline or another handle.
    fn move_deadline(
        &mut self,
        before: Option<(Handle, Option<u64>)>,
        handle: Handle,
        deadline: Option<u64>,
    ) {
        if before == Some((handle, deadline)) {
            return;
        }
        if let Some((handle, Some(deadline))) = before {
            self.deadlines.remove(deadline, handle);
        }
        if let Some(deadline) = deadline {
            self.deadlines.insert(deadline, handle);
        }
    }

    pub(super) fn set_deadline(&mut self, name: &[u8], deadline: Option<u64>) -> bool {
        let Some(before) = self.fields.get(name) else {
            return false;
        };
        if deadline.is_some() {
            self.call_at_least(Encoding::ListpackEx);
        }
        let payload = Payload::read(self.fields.payload(before));
        let old = payload.deadline;
        if old == deadline {
            return true;
        }
        let handle = match (old, deadline) {
            (Some(_), Some(ms)) => {
                self.fields.payload_mut(before)[1..7].copy_from_slice(&ms.to_be_bytes()[2..]);
                before
            }
            _ => {
                let is_long = payload.long().is_some();
                let body = match payload.body {
                    Body::Bytes(bytes) => bytes.to_vec(),
                    Body::Long(number) => number.to_be_bytes().to_vec(),
                };
                self.write_payload(Some(before), name, &body, is_long, deadline)
            }
        };
        self.move_deadline(Some((before, old)), handle, deadline);
        true
    }

    pub(super) fn remove(&mut self, name: &[u8]) -> bool {
        let Some(handle) = self.fields.get(name) else {
            return false;
        };
        self.remove_handle(handle);
        true
    }

    fn remove_handle(&mut self, handle: Handle) {
        let payload = Payload::read(self.fields.payload(handle));
        let (deadline, long) = (payload.deadline, payload.long());
        if let Some(number) = long {
            self.long.remove(number);
        }
        if let Some(deadline) = deadline {
            self.deadlines.remove(deadline, handle);
        }
        self.fields.remove_handle(handle);
    }

    pub(super) fn expire_due(
        &mut self,
        now_ms: u64,
        most: usize,
        each: &mut dyn FnMut(&[u8]),
    ) -> usize {
        let mut count = 0;
        while count < most
            && let Some((deadline, handle)) = self.deadlines.first()
            && deadline <= now_ms
        {
            each(self.fields.key(handle));
            self.remove_handle(handle);
            count += 1;
        }
        count
    }

    #[cfg(test)]
    pub(super) fn check(&self) {
        let expiring: Vec<Field<'_>> = self
            .iter()
            .filter(|field| field.deadline.is_some())
            .collect();
        assert_eq!(self.deadlines.len(), expiring.len());
        assert_eq!(
            self.due(),
            expiring.iter().filter_map(|field| field.deadline).min()
        );
        let long: Vec<usize> = self
            .iter()
            .filter_map(|field| match field.value {
                Value::Rope(rope) => Some(rope.allocated_bytes()),
                Value::Bytes(_) => None,
            })
            .collect();
        assert_eq!(self.long.bytes, long.iter().sum());
        assert_eq!(self.long.values.len() - self.long.vacant.len(), long.len());
    }
}

/// Long values by number.
#[derive(Clone, Debug, Default)]
struct LongValues {
    values: CowVec<Option<Rope>>,
    vacant: CowVec<u32>,
    /// Bytes of the ropes.
    bytes: usize,
}

impl LongValues {
    fn get(&self, number: u32) -> &Rope {
        let value = self.values.get(number as usize).and_then(Option::as_ref);
        value.expect("a field's number is that of a long value")
    }

    /// Puts a value in the place of the one with this number, or in a new place.
    fn put(&mut self, number: Option<u32>, rope: Rope) -> u32 {
        self.bytes += rope.allocated_bytes();
        match number.or_else(|| self.vacant.pop()) {
            Some(number) => {
                let place = self
                    .values
                    .get_mut(number as usize)
                    .expect("a place that was given out is one");
                if let Some(before) = place.replace(rope) {
                    self.bytes -= before.allocated_bytes();
                }
                number
            }
            None => {
                self.values.push(Some(rope));
                u32::try_from(self.values.len() - 1)
                    .expect("2^32 long values do not fit any memory")
            }
        }
    }

    fn remove(&mut self, number: u32) {
        if let Some(rope) = self.values.get_mut(number as usize).and_then(Option::take) {
            self.bytes -= rope.allocated_bytes();
            self.vacant.push(number);
        }
    }

    fn allocated_bytes(&self) -> usize {
        self.bytes + self.values.allocated_bytes() + self.vacant.allocated_bytes()
    }
}
