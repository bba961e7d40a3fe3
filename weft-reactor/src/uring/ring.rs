//! The rings: operations in, completions out, and everything the kernel reads or writes in between.
//!
//! Owns what operations in flight refer to: output being sent, and the receive buffers. Safe to use from outside: an
//! operand goes in by value and comes out when its completion has. Does not know what connections are or when what
//! should be done; a descriptor must stay open until the operations on it have completed, or they may meet another file.
//!
//! Invariant: `in_flight` counts operations handed over whose last completion has not been collected, cancellations
//! apart. While it is not zero the memory they refer to stays where it is, or is never freed.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::squeue::{self, Entry};
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, Probe, cqueue, opcode};
use rustix::io::Errno;
use weft_rope::Output;

use super::buffers::{Buffer, Buffers, GROUP};
use super::tag::{NUMBERS, Operation};
use crate::driver::{ConnectionId, ListenerId};

/// One driver's rings.
pub(super) struct Ring {
    // First, so that it goes before what its operations refer to.
    uring: IoUring,
    /// Operations that found the submission queue full, and the kernel unwilling to take it.
    backlog: VecDeque<Entry>,
    flights: Vec<Flight>,
    free_flights: Vec<u32>,
    #[allow(
        clippy::vec_box,
        reason = "the kernel has their address while they are out"
    )]
    messages: Vec<Box<Message>>,
    pub(super) buffers: Buffers,
    in_flight: usize,
    wait_flags: EnterFlags,
}

/// One event.
pub(super) struct Completion {
    pub(super) operation: Operation,
    /// As the kernel reports it: a count, a mask, or an error number, negated.
    pub(super) result: i32,
    /// The operation goes on.
    pub(super) more: bool,
    /// Where received bytes are.
    pub(super) buffer: Option<Buffer>,
}

impl Completion {
    /// The result as the system call would have given it.
    pub(super) fn outcome(&self) -> Result<usize, Errno> {
        match usize::try_from(self.result) {
            Ok(count) => Ok(count),
            Err(_) => Err(Errno::from_raw_os_error(-self.result)),
        }
    }
}

/// A send, from `Ring::send` to `Ring::land`.
enum Flight {
    Free,
    /// In flight: the kernel may read the output and the message.
    Out(ConnectionId, Output, Option<Box<Message>>),
    /// Completed.
    Done(ConnectionId, Output),
}

/// The operands of a send of several slices.
struct Message {
    header: libc::msghdr,
    slices: Vec<libc::iovec>,
}

/// The kernel's limit of slices per call (UIO_MAXIOV).
const SLICES_MAX: usize = 1024;

/// The most a single slice is offered at once; the kernel takes no more than 2 GiB in a call.
const SEND_MAX: usize = 1 << 30;

/// Messages kept for the next sends of several slices.
const SPARE_MESSAGES: usize = 64;

/// Slices an unused message keeps room for.
const SPARE_SLICES: usize = 64;

/// Attempts to see everything in flight end when a ring is dropped. A kernel completes some 20 cancelled operations in
/// each.
const DROP_ROUNDS: usize = 1 << 20;

impl Ring {
    /// Sets up rings for `entries` submissions at once. The error says what is missing when the kernel cannot or will not.
    pub(super) fn new(entries: usize) -> io::Result<Ring> {
        let entries = entries.next_power_of_two().clamp(8, 4096) as u32;
        let uring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_coop_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_cqsize(4 * entries)
            .build(entries)
            .map_err(refusal)?;
        check_features(&uring)?;
        let no_iowait = uring.params().is_feature_no_iowait();
        let mut ring = Ring {
            uring,
            backlog: VecDeque::new(),
            flights: Vec::new(),
            free_flights: Vec::new(),
            messages: Vec::new(),
            buffers: Buffers::new()?,
            in_flight: 0,
            wait_flags: if no_iowait {
                EnterFlags::NO_IOWAIT
            } else {
                EnterFlags::empty()
            },
        };
        // SAFETY: both belong to this ring, whose fields are dropped in order.
        unsafe { ring.buffers.register(&ring.uring.submitter()) }
            .map_err(|error| missing("rings of provided buffers", &error))?;
        Ok(ring)
    }

    /// Queues a multishot receive into the buffers.
    pub(super) fn receive(&mut self, id: ConnectionId, socket: BorrowedFd<'_>) {
        let entry = opcode::RecvMulti::new(Fd(socket.as_raw_fd()), GROUP).build();
        self.start(Operation::Receive(id), entry);
    }

    /// Queues a send of as much of `output`, which must not be empty, as one call takes. [`Ring::land`] gives it back. One
    /// that does not wait for room in the socket is completed by the call that hands it over.
    pub(super) fn send(
        &mut self,
        id: ConnectionId,
        socket: BorrowedFd<'_>,
        output: Output,
        waits: bool,
    ) -> u32 {
        let flags = match waits {
            true => libc::MSG_NOSIGNAL,
            false => libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT,
        };
        let number = self.free_flights.pop().unwrap_or_else(|| {
            assert!(self.flights.len() < NUMBERS);
            self.flights.push(Flight::Free);
            (self.flights.len() - 1) as u32
        });
        let message = (output.runs().nth(1).is_some())
            .then(|| self.messages.pop().unwrap_or_else(Message::empty));
        let flight = &mut self.flights[number as usize];
        // From here on neither moves in memory: the bytes stand on the heap, and so does the message.
        *flight = Flight::Out(id, output, message);
        let Flight::Out(_, output, message) = flight else {
            unreachable!("just put there");
        };
        let socket = Fd(socket.as_raw_fd());
        let entry = match message {
            Some(message) => {
                message.refer_to(output);
                opcode::SendMsg::new(socket, &raw const message.header)
                    .flags(flags as u32)
                    .build()
            }
            None => {
                let run = output.runs().next().expect("there is output");
                let len = run.len().min(SEND_MAX) as u32;
                opcode::Send::new(socket, run.as_ptr(), len)
                    .flags(flags)
                    .build()
            }
        };
        self.start(Operation::Send(number), entry);
        number
    }

    /// The output of a send whose completion was collected, and whose it was. Once per send.
    pub(super) fn land(&mut self, number: u32) -> Option<(ConnectionId, Output)> {
        let flight = self.flights.get_mut(number as usize)?;
        match std::mem::replace(flight, Flight::Free) {
            Flight::Done(id, output) => {
                self.free_flights.push(number);
                Some((id, output))
            }
            other => {
                *flight = other;
                None
            }
        }
    }

    /// Queues a multishot poll for the end of the peer's side or of the connection.
    pub(super) fn watch(&mut self, id: ConnectionId, socket: BorrowedFd<'_>) {
        let events = (libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR) as u32;
        let entry = opcode::PollAdd::new(Fd(socket.as_raw_fd()), events).multi(true);
        self.start(Operation::Watch(id), entry.build());
    }

    /// Queues a poll for connections to accept.
    pub(super) fn listen(&mut self, id: ListenerId, listener: BorrowedFd<'_>) {
        let entry = opcode::PollAdd::new(Fd(listener.as_raw_fd()), libc::POLLIN as u32);
        self.start(Operation::Listener(id), entry.build());
    }

    /// Queues a multishot poll for readability.
    pub(super) fn hear(&mut self, bell: BorrowedFd<'_>) {
        let entry = opcode::PollAdd::new(Fd(bell.as_raw_fd()), libc::POLLIN as u32).multi(true);
        self.start(Operation::Bell, entry.build());
    }

    /// Queues the cancellation of an operation. It is over when its own last completion says so.
    pub(super) fn cancel(&mut self, operation: Operation) {
        let entry = opcode::AsyncCancel::new(operation.to_bits())
            .build()
            .flags(squeue::Flags::SKIP_SUCCESS)
            .user_data(Operation::Cancel.to_bits());
        self.push(entry);
    }

    fn start(&mut self, operation: Operation, entry: Entry) {
        self.in_flight += 1;
        self.push(entry.user_data(operation.to_bits()));
    }

    fn push(&mut self, entry: Entry) {
        if self.backlog.is_empty() {
            if self.try_push(&entry) {
                return;
            }
            // The queue is full: let the kernel take it. If it does not, the next enter does both.
            let _ = self.enter(0, EnterFlags::empty(), None);
            if self.try_push(&entry) {
                return;
            }
        }
        self.backlog.push_back(entry);
    }

    fn try_push(&mut self, entry: &Entry) -> bool {
        // SAFETY: what the entry refers to is in `flights` or `buffers` until its last completion was collected, and is
        // never freed if the ring is dropped before; polls and cancellations refer to nothing.
        unsafe { self.uring.submission().push(entry) }.is_ok()
    }

    /// Whether operations are queued that the kernel has not taken yet.
    pub(super) fn has_submissions(&mut self) -> bool {
        !(self.backlog.is_empty() && self.uring.submission().is_empty())
    }

    /// Hands the queued operations to the kernel, and does nothing else.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        self.enter_all(0, EnterFlags::empty(), None)
    }

    /// Hands the queued operations to the kernel and lets it complete what it can.
    pub(super) fn submit_and_look(&mut self) -> io::Result<()> {
        self.enter_all(0, EnterFlags::GETEVENTS, None)
    }

    /// The same, and waits for `want` completions, at most `patience_ns` (`u64::MAX`: for ever). An interruption ends the
    /// wait.
    pub(super) fn submit_and_wait(&mut self, want: usize, patience_ns: u64) -> io::Result<()> {
        let patience = (patience_ns != u64::MAX).then(|| {
            Timespec::new()
                .sec(patience_ns / 1_000_000_000)
                .nsec((patience_ns % 1_000_000_000) as u32)
        });
        let flags = EnterFlags::GETEVENTS | self.wait_flags;
        self.enter_all(want, flags, patience.as_ref())
    }

    /// Whether looking would find something, without looking: costs no system call.
    pub(super) fn has_news(&mut self) -> bool {
        !self.uring.completion().is_empty() || {
            let submission = self.uring.submission();
            submission.taskrun() || submission.cq_overflow()
        }
    }

    fn enter_all(
        &mut self,
        want: usize,
        flags: EnterFlags,
        patience: Option<&Timespec>,
    ) -> io::Result<()> {
        while let Some(entry) = self.backlog.pop_front() {
            if !self.try_push(&entry) {
                self.enter(0, flags, None)?;
                if !self.try_push(&entry) {
                    // Only completions can help, and those the caller collects next.
                    self.backlog.push_front(entry);
                    return Ok(());
                }
            }
        }
        self.enter(want, flags, patience)
    }

    fn enter(
        &mut self,
        want: usize,
        flags: EnterFlags,
        patience: Option<&Timespec>,
    ) -> io::Result<()> {
        self.buffers.publish();
        let submissions = self.uring.submission().len() as u32;
        let submitter = self.uring.submitter();
        let result = match patience {
            Some(patience) => {
                let arguments = SubmitArgs::new().timespec(patience);
                let flags = (flags | EnterFlags::EXT_ARG).bits();
                // SAFETY: the extended argument is what the flag announces, and lives until the call returns.
                unsafe { submitter.enter(submissions, want as u32, flags, Some(&arguments)) }
            }
            // SAFETY: no argument is passed.
            None => unsafe {
                submitter.enter::<libc::sigset_t>(submissions, want as u32, flags.bits(), None)
            },
        };
        match result {
            Ok(_) => Ok(()),
            Err(error) => match Errno::from_io_error(&error) {
                // The time is over, or a signal came.
                Some(Errno::TIME | Errno::INTR) => Ok(()),
                // Completions have to be collected before it takes more, or memory is short for the moment: what was
                // not taken is still queued.
                Some(Errno::BUSY | Errno::AGAIN) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Moves all completions there are to the end of `arrived`.
    pub(super) fn collect(&mut self, arrived: &mut VecDeque<Completion>) {
        for entry in self.uring.completion() {
            let flags = entry.flags();
            let more = cqueue::more(flags);
            let result = entry.result();
            let buffer = cqueue::buffer_select(flags).map(|number| {
                let len = usize::try_from(result).unwrap_or(0);
                // SAFETY: this completion hands it over, and completions are collected once.
                unsafe { self.buffers.take(number, len) }
            });
            let Some(operation) = Operation::from_bits(entry.user_data()) else {
                continue;
            };
            if operation == Operation::Cancel {
                continue;
            }
            if !more {
                self.in_flight -= 1;
            }
            if let Operation::Send(number) = operation
                && let Some(flight) = self.flights.get_mut(number as usize)
                && let Flight::Out(id, output, message) = std::mem::replace(flight, Flight::Free)
            {
                *flight = Flight::Done(id, output);
                if let Some(message) = message
                    && self.messages.len() < SPARE_MESSAGES
                {
                    self.messages.push(message);
                }
            }
            arrived.push_back(Completion {
                operation,
                result,
                more,
                buffer,
            });
        }
    }
}

impl Drop for Ring {
    /// Sees everything in flight end before anything it refers to is freed. Its user has cancelled it.
    fn drop(&mut self) {
        let mut arrived = VecDeque::new();
        for _ in 0..DROP_ROUNDS {
            // What is queued is counted as in flight, so it has to begin before it can end.
            if self.in_flight == 0 || self.submit_and_look().is_err() {
                break;
            }
            self.collect(&mut arrived);
            // Their buffers must not be lent again.
            arrived.clear();
        }
        if self.in_flight > 0 {
            std::mem::forget(std::mem::take(&mut self.flights));
            self.buffers.leak();
        }
    }
}

impl Message {
    fn empty() -> Box<Message> {
        Box::new(Message {
            // SAFETY: a message header is numbers and pointers, for which zero is a value.
            header: unsafe { std::mem::zeroed() },
            slices: Vec::new(),
        })
    }

    /// Describes the first slices of `output`.
    fn refer_to(&mut self, output: &Output) {
        self.slices.clear();
        self.slices.shrink_to(SPARE_SLICES);
        self.slices
            .extend(output.runs().take(SLICES_MAX).map(|run| libc::iovec {
                iov_base: run.as_ptr().cast_mut().cast(),
                iov_len: run.len(),
            }));
        self.header.msg_iov = self.slices.as_mut_ptr();
        self.header.msg_iovlen = self.slices.len() as _;
    }
}

/// Why the kernel gave no ring, for the log.
pub(super) fn refusal(error: io::Error) -> io::Error {
    let why = match Errno::from_io_error(&error) {
        Some(Errno::NOSYS) => "this kernel has none, or a seccomp profile hides it",
        Some(Errno::PERM | Errno::ACCESS) => {
            "it is forbidden here (sysctl kernel.io_uring_disabled, or a seccomp profile)"
        }
        Some(Errno::INVAL) => "this kernel is too old for it: Linux 6.1 is needed",
        Some(Errno::NOMEM) => "memory is short, or the limit of locked memory too low",
        _ => "the kernel refused",
    };
    io::Error::new(error.kind(), format!("io_uring: {why}: {error}"))
}

fn missing(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!("io_uring: this kernel has no {what}: {error}"),
    )
}

/// Looks for every feature and operation used here. The flags of the set-up say the rest: those are as young as 6.1, and
/// multishot receive came with 6.0.
fn check_features(uring: &IoUring) -> io::Result<()> {
    let unsupported = |what: &str| missing(what, &io::ErrorKind::Unsupported.into());
    let parameters = uring.params();
    for (there, what) in [
        (parameters.is_feature_nodrop(), "completions without loss"),
        (parameters.is_feature_fast_poll(), "polling of its own"),
        (parameters.is_feature_ext_arg(), "wait with a time-out"),
        (
            parameters.is_feature_skip_cqe_on_success(),
            "silent success",
        ),
    ] {
        if !there {
            return Err(unsupported(what));
        }
    }
    let mut probe = Probe::new();
    uring
        .submitter()
        .register_probe(&mut probe)
        .map_err(|error| missing("list of its operations", &error))?;
    for (code, what) in [
        (opcode::RecvMulti::CODE, "receive"),
        (opcode::Send::CODE, "send"),
        (opcode::SendMsg::CODE, "sendmsg"),
        (opcode::PollAdd::CODE, "poll"),
        (opcode::AsyncCancel::CODE, "cancellation"),
    ] {
        if !probe.is_supported(code) {
            return Err(unsupported(what));
        }
    }
    Ok(())
}
