//! The thread that frees what is large, so that no worker stops for it.
//!
//! Owns the queue of waste and its bound. A worker never waits for the reaper: when the queue is full, whoever brings
//! waste frees it himself, so that memory cannot pile up. Knows nothing of what the waste was.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::thread;

use weft_engine::action::Waste;
use weft_engine::engine::Engine;
use weft_os::cpu_list::CpuList;

use crate::allocator;

/// How many pieces of waste may wait.
const QUEUE_LENGTH: usize = 1024;

/// How many entries of a table are freed at a time; a few hundred microseconds of work.
const SLICE_ENTRIES: usize = 4096;

/// The way to the reaper.
#[derive(Clone)]
pub struct Reaper {
    tasks: SyncSender<Task>,
    /// Values that wait to be freed, or are being freed.
    left: Arc<AtomicUsize>,
}

enum Task {
    Free(Waste),
    /// Free what the keyspace has replaced, and give its free pages to the system.
    Collect(Arc<Engine>),
}

impl Reaper {
    /// Starts the thread, on these processors if any are named. It ends when all ways to it are gone.
    ///
    /// # Errors
    /// Those of starting a thread, and of finding the processors.
    pub fn start(processors: Option<CpuList>) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(QUEUE_LENGTH);
        let left = Arc::<AtomicUsize>::default();
        let left_here = Arc::clone(&left);
        let (ready, begun) = channel();
        thread::Builder::new()
            .name("weft-reaper".into())
            .spawn(move || {
                let tied = processors.map_or(Ok(()), |list| list.pin_thread());
                if ready.send(tied).is_ok() {
                    work(&receiver, &left_here);
                }
            })?;
        begun.recv().map_err(io::Error::other)?.map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("bio-cpulist: this machine has none of them: {error}"),
            )
        })?;
        Ok(Self {
            tasks: sender,
            left,
        })
    }

    /// Gets rid of something, soon.
    pub fn take(&self, waste: Waste) {
        self.left.fetch_add(waste.objects(), Ordering::Relaxed);
        match self.tasks.try_send(Task::Free(waste)) {
            Ok(()) => {}
            Err(TrySendError::Full(task) | TrySendError::Disconnected(task)) => {
                work_on(task, &self.left);
            }
        }
    }

    /// How many values are not free yet.
    pub fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }

    /// Gives back what the keyspace no longer needs, soon. With a full queue it waits for the next call.
    pub fn collect(&self, engine: &Arc<Engine>) {
        let _ = self.tasks.try_send(Task::Collect(Arc::clone(engine)));
    }
}

fn work(queue: &Receiver<Task>, left: &AtomicUsize) {
    while let Ok(first) = queue.recv() {
        let mut table_freed = work_on(first, left);
        while let Ok(next) = queue.try_recv() {
            table_freed |= work_on(next, left);
        }
        if table_freed {
            // What a flush leaves is seldom needed again at once.
            allocator::purge();
        }
    }
}

/// Does it, and says whether a table was freed.
fn work_on(task: Task, left: &AtomicUsize) -> bool {
    match task {
        Task::Free(waste) => {
            let table = matches!(waste, Waste::Table(_));
            let objects = waste.objects();
            free(waste);
            left.fetch_sub(objects, Ordering::Relaxed);
            table
        }
        Task::Collect(engine) => {
            engine.keyspace.collect_retired();
            false
        }
    }
}

fn free(waste: Waste) {
    match waste {
        Waste::Values(garbage) => drop(garbage),
        Waste::Snapshots(snapshots) => drop(snapshots),
        Waste::Table(mut table) => {
            while !table.free_some(SLICE_ENTRIES) {
                thread::yield_now();
            }
        }
    }
}
