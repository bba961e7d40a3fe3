//! Which driver the workers use, and running one.

use std::io;

use weft_engine::config::IoDriver as Wanted;
use weft_reactor::{Driver, DriverOptions, EpollDriver};

use crate::log::Log;

/// The driver of all workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoDriver {
    /// epoll.
    Epoll,
}

/// What is done with a driver, on the thread that made it.
pub trait Job {
    /// Does it.
    ///
    /// # Errors
    /// Those of the driver.
    fn run<D: Driver>(self, io: D) -> io::Result<()>;
}

impl IoDriver {
    /// Follows the parameter as far as the system lets it.
    pub fn choose(_wanted: Wanted, _log: &Log) -> Self {
        Self::Epoll
    }

    /// As INFO and the log name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Epoll => "epoll",
        }
    }

    /// Makes a driver for the calling thread and does `job` with it.
    ///
    /// # Errors
    /// Those of making the driver, and of the job.
    pub fn run(self, options: DriverOptions, job: impl Job) -> io::Result<()> {
        match self {
            Self::Epoll => job.run(EpollDriver::new(options)?),
        }
    }
}
