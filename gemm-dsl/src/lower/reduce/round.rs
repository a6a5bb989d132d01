//! Rounds. A round is the set of elements that the threads of a result read at once.

use crate::ir::{Const, KernelBuilder};
use crate::plan::ReducePlan;

/// Constants of a round, the set of elements that the threads of a result read at once.
#[derive(Clone, Copy)]
pub(super) struct Round {
    /// Number of elements, or vectors, per thread.
    pub(super) items: Const,
    pub(super) elements: Const,
}

impl Round {
    /// Declares the constants; `name` is the name of the number of elements.
    pub(super) fn new(b: &mut KernelBuilder, plan: &ReducePlan, group: Const, name: &str) -> Self {
        let what = if plan.vector() > 1 { "vectors" } else { "elements" };
        let what = format!("{what} per thread and iteration");
        let items = b.constant("ITEMS", plan.items() as i32, what);
        // A vector across columns has one element of each column.
        let elements = match plan.vector() {
            vector if vector > 1 && plan.width() == 1 => group * items * vector as i32,
            _ => group * items,
        };
        let of = if plan.spec().inputs().len() > 1 {
            "elements of each input"
        } else {
            "input elements"
        };
        // A block whose groups reduce several results reads a round for each of them.
        let several = plan.group() < plan.block() || plan.width() > 1;
        let shared = several && name == "ROUND";
        let per = if shared { super::result_noun(plan) } else { "block" };
        let elements = b.constant(name, elements, format!("{of} per {per} and iteration"));
        Self { items, elements }
    }
}
