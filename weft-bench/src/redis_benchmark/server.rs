//! What is asked of a server before the measurement: how it saves, which nodes its cluster has.
//!
//! Owns these few questions, over blocking connections of their own, and what is said when they go unanswered.

use std::net::{IpAddr, SocketAddr};

use weft_client::{Connection, Reply};

use super::arguments::Options;
use crate::load::Target;
use crate::numbers::atoi;
use crate::reach::{Server, Unreachable};

/// Two parameters that matter to who compares figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// `save`.
    pub save: String,
    /// `appendonly`.
    pub appendonly: String,
}

/// A primary of a cluster.
#[derive(Debug, Clone)]
pub struct Node {
    /// Its identity.
    pub id: String,
    /// Where it is.
    pub server: Server,
    /// The first of its slots.
    pub slot: u16,
}

/// What redis-benchmark says about a server that it cannot reach.
pub fn complaint(unreachable: &Unreachable) -> String {
    format!(
        "Could not connect to Redis at {}: {}",
        unreachable.name, unreachable.why
    )
}

/// The command that says who the client is, if it says so.
pub fn auth(options: &Options) -> Option<Vec<&[u8]>> {
    let password = options.password.as_deref()?;
    Some(match &options.user {
        Some(user) => vec![b"AUTH", user, password],
        None => vec![b"AUTH", password],
    })
}

/// Says who the client is. The error is for the user.
pub fn log_in(
    server: &Server,
    connection: &mut Connection,
    options: &Options,
) -> Result<(), String> {
    let Some(auth) = auth(options) else {
        return Ok(());
    };
    match connection.command(&auth) {
        Ok(Reply::Error(error)) => Err(said(server, &error)),
        // Whatever else is wrong will be seen again.
        _ => Ok(()),
    }
}

/// Asks how the server saves. `Ok(None)`: it does not say. The error is for the user.
pub fn configuration(
    server: &Server,
    connection: &mut Connection,
) -> Result<Option<Configuration>, String> {
    let mut parameter = |name: &str| match connection.command(&["CONFIG", "GET", name]) {
        Ok(Reply::Array(mut pair)) if pair.len() == 2 => match pair.pop() {
            Some(Reply::Bulk(value)) => Ok(Some(String::from_utf8_lossy(&value).into_owned())),
            _ => Ok(None),
        },
        Ok(Reply::Error(error)) if error.starts_with(b"NOAUTH") => Err(said(server, &error)),
        _ => Ok(None),
    };
    let (save, appendonly) = (parameter("save")?, parameter("appendonly")?);
    Ok(save
        .zip(appendonly)
        .map(|(save, appendonly)| Configuration { save, appendonly }))
}

fn said(server: &Server, error: &[u8]) -> String {
    format!(
        "Node {} replied with error:\n{}",
        server.name,
        String::from_utf8_lossy(error)
    )
}

/// Asks for the primaries that have slots. The error is for the user.
pub fn cluster(server: &Server, connection: &mut Connection) -> Result<Vec<Node>, String> {
    let failed = |why: String| {
        format!(
            "{why}Failed to fetch cluster configuration from {}",
            server.name
        )
    };
    match connection.command(&["CLUSTER", "NODES"]) {
        Ok(Reply::Bulk(text) | Reply::Verbatim(_, text)) => {
            let nodes = primaries(&String::from_utf8_lossy(&text), &server.target);
            if nodes.is_empty() {
                return Err(failed("No master node has slots\n".to_owned()));
            }
            Ok(nodes)
        }
        Ok(Reply::Error(error)) => Err(failed(format!(
            "Cluster node {} replied with error:\n{}\n",
            server.name,
            String::from_utf8_lossy(&error)
        ))),
        Ok(_) => Err(failed(String::new())),
        Err(error) => Err(failed(format!("{error}\n"))),
    }
}

/// The primaries with slots in what `CLUSTER NODES` answers. A node that does not know its own address is where it
/// was asked.
fn primaries(text: &str, asked: &Target) -> Vec<Node> {
    let node = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        let [id, address, flags, _, _, _, _, _, slots @ ..] = &fields[..] else {
            return None;
        };
        let flags: Vec<&str> = flags.split(',').collect();
        if !flags.contains(&"master") || flags.contains(&"noaddr") || flags.contains(&"fail") {
            return None;
        }
        let slot = slots.iter().find(|slots| !slots.starts_with('['))?;
        let slot = u16::try_from(atoi(slot.as_bytes())).ok()?;
        // ip:port@bus,hostname
        let address = address.split(['@', ',']).next()?;
        let (host, port) = address.rsplit_once(':')?;
        let port = port.parse().ok()?;
        let target = match host.parse::<IpAddr>() {
            Ok(ip) => Target::Tcp(SocketAddr::new(ip, port)),
            Err(_) if host.is_empty() => asked.clone(),
            Err(_) => return None,
        };
        let name = match &target {
            Target::Unix(path) => path.display().to_string(),
            tcp => tcp.to_string(),
        };
        Some(Node {
            id: (*id).to_owned(),
            server: Server { name, target },
            slot,
        })
    };
    text.lines().filter_map(node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primaries_with_slots_are_found() {
        let text = "\
aaa 127.0.0.1:7000@17000 myself,master - 0 1 1 connected 0-8191 [93->-bbb]
bbb 127.0.0.1:7001@17001,host1 master - 0 1 2 connected [93-<-aaa] 8192-16383
ccc 127.0.0.1:7002@17002 slave aaa 0 1 1 connected
ddd 127.0.0.1:7003@17003 master - 0 1 0 connected
eee 127.0.0.1:7004@17004 master,fail - 0 1 3 disconnected 5
fff :7005@17005 myself,master - 0 1 4 connected 7
ggg ::1:7006@17006 master - 0 1 4 connected 9
";
        let asked = Target::Unix("/tmp/asked".into());
        let found: Vec<(String, String, u16)> = primaries(text, &asked)
            .into_iter()
            .map(|node| (node.id, node.server.name, node.slot))
            .collect();
        let node = |id: &str, name: &str, slot| (id.to_owned(), name.to_owned(), slot);
        assert_eq!(
            found,
            [
                node("aaa", "127.0.0.1:7000", 0),
                node("bbb", "127.0.0.1:7001", 8192),
                node("fff", "/tmp/asked", 7),
                node("ggg", "::1:7006", 9),
            ]
        );
    }
}
