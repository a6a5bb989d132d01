//! Random operands. A seed gives the same values for any number of threads.

use crate::cli::Failure;
use gemm_runtime::spec::Op;
use rayon::prelude::*;

/// Number of elements that one random generator draws.
const CHUNK: usize = 1 << 16;

/// Returns the number of elements of an array with these extents.
///
/// # Errors
/// Returns [`Failure::Usage`] if the array does not fit into this machine's memory.
pub fn elements(extents: &[usize]) -> Result<usize, Failure> {
    let fits = |len: &usize| Vec::<f64>::new().try_reserve_exact(*len).is_ok();
    // An extent of 0 means no elements, even if the other extents overflow.
    let product = match extents.contains(&0) {
        true => Some(0),
        false => extents.iter().try_fold(1, |n: usize, &extent| n.checked_mul(extent)),
    };
    product.filter(fits).ok_or_else(|| {
        let factors = extents.iter().skip_while(|extent| **extent == 1);
        let number: Vec<String> = factors.map(usize::to_string).collect();
        let number = number.join(" x ");
        Failure::Usage(format!(
            "{number} elements do not fit into the memory of this machine. Choose fewer"
        ))
    })
}

/// Draws `len` values, uniform in `low..high`.
pub fn uniform(seed: u64, len: usize, low: f32, high: f32) -> Vec<f32> {
    let mut values = vec![0.0; len];
    values.par_chunks_mut(CHUNK).enumerate().for_each(|(number, chunk)| {
        let mut random = fastrand::Rng::with_seed(seed);
        random = fastrand::Rng::with_seed(random.u64(..).wrapping_add(number as u64));
        chunk.fill_with(|| low + (high - low) * random.f32());
    });
    values
}

/// Draws the input of a reduction: uniform in −1..1, or powers of two for `prod`.
pub fn for_reduction(seed: u64, len: usize, op: Op) -> Vec<f32> {
    match op {
        Op::Prod => powers(seed, len),
        _ => uniform(seed, len, -1.0, 1.0),
    }
}

/// Maximum number of pairs of factors other than ±1. It keeps the product of all factors above 1 in
/// range.
const PAIRS: usize = 48;

/// Draws values ±½, ±1 and ±2 whose products are exact and in range in any order.
///
/// If the kernel skips or repeats a value, the exact product changes. An error bound of a long
/// product would be too wide to detect this. Signs are random, and most values are ±1. The other
/// values are adjacent pairs, reciprocal up to the sign, spread over the array. The first value is
/// multiplied by eight, so that the product is not ±1.
fn powers(seed: u64, len: usize) -> Vec<f32> {
    let random = uniform(seed, len, 0.0, 1.0);
    // The last bit decides the sign, because it is independent of the first bits.
    let sign = |x: &f32| if x.to_bits() & 1 == 1 || *x >= 0.75 { -1.0 } else { 1.0 };
    let mut values: Vec<f32> = random.iter().map(sign).collect();
    let stretch = len.div_ceil(PAIRS).next_multiple_of(2).max(32);
    for (values, random) in values.chunks_mut(stretch).zip(random.chunks(stretch)) {
        let pairs = values.len() / 2;
        let at = 2 * (random[0] * pairs as f32) as usize;
        if let [a, b, ..] = &mut values[at.min(2 * pairs)..] {
            let magnitude = if random[1] < 0.5 { 0.5 } else { 2.0 };
            *a *= magnitude;
            *b /= magnitude;
        }
    }
    if let Some(first) = values.first_mut() {
        *first *= 8.0;
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use gemm_oracle::reduction::Truth;

    #[test]
    fn a_seed_gives_the_same_values_and_another_one_others() {
        let values = uniform(7, CHUNK + 5, -1.0, 1.0);
        assert_eq!(values, uniform(7, CHUNK + 5, -1.0, 1.0));
        assert_ne!(values, uniform(8, CHUNK + 5, -1.0, 1.0));
        assert_ne!(values[0], values[CHUNK]);
        assert!(values.iter().all(|x| (-1.0..=1.0).contains(x)));
    }

    #[test]
    fn extents_beyond_memory_are_rejected() {
        assert_eq!(elements(&[3, 4]).ok(), Some(12));
        assert_eq!(elements(&[usize::MAX, usize::MAX, 0]).ok(), Some(0));
        let refused = |extents: &[usize]| elements(extents).expect_err("too many").to_string();
        assert!(refused(&[usize::MAX, 2]).contains(" x 2 elements"));
        assert!(refused(&[1, 1 << 60]).starts_with("1152921504606846976 elements"));
        assert!(refused(&[1 << 40, 1 << 12, 1 << 12]).starts_with("1099511627776 x 4096 x 4096"));
    }

    #[test]
    fn no_product_of_some_factors_leaves_the_range() {
        for len in [0, 1, 2, 3, 31, 1000, 4097, 1 << 20] {
            let values = for_reduction(3, len, Op::Prod);
            assert_eq!(values.len(), len);
            assert!(Truth::of(Op::Prod, &values).is_ok(), "{len}");
        }
    }

    #[test]
    fn factors_are_powers_of_two_of_both_signs() {
        let values = for_reduction(7, 10_001, Op::Prod);
        assert!(values.iter().all(|x| x.to_bits() & 0x7f_ffff == 0));
        for magnitude in [0.5, 1.0, 2.0] {
            assert!(values.contains(&magnitude) && values.contains(&-magnitude));
        }
        let product: f64 = values.iter().map(|&x| f64::from(x)).product();
        assert_eq!(product.abs(), 8.0);
    }
}
