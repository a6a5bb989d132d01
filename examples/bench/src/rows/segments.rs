//! Segment offsets with several distributions of lengths.

use fastrand::Rng;

/// Distribution of the lengths of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lengths {
    Uniform,
    /// A few long segments and many short ones. The share of segments longer than x decreases as
    /// x^−1.5.
    PowerLaw,
    /// Nine of ten segments are empty.
    MostlyEmpty,
}

/// Exponent of the power law.
const EXPONENT: f64 = 1.5;

/// One of this number of segments has elements, on average.
const EMPTY: u32 = 10;

impl Lengths {
    pub const ALL: [Self; 3] = [Self::Uniform, Self::PowerLaw, Self::MostlyEmpty];

    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::PowerLaw => "power law",
            Self::MostlyEmpty => "mostly empty",
        }
    }

    /// Returns offsets from 0 to `len` of segments with `average` elements on average.
    pub fn offsets(self, seed: u64, len: u32, average: u32) -> Vec<u32> {
        let mut random = Rng::with_seed(seed);
        let count = len.div_ceil(average.max(1)).max(1);
        let mut sums = vec![0.0];
        let mut sum = 0.0;
        for _ in 0..count {
            sum += match self {
                Self::Uniform => 1.0,
                Self::PowerLaw => (1.0 - random.f64()).powf(-1.0 / EXPONENT),
                Self::MostlyEmpty if random.u32(..EMPTY) > 0 => 0.0,
                Self::MostlyEmpty => random.f64(),
            };
            sums.push(sum);
        }
        let offset = |part: &f64| (f64::from(len) * part / sum) as u32;
        let mut offsets: Vec<u32> = sums.iter().map(offset).collect();
        // Corrects the rounding of the last quotient, and the case that all segments are empty.
        if let Some(last) = offsets.last_mut() {
            *last = len;
        }
        offsets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_share_all_elements() {
        for lengths in Lengths::ALL {
            for (len, average) in [(0, 8), (1, 8), (1000, 1), (1000, 7), (1 << 16, 64), (100, 1000)]
            {
                let offsets = lengths.offsets(3, len, average);
                assert_eq!((offsets[0], offsets.last()), (0, Some(&len)), "{lengths:?}");
                assert!(offsets.is_sorted() && offsets.len() >= 2, "{lengths:?}");
            }
        }
    }

    #[test]
    fn lengths_are_spread_as_they_are_called() {
        let lengths = |kind: Lengths| -> Vec<u32> {
            let offsets = kind.offsets(7, 1 << 20, 64);
            offsets.windows(2).map(|pair| pair[1] - pair[0]).collect()
        };
        assert!(lengths(Lengths::Uniform).iter().all(|n| *n == 64));
        let power = lengths(Lengths::PowerLaw);
        let short = power.iter().filter(|n| **n < 64).count();
        assert!(short > power.len() / 2 && power.iter().any(|n| *n > 1000), "{short}");
        let empty = lengths(Lengths::MostlyEmpty).iter().filter(|n| **n == 0).count();
        assert!((12_000..16_384).contains(&empty), "{empty}");
    }
}
