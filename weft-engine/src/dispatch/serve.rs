//! Serving those who wait: runs their commands as part of the unit that made data available, latches still held.
//!
//! Keys come in the order they were touched, those who wait for one in the order they came, and what serving makes
//! available serves others, until nobody can be served. Nothing is told before the latches are free.

use std::sync::Arc;

use smallvec::SmallVec;
use weft_keyspace::Awaited;
use weft_resp::Writer;
use weft_rope::Output;

use super::context::{Budget, Context, Key, Progress, Steps, UNLATCHED};
use super::unit::{Ready, Unit};
use crate::action::Action;
use crate::blocking::{Outcome, Wait, Waiting, awaited_as};
use crate::engine::{Engine, WorkerState};

/// Somebody whose command has run.
pub(super) struct Served {
    wait: Arc<Wait>,
    reply: Output,
    steps: Option<Box<dyn Steps>>,
}

/// Serves all who wait for keys that the unit has touched.
#[cold]
pub(super) fn serve<'k>(
    engine: &'k Engine,
    worker: &mut WorkerState,
    unit: &mut Unit<'k>,
) -> Vec<Served> {
    // What has come to a key may have expired while the unit went on, as in Redis.
    unit.read_time_anew();
    let mut served = Vec::new();
    let mut at = 0;
    while let Some(ready) = unit.ready(at) {
        serve_key(engine, worker, unit, &ready, &mut served);
        at += 1;
    }
    unit.forget_ready();
    served
}

fn serve_key<'k>(
    engine: &'k Engine,
    worker: &mut WorkerState,
    unit: &mut Unit<'k>,
    ready: &Ready,
    served: &mut Vec<Served>,
) {
    unit.go_on_for(ready.database, true);
    let Some(mut key) = unit.latched_key(ready.position, &ready.name) else {
        return;
    };
    let mut after = [0; Awaited::ALL.len()];
    loop {
        let kind = unit.look(key).and_then(awaited_as);
        // Of those who wait for something else only readers of a stream's group heed what becomes of it.
        let queue = kind.unwrap_or(Awaited::Stream);
        let Some((ticket, wait)) = unit.next_waiter(key, queue, after[queue as usize]) else {
            if kind.is_some_and(|kind| kind != Awaited::Stream) {
                serve_absence(engine, worker, unit, key, served);
            }
            return;
        };
        after[queue as usize] = ticket;
        let met = (kind.is_some() || wait.heeds_absence()) && wait.is_met(key.name, unit.look(key));
        if wait.is_open() && (!met || wait.client.is_doomed()) {
            continue;
        }
        if wait.is_open()
            && let Some((_, fed)) = wait.feeds
            && unit.latched_key(fed, &[]).is_none()
        {
            // Somebody before it has stopped waiting since the latches were chosen. What has been done is committed: the latches
            // are taken anew, with its destination's, and whoever came in between may have changed everything.
            unit.latch_also(fed);
            let Some(again) = unit.latched_key(ready.position, &ready.name) else {
                return;
            };
            key = again;
            after = [0; Awaited::ALL.len()];
            continue;
        }
        unit.dequeue(key, queue, ticket);
        if wait.claim(Outcome::Served) {
            served.push(run(engine, worker, unit, &wait));
            unit.go_on_for(ready.database, true);
        }
    }
}

/// Serves those who wait for a stream where there is something else now.
fn serve_absence<'k>(
    engine: &'k Engine,
    worker: &mut WorkerState,
    unit: &mut Unit<'k>,
    key: Key<'_>,
    served: &mut Vec<Served>,
) {
    let database = unit.database();
    let mut after = 0;
    while let Some((ticket, wait)) = unit.next_waiter(key, Awaited::Stream, after) {
        after = ticket;
        if wait.heeds_absence()
            && wait.is_met(key.name, unit.look(key))
            && wait.claim(Outcome::Served)
        {
            unit.dequeue(key, Awaited::Stream, ticket);
            served.push(run(engine, worker, unit, &wait));
            unit.go_on_for(database, true);
        }
    }
}

/// Runs the command that waited, on those of its keys that were touched and the one it puts data into.
fn run<'k>(
    engine: &'k Engine,
    worker: &mut WorkerState,
    unit: &mut Unit<'k>,
    wait: &Arc<Wait>,
) -> Served {
    unit.go_on_for(wait.database, wait.traceless);
    let (args, row) = (wait.args.args(), wait.command.row);
    let fed = wait.feeds.map(|(argument, _)| argument);
    let mut keys: SmallVec<[Key<'_>; 8]> = SmallVec::new();
    for found in row.keys_of(args).unwrap_or_default() {
        let name = args.get(found.argument).unwrap_or_default();
        let position = engine.keyspace.position(name);
        let at_hand = fed == Some(found.argument) || unit.is_ready(wait.database, name);
        let latched = unit.latched_key(position, name).filter(|_| at_hand);
        keys.push(latched.unwrap_or(Key {
            name,
            position,
            latch: UNLATCHED,
        }));
    }
    let mut reply = Output::new();
    let mut stand_in = worker.take_stand_in(engine);
    stand_in.stand_in_for(wait);
    let mut context = Context {
        args,
        keys: &keys,
        reply: Writer::new(&mut reply, wait.protocol),
        unit,
        client: &mut stand_in,
        worker,
        engine,
        row,
        steps: None,
        wish: None,
    };
    let result = (row.handler)(&mut context);
    let (steps, unserved) = (context.steps.take(), context.wish.take());
    drop(context);
    worker.put_stand_in(stand_in);
    if let Err(error) = result {
        let text = error.text();
        worker.commands.failed(wait.command.index);
        worker.count_error(engine, &text);
        Writer::new(&mut reply, wait.protocol).error_bytes(&text);
    } else if unserved.is_some() {
        debug_assert!(false, "{} was called for nothing", row.name);
        wait.lapsed
            .write(&mut Writer::new(&mut reply, wait.protocol));
    }
    unit.commit(worker);
    Served {
        wait: Arc::clone(wait),
        reply,
        steps,
    }
}

/// Tells those who were served. If there is anything left to do for them, the latches have to be free.
pub(super) fn hand_over(worker: &mut WorkerState, served: Vec<Served>) {
    for Served {
        wait,
        mut reply,
        steps,
    } in served
    {
        if let Some(mut steps) = steps {
            let mut writer = Writer::new(&mut reply, wait.protocol);
            while steps.step(&mut Budget::slice(), &mut writer) == Progress::More {}
            worker.reap_snapshots(steps.snapshots());
        }
        wait.leave_reply(reply);
        worker
            .actions
            .push(Action::Attend(Arc::clone(&wait.client)));
    }
}

/// Whether anything is left to do for those who were served.
pub(super) fn has_steps(served: &[Served]) -> bool {
    served.iter().any(|served| served.steps.is_some())
}

/// Takes a wait that is over out of all queues where it still is. The worker is outside its gate.
pub(crate) fn leave_queues(engine: &Engine, worker: usize, waiting: &Waiting) {
    let wait = &waiting.wait;
    let args = wait.args.args();
    let gate = engine.keyspace.gate(worker).enter();
    for place in &waiting.places {
        let name = args.get(place.argument).unwrap_or_default();
        let shard = engine.keyspace.shard_of(place.position);
        engine.keyspace.latch(shard).dequeue(
            wait.database,
            place.kind,
            place.position,
            name,
            place.ticket,
        );
    }
    drop(gate);
}
