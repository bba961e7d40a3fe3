//! Random members, each as likely as any other.
//!
//! `draw(bound)` stands for a random number below a bound, all equally likely; what comes out is exactly uniform if they are.
use std::collections::HashSet;
use std::sync::Arc;

use super::flat::{self, Flat};
use super::walk::Walk;
use super::{Encoding, Form, Gathered, Limits, Member, Set, SetMut, SetRef, View, set_of};
use crate::collection::Draft;
use crate::members::Members;
use crate::slab::Handle;

/// From Redis, where it decides whether a set becomes `listpack` again: what is kept is picked out instead of what is popped,
/// if it is so many times less.
const KEPT_IF_LESS: usize = 5;
/// More than one in so many members wanted: all are walked through. Fewer: members are drawn until enough are different.
const WALKED_FROM: usize = 3;

impl<'a> SetRef<'a> {
    /// A random member, if there is any.
    pub fn random(self, mut draw: impl FnMut(u64) -> u64) -> Option<Member<'a>> {
        match self.0 {
            View::Flat(bytes) => {
                let flat = Flat::new(bytes);
                let len = flat.len();
                if len == 0 {
                    return None;
                }
                flat.at(draw(len as u64) as usize)
            }
            View::Table(members, _) => members
                .random(&mut draw)
                .map(|handle| Member::Bytes(members.key(handle))),
        }
    }
}

/// What was popped.
#[derive(Clone, Debug)]
pub enum Popped {
    /// These.
    Gathered(Gathered),
    /// All of these: they were so many that those that stay were taken out.
    Rest(Set),
}

impl Popped {
    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Popped::Gathered(gathered) => gathered.len(),
            Popped::Rest(set) => set.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl SetMut<'_, '_> {
    /// The form of a set that is not packed.
    fn form_mut(&mut self) -> Option<&mut Form> {
        match &mut *self.draft {
            Draft::Packed(_) => None,
            Draft::Large(collection) => Some(&mut set_of(collection).0),
            Draft::Grown(collection) => Some(&mut set_of(collection).0),
        }
    }

    /// Removes a random member and returns it, if there is any.
    pub fn pop(&mut self, mut draw: impl FnMut(u64) -> u64) -> Option<Vec<u8>> {
        if let Some(Form::Table { members, .. }) = self.form_mut() {
            let handle = members.random(&mut draw)?;
            let member = members.key(handle).to_vec();
            members.remove_handle(handle);
            return Some(member);
        }
        let member = self.as_ref()?.random(draw)?.to_vec();
        self.remove(&member);
        Some(member)
    }

    /// Removes `count` random members, or all if there are no more.
    pub fn pop_many(&mut self, count: usize, mut draw: impl FnMut(u64) -> u64) -> Popped {
        let (limits, seed) = (self.limits, self.seed);
        let set = match &mut *self.draft {
            Draft::Packed(bytes) => {
                let mut gathered = Gathered::default();
                if !bytes.is_empty() {
                    pop_flat(bytes, count, &mut draw, &mut gathered);
                    call_anew(bytes, gathered.len(), &limits);
                    if Flat::new(bytes).len() == 0 {
                        bytes.clear();
                    }
                }
                return Popped::Gathered(gathered);
            }
            Draft::Large(collection) => set_of(collection),
            Draft::Grown(collection) => set_of(collection),
        };
        let len = set.len();
        match &mut set.0 {
            Form::Flat(bytes) => {
                let mut gathered = Gathered::default();
                let bytes = Arc::make_mut(bytes);
                pop_flat(bytes, count, &mut draw, &mut gathered);
                call_anew(bytes, gathered.len(), &limits);
                Popped::Gathered(gathered)
            }
            Form::Table { members, called } => {
                let kept = len.saturating_sub(count);
                let picks_kept = is_less(kept, count);
                let mut stays = Set::empty(called_again(*called));
                let mut gathered = Gathered::default();
                for _ in 0..if picks_kept { kept } else { count } {
                    let Some(handle) = members.random(&mut draw) else {
                        break;
                    };
                    let text = members.key(handle);
                    if picks_kept {
                        stays.add(Member::Bytes(text), &limits, seed);
                    } else {
                        gathered.push(text);
                    }
                    members.remove_handle(handle);
                }
                if picks_kept {
                    Popped::Rest(std::mem::replace(set, stays))
                } else {
                    Popped::Gathered(gathered)
                }
            }
        }
    }
}

/// Whether a number of members is so much less than another that the fewer are picked out.
const fn is_less(kept: usize, count: usize) -> bool {
    kept.saturating_mul(KEPT_IF_LESS) <= count
}

/// What a set is called at first whose members are those that stay in another.
const fn called_again(called: Encoding) -> Encoding {
    match called {
        Encoding::Intset => Encoding::Intset,
        Encoding::Listpack | Encoding::Hashtable => Encoding::Listpack,
    }
}

fn pop_flat(
    bytes: &mut Vec<u8>,
    count: usize,
    draw: &mut impl FnMut(u64) -> u64,
    gathered: &mut Gathered,
) {
    let mut selection = Selection::new(Flat::new(bytes).len(), count);
    flat::retain(bytes, |member| {
        let popped = selection.takes(draw);
        if popped {
            member.with(|text| gathered.push(text));
        }
        !popped
    });
}

/// Where few members stay of those that were, Redis makes a new set of them.
fn call_anew(bytes: &mut Vec<u8>, popped: usize, limits: &Limits) {
    let flat = Flat::new(bytes);
    let called = flat.called();
    if called == Encoding::Listpack || !is_less(flat.len(), popped) {
        return;
    }
    let mut anew = flat::empty(called_again(called));
    for member in flat.iter() {
        flat::add(&mut anew, member, limits, |_| usize::MAX);
    }
    *bytes = anew;
}

/// Chooses some of many that come one after the other; any choice is as likely as any other.
#[derive(Clone, Copy, Debug)]
struct Selection {
    coming: u64,
    wanted: u64,
}

impl Selection {
    fn new(many: usize, some: usize) -> Self {
        Self {
            coming: many as u64,
            wanted: some.min(many) as u64,
        }
    }

    /// Whether the next one is chosen.
    fn takes(&mut self, draw: &mut impl FnMut(u64) -> u64) -> bool {
        let takes = self.wanted > 0 && draw(self.coming.max(1)) < self.wanted;
        self.coming = self.coming.saturating_sub(1);
        self.wanted -= u64::from(takes);
        takes
    }
}

/// Random members of a snapshot, made in steps.
#[derive(Clone, Debug)]
pub struct Sample(Manner);

#[derive(Clone, Debug)]
enum Manner {
    /// So many, and the same may come again. For a flat set, with the places of its members.
    Repeated {
        set: Set,
        places: Vec<u32>,
        left: u64,
    },
    /// So many different ones, which are few among all.
    Different {
        members: Members,
        seen: HashSet<Handle>,
        wanted: usize,
    },
    /// Different ones, which are many among all.
    Selected { walk: Walk, selection: Selection },
}

impl Sample {
    /// `count` members, of which some may be the same.
    #[must_use]
    pub fn repeated(set: Set, count: u64) -> Self {
        let mut places = Vec::new();
        if let Form::Flat(bytes) = &set.0 {
            let mut members = Flat::new(bytes).iter();
            let mut place = members.place();
            while members.next().is_some() {
                places.push(place as u32);
                place = members.place();
            }
        }
        let left = if set.is_empty() { 0 } else { count };
        Self(Manner::Repeated { set, places, left })
    }

    /// `count` different members, or all if there are no more. All of them, or those of a flat set, come in the set's order.
    #[must_use]
    pub fn different(set: Set, count: usize) -> Self {
        let len = set.len();
        match set.0 {
            Form::Table { members, .. } if count < len / WALKED_FROM => Self(Manner::Different {
                members,
                seen: HashSet::new(),
                wanted: count,
            }),
            _ => Self(Manner::Selected {
                selection: Selection::new(len, count),
                walk: Walk::new(set),
            }),
        }
    }

    /// The set that members are drawn from.
    #[must_use]
    pub fn into_set(self) -> Set {
        match self.0 {
            Manner::Repeated { set, .. } => set,
            Manner::Different { members, .. } => Set(Form::Table {
                members,
                called: Encoding::Hashtable,
            }),
            Manner::Selected { walk, .. } => walk.into_set(),
        }
    }

    /// How many members are still to come.
    #[must_use]
    pub fn left(&self) -> u64 {
        match &self.0 {
            Manner::Repeated { left, .. } => *left,
            Manner::Different { seen, wanted, .. } => (wanted - seen.len()) as u64,
            Manner::Selected { selection, .. } => selection.wanted,
        }
    }

    /// Calls `each` with the next few members; there may be none among those that were looked at.
    pub fn step(&mut self, mut draw: impl FnMut(u64) -> u64, mut each: impl FnMut(Member<'_>)) {
        const DRAWS_A_STEP: usize = 16;
        match &mut self.0 {
            Manner::Repeated { set, places, left } => {
                let draws = (*left).min(DRAWS_A_STEP as u64);
                *left -= draws;
                for _ in 0..draws {
                    let member = match &set.0 {
                        Form::Flat(bytes) => {
                            let place = places[draw(places.len() as u64) as usize];
                            Flat::new(bytes).iter_from(place as usize).next()
                        }
                        Form::Table { .. } => set.as_ref().random(&mut draw),
                    };
                    each(member.expect("a set that has members yields one"));
                }
            }
            Manner::Different {
                members,
                seen,
                wanted,
            } => {
                for _ in 0..DRAWS_A_STEP {
                    if seen.len() == *wanted {
                        break;
                    }
                    let handle = members.random(&mut draw);
                    let handle = handle.expect("there are more than are wanted");
                    if seen.insert(handle) {
                        each(Member::Bytes(members.key(handle)));
                    }
                }
            }
            Manner::Selected { walk, selection } => walk.step(|member| {
                if selection.takes(&mut draw) {
                    each(member);
                }
            }),
        }
    }
}
