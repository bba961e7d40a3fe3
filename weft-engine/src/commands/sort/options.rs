//! What a SORT asks for. One walk over its words serves those who run it and those who ask for its keys.

use std::ops::Range;

use smallvec::SmallVec;
use weft_resp::Args;

use super::super::options::{integer, is};
use super::patterns::Pattern;
use crate::command::{FoundKeys, KeyArgument, KeyFlags};
use crate::error::CommandError;

/// The word that stands for an element itself.
const ITSELF: &[u8] = b"#";

/// What is replied for an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Get {
    /// The element.
    Itself,
    /// Null: the pattern has no place for an element.
    Nothing,
    /// What the pattern in this argument leads to.
    Pattern(usize),
}

/// What is asked for.
#[derive(Clone, Debug)]
pub(super) struct Options {
    /// The argument with the pattern that leads to what is sorted by.
    pub(super) by: Option<usize>,
    /// A BY without a place for an element: nothing is sorted.
    pub(super) unsorted: bool,
    pub(super) gets: SmallVec<[Get; 2]>,
    pub(super) descending: bool,
    /// Texts are compared and not numbers.
    pub(super) alpha: bool,
    /// The argument that names where the result is stored.
    pub(super) store: Option<usize>,
    offset: i64,
    count: i64,
}

/// One clause, with the argument that belongs to it.
#[derive(Clone, Copy)]
enum Clause {
    Ascending,
    Descending,
    Alpha,
    Limit(usize),
    Store(usize),
    By(usize),
    Get(usize),
    /// No option.
    Unknown,
}

/// The options from the first on. Who meets an unknown one may go on: it is one argument long.
fn clauses(args: Args<'_>) -> impl Iterator<Item = Clause> {
    let mut at = 2;
    std::iter::from_fn(move || {
        let word = args.get(at)?;
        let left = args.len() - at - 1;
        let (clause, arguments) = if is(word, "ASC") {
            (Clause::Ascending, 0)
        } else if is(word, "DESC") {
            (Clause::Descending, 0)
        } else if is(word, "ALPHA") {
            (Clause::Alpha, 0)
        } else if is(word, "LIMIT") && left >= 2 {
            (Clause::Limit(at + 1), 2)
        } else if is(word, "STORE") && left >= 1 {
            (Clause::Store(at + 1), 1)
        } else if is(word, "BY") && left >= 1 {
            (Clause::By(at + 1), 1)
        } else if is(word, "GET") && left >= 1 {
            (Clause::Get(at + 1), 1)
        } else {
            (Clause::Unknown, 0)
        };
        at += 1 + arguments;
        Some(clause)
    })
}

impl Options {
    pub(super) fn parse(args: Args<'_>, may_store: bool) -> Result<Self, CommandError> {
        let mut parsed = Self {
            by: None,
            unsorted: false,
            gets: SmallVec::new(),
            descending: false,
            alpha: false,
            store: None,
            offset: 0,
            count: -1,
        };
        for clause in clauses(args) {
            match clause {
                Clause::Ascending => parsed.descending = false,
                Clause::Descending => parsed.descending = true,
                Clause::Alpha => parsed.alpha = true,
                Clause::Limit(at) => {
                    parsed.offset = integer(&args[at])?;
                    parsed.count = integer(&args[at + 1])?;
                }
                Clause::Store(at) if may_store => parsed.store = Some(at),
                Clause::By(at) if Pattern::parse(&args[at]).is_some() => parsed.by = Some(at),
                Clause::By(_) => parsed.unsorted = true,
                Clause::Get(at) => parsed.gets.push(match &args[at] {
                    ITSELF => Get::Itself,
                    pattern if Pattern::parse(pattern).is_some() => Get::Pattern(at),
                    _ => Get::Nothing,
                }),
                Clause::Store(_) | Clause::Unknown => return Err(CommandError::Syntax),
            }
        }
        if parsed.unsorted {
            parsed.by = None;
        }
        Ok(parsed)
    }

    /// Whether keys are read that the command does not name.
    pub(super) fn looks_up(&self) -> bool {
        let gets = self.gets.iter().any(|get| matches!(get, Get::Pattern(_)));
        gets || self.by.is_some()
    }

    /// Which of `len` elements in order are wanted.
    pub(super) fn window(&self, len: usize) -> Range<usize> {
        let from = usize::try_from(self.offset).unwrap_or(0).min(len);
        let count = usize::try_from(self.count).unwrap_or(usize::MAX);
        from..from.saturating_add(count).min(len)
    }
}

/// Whether patterns lead to keys that the command does not name.
pub(super) fn needs_all(args: Args<'_>) -> bool {
    clauses(args).any(|clause| match clause {
        Clause::By(at) | Clause::Get(at) => {
            &args[at] != ITSELF && Pattern::parse(&args[at]).is_some()
        }
        _ => false,
    })
}

fn source() -> FoundKeys {
    let mut keys = FoundKeys::new();
    keys.push(KeyArgument {
        argument: 1,
        flags: KeyFlags::RO.with(KeyFlags::ACCESS),
    });
    keys
}

/// The key that is sorted.
pub(super) fn keys_read(_: Args<'_>) -> FoundKeys {
    source()
}

/// The same, and the one that is stored in: of several the last.
pub(super) fn keys(args: Args<'_>) -> FoundKeys {
    let mut keys = source();
    let stores = clauses(args).filter_map(|clause| match clause {
        Clause::Store(at) => Some(at),
        _ => None,
    });
    if let Some(argument) = stores.last() {
        keys.push(KeyArgument {
            argument,
            flags: KeyFlags::OW.with(KeyFlags::UPDATE),
        });
    }
    keys
}
