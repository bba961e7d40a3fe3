//! The syntax of a command's arguments, as COMMAND DOCS describes it to clients.

/// One node of the syntax tree.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    /// The argument's name, also its display text unless that is given apart.
    pub name: &'static str,
    /// What may stand there.
    pub kind: ArgumentKind,
    /// The word that introduces it, upper case; empty if none.
    pub token: &'static str,
    /// Which key specification a key belongs to.
    pub key_spec: Option<u8>,
    /// May be left out.
    pub optional: bool,
    /// May be repeated.
    pub multiple: bool,
    /// The token is repeated with the argument.
    pub multiple_token: bool,
    /// The version that brought it; empty if as old as the command.
    pub since: &'static str,
    /// The version that deprecated it; empty if it is not.
    pub deprecated_since: &'static str,
    /// The display text where it differs from the name; empty if not.
    pub display: &'static str,
}

/// What may stand in an argument's place.
#[derive(Clone, Copy, Debug)]
pub enum ArgumentKind {
    /// Any bytes.
    String,
    /// A signed integer.
    Integer,
    /// A floating-point number.
    Double,
    /// A key's name.
    Key,
    /// A glob pattern.
    Pattern,
    /// A point in time, seconds or milliseconds since 1970.
    UnixTime,
    /// Just the token.
    PureToken,
    /// One of these.
    OneOf(&'static [Argument]),
    /// All of these, in order.
    Block(&'static [Argument]),
}

impl ArgumentKind {
    /// The name COMMAND DOCS gives.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Double => "double",
            Self::Key => "key",
            Self::Pattern => "pattern",
            Self::UnixTime => "unix-time",
            Self::PureToken => "pure-token",
            Self::OneOf(_) => "oneof",
            Self::Block(_) => "block",
        }
    }

    /// The arguments inside a `oneof` or a `block`.
    #[must_use]
    pub const fn children(&self) -> &'static [Argument] {
        match self {
            Self::OneOf(children) | Self::Block(children) => children,
            _ => &[],
        }
    }
}

impl Argument {
    const fn new(name: &'static str, kind: ArgumentKind) -> Self {
        let none = "";
        Self {
            name,
            kind,
            token: none,
            key_spec: None,
            optional: false,
            multiple: false,
            multiple_token: false,
            since: none,
            deprecated_since: none,
            display: none,
        }
    }

    /// Any bytes.
    #[must_use]
    pub const fn string(name: &'static str) -> Self {
        Self::new(name, ArgumentKind::String)
    }

    /// A signed integer.
    #[must_use]
    pub const fn integer(name: &'static str) -> Self {
        Self::new(name, ArgumentKind::Integer)
    }

    /// A floating-point number.
    #[must_use]
    pub const fn double(name: &'static str) -> Self {
        Self::new(name, ArgumentKind::Double)
    }

    /// A key of the numbered key specification.
    #[must_use]
    pub const fn key(name: &'static str, key_spec: u8) -> Self {
        let mut argument = Self::new(name, ArgumentKind::Key);
        argument.key_spec = Some(key_spec);
        argument
    }

    /// A glob pattern.
    #[must_use]
    pub const fn pattern(name: &'static str) -> Self {
        Self::new(name, ArgumentKind::Pattern)
    }

    /// A point in time.
    #[must_use]
    pub const fn unix_time(name: &'static str) -> Self {
        Self::new(name, ArgumentKind::UnixTime)
    }

    /// A bare word: its name in lower case, the word itself in upper case.
    #[must_use]
    pub const fn word(name: &'static str, token: &'static str) -> Self {
        Self::new(name, ArgumentKind::PureToken).token(token)
    }

    /// One of these.
    #[must_use]
    pub const fn one_of(name: &'static str, children: &'static [Argument]) -> Self {
        Self::new(name, ArgumentKind::OneOf(children))
    }

    /// All of these, in order.
    #[must_use]
    pub const fn block(name: &'static str, children: &'static [Argument]) -> Self {
        Self::new(name, ArgumentKind::Block(children))
    }

    /// Introduced by this word.
    #[must_use]
    pub const fn token(mut self, token: &'static str) -> Self {
        self.token = token;
        self
    }

    /// May be left out.
    #[must_use]
    pub const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// May be repeated.
    #[must_use]
    pub const fn multiple(mut self) -> Self {
        self.multiple = true;
        self
    }

    /// May be repeated together with its token.
    #[must_use]
    pub const fn multiple_token(mut self) -> Self {
        self.multiple = true;
        self.multiple_token = true;
        self
    }

    /// Brought by this version.
    #[must_use]
    pub const fn since(mut self, version: &'static str) -> Self {
        self.since = version;
        self
    }

    /// Deprecated by this version.
    #[must_use]
    pub const fn deprecated(mut self, version: &'static str) -> Self {
        self.deprecated_since = version;
        self
    }

    /// Shown under another name.
    #[must_use]
    pub const fn display(mut self, text: &'static str) -> Self {
        self.display = text;
        self
    }
}
