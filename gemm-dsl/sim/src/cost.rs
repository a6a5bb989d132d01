//! What the access of a warp costs, as a function of where its lanes access: what is counted is what can be drawn.

pub(crate) mod pattern;

use gemm_dsl::target::arch;

/// Bytes of a sector of global memory, in which it is moved.
pub const SECTOR: u64 = arch::SECTOR_BYTES as u64;
/// Sectors of a line of the first-level cache.
const LINE: u64 = arch::LINE_SECTORS as u64;
/// Banks of shared memory, each a word of 4 bytes wide.
pub const BANKS: usize = arch::BANKS as usize;

/// The most parts of a bank that a lane accesses at once: those of 16 bytes.
const QUAD: u32 = 4;
/// All lanes at once.
const WHOLE: [u32; 1] = [u32::MAX];
/// The lanes of the phases of a 16-byte access.
const QUARTERS: [u32; 4] = [0xff, 0xff00, 0xff_0000, 0xff00_0000];
/// Those of an 8-byte access, and of a 16-byte load whose phases merge in pairs.
const PAIRS: [u32; 2] = [0xffff, 0xffff_0000];

/// What an access to shared memory costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Wavefronts {
    /// Passes through the banks: for each phase the most distinct words on one bank.
    pub wavefronts: u64,
    /// Phases with a lane: the fewest wavefronts that it could take.
    pub phases: u64,
}

impl Wavefronts {
    /// Wavefronts beyond one for each phase.
    pub fn conflicts(self) -> u64 {
        self.wavefronts - self.phases
    }
}

/// Whether the phases of a 16-byte load merge in pairs: all active lanes read what their neighbour
/// reads, or all read what the lane two away in their group of four reads. Fitted to the profiler's
/// counts on an H200, see `tests/wavefronts.txt`; stores never merge.
fn in_pairs(groups: &[(u32, u32)], active: u32) -> bool {
    let alike =
        |swap: fn(u32) -> u32| groups.iter().all(|&(_, lanes)| swap(lanes) & active & !lanes == 0);
    alike(|lanes| (lanes & 0x5555_5555) << 1 | lanes >> 1 & 0x5555_5555)
        || alike(|lanes| (lanes & 0x3333_3333) << 2 | lanes >> 2 & 0x3333_3333)
}

/// The phases of an access to shared memory: lanes of different phases never conflict. `groups` are its lanes by the first
/// word that each accesses, of `bytes` a lane.
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

/// What an access to shared memory costs: `groups` are the words, counted from the start of shared memory, that lanes access
/// first, each once with the lanes that do, `bytes` what a lane accesses.
pub fn wavefronts(groups: &[(u32, u32)], bytes: u32, writes: bool) -> Wavefronts {
    // Words that lie side by side for one lane are on banks of one group.
    let words = (bytes / 4).clamp(1, QUAD);
    let groups_of_banks = BANKS / words as usize;
    let mut cost = Wavefronts::default();
    for lanes in phases(groups, bytes, writes) {
        let mut banks = [0u8; BANKS];
        for &(word, of) in groups {
            banks[(word / words) as usize % groups_of_banks] += u8::from(of & lanes != 0);
        }
        let most = banks.iter().copied().fold(0, u8::max);
        cost.wavefronts += u64::from(most);
        cost.phases += u64::from(most > 0);
    }
    cost
}

/// The 32-byte sectors that an access to global memory touches, given those of its lanes, which it sorts.
pub fn sectors(of_lanes: &mut [u64]) -> u64 {
    if !of_lanes.is_sorted() {
        of_lanes.sort_unstable();
    }
    let changes = of_lanes.windows(2).filter(|w| w[0] != w[1]).count();
    u64::from(!of_lanes.is_empty()) + changes as u64
}

/// The lines of 128 bytes of the first-level cache that it touches, given its sectors in order.
pub fn lines(sectors: &[u64]) -> u64 {
    let others = sectors.windows(2).filter(|w| w[0] / LINE != w[1] / LINE).count();
    u64::from(!sectors.is_empty()) + others as u64
}
