//! HyperLogLogs: strings that estimate how many different elements were added.

use std::borrow::Cow;

use smallvec::SmallVec;
use weft_data::hyperloglog::{
    self as hll, Added, Corrupted, Encoding, Observation, SelfTest, observe,
};
use weft_keyspace::{DeadlineChange, NewValue, StringRef};
use weft_resp::Writer;

use super::options::is;
use super::ranges::overwrite;
use super::values::{effect_arguments, keep_raw};
use crate::command::{Argument, Categories, CommandRow, Flags, KeyFlags, KeySpec};
use crate::dispatch::{Budget, Context, EventClass, Key, Progress, Steps};
use crate::error::CommandError;

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[
    CommandRow {
        name: "pfadd",
        arity: -2,
        flags: Flags::WRITE.with(Flags::DENY_OOM).with(Flags::FAST),
        categories: Categories::HYPERLOGLOG,
        keys: &[KeySpec::one(1, KeyFlags::RW.with(KeyFlags::INSERT))],
        group: "hyperloglog",
        since: "2.8.9",
        complexity: "O(1) for each element",
        summary: "Adds elements to a HyperLogLog, which is made if missing.",
        arguments: &[
            Argument::key("key", 0),
            Argument::string("element").optional().multiple(),
        ],
        handler: pfadd,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "pfcount",
        arity: -2,
        flags: Flags::READONLY,
        categories: Categories::HYPERLOGLOG,
        keys: &[KeySpec::range(
            1,
            -1,
            1,
            KeyFlags::RW.with(KeyFlags::ACCESS),
        )
        .notes("RW because it may change the internal representation of the key, and propagate to replicas")],
        group: "hyperloglog",
        since: "2.8.9",
        complexity: "O(1) for one key, whose last answer is kept; O(N) in the number of keys for several",
        summary: "Estimates how many different elements were added to one or several HyperLogLogs.",
        arguments: &[Argument::key("key", 0).multiple()],
        handler: pfcount,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "pfmerge",
        arity: -2,
        flags: Flags::WRITE.with(Flags::DENY_OOM),
        categories: Categories::HYPERLOGLOG,
        keys: &[
            KeySpec::one(1, KeyFlags::RW.with(KeyFlags::ACCESS).with(KeyFlags::INSERT)),
            KeySpec::range(2, -1, 1, KeyFlags::RO.with(KeyFlags::ACCESS)),
        ],
        group: "hyperloglog",
        since: "2.8.9",
        complexity: "O(N) in the number of keys",
        summary: "Adds what some HyperLogLogs have seen to another one, which is made if missing.",
        arguments: &[
            Argument::key("destkey", 0),
            Argument::key("sourcekey", 1).optional().multiple(),
        ],
        handler: pfmerge,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "pfdebug",
        arity: 3,
        flags: Flags::WRITE.with(Flags::DENY_OOM).with(Flags::ADMIN),
        categories: Categories::HYPERLOGLOG,
        keys: &[KeySpec::one(2, KeyFlags::RW.with(KeyFlags::ACCESS))],
        group: "hyperloglog",
        since: "2.8.9",
        complexity: "N/A",
        summary: "Shows how a HyperLogLog is kept: ENCODING, DECODE, GETREG, TODENSE.",
        system: true,
        arguments: &[Argument::string("subcommand"), Argument::key("key", 0)],
        handler: pfdebug,
        ..CommandRow::DEFAULT
    },
    CommandRow {
        name: "pfselftest",
        arity: 1,
        flags: Flags::ADMIN,
        categories: Categories::HYPERLOGLOG,
        group: "hyperloglog",
        since: "2.8.9",
        complexity: "N/A",
        summary: "Tests the registers and estimates of HyperLogLogs.",
        system: true,
        handler: pfselftest,
        ..CommandRow::DEFAULT
    },
];

const NOT_ONE: CommandError =
    CommandError::Text("WRONGTYPE Key is not a valid HyperLogLog string value.");
const CORRUPTED: CommandError = CommandError::Text("INVALIDOBJ Corrupted HLL object detected");

const fn corrupted(_: Corrupted) -> CommandError {
    CORRUPTED
}

/// More than a HyperLogLog can have that is whole: two bytes for every register.
const BYTES_MAX: usize = hll::HEADER_BYTES + 2 * hll::REGISTERS + 1;

/// The bytes of a HyperLogLog and their form. Of what is too long to be whole only the beginning, which is as good to see that.
fn valid(value: StringRef<'_>) -> Result<(Cow<'_, [u8]>, Encoding), CommandError> {
    let bytes: Cow<'_, [u8]> = match value {
        StringRef::Int(_) => return Err(NOT_ONE),
        StringRef::Bytes(bytes) => bytes.into(),
        StringRef::Rope(rope) => match rope.as_contiguous() {
            Some(bytes) => bytes.into(),
            None => rope.copy_range(..BYTES_MAX).into(),
        },
    };
    let encoding = hll::encoding(&bytes).ok_or(NOT_ONE)?;
    Ok((bytes, encoding))
}

/// Stores a new or changed HyperLogLog. Its deadline stays.
fn store(cx: &mut Context<'_, '_>, key: Key<'_>, bytes: &[u8]) {
    cx.unit
        .set(key, NewValue::RawBytes(bytes), DeadlineChange::Keep);
}

/// Tells of a change, which is `changes` ones to Redis, and records the command itself: it gives the same bytes everywhere.
fn changed(cx: &mut Context<'_, '_>, key: Key<'_>, changes: usize) {
    cx.unit.touched(key, EventClass::String, "pfadd");
    cx.unit.touched_many(changes.saturating_sub(1));
    let args = cx.args;
    cx.unit.effect_with(|| effect_arguments(args));
}

fn pfadd(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let key = cx.keys[0];
    let observations: SmallVec<[Observation; 8]> = cx.args.iter().skip(2).map(observe).collect();
    let sparse_max = cx.worker.settings().hll_sparse_max_bytes();
    let raised = match cx.unit.peek_string(key)? {
        None => {
            let mut bytes = hll::empty();
            let added = hll::with_observations(&bytes, observations, sparse_max);
            let raised = added.as_ref().map_or(0, |added| added.raised);
            if let Some(added) = added {
                bytes = added.bytes;
            }
            hll::outdate(&mut bytes);
            store(cx, key, &bytes);
            raised + 1
        }
        Some(string) => match valid(string)? {
            (bytes, Encoding::Dense) => {
                let news = |observation: &Observation| hll::raises_dense(&bytes, *observation);
                if observations.iter().any(news) {
                    raise_in_place(cx, key, &observations)
                } else {
                    0
                }
            }
            (bytes, Encoding::Sparse) => match added(string, &bytes, &observations, sparse_max) {
                Some(added) => store_added(cx, key, &added)?,
                None => 0,
            },
        },
    };
    if raised > 0 {
        changed(cx, key, raised);
    } else {
        keep_raw(cx.unit, key);
    }
    cx.reply.integer(i64::from(raised > 0));
    Ok(())
}

fn added(
    string: StringRef<'_>,
    bytes: &[u8],
    observations: &[Observation],
    sparse_max: usize,
) -> Option<Added> {
    let observations = || observations.iter().copied();
    let added = hll::with_observations(bytes, observations(), sparse_max)?;
    match string {
        StringRef::Rope(rope) if rope.len() > bytes.len() => {
            hll::with_observations(&rope.to_vec(), observations(), sparse_max)
        }
        _ => Some(added),
    }
}

/// Stores what observations have made of a sparse value; how many registers were raised.
fn store_added(
    cx: &mut Context<'_, '_>,
    key: Key<'_>,
    added: &Added,
) -> Result<usize, CommandError> {
    if added.raised > 0 {
        store(cx, key, &added.bytes);
    }
    if !added.damaged {
        return Ok(added.raised);
    }
    if added.raised > 0 {
        // As in Redis, elements before the damage are added although the reply is an error.
        cx.unit.touched_too(key, EventClass::Silent, "pfadd");
        let args = cx.args;
        cx.unit.effect_with(|| effect_arguments(args));
    }
    Err(CORRUPTED)
}

/// Raises registers of a dense value, which is too long to lie in its entry; how many.
fn raise_in_place(cx: &mut Context<'_, '_>, key: Key<'_>, observations: &[Observation]) -> usize {
    let mut rope = cx.unit.rope_mut(key);
    let bytes = rope.as_mut().and_then(|rope| rope.contiguous_mut());
    let mut raised = 0;
    if let Some(bytes) = bytes {
        for observation in observations {
            raised += usize::from(hll::raise_dense(bytes, *observation));
        }
    }
    raised
}

fn pfcount(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    if let [key] = cx.keys {
        return pfcount_one(cx, *key);
    }
    let mut registers = hll::zeroes();
    for key in cx.keys {
        if let Some(string) = cx.unit.string(*key)? {
            let (bytes, _) = valid(string)?;
            hll::merge_into(&mut registers, &bytes).map_err(corrupted)?;
        }
    }
    cx.reply.integer(hll::count_registers(&registers) as i64);
    Ok(())
}

/// The count is kept with the value, so that the next one need not count again.
fn pfcount_one(cx: &mut Context<'_, '_>, key: Key<'_>) -> Result<(), CommandError> {
    let Some(string) = cx.unit.string(key)? else {
        cx.reply.integer(0);
        return Ok(());
    };
    let (bytes, _) = valid(string)?;
    let count = match hll::cached_count(&bytes) {
        Some(count) => {
            keep_raw(cx.unit, key);
            count
        }
        None => {
            let count = hll::count(&bytes).map_err(corrupted)?;
            let len = bytes.len();
            let (offset, field) = hll::count_field(count);
            overwrite(cx.unit, key, len, offset, &field);
            cx.unit.touched(key, EventClass::Silent, "pfcount");
            let args = cx.args;
            cx.unit.effect_with(|| effect_arguments(args));
            count
        }
    };
    cx.reply.integer(count as i64);
    Ok(())
}

fn pfmerge(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let key = cx.keys[0];
    let mut registers = hll::zeroes();
    let mut any_dense = false;
    for key in cx.keys {
        if let Some(string) = cx.unit.string(*key)? {
            let (bytes, encoding) = valid(string)?;
            any_dense |= encoding == Encoding::Dense;
            hll::merge_into(&mut registers, &bytes).map_err(corrupted)?;
        }
    }
    let sparse_max = cx.worker.settings().hll_sparse_max_bytes();
    let mut bytes = match cx.unit.peek_string(key)? {
        Some(string) => valid(string)?.0.into_owned(),
        None => hll::empty(),
    };
    if any_dense {
        hll::make_dense(&mut bytes).map_err(corrupted)?;
    }
    hll::raise_all(&mut bytes, &registers, sparse_max).map_err(corrupted)?;
    store(cx, key, &bytes);
    changed(cx, key, 1);
    cx.reply.ok();
    Ok(())
}

fn pfdebug(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (word, key) = (&cx.args[1], cx.keys[0]);
    if is(word, "SIMD") {
        return pfdebug_simd(cx);
    }
    let Some(string) = cx.unit.peek_string(key)? else {
        return Err(CommandError::Text("ERR The specified key does not exist"));
    };
    let (bytes, encoding) = valid(string)?;
    if is(word, "GETREG") {
        let registers = hll::registers(&bytes).map_err(corrupted)?;
        densify(cx, key)?;
        cx.reply.array(registers.len());
        for rank in registers.iter() {
            cx.reply.integer(i64::from(*rank));
        }
    } else if is(word, "DECODE") {
        let runs = hll::runs(&bytes).ok_or(CommandError::Text("ERR HLL encoding is not sparse"))?;
        cx.reply.bulk(runs.as_bytes());
    } else if is(word, "ENCODING") {
        cx.reply.simple(match encoding {
            Encoding::Dense => "dense",
            Encoding::Sparse => "sparse",
        });
    } else if is(word, "TODENSE") {
        let converted = densify(cx, key)?;
        cx.reply.integer(i64::from(converted));
    } else {
        return Err(CommandError::quoting(
            "ERR Unknown PFDEBUG subcommand '",
            word,
            "'",
        ));
    }
    keep_raw(cx.unit, key);
    Ok(())
}

/// Which instructions are used is the compiler's choice: the switch is accepted, and nothing hangs on it.
fn pfdebug_simd(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let word = &cx.args[2];
    if is(word, "ON") {
        cx.reply.simple("enabled");
    } else if is(word, "OFF") {
        cx.reply.simple("disabled");
    } else {
        return Err(CommandError::Text("ERR Argument must be ON or OFF"));
    }
    Ok(())
}

/// Gives a sparse value the dense form; whether it was one.
fn densify(cx: &mut Context<'_, '_>, key: Key<'_>) -> Result<bool, CommandError> {
    let Some(string) = cx.unit.peek_string(key)? else {
        return Ok(false);
    };
    let (bytes, encoding) = valid(string)?;
    if encoding == Encoding::Dense {
        return Ok(false);
    }
    let mut bytes = bytes.into_owned();
    hll::make_dense(&mut bytes).map_err(corrupted)?;
    store(cx, key, &bytes);
    cx.unit.touched(key, EventClass::Silent, "pfdebug");
    cx.unit.effect(&[b"PFDEBUG", b"TODENSE", key.name]);
    Ok(true)
}

fn pfselftest(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    cx.continue_with(Testing(SelfTest::default()));
    Ok(())
}

struct Testing(SelfTest);

impl Steps for Testing {
    fn step(&mut self, budget: &mut Budget, reply: &mut Writer<'_>) -> Progress {
        /// How long an element takes.
        const ELEMENT_NS: u64 = 20;
        let elements = budget.take(u64::MAX) / ELEMENT_NS;
        match self.0.step(elements.max(1)) {
            Ok(true) => return Progress::More,
            Ok(false) => reply.ok(),
            Err(wrong) => reply.error(&format!("TESTFAILED {wrong}")),
        }
        Progress::Done
    }
}
