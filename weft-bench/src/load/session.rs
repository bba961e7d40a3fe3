//! One connection of a thread, as the thread keeps it.
//!
//! Owns the requests under way and the parts of an answer that has not come whole. Does not send and does not measure.
//! Invariant: `count` is the sum of what is under way, the prologue's requests apart.
//!
//! ```text
//!  Sending --> Draining --> Done
//! ```

use std::collections::VecDeque;

use weft_reactor::ConnectionId;
use weft_resp::{DecodeLimits, ReplyScanner};

use super::tls::Channel;

/// An error's text is kept up to here.
const ERROR_BYTES_MAX: usize = 4096;

/// The buffer for an answer in pieces is given back above this.
const PIECES_BYTES_KEPT: usize = 1 << 20;

/// The class of the requests that open a connection.
pub(super) const PROLOGUE: u16 = u16::MAX;

/// One connection, or the place of one.
pub(super) struct Session {
    pub(super) connection: Option<ConnectionId>,
    /// Its encryption.
    pub(super) channel: Option<Box<Channel>>,
    pub(super) scanner: ReplyScanner,
    /// Requests under way, oldest first.
    pub(super) under_way: VecDeque<Sent>,
    /// Their sum.
    pub(super) count: u32,
    /// Nothing has been sent since it was opened.
    pub(super) fresh: bool,
    /// Something has been received since it was opened.
    pub(super) heard: bool,
    /// When it was opened, if somebody looks whether it comes about, until it has.
    pub(super) opened_ns: Option<u64>,
    pub(super) in_ready: bool,
    pub(super) timer_armed: bool,
    pub(super) stage: Stage,
    /// Bytes so far of the answer that is coming in.
    pub(super) unfinished_bytes: u64,
    /// The part of an error that an earlier delivery brought.
    pub(super) error: Vec<u8>,
    /// What earlier deliveries brought of the answer that is coming in, if the workload reads answers.
    pub(super) pieces: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Sending,
    /// Sends nothing more, but answers are missing.
    Draining,
    Done,
}

/// Requests of one class that left at one time.
pub(super) struct Sent {
    pub(super) count: u32,
    pub(super) class: u16,
    /// The time is when they were due, whenever they left.
    pub(super) due: bool,
    pub(super) at_ns: u64,
}

impl Session {
    pub(super) fn new() -> Session {
        Session {
            connection: None,
            channel: None,
            scanner: ReplyScanner::new(DecodeLimits::default()),
            under_way: VecDeque::new(),
            count: 0,
            fresh: true,
            heard: false,
            opened_ns: None,
            in_ready: false,
            timer_armed: false,
            stage: Stage::Sending,
            unfinished_bytes: 0,
            error: Vec::new(),
            pieces: Vec::new(),
        }
    }

    /// Begins a new connection.
    pub(super) fn opened(&mut self, connection: ConnectionId, channel: Option<Box<Channel>>) {
        self.connection = Some(connection);
        self.channel = channel;
        self.scanner = ReplyScanner::new(DecodeLimits::default());
        self.fresh = true;
        self.heard = false;
        self.opened_ns = None;
        self.unfinished_bytes = 0;
        self.error.clear();
        self.pieces.clear();
    }

    /// Requests have left.
    pub(super) fn sent(&mut self, sent: Sent) {
        match self.under_way.back_mut() {
            Some(last)
                if last.class == sent.class && last.at_ns == sent.at_ns && last.due == sent.due =>
            {
                last.count += sent.count;
            }
            _ => self.under_way.push_back(sent),
        }
    }

    pub(super) fn keep_error(&mut self, bytes: &[u8]) {
        let room = ERROR_BYTES_MAX.saturating_sub(self.error.len());
        self.error.extend(bytes.iter().take(room));
    }

    /// The answer in pieces is no longer needed.
    pub(super) fn drop_pieces(&mut self) {
        self.pieces.clear();
        if self.pieces.capacity() > PIECES_BYTES_KEPT {
            self.pieces = Vec::new();
        }
    }
}
