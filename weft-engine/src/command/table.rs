//! All commands by name.

use super::row::CommandRow;

/// The longest command name the table is built for.
const NAME_MAX: usize = 32;

/// Finds rows by name in any letter case: open addressing over a power of two of slots, at most a quarter full.
pub struct CommandTable {
    slots: Box<[Option<&'static CommandRow>]>,
    rows: Vec<&'static CommandRow>,
}

impl CommandTable {
    /// A table of these families' rows.
    ///
    /// # Panics
    /// If two rows share a name or a name is longer than 32 bytes: the rows are part of the program.
    #[must_use]
    pub fn new(families: &[&'static [CommandRow]]) -> Self {
        let rows: Vec<_> = families.iter().flat_map(|family| family.iter()).collect();
        let mut slots = vec![None; (rows.len() * 4).next_power_of_two()].into_boxed_slice();
        for row in &rows {
            assert!(
                row.name.len() <= NAME_MAX,
                "command name too long: {}",
                row.name
            );
            let mut at = hash(row.name.as_bytes()) & (slots.len() - 1);
            while let Some(other) = slots[at] {
                let other: &CommandRow = other;
                assert!(other.name != row.name, "two commands named {}", row.name);
                at = (at + 1) & (slots.len() - 1);
            }
            slots[at] = Some(*row);
        }
        Self { slots, rows }
    }

    /// The command of that name, in any letter case.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<&'static CommandRow> {
        if name.len() > NAME_MAX {
            return None;
        }
        let mut at = hash(name) & (self.slots.len() - 1);
        while let Some(row) = self.slots[at] {
            if row.name.as_bytes().eq_ignore_ascii_case(name) {
                return Some(row);
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
}

/// FNV-1a over the lower-case name: names are short, and the table is fixed when the program starts.
fn hash(name: &[u8]) -> usize {
    let fold =
        |hash: u64, byte: &u8| (hash ^ u64::from(*byte | 0x20)).wrapping_mul(0x0100_0000_01b3);
    let hash = name.iter().fold(0xcbf2_9ce4_8422_2325, fold);
    (hash ^ (hash >> 32)) as usize
}
