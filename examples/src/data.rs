//! Random operands, the same for a seed whatever the number of threads.

use gemm_runtime::spec::Op;
use rayon::prelude::*;

/// Elements that are drawn from one generator.
const CHUNK: usize = 1 << 16;

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

/// The input of a reduction: in −1..1, and for a product so near 1 that it stays near 1.
pub fn for_reduction(seed: u64, len: usize, op: Op) -> Vec<f32> {
    match op {
        Op::Prod => {
            // The logarithm of the product then has a standard deviation of at most 0.6.
            let spread = 1.0 / (len.max(4) as f64).sqrt();
            uniform(seed, len, (1.0 - spread) as f32, (1.0 + spread) as f32)
        }
        Op::Sum | Op::Max | Op::Min => uniform(seed, len, -1.0, 1.0),
    }
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
}
