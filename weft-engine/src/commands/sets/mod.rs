//! Sets: members, random members, algebra.
//!
//! Owns what these have in common: reaching a set, replying with many members in steps, and recording many as effects.
//! The order of members, what sets are called and how results are computed is `weft_data::set`'s.

mod algebra;
mod members;
mod random;

use weft_data::collection::{Collection, Kind};
use weft_data::set::{Gathered, Member, Set, SetMut, SetRef, Walk};
use weft_resp::Writer;

use crate::command::CommandRow;
use crate::dispatch::{Budget, Context, Edited, EventClass, Key, Progress, Steps};
use crate::error::CommandError;
use crate::journal::EffectArgument;

/// The rows about members.
pub(super) const MEMBERS: &[CommandRow] = members::ROWS;
/// The rows about random members.
pub(super) const RANDOM: &[CommandRow] = random::ROWS;
/// The rows of intersections, unions and differences.
pub(super) const ALGEBRA: &[CommandRow] = algebra::ROWS;

/// About what a member takes in a reply, and how many bytes are copied in a nanosecond.
const NS_PER_MEMBER: u64 = 30;
const BYTES_PER_NS: u64 = 8;
/// Members that one effect names.
const MEMBERS_PER_EFFECT: usize = 1000;

/// The set of the command's key number `index`, for reading.
fn set<'c>(cx: &'c Context<'_, '_>, index: usize) -> Result<Option<SetRef<'c>>, CommandError> {
    let collection = cx.unit.collection(cx.keys[index], Kind::Set)?;
    Ok(collection.map(SetRef::from))
}

/// Lets `act` change the key's set, or make one.
fn edit<R>(
    cx: &mut Context<'_, '_>,
    key: Key<'_>,
    act: impl FnOnce(&mut SetMut<'_, '_>) -> R,
) -> Result<Edited<R>, CommandError> {
    let (limits, seed) = (cx.worker.settings().set_limits(), cx.unit.seed());
    cx.unit.edit(key, Kind::Set, |draft| {
        act(&mut SetMut::new(draft, limits, seed))
    })
}

/// Tells of so many members that came to or left a set, at least one, and that its key is gone if it is.
fn changed(
    cx: &mut Context<'_, '_>,
    key: Key<'_>,
    event: &'static str,
    members: usize,
    emptied: bool,
) {
    cx.unit.touched(key, EventClass::Set, event);
    // One is counted by that.
    cx.unit.touched_many(members.saturating_sub(1));
    if emptied {
        cx.unit.touched_too(key, EventClass::Generic, "del");
    }
}

fn reply_member(reply: &mut Writer<'_>, member: Member<'_>) {
    match member {
        Member::Bytes(bytes) => reply.bulk(bytes),
        Member::Integer(value) => reply.bulk_integer(value),
    }
}

/// Effects that name members: `command key member ...`, each with as many as are reasonable.
struct MemberEffects<'a> {
    command: &'static [u8],
    key: &'a [u8],
    arguments: Vec<EffectArgument>,
    done: Vec<Vec<EffectArgument>>,
}

impl<'a> MemberEffects<'a> {
    fn new(command: &'static [u8], key: &'a [u8]) -> Self {
        Self {
            command,
            key,
            arguments: Vec::new(),
            done: Vec::new(),
        }
    }

    fn push(&mut self, member: &[u8]) {
        if self.arguments.is_empty() {
            self.arguments
                .extend([self.command.into(), self.key.into()]);
        }
        self.arguments.push(member.into());
        if self.arguments.len() >= 2 + MEMBERS_PER_EFFECT {
            self.done.push(std::mem::take(&mut self.arguments));
        }
    }

    fn push_all(&mut self, set: SetRef<'_>) {
        set.for_each(|member| member.with(|text| self.push(text)));
    }

    fn record(mut self, cx: &mut Context<'_, '_>) {
        if !self.arguments.is_empty() {
            self.done.push(self.arguments);
        }
        for arguments in self.done {
            cx.unit.effect_with(|| arguments);
        }
    }
}

/// A reply with many members, under way: a set.
struct Listing {
    members: Listed,
    begun: bool,
}

// It lies in the box of its steps.
#[expect(clippy::large_enum_variant)]
enum Listed {
    Set(Walk),
    Gathered { gathered: Gathered, next: usize },
}

impl Listing {
    fn of_set(set: Set) -> Self {
        let members = Listed::Set(Walk::new(set));
        Self {
            members,
            begun: false,
        }
    }

    fn of_gathered(gathered: Gathered) -> Self {
        let members = Listed::Gathered { gathered, next: 0 };
        Self {
            members,
            begun: false,
        }
    }

    fn into_set(self) -> Option<Set> {
        match self.members {
            Listed::Set(walk) => Some(walk.into_set()),
            Listed::Gathered { .. } => None,
        }
    }
}

impl Steps for Listing {
    fn step(&mut self, budget: &mut Budget, reply: &mut Writer<'_>) -> Progress {
        if !self.begun {
            reply.set(match &self.members {
                Listed::Set(walk) => walk.set().len(),
                Listed::Gathered { gathered, .. } => gathered.len(),
            });
            self.begun = true;
        }
        match &mut self.members {
            Listed::Set(walk) => {
                while !walk.is_over() && budget.left() > 0 {
                    walk.step(|member| write(member, budget, reply));
                }
                progress(walk.is_over())
            }
            Listed::Gathered { gathered, next } => {
                while let Some(text) = gathered.get(*next).filter(|_| budget.left() > 0) {
                    write(Member::Bytes(text), budget, reply);
                    *next += 1;
                }
                progress(*next == gathered.len())
            }
        }
    }

    fn snapshots(self: Box<Self>) -> Vec<Box<Collection>> {
        boxed(self.into_set()).collect()
    }
}

fn write(member: Member<'_>, budget: &mut Budget, reply: &mut Writer<'_>) {
    budget.take(NS_PER_MEMBER + member.len() as u64 / BYTES_PER_NS);
    reply_member(reply, member);
}

const fn progress(over: bool) -> Progress {
    if over { Progress::Done } else { Progress::More }
}

/// Sets for the reaper.
fn boxed(sets: impl IntoIterator<Item = Set>) -> impl Iterator<Item = Box<Collection>> {
    sets.into_iter().map(Collection::Set).map(Box::new)
}
