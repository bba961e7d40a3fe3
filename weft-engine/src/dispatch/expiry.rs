//! Active expiry: removes keys whose time has come although nobody asks for them.

use weft_data::collection::CollectionRef;
use weft_keyspace::{Keyspace, Position};

use super::context::Key;
use super::serve::{hand_over, has_steps, serve};
use super::unit::{EventClass, Unit};
use crate::clock::Clock;
use crate::engine::{Engine, WorkerState};

/// How many keys are removed under one latch at most.
const REMOVED_PER_LATCH: usize = 16;
/// How many fields of one key.
const FIELDS_PER_KEY: usize = 16;

/// Where a cycle stopped, so that the next one goes on from there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExpiryCursor {
    database: usize,
    shard: usize,
}

/// Removes up to `budget` overdue keys and says whether there may be more now.
pub(crate) fn expire_cycle(
    engine: &Engine,
    worker: &mut WorkerState,
    clock: &dyn Clock,
    budget: usize,
) -> bool {
    let keyspace = &engine.keyspace;
    let mut cursor = worker.expiry;
    let mut left = budget;
    let gate = keyspace.gate(worker.id()).enter();
    let mut unit = Unit::new(engine, clock, worker.take_log());
    for _ in 0..keyspace.databases() {
        if keyspace.deadline_count(cursor.database) > 0
            || keyspace.fielded_count(cursor.database) > 0
        {
            expire_database(keyspace, worker, &mut unit, &mut cursor, &mut left);
            if left == 0 {
                break;
            }
        }
        cursor = ExpiryCursor {
            database: (cursor.database + 1) % keyspace.databases(),
            shard: 0,
        };
    }
    worker.put_log(unit.finish());
    drop(gate);
    worker.hand_over_waste(engine);
    worker.expiry = cursor;
    left == 0
}

/// When the first key or field of a key may be due, in milliseconds since 1970; none if time removes nothing.
pub(crate) fn next_due_ms(engine: &Engine, worker: usize) -> Option<u64> {
    let keyspace = &engine.keyspace;
    let _gate = keyspace.gate(worker).enter();
    let has_deadlines = |database: &usize| {
        keyspace.deadline_count(*database) > 0 || keyspace.fielded_count(*database) > 0
    };
    let databases = (0..keyspace.databases()).filter(has_deadlines);
    let due_in = |database| {
        let next = move |shard: &usize| keyspace.next_nonempty(database, shard + 1);
        let shards = std::iter::successors(keyspace.next_nonempty(database, 0), next);
        shards
            .filter_map(|shard| keyspace.latch(shard).next_due_ms(database))
            .min()
    };
    databases.filter_map(due_in).min()
}

fn expire_database(
    keyspace: &Keyspace,
    worker: &mut WorkerState,
    unit: &mut Unit<'_>,
    cursor: &mut ExpiryCursor,
    left: &mut usize,
) {
    while let Some(shard) = keyspace.next_nonempty(cursor.database, cursor.shard) {
        cursor.shard = shard;
        loop {
            unit.begin(cursor.database);
            unit.latch_one(shard);
            let (removed, more) = unit.expire_due(REMOVED_PER_LATCH);
            unit.commit(worker);
            if unit.has_ready() {
                let served = serve(unit.engine(), worker, unit);
                if has_steps(&served) {
                    unit.release();
                }
                hand_over(worker, served);
            }
            *left = left.saturating_sub(removed);
            if *left == 0 {
                unit.release();
                return;
            }
            if !more {
                break;
            }
        }
        unit.release();
        cursor.shard = shard + 1;
    }
}

impl Unit<'_> {
    /// Removes up to `most` overdue keys of the one latched shard, and overdue fields: how many, and whether there may be
    /// more.
    fn expire_due(&mut self, most: usize) -> (usize, bool) {
        let database = self.database();
        let now = self.now_ms();
        let mut overdue: Vec<Box<[u8]>> = Vec::new();
        let mut fielded: Vec<Overdue> = Vec::new();
        let Some(shard) = self.only_shard() else {
            return (0, false);
        };
        if shard.next_due_ms(database).is_none_or(|due| due > now) {
            return (0, false);
        }
        let progress = shard.expire_due(
            database,
            now,
            most,
            |entry| overdue.push(entry.key().into()),
            |name, draft| {
                let mut fields: Vec<Box<[u8]>> = Vec::new();
                draft.expire_fields(now, FIELDS_PER_KEY, |field| fields.push(field.into()));
                fielded.push(Overdue {
                    name: name.into(),
                    fields,
                    emptied: draft.as_ref().is_none_or(CollectionRef::is_empty),
                });
            },
        );
        let key = |name| Key {
            name,
            position: Position::from_bits(0),
            latch: 0,
        };
        for name in &overdue {
            self.expired(key(name));
        }
        for Overdue {
            name,
            fields,
            emptied,
        } in &fielded
        {
            self.fields_expired(key(name), fields, *emptied);
        }
        (progress.removed, progress.more)
    }

    /// Records that the time of these fields had come and that they are gone.
    pub fn fields_expired(&mut self, key: Key<'_>, fields: &[Box<[u8]>], emptied: bool) {
        if fields.is_empty() {
            return;
        }
        self.count_expired_fields(fields.len());
        self.touched(key, EventClass::Hash, "hexpired");
        if emptied {
            self.touched_too(key, EventClass::Generic, "del");
        }
        let words = [&b"HDEL"[..], key.name];
        let arguments: Vec<&[u8]> = words
            .into_iter()
            .chain(fields.iter().map(|field| &**field))
            .collect();
        self.effect(&arguments);
    }
}

/// Fields of a key that are gone.
struct Overdue {
    name: Box<[u8]>,
    fields: Vec<Box<[u8]>>,
    emptied: bool,
}
