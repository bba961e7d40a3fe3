//! What a test sends: the same batch again and again, until all have been sent.

use std::sync::Arc;

use fastrand::Rng;
use weft_rope::Output;

use crate::load::{Asked, NUMBER_END, Next, Share, Template, Workload};

/// Batches of one test, for one thread.
#[derive(Debug)]
pub struct Batches {
    /// One for each target of the plan.
    pub templates: Arc<[Template]>,
    /// Requests of a batch.
    pub requests: u32,
    /// Batches to send.
    pub share: Share,
    /// Random numbers are below this.
    pub numbers: u64,
    /// Where they come from.
    pub random: Rng,
    /// Whether a connection sends more than one batch.
    pub keep_alive: bool,
    /// Batches taken for connections that are being opened.
    pub taken: u32,
}

impl Workload for Batches {
    #[inline]
    fn next(&mut self, asked: &Asked, out: &mut Output) -> Next {
        if asked.room < self.requests {
            return Next::Idle;
        }
        if asked.fresh && self.taken > 0 {
            self.taken -= 1;
        } else if !self.share.take() {
            return Next::Finished;
        } else if !asked.fresh && !self.keep_alive {
            self.taken += 1;
            return Next::Reconnect;
        }
        let template = &self.templates[asked.connection % self.templates.len()];
        let end = self.numbers.clamp(1, NUMBER_END);
        template.append(out, || self.random.u64(..end));
        Next::Requests {
            count: self.requests,
            class: 0,
        }
    }
}

/// Sends nothing.
#[derive(Debug)]
pub struct Nothing;

impl Workload for Nothing {
    fn next(&mut self, _: &Asked, _: &mut Output) -> Next {
        Next::Idle
    }
}
