//! Random operands, the same for a seed whatever the number of threads.

use crate::cli::Failure;
use gemm_runtime::spec::Op;
use rayon::prelude::*;

/// Elements that are drawn from one generator.
const CHUNK: usize = 1 << 16;

/// The number of elements of a matrix, or of an array of one row, if this machine can hold them.
///
/// # Errors
/// [`Failure::Usage`] where it cannot.
pub fn elements(rows: usize, cols: usize) -> Result<usize, Failure> {
    let fits = |len: &usize| Vec::<f64>::new().try_reserve_exact(*len).is_ok();
    rows.checked_mul(cols).filter(fits).ok_or_else(|| {
        Failure::Usage(format!("{rows} x {cols} elements do not fit into this machine's memory"))
    })
}

/// `len` values, uniform in `low..high`.
pub fn uniform(seed: u64, len: usize, low: f32, high: f32) -> Vec<f32> {
    let mut values = vec![0.0; len];
    values.par_chunks_mut(CHUNK).enumerate().for_each(|(number, chunk)| {
        let mut random = fastrand::Rng::with_seed(seed);
        random = fastrand::Rng::with_seed(random.u64(..).wrapping_add(number as u64));
        chunk.fill_with(|| low + (high - low) * random.f32());
    });
    values
}

/// The input of a reduction: uniform in −1..1; for a product powers of two.
pub fn for_reduction(seed: u64, len: usize, op: Op) -> Vec<f32> {
    match op {
        Op::Prod => powers(seed, len),
        Op::Sum | Op::Max | Op::Min => uniform(seed, len, -1.0, 1.0),
    }
}

/// Values ±½, ±1 and ±2 whose products are exact in any order, so that a missing or repeated one
/// shows although no error bound of a long product would be of use. Neighbours are reciprocal up
/// to the sign and most are ±1, which keeps every partial product in range; the first value is
/// eight times as large, so that the product is not ±1.
fn powers(seed: u64, len: usize) -> Vec<f32> {
    let mut values = uniform(seed, len, 0.0, 1.0);
    for pair in values.chunks_mut(2) {
        let random = pair[0];
        let magnitude = match random {
            r if r < 1.0 / 32.0 => 0.5,
            r if r < 2.0 / 32.0 => 2.0,
            _ => 1.0,
        };
        for (value, magnitude) in pair.iter_mut().zip([magnitude, 1.0 / magnitude]) {
            // The last bits are independent of the first ones.
            let negative = value.to_bits() & 1 == 1 || *value >= 0.75;
            *value = if negative { -magnitude } else { magnitude };
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

    #[test]
    fn a_seed_gives_the_same_values_and_another_one_others() {
        let values = uniform(7, CHUNK + 5, -1.0, 1.0);
        assert_eq!(values, uniform(7, CHUNK + 5, -1.0, 1.0));
        assert_ne!(values, uniform(8, CHUNK + 5, -1.0, 1.0));
        assert_ne!(values[0], values[CHUNK]);
        assert!(values.iter().all(|x| (-1.0..=1.0).contains(x)));
    }

    #[test]
    fn what_cannot_be_held_is_refused() {
        assert_eq!(elements(3, 4).ok(), Some(12));
        assert_eq!(elements(0, usize::MAX).ok(), Some(0));
        assert!(elements(usize::MAX, 2).is_err() && elements(1, usize::MAX / 16).is_err());
    }

    #[test]
    fn factors_are_powers_of_two_of_both_signs() {
        let values = for_reduction(7, 10_001, Op::Prod);
        assert!(values.iter().all(|x| x.to_bits() & 0x7f_ffff == 0));
        for magnitude in [0.5, 1.0, 2.0] {
            assert!(values.contains(&magnitude) && values.contains(&-magnitude));
        }
        let product: f64 = values.iter().map(|&x| f64::from(x)).product();
        assert!([4.0, 8.0, 16.0].contains(&product.abs()), "{product}");
    }
}
