//! Matrix instructions: the lanes of a warp put together what they hold, and each gets its sums.

use super::code::{Fragment, Mma};
use super::lanes::{ALL, WARP};
use super::machine::{Machine, Registers};
use super::observe::Stopped;
use super::region::slots_of;
use crate::ir::Mma as Matrix;
use crate::tensor_core::{Format, Operand, Rules};

/// The name of the instruction, for messages.
const NAME: &str = "mma";

/// What the simulator's tensor cores do.
const RULES: Rules = Rules::SM_90;

/// The most terms of a sum.
const TERMS: usize = 16;

/// Lines of a matrix, each with the terms of its sums.
type Lines<const N: usize> = [[Operand; TERMS]; N];

impl Machine<'_> {
    /// Executes a matrix instruction.
    pub(super) fn multiply(
        &mut self,
        mma: &Mma,
        regs: &mut Registers,
        mask: u32,
    ) -> Result<(), Stopped> {
        self.converged(NAME, mask)?;
        let (a, terms) = self.lines::<{ Matrix::ROWS }, { Matrix::OF_A }>(
            mma.format,
            &mma.a,
            Matrix::place_of_a,
            regs,
        )?;
        let (b, _) = self.lines::<{ Matrix::COLS }, { Matrix::OF_B }>(
            mma.format,
            &mma.b,
            Matrix::place_of_b,
            regs,
        )?;
        let slots = self.fragment::<{ Matrix::OF_D }>(&mma.d, regs)?;
        for (lane, slots) in slots.into_iter().enumerate() {
            for (sum, slot) in slots.into_iter().enumerate() {
                let (row, col) = Matrix::place_of_d(lane, sum);
                let word = &mut regs.lanes[slot as usize].0[lane];
                *word = RULES.dot(mma.format, &a[row][..terms], &b[col][..terms], *word);
            }
        }
        self.observers.traffic.multiplied(2 * (Matrix::ROWS * Matrix::COLS * terms) as u64);
        Ok(())
    }

    /// The lines of A or B, and how many terms they have.
    fn lines<const N: usize, const WORDS: usize>(
        &mut self,
        format: Format,
        fragment: &Fragment,
        place: fn(usize, usize) -> (usize, usize),
        regs: &Registers,
    ) -> Result<(Lines<N>, usize), Stopped> {
        let slots = self.fragment::<WORDS>(fragment, regs)?;
        let mut lines = [[Operand::Nan; TERMS]; N];
        let per_word = (32 / format.bits()) as usize;
        for (lane, slots) in slots.into_iter().enumerate() {
            for (word, slot) in slots.into_iter().enumerate() {
                let bits = regs.lanes[slot as usize].0[lane];
                let (line, at) = place(lane, word);
                for part in 0..per_word {
                    let element = bits >> (part as u32 * format.bits());
                    lines[line][at * per_word + part] = format.decode(element);
                }
            }
        }
        Ok((lines, 8 * per_word))
    }

    /// The slots of what each lane holds, which all have a value.
    fn fragment<const COUNT: usize>(
        &mut self,
        fragment: &Fragment,
        regs: &Registers,
    ) -> Result<[[u32; COUNT]; WARP], Stopped> {
        let first = match fragment.slot {
            Some(slot) => [slot; WARP],
            None => {
                let offsets = self.offsets(&fragment.first, regs, ALL)?;
                let region = self.region(&fragment.first);
                offsets.map(|offset| region.base + offset * slots_of(region.elem))
            }
        };
        let slots = first.map(|first| std::array::from_fn(|at| first + at as u32));
        for (lane, slots) in slots.iter().enumerate() {
            slots.iter().try_for_each(|slot| self.ready(*slot, regs, 1 << lane))?;
        }
        Ok(slots)
    }
}
