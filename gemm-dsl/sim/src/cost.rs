//! Cost of a warp's access, computed from the addresses of its lanes. Counters and drawings share
//! these functions.

pub(crate) mod pattern;

use gemm_dsl::target::arch;

/// Size in bytes of a sector, the unit of global-memory transfers.
pub const SECTOR: u64 = arch::SECTOR_BYTES as u64;
/// Sectors per line of the L1 cache.
const LINE: u64 = arch::LINE_SECTORS as u64;
/// Banks of shared memory, each 4 bytes wide.
pub const BANKS: usize = arch::BANKS as usize;

/// Maximum number of words per lane: those of a 16-byte access.
const QUAD: u32 = 4;
/// All lanes in one phase.
const WHOLE: [u32; 1] = [u32::MAX];
/// Lanes of the four phases of a 16-byte access.
const QUARTERS: [u32; 4] = [0xff, 0xff00, 0xff_0000, 0xff00_0000];
/// Lanes of the two phases of an 8-byte access, and of a 16-byte load whose phases merge in pairs.
const PAIRS: [u32; 2] = [0xffff, 0xffff_0000];

/// Cost of a shared-memory access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Wavefronts {
    /// Number of passes through the banks: for each phase, the greatest number of distinct words in
    /// one bank.
    pub wavefronts: u64,
    /// Number of phases with an active lane, which is the minimum number of wavefronts.
    pub phases: u64,
}

impl Wavefronts {
    /// Bank conflicts: wavefronts beyond one per phase.
    pub fn conflicts(self) -> u64 {
        self.wavefronts - self.phases
    }
}

/// Returns true if the phases of a 16-byte load merge in pairs. This requires one of two
/// conditions: all active lanes read the same address as their neighbour, or all read the same as
/// the lane two away in their group of four. The rule was fitted to the profiler's counts on an
/// H200, see `tests/wavefronts.txt`. Phases of stores never merge.
fn in_pairs(groups: &[(u32, u32)], active: u32) -> bool {
    let alike =
        |swap: fn(u32) -> u32| groups.iter().all(|&(_, lanes)| swap(lanes) & active & !lanes == 0);
    alike(|lanes| (lanes & 0x5555_5555) << 1 | lanes >> 1 & 0x5555_5555)
        || alike(|lanes| (lanes & 0x3333_3333) << 2 | lanes >> 2 & 0x3333_3333)
}

/// Phases of a shared-memory access. Lanes of different phases never conflict. `groups` contains
/// each first word with the mask of its lanes, and `bytes` is the size per lane.
pub fn phases(groups: &[(u32, u32)], bytes: u32, writes: bool) -> &'static [u32] {
    match bytes {
        16 => {
            let active = groups.iter().fold(0, |all, (_, lanes)| all | lanes);
            if !writes && in_pairs(groups, active) { &PAIRS } else { &QUARTERS }
        }
        8 => &PAIRS,
        _ => &WHOLE,
    }
}

/// Cost of a shared-memory access. `groups` contains each first word once, counted from the start
/// of shared memory, with the mask of its lanes. `bytes` is the size per lane.
pub fn wavefronts(groups: &[(u32, u32)], bytes: u32, writes: bool) -> Wavefronts {
    // The adjacent words of one lane occupy a group of adjacent banks.
    let words = (bytes / 4).clamp(1, QUAD);
    let groups_of_banks = BANKS as u32 / words;
    let bank = |word: u32| word / words % groups_of_banks;
    let mut cost = Wavefronts::default();
    for lanes in phases(groups, bytes, writes) {
        let active = || groups.iter().filter(|(_, of)| of & lanes != 0);
        let (mut used, mut conflict) = (0u32, false);
        for &(word, _) in active() {
            let bit = 1 << bank(word);
            conflict |= used & bit != 0;
            used |= bit;
        }
        let most = match conflict {
            false => u8::from(used != 0),
            true => most_words(active().map(|&(word, _)| bank(word))),
        };
        cost.wavefronts += u64::from(most);
        cost.phases += u64::from(most > 0);
    }
    cost
}

/// Greatest number of words in one bank.
fn most_words(banks: impl Iterator<Item = u32>) -> u8 {
    let mut words = [0u8; BANKS];
    banks.for_each(|bank| words[bank as usize] += 1);
    words.into_iter().fold(0, u8::max)
}

/// Number of distinct 32-byte sectors of a global access. It sorts `of_lanes`, which contains the
/// sectors of the lanes.
pub fn sectors(of_lanes: &mut [u64]) -> u64 {
    if !of_lanes.is_sorted() {
        of_lanes.sort_unstable();
    }
    let changes = of_lanes.windows(2).filter(|w| w[0] != w[1]).count();
    u64::from(!of_lanes.is_empty()) + changes as u64
}

/// Number of distinct 128-byte lines of the L1 cache. The sectors must be in ascending order.
pub fn lines(sectors: &[u64]) -> u64 {
    let others = sectors.windows(2).filter(|w| w[0] / LINE != w[1] / LINE).count();
    u64::from(!sectors.is_empty()) + others as u64
}
