//! How many file descriptors this process may have open.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit now (`RLIMIT_NOFILE`, the soft one). `u64::MAX`: none.
#[must_use]
pub fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// What [`raise_limit`] came to.
#[derive(Debug)]
pub struct Raised {
    /// The limit before.
    pub before: u64,
    /// The limit now.
    pub now: u64,
    /// Why it is below what was asked for, if it is.
    pub error: Option<io::Error>,
}

/// Raises the limit to `wanted`, or as far as the system lets it; never lowers it.
pub fn raise_limit(wanted: u64) -> Raised {
    let limits = getrlimit(Resource::Nofile);
    let before = limits.current.unwrap_or(u64::MAX);
    if before >= wanted {
        return Raised {
            before,
            now: before,
            error: None,
        };
    }
    // The hard limit has to rise too where `wanted` lies above it, which takes a privilege.
    let maximum = limits.maximum.map(|maximum| maximum.max(wanted));
    let mut error = None;
    if let Err(refusal) = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(wanted),
            maximum,
        },
    ) {
        error = Some(refusal.into());
        let hard = limits.maximum.unwrap_or(wanted).min(wanted);
        if hard > before {
            let _ = setrlimit(
                Resource::Nofile,
                Rlimit {
                    current: Some(hard),
                    maximum: limits.maximum,
                },
            );
        }
    }
    Raised {
        before,
        now: limit(),
        error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_raised_and_never_lowered() {
        let limits = getrlimit(Resource::Nofile);
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(64),
                maximum: limits.maximum,
            },
        )
        .unwrap();
        let raised = raise_limit(80);
        assert_eq!((raised.before, raised.now), (64, 80));
        assert!(raised.error.is_none());
        let kept = raise_limit(10);
        assert_eq!((kept.before, kept.now), (80, 80));
        assert_eq!(limit(), 80);
        // More than the kernel ever grants (`fs.nr_open`): as far as the hard limit goes, with the reason.
        let refused = raise_limit(1 << 40);
        assert!(refused.error.is_some());
        assert_eq!(refused.now, limits.maximum.unwrap());
        setrlimit(Resource::Nofile, limits).unwrap();
    }
}
