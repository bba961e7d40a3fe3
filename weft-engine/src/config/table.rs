//! The parameter table: one row for every parameter that stock Redis 6.2 to 8.2 and Valkey 9.1 configuration files know.
//!
//! Owns names, aliases, kinds, bounds, defaults, mutability, stage and the sentence for the reference page. Everything else
//! about configuration is derived from these rows. It does not know how values are parsed, stored or applied.
//!
//! Names, bounds and defaults are those that `CONFIG GET` and the error texts of Redis 8.2.3 show; rows marked `foreign`
//! exist only in Valkey 9.1 and answer to their literal name, never to a pattern.

use super::kind::{self, Kind, bytes, choice, choice_also, integer, signed_bytes, size};

/// One row: everything the server knows about a parameter.
pub struct Parameter {
    /// The current name, in lower case.
    pub name: &'static str,
    /// Older spellings that `CONFIG GET` patterns also answer.
    pub aliases: &'static [&'static str],
    /// Spellings of other servers: accepted everywhere, never listed by a pattern.
    pub foreign_aliases: &'static [&'static str],
    /// How values are written, bounded and shown.
    pub kind: Kind,
    /// The default, in the syntax of a configuration file.
    pub default: &'static str,
    /// Whether `CONFIG SET` may change it.
    pub access: Access,
    /// Whether a pattern leaves it out of `CONFIG GET`.
    pub hidden: bool,
    /// Whether its value must never reach a log, an error or a debug print.
    pub sensitive: bool,
    /// How much of it is built.
    pub stage: Stage,
    /// What it does, in one sentence.
    pub summary: &'static str,
}

/// Whether a parameter may change while the server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// `CONFIG SET` changes it.
    Mutable,
    /// Fixed at start.
    Immutable,
    /// `CONFIG SET` changes it only where `enable-protected-configs` allows.
    Protected,
}

/// How much of a parameter is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It does what its summary says.
    Live,
    /// There is nothing for it to switch: the text says what is always so.
    Moot(&'static str),
    /// It is kept and returned, and has no effect yet.
    Stored,
    /// Only its default is accepted; the text says why.
    Refused(&'static str),
}

const fn row(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    summary: &'static str,
) -> Parameter {
    Parameter {
        name,
        aliases: &[],
        foreign_aliases: &[],
        kind,
        default,
        access: Access::Mutable,
        hidden: false,
        sensitive: false,
        stage: Stage::Stored,
        summary,
    }
}

impl Parameter {
    const fn alias(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    const fn foreign_alias(mut self, aliases: &'static [&'static str]) -> Self {
        self.foreign_aliases = aliases;
        self
    }

    const fn immutable(mut self) -> Self {
        self.access = Access::Immutable;
        self
    }

    const fn protected(mut self) -> Self {
        self.access = Access::Protected;
        self
    }

    const fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    /// A parameter that only Valkey has.
    const fn foreign(self) -> Self {
        self.hidden()
    }

    const fn sensitive(mut self) -> Self {
        self.sensitive = true;
        self
    }

    const fn live(mut self) -> Self {
        self.stage = Stage::Live;
        self
    }

    const fn moot(mut self, because: &'static str) -> Self {
        self.stage = Stage::Moot(because);
        self
    }

    const fn refused(mut self, because: &'static str) -> Self {
        self.stage = Stage::Refused(because);
        self
    }
}

macro_rules! rows {
    ($($id:ident = $row:expr;)*) => {
        /// Names a row of the table; the row's `summary` says what the parameter does.
        #[allow(missing_docs)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum ParameterId { $($id),* }

        impl ParameterId {
            /// Every id, in table order.
            pub const ALL: &'static [ParameterId] = &[$(ParameterId::$id),*];
        }

        static PARAMETERS: &[Parameter] = &[$($row),*];
    };
}

impl ParameterId {
    /// The row.
    pub fn parameter(self) -> &'static Parameter {
        &PARAMETERS[self as usize]
    }

    /// The row's current name.
    pub fn name(self) -> &'static str {
        self.parameter().name
    }

    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

/// Lines that old configuration files may hold and that mean nothing any more: accepted with one argument, not kept.
pub const RETIRED: &[&str] = &[
    "list-max-ziplist-entries",
    "list-max-ziplist-value",
    "lua-replicate-commands",
    "gopher-enabled",
    "events-per-io-thread",
];

/// Lines that are not parameters and that cannot be honoured yet: name, fewest arguments, why.
pub(super) const REFUSED_DIRECTIVES: &[(&str, usize, &str)] = &[
    ("user", 1, USER_REFUSED),
    (
        "loadmodule",
        1,
        "modules are not available, so the line cannot be honoured",
    ),
    (
        "rename-command",
        2,
        "renaming commands is not available yet, so the line cannot be honoured",
    ),
];

/// Why a `user` line is refused that does not say what `requirepass` says anyway.
pub(super) const USER_REFUSED: &str =
    "access control lists are not available yet, so the line cannot be honoured";

const I32: i64 = i32::MAX as i64;
const I64: i64 = i64::MAX;
const YES_NO_LOCAL: &[&str] = &["no", "yes", "local"];

rows! {
    // Network and sessions.
    Bind = row("bind", Kind::Addresses, "* -::*", "Addresses to listen on; a leading `-` makes one optional.").live();
    BindSourceAddr = row("bind-source-addr", Kind::NullableText, "", "Local address for outgoing connections to a primary and to cluster nodes.");
    Port = row("port", integer(0, 65535), "6379", "TCP port; 0 turns TCP off.").live();
    TlsPort = row("tls-port", integer(0, 65535), "0", "TCP port for TLS; 0 turns it off.")
        .refused("TLS is not available yet; leave tls-port at 0");
    Unixsocket = row("unixsocket", Kind::NullableText, "", "Path of a Unix socket to listen on.").immutable().live();
    Unixsocketperm = row("unixsocketperm", Kind::Octal { max: 0o777 }, "0", "Mode of the Unix socket, in octal; 0 leaves the umask's choice.").immutable().live();
    Unixsocketgroup = row("unixsocketgroup", Kind::NullableText, "", "Group that owns the Unix socket.").immutable().foreign().live();
    TcpBacklog = row("tcp-backlog", integer(0, I32), "511", "Length of the queue of connections that wait to be accepted.").immutable().live();
    TcpKeepalive = row("tcp-keepalive", integer(0, I32), "300", "Seconds of silence before the kernel probes a peer; 0 turns probing off.").live();
    Timeout = row("timeout", integer(0, I32), "0", "Seconds after which an idle client is disconnected; 0 never.").live();
    ProtectedMode = row("protected-mode", Kind::Bool, "yes", "Whether only local clients may talk to a server without a password.").live();
    Maxclients = row("maxclients", size(1, u32::MAX as i64), "10000", "How many clients may be connected at a time.").live();
    MaxNewConnectionsPerCycle = row("max-new-connections-per-cycle", size(1, 1000), "10", "How many connections one turn of the event loop accepts.")
        .moot("connections are accepted by a thread of its own, which holds up no request");
    MaxNewTlsConnectionsPerCycle = row("max-new-tls-connections-per-cycle", size(1, 1000), "1", "How many TLS connections one turn of the event loop accepts.");
    SocketMarkId = row("socket-mark-id", size(0, u32::MAX as i64), "0", "Mark that the kernel puts on the packets of listening sockets.").immutable().live();
    Mptcp = row("mptcp", Kind::Bool, "no", "Whether listeners accept multipath TCP.").immutable().foreign().live();
    ClientQueryBufferLimit = row("client-query-buffer-limit", bytes(1 << 20, I64), "1gb", "How many bytes of unfinished requests a client may have pending.").live();
    ProtoMaxBulkLen = row("proto-max-bulk-len", signed_bytes(1 << 20, I64), "512mb", "Longest single argument a request may carry.").live();
    ClientOutputBufferLimit = row("client-output-buffer-limit", Kind::OutputLimits, "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
        "Per class of client: bytes of unsent replies that disconnect it at once, and bytes that do so after so many seconds.").live();
    TrackingTableMaxKeys = row("tracking-table-max-keys", size(0, I64), "1000000", "How many keys client-side caching remembers before it invalidates early.");
    PrefetchBatchMaxSize = row("prefetch-batch-max-size", integer(0, 128), "16", "How many keys of queued requests are looked up ahead of execution.").hidden()
        .moot("up to 32 queued requests are looked up ahead together");
    RdmaBind = row("rdma-bind", Kind::Addresses, "", "Addresses to listen on over RDMA.").foreign();
    RdmaPort = row("rdma-port", integer(0, 65535), "0", "RDMA port; 0 turns it off.").foreign();
    RdmaCompletionVector = row("rdma-completion-vector", integer(-1, 1024), "-1", "Completion vector for RDMA; -1 picks one.").immutable().foreign();
    RdmaRxSize = row("rdma-rx-size", integer(65536, 16 << 20), "1048576", "Bytes of an RDMA receive buffer.").immutable().foreign();

    // Passwords and access.
    Requirepass = row("requirepass", Kind::Secret, "", "Password of the default user; empty for none.").sensitive().live();
    Aclfile = row("aclfile", Kind::Text, "", "File that access control lists are kept in.").immutable()
        .refused("access control lists are not available yet; remove the line");
    AcllogMaxLen = row("acllog-max-len", integer(0, I64), "128", "How many refused commands and logins ACL LOG keeps.");
    AclPubsubDefault = row("acl-pubsub-default", choice(&["allchannels", "resetchannels"]), "resetchannels", "Channels that a new user may use.");
    EnableProtectedConfigs = row("enable-protected-configs", choice(YES_NO_LOCAL), "no", "Whether CONFIG SET may change protected parameters, for all or for local clients.").immutable().live();
    EnableDebugCommand = row("enable-debug-command", choice(YES_NO_LOCAL), "no", "Whether DEBUG may be used, by all or by local clients.").immutable().live();
    EnableModuleCommand = row("enable-module-command", choice(YES_NO_LOCAL), "no", "Whether MODULE may be used, by all or by local clients.").immutable();

    // Process.
    Databases = row("databases", integer(1, I32), "16", "How many numbered databases there are.").immutable().live();
    Dir = row("dir", Kind::Text, "", "Working directory, where data files live.").protected().live();
    Daemonize = row("daemonize", Kind::Bool, "no", "Whether the server goes to the background.").immutable().live();
    Pidfile = row("pidfile", Kind::NullableText, "", "File that the process number is written to.").immutable().live();
    Logfile = row("logfile", Kind::Text, "", "Log file; empty for standard output.").immutable().live();
    Loglevel = row("loglevel", choice(&["debug", "verbose", "notice", "warning", "nothing"]), "notice", "Least important kind of message that is logged.").live();
    LogFormat = row("log-format", choice(&["legacy", "logfmt", "json"]), "legacy", "Layout of log lines.").foreign().live();
    LogTimestampFormat = row("log-timestamp-format", choice(&["legacy", "iso8601", "milliseconds"]), "legacy", "How log lines show the time.").foreign().live();
    HideUserDataFromLog = row("hide-user-data-from-log", Kind::Bool, "no", "Whether keys and arguments are kept out of the log.")
        .moot("no line of the log shows keys, arguments or values");
    SyslogEnabled = row("syslog-enabled", Kind::Bool, "no", "Whether messages also go to the system log.").immutable().live();
    SyslogIdent = row("syslog-ident", Kind::Text, "redis", "Name under which the system log lists the server.").immutable().live();
    SyslogFacility = row("syslog-facility", choice(&["user", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"]), "local0", "Facility of the system log.").immutable().live();
    Supervised = row("supervised", choice(&["upstart", "systemd", "auto", "no"]), "no", "Which supervisor is told that the server is ready.").immutable().live();
    AlwaysShowLogo = row("always-show-logo", Kind::Bool, "no", "Whether the start shows the logo outside a terminal too.").immutable().live();
    SetProcTitle = row("set-proc-title", Kind::Bool, "yes", "Whether the process title is replaced.").immutable().live();
    ProcTitleTemplate = row("proc-title-template", Kind::ProcTitle, "{title} {listen-addr} {server-mode}", "Text of the process title: `{title}`, `{listen-addr}`, `{server-mode}`, `{port}`, `{tls-port}`, `{unixsocket}` and `{config-file}` stand for what they name.").live();
    LocaleCollate = row("locale-collate", Kind::Text, "", "Locale by which SORT ALPHA would compare; Weft compares bytes.");
    Hz = row("hz", integer(0, I32), "10", "How often per second background work such as active expiry runs.").live();
    DynamicHz = row("dynamic-hz", Kind::Bool, "yes", "Whether background work runs more often when many clients are connected.").live();
    ActiveExpireEffort = row("active-expire-effort", integer(1, 10), "1", "How hard active expiry works to find keys that are due.").live();
    LazyexpireNestedArbitraryKeys = row("lazyexpire-nested-arbitrary-keys", Kind::Bool, "yes", "Whether commands that touch keys they do not name may delete expired ones.").hidden();
    IoThreads = row("io-threads", Kind::IoThreads { max: 1024 }, "auto", "Upper bound of worker threads; `auto` takes the CPUs that the process may use.").live();
    IoThreadsDoReads = row("io-threads-do-reads", Kind::Bool, "yes", "Whether I/O threads read requests too.").hidden()
        .moot("the worker that owns a connection always reads from it too");
    IoDriver = row("io-driver", choice(&["auto", "uring", "epoll"]), "auto", "How sockets are driven; `auto` takes io_uring where the kernel allows it, otherwise epoll.").hidden().immutable().live();
    IoThreadsAlwaysActive = row("io-threads-always-active", Kind::Bool, "no", "Whether I/O threads stay awake under light load.").foreign()
        .moot("workers are active as the load needs them");
    MinIoThreadsAvoidCopyReply = row("min-io-threads-avoid-copy-reply", integer(0, I32), "7", "Threads from which replies are sent without a copy.").foreign()
        .moot("strings above 64 KiB are sent without a copy");
    MinStringSizeAvoidCopyReply = row("min-string-size-avoid-copy-reply", integer(0, I32), "16384", "Bytes from which a string reply is sent without a copy.").foreign()
        .moot("strings above 64 KiB are sent without a copy");
    MinStringSizeAvoidCopyReplyThreaded = row("min-string-size-avoid-copy-reply-threaded", integer(0, I32), "65536", "The same bound while I/O threads are at work.").foreign()
        .moot("strings above 64 KiB are sent without a copy");
    ServerCpulist = row("server-cpulist", Kind::NullableText, "", "CPUs for the main and worker threads.").alias(&["server_cpulist"]).immutable().live();
    BioCpulist = row("bio-cpulist", Kind::NullableText, "", "CPUs for the threads that work in the background.").alias(&["bio_cpulist"]).immutable().live();
    AofRewriteCpulist = row("aof-rewrite-cpulist", Kind::NullableText, "", "CPUs for rewriting the append-only file.").alias(&["aof_rewrite_cpulist"]).immutable();
    BgsaveCpulist = row("bgsave-cpulist", Kind::NullableText, "", "CPUs for saving in the background.").alias(&["bgsave_cpulist"]).immutable();
    DisableThp = row("disable-thp", Kind::Bool, "yes", "Whether the process turns transparent huge pages off for itself.").immutable().live();
    OomScoreAdj = row("oom-score-adj", choice(&["no", "yes", "relative", "absolute"]), "no", "Whether the kernel is told which process to end first when memory runs out.").live();
    OomScoreAdjValues = row("oom-score-adj-values", Kind::OomScores, "0 200 800", "Scores for a primary, a replica and a background process.").live();
    JemallocBgThread = row("jemalloc-bg-thread", Kind::Bool, "yes", "Whether the allocator returns memory from a thread of its own.").live();
    IgnoreWarnings = row("ignore-warnings", Kind::Text, "", "Start-up checks whose failure does not stop the server.")
        .moot("no check of the machine stops the start");
    CrashLogEnabled = row("crash-log-enabled", Kind::Bool, "yes", "Whether a failed internal check writes a report to the log.").live();
    CrashMemcheckEnabled = row("crash-memcheck-enabled", Kind::Bool, "yes", "Whether a crash tests memory.");
    UseExitOnPanic = row("use-exit-on-panic", Kind::Bool, "no", "Whether a failed internal check exits instead of aborting.").hidden().live();
    WatchdogPeriod = row("watchdog-period", integer(0, I32), "0", "Milliseconds after which a stuck event loop is reported; 0 never.").hidden();
    ShutdownTimeout = row("shutdown-timeout", integer(0, I32), "10", "Seconds a shutdown waits for replicas that lag.");
    ShutdownOnSigint = row("shutdown-on-sigint", Kind::ShutdownFlags, "default", "How the interrupt signal shuts the server down.").live();
    ShutdownOnSigterm = row("shutdown-on-sigterm", Kind::ShutdownFlags, "default", "How the termination signal shuts the server down.").live();
    HashSeed = row("hash-seed", Kind::Text, "", "Fixed seed for the order of SCAN; empty for a random one, which is safer.").immutable().sensitive().foreign().live();
    AvailabilityZone = row("availability-zone", Kind::Text, "", "Zone name that INFO shows to clients.").foreign();
    DebugContext = row("debug-context", Kind::Text, "", "Free text shown in crash reports.").foreign().live();
    EnableDebugAssert = row("enable-debug-assert", Kind::Bool, "no", "Whether costly internal checks run.").immutable().foreign();
    ExtendedRedisCompatibility = row("extended-redis-compatibility", Kind::Bool, "no", "Whether the server names itself as Redis.").foreign()
        .moot("the server always answers as Redis does");
    ImportMode = row("import-mode", Kind::Bool, "no", "Whether expiry waits while another server's data is being loaded.").foreign();

    // Memory.
    Maxmemory = row("maxmemory", bytes(0, I64), "0", "Bytes of memory from which keys are evicted or writes refused; 0 for no bound.")
        .refused("eviction is not available yet; leave maxmemory at 0");
    MaxmemoryPolicy = row("maxmemory-policy", choice(&["volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl", "allkeys-lru", "allkeys-lfu", "allkeys-random", "noeviction"]), "noeviction", "Which keys go first when memory is short; with one of the `lfu` policies keys keep how often they were used instead of when.").live();
    MaxmemorySamples = row("maxmemory-samples", integer(1, 64), "5", "How many keys are compared to choose one to evict.");
    MaxmemoryEvictionTenacity = row("maxmemory-eviction-tenacity", integer(0, 100), "10", "How long eviction may hold up commands, from 0 to 100.");
    MaxmemoryClients = row("maxmemory-clients", Kind::MemoryOrPercent, "0", "Bytes, or percent of maxmemory, that all clients together may use.");
    LfuLogFactor = row("lfu-log-factor", integer(0, I32), "10", "How many accesses it takes to raise a key's frequency.").live();
    LfuDecayTime = row("lfu-decay-time", integer(0, I32), "1", "Minutes after which an unused key's frequency falls.").live();
    Activerehashing = row("activerehashing", Kind::Bool, "yes", "Whether tables grow in the background.")
        .moot("tables grow a small piece at a time, with the writes that need the room");
    Activedefrag = row("activedefrag", Kind::Bool, "no", "Whether memory is compacted while the server runs.");
    ActiveDefragIgnoreBytes = row("active-defrag-ignore-bytes", bytes(1, I64), "100mb", "Wasted bytes below which compaction does not start.");
    ActiveDefragThresholdLower = row("active-defrag-threshold-lower", integer(0, 1000), "10", "Percent of waste at which compaction starts.");
    ActiveDefragThresholdUpper = row("active-defrag-threshold-upper", integer(0, 1000), "100", "Percent of waste at which compaction works hardest.");
    ActiveDefragCycleMin = row("active-defrag-cycle-min", integer(1, 99), "1", "Least percent of CPU time for compaction.");
    ActiveDefragCycleMax = row("active-defrag-cycle-max", integer(1, 99), "25", "Most percent of CPU time for compaction.");
    ActiveDefragCycleUs = row("active-defrag-cycle-us", integer(0, 100_000), "500", "Microseconds of one step of compaction.").foreign();
    ActiveDefragMaxScanFields = row("active-defrag-max-scan-fields", integer(1, I64), "1000", "Elements of one value that compaction handles at once.");
    LazyfreeLazyEviction = row("lazyfree-lazy-eviction", Kind::Bool, "no", "Whether evicted values are freed in the background.")
        .moot("large values are always freed in the background");
    LazyfreeLazyExpire = row("lazyfree-lazy-expire", Kind::Bool, "no", "Whether expired values are freed in the background.")
        .moot("large values are always freed in the background");
    LazyfreeLazyServerDel = row("lazyfree-lazy-server-del", Kind::Bool, "no", "Whether overwritten values are freed in the background.")
        .moot("large values are always freed in the background");
    LazyfreeLazyUserDel = row("lazyfree-lazy-user-del", Kind::Bool, "no", "Whether DEL frees in the background, as UNLINK does.")
        .moot("large values are always freed in the background");
    LazyfreeLazyUserFlush = row("lazyfree-lazy-user-flush", Kind::Bool, "no", "Whether FLUSHALL and FLUSHDB free in the background unless told otherwise.")
        .moot("data is always freed in the background");

    // Values.
    HashMaxListpackEntries = row("hash-max-listpack-entries", size(0, I64), "512", "Most fields of a hash that is stored packed.").alias(&["hash-max-ziplist-entries"]).live();
    HashMaxListpackValue = row("hash-max-listpack-value", bytes(0, I64), "64", "Longest field or value of a hash that is stored packed.").alias(&["hash-max-ziplist-value"]).live();
    ListMaxListpackSize = row("list-max-listpack-size", integer(i32::MIN as i64, I32), "-2", "Size of a list's nodes: entries if positive, a class of bytes if negative.").alias(&["list-max-ziplist-size"]);
    ListCompressDepth = row("list-compress-depth", integer(0, I32), "0", "Nodes at each end of a list that stay uncompressed; 0 compresses none.");
    SetMaxIntsetEntries = row("set-max-intset-entries", size(0, I64), "512", "Most members of a set of integers that OBJECT ENCODING calls `intset`.").live();
    SetMaxListpackEntries = row("set-max-listpack-entries", size(0, I64), "128", "Most members of a set that OBJECT ENCODING calls `listpack`.").live();
    SetMaxListpackValue = row("set-max-listpack-value", size(0, I64), "64", "Longest member of a set that OBJECT ENCODING calls `listpack`.").live();
    ZsetMaxListpackEntries = row("zset-max-listpack-entries", size(0, I64), "128", "Most members of a sorted set that OBJECT ENCODING calls `listpack`.").alias(&["zset-max-ziplist-entries"]).live();
    ZsetMaxListpackValue = row("zset-max-listpack-value", bytes(0, I64), "64", "Longest member of a sorted set that OBJECT ENCODING calls `listpack`.").alias(&["zset-max-ziplist-value"]).live();
    HllSparseMaxBytes = row("hll-sparse-max-bytes", bytes(0, I64), "3000", "Bytes up to which a HyperLogLog stays in its sparse form.").live();
    StreamNodeMaxBytes = row("stream-node-max-bytes", bytes(0, I64), "4096", "Most bytes of a stream's node; 0 for no bound.").live();
    StreamNodeMaxEntries = row("stream-node-max-entries", integer(0, I64), "100", "Most entries of a stream's node; 0 for no bound.").live();
    SanitizeDumpPayload = row("sanitize-dump-payload", choice(&["no", "yes", "clients"]), "no", "Whether values of RESTORE and of dump files are checked in depth.");
    VsetForceSingleThreadedExecution = row("vset-force-single-threaded-execution", Kind::Bool, "no", "Whether vector set queries stay on one thread.");

    // Events, slow commands and latency.
    NotifyKeyspaceEvents = row("notify-keyspace-events", Kind::KeyspaceEvents, "", "Which changes of keys are published, one letter per class.");
    SlowlogLogSlowerThan = row("slowlog-log-slower-than", integer(-1, I64), "10000", "Microseconds from which a command is logged as slow; negative turns the log off.").foreign_alias(&["commandlog-execution-slower-than"]).live();
    SlowlogMaxLen = row("slowlog-max-len", integer(0, I64), "128", "How many slow commands are kept.").foreign_alias(&["commandlog-slow-execution-max-len"]).live();
    CommandlogRequestLargerThan = row("commandlog-request-larger-than", integer(-1, I64), "1048576", "Bytes from which a request is logged as large.").foreign();
    CommandlogLargeRequestMaxLen = row("commandlog-large-request-max-len", integer(0, I64), "128", "How many large requests are kept.").foreign();
    CommandlogReplyLargerThan = row("commandlog-reply-larger-than", integer(-1, I64), "1048576", "Bytes from which a reply is logged as large.").foreign();
    CommandlogLargeReplyMaxLen = row("commandlog-large-reply-max-len", integer(0, I64), "128", "How many large replies are kept.").foreign();
    LatencyMonitorThreshold = row("latency-monitor-threshold", integer(0, I64), "0", "Milliseconds from which LATENCY records an event; 0 never.").live();
    LatencyTracking = row("latency-tracking", Kind::Bool, "yes", "Whether a histogram of latency is kept per command.").live();
    LatencyTrackingInfoPercentiles = row("latency-tracking-info-percentiles", Kind::Percentiles, "50 99 99.9", "Percentiles that INFO shows per command.").live();

    // Scripts.
    BusyReplyThreshold = row("busy-reply-threshold", integer(0, I64), "5000", "Milliseconds after which a script makes the server answer BUSY.").alias(&["lua-time-limit"]);
    LuaEnableDeprecatedApi = row("lua-enable-deprecated-api", Kind::Bool, "no", "Whether scripts may use the old Lua functions.").immutable().hidden();
    LuaEnableInsecureApi = row("lua-enable-insecure-api", Kind::Bool, "no", "Whether scripts may use Lua functions that are no longer thought safe.").protected().foreign();

    // Dump files.
    Save = row("save", Kind::SavePoints, "", "Pairs of seconds and changes after which the data is saved.")
        .refused("saving is not available yet; use save \"\"");
    Dbfilename = row("dbfilename", Kind::FileName { empty: None, path: Some("dbfilename can't be a path, just a filename") }, "dump.rdb", "Name of the dump file.").protected();
    Rdbcompression = row("rdbcompression", Kind::Bool, "yes", "Whether long strings in dump files are compressed.");
    Rdbchecksum = row("rdbchecksum", Kind::Bool, "yes", "Whether dump files end in a checksum.").immutable();
    RdbDelSyncFiles = row("rdb-del-sync-files", Kind::Bool, "no", "Whether dump files made for replicas are deleted afterwards.");
    RdbSaveIncrementalFsync = row("rdb-save-incremental-fsync", Kind::Bool, "yes", "Whether saving flushes to disk as it goes.");
    RdbKeySaveDelay = row("rdb-key-save-delay", integer(i32::MIN as i64, I32), "0", "Microseconds to pause per saved key, for tests.").hidden();
    RdbVersionCheck = row("rdb-version-check", choice(&["strict", "relaxed"]), "strict", "Whether dump files of unknown versions are refused.").foreign();
    KeyLoadDelay = row("key-load-delay", integer(i32::MIN as i64, I32), "0", "Microseconds to pause per loaded key, for tests.").hidden();
    LoadingProcessEventsIntervalBytes = row("loading-process-events-interval-bytes", integer(1024, I32), "524288", "Bytes loaded between two looks at the network.").hidden();
    StopWritesOnBgsaveError = row("stop-writes-on-bgsave-error", Kind::Bool, "yes", "Whether writes are refused after a failed save.");

    // Append-only file.
    Appendonly = row("appendonly", Kind::Bool, "no", "Whether every change is appended to a file.")
        .refused("the append-only file is not available yet; use appendonly no");
    Appendfilename = row("appendfilename", Kind::FileName { empty: Some("appendfilename can't be empty"), path: Some("appendfilename can't be a path, just a filename") }, "appendonly.aof", "First part of the names of append-only files.").immutable();
    Appenddirname = row("appenddirname", Kind::FileName { empty: Some("appenddirname can't be empty"), path: Some("appenddirname can't be a path, just a dirname") }, "appendonlydir", "Directory of the append-only files.").immutable();
    Appendfsync = row("appendfsync", choice(&["everysec", "always", "no"]), "everysec", "When the append-only file is flushed to disk.");
    NoAppendfsyncOnRewrite = row("no-appendfsync-on-rewrite", Kind::Bool, "no", "Whether flushing pauses while a file is rewritten.");
    AutoAofRewritePercentage = row("auto-aof-rewrite-percentage", integer(0, I32), "100", "Percent of growth that triggers a rewrite; 0 never.");
    AutoAofRewriteMinSize = row("auto-aof-rewrite-min-size", signed_bytes(0, I64), "64mb", "Bytes below which no rewrite is triggered.");
    AofLoadTruncated = row("aof-load-truncated", Kind::Bool, "yes", "Whether a file that was cut off is loaded up to its last whole record.");
    AofUseRdbPreamble = row("aof-use-rdb-preamble", Kind::Bool, "yes", "Whether a rewritten file starts with a dump.");
    AofTimestampEnabled = row("aof-timestamp-enabled", Kind::Bool, "no", "Whether the file holds time marks.");
    AofRewriteIncrementalFsync = row("aof-rewrite-incremental-fsync", Kind::Bool, "yes", "Whether a rewrite flushes to disk as it goes.");
    AofDisableAutoGc = row("aof-disable-auto-gc", Kind::Bool, "no", "Whether files that are no longer needed are kept.").hidden();

    // Replication.
    Replicaof = row("replicaof", Kind::Primary, "", "Host and port of the primary to copy.").alias(&["slaveof"]).immutable()
        .refused("replication is not available yet; remove the line");
    Masterauth = row("masterauth", Kind::Secret, "", "Password for the primary.").foreign_alias(&["primaryauth"]).sensitive();
    Masteruser = row("masteruser", Kind::NullableText, "", "User name for the primary.").foreign_alias(&["primaryuser"]);
    ReplicaServeStaleData = row("replica-serve-stale-data", Kind::Bool, "yes", "Whether a replica answers while its primary is away.").alias(&["slave-serve-stale-data"]);
    ReplicaReadOnly = row("replica-read-only", Kind::Bool, "yes", "Whether a replica refuses writes of clients.").alias(&["slave-read-only"]);
    ReplicaPriority = row("replica-priority", integer(0, I32), "100", "Rank of a replica when a new primary is chosen; 0 never.").alias(&["slave-priority"]);
    ReplicaAnnounced = row("replica-announced", Kind::Bool, "yes", "Whether Sentinel lists the replica.");
    ReplicaAnnounceIp = row("replica-announce-ip", Kind::NullableText, "", "Address under which a replica is reported.").alias(&["slave-announce-ip"]);
    ReplicaAnnouncePort = row("replica-announce-port", integer(0, 65535), "0", "Port under which a replica is reported.").alias(&["slave-announce-port"]);
    ReplicaIgnoreMaxmemory = row("replica-ignore-maxmemory", Kind::Bool, "yes", "Whether a replica leaves eviction to its primary.").alias(&["slave-ignore-maxmemory"]);
    ReplicaLazyFlush = row("replica-lazy-flush", Kind::Bool, "no", "Whether a replica frees its old data in the background.").alias(&["slave-lazy-flush"]);
    ReplicaIgnoreDiskWriteErrors = row("replica-ignore-disk-write-errors", Kind::Bool, "no", "Whether a replica goes on when it cannot write to disk.");
    ReplicaFullSyncBufferLimit = row("replica-full-sync-buffer-limit", signed_bytes(0, I64), "0", "Bytes of changes a replica buffers during a full copy; 0 takes the output limit.");
    MinReplicasToWrite = row("min-replicas-to-write", integer(0, I32), "0", "Replicas that must be in touch for writes to be accepted; 0 asks for none.").alias(&["min-slaves-to-write"]);
    MinReplicasMaxLag = row("min-replicas-max-lag", integer(0, I32), "10", "Seconds of silence after which a replica is out of touch.").alias(&["min-slaves-max-lag"]);
    ReplBacklogSize = row("repl-backlog-size", Kind::Integer { min: 1, max: I64, unit: kind::Unit::Memory, unsigned: false }, "1mb", "Bytes of recent changes kept for replicas that come back.");
    ReplBacklogTtl = row("repl-backlog-ttl", integer(0, I64), "3600", "Seconds without replicas after which those bytes are freed; 0 never.");
    ReplTimeout = row("repl-timeout", integer(1, I32), "60", "Seconds of silence that break a replication link.");
    ReplPingReplicaPeriod = row("repl-ping-replica-period", integer(1, I32), "10", "Seconds between two pings to replicas.").alias(&["repl-ping-slave-period"]);
    ReplDisableTcpNodelay = row("repl-disable-tcp-nodelay", Kind::Bool, "no", "Whether small packets to replicas are merged.");
    ReplDisklessSync = row("repl-diskless-sync", Kind::Bool, "yes", "Whether full copies go to replicas without a file on the primary.");
    ReplDisklessSyncDelay = row("repl-diskless-sync-delay", integer(0, I32), "5", "Seconds to wait for more replicas before such a copy.");
    ReplDisklessSyncMaxReplicas = row("repl-diskless-sync-max-replicas", integer(0, I32), "0", "Replicas that end the wait early; 0 never.");
    ReplDisklessLoad = row("repl-diskless-load", choice_also(&["disabled", "on-empty-db", "swapdb"], &["flush-before-load"]), "disabled", "Whether a replica loads a full copy without a file.");
    ReplRdbChannel = row("repl-rdb-channel", Kind::Bool, "yes", "Whether a full copy uses a connection of its own.").hidden();
    DualChannelReplicationEnabled = row("dual-channel-replication-enabled", Kind::Bool, "no", "Whether a full copy uses a connection of its own.").foreign();
    ReplMptcp = row("repl-mptcp", Kind::Bool, "no", "Whether replication uses multipath TCP.").immutable().foreign();
    PropagationErrorBehavior = row("propagation-error-behavior", choice(&["ignore", "panic", "panic-on-replicas"]), "ignore", "What happens when a replicated command fails.");

    // Cluster.
    ClusterEnabled = row("cluster-enabled", Kind::Bool, "no", "Whether the server is a cluster node.").immutable()
        .refused("cluster mode is not available yet; use cluster-enabled no");
    ClusterConfigFile = row("cluster-config-file", Kind::Text, "nodes.conf", "File that a node keeps its view of the cluster in.").immutable();
    ClusterPort = row("cluster-port", integer(0, 65535), "0", "Port of the cluster bus; 0 takes the client port plus 10000.").immutable();
    ClusterDatabases = row("cluster-databases", integer(1, I32), "1", "How many numbered databases there are in cluster mode.").immutable().foreign();
    ClusterNodeTimeout = row("cluster-node-timeout", integer(0, I64), "15000", "Milliseconds of silence after which a node is suspected.");
    ClusterPingInterval = row("cluster-ping-interval", integer(0, I64), "0", "Milliseconds between two pings on the cluster bus; 0 for the built-in choice.").hidden();
    ClusterAnnounceIp = row("cluster-announce-ip", Kind::NullableText, "", "Address under which a node is reported.");
    ClusterAnnouncePort = row("cluster-announce-port", integer(0, 65535), "0", "Port under which a node is reported.");
    ClusterAnnounceTlsPort = row("cluster-announce-tls-port", integer(0, 65535), "0", "TLS port under which a node is reported.");
    ClusterAnnounceBusPort = row("cluster-announce-bus-port", integer(0, 65535), "0", "Bus port under which a node is reported.");
    ClusterAnnounceHostname = row("cluster-announce-hostname", Kind::HostName, "", "Host name under which a node is reported.");
    ClusterAnnounceHumanNodename = row("cluster-announce-human-nodename", Kind::NodeName, "", "Name of the node in log lines.");
    ClusterAnnounceClientIpv4 = row("cluster-announce-client-ipv4", Kind::NullableText, "", "IPv4 address that clients are told.").foreign();
    ClusterAnnounceClientIpv6 = row("cluster-announce-client-ipv6", Kind::NullableText, "", "IPv6 address that clients are told.").foreign();
    ClusterAnnounceClientPort = row("cluster-announce-client-port", integer(0, 65535), "0", "Port that clients are told.").foreign();
    ClusterAnnounceClientTlsPort = row("cluster-announce-client-tls-port", integer(0, 65535), "0", "TLS port that clients are told.").foreign();
    ClusterPreferredEndpointType = row("cluster-preferred-endpoint-type", choice(&["ip", "hostname", "unknown-endpoint"]), "ip", "Which form of address redirections name.");
    ClusterReplicaValidityFactor = row("cluster-replica-validity-factor", integer(0, I32), "10", "How far behind a replica may be and still take over; 0 any.").alias(&["cluster-slave-validity-factor"]);
    ClusterReplicaNoFailover = row("cluster-replica-no-failover", Kind::Bool, "no", "Whether a replica never takes over by itself.").alias(&["cluster-slave-no-failover"]);
    ClusterMigrationBarrier = row("cluster-migration-barrier", integer(0, I32), "1", "Replicas a primary must keep before one moves to another.");
    ClusterAllowReplicaMigration = row("cluster-allow-replica-migration", Kind::Bool, "yes", "Whether replicas move to primaries that have none.");
    ClusterRequireFullCoverage = row("cluster-require-full-coverage", Kind::Bool, "yes", "Whether a node stops answering while some slot has no owner.");
    ClusterAllowReadsWhenDown = row("cluster-allow-reads-when-down", Kind::Bool, "no", "Whether reads are answered while the cluster is down.");
    ClusterAllowPubsubshardWhenDown = row("cluster-allow-pubsubshard-when-down", Kind::Bool, "yes", "Whether sharded channels work while the cluster is down.");
    ClusterLinkSendbufLimit = row("cluster-link-sendbuf-limit", bytes(0, I64), "0", "Unsent bytes that close a link of the cluster bus; 0 for no bound.");
    ClusterSlotStatsEnabled = row("cluster-slot-stats-enabled", Kind::Bool, "no", "Whether CPU and traffic are counted per slot.");
    ClusterCompatibilitySampleRatio = row("cluster-compatibility-sample-ratio", integer(0, 100), "0", "Percent of commands that are checked for use that a cluster would refuse.");
    ClusterBlacklistTtl = row("cluster-blacklist-ttl", integer(i64::MIN, I64), "60", "Seconds for which a forgotten node is not let in again.").foreign();
    ClusterConfigSaveBehavior = row("cluster-config-save-behavior", choice(&["sync", "best-effort"]), "sync", "Whether a node stops when it cannot save its view of the cluster.").foreign();
    ClusterManualFailoverTimeout = row("cluster-manual-failover-timeout", integer(1, I32), "5000", "Milliseconds that a requested failover may take.").foreign();
    ClusterMessageGossipPerc = row("cluster-message-gossip-perc", integer(1, 100), "10", "Percent of nodes that a bus message tells about.").foreign();
    ClusterSlotMigrationLogMaxLen = row("cluster-slot-migration-log-max-len", integer(0, I64), "1000", "How many finished slot migrations are remembered.").foreign();
    SlotMigrationMaxFailoverReplBytes = row("slot-migration-max-failover-repl-bytes", signed_bytes(-1, I64), "0", "Bytes in flight at which a slot changes its owner; -1 for no bound.").foreign();

    // TLS.
    TlsCertFile = row("tls-cert-file", Kind::NullableText, "", "File of the server's certificate.");
    TlsKeyFile = row("tls-key-file", Kind::NullableText, "", "File of the server's private key.");
    TlsKeyFilePass = row("tls-key-file-pass", Kind::NullableText, "", "Password of the private key.").sensitive();
    TlsClientCertFile = row("tls-client-cert-file", Kind::NullableText, "", "File of the certificate for outgoing connections.");
    TlsClientKeyFile = row("tls-client-key-file", Kind::NullableText, "", "File of the private key for outgoing connections.");
    TlsClientKeyFilePass = row("tls-client-key-file-pass", Kind::NullableText, "", "Password of the private key for outgoing connections.").sensitive();
    TlsDhParamsFile = row("tls-dh-params-file", Kind::NullableText, "", "File of Diffie-Hellman parameters.");
    TlsCaCertFile = row("tls-ca-cert-file", Kind::NullableText, "", "File of certificates that peers' certificates must lead to.");
    TlsCaCertDir = row("tls-ca-cert-dir", Kind::NullableText, "", "Directory of such certificates.");
    TlsAuthClients = row("tls-auth-clients", choice(&["no", "yes", "optional"]), "yes", "Whether clients must show a certificate.");
    TlsAuthClientsUser = row("tls-auth-clients-user", choice(&["CN", "URI", "off"]), "off", "Which field of a client's certificate names its user.").foreign();
    TlsAutoReloadInterval = row("tls-auto-reload-interval", integer(0, I32), "0", "Seconds between two looks for new certificates; 0 never.").foreign();
    TlsReplication = row("tls-replication", Kind::Bool, "no", "Whether replication uses TLS.");
    TlsCluster = row("tls-cluster", Kind::Bool, "no", "Whether the cluster bus uses TLS.");
    TlsProtocols = row("tls-protocols", Kind::NullableText, "", "Versions of TLS that are allowed; empty for the library's choice.");
    TlsCiphers = row("tls-ciphers", Kind::NullableText, "", "Ciphers for TLS 1.2 and older.");
    TlsCiphersuites = row("tls-ciphersuites", Kind::NullableText, "", "Cipher suites for TLS 1.3.");
    TlsPreferServerCiphers = row("tls-prefer-server-ciphers", Kind::Bool, "no", "Whether the server's order of ciphers decides.");
    TlsSessionCaching = row("tls-session-caching", Kind::Bool, "yes", "Whether TLS sessions can be resumed.");
    TlsSessionCacheSize = row("tls-session-cache-size", integer(0, I32), "20480", "How many TLS sessions are remembered; 0 for no bound.");
    TlsSessionCacheTimeout = row("tls-session-cache-timeout", integer(0, I32), "300", "Seconds for which a TLS session is remembered.");
}

/// Where the sample file begins a section: its first row, and its title. In table order.
pub(super) const SECTIONS: &[(ParameterId, &str)] = &[
    (ParameterId::Bind, "Network and clients"),
    (ParameterId::Requirepass, "Passwords and access"),
    (ParameterId::Databases, "The process"),
    (ParameterId::Maxmemory, "Memory"),
    (ParameterId::HashMaxListpackEntries, "Values"),
    (
        ParameterId::NotifyKeyspaceEvents,
        "Events, slow commands, latency",
    ),
    (ParameterId::BusyReplyThreshold, "Scripts"),
    (ParameterId::Save, "Dump files"),
    (ParameterId::Appendonly, "Append-only file"),
    (ParameterId::Replicaof, "Replication"),
    (ParameterId::ClusterEnabled, "Cluster"),
    (ParameterId::TlsCertFile, "TLS"),
];
