//! Ends that went by unnoticed.
//!
//! When bytes and a reset reach a socket almost at once, kernels (seen in 6.18, one time in a thousand) run its multishot
//! receive once for both: it takes the bytes, finds no more of them, and sleeps on. No other wake-up comes, so the connection
//! would stay for ever, unless something is sent to it. So a connection whose receive has begun or brought bytes is in
//! doubt: a while later it is asked, once, whether its end has come. If so its receive is cancelled, and the next one finds
//! the end. A reset that comes after the receive has run wakes it, hence once is enough, and idle connections cost nothing.

use std::collections::VecDeque;
use std::os::fd::AsFd;

use arrayvec::ArrayVec;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Connection, Flow, UringDriver};
use crate::driver::ConnectionId;

/// From one round of questions to the next: about as long may an end go unnoticed.
const ROUND_NS: u64 = 1_000_000_000;

/// Connections asked in one turn, by one call: some 10 microseconds.
const ASKED_PER_TURN: usize = 64;

/// Connections in doubt.
#[derive(Default)]
pub(super) struct Doubts {
    /// Each once, the longest waiting first.
    waiting: VecDeque<ConnectionId>,
    /// How many of the first are still to be asked in the round under way.
    asking: usize,
    /// When to go on asking. None: nobody is in doubt.
    pub(super) due_ns: Option<u64>,
}

impl UringDriver {
    /// Bytes have come, and perhaps the end with them.
    #[inline]
    pub(super) fn doubt(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.find_mut(id)
            && !connection.state.in_doubt
        {
            connection.state.in_doubt = true;
            self.doubts.waiting.push_back(id);
            let due_ns = self.turn_started_ns + ROUND_NS;
            self.doubts.due_ns.get_or_insert(due_ns);
        }
    }

    /// Asks those in doubt, when it is time.
    pub(super) fn settle_doubts(&mut self) {
        let now_ns = self.turn_started_ns;
        let doubts = &mut self.doubts;
        if doubts.due_ns.is_none_or(|due_ns| due_ns > now_ns) {
            return;
        }
        if doubts.asking == 0 {
            doubts.asking = doubts.waiting.len();
        }
        let count = doubts.asking.min(ASKED_PER_TURN);
        doubts.asking -= count;
        let mut asked: ArrayVec<ConnectionId, ASKED_PER_TURN> = ArrayVec::new();
        for id in doubts.waiting.drain(..count) {
            if let Some(connection) = self.connections.find_mut(id) {
                connection.state.in_doubt = false;
                if connection.may_have_missed_its_end() {
                    asked.push(id);
                }
            }
        }
        doubts.due_ns = match (doubts.asking, doubts.waiting.is_empty()) {
            (1.., _) => Some(now_ns),
            (0, false) => Some(now_ns + ROUND_NS),
            (0, true) => None,
        };
        let mut questions: ArrayVec<PollFd<'_>, ASKED_PER_TURN> = asked
            .iter()
            .filter_map(|id| self.connections.find(*id))
            .map(|it| PollFd::from_borrowed_fd(it.socket.as_fd(), PollFlags::RDHUP))
            .collect();
        if questions.is_empty() || poll(&mut questions, Some(&Timespec::default())).is_err() {
            return;
        }
        let ended: ArrayVec<ConnectionId, ASKED_PER_TURN> = asked
            .iter()
            .zip(&questions)
            .filter(|(_, question)| !question.revents().is_empty())
            .map(|(id, _)| *id)
            .collect();
        drop(questions);
        for id in ended {
            self.stop_receive(id);
        }
    }
}

impl Connection {
    fn may_have_missed_its_end(&self) -> bool {
        self.receive == Flow::Going
            && self.end.is_none()
            && !self.state.input_ended
            && !self.has_ended()
    }
}
