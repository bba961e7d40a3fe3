//! Nanoseconds per operation and bytes per element of lists, against a double-ended queue of vectors and a persistent vector.
//!
//! `cargo bench -p weft-data --bench list -- [ELEMENTS ...]`, for example `-- 1000 1000000`. All allocate from jemalloc, as the server
//! does. Only the list keeps elements in common memory; the queue takes no snapshots.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Arc;

use rustix::time::{ClockId, clock_gettime};
use weft_data::collection::{Collection, CollectionRef, Draft};
use weft_data::list::{Element, End, ListMut, ListRef, NodeLimit};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const OPERATIONS: usize = 1 << 20;

fn text(number: usize) -> [u8; 16] {
    let mut text = *b"element:00000000";
    let mut rest = number;
    for digit in text[8..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    text
}

/// What is measured of each.
trait Sequence: Clone {
    const NAME: &'static str;
    fn new() -> Self;
    fn push(&mut self, end: End, element: &[u8]);
    fn pop(&mut self, end: End) -> usize;
    fn at(&self, index: usize) -> usize;
    /// The lengths of a hundred elements together.
    fn hundred(&self, from: usize) -> usize;
    fn set_at(&mut self, index: usize, element: &[u8]);
}

#[derive(Clone)]
struct Large(Box<Collection>);

impl Large {
    fn edit<R>(&mut self, act: impl FnOnce(&mut ListMut<'_, '_>) -> R) -> R {
        let mut draft = Draft::Large(&mut self.0);
        act(&mut ListMut::new(&mut draft, NodeLimit::of_setting(-2)))
    }

    fn list(&self) -> ListRef<'_> {
        CollectionRef::Large(&self.0).into()
    }
}

impl Sequence for Large {
    const NAME: &'static str = "list";

    fn new() -> Self {
        let mut bytes = Vec::new();
        let mut draft = Draft::Packed(&mut bytes);
        let long = [b'x'; 2000];
        ListMut::new(&mut draft, NodeLimit::of_setting(-2))
            .push(End::Left, [Element::Bytes(&long)].into_iter());
        let Draft::Grown(collection) = draft else {
            unreachable!("it is too long to be packed")
        };
        Self(collection)
    }

    fn push(&mut self, end: End, element: &[u8]) {
        self.edit(|list| list.push(end, [Element::Bytes(element)].into_iter()));
    }

    fn pop(&mut self, end: End) -> usize {
        let mut len = 0;
        self.edit(|list| list.pop(end, 1, |element| len = element.len()));
        len
    }

    fn at(&self, index: usize) -> usize {
        self.list().get(index).map_or(0, Element::len)
    }

    fn hundred(&self, from: usize) -> usize {
        self.list().elements(from).take(100).map(Element::len).sum()
    }

    fn set_at(&mut self, index: usize, element: &[u8]) {
        self.edit(|list| list.set(index, Element::Bytes(element)));
    }
}

impl Sequence for VecDeque<Vec<u8>> {
    const NAME: &'static str = "queue";

    fn new() -> Self {
        Self::default()
    }

    fn push(&mut self, end: End, element: &[u8]) {
        match end {
            End::Left => self.push_front(element.to_vec()),
            End::Right => self.push_back(element.to_vec()),
        }
    }

    fn pop(&mut self, end: End) -> usize {
        match end {
            End::Left => self.pop_front(),
            End::Right => self.pop_back(),
        }
        .map_or(0, |element| element.len())
    }

    fn at(&self, index: usize) -> usize {
        self[index].len()
    }

    fn hundred(&self, from: usize) -> usize {
        self.iter().skip(from).take(100).map(Vec::len).sum()
    }

    fn set_at(&mut self, index: usize, element: &[u8]) {
        self[index] = element.to_vec();
    }
}

impl Sequence for imbl::Vector<Arc<[u8]>> {
    const NAME: &'static str = "imbl";

    fn new() -> Self {
        Self::default()
    }

    fn push(&mut self, end: End, element: &[u8]) {
        match end {
            End::Left => self.push_front(element.into()),
            End::Right => self.push_back(element.into()),
        }
    }

    fn pop(&mut self, end: End) -> usize {
        match end {
            End::Left => self.pop_front(),
            End::Right => self.pop_back(),
        }
        .map_or(0, |element| element.len())
    }

    fn at(&self, index: usize) -> usize {
        self[index].len()
    }

    fn hundred(&self, from: usize) -> usize {
        let until = self.len().min(from + 100);
        let part = self.focus().narrow(from..until);
        part.into_iter().map(|element| element.len()).sum()
    }

    fn set_at(&mut self, index: usize, element: &[u8]) {
        self.set(index, element.into());
    }
}

/// Processor time of this thread in nanoseconds, which tells more than a clock while others work.
fn now() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// Nanoseconds of one of so many calls.
fn time(operations: usize, mut act: impl FnMut(usize)) -> f64 {
    let start = now();
    (0..operations).for_each(&mut act);
    (now() - start) / operations as f64
}

fn measure<S: Sequence>(elements: usize) {
    let mut random = fastrand::Rng::with_seed(1);
    let places: Vec<usize> = (0..OPERATIONS).map(|_| random.usize(..elements)).collect();
    let mut sequence = S::new();
    let right = time(elements, |number| sequence.push(End::Right, &text(number)));
    let mut left_sequence = S::new();
    let left = time(elements, |number| {
        left_sequence.push(End::Left, &text(number))
    });
    drop(left_sequence);
    let queue = time(OPERATIONS, |number| {
        sequence.push(End::Left, &text(number));
        black_box(sequence.pop(End::Right));
    });
    let at = time(OPERATIONS, |number| {
        black_box(sequence.at(places[number]));
    });
    let range = time(OPERATIONS / 64, |number| {
        black_box(sequence.hundred(places[number]));
    });
    let set = time(OPERATIONS / 4, |number| {
        sequence.set_at(places[number], &text(number));
    });
    let clone = (S::NAME != "queue").then(|| {
        time(OPERATIONS / 16, |number| {
            let snapshot = sequence.clone();
            sequence.push(End::Left, &text(number));
            sequence.pop(End::Left);
            drop(snapshot);
        })
    });
    let pop = time(elements, |_| {
        black_box(sequence.pop(End::Right));
    });
    let clone = clone.map_or("-".into(), |clone| format!("{clone:.0}"));
    println!(
        "{elements:>9} {:>6} {right:>10.1} {left:>10.1} {pop:>8.1} {queue:>10.1} {at:>8.1} {range:>10.0} {set:>8.1} {clone:>14}",
        S::NAME
    );
}

fn main() {
    let sizes: Vec<usize> = std::env::args()
        .filter_map(|word| word.parse().ok())
        .collect();
    let sizes = if sizes.is_empty() {
        vec![100, 10_000, 1_000_000]
    } else {
        sizes
    };
    println!(
        "{:>9} {:>6} {:>10} {:>10} {:>8} {:>10} {:>8} {:>10} {:>8} {:>14}",
        "elements",
        "",
        "push right",
        "push left",
        "pop",
        "push + pop",
        "at",
        "100 of it",
        "set",
        "snapshot, edit"
    );
    for elements in sizes {
        measure::<Large>(elements);
        measure::<VecDeque<Vec<u8>>>(elements);
        measure::<imbl::Vector<Arc<[u8]>>>(elements);
    }
}
