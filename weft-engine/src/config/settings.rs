//! A snapshot of all settings: immutable, shared, with typed access that costs an index and a match.
//!
//! Invariant: the value at a parameter's index is of that parameter's kind; only [`Config`](super::Config) makes snapshots.

use std::sync::LazyLock;

use super::kind::{Kind, OutputLimit, SHUTDOWN_FORCE, SHUTDOWN_SAVE, Value};
use super::number;
use super::parse::Door;
use super::table::ParameterId;

/// The values of all parameters at one moment.
#[derive(Clone)]
pub struct Settings {
    values: Box<[Value]>,
    generation: u64,
    io_threads_auto: u16,
}

/// Least important kind of message that is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum LogLevel {
    Debug,
    Verbose,
    Notice,
    Warning,
    Nothing,
}

/// How a line of the log is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LogFormat {
    Legacy,
    Logfmt,
    Json,
}

/// How a line of the log shows the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LogTimestamp {
    Legacy,
    Iso8601,
    Milliseconds,
}

/// Who may do something that the configuration guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Nobody.
    No,
    /// Everybody.
    Yes,
    /// Clients on this machine.
    Local,
}

impl Permission {
    /// Whether a client may, given whether it is on this machine.
    pub fn allows(self, client_is_local: bool) -> bool {
        self == Permission::Yes || self == Permission::Local && client_is_local
    }
}

/// Which supervisor is told that the server is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Supervisor {
    Upstart,
    Systemd,
    Auto,
    No,
}

/// How sockets are driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IoDriver {
    Auto,
    Uring,
    Epoll,
}

impl Settings {
    /// All defaults. `io_threads_auto` is what `io-threads auto` amounts to on this machine.
    pub(super) fn defaults(io_threads_auto: u16) -> Settings {
        let values = ParameterId::ALL
            .iter()
            .map(|id| default_value(*id).clone())
            .collect();
        Settings {
            values,
            generation: 0,
            io_threads_auto,
        }
    }

    /// Counts the changes since the start; a snapshot with the same number is the same snapshot.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The value of any parameter.
    pub fn value(&self, id: ParameterId) -> &Value {
        &self.values[id.index()]
    }

    /// The text that `CONFIG GET` answers for a parameter.
    pub fn show(&self, id: ParameterId) -> Vec<u8> {
        id.parameter()
            .kind
            .show(self.value(id), self.io_threads_auto)
    }

    /// A parameter of kind `yes`/`no`.
    pub fn flag(&self, id: ParameterId) -> bool {
        match self.value(id) {
            Value::Bool(on) => *on,
            _ => unreachable!("{} is not of kind yes/no", id.name()),
        }
    }

    /// A numeric parameter; bytes where the unit is memory.
    pub fn integer(&self, id: ParameterId) -> i64 {
        match self.value(id) {
            Value::Integer(number) => *number,
            _ => unreachable!("{} is not a number", id.name()),
        }
    }

    /// A text parameter.
    pub fn text(&self, id: ParameterId) -> &[u8] {
        match self.value(id) {
            Value::Text(text) => text,
            _ => unreachable!("{} is not a text", id.name()),
        }
    }

    /// A parameter that is one word of a list: its index there.
    pub fn choice(&self, id: ParameterId) -> u8 {
        match self.value(id) {
            Value::Choice(index) => *index,
            _ => unreachable!("{} is not a choice", id.name()),
        }
    }

    fn unsigned(&self, id: ParameterId) -> usize {
        usize::try_from(self.integer(id)).unwrap_or(0)
    }

    /// `bind`: addresses as written; none means no TCP listener.
    pub fn bind(&self) -> &[Box<[u8]>] {
        match self.value(ParameterId::Bind) {
            Value::Words(words) => words,
            _ => unreachable!("bind is a list of addresses"),
        }
    }

    /// `port`: 0 for no TCP listener.
    pub fn port(&self) -> u16 {
        self.unsigned(ParameterId::Port) as u16
    }

    /// `unixsocket`, if one is wanted.
    pub fn unixsocket(&self) -> Option<&[u8]> {
        Some(self.text(ParameterId::Unixsocket)).filter(|path| !path.is_empty())
    }

    /// `unixsocketperm`: mode bits, 0 for the umask's choice.
    pub fn unixsocketperm(&self) -> u32 {
        self.unsigned(ParameterId::Unixsocketperm) as u32
    }

    /// `tcp-backlog`.
    pub fn tcp_backlog(&self) -> usize {
        self.unsigned(ParameterId::TcpBacklog)
    }

    /// `tcp-keepalive`, in seconds; 0 for off.
    pub fn tcp_keepalive_seconds(&self) -> u32 {
        self.unsigned(ParameterId::TcpKeepalive) as u32
    }

    /// `timeout`, in seconds; 0 for never.
    pub fn timeout_seconds(&self) -> u32 {
        self.unsigned(ParameterId::Timeout) as u32
    }

    /// `protected-mode`.
    pub fn protected_mode(&self) -> bool {
        self.flag(ParameterId::ProtectedMode)
    }

    /// `maxclients`.
    pub fn maxclients(&self) -> usize {
        self.unsigned(ParameterId::Maxclients)
    }

    /// `requirepass`, if there is one.
    pub fn requirepass(&self) -> Option<&[u8]> {
        Some(self.text(ParameterId::Requirepass)).filter(|password| !password.is_empty())
    }

    /// `databases`.
    pub fn databases(&self) -> usize {
        self.unsigned(ParameterId::Databases)
    }

    /// `proto-max-bulk-len`, in bytes.
    pub fn proto_max_bulk_len(&self) -> usize {
        self.unsigned(ParameterId::ProtoMaxBulkLen)
    }

    /// `hash-max-listpack-entries` and `hash-max-listpack-value`.
    pub fn hash_limits(&self) -> weft_data::hash::Limits {
        weft_data::hash::Limits {
            entries: self.unsigned(ParameterId::HashMaxListpackEntries),
            value: self.unsigned(ParameterId::HashMaxListpackValue),
        }
    }

    /// `set-max-intset-entries`, `set-max-listpack-entries` and `set-max-listpack-value`.
    pub fn set_limits(&self) -> weft_data::set::Limits {
        weft_data::set::Limits {
            intset_entries: self.unsigned(ParameterId::SetMaxIntsetEntries),
            listpack_entries: self.unsigned(ParameterId::SetMaxListpackEntries),
            listpack_value: self.unsigned(ParameterId::SetMaxListpackValue),
        }
    }

    /// `zset-max-listpack-entries` and `zset-max-listpack-value`.
    pub fn sorted_set_limits(&self) -> weft_data::sorted_set::Limits {
        weft_data::sorted_set::Limits {
            entries: self.unsigned(ParameterId::ZsetMaxListpackEntries),
            value: self.unsigned(ParameterId::ZsetMaxListpackValue),
        }
    }

    /// `stream-node-max-bytes`; 0 for no bound.
    pub fn stream_node_max_bytes(&self) -> u64 {
        self.unsigned(ParameterId::StreamNodeMaxBytes) as u64
    }

    /// `stream-node-max-entries`; 0 for no bound.
    pub fn stream_node_max_entries(&self) -> u64 {
        self.unsigned(ParameterId::StreamNodeMaxEntries) as u64
    }

    /// `list-max-listpack-size`.
    pub fn list_limit(&self) -> weft_data::list::NodeLimit {
        weft_data::list::NodeLimit::of_setting(self.integer(ParameterId::ListMaxListpackSize))
    }

    /// `hll-sparse-max-bytes`.
    pub fn hll_sparse_max_bytes(&self) -> usize {
        self.unsigned(ParameterId::HllSparseMaxBytes)
    }

    /// `client-query-buffer-limit`, in bytes.
    pub fn client_query_buffer_limit(&self) -> usize {
        self.unsigned(ParameterId::ClientQueryBufferLimit)
    }

    /// `client-output-buffer-limit` of normal clients, replicas and subscribers.
    pub fn client_output_buffer_limits(&self) -> &[OutputLimit; 3] {
        match self.value(ParameterId::ClientOutputBufferLimit) {
            Value::OutputLimits(limits) => limits,
            _ => unreachable!("client-output-buffer-limit is three limits"),
        }
    }

    /// `hz`, from 1 to 500.
    pub fn hz(&self) -> u32 {
        self.unsigned(ParameterId::Hz) as u32
    }

    /// `active-expire-effort`, from 1 to 10.
    pub fn active_expire_effort(&self) -> u32 {
        self.unsigned(ParameterId::ActiveExpireEffort) as u32
    }

    /// `dir`: absolute once the server has started.
    pub fn dir(&self) -> &[u8] {
        self.text(ParameterId::Dir)
    }

    /// `daemonize`.
    pub fn daemonize(&self) -> bool {
        self.flag(ParameterId::Daemonize)
    }

    /// `pidfile`, if one is wanted.
    pub fn pidfile(&self) -> Option<&[u8]> {
        Some(self.text(ParameterId::Pidfile)).filter(|path| !path.is_empty())
    }

    /// `logfile`, if messages go to a file.
    pub fn logfile(&self) -> Option<&[u8]> {
        Some(self.text(ParameterId::Logfile)).filter(|path| !path.is_empty())
    }

    /// `loglevel`.
    pub fn loglevel(&self) -> LogLevel {
        match self.choice(ParameterId::Loglevel) {
            0 => LogLevel::Debug,
            1 => LogLevel::Verbose,
            2 => LogLevel::Notice,
            3 => LogLevel::Warning,
            _ => LogLevel::Nothing,
        }
    }

    /// `supervised`.
    pub fn supervised(&self) -> Supervisor {
        match self.choice(ParameterId::Supervised) {
            0 => Supervisor::Upstart,
            1 => Supervisor::Systemd,
            2 => Supervisor::Auto,
            _ => Supervisor::No,
        }
    }

    /// `oom-score-adj` and the score of a primary in `oom-score-adj-values`: what the process's own score is raised by, or
    /// replaced by if the flag is set; none if it is left alone.
    pub fn oom_score(&self) -> Option<(bool, i32)> {
        let Value::OomScores([primary, ..]) = self.value(ParameterId::OomScoreAdjValues) else {
            unreachable!("oom-score-adj-values is three scores");
        };
        match self.choice(ParameterId::OomScoreAdj) {
            0 => None,
            3 => Some((true, *primary)),
            _ => Some((false, *primary)),
        }
    }

    /// Whether `shutdown-on-sigint` or `shutdown-on-sigterm` asks to save first, and to go on serving if that fails.
    pub fn saves_at_signal(&self, id: ParameterId) -> bool {
        match self.value(id) {
            Value::Flags(flags) => flags & SHUTDOWN_SAVE != 0 && flags & SHUTDOWN_FORCE == 0,
            _ => unreachable!("{} is a set of flags", id.name()),
        }
    }

    /// `unixsocketgroup`, if there is one.
    pub fn unixsocketgroup(&self) -> Option<&[u8]> {
        Some(self.text(ParameterId::Unixsocketgroup)).filter(|group| !group.is_empty())
    }

    /// `socket-mark-id`; 0 for none.
    pub fn socket_mark_id(&self) -> u32 {
        self.unsigned(ParameterId::SocketMarkId) as u32
    }

    /// `bio-cpulist`, as written, if there is one.
    pub fn bio_cpulist(&self) -> Option<&[u8]> {
        Some(self.text(ParameterId::BioCpulist)).filter(|list| !list.is_empty())
    }

    /// `log-format`.
    pub fn log_format(&self) -> LogFormat {
        match self.choice(ParameterId::LogFormat) {
            0 => LogFormat::Legacy,
            1 => LogFormat::Logfmt,
            _ => LogFormat::Json,
        }
    }

    /// `log-timestamp-format`.
    pub fn log_timestamp_format(&self) -> LogTimestamp {
        match self.choice(ParameterId::LogTimestampFormat) {
            0 => LogTimestamp::Legacy,
            1 => LogTimestamp::Iso8601,
            _ => LogTimestamp::Milliseconds,
        }
    }

    /// `enable-debug-command`.
    pub fn enable_debug_command(&self) -> Permission {
        self.permission(ParameterId::EnableDebugCommand)
    }

    /// `enable-protected-configs`.
    pub fn enable_protected_configs(&self) -> Permission {
        self.permission(ParameterId::EnableProtectedConfigs)
    }

    fn permission(&self, id: ParameterId) -> Permission {
        match self.choice(id) {
            0 => Permission::No,
            1 => Permission::Yes,
            _ => Permission::Local,
        }
    }

    /// `slowlog-log-slower-than`, in microseconds; none: nothing is logged.
    pub fn slowlog_log_slower_than_us(&self) -> Option<u64> {
        u64::try_from(self.integer(ParameterId::SlowlogLogSlowerThan)).ok()
    }

    /// `slowlog-max-len`.
    pub fn slowlog_max_len(&self) -> usize {
        self.unsigned(ParameterId::SlowlogMaxLen)
    }

    /// `latency-monitor-threshold`, in milliseconds; none: nothing is monitored.
    pub fn latency_monitor_threshold_ms(&self) -> Option<u64> {
        u64::try_from(self.integer(ParameterId::LatencyMonitorThreshold))
            .ok()
            .filter(|threshold| *threshold > 0)
    }

    /// `latency-tracking`.
    pub fn latency_tracking(&self) -> bool {
        self.flag(ParameterId::LatencyTracking)
    }

    /// `latency-tracking-info-percentiles`, each with the text that names it.
    pub fn latency_tracking_info_percentiles(&self) -> Vec<(String, f64)> {
        match self.value(ParameterId::LatencyTrackingInfoPercentiles) {
            Value::Percentiles(percentiles) => percentiles
                .iter()
                .map(|value| (number::six_decimals(*value), *value))
                .collect(),
            _ => unreachable!("latency-tracking-info-percentiles is a list of numbers"),
        }
    }

    /// `io-driver`.
    pub fn io_driver(&self) -> IoDriver {
        match self.choice(ParameterId::IoDriver) {
            0 => IoDriver::Auto,
            1 => IoDriver::Uring,
            _ => IoDriver::Epoll,
        }
    }

    /// `server-cpulist`, as written, if there is one.
    pub fn server_cpulist(&self) -> Option<&[u8]> {
        Some(self.text(ParameterId::ServerCpulist)).filter(|list| !list.is_empty())
    }

    /// `io-threads`, with `auto` resolved.
    pub fn io_threads(&self) -> usize {
        match self.unsigned(ParameterId::IoThreads) {
            0 => usize::from(self.io_threads_auto),
            threads => threads,
        }
    }

    pub(super) fn set_usable_cpus(&mut self, count: u16) {
        self.io_threads_auto = count.max(1);
    }

    pub(super) fn put(&mut self, id: ParameterId, value: Value) {
        self.values[id.index()] = value;
    }

    pub(super) fn advance_generation(&mut self) {
        self.generation += 1;
    }
}

/// A parameter's default. The table's tests prove that every default parses.
pub(super) fn default_value(id: ParameterId) -> &'static Value {
    static DEFAULTS: LazyLock<Box<[Value]>> = LazyLock::new(|| {
        ParameterId::ALL
            .iter()
            .map(|id| parse_default(*id))
            .collect()
    });
    &DEFAULTS[id.index()]
}

fn parse_default(id: ParameterId) -> Value {
    let parameter = id.parameter();
    let default = parameter.default.as_bytes();
    // The starting point only matters to kinds that complete a partial value, and defaults are complete.
    let blank = Value::Bool(false);
    match parameter.kind {
        Kind::Primary if default.is_empty() => Value::Primary(None),
        kind => kind
            .parse(&[default], &blank, Door::Line)
            .expect("every default in the table is a valid value"),
    }
}
