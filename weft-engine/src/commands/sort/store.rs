//! The result of a SORT as a list under a key.

use weft_data::collection::{Built, Draft};
use weft_data::list::{Element, End, ListMut};

use super::super::values::Captured;
use super::Job;
use super::options::Get;
use super::patterns::{self, Pattern};
use crate::dispatch::{Context, EventClass, Key};
use crate::journal::EffectArgument;

/// So many elements an effect takes at most.
const ELEMENTS_PER_EFFECT: usize = 256;

/// What is to be stored: where null would be replied, nothing of length 0.
pub(super) fn values(cx: &Context<'_, '_>, job: &Job) -> Vec<Captured> {
    let mut values = Vec::new();
    let mut name = Vec::new();
    for index in job.wanted() {
        if job.options.gets.is_empty() {
            values.push(job.batch.captured(index));
        }
        for get in &job.options.gets {
            let found = match *get {
                Get::Itself => Some(job.batch.captured(index)),
                Get::Nothing => None,
                Get::Pattern(at) => Pattern::parse(&cx.args[at]).and_then(|pattern| {
                    pattern.write_name(&job.batch.text(index), &mut name);
                    let found = patterns::look(cx.unit, &pattern, &name);
                    found.map(|found| Captured::of(found.value()))
                }),
            };
            values.push(found.unwrap_or_else(|| Captured::Bytes(Vec::new())));
        }
    }
    values
}

/// Puts the list of these values into the place of whatever the key holds, or nothing if there are none, and replies how many there
/// are. The effect is the result.
pub(super) fn replace(cx: &mut Context<'_, '_>, key: Key<'_>, values: Vec<Captured>) {
    cx.reply.integer(values.len() as i64);
    let limit = cx.worker.settings().list_limit().for_gathering();
    let mut packed = Vec::new();
    let mut draft = Draft::Packed(&mut packed);
    if !values.is_empty() {
        let mut list = ListMut::new(&mut draft, limit);
        let mut left = values.iter().map(element);
        // What it is called depends on each. A quicklist stays one.
        while let Some(next) = left.next() {
            list.push(End::Right, std::iter::once(next));
            if list.as_ref().encoding() == "quicklist" {
                list.push(End::Right, left);
                break;
            }
        }
    }
    let built = match draft {
        Draft::Grown(collection) => Built::Large(collection),
        Draft::Packed(_) | Draft::Large(_) => Built::Packed(packed),
    };
    let existed = cx.unit.put_collection(key, built);
    if existed {
        cx.unit.effect(&[b"DEL", key.name]);
    }
    if values.is_empty() {
        if existed {
            cx.unit.touched(key, EventClass::Generic, "del");
        }
        return;
    }
    for values in values.chunks(ELEMENTS_PER_EFFECT) {
        cx.unit.effect_with(|| {
            let head: [EffectArgument; 2] = [b"RPUSH"[..].into(), key.name.into()];
            head.into_iter()
                .chain(values.iter().map(argument))
                .collect()
        });
    }
    cx.unit.touched(key, EventClass::List, "sortstore");
    cx.unit.touched_many(values.len() - 1);
}

fn element(value: &Captured) -> Element<'_> {
    match value {
        Captured::Bytes(bytes) => Element::Bytes(bytes),
        Captured::Rope(rope) => Element::Rope(rope),
    }
}

fn argument(value: &Captured) -> EffectArgument {
    match value {
        Captured::Bytes(bytes) => bytes[..].into(),
        Captured::Rope(rope) => EffectArgument::Rope(rope.clone()),
    }
}
