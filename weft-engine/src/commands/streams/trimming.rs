//! How XADD and XTRIM say what else to remove, and what comes of it.

use weft_data::stream::{Bound, Id, NodeLimit, References, Stream, Trim};
use weft_resp::Args;

use super::super::options::{integer, is};
use super::{id_argument, number_argument, strict_id};
use crate::dispatch::{Context, Key};
use crate::error::CommandError;

/// What the options of XADD and XTRIM say.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options {
    pub(super) make_no_stream: bool,
    bound: Option<Bound>,
    is_approximate: bool,
    limit: Option<u64>,
    references: Option<References>,
}

impl Options {
    /// Reads options from argument 2 on, and says where they end: XTRIM has nothing else, XADD goes on with an id.
    pub(super) fn parse(args: Args<'_>, is_xadd: bool) -> Result<(Self, usize), CommandError> {
        let mut options = Self::default();
        let mut at = 2;
        while let Some(word) = args.get(at) {
            let has_more = at + 1 < args.len();
            if (is(word, "MAXLEN") || is(word, "MINID")) && has_more {
                if options.bound.is_some() {
                    return Err(CommandError::Text(
                        "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
                    ));
                }
                at = options.read_bound(args, at)?;
            } else if is(word, "LIMIT") && has_more {
                let limit = integer(&args[at + 1])?;
                let limit = u64::try_from(limit);
                options.limit = Some(
                    limit
                        .map_err(|_| CommandError::Text("ERR The LIMIT argument must be >= 0."))?,
                );
                at += 2;
            } else if is_xadd && is(word, "NOMKSTREAM") {
                options.make_no_stream = true;
                at += 1;
            } else if options.references.is_none()
                && let Some(references) = references(word)
            {
                options.references = Some(references);
                at += 1;
            } else if is_xadd {
                break;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok((options, at))
    }

    /// Reads `MAXLEN|MINID [=|~] threshold`, and says where it ends.
    fn read_bound(&mut self, args: Args<'_>, at: usize) -> Result<usize, CommandError> {
        let mut next = at + 1;
        if next + 1 < args.len() && matches!(&args[next], b"~" | b"=") {
            self.is_approximate = &args[next] == b"~";
            next += 1;
        }
        let threshold = &args[next];
        self.bound = Some(if is(&args[at], "MAXLEN") {
            let most = u64::try_from(integer(threshold)?);
            Bound::Length(
                most.map_err(|_| CommandError::Text("ERR The MAXLEN argument must be >= 0."))?,
            )
        } else {
            Bound::Id(strict_id(threshold, 0)?)
        });
        Ok(next + 1)
    }

    /// Whether what they say goes together.
    pub(super) fn check(&self, is_xadd: bool) -> Result<(), CommandError> {
        let refused = match (self.bound, self.limit) {
            (None, Some(1..)) => {
                "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"
            }
            (None, _) if !is_xadd => {
                "ERR syntax error, XTRIM must be called with a trimming strategy"
            }
            (_, Some(_)) if !self.is_approximate => {
                "ERR syntax error, LIMIT cannot be used without the special ~ option"
            }
            _ => return Ok(()),
        };
        Err(CommandError::Text(refused))
    }

    /// What is to be removed, if anything.
    pub(super) fn trim(&self, node_entries: u64) -> Option<Trim> {
        /// Nodes that a call removes at most unless it says so, and the bounds of how many entries that may be.
        const NODES_MAX: u64 = 100;
        const ENTRIES_MAX: u64 = 1_000_000;
        const ENTRIES_IF_UNBOUNDED: u64 = 10_000;
        let limit = match self.limit {
            Some(0) => None,
            Some(limit) => Some(limit),
            None if node_entries == 0 => Some(ENTRIES_IF_UNBOUNDED),
            None => Some(node_entries.saturating_mul(NODES_MAX).min(ENTRIES_MAX)),
        };
        Some(Trim {
            bound: self.bound?,
            approximate: self.is_approximate,
            limit: limit.filter(|_| self.is_approximate),
            references: self.references.unwrap_or_default(),
        })
    }
}

/// What a word says about entries that groups need.
pub(super) fn references(word: &[u8]) -> Option<References> {
    if is(word, "KEEPREF") {
        Some(References::Keep)
    } else if is(word, "DELREF") {
        Some(References::Delete)
    } else if is(word, "ACKED") {
        Some(References::Acked)
    } else {
        None
    }
}

/// What came of a trim.
#[derive(Clone, Copy)]
pub(super) struct Trimmed {
    pub(super) removed: u64,
    left: u64,
}

/// Trims a stream that is being changed.
pub(super) fn trim(stream: &mut Stream, trim: Trim) -> Trimmed {
    Trimmed {
        removed: stream.trim(trim, |_: Id| ()),
        left: stream.len() as u64,
    }
}

impl Context<'_, '_> {
    pub(super) fn stream_node_limit(&self) -> NodeLimit {
        let settings = self.worker.settings();
        NodeLimit::new(
            settings.stream_node_max_bytes(),
            settings.stream_node_max_entries(),
        )
    }

    /// Records what a trim did, by how much it left rather than by how it was asked for.
    pub(super) fn record_trim(&mut self, key: Key<'_>, trim: Trim, trimmed: Trimmed) {
        self.unit.effect_with(|| {
            let mut arguments = vec![b"XTRIM"[..].into(), key.name.into()];
            // What is left of a trim that spares entries depends on these, which are the same wherever this is replayed.
            let bound = match trim.references {
                References::Acked => trim.bound,
                _ => Bound::Length(trimmed.left),
            };
            match bound {
                Bound::Length(most) => {
                    arguments.extend([
                        b"MAXLEN"[..].into(),
                        b"="[..].into(),
                        number_argument(most),
                    ]);
                }
                Bound::Id(least) => {
                    arguments.extend([b"MINID"[..].into(), b"="[..].into(), id_argument(least)]);
                }
            }
            match trim.references {
                References::Keep => {}
                References::Delete => arguments.push(b"DELREF"[..].into()),
                References::Acked => arguments.push(b"ACKED"[..].into()),
            }
            arguments
        });
    }
}
