//! How far a client's unsent replies may pile up (`client-output-buffer-limit`).
//!
//! Owns the arithmetic of hard and soft limits. Does not know how many bytes are unsent, nor the time: both come as arguments.
//! Lent bytes count like others.

use crate::config::OutputLimit;

/// So many unsent bytes do not count: Redis has them in a buffer that every client owns, so that no limit, however low,
/// forbids ordinary replies.
pub const UNCOUNTED_BYTES: usize = 16 * 1024;

/// Watches the unsent replies of one client.
#[derive(Debug, Default)]
pub struct OutputWatch {
    over_soft_since_ns: Option<u64>,
}

impl OutputWatch {
    /// Whether so many unsent bytes end the connection now. `now_ns` is on any scale that never goes back.
    pub fn exceeds(&mut self, limit: &OutputLimit, unsent: usize, now_ns: u64) -> bool {
        if unsent >= hard_end(limit) {
            return true;
        }
        if unsent < end(limit.soft_bytes) {
            self.over_soft_since_ns = None;
            return false;
        }
        let since_ns = *self.over_soft_since_ns.get_or_insert(now_ns);
        let allowed_ns = u64::try_from(limit.soft_seconds).unwrap_or(0) * 1_000_000_000;
        now_ns.saturating_sub(since_ns) > allowed_ns
    }

    /// Whether time alone may end the connection.
    #[must_use]
    pub const fn is_running_out(&self) -> bool {
        self.over_soft_since_ns.is_some()
    }
}

/// The number of unsent bytes that ends a connection at once.
#[must_use]
pub fn hard_end(limit: &OutputLimit) -> usize {
    end(limit.hard_bytes)
}

/// Zero is no limit.
fn end(bytes: u64) -> usize {
    match usize::try_from(bytes) {
        Ok(0) | Err(_) => usize::MAX,
        Ok(bytes) => bytes.saturating_add(UNCOUNTED_BYTES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn limit(hard_bytes: u64, soft_bytes: u64, soft_seconds: i32) -> OutputLimit {
        OutputLimit {
            hard_bytes,
            soft_bytes,
            soft_seconds,
        }
    }

    #[test]
    fn the_hard_limit_counts_at_once_and_zero_is_no_limit() {
        let mut watch = OutputWatch::default();
        assert!(!watch.exceeds(&limit(100, 0, 0), UNCOUNTED_BYTES + 99, 1));
        assert!(watch.exceeds(&limit(100, 0, 0), UNCOUNTED_BYTES + 100, 1));
        assert!(!watch.exceeds(&limit(0, 0, 0), usize::MAX - 1, 1));
        assert!(!watch.exceeds(&limit(u64::MAX, 0, 0), usize::MAX - 1, 1));
        assert!(!watch.exceeds(&limit(1, 0, 0), UNCOUNTED_BYTES, 1));
        assert!(!watch.is_running_out());
    }

    #[test]
    fn the_soft_limit_counts_after_its_time_without_a_break() {
        let mut watch = OutputWatch::default();
        let soft = limit(0, 100, 10);
        let (below, above) = (UNCOUNTED_BYTES + 99, UNCOUNTED_BYTES + 100);
        assert!(!watch.exceeds(&soft, above, 5 * SECOND_NS));
        assert!(watch.is_running_out());
        assert!(!watch.exceeds(&soft, above, 15 * SECOND_NS));
        assert!(!watch.exceeds(&soft, below, 15 * SECOND_NS));
        assert!(!watch.is_running_out());
        assert!(!watch.exceeds(&soft, above, 16 * SECOND_NS));
        assert!(!watch.exceeds(&soft, 2 * above, 26 * SECOND_NS));
        assert!(watch.exceeds(&soft, 2 * above, 26 * SECOND_NS + 1));
    }
}
