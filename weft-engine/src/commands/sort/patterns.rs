//! Patterns of BY and GET: names of keys, perhaps of fields, with a place for an element.
//!
//! Names end at a NUL for whoever looks for the place and the arrow, as in Redis.

use std::borrow::Cow;

use weft_data::collection::Kind;
use weft_data::hash::{HashRef, Value};
use weft_keyspace::StringRef;

use super::super::values::short_text;
use crate::dispatch::Unit;

/// A pattern that has a place for an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pattern<'a> {
    before: &'a [u8],
    behind: &'a [u8],
    /// The field of the hash that is meant.
    field: Option<&'a [u8]>,
}

impl<'a> Pattern<'a> {
    /// None if there is no place.
    pub(super) fn parse(text: &'a [u8]) -> Option<Self> {
        let end = text.iter().position(|byte| *byte == 0);
        let visible = &text[..end.unwrap_or(text.len())];
        let place = visible.iter().position(|byte| *byte == b'*')?;
        let arrow = visible[place + 1..]
            .windows(2)
            .position(|two| two == b"->")
            .map(|at| place + 1 + at)
            .filter(|at| visible.len() > at + 2);
        Some(Self {
            before: &text[..place],
            behind: &text[place + 1..arrow.unwrap_or(text.len())],
            field: arrow.map(|at| &text[at + 2..]),
        })
    }

    /// Writes the name of the key for an element.
    pub(super) fn write_name(&self, element: &[u8], name: &mut Vec<u8>) {
        name.clear();
        name.extend_from_slice(self.before);
        name.extend_from_slice(element);
        name.extend_from_slice(self.behind);
    }
}

/// What a pattern leads to.
#[derive(Clone, Copy)]
pub(super) struct Found<'u>(StringRef<'u>);

impl<'u> Found<'u> {
    /// As a string is replied.
    pub(super) fn value(self) -> StringRef<'u> {
        self.0
    }

    /// The whole text.
    pub(super) fn text(self) -> Cow<'u, [u8]> {
        match self.0 {
            StringRef::Bytes(bytes) => bytes.into(),
            StringRef::Rope(rope) => rope
                .as_contiguous()
                .map_or_else(|| rope.to_vec().into(), Cow::from),
            StringRef::Int(_) => short_text(self.0)
                .map(|text| text.into_owned().into())
                .unwrap_or_default(),
        }
    }
}

/// Looks up what the pattern leads to in the key of this name.
pub(super) fn look<'u>(
    unit: &'u Unit<'_>,
    pattern: &Pattern<'_>,
    name: &[u8],
) -> Option<Found<'u>> {
    let entry = unit.read(unit.unnamed(name))?;
    let Some(field) = pattern.field else {
        return entry.string().map(Found);
    };
    let hash = entry
        .collection()
        .filter(|collection| collection.kind() == Kind::Hash)?;
    let field = HashRef::from(hash).get(field, unit.now_ms())?;
    Some(Found(match field.value {
        Value::Bytes(bytes) => StringRef::Bytes(bytes),
        Value::Rope(rope) => StringRef::Rope(rope),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Option<[&[u8]; 3]> {
        let pattern = Pattern::parse(text.as_bytes())?;
        let field = pattern.field.unwrap_or(b"none");
        Some([pattern.before, pattern.behind, field])
    }

    fn found(before: &str, behind: &str, field: &str) -> Option<[Vec<u8>; 3]> {
        Some([before, behind, field].map(|part| part.as_bytes().to_vec()))
    }

    #[test]
    fn places_and_arrows() {
        let own = |text| parts(text).map(|parts| parts.map(<[u8]>::to_vec));
        assert_eq!(own("nosort"), None);
        assert_eq!(own("h->f"), None);
        assert_eq!(own("w_*"), found("w_", "", "none"));
        assert_eq!(own("a*b*c"), found("a", "b*c", "none"));
        assert_eq!(own("h*x->f"), found("h", "x", "f"));
        assert_eq!(own("h*->f->g"), found("h", "", "f->g"));
        assert_eq!(own("h*->"), found("h", "->", "none"));
        assert_eq!(own("h->*"), found("h->", "", "none"));
        assert_eq!(own("a\0*"), None);
        assert_eq!(own("a*\0->f"), found("a", "\0->f", "none"));
    }
}
