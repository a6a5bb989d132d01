//! Check that a result is among the acceptable results.

use super::{Folded, Number};
use gemm_dsl::ir::Elem;

/// Semantics of a `finish`: a function of the reduced values and the number of elements, computed
/// in the types of the spec. If its input is a float, it must be monotonically increasing.
pub type Finish = fn(&[Number], u64) -> Number;

impl Folded {
    /// Checks the bits of a result.
    ///
    /// # Errors
    /// Returns a description of the mismatch.
    pub fn judge(self, bits: u64, result: Elem) -> Result<(), String> {
        Self::judge_finished(&[self], None, 0, bits, result)
    }

    /// Checks the bits of a result that a `finish` computes from several reduced values.
    ///
    /// # Errors
    /// Returns a description of the mismatch.
    pub fn judge_finished(
        folded: &[Self],
        finish: Option<Finish>,
        len: u64,
        bits: u64,
        result: Elem,
    ) -> Result<(), String> {
        let ends: Option<Vec<[Number; 2]>> = folded.iter().map(|folded| folded.ends()).collect();
        let Some(ends) = ends else { return Ok(()) };
        let end = |n: usize| {
            let values: Vec<Number> = ends.iter().map(|ends| ends[n]).collect();
            let value = finish.map_or(values[0], |finish| finish(&values, len));
            Number::of_bits(result, value.bits(result))
        };
        let (low, high, found) = (end(0), end(1), Number::of_bits(result, bits));
        let is_exact = folded.iter().all(|folded| !matches!(folded, Folded::Between(..)));
        let right = match (low, high, found) {
            (Number::Int(low), Number::Int(high), Number::Int(found)) => {
                low <= found && found <= high
            }
            (low, high, found) => {
                let (low, high, found) = (low.float(), high.float(), found.float());
                let minus_zero = found == 0.0 && found.is_sign_negative();
                if low.is_nan() || high.is_nan() {
                    found.is_nan()
                } else if is_exact {
                    found.to_bits() == low.to_bits()
                } else {
                    // A rounding to a narrower type, or a `finish`, may produce −0.
                    let may = finish.is_some() || low.is_sign_negative();
                    low <= found && found <= high && (may || !minus_zero)
                }
            }
        };
        if right {
            return Ok(());
        }
        Err(match is_exact {
            true => format!("it is {}, not {}", shown(found), shown(low)),
            false => format!("it is {}, not from {} to {}", shown(found), shown(low), shown(high)),
        })
    }

    /// Smallest and largest acceptable value, or None if the result is not checked.
    fn ends(self) -> Option<[Number; 2]> {
        match self {
            Folded::Exactly(value) => Some([value; 2]),
            Folded::Nan => Some([Number::Float(f64::NAN); 2]),
            Folded::Between(low, high) => Some([low, high].map(Number::Float)),
            Folded::Unjudged => None,
        }
    }
}

fn shown(number: Number) -> String {
    match number {
        Number::Int(n) => n.to_string(),
        Number::Float(x) => format!("{x:?}"),
    }
}
