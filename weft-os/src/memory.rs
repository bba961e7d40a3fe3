//! Memory of the process and of the machine, in bytes, and the kernel's way with huge pages.

use std::fs;
use std::io;

/// Which memory the kernel makes huge pages of without being asked (`transparent_hugepage/enabled`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HugePages {
    /// All of it.
    Always,
    /// What programs mark for it.
    Advised,
    /// None.
    Never,
}

/// The kernel's setting.
#[must_use]
pub fn huge_pages() -> Option<HugePages> {
    HugePages::of(&fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok()?)
}

impl HugePages {
    /// The choices are listed, the one in force in brackets: "always [madvise] never".
    fn of(text: &str) -> Option<Self> {
        let chosen = text
            .split_ascii_whitespace()
            .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))?;
        match chosen {
            "always" => Some(Self::Always),
            "madvise" => Some(Self::Advised),
            "never" => Some(Self::Never),
            _ => None,
        }
    }
}

/// Whether this process gets no transparent huge pages, whatever the kernel's setting.
#[must_use]
pub fn huge_pages_are_off() -> bool {
    rustix::thread::transparent_huge_pages_are_disabled().unwrap_or(false)
}

/// From now on this process, and every one it starts, gets no transparent huge pages, not even where it marks memory
/// for them.
///
/// # Errors
/// As the operating system says.
pub fn turn_huge_pages_off() -> io::Result<()> {
    Ok(rustix::thread::disable_transparent_huge_pages(true)?)
}

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
    fn the_choice_in_brackets_is_the_one_in_force() {
        for (text, expected) in [
            ("[always] madvise never\n", Some(HugePages::Always)),
            ("always [madvise] never\n", Some(HugePages::Advised)),
            ("always madvise [never]\n", Some(HugePages::Never)),
            ("always madvise never\n", None),
            ("[sometimes]", None),
            ("", None),
        ] {
            assert_eq!(HugePages::of(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_process_can_do_without_huge_pages() {
        turn_huge_pages_off().unwrap();
        assert!(huge_pages_are_off());
        rustix::thread::disable_transparent_huge_pages(false).unwrap();
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
