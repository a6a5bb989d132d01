//! Changes of the counters from one stage of a ladder to the next.

pub use gemm_draw::number::number;

/// Quantity of a stage, for comparison with the previous stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    /// Name in a table, such as `conflicts`.
    pub name: &'static str,
    pub value: f64,
}

/// Factor below which a change is not reported.
const WORTH_NAMING: f64 = 1.15;

/// Describes the largest changes, at most `most`: `conflicts 480 → 0, barriers 9 → 2`.
///
/// The text is empty if all changes are small. Both stages must list the same quantities in the
/// same order.
pub fn describe(before: &[Quantity], after: &[Quantity], most: usize) -> String {
    let mut changes: Vec<(f64, String)> = before
        .iter()
        .zip(after)
        .filter_map(|(old, new)| {
            let size = size(old.value, new.value);
            let text = format!("{} {} → {}", new.name, number(old.value), number(new.value));
            (size > WORTH_NAMING.ln()).then_some((size, text))
        })
        .collect();
    changes.sort_by(|a, b| b.0.total_cmp(&a.0));
    changes.truncate(most);
    let texts: Vec<String> = changes.into_iter().map(|(_, text)| text).collect();
    texts.join(", ")
}

/// Logarithm of the factor between two values; infinite if exactly one of them is 0.
fn size(old: f64, new: f64) -> f64 {
    if old == new { 0.0 } else { (new / old).ln().abs() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantities(values: [f64; 3]) -> Vec<Quantity> {
        let names = ["conflicts", "barriers", "instructions"];
        names.into_iter().zip(values).map(|(name, value)| Quantity { name, value }).collect()
    }

    #[test]
    fn names_the_largest_changes_first() {
        let (before, after) = (quantities([480.0, 9.0, 1000.0]), quantities([0.0, 2.0, 990.0]));
        assert_eq!(describe(&before, &after, 3), "conflicts 480 → 0, barriers 9 → 2");
        assert_eq!(describe(&before, &after, 1), "conflicts 480 → 0");
        assert_eq!(describe(&before, &before, 3), "");
    }
}
