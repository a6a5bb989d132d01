//! Decisions of a plan of an elementwise kernel, for people.

use super::MapPlan;
use crate::plan::decision::{Decision, Decisions};

impl MapPlan {
    /// All decisions of the plan.
    pub fn decisions(&self) -> Vec<Decision> {
        let spec = self.spec();
        let mut list = Decisions::of_block(self.block());
        if let Some(map) = &spec.map {
            list.say("expression", map.to_string());
        }
        for operand in self.operands() {
            list.say(format!("operand {}", operand.arg), operand.elem.to_string());
        }
        for (name, elem) in spec.results() {
            list.say(name, elem.to_string());
        }
        list.because(
            "arithmetic",
            self.float().name(),
            "f64 if an operand or a result is an f64, else f32",
        );
        list.because(
            "elements per item",
            self.vector().to_string(),
            "16 bytes of the smallest element type, so that every access has 16 bytes",
        );
        let reason = match spec.items {
            Some(_) => "",
            None => "as many as load 64 bytes, at most 4: enough loads in flight",
        };
        list.because("items per thread", self.items().to_string(), reason);
        list.because(
            "elements per thread of the scalar variant",
            self.scalar_items().to_string(),
            "the elements of all items, at most 8",
        );
        let (rows, reason) = match self.is_flat() {
            true => (
                "one row of all elements, if no array has padding",
                "no element depends on its row or column, so no index is divided by the columns",
            ),
            false => ("as they are", "an operand or the expression depends on the row or column"),
        };
        list.because("rows", rows, reason);
        list.finish()
    }
}
