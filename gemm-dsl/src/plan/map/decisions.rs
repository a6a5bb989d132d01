//! Decisions of a plan of an elementwise kernel, for people.

use super::MapPlan;
use crate::error::counted;
use crate::expr::{RowExpression, RowPartKind};
use crate::plan::decision::{Decision, Decisions};
use crate::spec::Along;

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
        for result in spec.results() {
            let axes = if result.along == Along::M { "[m]" } else { "" };
            list.say(result.name, format!("{}{axes}", result.elem));
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
        match self.rows() {
            Some(expression) => self.decide_rows(&mut list, &expression),
            None => self.decide_elements(&mut list),
        }
        list.finish()
    }

    fn decide_elements(&self, list: &mut Decisions) {
        let spec = self.spec();
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
    }

    fn decide_rows(&self, list: &mut Decisions, expression: &RowExpression) {
        for part in &expression.parts {
            let (pass, value) = (part.pass, part.closure.body());
            match &part.kind {
                RowPartKind::Fold { op, kept } => {
                    let kept = if kept.is_some() { "; threads keep the folded values" } else { "" };
                    let fold = format!("{}({value}) in pass {}{kept}", op.name(), pass + 1);
                    list.say(format!("fold {}", part.name), fold);
                }
                RowPartKind::Value => {
                    list.say(format!("value of the row {}", part.name), value.to_string());
                }
            }
        }
        let reason = match self.spec().items {
            Some(_) => "",
            None => "as many as hold 128 bytes of operands, at most 8: they stay in registers",
        };
        list.because("items per thread", self.items().to_string(), reason);
        for class in self.row_classes() {
            let rows = match class.longest {
                Some(longest) => format!("rows up to {longest} columns"),
                None => "longer rows".to_owned(),
            };
            let (team, reason) = match (class.rows(), class.longest) {
                (_, Some(_)) if class.cluster > 1 => (
                    "a cluster",
                    "the row stays in registers, and the next row is copied meanwhile; GPUs \
                     without clusters read it again for each pass",
                ),
                (1, Some(_)) => ("a block", "the row stays in registers"),
                (1, None) => ("a block", "each pass reads the row again"),
                _ => ("a warp", "the row stays in registers, and no barrier is needed"),
            };
            let value = match class.cluster {
                1 => format!("{team} of {} threads", class.team),
                blocks => format!("a cluster of {blocks} blocks of {} threads", class.block),
            };
            let value = match class.blocks_per_sm(self) {
                None => value,
                Some(least) => {
                    format!("{value}, registers for at least {} per SM", counted(least, "block"))
                }
            };
            list.because(rows, value, reason);
        }
    }
}
