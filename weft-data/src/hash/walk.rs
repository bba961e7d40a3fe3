//! Walks: all fields of a hash in steps, whatever happens to it meanwhile.
use super::flat::Flat;
use super::{Field, Form, Hash, HashRef};

/// Fields that a step yields, about.
const FIELDS_A_STEP: usize = 32;

/// A walk through a snapshot at one point in time: each live field once, in the hash's order if it has one.
#[derive(Clone, Debug)]
pub struct Walk {
    hash: Hash,
    now_ms: u64,
    /// A cursor of the table's, or a place among the bytes.
    at: u64,
    over: bool,
}

impl Walk {
    /// Begins a walk.
    #[must_use]
    pub fn new(hash: Hash, now_ms: u64) -> Self {
        Self {
            over: hash.is_empty(),
            hash,
            now_ms,
            at: 0,
        }
    }

    /// The hash that is walked through.
    #[must_use]
    pub fn hash(&self) -> HashRef<'_> {
        self.hash.as_ref()
    }

    /// The snapshot.
    #[must_use]
    pub fn into_hash(self) -> Hash {
        self.hash
    }

    /// Whether all fields have been yielded.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.over
    }

    /// Calls `each` with the next few fields.
    pub fn step(&mut self, mut each: impl FnMut(Field<'_>)) {
        if self.over {
            return;
        }
        let now_ms = self.now_ms;
        let mut each_live = |field: Field<'_>| {
            if field.is_live(now_ms) {
                each(field);
            }
        };
        match &self.hash.0 {
            Form::Flat(bytes) => {
                let mut fields = Flat::new(bytes).iter_from(self.at as usize);
                fields.by_ref().take(FIELDS_A_STEP).for_each(each_live);
                self.at = fields.place() as u64;
                self.over = fields.next().is_none();
            }
            Form::Keyed(keyed) => {
                self.at = keyed.scan(self.at, FIELDS_A_STEP, &mut each_live);
                self.over = self.at == 0;
            }
        }
    }
}
