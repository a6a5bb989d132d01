//! Matrix instructions of a warp. They gather the lanes' fragments, and each lane receives its
//! accumulators.

use super::lanes::Lanes;
use super::machine::{Machine, Registers};
use super::memory::Quad;
use crate::lower::code::{Fragment, LoadMatrix, Mma};
use crate::mask::{ALL, WARP};
use crate::observe::{AccessKind, BoxedTrap};
use crate::region::slots_of;
use crate::tensor_core::{Lines, MmaOperand};
use gemm_dsl::ir::{LoadMatrix as Matrices, Mma as Matrix};
use gemm_dsl::target::Format;

/// Name of the instruction in messages.
const MULTIPLY: &str = "mma";
const LOAD: &str = "ldmatrix";

/// Rows and columns of an `ldmatrix` matrix.
const SIDE: usize = 8;

/// Greatest K of an `mma` instruction.
const TERMS: usize = Format::MOST_TERMS;

/// Rows of A or columns of B, with all their K elements.
type Decoded<const N: usize> = [[MmaOperand; TERMS]; N];

impl Machine<'_> {
    pub(crate) fn multiply(
        &mut self,
        mma: &Mma,
        regs: &mut Registers,
        mask: u32,
    ) -> Result<(), BoxedTrap> {
        self.converged(MULTIPLY, mask)?;
        let terms = mma.format.terms();
        let a = self.lines::<{ Matrix::ROWS }, { Matrix::OF_A }>(
            mma.format,
            &mma.a,
            Matrix::place_of_a,
            regs,
        )?;
        let b = self.lines::<{ Matrix::COLS }, { Matrix::OF_B }>(
            mma.format,
            &mma.b,
            Matrix::place_of_b,
            regs,
        )?;
        let slots = self.fragment::<{ Matrix::OF_D }>(&mma.d, regs)?;
        self.written(&slots, regs)?;
        let rules = self.launch.tensor_cores;
        let packed = |lines: &[[MmaOperand; TERMS]]| -> Vec<MmaOperand> {
            lines.iter().flat_map(|line| &line[..terms]).copied().collect()
        };
        let (a, b) = (Lines::new(&packed(&a), Matrix::ROWS), packed(&b));
        // By column, since there are more rows than columns.
        let mut sums = vec![0; Matrix::COLS * Matrix::ROWS];
        let at = |lane, sum| {
            let (row, column) = Matrix::place_of_d(lane, sum);
            column * Matrix::ROWS + row
        };
        for (lane, slots) in slots.into_iter().enumerate() {
            for (sum, slot) in slots.into_iter().enumerate() {
                sums[at(lane, sum)] = regs.lanes[slot as usize].0[lane];
            }
        }
        rules.add_products(self.arch, [mma.format; 2], &b, &a, &mut sums);
        for (lane, slots) in slots.into_iter().enumerate() {
            for (sum, slot) in slots.into_iter().enumerate() {
                regs.lanes[slot as usize].0[lane] = sums[at(lane, sum)];
            }
        }
        let stmt = self.stmt;
        self.observers.traffic.multiplied(stmt, 2 * (Matrix::ROWS * Matrix::COLS * terms) as u64);
        Ok(())
    }

    /// Decodes the fragments of A or B into its rows or columns.
    fn lines<const N: usize, const WORDS: usize>(
        &mut self,
        format: Format,
        fragment: &Fragment,
        place: fn(usize, usize) -> (usize, usize),
        regs: &Registers,
    ) -> Result<Decoded<N>, BoxedTrap> {
        let slots = self.fragment::<WORDS>(fragment, regs)?;
        self.written(&slots, regs)?;
        let mut lines = [[MmaOperand::NAN; TERMS]; N];
        let per_word = format.per_word();
        for (lane, slots) in slots.into_iter().enumerate() {
            for (word, slot) in slots.into_iter().enumerate() {
                let bits = regs.lanes[slot as usize].0[lane];
                let (line, at) = place(lane, word);
                for part in 0..per_word {
                    let element = bits >> (part as u32 * format.bits());
                    lines[line][at * per_word + part] = MmaOperand::decode(format, element);
                }
            }
        }
        Ok(lines)
    }

    /// Executes `ldmatrix` with 1, 2 or 4 matrices of 8 × 8 16-bit elements.
    pub(crate) fn load_matrix(
        &mut self,
        load: &LoadMatrix,
        regs: &mut Registers,
        mask: u32,
    ) -> Result<(), BoxedTrap> {
        self.converged(LOAD, mask)?;
        let count = usize::from(load.count);
        // One lane for each row supplies the row's address.
        let asked = ALL >> (WARP - SIDE * count);
        let mut rows = Quad::default();
        self.load_vector(&load.from, regs, asked, AccessKind::Read, &mut rows)?;
        let slots = self.fragment::<4>(&load.to, regs)?;
        for (lane, slots) in slots.into_iter().enumerate() {
            let (at, word) = Matrices::place(lane);
            for (matrix, slot) in slots.into_iter().take(count).enumerate() {
                let row =
                    |row: usize| rows.each_ref().map(|words: &Lanes| words.0[SIDE * matrix + row]);
                let value = match load.transposed {
                    false => row(at)[word],
                    // Takes the element in this column from each of two adjacent rows.
                    true => {
                        let half = |row: [u32; 4]| row[at / 2] >> (16 * (at % 2)) & 0xffff;
                        half(row(2 * word)) | half(row(2 * word + 1)) << 16
                    }
                };
                regs.lanes[slot as usize].0[lane] = value;
                regs.ready[slot as usize] |= 1 << lane;
            }
        }
        Ok(())
    }

    /// Lane slots of the fragment of each lane.
    fn fragment<const COUNT: usize>(
        &mut self,
        fragment: &Fragment,
        regs: &Registers,
    ) -> Result<[[u32; COUNT]; WARP], BoxedTrap> {
        let first = match fragment.slot {
            Some(slot) => [slot; WARP],
            None => {
                let offsets = self.offsets(&fragment.first, regs, ALL)?;
                let region = self.region(&fragment.first);
                offsets.map(|offset| region.base + offset * slots_of(region.elem))
            }
        };
        Ok(first.map(|first| std::array::from_fn(|at| first + at as u32)))
    }

    /// Returns a fault unless all slots have values.
    fn written<const COUNT: usize>(
        &self,
        slots: &[[u32; COUNT]; WARP],
        regs: &Registers,
    ) -> Result<(), BoxedTrap> {
        let mut lanes = slots.iter().enumerate();
        lanes.try_for_each(|(lane, slots)| {
            slots.iter().try_for_each(|slot| self.ready(*slot, regs, 1 << lane))
        })
    }
}
