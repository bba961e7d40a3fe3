//! What the start says about a machine that does not suit the configuration.

use std::fs;
use std::process::{Command, Stdio};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tempfile::TempDir;

use crate::harness::{PROGRAM, Server, free_port};

/// The lines so far that contain `text`.
fn lines<'a>(server: &'a Server, text: &str) -> Vec<&'a str> {
    let messages = server.messages();
    messages
        .into_iter()
        .filter(|message| message.contains(text))
        .collect()
}

#[test]
fn a_backlog_beyond_the_kernels_is_told_once() {
    let most: usize = fs::read_to_string("/proc/sys/net/core/somaxconn")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let server = Server::start(&["--tcp-backlog", &(most + 1).to_string()]);
    assert_eq!(
        lines(&server, "backlog"),
        [format!(
            "WARNING: The TCP backlog setting of {} cannot be enforced because /proc/sys/net/core/somaxconn is set to the \
             lower value of {most}.",
            most + 1
        )]
    );
    let server = Server::start(&["--tcp-backlog", &most.to_string()]);
    assert_eq!(lines(&server, "backlog"), [""; 0]);
}

#[test]
fn workers_without_a_processor_are_told_once() {
    // A process inherits its mask from the thread that starts it.
    let mask = sched_getaffinity(None).unwrap();
    let first = (0..CpuSet::MAX_CPU).find(|&cpu| mask.is_set(cpu)).unwrap();
    let mut only = CpuSet::new();
    only.set(first);
    sched_setaffinity(None, &only).unwrap();
    let two = Server::start(&["--io-threads", "2"]);
    let auto = Server::start(&[]);
    sched_setaffinity(None, &mask).unwrap();
    let found = lines(&two, "affinity mask");
    assert_eq!(found.len(), 1, "{:?}", two.seen);
    assert!(
        found[0].starts_with(
            "io-threads is 2, but this process can use no more than 1 CPU(s): its affinity mask allows 1, with"
        ) && found[0]
            .ends_with("At most 1 worker(s) are active at a time, the other 1 stay inactive."),
        "{}",
        found[0]
    );
    assert_eq!(lines(&auto, "affinity mask"), [""; 0]);
}

/// The program where `transparent_hugepage/enabled` says this, in a mount namespace of its own, and the
/// folder that has to stay meanwhile. None: there is no
/// permission to make one.
fn with_huge_pages(enabled: &str, options: &[&str]) -> Option<(Command, TempDir)> {
    const SETTING: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("enabled");
    fs::write(&file, enabled).unwrap();
    let begin = |script: &str| {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c", script, "sh"])
            .arg(&file)
            .arg(SETTING);
        command
    };
    let possible = begin("mount --bind \"$1\" \"$2\"")
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !possible {
        eprintln!("no permission to change what a process sees of the system: nothing to try");
        return None;
    }
    let mut command = begin("mount --bind \"$1\" \"$2\" && shift 2 && exec \"$@\"");
    command.arg(PROGRAM).args(options);
    Some((command, folder))
}

/// Whether the kernel may give the process transparent huge pages.
fn may_have_huge_pages(server: &Server) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("THP_enabled:"));
    line.unwrap().trim() == "1"
}

#[test]
fn huge_pages_made_unasked_are_turned_off_or_told_once() {
    for (enabled, disable, told, possible) in [
        ("[always] madvise never\n", "yes", 0, false),
        ("[always] madvise never\n", "no", 1, true),
        ("always [madvise] never\n", "yes", 0, true),
        ("always [madvise] never\n", "no", 0, true),
    ] {
        let port = free_port();
        let folder = tempfile::tempdir().unwrap();
        let options = [
            "--port",
            &port.to_string(),
            "--dir",
            folder.path().to_str().unwrap(),
            "--disable-thp",
            disable,
        ];
        let Some((command, _setting)) = with_huge_pages(enabled, &options) else {
            return;
        };
        let server = Server::launch(command, folder, port);
        let found = lines(
            &server,
            "WARNING You have Transparent Huge Pages (THP) support enabled in your kernel.",
        );
        assert_eq!(found.len(), told, "{enabled}{disable}: {:?}", server.seen);
        assert_eq!(may_have_huge_pages(&server), possible, "{enabled}{disable}");
    }
}

#[test]
fn the_machine_is_judged_alike_without_a_server() {
    let Some((mut command, _setting)) =
        with_huge_pages("[always] madvise never\n", &["--check-system"])
    else {
        return;
    };
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("[THP]...OK\n[somaxconn]..."), "{text}");
}
