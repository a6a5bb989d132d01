//! Matrix instructions of a warpgroup (`wgmma`).
//!
//! Each warp computes its quarter of the accumulators when it reaches the instruction. All warps of
//! a warpgroup must execute the same steps: the first warp that arrives appends a step, and the
//! others must reach the same step ([`crate::exec::warpgroup`]). The operands depend only on the
//! descriptors, and are decoded once for all four warps.
//!
//! Accumulators are computed at once. They count as uninitialised until the warp has waited for
//! them ([`crate::exec::warpgroup::Flight`]).

use super::machine::{Machine, Registers};
use crate::error::FaultKind;
use crate::exec::warpgroup::{
    Accumulators, OperandTiles, WARPS, WarpgroupDivergence, WarpgroupStep,
};
use crate::lower::code::{Tile, Wgmma, WgmmaSyncOp};
use crate::mask::ALL;
use crate::observe::{BoxedTrap, trap};
use crate::region::Region;
use crate::tensor_core::{Lines, MmaOperand};
use crate::trace::{Action, Operand as Read};
use gemm_dsl::ir::{Descriptor, Wgmma as Matrix};
use gemm_dsl::target::Format;
use std::rc::Rc;

/// Number of bytes that stay contiguous under every swizzle.
const PART: u32 = 16;
/// Rows of D of a warp.
const ROWS: usize = Matrix::ROWS as usize / WARPS;
/// Name of the instruction in messages.
const NAME: &str = "wgmma";

impl Machine<'_> {
    /// Advances the whole warp by one step of its warpgroup.
    fn together(
        &mut self,
        mask: u32,
        operands: [u32; 2],
        accumulates: bool,
    ) -> Result<Option<Rc<OperandTiles>>, BoxedTrap> {
        self.converged(NAME, mask)?;
        let step = WarpgroupStep { stmt: self.stmt, operands, accumulates };
        match self.warpgroups.step(self.warp, step) {
            Ok(tiles) => Ok(tiles.clone()),
            Err(WarpgroupDivergence(other)) => {
                let other = other.map(|stmt| self.code.text(stmt));
                Err(trap(0, FaultKind::WarpgroupApart { other }))
            }
        }
    }

    /// Executes a fence, a commit, a wait, or a register limit.
    pub(crate) fn wgmma_sync(
        &mut self,
        op: &WgmmaSyncOp,
        regs: &mut Registers,
        mask: u32,
    ) -> Result<(), BoxedTrap> {
        self.together(mask, [0; 2], false)?;
        self.warpgroups.forget(self.warp);
        let flight = &mut regs.flight;
        match op {
            WgmmaSyncOp::Limit(limit) => {
                let set = self.limits.set(self.warp, self.stmt, *limit);
                let fault = |has| FaultKind::RegisterLimit { limit: *limit, has };
                set.map_err(|has| trap(0, fault(has)))?;
            }
            WgmmaSyncOp::Fence(arrays) => {
                for array in arrays {
                    if !flight.fenced.contains(array) {
                        flight.fenced.push(*array);
                    }
                }
            }
            WgmmaSyncOp::Commit => {
                let group = std::mem::take(&mut flight.open);
                flight.groups.push_back(group);
                self.observers.race.close_wgmma(self.warp);
            }
            WgmmaSyncOp::Wait { pending, arrays } => {
                self.observers.race.await_wgmma(self.warp, *pending);
                while flight.groups.len() > *pending as usize {
                    let group = flight.groups.pop_front().unwrap_or_default();
                    flight.over.extend(group);
                }
                let mut over = std::mem::take(&mut flight.over);
                // If a group in flight changes accumulators again, they become ready only with that
                // group.
                over.retain(|sums| !flight.in_flight().any(|other| other.overlaps(sums)));
                let (there, unnamed) =
                    over.into_iter().partition(|sums| arrays.contains(&sums.array));
                flight.over = unnamed;
                for sums in &there {
                    self.untouched(sums, regs)?;
                }
                let there: Vec<Accumulators> = there;
                for slot in there.iter().flat_map(Accumulators::slots) {
                    regs.ready[slot as usize] = ALL;
                }
            }
        }
        Ok(())
    }

    /// Returns a fault if accumulators in flight were written.
    fn untouched(&self, sums: &Accumulators, regs: &Registers) -> Result<(), BoxedTrap> {
        match sums.slots().find(|&slot| regs.ready[slot as usize] != 0) {
            None => Ok(()),
            Some(slot) => Err(self.touched(slot, regs.ready[slot as usize].trailing_zeros())),
        }
    }

    /// Creates the fault for a lane that accessed an accumulator in flight.
    #[cold]
    pub(crate) fn touched(&self, slot: u32, lane: u32) -> BoxedTrap {
        trap(lane, FaultKind::AccumulatorsInFlight { place: self.position_of(slot) })
    }

    /// Records that an ordinary statement uses an accumulator array. `declared` is true for the
    /// declaration of the array.
    pub(crate) fn use_accumulators(
        &self,
        array: u32,
        declared: bool,
        regs: &mut Registers,
        mask: u32,
    ) -> Result<(), BoxedTrap> {
        let flight = &mut regs.flight;
        flight.fenced.retain(|of| *of != array);
        if declared && let Some(sums) = flight.in_flight().find(|sums| sums.array == array) {
            return Err(self.touched(sums.first, mask.trailing_zeros()));
        }
        flight.over.retain(|sums| !(declared && sums.array == array));
        Ok(())
    }

    /// Executes a matrix instruction of a warpgroup.
    pub(crate) fn wgmma(
        &mut self,
        wgmma: &Wgmma,
        regs: &mut Registers,
        mask: u32,
    ) -> Result<(), BoxedTrap> {
        self.converged(NAME, mask)?;
        let accumulates = self.pred(&wgmma.accumulate, regs, mask)?;
        let ([of_a, of_b], columns) = (wgmma.formats, wgmma.columns);
        let a = self.tile(&wgmma.a, Matrix::ROWS, of_a, regs)?;
        let b = self.tile(&wgmma.b, columns, of_b, regs)?;
        if accumulates != 0 && accumulates != ALL {
            return Err(trap(accumulates.trailing_zeros(), FaultKind::OperandsDiffer));
        }
        let accumulates = accumulates != 0;
        let sums = self.changed(wgmma, accumulates, regs)?;
        let known = self.together(mask, [a.start, b.start], accumulates)?;
        let regions = &self.launch.regions;
        for tile in [&a, &b] {
            self.read_tile(tile, &regions[tile.region])?;
        }
        let tiles = match known {
            Some(tiles) => tiles,
            None => {
                let a = self.decoded(&a, Matrix::ROWS, of_a);
                let b = Lines::new(&self.decoded(&b, columns, of_b), columns as usize);
                let tiles = Rc::new(OperandTiles { a, b });
                self.warpgroups.remember(self.warp, &tiles);
                tiles
            }
        };
        self.warpgroups.forget(self.warp);
        let (rules, terms) = (self.launch.tensor_cores.of_warpgroups(of_a), of_a.terms());
        let quarter = self.warp as usize % WARPS;
        let rows = &tiles.a[quarter * ROWS * terms..][..ROWS * terms];
        let width = columns as usize;
        let at = |lane, sum| {
            let (row, column) = Matrix::place_of_d(lane, sum);
            row * width + column
        };
        let mut words = vec![0; ROWS * width];
        if accumulates {
            for (sum, slot) in sums.slots().enumerate() {
                for (lane, word) in regs.lanes[slot as usize].0.iter().enumerate() {
                    words[at(lane, sum)] = *word;
                }
            }
        }
        rules.add_products(self.arch, wgmma.formats, rows, &tiles.b, &mut words);
        for (sum, slot) in sums.slots().enumerate() {
            for (lane, word) in regs.lanes[slot as usize].0.iter_mut().enumerate() {
                *word = words[at(lane, sum)];
            }
            regs.ready[slot as usize] = 0;
        }
        regs.flight.open.push(sums);
        let flops = 2 * Matrix::ROWS as usize / WARPS * columns as usize * terms;
        self.observers.traffic.multiplied(self.stmt, flops as u64);
        if self.recorder().is_some() {
            let [a, b] = [&a, &b].map(|tile| self.read_as(tile));
            let rank = self.rank;
            if let Some(recorder) = self.recorder() {
                recorder.did(rank, Action::Multiplied { a, b, columns });
            }
        }
        Ok(())
    }

    /// Describes an operand tile for the trace.
    fn read_as(&self, tile: &PlacedTile) -> Read {
        let region = &self.launch.regions[tile.region];
        let size = region.elem.size();
        let first = (tile.start - region.base * 4) / size;
        let row = region.strides[region.dims.len() - 2] as u32;
        // The first slab of an MN-major operand.
        let bytes = tile.bytes.min(row * size);
        let parts = (0..Matrix::GROUP).flat_map(|row| {
            let parts = (0..bytes).step_by(PART as usize);
            parts.map(move |part| tile.descriptor.place(tile.start, row, part))
        });
        Read {
            buffer: tile.region,
            first,
            descriptor: u64::from((tile.start & 0x3_ffff) >> 4) | tile.descriptor.bits(),
            column: first % row * size,
            bytes,
            parts: parts.collect(),
        }
    }

    /// Accumulators of a matrix instruction. Returns a fault if the instruction must not change
    /// them.
    fn changed(
        &mut self,
        wgmma: &Wgmma,
        accumulates: bool,
        regs: &mut Registers,
    ) -> Result<Accumulators, BoxedTrap> {
        let first = match wgmma.d.slot {
            Some(slot) => slot,
            None => {
                let offsets = self.offsets(&wgmma.d.first, regs, ALL)?;
                if offsets.iter().any(|offset| *offset != offsets[0]) {
                    return Err(trap(0, FaultKind::OperandsDiffer));
                }
                self.region(&wgmma.d.first).base + offsets[0]
            }
        };
        let array = wgmma.d.first.region;
        let sums = Accumulators { first, count: wgmma.columns / 2, array };
        if !regs.flight.fenced.contains(&array) {
            let buffer = self.region(&wgmma.d.first).name.clone();
            return Err(trap(0, FaultKind::AccumulatorsNotFenced { buffer }));
        }
        let flight = &mut regs.flight;
        // Consecutive instructions with the same shape may use the same accumulators.
        if let Some(other) = flight
            .in_flight()
            .chain(&flight.over)
            .find(|other| other.overlaps(&sums) && **other != sums)
        {
            return Err(self.touched(other.first.max(sums.first), 0));
        }
        let follows = flight.holds(first);
        flight.over.retain(|other| *other != sums);
        if follows {
            self.untouched(&sums, regs)?;
        } else if accumulates {
            sums.slots().try_for_each(|slot| self.ready(slot, regs, ALL))?;
        }
        Ok(sums)
    }

    /// Locates an operand tile with `rows` rows. Checks bounds and alignment, and that all lanes
    /// name the same tile.
    fn tile(
        &mut self,
        tile: &Tile,
        rows: u32,
        format: Format,
        regs: &Registers,
    ) -> Result<PlacedTile, BoxedTrap> {
        let offsets = self.offsets(&tile.first, regs, ALL)?;
        if offsets.iter().any(|offset| *offset != offsets[0]) {
            return Err(trap(0, FaultKind::OperandsDiffer));
        }
        let region = self.region(&tile.first);
        let size = region.elem.size();
        let start = region.exchanged(offsets[0]);
        let row_length = region.strides[region.dims.len() - 2] as u32;
        let (row, k) =
            (start / row_length % region.dims[region.dims.len() - 2] as u32, start % row_length);
        let terms = format.terms() as u32;
        let rank = region.dims.len();
        let inside = match tile.mn_major {
            false => u64::from(row + rows) <= region.dims[rank - 2] && k + terms <= row_length,
            // The tile begins with a slab, which has the lines of a row of shared memory.
            true => {
                let slabs = region.dims[rank - 3] as u32;
                let slab = start / region.strides[rank - 3] as u32 % slabs;
                let fits = u64::from(row + terms) <= region.dims[rank - 2];
                fits && k == 0 && slab * row_length + rows <= slabs * row_length
            }
        };
        if !inside {
            let tile = if tile.mn_major { [terms, rows] } else { [rows, terms] };
            return Err(trap(
                0,
                FaultKind::BoxOutside {
                    place: region.element(offsets[0]),
                    tile: tile.map(u64::from).into(),
                    extents: region.dims.clone(),
                },
            ));
        }
        let aligned = |address: u32, bytes: u32| match address.is_multiple_of(bytes) {
            true => Ok(()),
            false => {
                let (place, bytes) = (region.element(offsets[0]), bytes.into());
                Err(trap(0, FaultKind::MisalignedTile { place, bytes }))
            }
        };
        let address = region.base * 4 + start * size;
        aligned(address - k * size, tile.descriptor.stride)?;
        aligned(address, PART)?;
        let Tile { descriptor, mn_major, .. } = *tile;
        let (rows, bytes) = if mn_major { (terms, rows * size) } else { (rows, terms * size) };
        let region = tile.first.region as usize;
        Ok(PlacedTile { region, descriptor, mn_major, start: address, rows, bytes })
    }

    /// Notifies the observers of the tile's reads.
    fn read_tile(&mut self, tile: &PlacedTile, region: &Region) -> Result<(), BoxedTrap> {
        let size = region.elem.size();
        for row in 0..tile.rows {
            for part in (0..tile.bytes).step_by(PART as usize) {
                let first = (tile.descriptor.place(tile.start, row, part) - region.base * 4) / size;
                let elements = first..first + PART / size;
                if let Some(missing) = self.observers.init.missing(region, elements.clone()) {
                    let place = region.element(missing);
                    return Err(trap(0, FaultKind::Uninitialised { place }));
                }
                self.observers.race.wgmma_read(self.warp, region, elements)?;
            }
        }
        Ok(())
    }

    /// Decodes the elements of the tile that the descriptor selects, row by row.
    fn decoded(&self, tile: &PlacedTile, rows: u32, format: Format) -> Vec<MmaOperand> {
        let (terms, size) = (format.terms() as u32, format.bits() / 8);
        let place = |line, k| match tile.mn_major {
            false => (line, k * size),
            true => (k, line * size),
        };
        let places = (0..rows).flat_map(|line| (0..terms).map(move |k| place(line, k)));
        let element = |(row, byte)| {
            let address = tile.descriptor.place(tile.start, row, byte);
            MmaOperand::decode(format, self.shared[address as usize / 4] >> (8 * (address % 4)))
        };
        places.map(element).collect()
    }
}

/// Tile in shared memory, with its location.
struct PlacedTile {
    region: usize,
    descriptor: Descriptor,
    /// True if rows have elements along M or N instead of K.
    mn_major: bool,
    /// Address of the first byte, relative to the start of shared memory.
    start: u32,
    /// Rows of shared memory, and bytes of a row including all slabs.
    rows: u32,
    bytes: u32,
}
