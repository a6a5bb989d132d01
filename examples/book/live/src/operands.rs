//! Contents of the arrays of a launch. The counters of a kernel hardly depend on the contents, but
//! results must be finite.

use gemm_dsl::ir::{Elem, Ty};
use gemm_sim::Buffer;

/// Exclusive upper bound of random integers.
const INTEGERS: u64 = 100;

/// Deterministic random numbers (xorshift64*, by Vigna).
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Allocates an array of random elements: floats of either sign with magnitudes in [0.5, 1), or
    /// small integers.
    pub(crate) fn array(&mut self, elem: Elem, len: usize) -> Buffer {
        let bits: Vec<u64> = (0..len).map(|_| element(elem, self.next())).collect();
        Buffer::from_bits(elem, bits.into_iter())
    }
}

/// Bits of a random element.
fn element(elem: Elem, random: u64) -> u64 {
    // Bits of the mantissa, bits of the format, and the biased exponent of 0.5.
    let (mantissa, bits, exponent) = match elem {
        Elem::F64 => (52, 64, 1022),
        Elem::F32 | Elem::Tf32 => (23, 32, 126),
        Elem::F16 => (10, 16, 14),
        Elem::Bf16 => (7, 16, 126),
        Elem::E4m3 => (3, 8, 6),
        Elem::E5m2 => (2, 8, 14),
        _ => return random % INTEGERS,
    };
    let fraction = random >> 8 & ((1 << mantissa) - 1);
    (random & 1) << (bits - 1) | exponent << mantissa | fraction
}

/// Bits of a scalar argument: of 0.5 for a float, otherwise of 1.
pub(crate) fn argument(ty: Ty) -> u64 {
    match ty {
        Ty::Scalar(Elem::F64) => 0.5_f64.to_bits(),
        Ty::Scalar(Elem::F32) => 0.5_f32.to_bits().into(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No argument is 0, because a GEMM with alpha = 0 would not read A and B.
    #[test]
    fn arguments_are_a_half_or_one() {
        let number = |elem| argument(Ty::Scalar(elem));
        assert_eq!(f64::from_bits(number(Elem::F64)), 0.5);
        assert_eq!(f32::from_bits(number(Elem::F32) as u32), 0.5);
        for elem in [Elem::I32, Elem::U32, Elem::I64, Elem::U64] {
            assert_eq!(number(elem), 1, "{elem}");
        }
    }

    #[test]
    fn floats_are_between_a_half_and_one_in_every_format() {
        let mut numbers = Numbers::new();
        let within = |value: f64| (0.5..1.0).contains(&value.abs());
        for bits in numbers.array(Elem::F32, 100).bits() {
            assert!(within(f32::from_bits(bits as u32).into()));
            // The upper half of an f32 is a bf16.
            let bits = element(Elem::Bf16, bits) as u32;
            assert!(within(f32::from_bits(bits << 16).into()));
        }
        for bits in numbers.array(Elem::F64, 100).bits() {
            assert!(within(f64::from_bits(bits)));
        }
        let f16 = numbers.array(Elem::F16, 100).bits();
        assert!(f16.iter().all(|bits| bits >> 10 & 31 == 14), "the exponent of a half");
        assert!(f16.iter().any(|bits| bits >> 15 == 1) && f16.iter().any(|bits| bits >> 15 == 0));
    }
}
