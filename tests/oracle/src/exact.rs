//! Exact sums of products of `f32`.

/// Binary digits of a limb.
const DIGITS: usize = 32;
/// Exponent of the lowest digit: that of the smallest product.
const LOWEST: i32 = -298;
/// Limbs for 2^64 products of the largest numbers.
const LIMBS: usize = 20;

/// Exact sum of up to 2^30 products, as a fixed-point number. Limbs may exceed their digits, and
/// have signs, until the value is read.
#[derive(Clone, Debug, Default)]
pub struct ExactSum([i64; LIMBS]);

impl ExactSum {
    /// Sum of the products of pairs of finite numbers.
    pub fn of(terms: impl IntoIterator<Item = (f32, f32)>) -> Self {
        let mut sum = Self::default();
        terms.into_iter().for_each(|(a, b)| sum.add(a, b));
        sum
    }

    /// Adds a product of finite numbers.
    pub fn add(&mut self, a: f32, b: f32) {
        let ((a, of_a), (b, of_b)) = (decoded(a), decoded(b));
        let product = a * b;
        let at = (of_a + of_b - LOWEST) as usize;
        let mut rest = u128::from(product.unsigned_abs()) << (at % DIGITS);
        for limb in &mut self.0[at / DIGITS..] {
            *limb += product.signum() * i64::from(rest as u32);
            rest >>= DIGITS;
            if rest == 0 {
                break;
            }
        }
    }

    /// Value, with a relative error of at most 2^-50.
    pub fn value(&self) -> f64 {
        let mut limbs = self.0;
        let mut carry = 0;
        for limb in &mut limbs {
            let all = *limb + carry;
            *limb = all.rem_euclid(1 << DIGITS);
            carry = all.div_euclid(1 << DIGITS);
        }
        if carry < 0 {
            return -Self(self.0.map(|limb| -limb)).value();
        }
        let weight = |nth: usize| 2f64.powi(LOWEST + (nth * DIGITS) as i32);
        let each = limbs.iter().enumerate().rev();
        each.fold(0.0, |sum, (nth, limb)| sum + *limb as f64 * weight(nth))
    }

    /// Magnitude of the difference from a finite number, as exact as [`value`](Self::value).
    pub fn error(&self, found: f32) -> f64 {
        let mut difference = self.clone();
        difference.add(-found, 1.0);
        difference.value().abs()
    }
}

/// Significand with its sign, and the exponent of its last digit.
fn decoded(value: f32) -> (i64, i32) {
    let bits = value.to_bits();
    let (exponent, fraction) = (bits >> 23 & 0xff, i64::from(bits & 0x7f_ffff));
    let significand = if exponent == 0 { fraction } else { fraction | 1 << 23 };
    let sign = if value.is_sign_negative() { -1 } else { 1 };
    (sign * significand, exponent.max(1) as i32 - 150)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_exact_at_both_ends_and_after_cancellation() {
        let (least, most) = (f32::from_bits(1), f32::MAX);
        let mut sum = ExactSum::of([(most, most), (least, least), (-most, most)]);
        assert_eq!(sum.value(), 2f64.powi(LOWEST));
        sum.add(-least, least);
        assert_eq!(sum.value(), 0.0);
        sum.add(most, -most);
        assert_eq!(sum.value(), -f64::from(most) * f64::from(most));
        let third = 1.0 / 3.0;
        let exact = ExactSum::of([(third, 3.0)]);
        assert_eq!(exact.error(1.0), (f64::from(third) * 3.0 - 1.0).abs());
        assert_eq!(ExactSum::of([(1.0, 1e10), (-3.0, 0.5)]).value(), 1e10 - 1.5);
        let many = ExactSum::of((0..100_000).map(|_| (most, -1.5)));
        assert_eq!(many.value(), -150_000.0 * f64::from(most));
    }
}
