//! Ranges of integers. An expression is rejected if one of its integers could exceed 64 bits, or if
//! a divisor could be zero.

use super::tree::{Binary, FoldOp};

/// Range of an integer, including both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IntRange {
    pub least: i128,
    pub most: i128,
}

/// Limit of the magnitude of integers on the host, well below 2^127.
const HOST: i128 = 1 << 120;

impl IntRange {
    /// Range of extents and positions inside a block, which are `int`s of the kernel.
    pub(super) const INDEX: IntRange = IntRange { least: 0, most: i32::MAX as i128 };
    /// Range of array lengths, and of indices into arrays.
    pub(super) const LENGTH: IntRange = IntRange { least: 0, most: 1 << 48 };
    /// Range of counts of at least one, such as the number of SMs of a device.
    pub(super) const COUNT: IntRange = IntRange { least: 1, most: i32::MAX as i128 };

    /// Returns true if the range contains the value.
    pub(crate) fn contains(self, value: i128) -> bool {
        (self.least..=self.most).contains(&value)
    }

    pub(super) fn constant(value: i64) -> Self {
        Self { least: value.into(), most: value.into() }
    }

    /// Returns the range between two values, in either order.
    pub(super) fn between(one: i128, other: i128) -> Self {
        Self::over([one, other])
    }

    fn over(values: impl IntoIterator<Item = i128>) -> Self {
        let values: Vec<i128> = values.into_iter().collect();
        let least = values.iter().copied().min().unwrap_or(0);
        let most = values.iter().copied().max().unwrap_or(0);
        Self { least, most }
    }

    fn ends(self) -> [i128; 2] {
        [self.least, self.most]
    }

    /// Returns the smallest range that contains both ranges.
    pub(super) fn or(self, other: Self) -> Self {
        Self::over(self.ends().into_iter().chain(other.ends()))
    }

    pub(super) fn neg(self) -> Self {
        Self { least: -self.most, most: -self.least }
    }

    pub(super) fn abs(self) -> Self {
        let least = if self.has_zero() { 0 } else { self.least.abs().min(self.most.abs()) };
        Self { least, most: self.least.abs().max(self.most.abs()) }
    }

    pub(super) fn sign(self) -> Self {
        Self { least: self.least.signum(), most: self.most.signum() }
    }

    pub(super) fn min(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.min(other.most) }
    }

    pub(super) fn max(self, other: Self) -> Self {
        Self { least: self.least.max(other.least), most: self.most.max(other.most) }
    }

    pub(super) fn has_zero(self) -> bool {
        self.contains(0)
    }

    /// Returns true if a 128-bit integer of the host can represent all values.
    pub(super) fn fits_host(self) -> bool {
        self.least > -HOST && self.most < HOST
    }

    /// Returns true if a 64-bit integer can represent all values.
    pub(super) fn fits(self) -> bool {
        self.least >= i64::MIN.into() && self.most <= i64::MAX.into()
    }

    /// Returns the range of a fold over a row of less than 2^31 columns. Without columns, a maximum
    /// is the least value of the range, and a minimum the greatest.
    pub(super) fn fold(self, op: FoldOp) -> Self {
        let columns = Self::INDEX.most;
        match op {
            FoldOp::Sum => Self {
                least: self.least.saturating_mul(columns).min(0),
                most: self.most.saturating_mul(columns).max(0),
            },
            FoldOp::Prod if self.least >= -1 && self.most <= 1 => self.or(Self::constant(1)),
            FoldOp::Prod => Self { least: -HOST, most: HOST },
            FoldOp::Max | FoldOp::Min => self,
        }
    }

    /// Returns the range of an arithmetic operator's result. A divisor's range must not contain
    /// zero.
    pub(super) fn operator(self, op: Binary, by: Self) -> Self {
        let pairs = || self.ends().into_iter().flat_map(|a| by.ends().map(|b| (a, b)));
        match op {
            Binary::Add => Self {
                least: self.least.saturating_add(by.least),
                most: self.most.saturating_add(by.most),
            },
            Binary::Sub => Self {
                least: self.least.saturating_sub(by.most),
                most: self.most.saturating_sub(by.least),
            },
            Binary::Mul => Self::over(pairs().map(|(a, b)| a.saturating_mul(b))),
            // All divisors have the same sign, so the extreme quotients are quotients of the ends.
            Binary::Div => Self::over(pairs().map(|(a, b)| a / b)),
            _ => {
                // The magnitude of a remainder is less than the divisor's and at most the
                // dividend's. Its sign is that of the dividend.
                let bound = by.abs().most - 1;
                Self { least: self.least.clamp(-bound, 0), most: self.most.clamp(0, bound) }
            }
        }
    }
}
