//! Limits of the control group (version 2) the process runs in.
//!
//! A limit may stand at any level between the process's group and the root, and the tightest one counts. Where the
//! hierarchy is not mounted, or is version 1, there is no limit to report.

use std::fs;
use std::path::{Path, PathBuf};

/// Where the version 2 hierarchy is mounted by convention.
const MOUNT: &str = "/sys/fs/cgroup";

/// What a control group allows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Bytes of memory (`memory.max`).
    pub memory_bytes: Option<u64>,
    /// Processors, as quota divided by period (`cpu.max`): 1.5 is one and a half.
    pub processors: Option<f64>,
}

/// The limits of this process's group and all groups around it.
#[must_use]
pub fn limits() -> Limits {
    let Ok(membership) = fs::read_to_string("/proc/self/cgroup") else {
        return Limits::default();
    };
    match group_of(&membership) {
        Some(group) => limits_of(Path::new(MOUNT), group),
        None => Limits::default(),
    }
}

/// The version 2 group in the text of `/proc/self/cgroup`: the line of hierarchy 0.
fn group_of(membership: &str) -> Option<&str> {
    membership.lines().find_map(|line| line.strip_prefix("0::"))
}

fn limits_of(mount: &Path, group: &str) -> Limits {
    let mut folder: PathBuf = mount.join(group.trim_start_matches('/'));
    let mut limits = Limits::default();
    // Inside a container the group's path may lead outside what is mounted; the mount itself is looked at in any case.
    while folder.starts_with(mount) {
        let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
        let memory = read("memory.max").and_then(|text| text.trim().parse::<u64>().ok());
        let processors = read("cpu.max").and_then(|text| processors(&text));
        limits.memory_bytes = tighter(limits.memory_bytes, memory, u64::min);
        limits.processors = tighter(limits.processors, processors, f64::min);
        if !folder.pop() {
            break;
        }
    }
    limits
}

/// `cpu.max` is "QUOTA PERIOD" in microseconds, or "max PERIOD" without a limit.
fn processors(text: &str) -> Option<f64> {
    let mut words = text.split_ascii_whitespace();
    let quota: f64 = words.next()?.parse().ok()?;
    let period: f64 = words.next()?.parse().ok()?;
    (quota > 0.0 && period > 0.0 && quota.is_finite()).then_some(quota / period)
}

fn tighter<T>(left: Option<T>, right: Option<T>, min: fn(T, T) -> T) -> Option<T> {
    match (left, right) {
        (Some(left), Some(right)) => Some(min(left, right)),
        (left, right) => left.or(right),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_2_group_is_found_among_others() {
        assert_eq!(
            group_of("12:memory:/a\n0::/system.slice/weft.service\n"),
            Some("/system.slice/weft.service")
        );
        assert_eq!(group_of("0::/\n"), Some("/"));
        assert_eq!(group_of("3:cpu,cpuacct:/docker/1\n"), None);
    }

    #[test]
    fn the_tightest_limit_on_the_way_to_the_root_counts() {
        let mount = tempfile::tempdir().unwrap();
        let inner = mount.path().join("outer/inner");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("memory.max"), "max\n").unwrap();
        fs::write(inner.join("cpu.max"), "150000 100000\n").unwrap();
        fs::write(mount.path().join("outer/memory.max"), "1073741824\n").unwrap();
        fs::write(mount.path().join("outer/cpu.max"), "max 100000\n").unwrap();
        fs::write(mount.path().join("memory.max"), "2147483648\n").unwrap();
        let limits = limits_of(mount.path(), "/outer/inner");
        assert_eq!(
            limits,
            Limits {
                memory_bytes: Some(1_073_741_824),
                processors: Some(1.5)
            }
        );
    }

    #[test]
    fn no_hierarchy_means_no_limit() {
        assert_eq!(
            limits_of(Path::new("/nonexistent"), "/a/b"),
            Limits::default()
        );
    }

    #[test]
    fn odd_quotas_are_no_quotas() {
        assert_eq!(processors("max 100000"), None);
        assert_eq!(processors("0 100000"), None);
        assert_eq!(processors("100000 0"), None);
        assert_eq!(processors(""), None);
        assert_eq!(processors("50000 100000"), Some(0.5));
    }
}
