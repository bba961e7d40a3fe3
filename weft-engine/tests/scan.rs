//! SCAN's guarantee: a key that is there all the time is returned at least once, whatever happens to the others.

mod in_process;

use std::collections::BTreeSet;

use in_process::Local;
use weft_resp::{Reply, decode_reply};

/// One SCAN: the next cursor and the keys.
fn scan(local: &mut Local, cursor: &[u8], count: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let bytes = local.command(&[b"SCAN", cursor, b"COUNT", count]);
    let (reply, _) = decode_reply(&bytes)
        .expect("a reply")
        .expect("a whole reply");
    let Reply::Array(parts) = reply else {
        panic!("not an array: {reply:?}")
    };
    let [Reply::Bulk(next), Reply::Array(keys)] = &parts[..] else {
        panic!("not a cursor and keys: {parts:?}")
    };
    let name = |key: &Reply| match key {
        Reply::Bulk(name) => name.to_vec(),
        other => panic!("not a key: {other:?}"),
    };
    (next.to_vec(), keys.iter().map(name).collect())
}

fn set(local: &mut Local, key: &str) {
    local.command(&[b"SET", key.as_bytes(), b"v"]);
}

#[test]
fn keys_that_stay_are_returned_while_tables_grow_and_shrink() {
    for seed in 0..6 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut local = Local::new();
        let staying: BTreeSet<Vec<u8>> = (0..400)
            .map(|number| format!("stay:{number}").into_bytes())
            .chain([Vec::new()])
            .collect();
        for key in &staying {
            local.command(&[b"SET", key, b"v"]);
        }
        let mut others = 0;
        let mut seen = BTreeSet::new();
        let mut cursor = b"0".to_vec();
        loop {
            let count = random.u32(1..30).to_string();
            let (next, keys) = scan(&mut local, &cursor, count.as_bytes());
            seen.extend(keys);
            cursor = next;
            if cursor == b"0" {
                break;
            }
            assert!(cursor.len() <= 15, "cursors have at most 48 bits");
            // Between two calls thousands of other keys come, or all of them go.
            if random.bool() {
                for _ in 0..random.u32(0..3000) {
                    set(&mut local, &format!("other:{others}"));
                    others += 1;
                }
            } else {
                for other in 0..others {
                    local.command(&[b"DEL", format!("other:{other}").as_bytes()]);
                }
                others = 0;
            }
            if others > 20_000 {
                finish_walk(&mut local, &mut seen, &cursor);
                break;
            }
        }
        let missed: Vec<_> = staying
            .difference(&seen)
            .map(|key| String::from_utf8_lossy(key))
            .collect();
        assert!(missed.is_empty(), "seed {seed}: {missed:?}");
    }
}

/// Goes on to the end without further changes.
fn finish_walk(local: &mut Local, seen: &mut BTreeSet<Vec<u8>>, cursor: &[u8]) {
    let mut cursor = cursor.to_vec();
    while cursor != b"0" {
        let (next, keys) = scan(local, &cursor, b"1000");
        seen.extend(keys);
        cursor = next;
    }
}

#[test]
fn without_changes_every_key_is_returned_once() {
    let mut local = Local::new();
    for number in 0..5000 {
        set(&mut local, &format!("key:{number}"));
    }
    let mut all = Vec::new();
    let mut cursor = b"0".to_vec();
    loop {
        let (next, keys) = scan(&mut local, &cursor, b"7");
        all.extend(keys);
        cursor = next;
        if cursor == b"0" {
            break;
        }
    }
    let distinct: BTreeSet<_> = all.iter().cloned().collect();
    assert_eq!((all.len(), distinct.len()), (5000, 5000));
}

#[test]
fn overdue_keys_are_not_returned_and_go() {
    let mut local = Local::new();
    local.command(&[b"SET", b"dead", b"v", b"PX", b"5"]);
    set(&mut local, "alive");
    local.clock.advance_ms(5);
    assert_eq!(
        scan(&mut local, b"0", b"100"),
        (b"0".to_vec(), vec![b"alive".to_vec()])
    );
    assert_eq!(local.command(&[b"DBSIZE"]), b":1\r\n");
}

#[test]
fn a_sparse_database_makes_no_call_long() {
    let mut local = Local::new();
    set(&mut local, "one");
    let (next, keys) = scan(&mut local, b"0", b"1");
    let rest = if next == b"0" {
        Vec::new()
    } else {
        scan(&mut local, &next, b"10").1
    };
    assert_eq!([keys, rest].concat(), [b"one".to_vec()]);
}

#[test]
fn a_made_up_cursor_ends_the_walk() {
    let mut local = Local::new();
    set(&mut local, "one");
    assert_eq!(
        scan(&mut local, b"18446744073709551615", b"10"),
        (b"0".to_vec(), Vec::new())
    );
}
