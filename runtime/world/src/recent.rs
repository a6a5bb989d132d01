//! Cache of a rank's recent calls. An entry has everything about a call that does not depend on
//! matrix values.

/// Recent calls, the latest at the end.
pub(crate) struct RecentCalls<T>(Vec<T>);

impl<T> Default for RecentCalls<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> RecentCalls<T> {
    /// Capacity. An entry is dropped if it was not used during this number of newer calls.
    const MOST: usize = 16;

    /// Takes a matching entry out of the cache. The caller puts it back unless its call fails.
    pub(crate) fn take(&mut self, is_it: impl FnMut(&T) -> bool) -> Option<T> {
        let place = self.0.iter().position(is_it)?;
        Some(self.0.remove(place))
    }

    /// Adds an entry as the latest.
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
    fn recent_calls_are_kept() {
        let mut known = RecentCalls::default();
        for number in 0..20 {
            known.keep(number);
        }
        // The entry that is used again and again stays.
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
