//! A workload, made ready to be sent.
//!
//! Owns the bytes of requests that are always the same and the order of what differs. Does not draw and does not send.
//! Invariant: indices of spaces, values and captured fields are in range.

use std::sync::Arc;

use super::command::{Argument, Command, KeyUse, Part, Step};
use super::keys::{KeySpace, Keys};
use super::report::ClassName;
use super::spec::{Spec, Unit};
use super::values::{Letters, Sizes, Values};
use crate::load::encode;

/// A workload.
#[derive(Debug)]
pub struct Program {
    /// What can be sent.
    pub units: Vec<Sequence>,
    /// The sum of the units' weights.
    pub weights: u64,
    /// A connection works on one unit at a time.
    pub serial: bool,
    /// Whether answers are looked at.
    pub verify: bool,
    /// The keys that are used.
    pub spaces: Vec<Keys>,
    /// The values that are used.
    pub values: Vec<Values>,
    /// Classes of requests, by number: the commands, then the units if they are measured.
    pub classes: Vec<ClassName>,
    /// How many of them are commands.
    pub commands: usize,
    /// How many fields can be captured.
    pub captured: usize,
}

/// The commands of a unit.
#[derive(Debug)]
pub struct Sequence {
    /// Against the other units.
    pub weight: u32,
    /// The class of the whole, if it is measured.
    pub class: Option<u16>,
    /// For each key that is drawn at the beginning, its space.
    pub slots: Vec<usize>,
    /// What is sent.
    pub steps: Vec<Request>,
}

/// A command of a unit.
#[derive(Debug)]
pub struct Request {
    /// Its class.
    pub class: u16,
    /// Its arguments without those that stand for captured fields.
    pub arguments: usize,
    /// What it consists of. Without captured arguments, its head is in the first piece.
    pub pieces: Vec<Piece>,
    /// The captured fields it needs, as bits.
    pub needs: u64,
    /// What is captured from its answer.
    pub captures: Vec<(usize, Vec<Step>)>,
    /// Its answer, if answers are looked at.
    pub expects: Expects,
    /// How many keys it has.
    pub keys: usize,
}

/// What an answer should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expects {
    /// Anything, though values in it that carry a checksum have to be right.
    Anything,
    /// `OK`, or that the command was queued.
    Ok,
    /// The value of the key, or none.
    Value,
    /// The values of the keys in their order, or none.
    Values,
}

/// A piece of a request.
#[derive(Debug)]
pub enum Piece {
    /// Bytes as they are sent.
    Raw(Vec<u8>),
    /// The key of a slot.
    Key(usize),
    /// So many keys of a space.
    Keys(usize, u32),
    /// So many keys of a space and their values.
    Pairs(usize, u32),
    /// A value; it belongs to the key of a slot.
    Value(usize, Option<usize>),
    /// An argument that is put together.
    Mixed(Vec<Bit>),
    /// All that was captured as a field.
    Captured(usize),
}

/// A piece of an argument.
#[derive(Debug)]
pub enum Bit {
    /// As it is.
    Text(Vec<u8>),
    /// The key of a slot.
    Key(usize),
    /// A value; it belongs to the key of a slot.
    Value(usize, Option<usize>),
    /// A number between two.
    Integer(i64, i64),
    /// The number of the unit.
    Number,
    /// The number of the connection.
    Connection,
    /// The first that was captured as a field.
    Captured(usize),
}

impl Program {
    /// What the units of a checked description send.
    pub fn new(spec: &Spec) -> Arc<Program> {
        Arc::new(Builder::new(spec).build(&spec.units))
    }

    /// The same for one command of the preparation.
    pub fn of_setup(spec: &Spec, command: &Command) -> Arc<Program> {
        Arc::new(Builder::new(spec).build(&[Unit::single(command.clone(), 1)]))
    }
}

struct Builder<'a> {
    spec: &'a Spec,
    spaces: Vec<KeySpace>,
    sizes: Vec<Sizes>,
    captured: Vec<String>,
    classes: Vec<ClassName>,
    /// The slots of the unit under way: name and space.
    slots: Vec<(String, usize)>,
}

impl<'a> Builder<'a> {
    fn new(spec: &'a Spec) -> Builder<'a> {
        Builder {
            spec,
            spaces: Vec::new(),
            sizes: vec![spec.value_sizes.clone()],
            captured: Vec::new(),
            classes: Vec::new(),
            slots: Vec::new(),
        }
    }

    fn build(mut self, units: &[Unit]) -> Program {
        let serial = units.iter().any(|unit| unit.commands.len() > 1);
        let mut sequences: Vec<Sequence> = units.iter().map(|unit| self.sequence(unit)).collect();
        let commands = self.classes.len();
        if serial {
            for (unit, sequence) in units.iter().zip(&mut sequences) {
                sequence.class = Some(self.classes.len() as u16);
                let texts = unit.commands.iter().map(|command| command.text.as_str());
                self.classes.push(ClassName {
                    name: unit.name.clone(),
                    text: texts.collect::<Vec<&str>>().join("; "),
                });
            }
        }
        let letters = Letters::new(self.sizes.iter(), self.spec.seed);
        let spaces = self.spaces.iter().map(Keys::new).collect();
        let values = self.sizes.iter().map(|sizes| Values::new(sizes, &letters));
        Program {
            weights: units.iter().map(|unit| u64::from(unit.weight)).sum(),
            units: sequences,
            serial,
            verify: self.spec.verify,
            values: values.collect(),
            spaces,
            classes: self.classes,
            commands,
            captured: self.captured.len(),
        }
    }

    fn sequence(&mut self, unit: &Unit) -> Sequence {
        self.slots.clear();
        let steps = unit
            .commands
            .iter()
            .map(|command| self.request(command))
            .collect();
        Sequence {
            weight: unit.weight,
            class: None,
            slots: self.slots.iter().map(|(_, space)| *space).collect(),
            steps,
        }
    }

    fn request(&mut self, command: &Command) -> Request {
        let class = self.classes.len() as u16;
        self.classes.push(ClassName {
            name: match command.name() {
                name if name.is_empty() => command.text.clone(),
                name => name,
            },
            text: command.text.clone(),
        });
        let mut keys = 0;
        let mut needs = 0;
        let mut pieces: Vec<Piece> = Vec::new();
        let mut arguments = 0;
        // The key that a value belongs to: the one before it in the command.
        let mut owner = None;
        for argument in &command.arguments {
            arguments += 1;
            match argument {
                Argument::One(parts) => {
                    let bits: Vec<Bit> = parts
                        .iter()
                        .map(|part| self.bit(part, &mut owner, &mut keys, &mut needs))
                        .collect();
                    match &bits[..] {
                        [] => raw(&mut pieces, b"$0\r\n\r\n"),
                        [Bit::Text(text)] => {
                            let request = encode(&[text]);
                            // Without the count of arguments.
                            raw(&mut pieces, &request[b"*1\r\n".len()..]);
                        }
                        [Bit::Key(slot)] => pieces.push(Piece::Key(*slot)),
                        [Bit::Value(values, owner)] => pieces.push(Piece::Value(*values, *owner)),
                        _ => pieces.push(Piece::Mixed(bits)),
                    }
                }
                Argument::Keys(key, times) => {
                    arguments += *times as usize - 1;
                    keys += *times as usize;
                    pieces.push(Piece::Keys(self.space(key), *times));
                }
                Argument::Pairs(key, times) => {
                    arguments += 2 * *times as usize - 1;
                    keys += *times as usize;
                    pieces.push(Piece::Pairs(self.space(key), *times));
                }
                Argument::Captured(name) => {
                    arguments -= 1;
                    let field = self.field(name);
                    needs |= 1 << field;
                    pieces.push(Piece::Captured(field));
                }
            }
        }
        let fixed = !pieces
            .iter()
            .any(|piece| matches!(piece, Piece::Captured(_)));
        if fixed {
            let mut head = format!("*{arguments}\r\n").into_bytes();
            match pieces.first_mut() {
                Some(Piece::Raw(first)) => {
                    head.append(first);
                    *first = head;
                }
                _ => pieces.insert(0, Piece::Raw(head)),
            }
        }
        let captures = command
            .captures
            .iter()
            .map(|capture| (self.field(&capture.name), capture.path.clone()))
            .collect();
        Request {
            class,
            arguments,
            pieces,
            needs,
            captures,
            expects: self.expects(command, keys),
            keys,
        }
    }

    fn bit(
        &mut self,
        part: &Part,
        owner: &mut Option<usize>,
        keys: &mut usize,
        needs: &mut u64,
    ) -> Bit {
        match part {
            Part::Text(text) => Bit::Text(text.clone()),
            Part::Key(key) => {
                let slot = self.slot(key);
                *owner = Some(slot);
                *keys += 1;
                Bit::Key(slot)
            }
            Part::Value(sizes) => {
                let sizes = sizes.as_ref().unwrap_or(&self.spec.value_sizes);
                let values = place(&mut self.sizes, sizes);
                Bit::Value(values, *owner)
            }
            Part::Integer(from, to) => Bit::Integer(*from, *to),
            Part::Number => Bit::Number,
            Part::Connection => Bit::Connection,
            Part::Captured(name) => {
                let field = self.field(name);
                *needs |= 1 << field;
                Bit::Captured(field)
            }
        }
    }

    fn space(&mut self, key: &KeyUse) -> usize {
        let space = key.space.applied_to(&self.spec.keys);
        place(&mut self.spaces, &space)
    }

    fn slot(&mut self, key: &KeyUse) -> usize {
        let space = self.space(key);
        place(&mut self.slots, &(key.name.clone(), space))
    }

    fn field(&mut self, name: &str) -> usize {
        place(&mut self.captured, &name.to_owned())
    }

    fn expects(&self, command: &Command, keys: usize) -> Expects {
        let plain = command.arguments.len();
        match (&command.name()[..], keys) {
            // Other arguments may make it answer otherwise.
            ("SET", 1) if plain == 3 => Expects::Ok,
            ("MSET", _) => Expects::Ok,
            ("GET" | "GETDEL" | "GETEX" | "GETSET", 1) => Expects::Value,
            ("MGET", 1..) => Expects::Values,
            _ => Expects::Anything,
        }
    }
}

/// The index of an item, which is added if it is not there.
fn place<T: PartialEq + Clone>(items: &mut Vec<T>, item: &T) -> usize {
    match items.iter().position(|known| known == item) {
        Some(index) => index,
        None => {
            items.push(item.clone());
            items.len() - 1
        }
    }
}

/// Adds bytes, to the last piece if it consists of bytes.
fn raw(pieces: &mut Vec<Piece>, bytes: &[u8]) {
    match pieces.last_mut() {
        Some(Piece::Raw(last)) => last.extend_from_slice(bytes),
        _ => pieces.push(Piece::Raw(bytes.to_vec())),
    }
}
