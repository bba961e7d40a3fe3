//! BITOP: strings combined bit by bit.
//!
//! Works on one chunk of every string at a time. A string that has ended counts as zeroes.

/// What is made of the bits in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Set in all strings.
    And,
    /// Set in any string.
    Or,
    /// Set in an odd number of strings.
    Xor,
    /// Clear in the only string.
    Not,
    /// Set in the first string and in no other.
    Diff,
    /// Set in any other string and not in the first.
    Diff1,
    /// Set in the first string and in any other.
    AndOr,
    /// Set in exactly one string.
    One,
}

impl Operator {
    /// All of them by the words clients use.
    const ALL: [(&'static str, Self); 8] = [
        ("AND", Self::And),
        ("OR", Self::Or),
        ("XOR", Self::Xor),
        ("NOT", Self::Not),
        ("DIFF", Self::Diff),
        ("DIFF1", Self::Diff1),
        ("ANDOR", Self::AndOr),
        ("ONE", Self::One),
    ];

    /// The operator of this name, in any letter case.
    #[must_use]
    pub fn by_name(name: &[u8]) -> Option<Self> {
        let named = |(own, _): &&(&str, Self)| name.eq_ignore_ascii_case(own.as_bytes());
        Self::ALL.iter().find(named).map(|(_, operator)| *operator)
    }

    /// Whether it sets the first string against the others, and so needs some.
    #[must_use]
    pub const fn needs_others(self) -> bool {
        matches!(self, Self::Diff | Self::Diff1 | Self::AndOr)
    }
}

/// The combination of `strings`, as long as `len`: no less than the longest of them.
#[must_use]
pub fn combine(operator: Operator, strings: &[&[u8]], len: usize) -> Vec<u8> {
    let (first, others) = match strings {
        [] => return vec![0; len],
        [first, others @ ..] => (*first, others),
    };
    match operator {
        Operator::And => {
            let mut out = extended(first, len);
            others.iter().for_each(|string| keep(&mut out, string));
            out
        }
        Operator::Or => united(strings, len),
        Operator::Xor => {
            let mut out = extended(first, len);
            for string in others {
                each(&mut out, string, |own, other| *own ^= other);
            }
            out
        }
        Operator::Not => {
            let mut out = extended(first, len);
            out.iter_mut().for_each(|byte| *byte = !*byte);
            out
        }
        Operator::Diff => {
            let mut out = extended(first, len);
            for string in others {
                each(&mut out, string, |own, other| *own &= !other);
            }
            out
        }
        Operator::Diff1 => {
            let mut out = united(others, len);
            each(&mut out, first, |own, other| *own &= !other);
            out
        }
        Operator::AndOr => {
            let mut out = united(others, len);
            keep(&mut out, first);
            out
        }
        Operator::One => {
            let mut once = extended(first, len);
            let mut often = vec![0_u8; len];
            for string in others {
                for ((once, often), other) in once.iter_mut().zip(&mut often).zip(*string) {
                    *often |= *once & other;
                    *once ^= other;
                }
            }
            each(&mut once, &often, |own, often| *own &= !often);
            once
        }
    }
}

fn extended(string: &[u8], len: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(len);
    out.extend_from_slice(string);
    out.resize(len, 0);
    out
}

fn united(strings: &[&[u8]], len: usize) -> Vec<u8> {
    let mut out = extended(strings.first().copied().unwrap_or_default(), len);
    for string in strings.iter().skip(1) {
        each(&mut out, string, |own, other| *own |= other);
    }
    out
}

/// Clears in `out` what is clear in `string`.
fn keep(out: &mut [u8], string: &[u8]) {
    each(out, string, |own, other| *own &= other);
    out[string.len()..].fill(0);
}

#[inline(always)]
fn each(out: &mut [u8], string: &[u8], act: impl Fn(&mut u8, u8)) {
    for (own, other) in out.iter_mut().zip(string) {
        act(own, *other);
    }
}
