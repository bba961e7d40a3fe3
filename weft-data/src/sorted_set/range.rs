//! Parts of a sorted set as clients name them: by scores, or by members where all scores are equal.

/// The members with scores from one to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreRange {
    /// The lowest score; never NaN.
    pub min: f64,
    /// Whether the lowest score itself is left out.
    pub min_excluded: bool,
    /// The highest score; never NaN.
    pub max: f64,
    /// Whether the highest score itself is left out.
    pub max_excluded: bool,
}

impl ScoreRange {
    /// Whether what has this score comes before the range.
    #[inline]
    #[must_use]
    pub fn is_after(&self, score: f64) -> bool {
        score < self.min || (self.min_excluded && score == self.min)
    }

    /// Whether what has this score comes behind the range.
    #[inline]
    #[must_use]
    pub fn is_before(&self, score: f64) -> bool {
        score > self.max || (self.max_excluded && score == self.max)
    }
}

/// An end of a range of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberBound<'a> {
    /// Lower than any member.
    Lowest,
    /// Higher than any member.
    Highest,
    /// This string and whatever lies inwards.
    Included(&'a [u8]),
    /// Whatever lies inwards of this string.
    Excluded(&'a [u8]),
}

/// The members from one to another in the order of their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberRange<'a> {
    /// The lower end.
    pub min: MemberBound<'a>,
    /// The upper end.
    pub max: MemberBound<'a>,
}

impl MemberRange<'_> {
    /// Whether this member comes before the range.
    #[inline]
    #[must_use]
    pub fn is_after(&self, member: &[u8]) -> bool {
        match self.min {
            MemberBound::Lowest => false,
            MemberBound::Highest => true,
            MemberBound::Included(min) => member < min,
            MemberBound::Excluded(min) => member <= min,
        }
    }

    /// Whether this member comes behind the range.
    #[inline]
    #[must_use]
    pub fn is_before(&self, member: &[u8]) -> bool {
        match self.max {
            MemberBound::Lowest => true,
            MemberBound::Highest => false,
            MemberBound::Included(max) => member > max,
            MemberBound::Excluded(max) => member >= max,
        }
    }

    /// Whether nothing can lie in it, whatever the members are.
    #[must_use]
    pub fn is_void(&self) -> bool {
        use MemberBound::{Excluded, Highest, Included, Lowest};
        match (self.min, self.max) {
            (Highest, _) | (_, Lowest) => true,
            (Lowest, _) | (_, Highest) => false,
            (Included(min), Included(max)) => min > max,
            (Included(min) | Excluded(min), Included(max) | Excluded(max)) => min >= max,
        }
    }
}
