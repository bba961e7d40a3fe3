//! Limits of the kernel's network code.

use std::fs;

/// The longest queue of connections waiting to be accepted that the kernel allows (`net.core.somaxconn`).
#[must_use]
pub fn somaxconn() -> Option<u32> {
    fs::read_to_string("/proc/sys/net/core/somaxconn")
        .ok()?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn somaxconn_is_a_positive_number() {
        assert!(super::somaxconn().unwrap() > 0);
    }
}
