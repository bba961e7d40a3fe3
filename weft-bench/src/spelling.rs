//! How options are spelled where they have a letter too: the entries of a mode's table of options. Knows no option.

/// An option: how it is spelled, and the name by which it is known.
pub struct Spelling {
    /// The letter behind one dash, if it has any.
    pub letter: Option<u8>,
    /// The name behind two dashes.
    pub name: &'static str,
    /// Whether a value follows.
    pub valued: bool,
}

/// An option with a value; letter 0 is none.
pub const fn valued(letter: u8, name: &'static str) -> Spelling {
    Spelling {
        valued: true,
        ..switch(letter, name)
    }
}

/// An option without a value; letter 0 is none.
pub const fn switch(letter: u8, name: &'static str) -> Spelling {
    Spelling {
        letter: if letter == 0 { None } else { Some(letter) },
        name,
        valued: false,
    }
}
