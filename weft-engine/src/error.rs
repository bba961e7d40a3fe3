//! Every error text that a client can see from a command.

use std::borrow::Cow;

use weft_resp::Args;

/// Why a command was refused or failed.
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
    /// Authentication is needed first.
    NotAuthenticated,
    /// A fixed text.
    Text(&'static str),
    /// A composed text, which may quote any bytes of the client's.
    Composed(Box<[u8]>),
}

/// How much of a client's bytes an error echoes, from Redis.
const ECHO_MAX: usize = 128;

impl CommandError {
    /// No command of the name `args[0]`: names it and the first arguments, as much as is safe to echo.
    #[must_use]
    pub fn unknown_command(args: Args<'_>) -> Self {
        let mut echoed = Vec::new();
        for argument in args.iter().skip(1) {
            if echoed.len() >= ECHO_MAX {
                break;
            }
            let room = ECHO_MAX - echoed.len();
            echoed.push(b'\'');
            echoed.extend_from_slice(clip(argument, room));
            echoed.extend_from_slice(b"' ");
        }
        let name = clip(args.get(0).unwrap_or_default(), ECHO_MAX);
        let parts = [
            b"ERR unknown command '",
            name,
            b"', with args beginning with: ",
            &echoed,
        ];
        Self::Composed(parts.concat().into())
    }

    /// The container's subcommand `word` does not exist.
    #[must_use]
    pub fn unknown_subcommand(container: &str, word: &[u8]) -> Self {
        let help = format!("'. Try {} HELP.", container.to_ascii_uppercase());
        Self::quoting("ERR unknown subcommand '", clip(word, ECHO_MAX), &help)
    }

    /// A text that quotes some of the client's bytes, up to the first zero.
    #[must_use]
    pub fn quoting(before: &str, quoted: &[u8], after: &str) -> Self {
        let quoted = clip(quoted, usize::MAX);
        Self::Composed(
            [before.as_bytes(), quoted, after.as_bytes()]
                .concat()
                .into(),
        )
    }

    /// The whole text that a client reads, error code first.
    #[must_use]
    pub fn text(&self) -> Cow<'_, [u8]> {
        let text: Cow<'_, str> = match self {
            Self::Syntax => "ERR syntax error".into(),
            Self::NotInteger => "ERR value is not an integer or out of range".into(),
            Self::NotFloat => "ERR value is not a valid float".into(),
            Self::WrongType => {
                "WRONGTYPE Operation against a key holding the wrong kind of value".into()
            }
            Self::Overflow => "ERR increment or decrement would overflow".into(),
            Self::NotANumberOrInfinity => "ERR increment would produce NaN or Infinity".into(),
            Self::StringTooLong => {
                "ERR string exceeds maximum allowed size (proto-max-bulk-len)".into()
            }
            Self::InvalidExpire(command) => {
                format!("ERR invalid expire time in '{command}' command").into()
            }
            Self::WrongArity(command) => {
                format!("ERR wrong number of arguments for '{command}' command").into()
            }
            Self::NotAuthenticated => "NOAUTH Authentication required.".into(),
            Self::Text(text) => (*text).into(),
            Self::Composed(text) => return (&**text).into(),
        };
        match text {
            Cow::Borrowed(text) => text.as_bytes().into(),
            Cow::Owned(text) => text.into_bytes().into(),
        }
    }
}

/// What of a client's bytes is echoed: up to the first zero, and at most `most`.
fn clip(text: &[u8], most: usize) -> &[u8] {
    let end = text
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(text.len());
    &text[..end.min(most)]
}
