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
            self.op().map_or_else(|| "user-defined".to_owned(), |op| op.to_string()),
        );
        let items = match self.vector() {
            1 => self.items().to_string(),
            vector => format!("{} vectors of {vector} elements", self.items()),
        };
        list.say("items per thread", items);
        list.say("minimum blocks per SM", residency::told(self.spec.blocks_per_sm));
        let fold = match self.block_fold {
            BlockFold::Tree => format!("{} tree in shared memory", self.tree()),
            BlockFold::UnrolledWarp => format!("{} tree, the last warp unrolled", self.tree()),
            BlockFold::Shuffle => "shuffles in each warp, then across the warps".to_owned(),
        };
        match self.share {
            Share::Tiles => {
                list.say("elements per block", self.elements_per_block().to_string());
                list.say("block reduction", fold);
                return list.finish();
            }
            Share::Neighbours { group } if group == self.block() && self.topk().is_none() => {
                list.say("block reduction", fold)
            }
            Share::Neighbours { group } if group == self.block() => {
                list.say("block reduction", "tree in shared memory over the warps' selections");
            }
            Share::Neighbours { .. } if self.topk().is_some() => {
                list.say("results per block", self.results_per_block().to_string());
            }
            Share::Neighbours { group } => {
                list.say("results per block", self.results_per_block().to_string());
                list.say("group reduction", format!("shuffles among {group} threads"));
                if let Some(longest) = self.longest_of_group() {
                    list.say(
                        "long segments",
                        format!("above {longest} elements, by the whole block: {fold}"),
                    );
                }
            }
            Share::Columns { group, width } => {
                list.say("columns per block", self.results_per_block().to_string());
                list.say("columns per thread", width.to_string());
                list.say(
                    "column reduction",
                    format!("sequential tree in shared memory, {group} threads per column"),
                );
            }
        }
        if let Some(k) = self.topk() {
            list.because(
                "selection",
                format!("{k} elements of each result, in order"),
                "each warp keeps its best elements sorted in registers, and merges 32 candidates \
                 at once",
            );
        }
        list.say("reduction over", self.spec.over.to_string());
        list.say("elements per round", self.elements_per_round().to_string());
        self.say_types(&mut list);
        if self.spec.over != Over::All && self.spec.over != Over::Segments {
            list.say("strides", if self.spec.pitched { "given at launch" } else { "packed" });
        }
        self.say_blocks(&mut list);
        list.finish()
    }

    /// Adds the number of blocks and launches, if several blocks compute a result.
    fn say_blocks(&self, list: &mut Decisions) {
        let blocks = match self.blocks {
            Blocks::One => return,
            Blocks::InTurn(most) => format!("at most {most}"),
            Blocks::Runs(run) => format!("one per run of {run} elements"),
        };
        list.say("blocks per result", blocks);
        list.say(
            "launches",
            if self.is_once() {
                "one: the last block folds the partial results"
            } else {
                "two: the second folds the partial results"
            },
        );
    }

    /// Adds the element, accumulator and result types, and the expressions.
    fn say_types(&self, list: &mut Decisions) {
        let (spec, types) = (&self.spec, self.types);
        list.say("element type", format!("{}, accumulated in {}", types.element, types.acc));
        if spec.compensated {
            list.say("rounding errors", "summed separately (Neumaier)");
        }
        if spec.has_indices() {
            list.say("index type", types.index.to_string());
        }
        let expressions = [
            ("map", spec.map.as_ref().map(ToString::to_string)),
            ("fold", spec.fold.as_ref().map(ToString::to_string)),
            ("identity", spec.identity.as_ref().map(ToString::to_string)),
            ("finish", spec.finish.as_ref().map(ToString::to_string)),
        ];
        for (name, expression) in expressions {
            if let Some(expression) = expression {
                list.say(name, expression);
            }
        }
        if spec.has_value_and_index() {
            list.say("results", "the value and its index");
        }
        list.say("result type", types.result.to_string());
    }
}
