//! Refused accesses: the addresses and the pattern of an access that faults. This code runs only
//! after a fault.

use super::super::lanes::Lanes;
use super::super::machine::{Machine, Registers};
use super::super::pointer::PointerTarget;
use crate::cost;
use crate::cost::pattern::{Kind, Pattern, Price};
use crate::cost::{BANKS, SECTOR};
use crate::error::{FaultKind, Reach, RefusedAccess};
use crate::lower::code::expr::Index;
use crate::lower::code::{Memory, Pointer};
use crate::mask::{WARP, lanes_of};
use crate::observe::{AccessKind, BoxedTrap};
use crate::region::Region;
use gemm_dsl::ir::Space;

/// Maximum distance from an array, in elements, at which a pattern is reported.
const FAR: u64 = 1 << 48;

impl Machine<'_> {
    /// Adds the refused access to a fault that its address causes.
    #[cold]
    #[inline(never)]
    pub(super) fn refused(
        &mut self,
        kind: AccessKind,
        memory: &Memory,
        regs: &Registers,
        mask: u32,
        mut trap: BoxedTrap,
    ) -> BoxedTrap {
        let is_place = matches!(
            trap.kind,
            FaultKind::OutOfBounds { .. }
                | FaultKind::BeyondAllocation { .. }
                | FaultKind::Misaligned { .. }
        );
        // A faulty load inside the index expression has already added its own access.
        if !is_place || trap.refused.is_some() {
            return trap;
        }
        let reached = match &memory.pointer {
            Some(pointer) => self.reached_through(memory, pointer, regs, mask, trap.lane),
            None => self.reached(memory, regs, mask),
        };
        // Reevaluates the addresses.
        let Ok((lanes, extents)) = reached else { return trap };
        let (buffer, region) = (memory.region as usize, self.region(memory));
        let (kind, width) = (Kind::from(kind), region.width(memory.vector));
        let pattern = pattern(buffer, region, kind, width, &lanes);
        trap.refused =
            Some(Box::new(RefusedAccess { buffer, kind, width, extents, lanes, pattern }));
        if let Some(recorder) = self.recorder() {
            recorder.refused();
        }
        trap
    }

    /// Logical index of one lane of an access.
    pub(super) fn index_of(
        &mut self,
        memory: &Memory,
        regs: &Registers,
        mask: u32,
        lane: u32,
    ) -> Result<Vec<i128>, BoxedTrap> {
        let indices = self.indices(memory, regs, mask)?;
        Ok(indices.iter().map(|along| along[lane as usize]).collect())
    }

    /// Logical indices of all lanes. The recorder is suspended, because it has already recorded
    /// this evaluation.
    fn indices(
        &mut self,
        memory: &Memory,
        regs: &Registers,
        mask: u32,
    ) -> Result<Vec<[i128; WARP]>, BoxedTrap> {
        let recorder = self.recorder.take();
        let indices = memory.index.iter().map(|index| self.index(index, regs, mask)).collect();
        self.recorder = recorder;
        indices
    }

    fn index(
        &mut self,
        index: &Index,
        regs: &Registers,
        mask: u32,
    ) -> Result<[i128; WARP], BoxedTrap> {
        Ok(match index {
            Index::Uniform { value, wide } => {
                let index = self.uniform(value, regs, mask)?;
                [if *wide { i128::from(index as u64) } else { index.into() }; WARP]
            }
            Index::I32(lane) => {
                let mut buffer = Lanes::ZERO;
                self.lane(lane, regs, mask, &mut buffer)?.i32s().map(i128::from)
            }
            Index::U64(wide) => {
                let mut index = [0; WARP];
                self.wide(wide, regs, mask, &mut index)?;
                index.map(i128::from)
            }
        })
    }

    /// Elements that the lanes would access, and the extents of the buffer.
    fn reached(
        &mut self,
        memory: &Memory,
        regs: &Registers,
        mask: u32,
    ) -> Result<(Vec<Reach>, Vec<u64>), BoxedTrap> {
        let (region, indices) = (self.region(memory), self.indices(memory, regs, mask)?);
        let width = region.width(memory.vector);
        let of = |lane: usize| {
            let index: Vec<i128> = indices.iter().map(|along| along[lane]).collect();
            let at = region.distance(&index);
            let is_inside = index.iter().zip(&region.dims).enumerate().all(|(d, (i, dim))| {
                let reach = if d == region.contiguous { width - 1 } else { 0 };
                *i >= 0 && i + i128::from(reach) < i128::from(*dim)
            });
            let may = is_inside && at.is_some_and(|at| region.is_aligned(at, width));
            Reach { lane: lane as u32, index, at, is_refused: !may }
        };
        Ok((lanes_of(mask).map(of).collect(), region.dims.clone()))
    }

    /// Elements that the lanes would access through a pointer, and the length of the array at which
    /// the faulty lane's pointer points.
    fn reached_through(
        &mut self,
        memory: &Memory,
        pointer: &Pointer,
        regs: &Registers,
        mask: u32,
        faulty: u32,
    ) -> Result<(Vec<Reach>, Vec<u64>), BoxedTrap> {
        let region = self.region(memory);
        let recorder = self.recorder.take();
        let pointers = self.pointers(memory, pointer, regs, mask);
        self.recorder = recorder;
        let (slots, distances) = pointers?;
        let width = region.width(memory.vector);
        let mut extents = Vec::new();
        let of = |lane: usize| {
            let from = regs.wides[slots[lane] as usize][lane];
            let number = lane as u32;
            let Some(pointed) = PointerTarget::new(region, from, distances[lane]) else {
                return Reach { lane: number, index: Vec::new(), at: None, is_refused: true };
            };
            if number == faulty {
                extents = vec![pointed.array.len];
            }
            let (at, last) = (pointed.at(), pointed.word.checked_add(u64::from(width - 1)));
            let is_inside = last.is_some_and(|last| last < pointed.array.len);
            let may = is_inside && at.is_some_and(|at| region.is_aligned(at, width));
            let index = pointed.nth.into_iter().chain([(pointed.word as i64).into()]).collect();
            Reach { lane: number, index, at, is_refused: !may }
        };
        let lanes = lanes_of(mask).map(of).collect();
        Ok((lanes, extents))
    }
}

/// Address pattern of a refused access, and its cost. `None` for registers, or if some lane's
/// element has no position or is too far away.
fn pattern(
    buffer: usize,
    region: &Region,
    kind: Kind,
    width: u32,
    reached: &[Reach],
) -> Option<Pattern> {
    let size = i64::from(region.elem.size());
    let near = |at: &i64| at.unsigned_abs() < FAR;
    let start = reached.first()?.at.filter(near)?;
    let (mut lanes, mut at) = ([None; WARP], Vec::new());
    for reach in reached {
        let own = reach.at.filter(near)?;
        *lanes.get_mut(reach.lane as usize)? = Some(i32::try_from(own - start).ok()?);
        at.push((reach.lane, own));
    }
    let bytes = width * region.elem.size();
    let (skew, cost) = match region.space {
        Space::Register => return None,
        Space::Shared => {
            // Truncation to 32 bits does not change the bank, because 2^32 is a multiple of the
            // number of banks.
            let word = |at: i64| i64::from(region.base) + (at * size).div_euclid(4);
            let words = by_word(at.iter().map(|(lane, at)| (word(*at) as u32, *lane)));
            let cost = cost::wavefronts(&words, bytes, kind.writes());
            (word(start).rem_euclid(BANKS as i64), Price::Shared(cost))
        }
        Space::Global => {
            let byte = |at: i64| (at + i64::from(region.skew)) * size;
            let mut sectors = Vec::new();
            for (_, at) in &at {
                let ends = [byte(*at), byte(*at) + i64::from(bytes) - 1];
                sectors.extend(ends.map(|byte| byte.div_euclid(SECTOR as i64) as u64));
            }
            (byte(start).rem_euclid(SECTOR as i64), Price::Sectors(cost::sectors(&mut sectors)))
        }
    };
    Some(Pattern { buffer, kind, lanes, bytes, skew: skew as u32, cost })
}

/// Lanes grouped by word, in order of first occurrence.
fn by_word(lanes: impl Iterator<Item = (u32, u32)>) -> Vec<(u32, u32)> {
    let mut words: Vec<(u32, u32)> = Vec::new();
    for (word, lane) in lanes {
        match words.iter_mut().find(|(known, _)| *known == word) {
            Some((_, lanes)) => *lanes |= 1 << lane,
            None => words.push((word, 1 << lane)),
        }
    }
    words
}
