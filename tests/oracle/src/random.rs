//! Random test data that is the same on every machine.

use gemm_dsl::expr::random::Random as SplitMix;

/// SplitMix64, by G. Steele, D. Lea and C. Flood.
#[derive(Clone, Debug)]
pub struct Random(SplitMix);

impl Random {
    /// Generator whose values depend only on the seed.
    pub fn new(seed: u64) -> Self {
        Self(SplitMix(seed))
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// Returns a multiple of 2^-23 in −1 .. 1.
    pub fn unit(&mut self) -> f32 {
        let steps = (self.bits() >> 40) as i64 - (1 << 23);
        steps as f32 / (1 << 23) as f32
    }
}

/// Values in −1 .. 1.
pub fn values(seed: u64, len: usize) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..len).map(|_| random.unit()).collect()
}

/// Values near 1, whose product stays in range.
pub fn near_one(seed: u64, len: usize) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..len).map(|_| 1.0 + random.unit() / 1024.0).collect()
}

/// Numerical hazard for the products of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hard {
    /// Products underflow to zeros. The sign of the sum depends on the last addend.
    Underflow,
    /// Products are subnormal, or zeros of either sign.
    Subnormal,
    /// Products are large, and most of them cancel.
    Cancel,
    /// Sums overflow to infinities, some of them to infinities of both signs.
    Overflow,
}

impl Hard {
    pub const ALL: [Hard; 4] = [Hard::Underflow, Hard::Subnormal, Hard::Cancel, Hard::Overflow];

    /// Operands with such products.
    pub fn values(self, seed: u64, len: usize) -> Vec<f32> {
        let mut random = Random::new(seed);
        let mut value = || {
            let (bits, unit) = (random.bits(), random.unit());
            match self {
                Hard::Underflow => 1e-30f32.copysign(unit),
                Hard::Subnormal if bits.is_multiple_of(4) => 0f32.copysign(unit),
                Hard::Subnormal => unit * 1e-20,
                Hard::Cancel => [1.0, 3.0, 16_777_217.0][bits as usize % 3] * 1f32.copysign(unit),
                Hard::Overflow => unit * 1e20,
            }
        };
        (0..len).map(|_| value()).collect()
    }
}
