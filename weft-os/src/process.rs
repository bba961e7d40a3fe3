//! Facts about this process and the system it runs on that do not change.

use std::path::PathBuf;

/// The process id.
#[must_use]
pub fn id() -> u32 {
    std::process::id()
}

/// The system's name, release and machine: "Linux 6.1.0 x86_64".
#[must_use]
pub fn operating_system() -> String {
    let uname = rustix::system::uname();
    let [name, release, machine] =
        [uname.sysname(), uname.release(), uname.machine()].map(|part| part.to_string_lossy());
    format!("{name} {release} {machine}")
}

/// Bytes per page of memory.
#[must_use]
pub fn page_bytes() -> usize {
    rustix::param::page_size()
}

/// The path of the program that runs.
#[must_use]
pub fn executable() -> Option<PathBuf> {
    std::env::current_exe().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_plausible() {
        assert!(operating_system().starts_with("Linux "));
        assert_eq!(operating_system().split(' ').count(), 3);
        assert!(page_bytes().is_power_of_two() && page_bytes() >= 4096);
        assert!(executable().unwrap().is_absolute());
        assert_eq!(id(), std::process::id());
    }
}
