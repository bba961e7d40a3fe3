//! Memory of the process and of the machine, in bytes.

use std::fs;

/// Resident memory of this process: all pages in RAM, shared ones included.
#[must_use]
pub fn resident_bytes() -> Option<u64> {
    // "size resident shared text lib data dt", in pages.
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * crate::process::page_bytes() as u64)
}

/// Physical memory of the machine.
#[must_use]
pub fn total_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram as u64 * u64::from(info.mem_unit)
}

/// What this process may use: the machine's memory, or the control group's limit if that is lower.
#[must_use]
pub fn usable_bytes() -> u64 {
    match crate::cgroup::limits().memory_bytes {
        Some(limit) => limit.min(total_bytes()),
        None => total_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_follows_what_is_touched() {
        const BYTES: usize = 32 << 20;
        let before = resident_bytes().unwrap();
        let touched = vec![1_u8; BYTES];
        let after = resident_bytes().unwrap();
        assert!(std::hint::black_box(&touched).iter().all(|&byte| byte == 1));
        assert!(after >= before + BYTES as u64 / 2, "{before} -> {after}");
        assert!(after < total_bytes());
    }

    #[test]
    fn total_memory_agrees_with_meminfo() {
        let text = fs::read_to_string("/proc/meminfo").unwrap();
        let kib: u64 = text
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:"))
            .and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok())
            .unwrap();
        assert_eq!(total_bytes(), kib * 1024);
        assert!(usable_bytes() <= total_bytes());
    }
}
