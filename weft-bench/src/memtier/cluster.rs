//! The nodes of a cluster and who owns which slot.
//!
//! Owns the table of slots, which redirections correct while a run lasts, and the places of nodes that join meanwhile. Does not
//! send requests of a test. Invariants: every slot belongs to a node that is known, although it may be the wrong one; a place,
//! once taken, stays that node's.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};

use weft_client::{Connection, Reply};

use crate::load::Target;
use crate::reach::Server;
use crate::slots::SLOTS;

/// A cluster.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Server>,
    /// By slot, the number of its node.
    owners: Vec<AtomicU16>,
    /// A node has joined since the slots were asked for.
    is_stale: AtomicBool,
}

/// So many nodes may join while a run lasts.
const JOINING_MAX: usize = 8;

/// Where a server says that a request belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redirection {
    /// Only this once, and after ASKING.
    pub ask: bool,
    pub slot: u16,
    pub address: SocketAddr,
}

impl Cluster {
    /// Asks a node. The error is for the user.
    pub fn ask(server: &Server, connection: &mut Connection) -> Result<Cluster, String> {
        match connection.command(&["CLUSTER", "SLOTS"]) {
            Ok(Reply::Error(error)) => Err(format!(
                "CLUSTER SLOTS at {}: {}",
                server.name,
                String::from_utf8_lossy(&error)
            )),
            Ok(reply) => Cluster::parse(&reply, server)
                .map(Cluster::with_room)
                .ok_or_else(|| format!("CLUSTER SLOTS at {} tells of no nodes", server.name)),
            Err(error) => Err(format!("CLUSTER SLOTS at {}: {error}", server.name)),
        }
    }

    /// What a reply tells: ranges of slots, each with its primary first.
    fn parse(reply: &Reply, asked: &Server) -> Option<Cluster> {
        let Reply::Array(ranges) = reply else {
            return None;
        };
        let mut nodes: Vec<Server> = Vec::new();
        let mut owners = vec![0; usize::from(SLOTS)];
        for range in ranges {
            let Reply::Array(range) = range else {
                return None;
            };
            let [
                Reply::Integer(first),
                Reply::Integer(last),
                Reply::Array(primary),
                ..,
            ] = &range[..]
            else {
                return None;
            };
            let [host, Reply::Integer(port), ..] = &primary[..] else {
                return None;
            };
            let target = Target::Tcp(address(host, *port, &asked.target)?);
            let number = match nodes.iter().position(|node| node.target == target) {
                Some(number) => number,
                None => {
                    nodes.push(Server {
                        name: target.to_string(),
                        target,
                    });
                    nodes.len() - 1
                }
            };
            let (first, last) = (usize::try_from(*first).ok()?, usize::try_from(*last).ok()?);
            owners
                .get_mut(first..=last)?
                .fill(u16::try_from(number).ok()?);
        }
        (!nodes.is_empty()).then(|| Cluster {
            nodes,
            owners: owners.into_iter().map(AtomicU16::new).collect(),
            is_stale: AtomicBool::new(false),
        })
    }

    /// With places for nodes that join.
    fn with_room(mut self) -> Cluster {
        let place = || Server {
            name: String::new(),
            target: Target::Later(Arc::new(OnceLock::new())),
        };
        self.nodes
            .extend(std::iter::repeat_with(place).take(JOINING_MAX));
        self
    }

    /// The primaries, and places without an address for those that join.
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// The node that a slot belongs to.
    pub fn owner(&self, slot: u16) -> usize {
        // Relaxed: a redirection that is seen late is one redirection more.
        usize::from(self.owners[usize::from(slot % SLOTS)].load(Ordering::Relaxed))
    }

    /// The node that a redirection leads to, which owns the slot from now on unless this is for once. `None`: it is one node
    /// too many.
    pub fn follow(&self, redirection: &Redirection) -> Option<usize> {
        let node = self.place(redirection.address)?;
        if !redirection.ask {
            self.owners[usize::from(redirection.slot % SLOTS)]
                .store(node as u16, Ordering::Relaxed);
        }
        Some(node)
    }

    /// The number of the node at this address; it joins if it is not there yet and there is room.
    fn place(&self, address: SocketAddr) -> Option<usize> {
        self.nodes.iter().position(|node| match &node.target {
            Target::Later(place) => {
                let mut joins = false;
                let taken_by = place.get_or_init(|| {
                    joins = true;
                    address
                });
                if joins {
                    self.is_stale.store(true, Ordering::Relaxed);
                }
                *taken_by == address
            }
            known => known.address() == Some(address),
        })
    }

    /// Whether a node has joined since this was last asked: then it is time to ask for all slots.
    pub fn take_stale(&self) -> bool {
        self.is_stale.load(Ordering::Relaxed) && self.is_stale.swap(false, Ordering::Relaxed)
    }

    /// Takes over whose the slots are. What belongs to a node for which there is no room stays as it is.
    pub fn learn(&self, newer: &Cluster) {
        let places: Vec<Option<usize>> = newer
            .nodes
            .iter()
            .map(|node| self.place(node.target.address()?))
            .collect();
        for (owner, newer) in self.owners.iter().zip(&newer.owners) {
            let place = places.get(usize::from(newer.load(Ordering::Relaxed)));
            if let Some(&Some(place)) = place {
                owner.store(place as u16, Ordering::Relaxed);
            }
        }
        self.is_stale.store(false, Ordering::Relaxed);
    }
}

/// A node's address; one that does not know its own is where it was asked.
fn address(host: &Reply, port: i64, asked: &Target) -> Option<SocketAddr> {
    let port = u16::try_from(port).ok()?;
    let host = match host {
        Reply::Bulk(host) => String::from_utf8_lossy(host).into_owned(),
        _ => String::new(),
    };
    match host.parse::<IpAddr>() {
        Ok(ip) => Some(SocketAddr::new(ip, port)),
        Err(_) if host.is_empty() => Some(SocketAddr::new(asked.address()?.ip(), port)),
        Err(_) => None,
    }
}

/// Reads the error that redirects: `-MOVED 3999 127.0.0.1:6381`, `-ASK ...`. `None`: it is another one.
pub fn redirection(error: &[u8], asked: &Target) -> Option<Redirection> {
    let text = std::str::from_utf8(error).ok()?;
    let mut words = text.trim_start_matches('-').split_ascii_whitespace();
    let ask = match words.next()? {
        "MOVED" => false,
        "ASK" => true,
        _ => return None,
    };
    let slot = words.next()?.parse().ok()?;
    let (host, port) = words.next()?.rsplit_once(':')?;
    let host = Reply::Bulk(host.as_bytes().to_vec());
    let address = address(&host, port.parse().ok()?, asked)?;
    Some(Redirection { ask, slot, address })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Reply {
        Reply::Bulk(text.as_bytes().to_vec())
    }

    fn server() -> Server {
        Server {
            name: "here".to_owned(),
            target: Target::Tcp("127.0.0.1:7000".parse().unwrap()),
        }
    }

    fn range(first: i64, last: i64, host: Reply, port: i64) -> Reply {
        let node = |host, port| Reply::Array(vec![host, Reply::Integer(port), bulk("id")]);
        Reply::Array(vec![
            Reply::Integer(first),
            Reply::Integer(last),
            node(host, port),
            node(bulk("127.0.0.1"), 7009),
        ])
    }

    #[test]
    fn slots_belong_to_the_first_node_of_their_range() {
        let reply = Reply::Array(vec![
            range(0, 99, bulk("127.0.0.1"), 7001),
            range(100, 8000, bulk(""), 7000),
            range(8001, 16383, bulk("127.0.0.1"), 7001),
        ]);
        let cluster = Cluster::parse(&reply, &server()).unwrap();
        let names: Vec<&str> = cluster.nodes().iter().map(|node| &node.name[..]).collect();
        assert_eq!(names, ["127.0.0.1:7001", "127.0.0.1:7000"]);
        let owners = [0, 99, 100, 8000, 8001, 16383].map(|slot| cluster.owner(slot));
        assert_eq!(owners, [0, 0, 1, 1, 0, 0]);
        for wrong in [
            Reply::Array(Vec::new()),
            Reply::NullArray,
            Reply::Array(vec![range(0, 16384, bulk("127.0.0.1"), 1)]),
            Reply::Array(vec![range(-1, 5, bulk("127.0.0.1"), 1)]),
        ] {
            assert!(Cluster::parse(&wrong, &server()).is_none());
        }
    }

    #[test]
    fn redirections_are_followed() {
        let reply = Reply::Array(vec![
            range(0, 8000, bulk("127.0.0.1"), 7000),
            range(8001, 16383, bulk("127.0.0.1"), 7001),
        ]);
        let cluster = Cluster::parse(&reply, &server()).unwrap();
        let here = server().target;
        let read = |text: &str| redirection(text.as_bytes(), &here);
        let asked = read("-ASK 5 127.0.0.1:7001\r\n").unwrap();
        assert_eq!(cluster.follow(&asked), Some(1));
        assert_eq!(cluster.owner(5), 0);
        let moved = read("-MOVED 5 127.0.0.1:7001\r\n").unwrap();
        assert_eq!(cluster.follow(&moved), Some(1));
        assert_eq!(cluster.owner(5), 1);
        let unknown = read("-MOVED 5 :7009\r\n").unwrap();
        assert_eq!(unknown.address.to_string(), "127.0.0.1:7009");
        assert_eq!(cluster.follow(&unknown), None);
        assert_eq!(cluster.owner(5), 1);
        assert!(!cluster.take_stale());
        // With room, it joins, and later slots are its own.
        let cluster = cluster.with_room();
        assert_eq!(cluster.follow(&unknown), Some(2));
        assert_eq!(cluster.owner(5), 2);
        assert_eq!(cluster.nodes()[2].target.to_string(), "127.0.0.1:7009");
        assert_eq!(cluster.follow(&unknown), Some(2));
        assert!(cluster.take_stale() && !cluster.take_stale());
        let newer = Reply::Array(vec![
            range(0, 99, bulk("127.0.0.1"), 7009),
            range(100, 8000, bulk("127.0.0.1"), 7010),
            range(8001, 16383, bulk("127.0.0.1"), 7001),
        ]);
        cluster.learn(&Cluster::parse(&newer, &server()).unwrap());
        let owners = [0, 99, 100, 8000, 8001, 16383].map(|slot| cluster.owner(slot));
        assert_eq!(owners, [2, 2, 3, 3, 1, 1]);
        assert!(!cluster.take_stale());
        assert_eq!(read("-ERR MOVED"), None);
        assert_eq!(read("-MOVED x 127.0.0.1:1"), None);
    }
}
