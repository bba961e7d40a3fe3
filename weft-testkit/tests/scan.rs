//! What SCAN promises: a key that is there all the time is returned, whatever happens to the others meanwhile.

use std::collections::BTreeSet;

use weft_testkit::door::{Door, DoorSession};
use weft_testkit::engine_door::EngineDoor;
use weft_testkit::wire::Wire;

/// Cursors have to fit what clients keep them in; some use a double.
const CURSOR_MAX: u64 = 1 << 48;

fn scan(session: &mut dyn DoorSession, cursor: u64, count: &str) -> (u64, Vec<Vec<u8>>) {
    let reply = session
        .ask(&["SCAN", &cursor.to_string(), "COUNT", count])
        .expect("a reply");
    let Some([Wire::Bulk(cursor), keys]) = reply.elements() else {
        panic!("{reply:?}");
    };
    let cursor: u64 = std::str::from_utf8(cursor)
        .expect("digits")
        .parse()
        .expect("a number");
    assert!(cursor < CURSOR_MAX, "cursor {cursor}");
    let keys = keys.elements().expect("an array").iter();
    (
        cursor,
        keys.map(|key| key.text().expect("a key").to_vec())
            .collect(),
    )
}

fn mset(session: &mut dyn DoorSession, names: &[String]) {
    for chunk in names.chunks(500) {
        let mut request = vec!["MSET".to_owned()];
        request.extend(chunk.iter().flat_map(|name| [name.clone(), "v".to_owned()]));
        assert_eq!(
            session.ask(&request).expect("a reply").text(),
            Some(&b"OK"[..])
        );
    }
}

fn del(session: &mut dyn DoorSession, names: &[String]) {
    for chunk in names.chunks(500) {
        let mut request = vec!["DEL".to_owned()];
        request.extend(chunk.iter().cloned());
        assert_eq!(
            session.ask(&request).expect("a reply").integer(),
            Some(chunk.len() as i64)
        );
    }
}

#[test]
fn what_stays_is_returned_across_growth_and_shrinking() {
    let mut door = EngineDoor::start(&[]).expect("an engine starts");
    let mut session = door.open().expect("a session");
    let session = session.as_mut();
    let mut staying: Vec<String> = (0..500).map(|number| format!("stay:{number}")).collect();
    staying.push(String::new());
    mset(session, &staying);
    let others: Vec<String> = (0..100_000)
        .map(|number| format!("other:{number}"))
        .collect();
    // The first walk meets a keyspace that grows, the second one that shrinks, the third one that flickers.
    for walk in 0..3 {
        let mut found = BTreeSet::new();
        let mut cursor = 0;
        let mut step = 0;
        loop {
            let (next, keys) = scan(session, cursor, "10");
            found.extend(keys);
            cursor = next;
            if cursor == 0 {
                break;
            }
            let part = others.chunks(2000).nth(step % 50).expect("fifty parts");
            match walk {
                0 if step < 50 => mset(session, part),
                1 if step < 50 => del(session, part),
                2 => {
                    let part = &part[..50];
                    mset(session, part);
                    del(session, part);
                }
                _ => {}
            }
            step += 1;
            assert!(step < 200_000, "the walk does not end");
        }
        for name in &staying {
            assert!(
                found.contains(name.as_bytes()),
                "walk {walk}: {name:?} is missing"
            );
        }
    }
}

#[test]
fn a_still_keyspace_is_returned_exactly_once() {
    let mut door = EngineDoor::start(&[]).expect("an engine starts");
    let mut session = door.open().expect("a session");
    let session = session.as_mut();
    let names: Vec<String> = (0..10_000).map(|number| format!("key:{number}")).collect();
    mset(session, &names);
    for count in ["1", "10", "1000", "100000"] {
        let mut found = Vec::new();
        let mut cursor = 0;
        loop {
            let (next, keys) = scan(session, cursor, count);
            found.extend(keys);
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
        found.sort();
        let mut expected: Vec<Vec<u8>> =
            names.iter().map(|name| name.clone().into_bytes()).collect();
        expected.sort();
        assert_eq!(found, expected, "COUNT {count}");
    }
}
