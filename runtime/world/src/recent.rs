//! What a rank knows of calls that it has made before, so that it need not find it out again: all that does not depend on the
//! numbers that are given.

/// The calls that were made last, the latest at the end.
pub(crate) struct RecentCalls<T>(Vec<T>);

impl<T> Default for RecentCalls<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> RecentCalls<T> {
    /// How many others may come between two that are alike.
    const MOST: usize = 16;

    /// What is known of a call, which is out of the list until it is kept again: of one that fails nothing is known.
    pub(crate) fn take(&mut self, is_it: impl FnMut(&T) -> bool) -> Option<T> {
        let place = self.0.iter().position(is_it)?;
        Some(self.0.remove(place))
    }

    /// Keeps what is known of a call, which may be the next one too.
    pub(crate) fn keep(&mut self, known: T) {
        if self.0.len() == Self::MOST {
            self.0.remove(0);
        }
        self.0.push(known);
    }
}

#[cfg(test)]
mod tests {
    use super::RecentCalls;

    #[test]
    fn those_that_were_made_last_are_known() {
        let mut known = RecentCalls::default();
        for number in 0..20 {
            known.keep(number);
        }
        // The first is asked for again and again, so that it stays.
        let take = |known: &mut RecentCalls<i32>, number| known.take(|of| *of == number);
        assert_eq!(take(&mut known, 3), None);
        for number in 20..50 {
            assert_eq!(take(&mut known, 4), Some(4));
            assert_eq!(take(&mut known, 4), None);
            known.keep(4);
            known.keep(number);
        }
        assert_eq!(take(&mut known, 34), None);
        assert!((36..50).all(|number| take(&mut known, number) == Some(number)));
    }
}
