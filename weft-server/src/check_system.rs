//! `--check-system`: looks for settings of the machine that cost speed or safety, and says what to do about them.
//!
//! Judges by the default configuration; the words are those of [`advice`] where the start gives them too.

use crate::advice;

/// `tcp-backlog` by default.
const BACKLOG: usize = 511;

/// Prints a line per check. True: nothing was found.
pub fn run() -> bool {
    let huge_pages = advice::huge_pages_stay_on(true).then(|| advice::HUGE_PAGES.to_owned());
    let checks = [
        ("THP", huge_pages),
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

fn backlog(somaxconn: Option<u32>) -> Option<String> {
    let advice = advice::backlog(BACKLOG, somaxconn)?;
    Some(format!(
        "{advice} Raise it with 'sysctl -w net.core.somaxconn={BACKLOG}'."
    ))
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
            backlog(Some(128))
                .unwrap()
                .contains("lower value of 128. Raise it with 'sysctl -w net.core.somaxconn=511'.")
        );
        assert_eq!(backlog(Some(4096)), None);
        assert!(descriptors(1024).unwrap().contains("1024"));
        assert_eq!(descriptors(20_000), None);
    }
}
