//! Intersections, unions and differences of snapshots, in steps.
//!
//! Intersections walk through the smallest set and ask the others. Differences do the same with the first set, or take the others'
//! members out of it: whichever Redis expects to be less work, since what the result is called shows the choice. Owns how a
//! result that is stored comes to be called what it is called.
use super::walk::Walk;
use super::{Encoding, Form, Gathered, Limits, Member, Set};

/// What is made of several sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Members of all.
    Intersection,
    /// Members of any.
    Union,
    /// Members of the first and of no other.
    Difference,
}

/// About the time that it takes to ask a set for a member, in nanoseconds.
const NS_PER_QUESTION: u64 = 60;
/// About the time that it takes to add a member to a set.
const NS_PER_CHANGE: u64 = 150;

/// A computation under way.
#[derive(Debug)]
pub struct Algebra {
    plan: Plan,
    limits: Limits,
    seed: u64,
    /// The sets that are still to be walked through, the next one last.
    walks: Vec<Walk>,
    walked: Vec<Set>,
    found: Found,
}

#[derive(Debug)]
enum Plan {
    /// Walk through one set; members that are in all of these count.
    InAll(Vec<Set>),
    /// Walk through one set; members that are in none of these count.
    InNone(Vec<Set>),
    /// Walk through all; every member counts.
    Adding,
    /// Walk through all; every member is taken out.
    Removing,
}

/// What has been found. How a set begins decides what it is called in the end.
#[derive(Debug)]
enum Found {
    Gathered(Gathered),
    Counted {
        count: usize,
        limit: usize,
    },
    Set(Set),
    /// Gathered, to be made a set of once all are known.
    Unsettled(Gathered),
}

/// What came of a computation.
#[derive(Debug)]
pub enum Outcome {
    /// These members.
    Gathered(Gathered),
    /// A set with them.
    Set(Set),
    /// So many of them.
    Count(usize),
}

impl Algebra {
    /// The members that result, in whatever form is the least work.
    #[must_use]
    pub fn members(operation: Operation, sets: Vec<Set>, limits: Limits, seed: u64) -> Self {
        let found = Found::Gathered(Gathered::default());
        Self::plan(operation, sets, limits, seed, found)
    }

    /// How many members the intersection has, counted up to `limit`.
    #[must_use]
    pub fn intersection_count(sets: Vec<Set>, limit: usize, limits: Limits) -> Self {
        let found = Found::Counted { count: 0, limit };
        Self::plan(Operation::Intersection, sets, limits, 0, found)
    }

    /// A set with the members that result, for a key.
    #[must_use]
    pub fn stored(operation: Operation, sets: Vec<Set>, limits: Limits, seed: u64) -> Self {
        let smallest = sets.iter().min_by_key(|set| set.len());
        let smallest = smallest.map(|set| set.as_ref().encoding());
        let found = match (operation, smallest) {
            (Operation::Intersection, Some(smallest)) if smallest != Encoding::Intset => {
                Found::Unsettled(Gathered::default())
            }
            _ => Found::Set(Set::empty(Encoding::Intset)),
        };
        Self::plan(operation, sets, limits, seed, found)
    }

    /// Sets that do not exist are given as empty ones for intersections, and the first one of a difference; others may be left out.
    fn plan(
        operation: Operation,
        mut sets: Vec<Set>,
        limits: Limits,
        seed: u64,
        mut found: Found,
    ) -> Self {
        let (plan, mut walked) = match operation {
            Operation::Intersection => {
                // Stable, so that of sets of one size the first given decides the order of the result.
                sets.sort_by_key(Set::len);
                let empty = sets.first().is_none_or(Set::is_empty);
                let others = sets.split_off(sets.len().min(1));
                sets.truncate(usize::from(!empty));
                (Plan::InAll(others), sets)
            }
            Operation::Union => {
                let base = sets.iter().map(Set::len).max().unwrap_or(0);
                let base = sets.iter().position(|set| set.len() == base);
                settle_with_set(&mut found);
                if let Some(base) = base
                    && begin_with(&mut found, &sets[base], &limits)
                {
                    sets.remove(base);
                }
                (Plan::Adding, sets)
            }
            Operation::Difference if sets.first().is_none_or(Set::is_empty) => {
                (Plan::Adding, Vec::new())
            }
            Operation::Difference => {
                let mut others = sets.split_off(1);
                others.retain(|set| !set.is_empty());
                let first = sets[0].len();
                let all = first + others.iter().map(Set::len).sum::<usize>();
                if first * (others.len() + 1) / 2 <= all {
                    // Whatever is in one of the others is likelier to be in the greatest.
                    others.sort_by_key(|set| std::cmp::Reverse(set.len()));
                    (Plan::InNone(others), sets)
                } else {
                    settle_with_set(&mut found);
                    if !begin_with(&mut found, &sets[0], &limits)
                        && let Found::Set(result) = &mut found
                    {
                        sets[0].as_ref().for_each(|member| {
                            result.add(member, &limits, seed);
                        });
                    }
                    (Plan::Removing, others)
                }
            }
        };
        walked.reverse();
        Self {
            plan,
            limits,
            seed,
            walks: walked.into_iter().map(Walk::new).collect(),
            walked: Vec::new(),
            found,
        }
    }

    /// Works for a moment and returns how long it took, about, in nanoseconds; none once all is done.
    pub fn step(&mut self) -> Option<u64> {
        let walk = self.walks.last_mut()?;
        if walk.is_over() {
            let walked = self.walks.pop().map(Walk::into_set);
            self.walked.extend(walked);
            return Some(1);
        }
        let mut taken = 0;
        let mut satisfied = false;
        walk.step(|member| {
            let counts = match &self.plan {
                Plan::InAll(others) => others.iter().all(|other| {
                    taken += NS_PER_QUESTION;
                    other.as_ref().has(member)
                }),
                Plan::InNone(others) => !others.iter().any(|other| {
                    taken += NS_PER_QUESTION;
                    other.as_ref().has(member)
                }),
                Plan::Adding => true,
                Plan::Removing => {
                    if let Found::Set(set) = &mut self.found {
                        taken += NS_PER_CHANGE;
                        set.remove(member);
                        satisfied = set.is_empty();
                    }
                    false
                }
            };
            if counts {
                taken += NS_PER_CHANGE;
                satisfied |= self.found.take(member, &self.limits, self.seed);
            }
        });
        if satisfied {
            self.walked.extend(self.walks.drain(..).map(Walk::into_set));
        }
        Some(taken + 1)
    }

    /// What came of it, and the sets that it was made from: large ones are not to be freed where it hurts.
    #[must_use]
    pub fn finish(self) -> (Outcome, Vec<Set>) {
        let outcome = match self.found {
            Found::Gathered(gathered) => Outcome::Gathered(gathered),
            Found::Counted { count, .. } => Outcome::Count(count),
            Found::Set(set) => Outcome::Set(set),
            Found::Unsettled(gathered) => Outcome::Set(settled(&gathered, &self.limits, self.seed)),
        };
        let mut sets = self.walked;
        sets.extend(self.walks.into_iter().map(Walk::into_set));
        if let Plan::InAll(others) | Plan::InNone(others) = self.plan {
            sets.extend(others);
        }
        (outcome, sets)
    }
}

/// Where members have to be different or can be taken out again, they are kept in a set.
fn settle_with_set(found: &mut Found) {
    if matches!(found, Found::Gathered(_)) {
        *found = Found::Set(Set::empty(Encoding::Intset));
    }
}

/// Begins with a snapshot of `set` instead of with nothing, if that is known to be called `hashtable` in the end.
fn begin_with(found: &mut Found, set: &Set, limits: &Limits) -> bool {
    match (found, &set.0) {
        (Found::Set(result), Form::Table { members, .. }) if limits.exceeded_by(set.len()) => {
            result.0 = Form::Table {
                members: members.clone(),
                called: Encoding::Hashtable,
            };
            true
        }
        _ => false,
    }
}

/// A set of an intersection's members, whose smallest operand was not called `intset`: what Redis calls it depends on all of them.
fn settled(gathered: &Gathered, limits: &Limits, seed: u64) -> Set {
    let integers = gathered.len() <= limits.intset_entries
        && gathered
            .iter()
            .all(|text| Member::Bytes(text).integer().is_some());
    let mut set = Set::empty(if integers {
        Encoding::Intset
    } else {
        Encoding::Listpack
    });
    for text in gathered.iter() {
        set.add(Member::Bytes(text), limits, seed);
    }
    set
}

impl Found {
    /// Takes a member in and says whether no more are wanted.
    fn take(&mut self, member: Member<'_>, limits: &Limits, seed: u64) -> bool {
        match self {
            Found::Gathered(gathered) | Found::Unsettled(gathered) => {
                member.with(|text| gathered.push(text));
                false
            }
            Found::Set(set) => {
                set.add(member, limits, seed);
                false
            }
            Found::Counted { count, limit } => {
                if *count < *limit {
                    *count += 1;
                }
                *count == *limit
            }
        }
    }
}
