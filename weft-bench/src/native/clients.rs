//! What the connections of one thread send, and what they make of the answers.
//!
//! Owns the state of every connection: its random numbers, its schedule, the unit it works on. Invariants: in an open loop
//! every arrival before the end is sent, or counted as unsent; a connection works on one unit at a time if units have several
//! commands; no allocation per request once buffers have grown.
//!
//! ```text
//!  a unit:  drawn --> commands whose fields are known are sent --> answers bring fields --> ... --> last answer: measured
//! ```

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use fastrand::Rng;
use weft_rope::Output;

use super::answer;
use super::command::Command;
use super::compiled::{Bit, Piece, Program, Request, Sequence};
use super::pace::{Pace, Schedule, Think};
use super::report::{SCALE, Tally};
use super::spec::{Limit, Spec};
use super::values::argument_head;
use super::verify;
use crate::load::{Answer, Asked, Budget, Next, Share, UnitEnd, Verdict, Workload};

/// What all connections of a run have in common.
#[derive(Debug)]
pub struct Common {
    program: Arc<Program>,
    pace: Pace,
    limit: Limit,
    warmup_ns: u64,
    reconnect_every: u64,
    threads: usize,
    connections: usize,
    seed: u64,
    /// Units that are still to be sent, and those of the warm-up.
    budget: Arc<Budget>,
    warmup_budget: Arc<Budget>,
    tally: Mutex<Tally>,
}

impl Common {
    /// For a checked description.
    pub fn new(spec: &Spec, program: Arc<Program>) -> Common {
        let amount = match spec.limit {
            Limit::Requests(requests) => requests,
            Limit::Time(_) => u64::MAX,
        };
        let threads = spec.threads.min(spec.connections);
        Common {
            program,
            pace: spec.pace,
            limit: spec.limit,
            warmup_ns: nanoseconds(spec.warmup),
            reconnect_every: match spec.pace {
                Pace::Storm { .. } => 1,
                _ => spec.reconnect_every,
            },
            threads,
            connections: spec.connections,
            seed: spec.seed,
            budget: Budget::new(amount, threads),
            warmup_budget: Budget::new(u64::MAX, threads),
            tally: Mutex::new(Tally::new()),
        }
    }

    /// What was counted, once all threads have ended.
    pub fn tally(&self) -> Tally {
        match self.tally.lock() {
            Ok(tally) => tally.clone(),
            Err(poisoned) => poisoned.into_inner().clone(),
        }
    }
}

/// The connections of one thread. `READS`: they look at answers.
#[derive(Debug)]
pub struct Clients<const READS: bool> {
    common: Arc<Common>,
    clients: Vec<Client>,
    share: Share,
    warmup_share: Share,
    measured_from_ns: u64,
    end_ns: u64,
    tally: Tally,
    scratch: Scratch,
}

/// Buffers for what is being put together.
#[derive(Debug, Default)]
struct Scratch {
    word: Vec<u8>,
    key: Vec<u8>,
}

#[derive(Debug)]
struct Client {
    random: Rng,
    schedule: Option<Schedule>,
    /// Nothing was sent that was due because the connection had no room.
    held_up: bool,
    sent_on_connection: u64,
    thinking: Thinking,
    unit: UnitUnderWay,
    /// Requests under way, oldest first.
    expected: VecDeque<Expected>,
    /// Their keys: space and number.
    expected_keys: VecDeque<(usize, u64)>,
    finished: bool,
}

#[derive(Clone, Copy, Debug)]
enum Thinking {
    /// So many requests may be sent.
    Sends(u32),
    /// Waits for the answers.
    Waits,
    /// Until this time.
    Until(u64),
}

/// The unit that a connection works on.
#[derive(Debug, Default)]
struct UnitUnderWay {
    busy: bool,
    sequence: usize,
    /// The next command.
    step: usize,
    outstanding: u32,
    number: u64,
    since_ns: u64,
    /// The time is that of the schedule.
    due: bool,
    /// The keys of its slots.
    keys: Vec<u64>,
    /// Fields whose answers have come, and those of them that are missing, as bits.
    known: u64,
    missing: u64,
    fields: Vec<Field>,
}

/// What was captured: texts in one buffer, and where each ends.
#[derive(Clone, Debug, Default)]
struct Field {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Field {
    fn texts(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, &end)| &self.bytes[start..end])
    }
}

#[derive(Clone, Copy, Debug)]
struct Expected {
    sequence: usize,
    step: usize,
}

impl<const READS: bool> Clients<READS> {
    /// The connections that belong to thread `thread`.
    pub fn new(common: &Arc<Common>, thread: usize) -> Clients<READS> {
        let client = |connection: usize| {
            // Neighbouring numbers give unlike generators: each is the start of a generator of its own.
            let mut random =
                Rng::with_seed(common.seed.wrapping_add(connection as u64).wrapping_mul(
                    // The odd number next to 2^64 divided by the golden ratio spreads neighbours evenly.
                    0x9e37_79b9_7f4a_7c15,
                ));
            let schedule = match common.pace {
                Pace::Closed { .. } => None,
                Pace::Open { rate, arrivals } | Pace::Storm { rate, arrivals } => {
                    Some(Schedule::new(
                        arrivals,
                        rate,
                        connection,
                        common.connections,
                        random.fork(),
                    ))
                }
            };
            Client {
                random,
                schedule,
                held_up: false,
                sent_on_connection: 0,
                thinking: Thinking::Sends(0),
                unit: UnitUnderWay {
                    fields: vec![Field::default(); common.program.captured],
                    ..UnitUnderWay::default()
                },
                expected: VecDeque::new(),
                expected_keys: VecDeque::new(),
                finished: false,
            }
        };
        Clients {
            clients: (thread..common.connections)
                .step_by(common.threads)
                .map(client)
                .collect(),
            share: common.budget.share(),
            warmup_share: common.warmup_budget.share(),
            measured_from_ns: 0,
            end_ns: u64::MAX,
            tally: Tally::new(),
            scratch: Scratch::default(),
            common: Arc::clone(common),
        }
    }

    /// The number of the next unit, unless there are no more.
    fn take(&mut self, at_ns: u64) -> Option<u64> {
        if at_ns < self.measured_from_ns {
            self.warmup_share.take_numbered()
        } else {
            self.share.take_numbered()
        }
    }
}

impl<const READS: bool> Workload for Clients<READS> {
    const READS: bool = READS;

    fn started(&mut self, now_ns: u64) {
        self.measured_from_ns = now_ns.saturating_add(self.common.warmup_ns);
        if let Limit::Time(time) = self.common.limit {
            self.end_ns = self.measured_from_ns.saturating_add(nanoseconds(time));
        }
        for client in &mut self.clients {
            if let Some(schedule) = &mut client.schedule {
                schedule.start(now_ns);
            }
        }
    }

    fn next(&mut self, asked: &Asked, out: &mut Output) -> Next {
        let index = asked.connection / self.common.threads;
        let now_ns = asked.now_ns;
        if READS && self.clients[index].unit.busy {
            return self.go_on(index, asked, out);
        }
        let client = &mut self.clients[index];
        if asked.fresh {
            client.sent_on_connection = 0;
        }
        let due_ns = match &mut client.schedule {
            Some(schedule) => {
                let due_ns = schedule.next_ns();
                if due_ns >= self.end_ns {
                    client.finished = true;
                    return Next::Finished;
                }
                if due_ns > now_ns {
                    client.held_up = false;
                    let used = client.sent_on_connection > 0;
                    let storm = matches!(self.common.pace, Pace::Storm { .. });
                    return match asked.open {
                        true if storm && used && asked.quiet => Next::CloseUntil(due_ns),
                        false if storm => Next::CloseUntil(due_ns),
                        true => Next::At(due_ns),
                        false => Next::Reconnect,
                    };
                }
                Some(due_ns)
            }
            None => {
                if now_ns >= self.end_ns {
                    client.finished = true;
                    return Next::Finished;
                }
                None
            }
        };
        if !asked.open {
            return Next::Reconnect;
        }
        let every = self.common.reconnect_every;
        if every > 0 && client.sent_on_connection >= every {
            client.held_up = true;
            return match asked.quiet {
                true => Next::Reconnect,
                false => Next::Idle,
            };
        }
        if let Pace::Closed { think } = self.common.pace
            && think != Think::None
            && let Some(next) = client.think(&think, asked)
        {
            return next;
        }
        let Some(number) = self.take(due_ns.unwrap_or(now_ns)) else {
            self.clients[index].finished = true;
            return Next::Finished;
        };
        let client = &mut self.clients[index];
        client.sent_on_connection += 1;
        if let Some((due_ns, schedule)) = due_ns.zip(client.schedule.as_mut()) {
            schedule.pass();
            let late = now_ns.saturating_sub(due_ns) / SCALE.unit_ns;
            if due_ns >= self.measured_from_ns {
                match client.held_up {
                    true => self.tally.held.saturating_record(late),
                    false => self.tally.late.saturating_record(late),
                }
            }
            client.held_up |= asked.room == 1;
        }
        client.begin(&self.common.program, number, due_ns, now_ns);
        if READS && self.common.program.serial {
            client.unit.busy = true;
            return self.go_on(index, asked, out);
        }
        let sequence = client.unit.sequence;
        let request = &self.common.program.units[sequence].steps[0];
        client.write(&self.common.program, request, asked, &mut self.scratch, out);
        if READS {
            client.expected.push_back(Expected { sequence, step: 0 });
        }
        let class = request.class;
        match due_ns {
            Some(due_ns) => Next::Due {
                count: 1,
                class,
                due_ns,
            },
            None => Next::Requests {
                count: 1 + self.more(index, asked, out),
                class,
            },
        }
    }

    fn answer(&mut self, answer: &Answer<'_>) -> Verdict {
        let program = &*self.common.program;
        let client = &mut self.clients[answer.connection / self.common.threads];
        let Some(expected) = client.expected.pop_front() else {
            return Verdict::default();
        };
        let sequence = &program.units[expected.sequence];
        let request = &sequence.steps[expected.step];
        let mut verdict = Verdict::default();
        if program.verify {
            let keys = client.expected_keys.drain(..request.keys);
            verdict.wrong = verify::wrong(program, request, answer, keys, &mut self.scratch.key);
        }
        if !program.serial {
            return verdict;
        }
        let unit = &mut client.unit;
        for (field, path) in &request.captures {
            let captured = &mut unit.fields[*field];
            captured.bytes.clear();
            captured.ends.clear();
            answer::follow(answer.bytes, path, &mut |bytes| {
                captured.bytes.extend_from_slice(bytes);
                captured.ends.push(captured.bytes.len());
            });
            unit.known |= 1 << field;
            if captured.ends.is_empty() {
                unit.missing |= 1 << field;
            }
        }
        unit.outstanding -= 1;
        self.tally.skipped += unit.skip(sequence);
        if unit.outstanding == 0 && unit.step >= sequence.steps.len() {
            unit.busy = false;
            verdict.unit = sequence.class.map(|class| UnitEnd {
                class,
                since_ns: unit.since_ns,
            });
        }
        verdict
    }

    fn lost(&mut self, connection: usize) {
        let client = &mut self.clients[connection / self.common.threads];
        client.unit.busy = false;
        client.expected.clear();
        client.expected_keys.clear();
        // Whoever cannot be reached holds up what is due.
        client.held_up = true;
        client.thinking = Thinking::Sends(0);
    }

    fn finished(&mut self, now_ns: u64) {
        if let Limit::Time(_) = self.common.limit {
            let end_ns = self.end_ns.min(now_ns);
            let schedules = self.clients.iter().filter(|client| !client.finished);
            self.tally.unsent += schedules
                .filter_map(|client| client.schedule.as_ref())
                .map(|schedule| schedule.before(end_ns))
                .sum::<u64>();
        }
        match self.common.tally.lock() {
            Ok(mut tally) => tally.add(&self.tally),
            Err(poisoned) => poisoned.into_inner().add(&self.tally),
        }
    }
}

impl<const READS: bool> Clients<READS> {
    /// Sends more of the same, up to the room, where nothing but the room decides how many. How many it were.
    fn more(&mut self, index: usize, asked: &Asked, out: &mut Output) -> u32 {
        let Clients {
            common,
            clients,
            share,
            warmup_share,
            measured_from_ns,
            scratch,
            ..
        } = self;
        let closed = matches!(common.pace, Pace::Closed { think } if think == Think::None);
        let [sequence] = &common.program.units[..] else {
            return 0;
        };
        if READS || !closed || common.reconnect_every > 0 {
            return 0;
        }
        let client = &mut clients[index];
        let share = match asked.now_ns < *measured_from_ns {
            true => warmup_share,
            false => share,
        };
        for sent in 1..asked.room {
            let Some(number) = share.take_numbered() else {
                return sent - 1;
            };
            client.begin(&common.program, number, None, asked.now_ns);
            client.write(&common.program, &sequence.steps[0], asked, scratch, out);
        }
        asked.room - 1
    }

    /// Sends the next command of the unit under way, if its fields are known.
    fn go_on(&mut self, index: usize, asked: &Asked, out: &mut Output) -> Next {
        let program = &*self.common.program;
        let client = &mut self.clients[index];
        let sequence = &program.units[client.unit.sequence];
        self.tally.skipped += client.unit.skip(sequence);
        client.held_up = true;
        let step = client.unit.step;
        let Some(request) = sequence.steps.get(step) else {
            return Next::Idle;
        };
        if request.needs & !client.unit.known != 0 {
            return Next::Idle;
        }
        client.write(program, request, asked, &mut self.scratch, out);
        client.expected.push_back(Expected {
            sequence: client.unit.sequence,
            step,
        });
        client.unit.step += 1;
        client.unit.outstanding += 1;
        let (count, class) = (1, request.class);
        if step == 0 && client.unit.due {
            let due_ns = client.unit.since_ns;
            return Next::Due {
                count,
                class,
                due_ns,
            };
        }
        Next::Requests { count, class }
    }
}

impl UnitUnderWay {
    /// Leaves out the commands whose fields are known to be missing. How many there were.
    fn skip(&mut self, sequence: &Sequence) -> u64 {
        let mut skipped = 0;
        while let Some(request) = sequence.steps.get(self.step)
            && request.needs & self.missing != 0
        {
            self.step += 1;
            skipped += 1;
        }
        skipped
    }
}

impl Client {
    /// Whether to wait rather than to send: `pipeline` requests are sent, and once all are answered some time passes.
    fn think(&mut self, think: &Think, asked: &Asked) -> Option<Next> {
        loop {
            match self.thinking {
                Thinking::Sends(0) if self.sent_on_connection == 0 && asked.quiet => {
                    self.thinking = Thinking::Sends(asked.room);
                }
                Thinking::Sends(0) => self.thinking = Thinking::Waits,
                Thinking::Sends(left) => {
                    self.thinking = Thinking::Sends(left - 1);
                    return None;
                }
                Thinking::Waits if !asked.quiet => return Some(Next::Idle),
                Thinking::Waits => {
                    let time_ns = think.draw(&mut self.random);
                    self.thinking = Thinking::Until(asked.now_ns.saturating_add(time_ns));
                }
                Thinking::Until(until_ns) if asked.now_ns < until_ns => {
                    return Some(Next::At(until_ns));
                }
                Thinking::Until(_) => self.thinking = Thinking::Sends(asked.room),
            }
        }
    }

    /// Draws a unit and its keys.
    fn begin(&mut self, program: &Program, number: u64, due_ns: Option<u64>, now_ns: u64) {
        let sequence = match &program.units[..] {
            [_] => 0,
            units => {
                let mut drawn = self.random.u64(..program.weights);
                let place = units.iter().position(|unit| {
                    let here = drawn < u64::from(unit.weight);
                    drawn = drawn.wrapping_sub(u64::from(unit.weight));
                    here
                });
                place.unwrap_or(0)
            }
        };
        let unit = &mut self.unit;
        unit.sequence = sequence;
        unit.step = 0;
        unit.outstanding = 0;
        unit.number = number;
        unit.since_ns = due_ns.unwrap_or(now_ns);
        unit.due = due_ns.is_some();
        unit.known = 0;
        unit.missing = 0;
        unit.keys.clear();
        for &space in &program.units[sequence].slots {
            let key = program.spaces[space].draw(number, &mut self.random);
            unit.keys.push(key);
        }
    }

    /// Appends a request.
    #[inline]
    fn write(
        &mut self,
        program: &Program,
        request: &Request,
        asked: &Asked,
        scratch: &mut Scratch,
        out: &mut Output,
    ) {
        let slots = &program.units[self.unit.sequence].slots;
        if !matches!(request.pieces.first(), Some(Piece::Raw(head)) if head.first() == Some(&b'*'))
        {
            let captured = request.pieces.iter().map(|piece| match piece {
                Piece::Captured(field) => self.unit.fields[*field].ends.len(),
                _ => 0,
            });
            let arguments = request.arguments + captured.sum::<usize>();
            let tail = out.tail();
            tail.push(b'*');
            tail.extend_from_slice(itoa::Buffer::new().format(arguments).as_bytes());
            tail.extend_from_slice(b"\r\n");
        }
        for piece in &request.pieces {
            match piece {
                Piece::Raw(bytes) => out.tail().extend_from_slice(bytes),
                Piece::Key(slot) => {
                    let (space, key) = (slots[*slot], self.unit.keys[*slot]);
                    program.spaces[space].write_argument(key, out.tail());
                    if program.verify {
                        self.expected_keys.push_back((space, key));
                    }
                }
                Piece::Keys(space, times) => {
                    for time in 0..u64::from(*times) {
                        self.draw_key(program, *space, time, *times, out);
                    }
                }
                Piece::Pairs(space, times) => {
                    for time in 0..u64::from(*times) {
                        let key = self.draw_key(program, *space, time, *times, out);
                        self.write_value(program, 0, Some((*space, key)), scratch, out);
                    }
                }
                Piece::Value(values, owner) => {
                    let owner = owner.map(|slot| (slots[slot], self.unit.keys[slot]));
                    self.write_value(program, *values, owner, scratch, out);
                }
                Piece::Mixed(bits) => {
                    scratch.word.clear();
                    for bit in bits {
                        self.write_bit(program, slots, bit, asked, scratch);
                    }
                    write_argument(&scratch.word, out);
                }
                Piece::Captured(field) => {
                    for text in self.unit.fields[*field].texts() {
                        write_argument(text, out);
                    }
                }
            }
        }
    }

    /// Draws one of several keys and appends it.
    fn draw_key(
        &mut self,
        program: &Program,
        space: usize,
        time: u64,
        times: u32,
        out: &mut Output,
    ) -> u64 {
        let turn = self
            .unit
            .number
            .wrapping_mul(u64::from(times))
            .wrapping_add(time);
        let key = program.spaces[space].draw(turn, &mut self.random);
        program.spaces[space].write_argument(key, out.tail());
        if program.verify {
            self.expected_keys.push_back((space, key));
        }
        key
    }

    fn write_value(
        &mut self,
        program: &Program,
        values: usize,
        owner: Option<(usize, u64)>,
        scratch: &mut Scratch,
        out: &mut Output,
    ) {
        if !program.verify {
            return program.values[values].write_argument(&mut self.random, out);
        }
        scratch.word.clear();
        self.seal(program, values, owner, scratch);
        write_argument(&scratch.word, out);
    }

    /// Appends a value that can be verified to the word.
    fn seal(
        &mut self,
        program: &Program,
        values: usize,
        owner: Option<(usize, u64)>,
        scratch: &mut Scratch,
    ) {
        scratch.key.clear();
        if let Some((space, key)) = owner {
            program.spaces[space].write(key, &mut scratch.key);
        }
        program.values[values].write_sealed(&scratch.key, &mut self.random, &mut scratch.word);
    }

    fn write_bit(
        &mut self,
        program: &Program,
        slots: &[usize],
        bit: &Bit,
        asked: &Asked,
        scratch: &mut Scratch,
    ) {
        let mut digits = itoa::Buffer::new();
        let text = match bit {
            Bit::Text(text) => text,
            Bit::Key(slot) => {
                let (space, key) = (slots[*slot], self.unit.keys[*slot]);
                program.spaces[space].write(key, &mut scratch.word);
                if program.verify {
                    self.expected_keys.push_back((space, key));
                }
                return;
            }
            Bit::Value(values, owner) => {
                if program.verify {
                    let owner = owner.map(|slot| (slots[slot], self.unit.keys[slot]));
                    self.seal(program, *values, owner, scratch);
                } else {
                    program.values[*values].write(&mut self.random, &mut scratch.word);
                }
                return;
            }
            Bit::Integer(from, to) => digits.format(self.random.i64(*from..=*to)).as_bytes(),
            Bit::Number => digits.format(self.unit.number).as_bytes(),
            Bit::Connection => digits.format(asked.connection).as_bytes(),
            Bit::Captured(field) => self.unit.fields[*field].texts().next().unwrap_or_default(),
        };
        scratch.word.extend_from_slice(text);
    }
}

fn write_argument(argument: &[u8], out: &mut Output) {
    let tail = out.tail();
    argument_head(argument.len(), tail);
    tail.extend_from_slice(argument);
    tail.extend_from_slice(b"\r\n");
}

fn nanoseconds(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The request for a command that is sent once.
pub fn once(spec: &Spec, command: &Command) -> Vec<u8> {
    let program = Program::of_setup(spec, command);
    let spec = Spec {
        pace: Pace::Closed { think: Think::None },
        connections: 1,
        threads: 1,
        ..spec.clone()
    };
    let common = Arc::new(Common::new(&spec, program));
    let mut clients = Clients::<false>::new(&common, 0);
    let asked = Asked {
        connection: 0,
        open: true,
        fresh: false,
        room: 1,
        quiet: true,
        now_ns: 0,
    };
    let mut out = Output::new();
    clients.next(&asked, &mut out);
    out.to_vec()
}
