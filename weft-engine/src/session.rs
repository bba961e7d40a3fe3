//! One connection's session: bytes in, bytes out.
//!
//! A session belongs to one worker at a time. It knows nothing of sockets: its owner hands it what was received, sends
//! what it wrote, and closes the connection when the session says so.

use weft_resp::{Limits, ProtocolError, RequestParser, Source, Writer};
use weft_rope::Output;

use crate::action::Action;
use crate::client::{Client, Origin};
use crate::clock::Clock;
use crate::dispatch;
use crate::engine::{Engine, WorkerState};

/// How many requests of one connection are looked at ahead of their turn.
const BATCH_MAX: usize = 32;
/// The longest inline request in bytes, from Redis.
const INLINE_MAX: usize = 64 * 1024;

/// A connection's parser and client state.
pub struct Session {
    parser: RequestParser,
    client: Client,
}

/// What the session's owner has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Go on receiving.
    Open,
    /// Send what was written, then close.
    Close,
}

impl Session {
    /// A new connection's session. `id` is unique since the start.
    #[must_use]
    pub fn new(engine: &Engine, id: u64, origin: Origin) -> Self {
        Self {
            parser: RequestParser::new(),
            client: Client::new(id, origin, engine.open_to_all()),
        }
    }

    /// The client's state.
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Where the next bytes should be received if a large argument is under way; otherwise anywhere.
    pub fn receive_target(&mut self) -> Option<&mut [u8]> {
        self.parser.large_target()
    }

    /// `count` bytes were received into the [receive target](Self::receive_target).
    pub fn received_direct(
        &mut self,
        engine: &Engine,
        worker: &mut WorkerState,
        clock: &dyn Clock,
        count: usize,
        out: &mut Output,
    ) -> Verdict {
        self.parser.large_filled(count);
        worker.statistics(engine).input_bytes.add(count as i64);
        if self.parser.large_target().is_some() {
            self.verdict(engine, worker, out)
        } else {
            self.process(engine, worker, clock, &[], out)
        }
    }

    /// Runs all requests that are complete with `data`, and appends their replies to `out`.
    pub fn received(
        &mut self,
        engine: &Engine,
        worker: &mut WorkerState,
        clock: &dyn Clock,
        data: &[u8],
        out: &mut Output,
    ) -> Verdict {
        worker.statistics(engine).input_bytes.add(data.len() as i64);
        self.process(engine, worker, clock, data, out)
    }

    fn process(
        &mut self,
        engine: &Engine,
        worker: &mut WorkerState,
        clock: &dyn Clock,
        data: &[u8],
        out: &mut Output,
    ) -> Verdict {
        worker.refresh_settings(engine);
        let before = out.len();
        let source = self.parser.begin(data);
        self.run(engine, worker, clock, &source, out);
        self.parser.end(source);
        worker
            .statistics(engine)
            .output_bytes
            .add((out.len() - before) as i64);
        self.verdict(engine, worker, out)
    }

    fn run(
        &mut self,
        engine: &Engine,
        worker: &mut WorkerState,
        clock: &dyn Clock,
        source: &Source<'_>,
        out: &mut Output,
    ) {
        let mut requests = std::mem::take(&mut worker.requests);
        loop {
            requests.clear();
            let parsed = self.parser.parse(
                source,
                &self.limits(worker),
                self.batch_max(),
                &mut requests,
            );
            dispatch::run(
                engine,
                worker,
                &mut self.client,
                clock,
                &requests,
                source,
                out,
            );
            match parsed {
                _ if self.client.closing() => break,
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    self.refuse(engine, worker, &error, out);
                    break;
                }
            }
        }
        worker.requests = requests;
    }

    /// Before authentication the limits change with every command, so that requests are parsed one at a time.
    fn batch_max(&self) -> usize {
        if self.client.authenticated() {
            BATCH_MAX
        } else {
            1
        }
    }

    fn limits(&self, worker: &WorkerState) -> Limits {
        Limits {
            bulk_max: worker.settings().proto_max_bulk_len(),
            inline_max: INLINE_MAX,
            multibulk_max: i32::MAX as usize,
            authenticated: self.client.authenticated(),
        }
    }

    fn refuse(
        &mut self,
        engine: &Engine,
        worker: &WorkerState,
        error: &ProtocolError,
        out: &mut Output,
    ) {
        worker.statistics(engine).error_replies.add(1);
        Writer::new(out, self.client.protocol)
            .error_bytes(&[b"ERR ".as_slice(), &error.message()].concat());
        self.client.close_after_reply();
    }

    fn verdict(&mut self, engine: &Engine, worker: &mut WorkerState, out: &mut Output) -> Verdict {
        let buffered = self.parser.buffered_bytes();
        if buffered > worker.settings().client_query_buffer_limit() {
            worker
                .statistics(engine)
                .query_buffer_limit_disconnections
                .add(1);
            let client = &self.client;
            worker.actions.push(Action::Warn(format!(
                "Closing client that reached max query buffer length: id={} addr={} qbuf={buffered}",
                client.id(),
                client.origin().address
            )));
            out.clear();
            self.client.close_after_reply();
        }
        if self.client.closing() {
            Verdict::Close
        } else {
            Verdict::Open
        }
    }
}
