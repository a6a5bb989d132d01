//! Evaluation of uniform values, once per warp.

use super::super::machine::{Machine, Registers};
use super::conversion;
use crate::error::FaultKind;
use crate::lower::code::expr::{Lazy, Uniform};
use crate::observe::{BoxedTrap, trap};
use crate::scalar::{compare_one, int_one, wide_one};
use gemm_dsl::ir::{BinaryOp, Ty};

/// Converts the result of a uniform operation. A fault is attributed to the first active lane.
fn computed<T: Into<i64>>(value: Result<T, FaultKind>, mask: u32) -> Result<i64, BoxedTrap> {
    value.map(Into::into).map_err(|kind| trap(mask.trailing_zeros(), kind))
}
impl Machine<'_> {
    pub(crate) fn uniform(
        &mut self,
        uniform: &Uniform,
        regs: &Registers,
        mask: u32,
    ) -> Result<i64, BoxedTrap> {
        Ok(match uniform {
            Uniform::Static(v) | Uniform::Known(v) => *v,
            Uniform::Slot(slot) => regs.uniforms[*slot as usize],
            Uniform::BlockX => self.block.0.into(),
            Uniform::BlockY => self.block.1.into(),
            Uniform::BlockZ => self.block.2.into(),
            Uniform::ClusterRank => self.rank.into(),
            Uniform::Neg(e) => {
                let value = self.uniform(e, regs, mask)?;
                let fits = i32::try_from(-value);
                fits.map_err(|_| conversion(mask.trailing_zeros(), (-value).into(), Ty::I32))?
                    .into()
            }
            Uniform::Not(e) => (self.uniform(e, regs, mask)? == 0).into(),
            Uniform::I32(op, operands) => {
                let a = self.uniform(&operands[0], regs, mask)?;
                let b = self.uniform(&operands[1], regs, mask)?;
                match op {
                    BinaryOp::Cmp(op) => compare_one(*op, a, b).into(),
                    _ => computed(int_one(*op, a as i32, b as i32), mask)?,
                }
            }
            Uniform::U64(op, operands) => {
                let a = self.uniform(&operands[0], regs, mask)? as u64;
                let b = self.uniform(&operands[1], regs, mask)? as u64;
                match op {
                    BinaryOp::Cmp(op) => compare_one(*op, a, b).into(),
                    _ => computed(wide_one(*op, a, b).map(|v| v as i64), mask)?,
                }
            }
            Uniform::And(pair) => match self.uniform(&pair.0, regs, mask)? {
                0 => 0,
                _ => self.lazy_uniform(&pair.1, regs, mask)?,
            },
            Uniform::Or(pair) => match self.uniform(&pair.0, regs, mask)? {
                0 => self.lazy_uniform(&pair.1, regs, mask)?,
                holds => holds,
            },
            Uniform::Select(choice) => {
                let (cond, yes, no) = &**choice;
                let holds = self.uniform(cond, regs, mask)? != 0;
                self.lazy_uniform(if holds { yes } else { no }, regs, mask)?
            }
            Uniform::Narrow(e) => {
                let value = self.uniform(e, regs, mask)? as u64;
                let fits = i32::try_from(value);
                fits.map_err(|_| conversion(mask.trailing_zeros(), value.into(), Ty::I32))?.into()
            }
            Uniform::Widen(e) => {
                let value = self.uniform(e, regs, mask)?;
                if value < 0 {
                    return Err(conversion(mask.trailing_zeros(), value.into(), Ty::U64));
                }
                value
            }
        })
    }

    fn lazy_uniform(
        &mut self,
        lazy: &Lazy<Uniform>,
        regs: &Registers,
        mask: u32,
    ) -> Result<i64, BoxedTrap> {
        self.executes(lazy.site, mask);
        self.uniform(&lazy.value, regs, mask)
    }
}
