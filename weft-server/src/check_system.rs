//! `--check-system`: looks for settings of the machine that cost speed or safety, and says what to do about them.

use std::fs;

/// Prints a line per check. True: nothing was found.
pub fn run() -> bool {
    let checks = [
        (
            "transparent-hugepages",
            hugepages(read("/sys/kernel/mm/transparent_hugepage/enabled").as_deref()),
        ),
        ("somaxconn", backlog(weft_os::network::somaxconn())),
        (
            "file-descriptors",
            descriptors(weft_os::descriptors::limit()),
        ),
    ];
    for (name, finding) in &checks {
        match finding {
            None => println!("[{name}]...OK"),
            Some(advice) => println!("[{name}]...WARNING:\n{advice}"),
        }
    }
    checks.iter().all(|(_, finding)| finding.is_none())
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn hugepages(enabled: Option<&str>) -> Option<String> {
    enabled?.contains("[always]").then(|| {
        "Transparent huge pages are always on: small values then occupy more memory than they need. Turn it off with\n\
         'echo madvise > /sys/kernel/mm/transparent_hugepage/enabled'."
            .to_owned()
    })
}

fn backlog(somaxconn: Option<u32>) -> Option<String> {
    somaxconn.filter(|&length| length < 511).map(|length| {
        format!(
            "At most {length} connections can wait to be accepted; the default tcp-backlog asks for 511. Raise it with\n\
             'sysctl -w net.core.somaxconn=511'."
        )
    })
}

fn descriptors(limit: u64) -> Option<String> {
    (limit < 10_032).then(|| {
        format!("The process may open {limit} files; the default maxclients needs 10032. Raise it with 'ulimit -n 10032'.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_hurts_is_reported() {
        assert!(
            hugepages(Some("[always] madvise never"))
                .unwrap()
                .contains("madvise")
        );
        assert_eq!(hugepages(Some("always [madvise] never")), None);
        assert_eq!(hugepages(None), None);
        assert!(backlog(Some(128)).unwrap().contains("128"));
        assert_eq!(backlog(Some(4096)), None);
        assert!(descriptors(1024).unwrap().contains("1024"));
        assert_eq!(descriptors(20_000), None);
    }
}
