//! What is asked about other connections, and done to them.

use std::sync::Arc;

use weft_data::number;
use weft_resp::{Args, Writer};

use super::super::options::{integer, is};
use super::too_many;
use crate::action::Action;
use crate::clients::{ClientRecord, Clients};
use crate::dispatch::{Budget, Context, Progress, Steps};
use crate::error::CommandError;

/// The only user there is.
const USER: &[u8] = b"default";

/// What kind of client is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientType {
    /// Of which all are, monitors too.
    Normal,
    /// A kind that does not exist yet.
    None,
}

impl ClientType {
    fn parse(word: &[u8]) -> Result<Self, CommandError> {
        const NONE: [&str; 4] = ["MASTER", "REPLICA", "SLAVE", "PUBSUB"];
        match word {
            _ if is(word, "NORMAL") => Ok(Self::Normal),
            _ if NONE.iter().any(|name| is(word, name)) => Ok(Self::None),
            _ => Err(CommandError::quoting(
                "ERR Unknown client type '",
                word,
                "'",
            )),
        }
    }
}

pub(super) fn list(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let args = cx.args;
    let clients = &cx.engine.clients;
    let chosen: Vec<Arc<ClientRecord>> = match args.get(2) {
        None => clients.all(),
        Some(word) if is(word, "TYPE") && args.len() == 4 => match ClientType::parse(&args[3])? {
            ClientType::Normal => clients.all(),
            ClientType::None => Vec::new(),
        },
        Some(word) if is(word, "ID") && args.len() > 3 => {
            let ids = args.skip(3).iter().map(number::parse_i64);
            let ids = ids.collect::<Option<Vec<i64>>>();
            let ids = ids.ok_or(CommandError::Text("ERR Invalid client ID"))?;
            let ids = ids.into_iter().filter_map(|id| u64::try_from(id).ok());
            ids.filter_map(|id| clients.find(id)).collect()
        }
        Some(_) => return Err(CommandError::Syntax),
    };
    cx.client.publish(cx.reply.out.len(), args.total_bytes());
    let now_ns = cx.unit.monotonic_ns();
    let listing = Listing {
        clients: Arc::clone(clients),
        chosen: chosen.into_iter(),
        me: cx.client.id(),
        own: cx.client.line(now_ns),
        now_ns,
        text: Vec::new(),
    };
    cx.client.unpublish();
    cx.continue_with(listing);
    Ok(())
}

/// A list that is being drawn up.
struct Listing {
    clients: Arc<Clients>,
    chosen: std::vec::IntoIter<Arc<ClientRecord>>,
    /// The caller, and its line as it was when it asked.
    me: u64,
    own: Vec<u8>,
    now_ns: u64,
    text: Vec<u8>,
}

/// What drawing up a line takes, in units of the budget.
const LINE_WORK: u64 = 1500;

impl Steps for Listing {
    fn step(&mut self, budget: &mut Budget, reply: &mut Writer<'_>) -> Progress {
        for record in self.chosen.by_ref() {
            if record.id() == self.me {
                self.text.extend_from_slice(&self.own);
            } else {
                let line = self.clients.line(&record, self.now_ns);
                self.text.extend_from_slice(&line);
            }
            self.text.push(b'\n');
            if budget.take(LINE_WORK) < LINE_WORK {
                return Progress::More;
            }
        }
        reply.verbatim("txt", &self.text);
        Progress::Done
    }
}

/// Which connections are to be closed.
struct Filter<'a> {
    id: Option<u64>,
    address: Option<&'a [u8]>,
    local_address: Option<&'a [u8]>,
    kind: Option<ClientType>,
    /// Seconds.
    age_min: Option<u64>,
    skip_me: bool,
}

impl<'a> Filter<'a> {
    /// By the address alone, which may be the caller's own.
    const fn by_address(address: &'a [u8]) -> Self {
        Self {
            address: Some(address),
            skip_me: false,
            ..Self::ALL
        }
    }

    const ALL: Self = Self {
        id: None,
        address: None,
        local_address: None,
        kind: None,
        age_min: None,
        skip_me: true,
    };

    fn parse(options: Args<'a>) -> Result<Self, CommandError> {
        let mut filter = Self::ALL;
        let mut at = 0;
        while let Some(word) = options.get(at) {
            let value = options.get(at + 1).ok_or(CommandError::Syntax)?;
            match word {
                _ if is(word, "ID") => filter.id = Some(client_id(value)?),
                _ if is(word, "MAXAGE") => filter.age_min = Some(age(value)?),
                _ if is(word, "TYPE") => filter.kind = Some(ClientType::parse(value)?),
                _ if is(word, "ADDR") => filter.address = Some(value),
                _ if is(word, "LADDR") => filter.local_address = Some(value),
                // All are this one's.
                _ if is(word, "USER") && value == USER => {}
                _ if is(word, "USER") => {
                    return Err(CommandError::quoting("ERR No such user '", value, "'"));
                }
                _ if is(word, "SKIPME") && is(value, "YES") => filter.skip_me = true,
                _ if is(word, "SKIPME") && is(value, "NO") => filter.skip_me = false,
                _ => return Err(CommandError::Syntax),
            }
            at += 2;
        }
        Ok(filter)
    }

    fn matches(&self, record: &ClientRecord, me: u64, now_ns: u64) -> bool {
        let age_s = now_ns.saturating_sub(record.created_ns()) / 1_000_000_000;
        let is_at = |wanted: Option<&[u8]>, address: &str| {
            wanted.is_none_or(|wanted| wanted == address.as_bytes())
        };
        self.id.is_none_or(|id| id == record.id())
            && is_at(self.address, &record.origin().address)
            && is_at(self.local_address, &record.origin().local_address)
            && self.kind != Some(ClientType::None)
            && self.age_min.is_none_or(|least| age_s >= least)
            && !(self.skip_me && record.id() == me)
    }
}

fn client_id(text: &[u8]) -> Result<u64, CommandError> {
    let id = number::parse_i64(text).filter(|id| *id > 0);
    id.map(i64::unsigned_abs)
        .ok_or(CommandError::Text("ERR client-id should be greater than 0"))
}

fn age(text: &[u8]) -> Result<u64, CommandError> {
    let age = number::parse_i64(text).ok_or(CommandError::Text(
        "ERR maxage is not an integer or out of range",
    ))?;
    match u64::try_from(age) {
        Ok(age) if age > 0 => Ok(age),
        _ => Err(CommandError::Text("ERR maxage should be greater than 0")),
    }
}

pub(super) fn kill(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let by_address = cx.args.len() == 3;
    let filter = if by_address {
        Filter::by_address(&cx.args[2])
    } else {
        Filter::parse(cx.args.skip(2))?
    };
    let clients = &cx.engine.clients;
    let candidates = match filter.id {
        Some(id) => clients.find(id).into_iter().collect(),
        None => clients.all(),
    };
    let (me, now_ns) = (cx.client.id(), cx.unit.monotonic_ns());
    let mut killed = 0;
    for record in candidates {
        if !filter.matches(&record, me, now_ns) {
            continue;
        }
        if record.id() == me {
            // It is owed this reply.
            clients.retire(&record);
            cx.client.close_after_reply();
            killed += 1;
        } else if clients.kill(&record) {
            cx.worker.actions.push(Action::Attend(record));
            killed += 1;
        }
    }
    match killed {
        0 if by_address => return Err(CommandError::Text("ERR No such client")),
        _ if by_address => cx.reply.ok(),
        _ => cx.reply.integer(killed),
    }
    Ok(())
}

/// Who is only paused cannot be unblocked.
pub(super) fn unblock(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let with_error = match cx.args.get(3) {
        _ if cx.args.len() > 4 => return Err(too_many(&cx.args[1])),
        Some(reason) if !is(reason, "TIMEOUT") && !is(reason, "ERROR") => {
            return Err(CommandError::Text(
                "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR",
            ));
        }
        reason => reason.is_some_and(|reason| is(reason, "ERROR")),
    };
    let id = u64::try_from(integer(&cx.args[2])?).unwrap_or_default();
    let found = cx.engine.clients.find(id);
    let unblocked = found.filter(|record| record.unblock(with_error));
    cx.reply.integer(i64::from(unblocked.is_some()));
    let attend = unblocked.map(Action::Attend);
    cx.worker.actions.extend(attend);
    Ok(())
}
