//! Sets of named bits: command flags, ACL categories and key flags, with the names and the order clients see.

/// Declares a set of named bits. The names are what COMMAND prints, in the order it prints them.
macro_rules! bit_set {
    ($(#[$doc:meta])* $set:ident: $word:ty { $($(#[$bit_doc:meta])* $bit:ident = $position:literal, $name:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $set($word);

        impl $set {
            /// The empty set.
            pub const NONE: Self = Self(0);
            $($(#[$bit_doc])* pub const $bit: Self = Self(1 << $position);)*
            const NAMES: &'static [(Self, &'static str)] = &[$((Self::$bit, $name)),*];

            /// This set and the other together.
            #[must_use]
            pub const fn with(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// Whether all bits of `other` are in this set.
            #[must_use]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// The names of the bits in this set, in the order clients see them.
            pub fn names(self) -> impl Iterator<Item = &'static str> {
                Self::NAMES.iter().filter(move |(bit, name)| self.contains(*bit) && !name.is_empty()).map(|(_, name)| *name)
            }

            /// The bit of that name, in any letter case.
            #[must_use]
            pub fn by_name(name: &[u8]) -> Option<Self> {
                let named = |(_, own): &&(Self, &str)| !own.is_empty() && own.as_bytes().eq_ignore_ascii_case(name);
                Self::NAMES.iter().find(named).map(|(bit, _)| *bit)
            }
        }

        impl std::ops::BitOr for $set {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                self.with(other)
            }
        }
    };
}

bit_set! {
    /// What dispatch and clients must know of a command before running it.
    Flags: u32 {
        /// May change the data set.
        WRITE = 0, "write";
        /// Only reads the data set.
        READONLY = 1, "readonly";
        /// May make the data set larger: refused when memory is short.
        DENY_OOM = 2, "denyoom";
        /// For administrators.
        ADMIN = 4, "admin";
        /// Publishes or subscribes.
        PUBSUB = 5, "pubsub";
        /// Not allowed in scripts.
        NO_SCRIPT = 6, "noscript";
        /// May park its client.
        BLOCKING = 7, "blocking";
        /// Runs while the data set is being loaded.
        LOADING = 8, "loading";
        /// Runs on a replica whose link is down.
        STALE = 9, "stale";
        /// Not shown to MONITOR.
        SKIP_MONITOR = 10, "skip_monitor";
        /// Not entered into the slow log, since its arguments are secrets.
        SKIP_SLOWLOG = 11, "skip_slowlog";
        /// Implies ASKING in a cluster.
        ASKING = 12, "asking";
        /// Constant or logarithmic time.
        FAST = 13, "fast";
        /// Runs before authentication.
        NO_AUTH = 14, "no_auth";
        /// May replicate although only read from.
        MAY_REPLICATE = 15, "may_replicate";
        /// Not allowed between MULTI and EXEC.
        NO_MULTI = 16, "no_multi";
        /// Its keys are not all found by first, last and step.
        MOVABLE_KEYS = 17, "movablekeys";
        /// Runs while another client's script is busy.
        ALLOW_BUSY = 18, "allow_busy";
        /// May be called without any key.
        NO_MANDATORY_KEYS = 19, "no_mandatory_keys";
        /// Needs the whole keyspace alone.
        EXCLUSIVE = 24, "";
        /// Takes constant time if its arguments are short, although Redis does not call it fast.
        BRIEF = 25, "";
        /// Runs at once even between MULTI and EXEC.
        AT_ONCE = 26, "";
        /// Runs what was queued.
        RUNS_QUEUE = 27, "";
        /// Looks at shards one after the other: as part of a transaction it needs the whole keyspace alone.
        WALKS = 28, "";
    }
}

bit_set! {
    /// ACL categories, named without their `@`.
    Categories: u32 {
        /// Keys, databases and expiry, whatever the type.
        KEYSPACE = 0, "keyspace";
        /// Reads data.
        READ = 1, "read";
        /// Writes data.
        WRITE = 2, "write";
        /// Sets.
        SET = 3, "set";
        /// Sorted sets.
        SORTED_SET = 4, "sortedset";
        /// Lists.
        LIST = 5, "list";
        /// Hashes.
        HASH = 6, "hash";
        /// Strings.
        STRING = 7, "string";
        /// Bitmaps.
        BITMAP = 8, "bitmap";
        /// HyperLogLogs.
        HYPERLOGLOG = 9, "hyperloglog";
        /// Geo.
        GEO = 10, "geo";
        /// Streams.
        STREAM = 11, "stream";
        /// Messages.
        PUBSUB = 12, "pubsub";
        /// For administrators.
        ADMIN = 13, "admin";
        /// Constant or logarithmic time.
        FAST = 14, "fast";
        /// Everything else.
        SLOW = 15, "slow";
        /// May park its client.
        BLOCKING = 16, "blocking";
        /// Can harm others.
        DANGEROUS = 17, "dangerous";
        /// The connection itself.
        CONNECTION = 18, "connection";
        /// Transactions.
        TRANSACTION = 19, "transaction";
        /// Scripts and functions.
        SCRIPTING = 20, "scripting";
    }
}

bit_set! {
    /// What a command does with the keys of one key specification.
    KeyFlags: u32 {
        /// Reads the value, leaves it as it is.
        RO = 0, "RO";
        /// Reads and changes the value.
        RW = 1, "RW";
        /// Overwrites the value.
        OW = 2, "OW";
        /// Removes the key.
        RM = 3, "RM";
        /// Returns, copies or uses the value's data.
        ACCESS = 4, "access";
        /// Changes the value's data.
        UPDATE = 5, "update";
        /// Adds data.
        INSERT = 6, "insert";
        /// Removes data.
        DELETE = 7, "delete";
        /// Looks like a key, is none (a channel, say).
        NOT_KEY = 8, "not_key";
        /// The specification may miss some keys.
        INCOMPLETE = 9, "incomplete";
        /// What is done depends on the arguments.
        VARIABLE = 10, "variable_flags";
    }
}
