//! One command's row.

use smallvec::SmallVec;
use weft_resp::Args;

use super::args::Argument;
use super::flags::{Categories, Flags, KeyFlags};
use super::keys::{Begin, Find, FoundKeys, KeySpec, KeysError};
use crate::dispatch::Context;
use crate::error::CommandError;

/// What runs when the command is called: on latched keys, recording what it did in the context's unit.
pub type Handler = fn(&mut Context<'_, '_>) -> Result<(), CommandError>;

/// Everything Weft knows of a command.
#[derive(Clone, Copy, Debug)]
pub struct CommandRow {
    /// Lower case; a subcommand's own word.
    pub name: &'static str,
    /// The number of arguments with the name; negative: at least so many.
    pub arity: i32,
    /// What dispatch must know.
    pub flags: Flags,
    /// ACL categories that do not follow from the flags.
    pub categories: Categories,
    /// Where its keys stand.
    pub keys: &'static [KeySpec],
    /// Finds the keys, for commands whose specifications do not find exactly those that it uses.
    pub key_finder: Option<fn(Args<'_>) -> FoundKeys>,
    /// Whether these arguments let it look at keys that it does not name, so that it needs the whole keyspace.
    pub needs_all: Option<fn(Args<'_>) -> bool>,
    /// What is really done with the keys, for commands whose arguments decide it.
    pub key_flags: Option<fn(Args<'_>) -> KeyFlags>,
    /// Hints for cluster clients and proxies, in Redis's vocabulary.
    pub tips: &'static [&'static str],
    /// The group it is documented in.
    pub group: &'static str,
    /// The version of Redis that brought it.
    pub since: &'static str,
    /// The time it takes.
    pub complexity: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Version and change, oldest first.
    pub history: &'static [(&'static str, &'static str)],
    /// Since when something else should be used.
    pub deprecated: Option<Deprecation>,
    /// Meant for the system's own use rather than for applications.
    pub system: bool,
    /// The arguments' syntax.
    pub arguments: &'static [Argument],
    /// The subcommands of a container.
    pub subcommands: &'static [CommandRow],
    /// Which arguments are secrets: neither MONITOR nor the slow log shows them.
    pub secrets: Option<fn(Args<'_>) -> Secrets>,
    /// What runs.
    pub handler: Handler,
}

/// The positions of a command's arguments that are secrets, in ascending order.
pub type Secrets = SmallVec<[usize; 4]>;

/// What is shown in the place of a secret.
pub const REDACTED: &[u8] = b"(redacted)";

/// A deprecated command's notice.
#[derive(Clone, Copy, Debug)]
pub struct Deprecation {
    /// The version that deprecated it.
    pub since: &'static str,
    /// What to use instead.
    pub replaced_by: &'static str,
}

impl CommandRow {
    /// A row to take unnamed fields from.
    pub const DEFAULT: Self = Self {
        name: "",
        arity: 0,
        flags: Flags::NONE,
        categories: Categories::NONE,
        keys: &[],
        key_finder: None,
        needs_all: None,
        key_flags: None,
        tips: &[],
        group: "",
        since: "",
        complexity: "",
        summary: "",
        history: &[],
        deprecated: None,
        system: false,
        arguments: &[],
        subcommands: &[],
        secrets: None,
        handler: |_| Err(CommandError::Syntax),
    };

    /// Whether `count` arguments, the name included, are as many as the command takes.
    #[must_use]
    pub const fn accepts(&self, count: usize) -> bool {
        let wanted = self.arity.unsigned_abs() as usize;
        if self.arity >= 0 {
            count == wanted
        } else {
            count >= wanted
        }
    }

    /// The positions of the arguments that are secrets.
    pub(crate) fn secrets_among(&self, args: Args<'_>) -> Secrets {
        self.secrets.map(|find| find(args)).unwrap_or_default()
    }

    /// The command's keys among its arguments.
    ///
    /// # Errors
    /// If a number of keys among the arguments is wrong.
    pub fn keys_of(&self, args: Args<'_>) -> Result<FoundKeys, KeysError> {
        if let Some(find) = self.key_finder {
            return Ok(find(args));
        }
        let mut found = SmallVec::new();
        for spec in self.keys {
            spec.extract(args, &mut found)?;
        }
        if let Some(flags) = self.key_flags.map(|decide| decide(args)) {
            found.iter_mut().for_each(|key| key.flags = flags);
        }
        Ok(found)
    }

    /// The argument that holds the command's only key, if it has just one in a fixed place.
    #[must_use]
    pub const fn single_key(&self) -> Option<usize> {
        match self.keys {
            [
                KeySpec {
                    begin: Begin::Index(at),
                    find: Find::Range { last: 0, .. },
                    ..
                },
            ] => Some(*at as usize),
            _ => None,
        }
    }

    /// First key, last key and step, as COMMAND INFO shows them: of all keys in fixed places together; zeros for a command
    /// without any.
    #[must_use]
    pub fn key_range(&self) -> (i32, i32, i32) {
        let fixed = |spec: &KeySpec| match (spec.begin, spec.find) {
            (Begin::Index(first), Find::Range { last, step, .. }) => {
                Some((first, if last >= 0 { first + last } else { last }, step))
            }
            _ => None,
        };
        let join = |one: (i32, i32, i32), other: (i32, i32, i32)| {
            let last = match (one.1, other.1) {
                (last, _) | (_, last) if last < 0 => last,
                (one, other) => one.max(other),
            };
            (one.0.min(other.0), last, one.2.max(other.2))
        };
        self.keys
            .iter()
            .filter_map(fixed)
            .reduce(join)
            .unwrap_or((0, 0, 0))
    }

    /// All ACL categories: those of the row and those that follow from its flags.
    #[must_use]
    pub fn all_categories(&self) -> Categories {
        let mut all = self.categories;
        let mut implied = |flag, category| {
            if self.flags.contains(flag) {
                all = all | category;
            }
        };
        implied(Flags::WRITE, Categories::WRITE);
        implied(Flags::ADMIN, Categories::ADMIN | Categories::DANGEROUS);
        implied(Flags::PUBSUB, Categories::PUBSUB);
        implied(Flags::FAST, Categories::FAST);
        implied(Flags::BLOCKING, Categories::BLOCKING);
        if self.flags.contains(Flags::READONLY) && !self.categories.contains(Categories::SCRIPTING)
        {
            all = all | Categories::READ;
        }
        if all.contains(Categories::FAST) {
            all
        } else {
            all | Categories::SLOW
        }
    }

    /// The subcommand of that name, in any letter case.
    #[must_use]
    pub fn subcommand(&self, name: &[u8]) -> Option<&'static CommandRow> {
        self.subcommands
            .iter()
            .find(|row| row.name.as_bytes().eq_ignore_ascii_case(name))
    }
}
