//! Advice at the start: what of the machine does not suit the server, and what to do about it.
//!
//! Owns when something is worth a line and the line's words, which follow Redis's where programs may look for them. Knows
//! nothing of how facts are found. There is no line about memory overcommitment: saving does not fork.

use weft_engine::config::{ParameterId, Settings};
use weft_os::cpu::Processors;
use weft_os::memory::{self, HugePages};

use crate::log::Log;

/// Adapts the process to the machine as far as it can, and logs what only the operator can change.
pub fn give(settings: &Settings, log: &Log) {
    if huge_pages_stay_on(settings.flag(ParameterId::DisableThp)) {
        log.warning(format_args!("WARNING {HUGE_PAGES}"));
    }
    if let Some(advice) = backlog(settings.tcp_backlog(), weft_os::network::somaxconn()) {
        log.warning(format_args!("WARNING: {advice}"));
    }
    if let Some(advice) = threads(settings.io_threads(), &weft_os::cpu::processors()) {
        log.notice(advice);
    }
}

/// Huge pages that the kernel makes unasked. The keyspace's memory is exempt in any case, and nothing is ever copied for
/// a fork; but buffers and large values come from the allocator, where one used page then keeps 2 MiB resident.
pub const HUGE_PAGES: &str = "You have Transparent Huge Pages (THP) support enabled in your kernel. This will create \
    memory usage issues with Weft: buffers and large values occupy more memory than they need. To fix this issue set \
    'disable-thp yes', or run the command 'echo madvise > /sys/kernel/mm/transparent_hugepage/enabled' as root, and add \
    it to your /etc/rc.local in order to retain the setting after a reboot. Weft must be restarted after THP is disabled \
    (set to 'madvise' or 'never').";

/// Turns huge pages off for the process if the kernel makes them unasked and `disable` allows it. True: they are still on.
pub fn huge_pages_stay_on(disable: bool) -> bool {
    memory::huge_pages() == Some(HugePages::Always)
        && !memory::huge_pages_are_off()
        && !(disable && memory::turn_huge_pages_off().is_ok())
}

/// Connections that may wait to be accepted: `wanted`, and the `most` that the kernel allows.
pub fn backlog(wanted: usize, most: Option<u32>) -> Option<String> {
    let most = most.filter(|&most| (most as usize) < wanted)?;
    Some(format!(
        "The TCP backlog setting of {wanted} cannot be enforced because /proc/sys/net/core/somaxconn is set to the lower \
         value of {most}."
    ))
}

/// Workers, of which no more are ever active than there are processors for them.
fn threads(wanted: usize, processors: &Processors) -> Option<String> {
    let usable = processors.usable();
    let inactive = wanted.checked_sub(usable).filter(|&count| count > 0)?;
    let quota = processors.quota.map_or_else(
        || "without a quota".to_owned(),
        |quota| format!("with a control group quota of {quota}"),
    );
    Some(format!(
        "io-threads is {wanted}, but this process can use no more than {usable} CPU(s): its affinity mask allows {}, \
         {quota}. At most {usable} worker(s) are active at a time, the other {inactive} stay inactive.",
        processors.allowed
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_the_kernel_cuts_is_told() {
        assert_eq!(
            backlog(511, Some(128)).unwrap(),
            "The TCP backlog setting of 511 cannot be enforced because /proc/sys/net/core/somaxconn is set to the lower \
             value of 128."
        );
        assert_eq!(backlog(511, Some(511)), None);
        assert_eq!(backlog(511, None), None);
        assert_eq!(backlog(0, Some(0)), None);
    }

    #[test]
    fn workers_without_a_processor_are_told() {
        let machine = |allowed, quota| Processors { allowed, quota };
        assert_eq!(threads(2, &machine(2, None)), None);
        assert_eq!(threads(1, &machine(1, Some(0.5))), None);
        assert_eq!(
            threads(8, &machine(2, None)).unwrap(),
            "io-threads is 8, but this process can use no more than 2 CPU(s): its affinity mask allows 2, without a quota. \
             At most 2 worker(s) are active at a time, the other 6 stay inactive."
        );
        assert_eq!(
            threads(4, &machine(16, Some(1.5))).unwrap(),
            "io-threads is 4, but this process can use no more than 2 CPU(s): its affinity mask allows 16, with a control \
             group quota of 1.5. At most 2 worker(s) are active at a time, the other 2 stay inactive."
        );
    }
}
