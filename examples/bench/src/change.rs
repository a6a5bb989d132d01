//! What changed from one stage to the next.

pub use gemm_draw::number::number;

/// A quantity of a stage that a reader compares with the stage before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    /// What it is called in a table.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
}

/// Changes by less than this factor are not worth a word.
const WORTH_NAMING: f64 = 1.15;

/// The largest changes, at most `most`, as in `conflicts 480 → 0, barriers 9 → 2`; empty where
/// nothing changed much. Both stages list the same quantities in the same order.
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

/// The logarithm of the factor between two values; infinite where one of them is 0.
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
