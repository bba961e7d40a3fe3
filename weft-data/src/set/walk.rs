//! Walks: all members of a set in steps, whatever happens to it meanwhile.
use super::flat::Flat;
use super::{Form, Member, Set, SetRef};

/// Members that a step yields, about.
const MEMBERS_A_STEP: usize = 32;

/// A walk through a snapshot: each member once, in the set's order if it has one.
#[derive(Clone, Debug)]
pub struct Walk {
    set: Set,
    /// A cursor of the table's, or a place among the bytes.
    at: u64,
    over: bool,
}

impl Walk {
    /// Begins a walk.
    #[must_use]
    pub fn new(set: Set) -> Self {
        Self {
            over: set.is_empty(),
            set,
            at: 0,
        }
    }

    /// The set that is walked through.
    #[must_use]
    pub fn set(&self) -> SetRef<'_> {
        self.set.as_ref()
    }

    /// The same, whole.
    #[must_use]
    pub fn into_set(self) -> Set {
        self.set
    }

    /// Whether all members have been yielded.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.over
    }

    /// Calls `each` with the next few members.
    pub fn step(&mut self, mut each: impl FnMut(Member<'_>)) {
        if self.over {
            return;
        }
        match &self.set.0 {
            Form::Flat(bytes) => {
                let mut members = Flat::new(bytes).iter_from(self.at as usize);
                members.by_ref().take(MEMBERS_A_STEP).for_each(each);
                self.at = members.place() as u64;
                self.over = members.next().is_none();
            }
            Form::Table { members, .. } => {
                self.at = members.scan(self.at, MEMBERS_A_STEP, |handle| {
                    each(Member::Bytes(members.key(handle)));
                });
                self.over = self.at == 0;
            }
        }
    }
}
