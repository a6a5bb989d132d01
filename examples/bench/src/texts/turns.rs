//! Times of two texts that were launched in turns.

use serde::Serialize;

/// Times of an old and of a new text.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TurnTimes {
    /// Median times in milliseconds.
    pub old_ms: f64,
    pub new_ms: f64,
    /// Median over the rounds of the new time divided by the old time.
    pub ratio: f64,
    /// First and third quartile of the ratio.
    pub quartiles: [f64; 2],
}

impl TurnTimes {
    /// Creates the medians from the times of each round.
    pub fn new(old: &[f64], new: &[f64]) -> Self {
        let ratios: Vec<f64> = old.iter().zip(new).map(|(old, new)| new / old).collect();
        Self {
            old_ms: quantile(old, 0.5),
            new_ms: quantile(new, 0.5),
            ratio: quantile(&ratios, 0.5),
            quartiles: [0.25, 0.75].map(|share| quantile(&ratios, share)),
        }
    }
}

/// Returns the quantile at `share`, interpolated. It is NaN if there are no values.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let at = share * values.len().saturating_sub(1) as f64;
    let (low, rest) = (at.floor() as usize, at.fract());
    match (values.get(low), values.get(low + 1)) {
        (Some(below), Some(above)) => below + (above - below) * rest,
        (Some(last), None) => *last,
        _ => f64::NAN,
    }
}

/// Comparison of both texts of a spec in one case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedCase {
    /// Folder and stem of the spec, for example `sgemm/22_fastest`.
    pub spec: String,
    pub case: String,
    #[serde(flatten)]
    pub times: TurnTimes,
    /// True if both texts computed the same bits.
    pub same_bits: bool,
}

impl ComparedCase {
    /// Describes a ratio above `limit`, and a difference in bits. Returns `None` if there is
    /// neither.
    pub fn fault(&self, limit: f64) -> Option<String> {
        let Self { spec, case, times: TurnTimes { ratio, quartiles: [low, high], .. }, .. } = self;
        let mut faults = Vec::new();
        if *ratio > limit {
            let [loss, low, high] = [ratio, low, high].map(|ratio| 100.0 * (ratio - 1.0));
            faults.push(format!("slower by {loss:.2} % (quartiles {low:.2} … {high:.2} %)"));
        }
        if !self.same_bits {
            faults.push("different bits".to_owned());
        }
        (!faults.is_empty()).then(|| format!("{spec} at {case}: {}", faults.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_of_the_rounds() {
        // In the last two rounds the GPU is slower, for both texts alike.
        let times = TurnTimes::new(&[1.0, 1.0, 1.0, 2.0, 4.0], &[1.01, 1.01, 1.02, 2.02, 4.0]);
        assert_eq!((times.old_ms, times.new_ms), (1.0, 1.02));
        assert!((times.ratio - 1.01).abs() < 1e-12, "{times:?}");
        assert_eq!(times.quartiles, [1.01, 1.01]);
        assert_eq!(quantile(&[3.0, 1.0], 0.5), 2.0);
        assert!(TurnTimes::new(&[], &[]).ratio.is_nan());
    }

    #[test]
    fn a_loss_and_other_bits_are_named() {
        let case = |new: f64, same_bits| ComparedCase {
            spec: "sgemm/22_fastest".to_owned(),
            case: "4096".to_owned(),
            times: TurnTimes::new(&[1.0; 3], &[new; 3]),
            same_bits,
        };
        assert_eq!(case(1.004, true).fault(1.005), None);
        assert_eq!(case(0.5, true).fault(1.005), None);
        let fault = case(1.01, false).fault(1.005).expect("two faults");
        assert_eq!(
            fault,
            "sgemm/22_fastest at 4096: slower by 1.00 % (quartiles 1.00 … 1.00 %), different bits"
        );
    }
}
