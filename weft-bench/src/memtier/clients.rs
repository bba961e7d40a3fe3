//! The clients of one thread: when each of their connections sends what.
//!
//! Owns turns, pauses, reconnections and, in a cluster, the way of a request to the node of its slot. A client has one
//! connection, or in a cluster one to each node. Invariants: what client K sends depends on its seed only, not on when
//! answers come; in a cluster, a request that was drawn is sent, on whichever connection, until it is answered otherwise
//! than with a redirection.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use fastrand::Rng;
use weft_reactor::monotonic_ns;
use weft_resp::{ReplyClass, RequestWriter};
use weft_rope::Output;

use super::cluster;
use super::keys::Keys;
use super::mix::{Action, Limit, Mix, Writer, write_wait};
use super::watch::Watch;
use super::workload::{SCAN_GOES_ON, SETS, WAITS};
use crate::load::{Answer, Asked, Next, Verdict, Workload};

/// The clients of one thread. `READS`: their answers are looked at.
#[derive(Debug)]
pub struct Clients<const READS: bool> {
    mix: Arc<Mix>,
    state: State,
    founds: Arc<Mutex<Vec<Found>>>,
}

/// What of it changes.
#[derive(Debug)]
struct State {
    threads: usize,
    /// Connections of each client.
    nodes: usize,
    clients: Vec<Client>,
    /// Connections: those of the first client, then those of the second.
    lines: Vec<Line>,
    writer: Writer,
    end_ns: u64,
    /// Connections that were finished, because their node was not there, and have something to send now.
    woken: Vec<usize>,
    found: Found,
}

/// What came of a thread besides latencies.
#[derive(Debug, Default)]
pub struct Found {
    /// By class, how many answers said that the slot has moved.
    pub moved: Vec<u64>,
    /// By class, how many answers said to ask elsewhere this once.
    pub asked: Vec<u64>,
    /// Connections that were not opened any more.
    pub given_up: u64,
    pub thread: usize,
    /// By client of the thread.
    pub watches: Vec<Watch>,
}

#[derive(Debug)]
struct Client {
    random: Rng,
    /// One for each turn.
    keys: Vec<Keys>,
    turn: usize,
    /// How often the command of the turn is still to be sent.
    left_of_turn: u32,
    /// Requests drawn so far.
    drawn: u64,
    /// In a cluster, those of them without a final answer.
    outstanding: u64,
    /// Where the next SCAN goes on; empty: at the beginning.
    cursor: Vec<u8>,
    scan_steps: u64,
}

/// A connection.
#[derive(Debug, Default)]
struct Line {
    sent: u64,
    due_ns: u64,
    /// Where in the interval between two requests its first one lies, from 0 to 1: connections at the same rate do not
    /// all send at once.
    phase: f64,
    /// It is not opened before this time.
    opens_ns: u64,
    /// Failures since the last answer.
    failures: u32,
    given_up: bool,
    /// Its node was not there when it was last asked.
    waits_for_node: bool,
    /// SETs since the last WAIT, and WAITs to be sent.
    sets: u32,
    waits: u32,
    /// In a cluster, what is to be sent before anything else.
    queue: VecDeque<Drawn>,
    /// In a cluster, what is under way; `None`: what is not repeated.
    under_way: VecDeque<Option<Drawn>>,
    asking_sent: bool,
}

/// A request that is not yet written.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    turn: usize,
    key: u64,
    /// It goes behind an ASKING.
    asking: bool,
}

/// So far a connection may fall behind its rate and make up for it.
const DEBT_NS_MAX: u64 = 100_000_000;

/// In a cluster, so many requests may wait for one connection of a client; then the others wait for it.
const QUEUE_MAX: usize = 4096;

/// What is nobody's turn is looked at again after this.
const LOOK_AGAIN_NS: u64 = 500_000;

/// The longest pause before a connection is opened again.
const PAUSE_S_MAX: f64 = 3600.0;

impl<const READS: bool> Clients<READS> {
    /// Those of the `total` clients that belong to thread `thread` of `threads`; `random` gives each its seed.
    pub fn new(
        mix: &Arc<Mix>,
        thread: usize,
        threads: usize,
        total: usize,
        founds: &Arc<Mutex<Vec<Found>>>,
        mut random: impl FnMut() -> Rng,
    ) -> Self {
        let nodes = mix
            .cluster
            .as_ref()
            .map_or(1, |cluster| cluster.nodes().len());
        let client = |number: usize| Client {
            random: random(),
            keys: mix
                .turns
                .iter()
                .map(|turn| Keys::new(&mix.keys, turn.pattern, number as u64, total as u64))
                .collect(),
            turn: 0,
            left_of_turn: mix.turns[0].times,
            drawn: 0,
            outstanding: 0,
            cursor: Vec::new(),
            scan_steps: 0,
        };
        let clients: Vec<Client> = (thread..total).step_by(threads).map(client).collect();
        let lines = (0..clients.len() * nodes).map(|index| Line {
            phase: (thread + index * threads) as f64 / (total * nodes) as f64,
            ..Line::default()
        });
        let classes = usize::from(mix.unreported) + 1;
        let watch = || Watch::new(classes);
        let watched = if mix.by_client { clients.len() } else { 0 };
        let state = State {
            threads,
            nodes,
            lines: lines.collect(),
            writer: Writer::default(),
            end_ns: u64::MAX,
            woken: Vec::new(),
            found: Found {
                moved: vec![0; classes],
                asked: vec![0; classes],
                given_up: 0,
                thread,
                watches: std::iter::repeat_with(watch).take(watched).collect(),
            },
            clients,
        };
        Clients {
            mix: Arc::clone(mix),
            state,
            founds: Arc::clone(founds),
        }
    }
}

impl State {
    /// The number of a connection in this thread.
    fn index(&self, connection: usize) -> usize {
        connection / self.threads
    }

    /// What a connection that is not open does.
    fn open(&mut self, index: usize, now_ns: u64) -> Next {
        let line = &mut self.lines[index];
        match now_ns < line.opens_ns {
            true => Next::At(line.opens_ns.min(self.end_ns)),
            false => Next::Reconnect,
        }
    }

    /// The next request of a client on this connection. In a cluster, those drawn for other nodes wait for their
    /// connections. The error is what the connection does instead.
    fn draw(&mut self, mix: &Mix, index: usize, now_ns: u64) -> Result<Drawn, Next> {
        let first = index - index % self.nodes;
        loop {
            let client = &mut self.clients[index / self.nodes];
            if client.is_spent(mix) {
                return Err(match client.outstanding {
                    0 => Next::Finished,
                    _ => Next::At(now_ns + LOOK_AGAIN_NS),
                });
            }
            let Some(cluster) = &mix.cluster else {
                return Ok(client.draw(mix));
            };
            let full = |line: &Line| line.queue.len() >= QUEUE_MAX;
            if self.lines[first..first + self.nodes].iter().any(full) {
                return Err(Next::At(now_ns + LOOK_AGAIN_NS));
            }
            let drawn = client.draw(mix);
            client.outstanding += 1;
            let action = &mix.turns[drawn.turn].action;
            let slot = self.writer.slot(mix, action, drawn.key, &mut client.random);
            match slot.map(|slot| first + cluster.owner(slot)) {
                Some(other) if other != index => self.queue(other, drawn),
                _ => return Ok(drawn),
            }
        }
    }

    /// Leaves a request to another connection.
    fn queue(&mut self, index: usize, drawn: Drawn) {
        let line = &mut self.lines[index];
        line.queue.push_back(drawn);
        if line.waits_for_node {
            line.waits_for_node = false;
            self.woken.push(index);
        }
    }

    /// Writes a request.
    fn write(&mut self, mix: &Mix, index: usize, drawn: Drawn, out: &mut Output) -> u16 {
        let client = &mut self.clients[index / self.nodes];
        let turn = &mix.turns[drawn.turn];
        if !client.cursor.is_empty() {
            if let Action::Command(command) = &turn.action {
                command.write_scan(&client.cursor, out.tail());
            }
            return SCAN_GOES_ON;
        }
        let Client { keys, random, .. } = client;
        let class = self.writer.write(
            mix,
            &turn.action,
            drawn.key,
            &mut keys[drawn.turn],
            random,
            out.tail(),
        );
        class.unwrap_or(turn.class)
    }
}

impl Client {
    /// Whether it has drawn all it is going to send.
    #[inline]
    fn is_spent(&self, mix: &Mix) -> bool {
        matches!(mix.limit, Limit::Requests(requests) if self.drawn >= requests)
    }

    /// Draws the next request.
    #[inline]
    fn draw(&mut self, mix: &Mix) -> Drawn {
        let turn = self.turn;
        let key = match mix.turns[turn].action.has_key() {
            true => self.keys[turn].next(&mut self.random),
            false => mix.keys.minimum,
        };
        self.drawn += 1;
        self.left_of_turn -= 1;
        if self.left_of_turn == 0 {
            self.turn = (turn + 1) % mix.turns.len();
            self.left_of_turn = mix.turns[self.turn].times;
        }
        Drawn {
            turn,
            key,
            asking: false,
        }
    }

    /// Notes where the next SCAN goes on.
    fn scanned(&mut self, answer: &Answer<'_>, steps_max: u64) {
        self.scan_steps = match answer.class {
            SCAN_GOES_ON => self.scan_steps + 1,
            _ => 0,
        };
        self.cursor.clear();
        if let Some(cursor) = cursor(answer.bytes)
            && cursor != b"0"
            && (steps_max == 0 || self.scan_steps < steps_max)
        {
            self.cursor.extend_from_slice(cursor);
        }
    }
}

/// The cursor in an answer to SCAN: the first element of an array.
fn cursor(answer: &[u8]) -> Option<&[u8]> {
    let mut lines = answer.split(|&byte| byte == b'\n');
    let head = lines.next()?;
    let length = lines.next()?;
    let cursor = lines.next()?.strip_suffix(b"\r")?;
    let digits = !cursor.is_empty() && cursor.iter().all(u8::is_ascii_digit);
    (head.starts_with(b"*") && length.starts_with(b"$") && digits).then_some(cursor)
}

impl<const READS: bool> Workload for Clients<READS> {
    const READS: bool = READS;
    // A cluster's answers are read for their redirections.
    const WAKES: bool = READS;

    fn started(&mut self, now_ns: u64) {
        let (mix, state) = (&*self.mix, &mut self.state);
        if let Limit::Time(time_ns) = mix.limit {
            state.end_ns = now_ns.saturating_add(time_ns);
        }
        if let Some(stairs) = mix.staircase {
            for (index, line) in state.lines.iter_mut().enumerate() {
                let late = (index / state.nodes + 1).saturating_sub(stairs.start);
                let steps = late.div_ceil(stairs.step) as u64;
                line.opens_ns = now_ns + steps * stairs.seconds * 1_000_000_000;
            }
        }
        let (least, most) = mix.start_jitter_ns;
        if most > 0 {
            let mut random = Rng::with_seed(state.found.thread as u64);
            let mut pause_ns = 0;
            for line in &mut state.lines {
                line.opens_ns = line.opens_ns.max(now_ns) + pause_ns;
                pause_ns += random.u64(least..=most);
            }
        }
        for watch in &mut state.found.watches {
            watch.start(now_ns);
        }
    }

    fn next(&mut self, asked: &Asked, out: &mut Output) -> Next {
        let (mix, state) = (&*self.mix, &mut self.state);
        let index = state.index(asked.connection);
        if asked.now_ns >= state.end_ns || state.lines[index].given_up {
            return Next::Finished;
        }
        if !asked.open {
            if let Some(cluster) = &mix.cluster
                && cluster.nodes()[index % state.nodes]
                    .target
                    .address()
                    .is_none()
            {
                state.lines[index].waits_for_node = true;
                return Next::Finished;
            }
            return state.open(index, asked.now_ns);
        }
        let line = &mut state.lines[index];
        if asked.fresh {
            line.sent = 0;
            line.asking_sent = false;
        }
        if mix.reconnect_interval > 0 && line.sent >= mix.reconnect_interval {
            return if asked.quiet {
                Next::Reconnect
            } else {
                Next::Idle
            };
        }
        if mix.interval_ns > 0 {
            if line.due_ns == 0 {
                line.due_ns = asked.now_ns + (mix.interval_ns as f64 * line.phase) as u64;
            }
            if asked.now_ns < line.due_ns {
                return Next::At(line.due_ns);
            }
        }
        if mix.scan_steps_max.is_some() && !asked.quiet {
            return Next::Idle;
        }
        let before = out.len();
        let mut repeated = None;
        let class = if line.waits > 0 && !state.clients[index / state.nodes].is_spent(mix) {
            line.waits -= 1;
            let client = &mut state.clients[index / state.nodes];
            client.drawn += 1;
            if let Some(wait) = &mix.wait {
                write_wait(wait, &mut client.random, out.tail());
            }
            WAITS
        } else if let Some(first) = line.queue.front().copied() {
            if first.asking && !line.asking_sent {
                line.asking_sent = true;
                let mut writer = RequestWriter::new(out.tail());
                writer.begin(1);
                writer.arg(b"ASKING");
                mix.unreported
            } else {
                line.asking_sent = false;
                line.queue.pop_front();
                repeated = Some(first);
                state.write(mix, index, first, out)
            }
        } else {
            match state.draw(mix, index, asked.now_ns) {
                Ok(drawn) => {
                    repeated = Some(drawn);
                    state.write(mix, index, drawn, out)
                }
                Err(next) => return next,
            }
        };
        let line = &mut state.lines[index];
        if mix.cluster.is_some() {
            line.under_way.push_back(repeated);
        }
        if let Some(wait) = &mix.wait
            && class == SETS
        {
            line.sets += 1;
            if line.sets >= wait.sets {
                line.sets = 0;
                line.waits = wait.waits;
            }
        }
        line.sent += 1;
        if mix.interval_ns > 0 {
            let oldest = asked.now_ns.saturating_sub(DEBT_NS_MAX);
            line.due_ns = line.due_ns.max(oldest) + mix.interval_ns;
        }
        if let Some(watch) = state.found.watches.get_mut(index / state.nodes) {
            watch.sent(class, (out.len() - before) as u64, asked.now_ns);
        }
        Next::Requests { count: 1, class }
    }

    fn wake(&mut self) -> Option<usize> {
        let state = &mut self.state;
        let index = state.woken.pop()?;
        Some(state.found.thread + index * state.threads)
    }

    fn answer(&mut self, answer: &Answer<'_>) -> Verdict {
        let (mix, state) = (&*self.mix, &mut self.state);
        let index = state.index(answer.connection);
        state.lines[index].failures = 0;
        if let Some(watch) = state.found.watches.get_mut(index / state.nodes) {
            watch.answered(answer, monotonic_ns());
        }
        if let Some(steps_max) = mix.scan_steps_max {
            state.clients[index / state.nodes].scanned(answer, steps_max);
        }
        if let Some(cluster) = &mix.cluster {
            let drawn = state.lines[index].under_way.pop_front().flatten();
            let node = &cluster.nodes()[index % state.nodes];
            let redirection = match answer.kind {
                ReplyClass::Error => cluster::redirection(answer.bytes, &node.target),
                _ => None,
            };
            if let Some(redirection) = &redirection {
                let class = usize::from(answer.class);
                let (counts, is_ask) = match redirection.ask {
                    true => (&mut state.found.asked, true),
                    false => (&mut state.found.moved, false),
                };
                counts[class] += 1;
                if let Some(watch) = state.found.watches.get_mut(index / state.nodes) {
                    watch.redirected(answer.class, is_ask, monotonic_ns());
                }
            }
            let onward = redirection.and_then(|redirection| {
                let node = cluster.follow(&redirection)?;
                Some((index - index % state.nodes + node, redirection.ask))
            });
            match (drawn, onward) {
                (Some(drawn), Some((other, asking))) => {
                    state.queue(other, Drawn { asking, ..drawn });
                }
                (Some(_), None) => state.clients[index / state.nodes].outstanding -= 1,
                (None, _) => {}
            }
        }
        Verdict::default()
    }

    fn lost(&mut self, connection: usize) {
        let (mix, state) = (&*self.mix, &mut self.state);
        let index = state.index(connection);
        let line = &mut state.lines[index];
        let lost = line.under_way.drain(..).flatten().count() as u64;
        state.clients[index / state.nodes].outstanding -= lost;
        let Some(reconnect) = mix.reconnect else {
            return;
        };
        line.failures += 1;
        if reconnect.attempts_max > 0 && line.failures > reconnect.attempts_max {
            line.given_up = true;
            state.found.given_up += 1;
            return;
        }
        let pause_s = match reconnect.backoff > 0.0 {
            true => reconnect
                .backoff
                .powf(f64::from(line.failures))
                .min(PAUSE_S_MAX),
            false => 0.0,
        };
        line.opens_ns = monotonic_ns() + (pause_s * 1e9) as u64;
    }

    fn finished(&mut self, _: u64) {
        let mut founds = self.founds.lock().unwrap_or_else(PoisonError::into_inner);
        founds.push(std::mem::take(&mut self.state.found));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_found_in_answers() {
        for (answer, expected) in [
            ("*2\r\n$2\r\n17\r\n*0\r\n", Some("17")),
            ("*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n", Some("0")),
            ("-ERR syntax error\r\n", None),
            ("*2\r\n$2\r\nab\r\n*0\r\n", None),
            ("", None),
        ] {
            assert_eq!(
                cursor(answer.as_bytes()),
                expected.map(str::as_bytes),
                "{answer:?}"
            );
        }
    }
}
