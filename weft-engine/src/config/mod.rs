//! Configuration: the parameter table, `redis.conf` and command line, `CONFIG GET`, `SET` and `REWRITE`.
//!
//! Pure code: files are read through a trait that is passed in, and what must be done outside (listeners, log level) comes
//! back as a list of changes. Readers hold an immutable [`Settings`] snapshot; [`Config`] owns the current one and makes the
//! next. The rows in `table` are the only list of parameters; loading, `CONFIG` and the reference page derive from them.
//! A value marked sensitive never appears in an error, a log line or a debug print.

#![forbid(unsafe_code)]

mod command_line;
mod default_user;
mod kind;
mod load;
mod number;
mod parse;
mod reference;
mod rewrite;
mod sample;
mod settings;
mod show;
mod syntax;
mod table;
#[cfg(test)]
mod tests;
mod title;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use weft_data::glob;

pub use command_line::{CommandLine, Invocation, Program, usage};
use default_user::DefaultUser;
pub use kind::{
    EVENT_CLASSES, EVENTS_ALL, Kind, OUTPUT_CLASSES, OutputLimit, SHUTDOWN_FLAGS, SavePoint, Unit,
    Value,
};
pub use load::{ConfigurationFiles, Directive, Origin, Source, StartError, directives};
pub(crate) use number::memory as memory_size;
use parse::Door;
pub use parse::Reason;
pub use reference::{reference_is_current, reference_page};
pub use sample::sample_file;
pub use settings::{IoDriver, LogFormat, LogLevel, LogTimestamp, Permission, Settings, Supervisor};
pub(crate) use syntax::quote;
pub use table::{Access, Parameter, ParameterId, RETIRED, Stage};
pub use title::process_title;

/// The version of Redis whose behaviour the server follows.
pub struct Version;

impl Version {
    /// As `INFO` and error texts print it.
    pub const COMPATIBLE: &'static str = "8.2.3";
}

/// What the machine contributes to the configuration.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// CPUs that the process may use (affinity and quota), at least 1: what `io-threads auto` means.
    pub usable_cpus: u16,
}

/// The current settings, where they came from, and the way to the next ones.
pub struct Config {
    current: Arc<Settings>,
    origins: Vec<Option<Arc<Origin>>>,
}

/// A parameter whose value became another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which parameter.
    pub id: ParameterId,
}

/// Settings that passed all checks and wait for [`Config::commit`], so that what they need outside can be tried first.
#[must_use]
pub struct Update {
    settings: Settings,
    changes: Vec<Change>,
}

impl Update {
    /// The settings to be.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What differs from the current settings, in the order it was asked for.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }
}

/// Why `CONFIG SET` failed. The display form is the error reply, code included, without the leading `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetError {
    /// A name without a value.
    Syntax,
    /// No such parameter.
    Unknown {
        /// The name as the client wrote it.
        name: String,
    },
    /// A parameter was not accepted.
    Failed {
        /// The name.
        name: String,
        /// Why.
        reason: Reason,
    },
}

impl SetError {
    /// Reason for a `bind` that no listener could be opened for.
    pub const CANNOT_BIND: &'static str = "Failed to bind to specified addresses.";
    /// Reason for a `port` that is taken.
    pub const CANNOT_LISTEN: &'static str = "Unable to listen on this port. Check server logs.";

    /// Reason for an `oom-score-adj` that the system does not allow.
    pub const CANNOT_SCORE: &'static str =
        "Failed to set current oom_score_adj. Check server logs.";

    /// An error found while applying a change outside.
    pub fn failed(id: ParameterId, reason: impl Into<Reason>) -> SetError {
        SetError::Failed {
            name: id.name().to_owned(),
            reason: reason.into(),
        }
    }

    /// Reason for a `maxclients` beyond what the process may open.
    pub fn too_many_clients(possible: usize) -> Reason {
        format!("The operating system is not able to handle the specified number of clients, try with {possible}")
            .into()
    }
}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetError::Syntax => f.write_str("ERR syntax error"),
            SetError::Unknown { name } => {
                write!(
                    f,
                    "ERR Unknown option or number of arguments for CONFIG SET - '{name}'"
                )
            }
            SetError::Failed { name, reason } => {
                write!(
                    f,
                    "ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}"
                )
            }
        }
    }
}

impl std::error::Error for SetError {}

const IMMUTABLE: &str = "can't set immutable config";
const PROTECTED: &str = "can't set protected config";
const DUPLICATE: &str = "duplicate parameter";
const BAD_DIRECTIVE: &str = "Bad directive or wrong number of arguments";
const HZ_MIN: i64 = 1;
const HZ_MAX: i64 = 500;
const BACKLOG_BYTES_MIN: i64 = 16 << 10;
const WATCHDOG_MILLISECONDS_MIN: i64 = 200;

impl Config {
    /// The defaults.
    pub fn new(facts: Facts) -> Config {
        Config {
            current: Arc::new(Settings::defaults(facts.usable_cpus.max(1))),
            origins: vec![None; ParameterId::ALL.len()],
        }
    }

    /// Reads everything that the command line names.
    pub fn load(
        command_line: &CommandLine,
        files: &mut dyn ConfigurationFiles,
        facts: Facts,
    ) -> Result<Config, StartError> {
        Config::from_directives(&directives(command_line, files)?, facts)
    }

    /// Applies lines in order; the last one of a name wins, except for parameters that collect (`save`) or that name a part
    /// (`client-output-buffer-limit`). What the final values refuse is reported at the line that set it.
    pub fn from_directives(directives: &[Directive], facts: Facts) -> Result<Config, StartError> {
        let mut config = Config::new(facts);
        let mut settings = Settings::clone(&config.current);
        let mut refusal: Option<(usize, &Directive, &'static str)> = None;
        let mut set_at = vec![0; ParameterId::ALL.len()];
        let mut default_users = Vec::new();
        for (position, directive) in directives.iter().enumerate() {
            let wrong = |reason: &str| StartError::Line {
                origin: directive.origin.clone(),
                reason: reason.to_owned(),
            };
            let arguments: Vec<&[u8]> = directive.arguments.iter().map(Vec::as_slice).collect();
            let Some((id, _)) = lookup(&directive.name) else {
                if RETIRED.iter().any(|name| name.as_bytes() == directive.name)
                    && !arguments.is_empty()
                {
                    continue;
                }
                if directive.name == b"sentinel" {
                    return Err(wrong("sentinel directive while not in sentinel mode"));
                }
                if directive.name == b"user"
                    && let Some(user) = DefaultUser::of(&arguments)
                {
                    default_users.push((position, user));
                    continue;
                }
                let refused = table::REFUSED_DIRECTIVES
                    .iter()
                    .find(|(name, ..)| name.as_bytes() == directive.name);
                match refused {
                    Some((_, arguments_min, reason)) if arguments.len() >= *arguments_min => {
                        refusal.get_or_insert((position, directive, reason));
                    }
                    _ => return Err(wrong(BAD_DIRECTIVE)),
                }
                continue;
            };
            let value = id
                .parameter()
                .kind
                .parse(&arguments, settings.value(id), Door::Line)
                .map_err(|reason| wrong(&reason))?;
            settings.put(id, clamp(id, value));
            config.origins[id.index()] = Some(directive.origin.clone());
            set_at[id.index()] = position;
        }
        let password = settings
            .requirepass()
            .map(|_| set_at[ParameterId::Requirepass.index()]);
        for (position, user) in default_users {
            let is_what_the_password_says = match password {
                Some(set_at) => set_at > position,
                None => user == DefaultUser::WithoutPassword,
            };
            if !is_what_the_password_says && refusal.is_none_or(|(earlier, ..)| position < earlier)
            {
                refusal = Some((position, &directives[position], table::USER_REFUSED));
            }
        }
        for id in ParameterId::ALL {
            if let Stage::Refused(reason) = id.parameter().stage
                && settings.value(*id) != settings::default_value(*id)
            {
                let position = set_at[id.index()];
                if refusal.is_none_or(|(earlier, ..)| position < earlier) {
                    refusal = Some((position, &directives[position], reason));
                }
            }
        }
        if let Some((_, directive, reason)) = refusal {
            return Err(StartError::Line {
                origin: directive.origin.clone(),
                reason: reason.to_owned(),
            });
        }
        config.current = Arc::new(settings);
        Ok(config)
    }

    /// The current snapshot.
    pub fn settings(&self) -> &Arc<Settings> {
        &self.current
    }

    /// The line that set a parameter at start, for errors that only show when it is applied.
    pub fn origin(&self, id: ParameterId) -> Option<&Arc<Origin>> {
        self.origins[id.index()].as_ref()
    }

    /// The start error for a parameter whose value turned out to be unusable, such as a `dir` that does not exist.
    pub fn start_error(&self, id: ParameterId, reason: impl Into<String>) -> StartError {
        let origin = self.origin(id).cloned().unwrap_or_else(|| {
            let text = if id.parameter().sensitive {
                id.name().to_owned()
            } else {
                rewrite::line(id, self.current.value(id))
            };
            Arc::new(Origin {
                source: Source::CommandLine,
                line: 0,
                text,
            })
        });
        StartError::Line {
            origin,
            reason: reason.into(),
        }
    }

    /// Replaces a text by what the start made of it: the absolute `dir`, the default `pidfile` of a daemon.
    ///
    /// # Panics
    /// If the parameter is not a text.
    pub fn settle(&mut self, id: ParameterId, text: &[u8]) {
        assert!(
            matches!(self.current.value(id), Value::Text(_)),
            "{} is not a text",
            id.name()
        );
        Arc::make_mut(&mut self.current).put(id, Value::Text(text.into()));
    }

    /// Says anew how many processors the process may use: the configuration itself may have narrowed them down.
    pub fn set_usable_cpus(&mut self, count: u16) {
        Arc::make_mut(&mut self.current).set_usable_cpus(count);
    }

    /// Names of parameters that are kept without effect and were set to something else than the default.
    pub fn without_effect(&self) -> Vec<&'static str> {
        let ids = ParameterId::ALL.iter().filter(|id| {
            id.parameter().stage == Stage::Stored
                && self.current.value(**id) != settings::default_value(**id)
        });
        ids.map(|id| id.name()).collect()
    }

    /// `CONFIG GET`: names and values, each name once. A literal name comes back as the client spelled it; patterns list
    /// current names and their aliases in table order, without the hidden ones.
    pub fn get(&self, patterns: &[&[u8]]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut answered: HashMap<&'static str, ()> = HashMap::new();
        let mut answer = Vec::new();
        for pattern in patterns {
            if !is_pattern(pattern) {
                if let Some((id, name)) = lookup(pattern)
                    && answered.insert(name, ()).is_none()
                {
                    answer.push((pattern.to_vec(), self.current.show(id)));
                }
                continue;
            }
            for id in ParameterId::ALL {
                let parameter = id.parameter();
                if parameter.hidden {
                    continue;
                }
                for name in std::iter::once(&parameter.name).chain(parameter.aliases) {
                    if glob::matches(pattern, name.as_bytes(), true)
                        && answered.insert(name, ()).is_none()
                    {
                        answer.push((name.as_bytes().to_vec(), self.current.show(*id)));
                    }
                }
            }
        }
        answer
    }

    /// `CONFIG SET` up to, but without, its effect: checks every pair and makes the settings that would follow. Names are
    /// checked before any value, as the reference does. `protected_allowed` is what `enable-protected-configs` means for
    /// this client.
    pub fn prepare(
        &self,
        arguments: &[&[u8]],
        protected_allowed: bool,
    ) -> Result<Update, SetError> {
        let pairs = arguments.chunks_exact(2);
        if !pairs.remainder().is_empty() {
            return Err(SetError::Syntax);
        }
        let mut wanted: Vec<(ParameterId, &'static str, &[u8])> = Vec::with_capacity(pairs.len());
        for pair in pairs {
            let (written, value) = (pair[0], pair[1]);
            let Some((id, name)) = lookup(written) else {
                return Err(SetError::Unknown {
                    name: shown_name(written),
                });
            };
            let failed = |reason: &'static str| SetError::Failed {
                name: shown_name(written),
                reason: reason.into(),
            };
            match id.parameter().access {
                Access::Immutable => return Err(failed(IMMUTABLE)),
                Access::Protected if !protected_allowed => return Err(failed(PROTECTED)),
                Access::Mutable | Access::Protected => {}
            }
            if wanted.iter().any(|(_, earlier, _)| *earlier == name) {
                return Err(failed(DUPLICATE));
            }
            wanted.push((id, name, value));
        }
        let mut settings = Settings::clone(&self.current);
        let mut touched: Vec<ParameterId> = Vec::new();
        for (id, name, value) in wanted {
            let parameter = id.parameter();
            let failed = |reason: Reason| SetError::Failed {
                name: name.to_owned(),
                reason,
            };
            let value = parameter
                .kind
                .parse(&[value], settings.value(id), Door::Set)
                .map_err(failed)?;
            if let Stage::Refused(reason) = parameter.stage
                && value != *settings::default_value(id)
            {
                return Err(failed(reason.into()));
            }
            settings.put(id, clamp(id, value));
            if !touched.contains(&id) {
                touched.push(id);
            }
        }
        let changed = touched
            .into_iter()
            .filter(|id| settings.value(*id) != self.current.value(*id));
        let changes: Vec<_> = changed.map(|id| Change { id }).collect();
        if !changes.is_empty() {
            settings.advance_generation();
        }
        Ok(Update { settings, changes })
    }

    /// Makes prepared settings the current ones. They must have been prepared from the current ones.
    pub fn commit(&mut self, update: Update) -> Vec<Change> {
        debug_assert!(
            update.settings.generation() - self.current.generation() <= 1,
            "prepared from an older snapshot"
        );
        if !update.changes.is_empty() {
            self.current = Arc::new(update.settings);
        }
        update.changes
    }

    /// `CONFIG SET` of parameters that need nothing outside: [`prepare`](Config::prepare) and [`commit`](Config::commit).
    pub fn set(
        &mut self,
        arguments: &[&[u8]],
        protected_allowed: bool,
    ) -> Result<Vec<Change>, SetError> {
        let update = self.prepare(arguments, protected_allowed)?;
        Ok(self.commit(update))
    }

    /// `CONFIG REWRITE`: the new text of a configuration file. Comments, order and lines that are not parameters stay.
    pub fn rewrite(&self, old_text: &[u8]) -> Vec<u8> {
        rewrite::rewrite(&self.current, old_text, false)
    }

    /// The same with every parameter, also those that equal their defaults.
    pub fn rewrite_all(&self, old_text: &[u8]) -> Vec<u8> {
        rewrite::rewrite(&self.current, old_text, true)
    }
}

/// Whether the text has characters that can select more than one name.
fn is_pattern(text: &[u8]) -> bool {
    text.iter().any(|byte| matches!(byte, b'*' | b'?' | b'['))
}

/// The row that a name or alias in any case belongs to, with the spelling that the table has for it.
fn lookup(name: &[u8]) -> Option<(ParameterId, &'static str)> {
    static NAMES: LazyLock<HashMap<&'static [u8], (ParameterId, &'static str)>> =
        LazyLock::new(|| {
            let mut names = HashMap::new();
            for id in ParameterId::ALL {
                let parameter = id.parameter();
                let aliases = parameter.aliases.iter().chain(parameter.foreign_aliases);
                for name in std::iter::once(&parameter.name).chain(aliases) {
                    names.insert(name.as_bytes(), (*id, *name));
                }
            }
            names
        });
    // Longer than any name in the table; keeps a client from making the server copy megabytes to look up a name.
    const NAME_LEN_MAX: usize = 64;
    if name.len() > NAME_LEN_MAX {
        return None;
    }
    NAMES.get(name.to_ascii_lowercase().as_slice()).copied()
}

/// Whether the values of the parameter of this name, in any letter case, are secrets.
pub(crate) fn is_secret(name: &[u8]) -> bool {
    lookup(name).is_some_and(|(id, _)| id.parameter().sensitive)
}

/// Whether lines of this lower-case name can carry a password.
fn is_sensitive(name: &[u8]) -> bool {
    let rows = ParameterId::ALL.iter().map(|id| id.parameter());
    let mut spellings = rows
        .filter(|parameter| parameter.sensitive)
        .flat_map(|parameter| {
            std::iter::once(&parameter.name)
                .chain(parameter.aliases)
                .chain(parameter.foreign_aliases)
        });
    // A prefix, since `requirepass=x` is wrong and yet a password.
    matches!(name, b"user" | b"sentinel")
        || spellings.any(|spelling| name.starts_with(spelling.as_bytes()))
}

/// A name in an error text: up to the first zero byte, as the reference prints it.
fn shown_name(name: &[u8]) -> String {
    let name = name.split(|&byte| byte == 0).next().unwrap_or(name);
    String::from_utf8_lossy(name).into_owned()
}

/// Values that the reference accepts and brings into range.
fn clamp(id: ParameterId, value: Value) -> Value {
    match (id, value) {
        (ParameterId::Hz, Value::Integer(hz)) => Value::Integer(hz.clamp(HZ_MIN, HZ_MAX)),
        (ParameterId::ReplBacklogSize, Value::Integer(bytes)) => {
            Value::Integer(bytes.max(BACKLOG_BYTES_MIN))
        }
        (ParameterId::WatchdogPeriod, Value::Integer(1..WATCHDOG_MILLISECONDS_MIN)) => {
            Value::Integer(WATCHDOG_MILLISECONDS_MIN)
        }
        // `relative` is another word for `yes`.
        (ParameterId::OomScoreAdj, Value::Choice(2)) => Value::Choice(1),
        (_, value) => value,
    }
}
