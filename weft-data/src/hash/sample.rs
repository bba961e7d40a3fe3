//! Samples: random fields of a hash, in steps.
use std::collections::HashSet;

use super::{Field, Hash, Walk};

/// Random fields of a snapshot at one point in time.
#[derive(Clone, Debug)]
pub struct Sample {
    way: Way,
    now_ms: u64,
    /// Fields yet to be yielded.
    left: u64,
}

#[derive(Clone, Debug)]
enum Way {
    /// Any field each time.
    Repeated(Hash),
    /// Numbers are drawn until one is new and its field lives: for few fields of many.
    Drawn { hash: Hash, seen: HashSet<usize> },
    /// All fields are passed, and each is taken with the chance that it deserves.
    Passed { walk: Walk, live_left: u64 },
}

impl Sample {
    /// So many fields, each any of the live ones; none if none lives.
    #[must_use]
    pub fn repeated(hash: Hash, count: u64, now_ms: u64) -> Self {
        let is_empty = hash.as_ref().live_len(now_ms) == 0;
        Self {
            way: Way::Repeated(hash),
            now_ms,
            left: if is_empty { 0 } else { count },
        }
    }

    /// So many different live fields, or all of them.
    #[must_use]
    pub fn different(hash: Hash, count: usize, now_ms: u64) -> Self {
        let (all, live) = (hash.len(), hash.as_ref().live_len(now_ms));
        let left = count.min(live);
        // So more than a third of the draws are good.
        let way = if left * 3 <= live && live * 2 >= all {
            Way::Drawn {
                hash,
                seen: HashSet::new(),
            }
        } else {
            Way::Passed {
                walk: Walk::new(hash, now_ms),
                live_left: live as u64,
            }
        };
        Self {
            way,
            now_ms,
            left: left as u64,
        }
    }

    /// How many fields are yet to be yielded.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Calls `each` with a field, or with the next few, or finds that a draw was none. `draw` gives each number below its argument as
    /// likely as any other.
    pub fn step(&mut self, mut draw: impl FnMut(u64) -> u64, mut each: impl FnMut(Field<'_>)) {
        let (now_ms, left) = (self.now_ms, &mut self.left);
        if *left == 0 {
            return;
        }
        match &mut self.way {
            Way::Repeated(hash) => {
                if let Some(field) = hash.as_ref().random(now_ms, &mut draw) {
                    each(field);
                }
                *left -= 1;
            }
            Way::Drawn { hash, seen } => {
                let number = draw(hash.len() as u64) as usize;
                if let Some(field) = hash.as_ref().nth(number)
                    && field.is_live(now_ms)
                    && seen.insert(number)
                {
                    each(field);
                    *left -= 1;
                }
            }
            Way::Passed { walk, live_left } => walk.step(|field| {
                let is_taken = *left == *live_left || draw(*live_left) < *left;
                *live_left -= 1;
                if is_taken && *left > 0 {
                    *left -= 1;
                    each(field);
                }
            }),
        }
    }

    /// The snapshot.
    #[must_use]
    pub fn into_hash(self) -> Hash {
        match self.way {
            Way::Repeated(hash) | Way::Drawn { hash, .. } => hash,
            Way::Passed { walk, .. } => walk.into_hash(),
        }
    }
}
