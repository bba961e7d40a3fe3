//! Which driver the workers use, and running one.

use std::io;

use weft_engine::config::IoDriver as Wanted;
use weft_reactor::{Driver, DriverOptions, EpollDriver, UringDriver};

use crate::log::Log;

/// The driver of all workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoDriver {
    /// io_uring.
    Uring,
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
    /// Follows the parameter as far as the system lets it; `auto` goes back to epoll with a line in the log.
    ///
    /// # Errors
    /// Why there is no io_uring, if that was asked for by name.
    pub fn choose(wanted: Wanted, log: &Log) -> Result<Self, String> {
        if wanted == Wanted::Epoll {
            return Ok(Self::Epoll);
        }
        match UringDriver::probe() {
            Ok(()) => Ok(Self::Uring),
            Err(error) if wanted == Wanted::Uring => Err(error.to_string()),
            Err(error) => {
                log.notice(format_args!(
                    "Serving with epoll instead of io_uring: {error}"
                ));
                Ok(Self::Epoll)
            }
        }
    }

    /// As INFO and the log name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uring => "io_uring",
            Self::Epoll => "epoll",
        }
    }

    /// Makes a driver for the calling thread and does `job` with it.
    ///
    /// # Errors
    /// Those of making the driver, and of the job.
    pub fn run(self, options: DriverOptions, job: impl Job) -> io::Result<()> {
        match self {
            Self::Uring => job.run(UringDriver::new(options)?),
            Self::Epoll => job.run(EpollDriver::new(options)?),
        }
    }
}
