//! Address ranges of the arrays of a launch, used to detect overlaps.

use std::ops::Range;

/// Merges ranges that overlap or touch. The result covers the same bytes, in ascending order and
/// without empty ranges.
pub fn united(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, last| {
        let touches = next.start <= last.end;
        last.end = if touches { last.end.max(next.end) } else { last.end };
        touches
    });
    ranges
}

/// Returns true if two sets of ranges share a byte. Both must be the result of [`united`].
pub fn meet(some: &[Range<u64>], others: &[Range<u64>]) -> bool {
    let mut others = others.iter().peekable();
    some.iter().any(|range| {
        while others.next_if(|other| other.end <= range.start).is_some() {}
        others.peek().is_some_and(|other| !range.is_empty() && other.start < range.end)
    })
}

#[cfg(test)]
mod tests {
    use super::{meet, united};

    #[test]
    fn ranges_meet_where_they_share_a_byte() {
        let some = united(vec![8..12, 0..4, 4..6, 9..10, 20..20]);
        assert_eq!(some, [0..6, 8..12]);
        let (first, last) = ([(6, 8), (12, 40), (5, 5), (0, 0)], [(5, 6), (0, 100), (11, 30)]);
        for ((start, end), expected) in
            first.map(|range| (range, false)).into_iter().chain(last.map(|range| (range, true)))
        {
            // Each range is also combined with a range that overlaps nothing.
            for others in [united(vec![start..end, 50..60]), united(vec![6..8, start..end])] {
                assert_eq!(meet(&some, &others), expected, "{others:?}");
                assert_eq!(meet(&others, &some), expected, "{others:?}");
            }
        }
    }
}
