//! Processors this process may use, and the time it has used on them.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use crate::cgroup;

/// Processor time used, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In the program itself.
    pub user_us: u64,
    /// In the kernel on its behalf.
    pub system_us: u64,
}

/// What all threads of this process have used since it started.
#[must_use]
pub fn process_time() -> CpuTime {
    usage(UsageWho::RUSAGE_SELF)
}

/// What the calling thread has used since it started.
#[must_use]
pub fn thread_time() -> CpuTime {
    usage(UsageWho::RUSAGE_THREAD)
}

fn usage(whose: UsageWho) -> CpuTime {
    match getrusage(whose) {
        Ok(usage) => CpuTime {
            user_us: microseconds(usage.user_time()),
            system_us: microseconds(usage.system_time()),
        },
        Err(_) => CpuTime::default(),
    }
}

fn microseconds(time: TimeVal) -> u64 {
    u64::try_from(time.tv_sec()).unwrap_or(0) * 1_000_000
        + u64::try_from(time.tv_usec()).unwrap_or(0)
}

/// How many processors the affinity mask allows. At least 1.
#[must_use]
pub fn affinity_count() -> usize {
    let allowed = rustix::thread::sched_getaffinity(None).map_or(0, |set| set.count() as usize);
    allowed.max(1)
}

/// What bounds how many processors this process can keep busy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Processors {
    /// How many the affinity mask allows; at least 1.
    pub allowed: usize,
    /// The control group's quota, if it has one: 1.5 is one and a half.
    pub quota: Option<f64>,
}

/// The bounds now.
#[must_use]
pub fn processors() -> Processors {
    Processors {
        allowed: affinity_count(),
        quota: cgroup::limits().processors,
    }
}

impl Processors {
    /// How many can really be kept busy: what the mask allows, and no more than the quota rounded up. At least 1.
    #[must_use]
    pub fn usable(&self) -> usize {
        match self.quota {
            Some(quota) => self.allowed.min(quota.ceil() as usize).max(1),
            None => self.allowed.max(1),
        }
    }
}

/// How many processors this process can really keep busy; see [`Processors::usable`].
#[must_use]
pub fn usable_count() -> usize {
    processors().usable()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_rounded_up_and_never_widens_the_mask() {
        let usable = |allowed, quota| Processors { allowed, quota }.usable();
        assert_eq!(usable(8, None), 8);
        assert_eq!(usable(8, Some(1.5)), 2);
        assert_eq!(usable(2, Some(16.0)), 2);
        assert_eq!(usable(4, Some(0.1)), 1);
    }

    #[test]
    fn time_grows_with_work() {
        let before = process_time();
        let mut sum = 0_u64;
        // Until the kernel's accounting shows it: at most a few milliseconds of work.
        while process_time().user_us == before.user_us {
            sum = (0..100_000_u64).fold(sum, |sum, value| {
                std::hint::black_box(sum.wrapping_mul(31).wrapping_add(value))
            });
        }
        let after = process_time();
        assert!(
            after.user_us > before.user_us && after.system_us >= before.system_us,
            "{after:?} {sum}"
        );
    }

    #[test]
    fn a_thread_s_time_is_its_own() {
        let before = thread_time();
        let other = std::thread::spawn(|| {
            while thread_time().user_us < 20_000 {
                std::hint::black_box(());
            }
            thread_time()
        });
        let other = other.join().expect("it does not panic");
        assert!(other.user_us >= 20_000);
        let spent_us = thread_time().user_us - before.user_us;
        assert!(spent_us < other.user_us, "{spent_us} {other:?}");
        // How the kernel divides it between program and kernel is an estimate, which may differ; the sum is exact.
        let whole = process_time();
        assert!(whole.user_us + whole.system_us >= other.user_us + other.system_us);
    }

    #[test]
    fn the_mask_agrees_with_the_standard_library() {
        assert!(affinity_count() >= 1);
        assert!(usable_count() <= affinity_count());
    }
}
