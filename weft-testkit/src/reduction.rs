//! Shortening a sequence as long as it still shows something: halves are left out, then quarters, down to single items.

use crate::error::KitError;

/// Tries a sequence: what it shows, if it does.
pub type Trial<'a, T, S> = dyn FnMut(&[T]) -> Result<Option<S>, KitError> + 'a;

/// The shortest sequence found, with what it shows; `shown` is what `items` show, and `shows` tries others.
///
/// Single items are tried until none can be left out. `shows` bounds the time by finding nothing any more.
pub fn shorten<T: Clone, S>(
    mut items: Vec<T>,
    mut shown: S,
    shows: &mut Trial<'_, T, S>,
) -> Result<(Vec<T>, S), KitError> {
    let mut piece = items.len().div_ceil(2).max(1);
    loop {
        let before = items.len();
        let mut start = 0;
        while start < items.len() {
            let end = (start + piece).min(items.len());
            let mut fewer = items.clone();
            fewer.drain(start..end);
            match shows(&fewer)? {
                Some(found) => {
                    items = fewer;
                    shown = found;
                }
                None => start = end,
            }
        }
        if piece == 1 && items.len() == before {
            return Ok((items, shown));
        }
        piece = piece.div_ceil(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_matters_is_left() {
        // It shows wherever there are two threes and a seven.
        let mut tried = 0;
        let mut shows = |items: &[u32]| {
            tried += 1;
            let threes = items.iter().filter(|&&item| item == 3).count();
            Ok((threes >= 2 && items.contains(&7)).then_some(items.len()))
        };
        let items: Vec<u32> = (0..1000).map(|number| number % 10).collect();
        let (items, shown) = shorten(items, 0, &mut shows).expect("nothing fails");
        assert_eq!((items, shown), (vec![3, 7, 3], 3));
        assert!(tried < 200, "{tried} tries");
    }

    #[test]
    fn what_shows_nothing_shorter_stays() {
        let (items, ()) = shorten(vec![1, 2, 3], (), &mut |_| Ok(None)).expect("nothing fails");
        assert_eq!(items, [1, 2, 3]);
    }
}
