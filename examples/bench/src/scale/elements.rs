//! Elements of GEMMs and sums. They depend only on the seed and the position, so that all ranks
//! compute the same elements.

use crate::data;
use gemm_world::Block;
use rayon::prelude::*;
use std::ops::Range;

/// Elements that one thread computes at a time.
const CHUNK: usize = 1 << 16;

/// Returns a row-major block of a matrix, in −1..1. Each row of the matrix has its own seed.
pub fn of_matrix(seed: u64, block: &Block) -> Vec<f32> {
    let row = |row: usize| {
        let seed = seed.wrapping_mul(1_000_003).wrapping_add(row as u64);
        let all = data::uniform(seed, block.cols.end, -1.0, 1.0);
        all[block.cols.clone()].to_vec()
    };
    block.rows.clone().flat_map(row).collect()
}

/// Returns part of an array, in 0..1.
pub fn of_array(seed: u64, part: Range<usize>) -> Vec<f32> {
    let mut elements = vec![0.0; part.len()];
    elements.par_chunks_mut(CHUNK).enumerate().for_each(|(number, chunk)| {
        let first = part.start + number * CHUNK;
        for (place, element) in chunk.iter_mut().enumerate() {
            *element = element_at(seed, (first + place) as u64);
        }
    });
    elements
}

/// Returns a number of 24 bits from a seed and an index (SplitMix64).
fn element_at(seed: u64, index: u64) -> f32 {
    let state = seed.wrapping_add(index).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) >> 40) as f32 / (1 << 24) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_the_elements_of_the_whole() {
        let mut random = fastrand::Rng::with_seed(1);
        let len = 3 * CHUNK + 5;
        let whole = of_array(7, 0..len);
        assert!(whole.iter().all(|element| (0.0..1.0).contains(element)));
        let mean = whole.iter().map(|x| f64::from(*x)).sum::<f64>() / len as f64;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        assert_ne!(of_array(8, 0..100), whole[..100]);
        for _ in 0..20 {
            let (one, other) = (random.usize(..=len), random.usize(..=len));
            let part = one.min(other)..one.max(other);
            assert!(of_array(7, part.clone()) == whole[part]);
        }
        let whole = of_matrix(7, &Block::new(0..5, 0..9));
        assert_eq!(of_matrix(7, &Block::new(2..4, 0..9)), whole[18..36]);
        assert_eq!(of_matrix(7, &Block::new(2..3, 4..9)), whole[22..27]);
    }
}
