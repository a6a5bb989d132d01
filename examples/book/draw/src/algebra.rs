//! Linear algebra of warp accesses: the stride of each bit of the lane number, lanes with bank
//! conflicts, and the padding that avoids the conflicts.

use gemm_dsl::target::arch::WARP;
use gemm_sim::cost;
use gemm_sim::cost::BANKS;
use serde::Serialize;

/// Number of lanes in a warp, and number of bits in a lane number.
const LANES: usize = WARP as usize;
const BITS: usize = WARP.ilog2() as usize;

/// Address strides of the five bits of the lane number, for an access that is linear in these bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Strides(pub [i32; BITS]);

impl Strides {
    /// Returns the strides of a full warp, or `None` if a lane is inactive or the access is not
    /// linear.
    pub fn from_lanes(lanes: &[Option<i32>; LANES]) -> Option<Self> {
        let strides: [i32; BITS] = std::array::from_fn(|bit| lanes[1 << bit].unwrap_or(0));
        let is_sum = |(lane, at): (usize, &Option<i32>)| {
            let bits = (0..BITS).filter(|bit| lane >> bit & 1 == 1);
            *at == Some(bits.map(|bit| strides[bit]).sum())
        };
        lanes.iter().enumerate().all(is_sum).then_some(Self(strides))
    }

    /// Formats the strides as a layout, shape before strides: `(8,4):(1,132)`. Consecutive bits
    /// with doubling strides form one mode.
    pub fn text(&self) -> String {
        let mut modes: Vec<(u32, i32)> = Vec::new();
        for &stride in &self.0 {
            match modes.last_mut() {
                Some((size, first)) if *first * *size as i32 == stride => *size *= 2,
                _ => modes.push((2, stride)),
            }
        }
        let list = |part: fn(&(u32, i32)) -> String| {
            let parts: Vec<String> = modes.iter().map(part).collect();
            if let [part] = &parts[..] { part.clone() } else { format!("({})", parts.join(",")) }
        };
        format!("{}:{}", list(|(size, _)| size.to_string()), list(|(_, at)| at.to_string()))
    }
}

/// Two lanes with a bank conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Collision {
    pub lanes: [u32; 2],
    /// Distance of their words, a multiple of the number of banks.
    pub words: i64,
    /// Bit in which the lane numbers differ, if they differ in only one.
    pub bit: Option<u32>,
}

/// Groups lanes by the first word they access. Returns each word with its lanes as a bit mask.
pub fn groups(words: impl Iterator<Item = (u32, u32)>) -> Vec<(u32, u32)> {
    let mut groups: Vec<(u32, u32)> = Vec::new();
    for (lane, word) in words {
        match groups.iter_mut().find(|(known, _)| *known == word) {
            Some((_, lanes)) => *lanes |= 1 << lane,
            None => groups.push((word, 1 << lane)),
        }
    }
    groups
}

/// Returns two lanes that access different words of one bank in the same phase. Among all such
/// pairs, it is the one whose lane numbers differ in the fewest bits.
pub fn collision(groups: &[(u32, u32)], bytes: u32, writes: bool) -> Option<Collision> {
    let width = (bytes / 4).max(1);
    let bank = |word: u32| word / width % (BANKS as u32 / width);
    let mut found: Vec<Collision> = Vec::new();
    for phase in cost::phases(groups, bytes, writes) {
        for (i, &(word, lanes)) in groups.iter().enumerate() {
            let others = groups[i + 1..].iter().filter(|(other, _)| bank(*other) == bank(word));
            for &(other, of_other) in others {
                let (mine, its) = (lanes & phase, of_other & phase);
                if mine == 0 || its == 0 {
                    continue;
                }
                let pair = [mine.trailing_zeros(), its.trailing_zeros()];
                let (low, high) = if pair[0] < pair[1] { (word, other) } else { (other, word) };
                let lanes = [pair[0].min(pair[1]), pair[0].max(pair[1])];
                let apart = lanes[0] ^ lanes[1];
                let bit = apart.is_power_of_two().then(|| apart.trailing_zeros());
                found.push(Collision { lanes, words: i64::from(high) - i64::from(low), bit });
            }
        }
    }
    found.into_iter().min_by_key(|c| ((c.lanes[0] ^ c.lanes[1]).count_ones(), c.lanes))
}

/// Access of a warp to a two-dimensional array of words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarpAccess {
    /// Active lanes, each with its row and column.
    pub places: Vec<(u32, (u32, u32))>,
    /// Bytes accessed by each lane.
    pub bytes: u32,
    pub writes: bool,
    /// Number of times the access occurs.
    pub times: u64,
}

impl WarpAccess {
    /// Groups the lanes by first word, for a layout given as a map from row and column to word.
    pub fn words(&self, word: impl Fn(u32, u32) -> u32) -> Vec<(u32, u32)> {
        groups(self.places.iter().map(|(lane, (row, column))| (*lane, word(*row, *column))))
    }

    /// Wavefronts of one access, for a layout given as a map from row and column to word.
    pub fn wavefronts_at(&self, word: impl Fn(u32, u32) -> u32) -> u64 {
        cost::wavefronts(&self.words(word), self.bytes, self.writes).wavefronts
    }

    /// Wavefronts of one access if rows have `length` words.
    pub fn wavefronts(&self, length: u32) -> u64 {
        self.wavefronts_at(|row, column| row * length + column)
    }
}

/// Returns the smallest row padding in words with the lowest total cost of all accesses, or `None`
/// if no padding lowers the cost. Paddings are multiples of the widest access, which keeps vectors
/// aligned. `row` is the row length in words, including existing padding.
pub fn best_padding(accesses: &[WarpAccess], row: u32) -> Option<u32> {
    let cost = |pad: u32| -> u64 {
        accesses.iter().map(|access| access.times * access.wavefronts(row + pad)).sum()
    };
    let step = accesses.iter().map(|access| (access.bytes / 4).max(1)).max()?;
    // A padding of `BANKS` words maps each word to the same bank as no padding.
    let pads = (1..BANKS as u32 / step).map(|n| n * step);
    let best = pads.min_by_key(|pad| (cost(*pad), *pad))?;
    (cost(best) < cost(0)).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warp(at: impl Fn(usize) -> i32) -> [Option<i32>; LANES] {
        std::array::from_fn(|lane| Some(at(lane)))
    }

    #[test]
    fn distances_are_sums_over_bits_or_not() {
        let text =
            |at: fn(usize) -> i32| Strides::from_lanes(&warp(at)).map(|strides| strides.text());
        assert_eq!(text(|lane| lane as i32).as_deref(), Some("32:1"));
        assert_eq!(text(|_| 0).as_deref(), Some("32:0"));
        assert_eq!(
            text(|lane| (lane % 8 + lane / 8 * 132) as i32).as_deref(),
            Some("(8,4):(1,132)")
        );
        assert_eq!(text(|lane| (lane / 8) as i32).as_deref(), Some("(8,4):(0,1)"));
        assert_eq!(text(|lane| (lane * lane) as i32), None);
        let mut some = warp(|lane| lane as i32);
        some[7] = None;
        assert_eq!(Strides::from_lanes(&some), None);
    }

    #[test]
    fn lanes_collide_where_banks_are_the_same() {
        let at = |stride: u32| groups((0..32).map(move |lane| (lane, lane * stride)));
        assert_eq!(collision(&at(1), 4, false), None);
        let found = collision(&at(8), 4, false).expect("four to a bank");
        assert_eq!(found, Collision { lanes: [0, 4], words: 32, bit: Some(2) });
        // A phase of a 16-byte access has eight lanes.
        assert_eq!(collision(&at(4), 16, false), None);
        let found = collision(&at(16), 16, true).expect("four quads apart");
        assert_eq!((found.lanes, found.words), ([0, 2], 32));
    }

    /// Access of a warp to one column of an array.
    fn column(bytes: u32, writes: bool) -> WarpAccess {
        let places = (0..32).map(|lane| (lane, (lane, 0))).collect();
        WarpAccess { places, bytes, writes, times: 1 }
    }

    #[test]
    fn the_least_padding_is_found() {
        let access = column(4, false);
        assert_eq!(
            (best_padding(std::slice::from_ref(&access), 32), access.wavefronts(33)),
            (Some(1), 1)
        );
        assert_eq!(best_padding(&[access], 33), None);
        // Padding keeps 16-byte accesses aligned.
        let access = column(16, true);
        assert_eq!(
            (best_padding(std::slice::from_ref(&access), 32), access.wavefronts(36)),
            (Some(4), 4)
        );
        assert_eq!(best_padding(&[], 32), None);
    }

    /// The padding of an array has the lowest total cost of all accesses, and 16-byte accesses stay
    /// aligned.
    #[test]
    fn one_padding_serves_all_accesses_to_an_array() {
        let row = WarpAccess {
            places: (0..8).map(|lane| (lane, (0, 4 * lane))).collect(),
            ..column(16, false)
        };
        assert_eq!(best_padding(&[column(4, true), row], 32), Some(4));
        // A diagonal access, and a more frequent column access.
        let apart = WarpAccess {
            places: (0..32).map(|lane| (lane, (lane, lane))).collect(),
            ..column(4, true)
        };
        assert_eq!(best_padding(std::slice::from_ref(&apart), 63), Some(1));
        let often = WarpAccess { times: 9, ..column(4, false) };
        assert_eq!((often.wavefronts(63), often.wavefronts(64)), (1, 32));
        assert_eq!(best_padding(&[apart.clone(), often.clone()], 63), Some(2));
        assert_eq!((apart.wavefronts(65), often.wavefronts(65)), (2, 1));
    }
}
