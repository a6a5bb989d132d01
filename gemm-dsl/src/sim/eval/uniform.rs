//! Evaluation of values that all threads share, once for a warp.

use super::super::code::{Lazy, Scalar};
use super::super::error::FaultKind;
use super::super::lanes::{compare_scalar, int_scalar, wide_scalar};
use super::super::machine::{Machine, Registers};
use super::super::observe::{Stopped, stop};
use super::conversion;
use crate::ir::{BinaryOp, Ty};

/// The result of an integer operation on scalars; at fault is the first active lane.
fn computed<T: Into<i64>>(value: Result<T, FaultKind>, mask: u32) -> Result<i64, Stopped> {
    value.map(Into::into).map_err(|kind| stop(mask.trailing_zeros(), kind))
}
impl Machine<'_> {
    /// A value that all threads share.
    pub(in crate::sim) fn scalar(
        &mut self,
        scalar: &Scalar,
        regs: &Registers,
        mask: u32,
    ) -> Result<i64, Stopped> {
        Ok(match scalar {
            Scalar::Static(v) | Scalar::Known(v) => *v,
            Scalar::Slot(slot) => regs.scalars[*slot as usize],
            Scalar::BlockX => self.block.0.into(),
            Scalar::BlockY => self.block.1.into(),
            Scalar::BlockZ => self.block.2.into(),
            Scalar::Neg(e) => {
                let value = self.scalar(e, regs, mask)?;
                let fits = i32::try_from(-value);
                fits.map_err(|_| conversion(mask.trailing_zeros(), (-value).into(), Ty::I32))?
                    .into()
            }
            Scalar::Not(e) => (self.scalar(e, regs, mask)? == 0).into(),
            Scalar::I32(op, operands) => {
                let a = self.scalar(&operands[0], regs, mask)?;
                let b = self.scalar(&operands[1], regs, mask)?;
                match op {
                    BinaryOp::Cmp(op) => compare_scalar(*op, a, b).into(),
                    _ => computed(int_scalar(*op, a as i32, b as i32), mask)?,
                }
            }
            Scalar::U64(op, operands) => {
                let a = self.scalar(&operands[0], regs, mask)? as u64;
                let b = self.scalar(&operands[1], regs, mask)? as u64;
                match op {
                    BinaryOp::Cmp(op) => compare_scalar(*op, a, b).into(),
                    _ => computed(wide_scalar(*op, a, b).map(|v| v as i64), mask)?,
                }
            }
            Scalar::And(pair) => match self.scalar(&pair.0, regs, mask)? {
                0 => 0,
                _ => self.lazy_scalar(&pair.1, regs, mask)?,
            },
            Scalar::Or(pair) => match self.scalar(&pair.0, regs, mask)? {
                0 => self.lazy_scalar(&pair.1, regs, mask)?,
                holds => holds,
            },
            Scalar::Select(choice) => {
                let (cond, yes, no) = &**choice;
                let holds = self.scalar(cond, regs, mask)? != 0;
                self.lazy_scalar(if holds { yes } else { no }, regs, mask)?
            }
            Scalar::Narrow(e) => {
                let value = self.scalar(e, regs, mask)? as u64;
                let fits = i32::try_from(value);
                fits.map_err(|_| conversion(mask.trailing_zeros(), value.into(), Ty::I32))?.into()
            }
            Scalar::Widen(e) => {
                let value = self.scalar(e, regs, mask)?;
                if value < 0 {
                    return Err(conversion(mask.trailing_zeros(), value.into(), Ty::U64));
                }
                value
            }
        })
    }

    fn lazy_scalar(
        &mut self,
        lazy: &Lazy<Scalar>,
        regs: &Registers,
        mask: u32,
    ) -> Result<i64, Stopped> {
        self.profile.hit(lazy.site, mask);
        self.scalar(&lazy.value, regs, mask)
    }
}
