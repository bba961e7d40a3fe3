//! Nanoseconds per operation and bytes per key, against a plain hash map in the same pattern.
//!
//! `cargo bench -p weft-keyspace -- [empty] [latch] [growth] [memory] [KEYS ...]`, for example `-- memory 10000 1000000 20000000`. Both
//! sides hash with the same function and allocate from jemalloc, as the server does. The map holds
//! `Vec<u8>` keys and values and takes no latch.

use std::collections::HashMap;
use std::hint::black_box;
use std::time::Instant;

use weft_keyspace::{DeadlineChange, Keyspace, NewValue, Options, StringRef};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const BATCH: usize = 32;
const SHARDS: usize = 512;
/// Keys looked up per measurement; drawn at random beforehand.
const DRAWS: usize = 1 << 20;
const NOW_MS: u64 = 1_700_000_000_000;

type Key = [u8; 16];

fn key(number: usize) -> Key {
    let mut key = *b"key:000000000000";
    let mut rest = number;
    for digit in key[4..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

fn draws(keys: usize) -> Vec<Key> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..DRAWS)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let number = ((u128::from(state) * keys as u128) >> 64) as usize;
            key(number)
        })
        .collect()
}

fn keyspace() -> Keyspace {
    Keyspace::new(Options {
        shards: SHARDS,
        databases: 16,
        workers: 2,
        workers_max: 2,
        hash_seeds: [11, 22, 33, 44],
    })
}

/// Processor time of this thread, so that other processes do not count.
fn processor_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Resident bytes of the process.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: usize = statm
        .split(' ')
        .nth(1)
        .and_then(|n| n.parse().ok())
        .expect("a number");
    pages * 4096
}

fn report(what: &str, ours: f64, map: f64) {
    println!(
        "  {what:<28} {ours:>8.1} ns   map {map:>8.1} ns   {:>5.2}x",
        ours / map
    );
}

/// Nanoseconds per item of `items`, the best of three rounds.
fn time<T>(items: &[T], mut run: impl FnMut(&[T])) -> f64 {
    (0..3)
        .map(|_| {
            let start = Instant::now();
            run(items);
            start.elapsed().as_nanos() as f64 / items.len() as f64
        })
        .fold(f64::INFINITY, f64::min)
}

fn single_get(keyspace: &Keyspace, key: &Key) -> u8 {
    let position = keyspace.position(key);
    let shard = keyspace.latch(keyspace.shard_of(position));
    match shard
        .find(0, position, key)
        .expect("every key exists")
        .string()
        .expect("a string")
    {
        StringRef::Bytes(bytes) => bytes[0],
        _ => 0,
    }
}

fn batch<R>(
    keyspace: &Keyspace,
    keys: &[Key],
    mut each: impl FnMut(weft_keyspace::Position, &Key) -> R,
) {
    let mut positions = [weft_keyspace::Position::default(); BATCH];
    for keys in keys.chunks(BATCH) {
        let inside = keyspace.gate(0).enter();
        for (position, key) in positions.iter_mut().zip(keys) {
            *position = keyspace.position(key);
            keyspace.prefetch_bucket(&inside, 0, *position, false);
        }
        for position in &positions[..keys.len()] {
            keyspace.prefetch_entry(&inside, 0, *position, false);
        }
        for (&position, key) in positions.iter().zip(keys) {
            black_box(each(position, key));
        }
    }
}

fn operations(keys: usize) {
    println!("{keys} keys of 16 bytes, values of 16 bytes");
    let drawn = draws(keys);
    let value = [b'v'; 16];
    let ours = keyspace();
    let start = Instant::now();
    for number in 0..keys {
        let key = key(number);
        let position = ours.position(&key);
        let mut shard = ours.latch(ours.shard_of(position));
        shard.clamp_now(NOW_MS);
        shard.set(
            0,
            position,
            &key,
            NewValue::Bytes(&value),
            DeadlineChange::Clear,
        );
    }
    let insert = start.elapsed().as_nanos() as f64 / keys as f64;
    let before = resident();
    let start = Instant::now();
    let huge = ours.consolidate(usize::MAX);
    println!(
        "  {} MiB became huge pages in {:.1} ms; resident before {} MiB, after {} MiB",
        huge >> 20,
        start.elapsed().as_secs_f64() * 1000.0,
        before >> 20,
        resident() >> 20
    );
    let get = time(&drawn, |keys| {
        for key in keys {
            black_box(single_get(&ours, key));
        }
    });
    let get_batch = time(&drawn, |keys| {
        batch(&ours, keys, |position, key| {
            let shard = ours.latch(ours.shard_of(position));
            match shard
                .find(0, position, key)
                .expect("every key exists")
                .string()
                .expect("a string")
            {
                StringRef::Bytes(bytes) => bytes[0],
                _ => 0,
            }
        });
    });
    let overwrite = |position: weft_keyspace::Position, key: &Key| {
        let mut shard = ours.latch(ours.shard_of(position));
        shard.set(
            0,
            position,
            key,
            NewValue::Bytes(&value),
            DeadlineChange::Clear,
        )
    };
    let set = time(&drawn, |keys| {
        for key in keys {
            black_box(overwrite(ours.position(key), key));
        }
    });
    let set_batch = time(&drawn, |keys| batch(&ours, keys, overwrite));
    let start = Instant::now();
    for number in 0..keys {
        let key = key(number);
        let position = ours.position(&key);
        let mut shard = ours.latch(ours.shard_of(position));
        assert!(shard.remove(0, position, &key).is_some());
    }
    let delete = start.elapsed().as_nanos() as f64 / keys as f64;
    drop(ours);

    let hash = ahash::RandomState::with_seeds(11, 22, 33, 44);
    let mut map: HashMap<Vec<u8>, Vec<u8>, ahash::RandomState> = HashMap::with_hasher(hash);
    let start = Instant::now();
    for number in 0..keys {
        map.insert(key(number).to_vec(), value.to_vec());
    }
    let map_insert = start.elapsed().as_nanos() as f64 / keys as f64;
    let map_get = time(&drawn, |keys| {
        for key in keys {
            black_box(map.get(&key[..]).expect("every key exists")[0]);
        }
    });
    let map_set = time(&drawn, |keys| {
        for key in keys {
            let old = map.get_mut(&key[..]).expect("every key exists");
            old.copy_from_slice(&value);
        }
    });
    let start = Instant::now();
    for number in 0..keys {
        assert!(map.remove(&key(number)[..]).is_some());
    }
    let map_delete = start.elapsed().as_nanos() as f64 / keys as f64;
    report("GET", get, map_get);
    report("GET, batches of 32", get_batch, map_get);
    report("SET over", set, map_set);
    report("SET over, batches of 32", set_batch, map_set);
    report("insert", insert, map_insert);
    report("delete", delete, map_delete);
}

fn memory() {
    const KEYS: usize = 2_000_000;
    println!("bytes per key at {KEYS} keys in {SHARDS} shards");
    for (name, value_len, deadline) in [
        ("16 + 16", 16, false),
        ("16 + 16, deadline", 16, true),
        ("16 + 100", 100, false),
    ] {
        let before = resident();
        let ours = keyspace();
        let value = vec![b'v'; value_len];
        for number in 0..KEYS {
            let key = key(number);
            let position = ours.position(&key);
            let mut shard = ours.latch(ours.shard_of(position));
            shard.clamp_now(NOW_MS);
            let deadline = if deadline {
                DeadlineChange::At(NOW_MS + 1_000_000 + number as u64)
            } else {
                DeadlineChange::Clear
            };
            shard.set(0, position, &key, NewValue::Bytes(&value), deadline);
        }
        let per_key = |bytes: u64| bytes as f64 / KEYS as f64;
        let memory = ours.memory();
        println!(
            "  {name:<20} resident {:>6.2}   entries {:>6.2}  pages {:>6.2}  tables {:>5.2}  retired {:>5.2}",
            per_key((resident() - before) as u64),
            per_key(memory.entries),
            per_key(memory.pages),
            per_key(memory.tables),
            per_key(memory.retired),
        );
    }
}

/// What a keyspace without keys takes, and one with a key in every shard. Meaningful only as the first measurement.
fn empty() {
    let before = resident();
    let ours = keyspace();
    println!("512 shards, 16 databases, resident");
    println!(
        "  empty                {:>8} KiB",
        (resident() - before) / 1024
    );
    for number in 0..SHARDS * 8 {
        let key = key(number);
        let position = ours.position(&key);
        let mut shard = ours.latch(ours.shard_of(position));
        shard.set(0, position, &key, NewValue::Int(1), DeadlineChange::Clear);
    }
    println!(
        "  8 keys per shard     {:>8} KiB",
        (resident() - before) / 1024
    );
}

/// Bytes of tables per key, and the longest insertion, as one keyspace grows.
fn growth() {
    println!("growth of one keyspace, 16 + 16");
    let ours = keyspace();
    let value = [b'v'; 16];
    let mut report = 50_000;
    let mut longest = 0;
    for number in 0..8_000_000 {
        let key = key(number);
        let position = ours.position(&key);
        let mut shard = ours.latch(ours.shard_of(position));
        let start = processor_ns();
        shard.set(
            0,
            position,
            &key,
            NewValue::Bytes(&value),
            DeadlineChange::Clear,
        );
        longest = longest.max(processor_ns() - start);
        drop(shard);
        if number == report {
            let memory = ours.memory();
            println!(
                "  {number:>9} keys   pages {:>6.2}  tables {:>6.2} bytes per key   longest insertion {:>6.1} us",
                memory.pages as f64 / number as f64,
                memory.tables as f64 / number as f64,
                longest as f64 / 1000.0
            );
            report += report / 5;
            longest = 0;
        }
    }
}

fn latch() {
    println!("in cache");
    let ours = keyspace();
    let keys: Vec<Key> = (0..64).map(key).collect();
    for key in &keys {
        let position = ours.position(key);
        let mut shard = ours.latch(ours.shard_of(position));
        shard.set(
            0,
            position,
            key,
            NewValue::Bytes(b"v"),
            DeadlineChange::Clear,
        );
    }
    let rounds: Vec<usize> = (0..1 << 22).collect();
    let positions: Vec<_> = keys.iter().map(|key| ours.position(key)).collect();
    let hash = time(&rounds, |rounds| {
        for &round in rounds {
            black_box(ours.position(black_box(&keys[round % 64])));
        }
    });
    let latch = time(&rounds, |rounds| {
        for &round in rounds {
            black_box(ours.latch(round % 64));
        }
    });
    let find = time(&rounds, |rounds| {
        for &round in rounds {
            let position = positions[round % 64];
            let shard = ours.latch(ours.shard_of(position));
            black_box(shard.find(0, position, &keys[round % 64]).is_some());
        }
    });
    let gate = time(&rounds, |rounds| {
        for _ in rounds {
            drop(black_box(ours.gate(0).enter()));
        }
    });
    println!("  position                     {hash:>8.1} ns");
    println!("  latch and release            {latch:>8.1} ns");
    println!("  latch, find, release         {find:>8.1} ns");
    println!("  gate, enter and leave        {gate:>8.1} ns");
}

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    if wanted.iter().any(|arg| arg == "empty") {
        empty();
    }
    if wanted.is_empty() || wanted.iter().any(|arg| arg == "latch") {
        latch();
    }
    if wanted.iter().any(|arg| arg == "growth") {
        growth();
    }
    if wanted.iter().any(|arg| arg == "memory") {
        memory();
    }
    for keys in wanted.iter().filter_map(|arg| arg.parse().ok()) {
        operations(keys);
    }
}
