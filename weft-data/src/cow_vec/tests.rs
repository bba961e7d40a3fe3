//! The vector against `Vec`, and its snapshots.

use super::*;
use proptest::prelude::*;

impl<T> CowVec<T> {
    /// The bytes of the nodes, counted anew.
    fn counted_bytes(&self) -> usize {
        fn below<T>(node: &Node<T>) -> usize {
            node.bytes()
                + match node {
                    Node::Leaf(_) => 0,
                    Node::Inner(children) => children.iter().map(|child| below(child)).sum(),
                }
        }
        self.root.as_deref().map_or(0, below)
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push(u16),
    Pop(u16),
    Set(usize, u64),
    SwapRemove(usize),
    Snapshot,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1..900_u16).prop_map(Step::Push),
        3 => (1..700_u16).prop_map(Step::Pop),
        4 => (any::<usize>(), any::<u64>()).prop_map(|(at, item)| Step::Set(at, item)),
        3 => any::<usize>().prop_map(Step::SwapRemove),
        1 => Just(Step::Snapshot),
    ];
    proptest::collection::vec(step, 1..60)
}

proptest! {
    #[test]
    fn it_is_a_vector_and_snapshots_stay(steps in steps()) {
        let (mut model, mut subject) = (Vec::new(), CowVec::new());
        let mut snapshots = Vec::new();
        let mut next = 0_u64;
        for step in steps {
            match step {
                Step::Push(count) => for _ in 0..count {
                    next += 1;
                    model.push(next);
                    subject.push(next);
                },
                Step::Pop(count) => for _ in 0..count {
                    prop_assert_eq!(subject.pop(), model.pop());
                },
                Step::Set(at, item) => if !model.is_empty() {
                    let at = at % model.len();
                    model[at] = item;
                    *subject.get_mut(at).expect("it is inside") = item;
                },
                Step::SwapRemove(at) => if !model.is_empty() {
                    let at = at % model.len();
                    prop_assert_eq!(subject.swap_remove(at), Some(model.swap_remove(at)));
                },
                Step::Snapshot => snapshots.push((model.clone(), subject.clone())),
            }
            prop_assert_eq!(subject.len(), model.len());
            prop_assert_eq!(subject.get(model.len()), None);
            prop_assert_eq!(subject.last(), model.last());
            prop_assert_eq!(subject.allocated_bytes(), subject.counted_bytes());
        }
        snapshots.push((model, subject));
        for (model, subject) in snapshots {
            prop_assert!(subject.iter().eq(&model));
            prop_assert_eq!(subject.len(), model.len());
            prop_assert_eq!(subject.allocated_bytes(), subject.counted_bytes());
        }
    }
}

#[test]
fn an_empty_vector_allocates_nothing() {
    let mut subject = CowVec::new();
    assert_eq!(subject.allocated_bytes(), 0);
    for item in 0..5000_u32 {
        subject.push(item);
    }
    while subject.pop().is_some() {}
    assert_eq!(subject.allocated_bytes(), 0);
    assert!(subject.is_empty());
}
