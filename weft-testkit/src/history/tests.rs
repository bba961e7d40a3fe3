//! Histories made by hand, times in microseconds: what has an order, and what has none.

use super::check::{Limits, check};
use super::model::{KeyState, Model, State};
use super::record::{Answer, BLOCK, Key, NEVER, Operation, Record, When};

const LIMITS: Limits = Limits {
    slack_ns: 1_000_000,
    configurations: 10_000,
};

fn record(connection: u32, from: u64, to: u64, operation: Operation, answer: Answer) -> Record {
    Record {
        connection,
        operation,
        answer: Some(answer),
        invoked_ns: from * 1000,
        returned_ns: to * 1000,
        begun_before: false,
    }
}

fn unanswered(connection: u32, from: u64, operation: Operation) -> Record {
    Record {
        connection,
        operation,
        answer: None,
        invoked_ns: from * 1000,
        returned_ns: NEVER,
        begun_before: false,
    }
}

fn value(number: i64) -> i64 {
    number * BLOCK
}

fn set(connection: u32, from: u64, to: u64, key: Key, number: i64) -> Record {
    record(connection, from, to, plain(key, number), Answer::Done)
}

fn plain(key: Key, number: i64) -> Operation {
    Operation::Set {
        key,
        value: value(number),
        expire_ms: None,
        when: When::Always,
        get: false,
    }
}

fn set_for(connection: u32, from: u64, to: u64, key: Key, number: i64, ms: u32) -> Record {
    let operation = Operation::Set {
        key,
        value: value(number),
        expire_ms: Some(ms),
        when: When::Always,
        get: false,
    };
    record(connection, from, to, operation, Answer::Done)
}

fn get(connection: u32, from: u64, to: u64, key: Key, seen: Option<i64>) -> Record {
    record(
        connection,
        from,
        to,
        Operation::Get(key),
        Answer::Value(seen),
    )
}

fn incr(connection: u32, from: u64, to: u64, key: Key, sum: i64) -> Record {
    record(
        connection,
        from,
        to,
        Operation::Increment(key),
        Answer::Integer(sum),
    )
}

fn mset(connection: u32, from: u64, to: u64, pairs: &[(Key, i64)]) -> Record {
    let pairs = pairs.iter().map(|(key, number)| (*key, value(*number)));
    record(
        connection,
        from,
        to,
        Operation::SetMany(pairs.collect()),
        Answer::Done,
    )
}

fn mget(connection: u32, from: u64, to: u64, keys: &[Key], seen: &[Option<i64>]) -> Record {
    record(
        connection,
        from,
        to,
        Operation::GetMany(keys.to_vec()),
        Answer::Values(seen.to_vec()),
    )
}

fn del(connection: u32, from: u64, to: u64, keys: &[Key], removed: i64) -> Record {
    record(
        connection,
        from,
        to,
        Operation::Delete(keys.to_vec()),
        Answer::Integer(removed),
    )
}

fn flush(connection: u32, from: u64, to: u64) -> Record {
    record(connection, from, to, Operation::FlushAll, Answer::Done)
}

#[track_caller]
fn accepted(history: &[Record]) {
    let (effort, violation) = check(history, LIMITS);
    assert_eq!(effort.undecided, 0);
    if let Some(violation) = violation {
        panic!("{}", violation.excerpt);
    }
}

/// Refused, with an excerpt of so many operations.
#[track_caller]
fn refused(history: &[Record], left: usize) {
    let (_, violation) = check(history, LIMITS);
    let excerpt = violation.expect("there is no order").excerpt;
    assert_eq!(excerpt.records.len(), left, "{excerpt}");
}

#[test]
fn concurrent_writes_and_reads_in_any_order() {
    accepted(&[
        set(1, 0, 10, 0, 1),
        set(2, 0, 10, 0, 2),
        get(3, 1, 4, 0, None),
        get(3, 5, 9, 0, Some(value(2))),
        get(4, 11, 12, 0, Some(value(1))),
        incr(4, 13, 14, 0, value(1) + 1),
        incr(5, 13, 15, 0, value(1) + 2),
    ]);
}

#[test]
fn a_lost_update() {
    refused(
        &[
            set(9, 0, 1, 0, 7),
            incr(9, 2, 3, 0, value(7) + 1),
            get(8, 2, 9, 0, Some(value(7) + 1)),
            incr(1, 4, 8, 0, value(7) + 2),
            incr(2, 5, 9, 0, value(7) + 2),
            incr(3, 10, 11, 0, value(7) + 3),
        ],
        2,
    );
}

/// Two that exclude each other are shown alone, however many others are lost around them.
#[test]
fn many_lost_updates() {
    let mut history = vec![set(9, 0, 1, 0, 7)];
    for connection in 0..30 {
        let sum = value(7) + 1 + i64::from(connection / 2);
        history.push(incr(connection, 2, 9 + u64::from(connection), 0, sum));
    }
    refused(&history, 2);
    // A value is seen after somebody has counted on from it.
    refused(
        &[
            set(9, 0, 1, 0, 7),
            set(8, 0, 1, 1, 8),
            incr(1, 2, 4, 0, value(7) + 1),
            mget(2, 5, 6, &[0, 1], &[Some(value(7)), Some(value(8))]),
        ],
        2,
    );
}

#[test]
fn a_stale_read() {
    refused(
        &[
            set(1, 0, 1, 0, 1),
            set(1, 2, 3, 0, 2),
            get(2, 4, 5, 0, Some(value(1))),
        ],
        2,
    );
    // Two reads of one connection that go back in time.
    refused(
        &[
            set(1, 0, 1, 0, 1),
            set(1, 2, 9, 0, 2),
            get(2, 3, 4, 0, Some(value(2))),
            get(2, 5, 6, 0, Some(value(1))),
        ],
        3,
    );
}

#[test]
fn a_value_from_nowhere() {
    refused(&[get(1, 0, 1, 0, Some(value(3)))], 1);
    refused(&[get(1, 0, 1, 0, Some(value(3))), set(2, 2, 3, 0, 3)], 1);
}

/// What is still under way when a history fails may be explained by what came later: it is no part of the proof.
#[test]
fn the_excerpt_blames_nothing_that_came_later() {
    let history = [
        set(1, 0, 1, 0, 1),
        set(1, 2, 3, 0, 2),
        get(2, 4, 9, 0, Some(value(5))),
        get(3, 4, 6, 0, Some(value(1))),
        set(4, 7, 8, 0, 5),
    ];
    refused(&history, 2);
    let (_, violation) = check(&history, LIMITS);
    let excerpt = violation.expect("there is no order").excerpt;
    assert_eq!(excerpt.records[excerpt.at], history[3]);
}

#[test]
fn a_torn_mset() {
    let before = mset(1, 0, 1, &[(0, 1), (1, 2)]);
    accepted(&[
        before.clone(),
        mset(1, 2, 9, &[(0, 3), (1, 4)]),
        mget(2, 3, 5, &[0, 1], &[Some(value(1)), Some(value(2))]),
        mget(2, 6, 8, &[1, 0], &[Some(value(4)), Some(value(3))]),
    ]);
    refused(
        &[
            before,
            mset(1, 2, 9, &[(0, 3), (1, 4)]),
            mget(2, 3, 5, &[0, 1], &[Some(value(3)), Some(value(2))]),
        ],
        2,
    );
}

#[test]
fn back_after_del() {
    accepted(&[
        set(1, 0, 1, 0, 1),
        del(2, 2, 5, &[0], 1),
        get(3, 3, 4, 0, Some(value(1))),
        get(3, 6, 7, 0, None),
        del(2, 8, 9, &[0], 0),
    ]);
    refused(
        &[
            set(1, 0, 1, 0, 1),
            del(2, 2, 3, &[0], 1),
            get(3, 4, 5, 0, Some(value(1))),
        ],
        2,
    );
    // Two that both removed it.
    refused(
        &[
            set(1, 0, 1, 0, 1),
            del(2, 2, 4, &[0], 1),
            del(3, 2, 4, &[0], 1),
        ],
        2,
    );
}

#[test]
fn counts_of_several_keys() {
    accepted(&[
        set(1, 0, 1, 0, 1),
        set(2, 0, 9, 1, 2),
        record(
            3,
            2,
            3,
            Operation::Exists(vec![0, 1, 2]),
            Answer::Integer(1),
        ),
        del(3, 4, 5, &[0, 1, 2], 2),
    ]);
    refused(
        &[
            set(1, 0, 1, 0, 1),
            set(2, 0, 1, 1, 2),
            record(3, 2, 3, Operation::Exists(vec![0, 1]), Answer::Integer(1)),
        ],
        3,
    );
}

#[test]
fn set_if_missing_and_with_the_old_value() {
    let nx = |connection, from, to, number, stored: bool| {
        let operation = Operation::Set {
            key: 0,
            value: value(number),
            expire_ms: None,
            when: When::Missing,
            get: false,
        };
        let answer = if stored {
            Answer::Done
        } else {
            Answer::Value(None)
        };
        record(connection, from, to, operation, answer)
    };
    let swap = |connection, from, to, number, old: Option<i64>| {
        let operation = Operation::Set {
            key: 0,
            value: value(number),
            expire_ms: None,
            when: When::Always,
            get: true,
        };
        record(connection, from, to, operation, Answer::Value(old))
    };
    accepted(&[
        nx(1, 0, 5, 1, true),
        nx(2, 0, 5, 2, false),
        swap(3, 6, 7, 3, Some(value(1))),
    ]);
    // Both found it missing.
    refused(&[nx(1, 0, 5, 1, true), nx(2, 0, 5, 2, true)], 2);
    // Two took the same value away.
    refused(
        &[
            set(9, 0, 1, 0, 1),
            swap(1, 2, 5, 2, Some(value(1))),
            swap(2, 2, 5, 3, Some(value(1))),
        ],
        2,
    );
}

#[test]
fn early_and_late_expiry() {
    let lived = |from, to, seen| vec![set_for(1, 0, 100, 0, 1, 10), get(2, from, to, 0, seen)];
    // With 1 ms of slack its time comes between 9,000 and 11,100.
    accepted(&lived(200, 8_999, Some(value(1))));
    accepted(&lived(200, 9_000, None));
    accepted(&lived(11_099, 12_000, Some(value(1))));
    accepted(&lived(11_100, 12_000, None));
    refused(&lived(200, 8_999, None), 2);
    refused(&lived(11_100, 12_000, Some(value(1))), 2);
    // Gone, it stays gone.
    accepted(&[
        set_for(1, 0, 100, 0, 1, 10),
        get(2, 9_500, 9_600, 0, Some(value(1))),
        get(2, 9_700, 9_800, 0, None),
    ]);
    refused(
        &[
            set_for(1, 0, 100, 0, 1, 10),
            get(2, 9_500, 9_600, 0, None),
            get(2, 9_700, 9_800, 0, Some(value(1))),
        ],
        2,
    );
}

#[test]
fn deadlines_are_kept_moved_and_taken_away() {
    let expire = |from, to, ms, found| {
        record(
            1,
            from,
            to,
            Operation::Expire(0, ms),
            Answer::Integer(found),
        )
    };
    // INCR keeps the deadline, and a key whose time came counts from 1 again.
    accepted(&[
        set_for(1, 0, 100, 0, 1, 10),
        incr(1, 200, 300, 0, value(1) + 1),
        incr(1, 12_000, 12_100, 0, 1),
        get(1, 90_000, 90_100, 0, Some(1)),
    ]);
    refused(
        &[
            set_for(1, 0, 100, 0, 1, 10),
            incr(1, 200, 300, 0, value(1) + 1),
            incr(1, 12_000, 12_100, 0, value(1) + 2),
        ],
        3,
    );
    // PEXPIRE moves it, SET takes it away.
    accepted(&[
        set_for(1, 0, 100, 0, 1, 10),
        expire(200, 300, 50, 1),
        get(1, 20_000, 20_100, 0, Some(value(1))),
        set(1, 20_200, 20_300, 0, 2),
        get(1, 90_000, 90_100, 0, Some(value(2))),
        expire(90_200, 90_300, 1, 1),
        expire(93_000, 93_100, 1, 0),
    ]);
    refused(
        &[
            set_for(1, 0, 100, 0, 1, 10),
            set(1, 200, 300, 0, 2),
            get(1, 12_000, 12_100, 0, None),
        ],
        2,
    );
}

#[test]
fn flushing() {
    let pair = mset(1, 0, 1, &[(0, 1), (1, 2)]);
    accepted(&[
        pair.clone(),
        flush(2, 2, 9),
        mget(3, 3, 4, &[0, 1], &[Some(value(1)), Some(value(2))]),
        mget(3, 5, 6, &[0, 1], &[None, None]),
    ]);
    // Torn within keys that are read together.
    refused(
        &[
            pair,
            flush(2, 2, 9),
            mget(3, 3, 4, &[0, 1], &[None, Some(value(2))]),
        ],
        3,
    );
    // Torn between keys that nothing but the flush connects.
    refused(
        &[
            set(1, 0, 1, 0, 1),
            set(1, 0, 1, 1, 2),
            flush(2, 2, 9),
            get(3, 3, 4, 0, None),
            get(3, 5, 6, 1, Some(value(2))),
        ],
        5,
    );
}

#[test]
fn what_was_never_answered_may_have_happened_or_not_or_late() {
    let history = |seen| {
        vec![
            set(1, 0, 1, 0, 1),
            unanswered(2, 2, plain(0, 2)),
            get(3, 3, 4, 0, Some(value(1))),
            get(3, 50, 51, 0, seen),
        ]
    };
    accepted(&history(Some(value(1))));
    accepted(&history(Some(value(2))));
    refused(&history(None), 2);
    // What follows it in its pipeline may have happened although it had nothing to do itself.
    let if_missing = Operation::Set {
        key: 0,
        value: value(2),
        expire_ms: None,
        when: When::Missing,
        get: false,
    };
    accepted(&[
        set(1, 0, 1, 0, 1),
        unanswered(2, 2, if_missing),
        unanswered(2, 2, Operation::Increment(0)),
        get(3, 3, 4, 0, Some(value(1) + 1)),
    ]);
    // Once.
    refused(
        &[
            set(1, 0, 1, 0, 1),
            unanswered(2, 2, Operation::Increment(0)),
            get(3, 3, 4, 0, Some(value(1) + 2)),
        ],
        3,
    );
}

#[test]
fn a_pipeline_keeps_its_order_between_keys() {
    // Each of two pipelines writes one key and reads the other: one of them must see the other's write.
    let pipelines = |first, second| {
        vec![
            set(1, 0, 9, 0, 1),
            get(1, 0, 9, 1, first),
            set(2, 0, 9, 1, 2),
            get(2, 0, 9, 0, second),
        ]
    };
    accepted(&pipelines(Some(value(2)), None));
    accepted(&pipelines(Some(value(2)), Some(value(1))));
    refused(&pipelines(None, None), 4);
    // Within one key.
    refused(&[set(1, 0, 9, 0, 1), get(1, 0, 9, 0, None)], 2);
}

#[test]
fn too_many_ways_are_told_apart_from_none() {
    let limits = Limits {
        configurations: 8,
        ..LIMITS
    };
    let history: Vec<Record> = (0..8)
        .map(|number| set(number, 0, 9, 0, i64::from(number) + 1))
        .collect();
    let (effort, violation) = check(&history, limits);
    assert!(violation.is_none());
    assert_eq!(effort.undecided, 1);
    let (effort, _) = check(&history, LIMITS);
    assert_eq!(effort.undecided, 0);
}

/// Whether any order explains the records, by trying all of them.
fn has_an_order(
    model: &Model<'_>,
    records: &[Record],
    done: &mut Vec<usize>,
    state: State,
) -> bool {
    if done.len() == records.len() {
        return true;
    }
    for index in 0..records.len() {
        let comes_first = |other: usize| {
            let same = records[other].connection == records[index].connection;
            (same && other < index) || records[other].returned_ns < records[index].invoked_ns
        };
        let waits = (0..records.len()).any(|other| !done.contains(&other) && comes_first(other));
        if done.contains(&index) || waits {
            continue;
        }
        let mut states = Vec::new();
        model.step(&state, index, &mut |next| states.push(next));
        done.push(index);
        if states
            .into_iter()
            .any(|next| has_an_order(model, records, done, next))
        {
            return true;
        }
        done.pop();
    }
    false
}

#[test]
fn the_search_agrees_with_trying_every_order() {
    let mut random = fastrand::Rng::with_seed(8);
    let (mut explained, mut unexplained) = (0, 0);
    for _ in 0..4_000 {
        let mut records: Vec<Record> = Vec::new();
        let (mut free, mut answered) = ([0_u64; 3], [0_u64; 3]);
        let mut kept = [None, None];
        let count = random.usize(3..=6);
        for number in 1..=count as i64 {
            let connection = random.usize(..3);
            let from = free[connection] + random.u64(..4);
            let to = (from + random.u64(1..12)).max(answered[connection]);
            answered[connection] = to;
            // Now and then the next one of a pipeline.
            free[connection] = if random.u8(..4) == 0 { from } else { to + 1 };
            let key = random.u16(..2);
            let place = usize::from(key);
            // As if done in this order, which is often not a possible one.
            let (operation, answer) = match random.u8(..6) {
                0 => (Operation::Get(key), Answer::Value(kept[place])),
                1 => (
                    Operation::GetMany(vec![0, 1]),
                    Answer::Values(kept.to_vec()),
                ),
                2 => {
                    let sum = kept[place].unwrap_or(0) + 1;
                    kept[place] = Some(sum);
                    (Operation::Increment(key), Answer::Integer(sum))
                }
                3 => {
                    let removed = i64::from(kept[place].take().is_some());
                    (Operation::Delete(vec![key]), Answer::Integer(removed))
                }
                4 => {
                    kept[place] = Some(value(number));
                    (plain(key, number), Answer::Done)
                }
                _ => {
                    kept = [Some(value(number)), Some(value(number + 100))];
                    let pairs = vec![(0, value(number)), (1, value(number + 100))];
                    (Operation::SetMany(pairs), Answer::Done)
                }
            };
            records.push(record(connection as u32, from, to, operation, answer));
        }
        let model = Model::new(&records, LIMITS.slack_ns);
        let start: State = [KeyState::Missing; 2].into_iter().collect();
        let expected = has_an_order(&model, &records, &mut Vec::new(), start);
        let (effort, violation) = check(&records, LIMITS);
        assert_eq!(effort.undecided, 0);
        assert_eq!(violation.is_none(), expected, "{records:#?}");
        if expected {
            explained += 1;
        } else {
            unexplained += 1;
        }
    }
    assert!(
        explained > 500 && unexplained > 500,
        "{explained} {unexplained}"
    );
}

/// INCR of both keys in a transaction, with what was seen of the first before.
fn both(from: u64, to: u64, guard: Option<Option<i64>>, sums: Option<[i64; 2]>) -> Record {
    let operation = Operation::Transaction {
        guard: guard.into_iter().map(|value| (0, value)).collect(),
        parts: vec![Operation::Increment(0), Operation::Increment(1)],
    };
    let answer = match sums {
        Some(sums) => Answer::Parts(sums.map(Answer::Integer).to_vec()),
        None => Answer::Value(None),
    };
    record(9, from, to, operation, answer)
}

fn sees(from: u64, to: u64, values: [Option<i64>; 2]) -> Record {
    let operation = Operation::GetMany(vec![0, 1]);
    record(8, from, to, operation, Answer::Values(values.to_vec()))
}

fn has_order(records: &[Record]) -> bool {
    let (effort, violation) = check(records, LIMITS);
    assert_eq!(effort.undecided, 0);
    violation.is_none()
}

#[test]
fn a_transaction_is_seen_whole_or_not_at_all() {
    let done = both(0, 100, None, Some([1, 1]));
    assert!(has_order(&[done.clone(), sees(10, 20, [None, None])]));
    assert!(has_order(&[done.clone(), sees(10, 20, [Some(1), Some(1)])]));
    assert!(!has_order(&[done.clone(), sees(10, 20, [Some(1), None])]));
    assert!(!has_order(&[done.clone(), sees(110, 120, [None, None])]));
    // Another one comes before it or after, not in the middle.
    let between = |key: Key, sum: i64| incr(3, 10, 90, key, sum);
    assert!(has_order(&[done.clone(), between(1, 2)]));
    assert!(!has_order(&[
        both(0, 100, None, Some([2, 1])),
        between(0, 1),
        between(1, 2),
        sees(110, 120, [Some(2), Some(3)])
    ]));
}

#[test]
fn a_watched_key_has_not_changed_if_the_transaction_ran() {
    let early = incr(3, 0, 10, 0, 1);
    let late = incr(3, 30, 40, 0, 2);
    assert!(has_order(&[
        early.clone(),
        both(50, 60, Some(Some(1)), Some([2, 1]))
    ]));
    assert!(!has_order(&[
        early.clone(),
        late.clone(),
        both(50, 60, Some(Some(1)), Some([3, 1]))
    ]));
    // That it did not run is always possible, and has no effect.
    let ended = both(50, 60, Some(Some(1)), None);
    assert!(has_order(&[
        early.clone(),
        ended.clone(),
        sees(70, 80, [Some(1), None])
    ]));
    assert!(!has_order(&[
        early,
        ended,
        sees(70, 80, [Some(2), Some(1)])
    ]));
}
