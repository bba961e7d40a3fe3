//! memtier's cluster mode, against two nodes that redirect.

use std::collections::{HashMap, HashSet};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crc::{CRC_16_XMODEM, Crc};

use crate::native_server::{Server, Store};
use crate::program::{Ended, PROGRAM, run};

/// Slots from here on belong to the second node, as both say at the beginning.
const TOLD: u16 = 8192;

/// Slots from here on belong to it in truth.
const TRUE: u16 = 7000;

/// Slots from here up to [`TRUE`] are on their way to it: their keys are there already.
const MOVING: u16 = 6500;

fn slot(key: &[u8]) -> u16 {
    Crc::<u16>::new(&CRC_16_XMODEM).checksum(key) % 16384
}

struct Nodes {
    nodes: [Server; 2],
    /// The keys of SETs that were taken, with the node that took them.
    taken: Arc<Mutex<Vec<(usize, String)>>>,
}

impl Nodes {
    fn start() -> Nodes {
        let taken = Arc::new(Mutex::new(Vec::new()));
        let ports = Arc::new(OnceLock::<[u16; 2]>::new());
        let node = |me: usize| {
            let (taken, ports) = (Arc::clone(&taken), Arc::clone(&ports));
            let asking = Mutex::new(HashSet::new());
            Server::start(move |connection, words| {
                let ports = ports.get().unwrap();
                let to = |code: &str, slot: u16, port: u16| {
                    Some(format!("-{code} {slot} 127.0.0.1:{port}\r\n").into_bytes())
                };
                match &words[0][..] {
                    b"CLUSTER" => {
                        let range = |first: u16, last: u16, port: u16| {
                            format!(
                                "*3\r\n:{first}\r\n:{last}\r\n*3\r\n$9\r\n127.0.0.1\r\n:{port}\r\n$2\r\nid\r\n"
                            )
                        };
                        let ranges = [range(0, TOLD - 1, ports[0]), range(TOLD, 16383, ports[1])];
                        Some(format!("*2\r\n{}", ranges.concat()).into_bytes())
                    }
                    b"ASKING" => {
                        asking.lock().unwrap().insert(connection);
                        Some(b"+OK\r\n".to_vec())
                    }
                    _ => {
                        let asked = asking.lock().unwrap().remove(&connection);
                        let slot = slot(&words[1]);
                        if me == 0 && slot >= TRUE {
                            return to("MOVED", slot, ports[1]);
                        }
                        if me == 0 && slot >= MOVING {
                            return to("ASK", slot, ports[1]);
                        }
                        let welcome = slot >= TRUE || slot >= MOVING && asked;
                        if me == 1 && !welcome {
                            return to("MOVED", slot, ports[0]);
                        }
                        let key = String::from_utf8(words[1].clone()).unwrap();
                        taken.lock().unwrap().push((me, key));
                        Some(b"+OK\r\n".to_vec())
                    }
                }
            })
        };
        let nodes = [node(0), node(1)];
        ports.set([nodes[0].port, nodes[1].port]).unwrap();
        Nodes { nodes, taken }
    }

    fn memtier(&self, arguments: &[&str]) -> Ended {
        let mut command = Command::new(PROGRAM);
        command
            .args(["memtier", "--cluster-mode", "-s", "127.0.0.1", "-p"])
            .arg(self.nodes[0].port.to_string())
            .args(arguments);
        run(command, "")
    }
}

fn figures(ended: &Ended, name: &str) -> Vec<f64> {
    let line = ended.output.lines().find(|line| line.starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in {}", ended.output));
    line[name.len()..]
        .split_whitespace()
        .map(|figure| figure.parse().unwrap_or(f64::NAN))
        .collect()
}

#[test]
fn every_key_reaches_the_owner_of_its_slot() {
    let nodes = Nodes::start();
    let ended = nodes.memtier(&[
        "-c3",
        "-t2",
        "-n",
        "allkeys",
        "--key-pattern=P:P",
        "--key-minimum=1",
        "--key-maximum=3000",
        "--key-prefix=k",
        "--ratio=1:0",
        "--pipeline=3",
        "--hide-histogram",
    ]);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    let mut taken: HashMap<String, usize> = HashMap::new();
    for (node, key) in nodes.taken.lock().unwrap().drain(..) {
        let slot = slot(key.as_bytes());
        assert_eq!(node, usize::from(slot >= MOVING), "{key} in slot {slot}");
        assert_eq!(taken.insert(key, node), None);
    }
    assert_eq!(taken.len(), 3000);
    let slots = (1..=3000).map(|number| slot(format!("k{number}").as_bytes()));
    let moving = slots.filter(|slot| (MOVING..TRUE).contains(slot)).count();
    assert_eq!(nodes.nodes[1].received_named("ASKING").len(), moving);
    // The answers of the table are those of the test's requests, redirections among them.
    let sets: usize = nodes
        .nodes
        .iter()
        .map(|node| node.received_named("SET").len())
        .sum();
    let moved = sets - 3000 - moving;
    // A slot moves once, for as many requests as were under way.
    assert!((1..600).contains(&moved), "{moved}");
    let totals = figures(&ended, "Totals");
    let [rate, _, _, moved_rate, asked_rate, ..] = totals[..] else {
        panic!("{totals:?}");
    };
    let elapsed = sets as f64 / rate;
    assert!(
        (moved_rate * elapsed - moved as f64).abs() < 1.0,
        "{totals:?}"
    );
    assert!(
        (asked_rate * elapsed - moving as f64).abs() < 1.0,
        "{totals:?}"
    );
}

#[test]
fn commands_go_where_their_tag_belongs() {
    let nodes = Nodes::start();
    let ended = nodes.memtier(&[
        "-c1",
        "-t1",
        "-n100",
        "--key-prefix=",
        "--key-minimum=1",
        "--key-maximum=100",
        "--command=SADD a:__key__ x",
        "--command-key-pattern=S",
        "--hide-histogram",
    ]);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert!(
        ended
            .output
            .contains("Type         Ops/sec    MOVED/sec      ASK/sec    Avg. Latency"),
        "{}",
        ended.output
    );
    let mut keys: Vec<String> = nodes
        .taken
        .lock()
        .unwrap()
        .drain(..)
        .map(|(_, key)| key)
        .collect();
    keys.sort();
    let mut expected: Vec<String> = (1..=100).map(|number| format!("a:{number}")).collect();
    expected.sort();
    assert_eq!(keys, expected);
}

/// Slots from here on belong to a node that joins, of which the first two tell only when they are asked for one of them.
const JOINED: u16 = 10_000;

#[test]
fn nodes_join_while_a_run_lasts() {
    let ports = Arc::new(OnceLock::<[u16; 3]>::new());
    let has_joined = Arc::new(AtomicBool::new(false));
    let node = |me: usize| {
        let (store, ports) = (Store::default(), Arc::clone(&ports));
        let has_joined = Arc::clone(&has_joined);
        Server::start(move |_, words| {
            let ports = ports.get().unwrap();
            if words[0] == b"CLUSTER" {
                let range = |first: u16, last: u16, port: u16| {
                    format!(
                        "*3\r\n:{first}\r\n:{last}\r\n*3\r\n$9\r\n127.0.0.1\r\n:{port}\r\n$2\r\nid\r\n"
                    )
                };
                let ranges = match has_joined.load(Ordering::SeqCst) {
                    false => vec![range(0, TOLD - 1, ports[0]), range(TOLD, 16383, ports[1])],
                    true => vec![
                        range(0, TOLD - 1, ports[0]),
                        range(TOLD, JOINED - 1, ports[1]),
                        range(JOINED, 16383, ports[2]),
                    ],
                };
                return Some(format!("*{}\r\n{}", ranges.len(), ranges.concat()).into_bytes());
            }
            let slot = slot(&words[1]);
            let owner = usize::from(slot >= TOLD) + usize::from(slot >= JOINED);
            if owner != me {
                has_joined.store(true, Ordering::SeqCst);
                return Some(format!("-MOVED {slot} 127.0.0.1:{}\r\n", ports[owner]).into_bytes());
            }
            Some(store.answer(words))
        })
    };
    let nodes = [node(0), node(1), node(2)];
    ports
        .set([0, 1, 2].map(|me: usize| nodes[me].port))
        .unwrap();
    let mut command = Command::new(PROGRAM);
    command
        .args(["memtier", "--cluster-mode", "-s", "127.0.0.1", "-p"])
        .arg(nodes[0].port.to_string())
        .args([
            "-c2",
            "-t2",
            "-n",
            "allkeys",
            "--run-count=2",
            "--key-pattern=P:P",
            "--key-minimum=1",
            "--key-maximum=3000",
            "--key-prefix=k",
            "--ratio=1:0",
            "--hide-histogram",
            "--data-verify",
        ]);
    let ended = run(command, "");
    // The node that joined is asked as well.
    let verified = ": 3000 keys verified successfully, 0 absent, 0 with errors\n";
    assert!(ended.errors.ends_with(verified), "{}", ended.errors);
    let mut times: HashMap<String, usize> = HashMap::new();
    for (node, words) in nodes.iter().enumerate().flat_map(|(node, server)| {
        let sets = server.received_named("SET");
        sets.into_iter().map(move |(_, words)| (node, words))
    }) {
        let slot = slot(words[1].as_bytes());
        let owner = usize::from(slot >= TOLD) + usize::from(slot >= JOINED);
        if node == owner {
            *times.entry(words[1].clone()).or_default() += 1;
        }
    }
    // Once in each run.
    assert_eq!(times.len(), 3000);
    assert!(times.values().all(|&times| times == 2));
}
