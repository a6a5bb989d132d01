//! Compact sets of threads of a block.

use crate::wgmma::ranges;
use serde::Serialize;
use std::collections::BTreeMap;

/// Set of threads. Each entry is a bit mask of warps and a bit mask of lanes, which are the same in
/// all these warps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Threads(Vec<[u32; 2]>);

impl Threads {
    /// Collects threads by their numbers in the block.
    pub(super) fn new<'t>(threads: impl IntoIterator<Item = &'t u32>) -> Self {
        let mut lanes: BTreeMap<u32, u32> = BTreeMap::new();
        for thread in threads {
            *lanes.entry(thread / 32).or_default() |= 1 << (thread % 32);
        }
        let mut all: Vec<[u32; 2]> = Vec::new();
        for (warp, lanes) in lanes {
            match all.iter_mut().find(|[_, of]| *of == lanes) {
                // A block has at most 32 warps.
                Some([warps, _]) => *warps |= 1 << (warp % 32),
                None => all.push([1 << (warp % 32), lanes]),
            }
        }
        Self(all)
    }

    pub fn count(&self) -> u64 {
        let count = |[warps, lanes]: &[u32; 2]| u64::from(warps.count_ones() * lanes.count_ones());
        self.0.iter().map(count).sum()
    }

    /// Returns true if the set contains the thread.
    pub fn has(&self, thread: u32) -> bool {
        let is_of =
            |[warps, lanes]: &[u32; 2]| warps >> (thread / 32) & lanes >> (thread % 32) & 1 == 1;
        self.0.iter().any(is_of)
    }

    /// Describes the set by lanes and warps.
    pub fn text(&self) -> String {
        let part = |[warps, lanes]: &[u32; 2]| {
            let named = |word: &str, bits: u32| {
                let s = if bits.count_ones() == 1 { "" } else { "s" };
                format!("{word}{s} {}", ranges((0..32).filter(|n| bits >> n & 1 == 1)))
            };
            let of_warps = named("warp", *warps);
            match *lanes {
                u32::MAX => of_warps,
                lanes => format!("{} of {of_warps}", named("lane", lanes)),
            }
        };
        self.0.iter().map(part).collect::<Vec<_>>().join("; ")
    }

    /// Encodes the set for the script of a page: masks of warps and of lanes, in hexadecimal.
    pub fn bits(&self) -> String {
        let part = |[warps, lanes]: &[u32; 2]| format!("{warps:x}:{lanes:x}");
        self.0.iter().map(part).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warps_with_the_same_lanes_are_named_together() {
        let of = |threads: &[u32]| Threads::new(threads);
        assert_eq!(of(&[35]).text(), "lane 3 of warp 1");
        let all: Vec<u32> = (0..64).collect();
        assert_eq!((of(&all).text().as_str(), of(&all).count()), ("warps 0–1", 64));
        let some = of(&[0, 1, 2, 8, 64, 65, 66, 72, 33]);
        assert_eq!(some.text(), "lanes 0–2, 8 of warps 0, 2; lane 1 of warp 1");
        assert_eq!((some.bits().as_str(), some.count()), ("5:107,2:2", 9));
        assert_eq!(of(&[]).text(), "");
        assert!((0..96).all(|n| some.has(n) == [0, 1, 2, 8, 33, 64, 65, 66, 72].contains(&n)));
    }
}
