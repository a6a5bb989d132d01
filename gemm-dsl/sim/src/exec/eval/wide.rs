//! Evaluation of 8-byte values and of conversions.

use super::super::convert::convert;
use super::super::frames::Outcome;
use super::super::lanes::{Lanes, WideLanes, blend, double, long, wide};
use super::super::machine::{Machine, Registers};
use super::super::memory::Quad;
use super::{arithmetic, conversion};
use crate::lower::code::expr::{Convert, Lane, Number, Wide};
use crate::mask::{WARP, lanes_of, mask_where};
use crate::observe::{AccessKind, BoxedTrap, trap};
use gemm_dsl::ir::Ty;
use gemm_dsl::target::intrinsic::{CanonicalFloat, Shuffle};

impl Machine<'_> {
    /// Evaluates an 8-byte value for each lane.
    pub(crate) fn wide(
        &mut self,
        value: &Wide,
        regs: &Registers,
        mask: u32,
        out: &mut WideLanes,
    ) -> Result<(), BoxedTrap> {
        match value {
            Wide::Uniform(uniform) => *out = [self.uniform(uniform, regs, mask)? as u64; WARP],
            Wide::Bits(bits) => *out = [*bits; WARP],
            Wide::Slot(slot) => *out = regs.wides[*slot as usize],
            Wide::Element(slot) => {
                self.ready(*slot, regs, mask)?;
                let [low, high] = [*slot, *slot + 1].map(|s| &regs.lanes[s as usize].0);
                for l in 0..WARP {
                    out[l] = u64::from(low[l]) | u64::from(high[l]) << 32;
                }
            }
            Wide::Register(memory) => self.load_register_wide(memory, regs, mask, out)?,
            Wide::Load(memory) => self.load_wide(memory, regs, mask, AccessKind::Read, out)?,
            Wide::Neg(e) => self.negate_wide(e, regs, mask, out)?,
            Wide::NegFloat(e) => {
                let mut value = [0; WARP];
                self.wide(e, regs, mask, &mut value)?;
                *out = value.map(|v| (-f64::from_bits(v)).canonical().to_bits());
            }
            Wide::I64(op, operands) => {
                let (mut a, mut b) = ([0; WARP], [0; WARP]);
                self.wide(&operands[0], regs, mask, &mut a)?;
                self.wide(&operands[1], regs, mask, &mut b)?;
                long(*op, &a, &b, mask, out).map_err(arithmetic)?;
            }
            Wide::F64(op, operands) => {
                let (mut a, mut b) = ([0; WARP], [0; WARP]);
                self.wide(&operands[0], regs, mask, &mut a)?;
                self.wide(&operands[1], regs, mask, &mut b)?;
                double(*op, &a, &b, out);
            }
            Wide::Convert(conversion) => self.convert(conversion, regs, mask, out)?,
            Wide::Function(function, operands) => {
                let mut values = [[0; WARP]; 3];
                for (value, operand) in values.iter_mut().zip(operands) {
                    self.wide(operand, regs, mask, value)?;
                }
                for l in 0..WARP {
                    let operands = values.each_ref().map(|v| f64::from_bits(v[l]));
                    out[l] = function(operands).to_bits();
                }
            }
            Wide::Local(local) => *out = *self.frames.wide(*local),
            Wide::Apply(apply) => match self.apply(apply, regs, mask)? {
                Outcome::Wide(value) => *out = value,
                _ => unreachable!("verified: the function gives a value of 8 bytes"),
            },
            Wide::Shuffle(name, shuffle, operands) => {
                self.shuffle_wide(name, *shuffle, operands, regs, mask, out)?;
            }
            Wide::Part(vector, i) => {
                let mut values = Quad::default();
                self.vector(vector, regs, mask, &mut values)?;
                let [low, high] = [0, 1].map(|half| &values[(2 * usize::from(*i) + half) % 4].0);
                for l in 0..WARP {
                    out[l] = u64::from(low[l]) | u64::from(high[l]) << 32;
                }
            }
            Wide::U64(op, operands) => {
                let (mut a, mut b) = ([0; WARP], [0; WARP]);
                self.wide(&operands[0], regs, mask, &mut a)?;
                self.wide(&operands[1], regs, mask, &mut b)?;
                wide(*op, &a, &b, mask, out).map_err(arithmetic)?;
            }
            Wide::Select(choice) => {
                self.choose(choice, regs, mask, |machine, arm, mask| {
                    let mut value = [0; WARP];
                    machine.wide(arm, regs, mask, &mut value)?;
                    blend(out, &value, mask);
                    Ok(())
                })?;
            }
            Wide::Widen(e) => self.widen(e, regs, mask, out)?,
        }
        Ok(())
    }

    /// Negates an `I64`. Returns an error on overflow.
    fn negate_wide(
        &mut self,
        e: &Wide,
        regs: &Registers,
        mask: u32,
        out: &mut WideLanes,
    ) -> Result<(), BoxedTrap> {
        let mut value = [0; WARP];
        self.wide(e, regs, mask, &mut value)?;
        for l in lanes_of(mask) {
            let v = value[l] as i64;
            let negated = v.checked_neg();
            let negated = negated.ok_or_else(|| conversion(l as u32, -i128::from(v), Ty::I64))?;
            out[l] = negated as u64;
        }
        Ok(())
    }

    /// Converts an `I32` to a `U64`.
    fn widen(
        &mut self,
        e: &Lane,
        regs: &Registers,
        mask: u32,
        out: &mut WideLanes,
    ) -> Result<(), BoxedTrap> {
        let mut buffer = Lanes::ZERO;
        let value = self.lane(e, regs, mask, &mut buffer)?;
        let wrong = mask_where(|l| value.0[l] >> 31 == 1) & mask;
        if wrong != 0 {
            let lane = wrong.trailing_zeros();
            let value = value.0[lane as usize] as i32;
            return Err(conversion(lane, value.into(), Ty::U64));
        }
        *out = value.0.map(u64::from);
        Ok(())
    }

    fn shuffle_wide(
        &mut self,
        name: &'static str,
        shuffle: Shuffle,
        operands: &(Wide, Lane),
        regs: &Registers,
        mask: u32,
        out: &mut WideLanes,
    ) -> Result<(), BoxedTrap> {
        let (mut values, mut buffer) = ([0; WARP], Lanes::ZERO);
        self.wide(&operands.0, regs, mask, &mut values)?;
        let delta = self.lane(&operands.1, regs, mask, &mut buffer)?;
        let sources = self.sources(name, shuffle, delta, mask)?;
        for l in lanes_of(mask) {
            out[l] = values[sources[l]];
        }
        self.shuffled(values, &sources, mask);
        Ok(())
    }

    /// Converts a number and returns its bits.
    pub(super) fn convert(
        &mut self,
        conversion: &Convert,
        regs: &Registers,
        mask: u32,
        out: &mut WideLanes,
    ) -> Result<(), BoxedTrap> {
        let mut value = [0; WARP];
        self.number(&conversion.value, regs, mask, &mut value)?;
        for l in lanes_of(mask) {
            out[l] = convert(conversion.from, conversion.to, value[l])
                .map_err(|kind| trap(l as u32, kind))?;
        }
        Ok(())
    }

    /// Evaluates a number of any type, and returns its bits.
    pub(super) fn number(
        &mut self,
        number: &Number,
        regs: &Registers,
        mask: u32,
        out: &mut WideLanes,
    ) -> Result<(), BoxedTrap> {
        match number {
            Number::Wide(wide) => self.wide(wide, regs, mask, out)?,
            Number::Lane(lane) => {
                let mut buffer = Lanes::ZERO;
                *out = self.lane(lane, regs, mask, &mut buffer)?.0.map(u64::from);
            }
        }
        Ok(())
    }
}
