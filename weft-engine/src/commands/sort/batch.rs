//! The elements of a SORT, each with what it is sorted by, and how two of them compare.
//!
//! Texts lie one behind the other, long ones apart, shared. Numbers decide first, then the bytes of the elements. Texts that are only
//! replied are compared up to their first NUL, as C's collation does; what is equal then keeps its order.

use std::borrow::Cow;
use std::cmp::Ordering;

use weft_data::number::{parse_i64, parse_score_bound};
use weft_keyspace::StringRef;
use weft_resp::Writer;
use weft_rope::Rope;

use super::super::values::Captured;
use super::merging::Merging;
use super::options::Options;
use crate::dispatch::Budget;

/// The longest text that may be an integer.
const INTEGER_LEN_MAX: usize = 20;

/// What elements are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Criterion {
    /// Not at all.
    Nothing,
    /// The numbers that they are.
    OwnNumbers,
    /// The numbers that were looked up.
    FoundNumbers,
    /// Their own texts.
    OwnTexts,
    /// The texts that were looked up.
    FoundTexts,
}

/// One element.
#[derive(Clone, Copy, Debug)]
struct Item {
    number: f64,
    /// Where its text begins; of a long one: its number among the long ones.
    start: usize,
    /// The length of its text.
    len: u32,
    /// The number of its weight among the weights, counted from 1; 0: none.
    weight: u32,
}

/// What stands for the length of a text that lies apart.
const APART: u32 = u32::MAX;

/// Elements, in their order.
#[derive(Debug)]
pub(super) struct Batch {
    criterion: Criterion,
    /// Texts are compared as a whole.
    whole: bool,
    items: Vec<Item>,
    bytes: Vec<u8>,
    apart: Vec<Rope>,
    /// The texts that were looked up.
    weights: Vec<Box<[u8]>>,
    /// Some text has a NUL.
    has_nul: bool,
    failed: bool,
    merging: Merging<Item>,
}

/// The number that a text is, as a score's end would be read.
fn number(text: &[u8]) -> Option<f64> {
    let integer = (text.len() <= INTEGER_LEN_MAX).then(|| parse_i64(text));
    match integer.flatten() {
        Some(integer) => Some(integer as f64),
        None => parse_score_bound(text),
    }
}

impl Batch {
    /// None yet of `expected` elements.
    pub(super) fn new(options: &Options, expected: usize) -> Self {
        let criterion = match (options.unsorted, options.alpha, options.by) {
            (true, ..) => Criterion::Nothing,
            (_, false, None) => Criterion::OwnNumbers,
            (_, false, Some(_)) => Criterion::FoundNumbers,
            (_, true, None) => Criterion::OwnTexts,
            (_, true, Some(_)) => Criterion::FoundTexts,
        };
        Self {
            criterion,
            whole: options.store.is_some(),
            items: Vec::with_capacity(expected),
            bytes: Vec::new(),
            apart: Vec::new(),
            weights: Vec::new(),
            has_nul: false,
            failed: false,
            merging: Merging::default(),
        }
    }

    /// Whether something was to be a number and was none.
    pub(super) const fn failed(&self) -> bool {
        self.failed
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn push(&mut self, text: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text);
        let number = match self.criterion {
            Criterion::OwnNumbers => self.checked(number(text)),
            _ => 0.0,
        };
        self.note_nul(text);
        self.items.push(Item {
            number,
            start,
            len: text.len() as u32,
            weight: 0,
        });
    }

    pub(super) fn push_rope(&mut self, rope: &Rope) {
        let text = whole_text(rope);
        let number = match self.criterion {
            Criterion::OwnNumbers => self.checked(number(&text)),
            _ => 0.0,
        };
        self.note_nul(&text);
        self.items.push(Item {
            number,
            start: self.apart.len(),
            len: APART,
            weight: 0,
        });
        self.apart.push(rope.clone());
    }

    fn note_nul(&mut self, text: &[u8]) {
        let compared = matches!(self.criterion, Criterion::OwnTexts | Criterion::FoundTexts);
        if compared && !self.whole {
            self.has_nul |= text.contains(&0);
        }
    }

    fn checked(&mut self, number: Option<f64>) -> f64 {
        self.failed |= number.is_none();
        number.unwrap_or_default()
    }

    /// Says that an integer was looked up for an element, if it is one and a number is wanted.
    pub(super) fn weighs_integer(&mut self, index: usize, found: StringRef<'_>) -> bool {
        match found {
            StringRef::Int(value) if self.criterion == Criterion::FoundNumbers => {
                self.items[index].number = value as f64;
                true
            }
            _ => false,
        }
    }

    /// Says what was looked up for an element.
    pub(super) fn weigh(&mut self, index: usize, found: Option<&[u8]>) {
        let Some(text) = found else {
            return;
        };
        if self.criterion == Criterion::FoundNumbers {
            let number = self.checked(number(text));
            self.items[index].number = number;
        } else {
            self.note_nul(text);
            self.weights.push(text.into());
            self.items[index].weight = self.weights.len() as u32;
        }
    }

    /// An element's text.
    pub(super) fn text(&self, index: usize) -> Cow<'_, [u8]> {
        self.text_of(&self.items[index])
    }

    fn text_of(&self, item: &Item) -> Cow<'_, [u8]> {
        if item.len == APART {
            whole_text(&self.apart[item.start])
        } else {
            self.bytes[item.start..item.start + item.len as usize].into()
        }
    }

    pub(super) fn text_len(&self, index: usize) -> usize {
        match self.items[index].len {
            APART => 0,
            len => len as usize,
        }
    }

    /// An element for whoever keeps it.
    pub(super) fn captured(&self, index: usize) -> Captured {
        let item = &self.items[index];
        if item.len == APART {
            Captured::Rope(self.apart[item.start].clone())
        } else {
            Captured::Bytes(self.text_of(item).into_owned())
        }
    }

    pub(super) fn reply(&self, reply: &mut Writer<'_>, index: usize) {
        let item = &self.items[index];
        if item.len == APART {
            reply.bulk_rope(&self.apart[item.start]);
        } else {
            reply.bulk(&self.bytes[item.start..item.start + item.len as usize]);
        }
    }

    /// Puts them in order, on from where it was left, until done or until the budget is spent; whether it is done.
    pub(super) fn sort(&mut self, descending: bool, budget: &mut Budget) -> bool {
        let mut items = std::mem::take(&mut self.items);
        let mut merging = std::mem::take(&mut self.merging);
        let done = merging.step(&mut items, budget, |one, other| {
            if descending {
                self.compare(other, one)
            } else {
                self.compare(one, other)
            }
        });
        (self.items, self.merging) = (items, merging);
        done
    }

    fn compare(&self, one: &Item, other: &Item) -> Ordering {
        match self.criterion {
            Criterion::Nothing => Ordering::Equal,
            Criterion::OwnNumbers | Criterion::FoundNumbers => {
                let by_number = one.number.partial_cmp(&other.number);
                by_number
                    .unwrap_or(Ordering::Equal)
                    .then_with(|| self.text_of(one).cmp(&self.text_of(other)))
            }
            Criterion::OwnTexts => self.collate(&self.text_of(one), &self.text_of(other)),
            Criterion::FoundTexts => match (self.weight(one), self.weight(other)) {
                (Some(one), Some(other)) => self.collate(one, other),
                // What has none comes first.
                (one, other) => one.is_some().cmp(&other.is_some()),
            },
        }
    }

    fn weight(&self, item: &Item) -> Option<&[u8]> {
        let index = (item.weight as usize).checked_sub(1)?;
        self.weights.get(index).map(|text| &**text)
    }

    fn collate(&self, one: &[u8], other: &[u8]) -> Ordering {
        if self.has_nul {
            until_nul(one).cmp(until_nul(other))
        } else {
            one.cmp(other)
        }
    }
}

fn until_nul(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| *byte == 0);
    &text[..end.unwrap_or(text.len())]
}

fn whole_text(rope: &Rope) -> Cow<'_, [u8]> {
    rope.as_contiguous()
        .map_or_else(|| rope.to_vec().into(), Cow::from)
}
