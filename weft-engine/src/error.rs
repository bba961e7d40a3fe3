//! Every error text that a client can see from a command.

use std::borrow::Cow;
use std::fmt;

/// Why a command was refused or failed. `Display` gives the whole text a client reads, error code first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommandError {
    /// The arguments do not fit the command's syntax.
    Syntax,
    /// Not a 64-bit signed integer in decimal.
    NotInteger,
    /// Not a finite floating-point number.
    NotFloat,
    /// The key holds a value of another type.
    WrongType,
    /// An increment or decrement leaves the range of 64 bits.
    Overflow,
    /// The result of a floating-point increment is no number.
    NotANumberOrInfinity,
    /// A string would become longer than the limit.
    StringTooLong,
    /// An expiry time that is zero, negative or out of range, for the named command.
    InvalidExpire(&'static str),
    /// Too few or too many arguments for the named command (`container|subcommand` for a subcommand).
    WrongArity(Box<str>),
    /// No command of that name.
    UnknownCommand(Box<str>),
    /// The container has no subcommand of that name.
    UnknownSubcommand(Box<str>),
    /// Authentication is needed first.
    NotAuthenticated,
    /// A fixed text.
    Text(&'static str),
    /// A composed text.
    Composed(Box<str>),
}

impl CommandError {
    /// No command of the name `args[0]`: names it and the first arguments, as much as is safe to echo.
    #[must_use]
    pub fn unknown_command(args: weft_resp::Args<'_>) -> Self {
        const ECHOED_MAX: usize = 128;
        let clip = |text: &[u8], most: usize| -> String { String::from_utf8_lossy(&text[..text.len().min(most)]).into_owned() };
        let mut echoed = String::new();
        for argument in args.iter().skip(1) {
            if echoed.len() >= ECHOED_MAX {
                break;
            }
            let room = ECHOED_MAX - echoed.len();
            echoed.push_str(&format!("'{}' ", clip(argument, room)));
        }
        let name = clip(args.get(0).unwrap_or_default(), ECHOED_MAX);
        Self::UnknownCommand(format!("'{name}', with args beginning with: {echoed}").into())
    }

    /// The container's subcommand `word` does not exist.
    #[must_use]
    pub fn unknown_subcommand(container: &str, word: &[u8]) -> Self {
        let word = String::from_utf8_lossy(&word[..word.len().min(128)]);
        Self::UnknownSubcommand(format!("'{word}'. Try {} HELP.", container.to_ascii_uppercase()).into())
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: Cow<'_, str> = match self {
            Self::Syntax => "ERR syntax error".into(),
            Self::NotInteger => "ERR value is not an integer or out of range".into(),
            Self::NotFloat => "ERR value is not a valid float".into(),
            Self::WrongType => "WRONGTYPE Operation against a key holding the wrong kind of value".into(),
            Self::Overflow => "ERR increment or decrement would overflow".into(),
            Self::NotANumberOrInfinity => "ERR increment would produce NaN or Infinity".into(),
            Self::StringTooLong => "ERR string exceeds maximum allowed size (proto-max-bulk-len)".into(),
            Self::InvalidExpire(command) => format!("ERR invalid expire time in '{command}' command").into(),
            Self::WrongArity(command) => format!("ERR wrong number of arguments for '{command}' command").into(),
            Self::UnknownCommand(echo) => format!("ERR unknown command {echo}").into(),
            Self::UnknownSubcommand(echo) => format!("ERR unknown subcommand {echo}").into(),
            Self::NotAuthenticated => "NOAUTH Authentication required.".into(),
            Self::Text(text) => (*text).into(),
            Self::Composed(text) => (&**text).into(),
        };
        f.write_str(&text)
    }
}

impl std::error::Error for CommandError {}
