//! The whole numbers that an integer can be. No integer of an expression can leave 64 bits or be
//! divided by zero: where it could, the expression is refused.

use super::tree::Binary;

/// The least and the greatest value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IntRange {
    /// The least.
    pub least: i128,
    /// The greatest.
    pub most: i128,
}

/// What no integer of the host comes to.
const HOST: i128 = 1 << 120;

impl IntRange {
    /// Extents and positions inside a block's reach: `int`s of the kernel.
    pub(super) const INDEX: IntRange = IntRange { least: 0, most: i32::MAX as i128 };
    /// Lengths of arrays and indices into them.
    pub(super) const LENGTH: IntRange = IntRange { least: 0, most: 1 << 48 };
    /// What a device has at least one of.
    pub(super) const COUNT: IntRange = IntRange { least: 1, most: i32::MAX as i128 };

    /// Whether it is one of these.
    pub(crate) fn contains(self, value: i128) -> bool {
        (self.least..=self.most).contains(&value)
    }

    pub(super) fn constant(value: i64) -> Self {
        Self { least: value.into(), most: value.into() }
    }

    /// All from one value to another.
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

    /// Either of two.
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

    pub(super) fn min(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.min(other.most) }
    }

    pub(super) fn max(self, other: Self) -> Self {
        Self { least: self.least.max(other.least), most: self.most.max(other.most) }
    }

    pub(super) fn has_zero(self) -> bool {
        self.contains(0)
    }

    /// Whether the host holds all values, which has 128 bits.
    pub(super) fn fits_host(self) -> bool {
        self.least > -HOST && self.most < HOST
    }

    /// Whether 64 bits hold all values.
    pub(super) fn fits(self) -> bool {
        self.least >= i64::MIN.into() && self.most <= i64::MAX.into()
    }

    /// The result of an arithmetic operator; a divisor is not zero.
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
            // All divisors lie on one side of zero: what is greatest, or least, is so at two ends.
            Binary::Div => Self::over(pairs().map(|(a, b)| a / b)),
            _ => {
                // Smaller than the divisor, no greater than the dividend, and with its sign.
                let bound = by.abs().most - 1;
                Self { least: self.least.clamp(-bound, 0), most: self.most.clamp(0, bound) }
            }
        }
    }
}
