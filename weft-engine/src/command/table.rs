//! All commands by name.

use super::row::CommandRow;

/// The longest command name the table is built for.
const NAME_MAX: usize = 32;

/// A command's place in tables with an entry per command, counted from 0: every container is followed by its subcommands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommandIndex(u16);

impl CommandIndex {
    /// The place.
    #[must_use]
    pub const fn get(self) -> usize {
        self.0 as usize
    }

    const fn plus(self, count: usize) -> Self {
        Self(self.0 + count as u16)
    }
}

/// A command with its place.
#[derive(Clone, Copy, Debug)]
pub struct Numbered {
    /// Its row.
    pub row: &'static CommandRow,
    /// Its place.
    pub index: CommandIndex,
}

impl Numbered {
    /// The subcommand of that name, in any letter case.
    #[must_use]
    pub fn subcommand(self, name: &[u8]) -> Option<Self> {
        let at = self
            .row
            .subcommands
            .iter()
            .position(|row| row.name.as_bytes().eq_ignore_ascii_case(name))?;
        Some(Self {
            row: &self.row.subcommands[at],
            index: self.index.plus(1 + at),
        })
    }

    /// The command and its subcommands, each under the name that clients know it by: `client`, `client|list`.
    pub fn with_subcommands(self) -> impl Iterator<Item = (String, Self)> {
        let own = std::iter::once((self.row.name.to_owned(), self));
        own.chain(self.subcommands().map(move |part| {
            let name = format!("{}|{}", self.row.name, part.row.name);
            (name, part)
        }))
    }

    /// All subcommands.
    pub fn subcommands(self) -> impl Iterator<Item = Self> {
        let rows = self.row.subcommands.iter().enumerate();
        rows.map(move |(at, row)| Self {
            row,
            index: self.index.plus(1 + at),
        })
    }
}

/// Finds rows by name in any letter case: open addressing over a power of two of slots, at most a quarter full.
pub struct CommandTable {
    slots: Box<[Option<Numbered>]>,
    rows: Vec<&'static CommandRow>,
    /// The same, with their places.
    numbered: Vec<Numbered>,
    count: usize,
}

impl CommandTable {
    /// A table of these families' rows.
    ///
    /// # Panics
    /// If two rows share a name or a name is longer than 32 bytes: the rows are part of the program.
    #[must_use]
    pub fn new(families: &[&'static [CommandRow]]) -> Self {
        let rows: Vec<_> = families.iter().flat_map(|family| family.iter()).collect();
        let mut slots: Box<[Option<Numbered>]> =
            vec![None; (rows.len() * 4).next_power_of_two()].into_boxed_slice();
        let mut numbered = Vec::with_capacity(rows.len());
        let mut next = CommandIndex(0);
        for row in &rows {
            assert!(
                row.name.len() <= NAME_MAX,
                "command name too long: {}",
                row.name
            );
            let mut at = hash(row.name.as_bytes()) & (slots.len() - 1);
            while let Some(other) = slots[at] {
                assert!(
                    other.row.name != row.name,
                    "two commands named {}",
                    row.name
                );
                at = (at + 1) & (slots.len() - 1);
            }
            let command = Numbered { row, index: next };
            slots[at] = Some(command);
            numbered.push(command);
            next = next.plus(1 + row.subcommands.len());
        }
        Self {
            slots,
            rows,
            numbered,
            count: next.get(),
        }
    }

    /// The command of that name, in any letter case.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<&'static CommandRow> {
        self.find_numbered(name).map(|command| command.row)
    }

    /// The same with its place.
    #[must_use]
    pub fn find_numbered(&self, name: &[u8]) -> Option<Numbered> {
        if name.len() > NAME_MAX {
            return None;
        }
        let mut at = hash(name) & (self.slots.len() - 1);
        while let Some(command) = self.slots[at] {
            if command.row.name.as_bytes().eq_ignore_ascii_case(name) {
                return Some(command);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
        None
    }

    /// The command or, written `container|word`, the subcommand of that name, behind its container's name.
    #[must_use]
    pub fn find_full(&self, name: &[u8]) -> Option<(&'static str, &'static CommandRow)> {
        match name.iter().position(|byte| *byte == b'|') {
            Some(bar) => {
                let container = self.find(&name[..bar])?;
                Some((container.name, container.subcommand(&name[bar + 1..])?))
            }
            None => Some(("", self.find(name)?)),
        }
    }

    /// All commands, containers once, in the order of their families.
    #[must_use]
    pub fn rows(&self) -> &[&'static CommandRow] {
        &self.rows
    }

    /// The same with their places.
    #[must_use]
    pub fn numbered(&self) -> &[Numbered] {
        &self.numbered
    }

    /// How many commands there are, subcommands included: every [`CommandIndex`] is below.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }
}

/// FNV-1a over the lower-case name: names are short, and the table is fixed when the program starts.
fn hash(name: &[u8]) -> usize {
    let fold =
        |hash: u64, byte: &u8| (hash ^ u64::from(*byte | 0x20)).wrapping_mul(0x0100_0000_01b3);
    let hash = name.iter().fold(0xcbf2_9ce4_8422_2325, fold);
    (hash ^ (hash >> 32)) as usize
}
