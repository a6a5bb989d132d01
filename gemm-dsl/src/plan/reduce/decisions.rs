//! Decisions of a reduction plan, for people.

use super::{BlockFold, Blocks, ReducePlan, Share};
use crate::plan::decision::{Decision, Decisions};
use crate::plan::residency;
use crate::spec::Over;

impl ReducePlan {
    /// All decisions of the plan.
    pub fn decisions(&self) -> Vec<Decision> {
        let mut list = Decisions::of_block(self.block());
        list.say(
            "operator",
            self.op().map_or_else(|| "the user's".to_owned(), |op| op.to_string()),
        );
        let items = match self.vector() {
            1 => self.items().to_string(),
            vector => format!("{} of {vector} elements", self.items()),
        };
        list.say("items of a thread", items);
        let fold = match self.block_fold {
            BlockFold::Tree => format!("{} tree in shared memory", self.tree()),
            BlockFold::UnrolledWarp => format!("{} tree, the last warp unrolled", self.tree()),
            BlockFold::Shuffle => "shuffles in the warp, then across the warps".to_owned(),
        };
        match self.share {
            Share::Tiles => {
                list.say("elements of a block", self.elements_per_block().to_string());
                list.say("combined by", fold);
                return list.finish();
            }
            Share::Neighbours { group } if group == self.block() => list.say("combined by", fold),
            Share::Neighbours { group } => {
                list.say("results of a block", self.results_per_block().to_string());
                list.say("combined by", format!("shuffles among {group} threads"));
                if let Some(longest) = self.longest_of_group() {
                    list.say(
                        "longer segments",
                        format!("of more than {longest} elements: by the block, {fold}"),
                    );
                }
            }
            Share::Columns { group, width } => {
                list.say("columns of a block", self.results_per_block().to_string());
                list.say("columns of a thread", width.to_string());
                list.say(
                    "combined by",
                    format!("sequential tree in shared memory, {group} threads of a column"),
                );
            }
        }
        list.say("folded", self.spec.over.to_string());
        list.say("elements of a round", self.elements_per_round().to_string());
        self.say_types(&mut list);
        if self.spec.over != Over::All && self.spec.over != Over::Segments {
            list.say("strides", if self.spec.pitched { "of the launch" } else { "packed" });
        }
        let several = match self.blocks {
            Blocks::One => None,
            Blocks::InTurn(most) => Some(format!("at most {most}")),
            Blocks::Runs(run) => Some(format!("one for each run of {run} elements")),
        };
        if let Some(blocks) = several {
            list.say("blocks of a result", blocks);
            list.say(
                "launches",
                if self.is_once() {
                    "one: the block with the last ticket folds what blocks leave"
                } else {
                    "two: the second folds what blocks leave"
                },
            );
        }
        list.say("resident blocks per SM", residency::told(self.spec.blocks_per_sm));
        list.finish()
    }

    /// Adds the element, accumulator and result types, and the expressions.
    fn say_types(&self, list: &mut Decisions) {
        let (spec, types) = (&self.spec, self.types);
        list.say("elements", format!("{}, folded in {}", types.element, types.acc));
        if spec.compensated {
            list.say("rounding errors", "summed beside the sum");
        }
        if spec.has_indices() {
            list.say("indices and counts", types.index.to_string());
        }
        let expressions = [
            ("what is folded", spec.map.as_ref().map(ToString::to_string)),
            ("folded by", spec.fold.as_ref().map(ToString::to_string)),
            ("of no elements", spec.identity.as_ref().map(ToString::to_string)),
            ("what is made of it", spec.finish.as_ref().map(ToString::to_string)),
        ];
        for (name, expression) in expressions {
            if let Some(expression) = expression {
                list.say(name, expression);
            }
        }
        list.say("results", types.result.to_string());
    }
}
