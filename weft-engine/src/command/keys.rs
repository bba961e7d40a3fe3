//! Where a command's keys stand among its arguments.
//!
//! One table drives routing, latching, ACL and COMMAND GETKEYS, so that keys checked are keys touched.

use smallvec::SmallVec;
use weft_resp::Args;

use super::flags::KeyFlags;

/// One group of keys: where it begins and how the keys follow.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    /// Where the search begins.
    pub begin: Begin,
    /// How the keys follow from there.
    pub find: Find,
    /// What is done with them.
    pub flags: KeyFlags,
    /// A remark for COMMAND INFO; empty if none.
    pub notes: &'static str,
}

/// Where the search for keys begins.
#[derive(Clone, Copy, Debug)]
pub enum Begin {
    /// At this argument.
    Index(i32),
    /// Behind this word, searched from that argument on (backwards from the end if negative).
    Keyword(&'static str, i32),
    /// Not described by a rule.
    Unknown,
}

/// How keys follow from where the search begins.
#[derive(Clone, Copy, Debug)]
pub enum Find {
    /// From the first to `last` (relative to the first; negative: counted from the end), every `step`. With a
    /// negative `last`, only the first 1/`limit` of the remaining arguments if `limit` is above 1.
    Range {
        /// The last key's distance from the first.
        last: i32,
        /// The distance between keys.
        step: i32,
        /// The share of the arguments to look at.
        limit: i32,
    },
    /// An argument says how many keys there are.
    KeyNumber {
        /// The distance of that argument.
        number: i32,
        /// The distance of the first key.
        first: i32,
        /// The distance between keys.
        step: i32,
    },
    /// Not described by a rule.
    Unknown,
}

/// One key among the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyArgument {
    /// The argument's number, the command's name being 0.
    pub argument: usize,
    /// What is done with it.
    pub flags: KeyFlags,
}

/// The keys of a command, in the order of their specifications.
pub type FoundKeys = SmallVec<[KeyArgument; 4]>;

/// Why the keys of a command could not be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysError {
    /// The number of keys is missing, no number, or larger than the arguments allow.
    Invalid,
}

impl KeySpec {
    /// Keys from argument `first` to `last` (negative: counted from the end) every `step`.
    #[must_use]
    pub const fn range(first: i32, last: i32, step: i32, flags: KeyFlags) -> Self {
        let last = if last >= 0 { last - first } else { last };
        Self {
            begin: Begin::Index(first),
            find: Find::Range {
                last,
                step,
                limit: 0,
            },
            flags,
            notes: "",
        }
    }

    /// The one key at argument `index`.
    #[must_use]
    pub const fn one(index: i32, flags: KeyFlags) -> Self {
        Self::range(index, index, 1, flags)
    }

    /// Keys that no rule finds.
    #[must_use]
    pub const fn unknown(flags: KeyFlags) -> Self {
        Self {
            begin: Begin::Unknown,
            find: Find::Unknown,
            flags,
            notes: "",
        }
    }

    /// The same with a remark.
    #[must_use]
    pub const fn notes(mut self, notes: &'static str) -> Self {
        self.notes = notes;
        self
    }

    /// Appends the keys this group has in `args`.
    ///
    /// # Errors
    /// If the number of keys is not what the arguments allow.
    pub fn extract(&self, args: Args<'_>, found: &mut FoundKeys) -> Result<(), KeysError> {
        let count = args.len() as i64;
        let Some(first) = self.first(args) else {
            return Ok(());
        };
        let (first, last, step) = match self.find {
            Find::Range { last, step, limit } => {
                let last = match i64::from(last) {
                    distance if distance >= 0 => first + distance,
                    distance if limit <= 1 => count + distance,
                    distance => first + (count - first) / i64::from(limit) + distance,
                };
                (first, last, step)
            }
            Find::KeyNumber {
                number,
                first: distance,
                step,
            } => {
                let at =
                    usize::try_from(first + i64::from(number)).map_err(|_| KeysError::Invalid)?;
                let text = args.get(at).ok_or(KeysError::Invalid)?;
                let keys = leading_number(text)
                    .filter(|keys| (1..count).contains(keys))
                    .ok_or(KeysError::Invalid)?;
                let first = first + i64::from(distance);
                (first, first + (keys - 1) * i64::from(step), step)
            }
            Find::Unknown => return Ok(()),
        };
        if last >= count {
            return Err(KeysError::Invalid);
        }
        let mut at = first;
        while at <= last {
            found.push(KeyArgument {
                argument: usize::try_from(at).map_err(|_| KeysError::Invalid)?,
                flags: self.flags,
            });
            at += i64::from(step.max(1));
        }
        Ok(())
    }

    fn first(&self, args: Args<'_>) -> Option<i64> {
        match self.begin {
            Begin::Index(index) => Some(i64::from(index)),
            Begin::Unknown => None,
            Begin::Keyword(word, from) => {
                let named = |at: &usize| {
                    args.get(*at)
                        .is_some_and(|text| text.eq_ignore_ascii_case(word.as_bytes()))
                };
                let start = usize::try_from(from.unsigned_abs()).ok()?;
                let at = if from >= 0 {
                    (start..args.len()).find(named)
                } else {
                    (1..args.len().checked_sub(start)? + 1).rev().find(named)
                };
                at.map(|at| at as i64 + 1)
            }
        }
    }
}
/// The number that the text begins with: Redis looks for keys with C's `atoi`, although it then refuses the command.
fn leading_number(text: &[u8]) -> Option<i64> {
    let text = text.trim_ascii_start();
    let text = text.strip_prefix(b"+").unwrap_or(text);
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&text[..digits]).ok()?.parse().ok()
}
