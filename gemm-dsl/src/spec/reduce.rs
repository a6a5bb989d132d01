//! The spec of a reduction.

mod acts;
mod types;

pub use types::{AccType, DataType, IndexType, ResultType};

use super::expression::{Finish, Fold, Identity, Map};
use super::table::{derived_name, given_name, spec, words};
use crate::ir::{Elem, VECTOR_BYTES};
use crate::target::arch::WARP;
use acts::{
    ALIGNED, COLUMNS, DIMENSIONS, FOLD, INDICES, MANY, NO_FOLD, NUMBERS, SEVERAL, SHARED,
    SHARED_TREE, SUM, WHOLE_BLOCK,
};

words! {
    /// What a reduction makes of its elements. Its identity stands for a missing element.
    Op {
        /// `a + b`, identity −0: the only value that changes no other, −0 included.
        Sum = "sum",
        /// `a * b`, identity 1.
        Prod = "prod",
        /// The IEEE 754-2019 maximum, identity −∞: a NaN wins, and −0 is below +0.
        Max = "max",
        /// The IEEE 754-2019 minimum, identity +∞: a NaN wins, and −0 is below +0.
        Min = "min",
        /// The index of the greatest element: of equal ones, which zeros are, the first; the first NaN if there is one. Of no elements the greatest index that there is.
        Argmax = "argmax",
        /// The index of the smallest element, as `argmax`.
        Argmin = "argmin",
        /// 1 where some element is not 0, or the `map` holds for one, else 0.
        Any = "any",
        /// 1 where no element is 0, or the `map` holds for all, else 0.
        All = "all",
        /// Two results, the mean and the variance (of the whole population), in one reading (Welford, Chan): NaN of no elements, and where one is infinite or the sum of those that a thread holds at once overflows. Of elements that lie further apart than the greatest number the mean need not be finite; of zeros it is +0, of −0 too.
        MeanVar = "mean_var",
        /// The logarithm of the sum of exponentials, in one reading, without overflow: −∞ of no elements.
        Logsumexp = "logsumexp",
    }
}

impl Op {
    /// Whether one number is all that is kept of those that were folded.
    pub fn keeps_one_number(self) -> bool {
        matches!(self, Op::Sum | Op::Prod | Op::Max | Op::Min)
    }

    /// Whether its result is the index of an element.
    pub fn is_index(self) -> bool {
        matches!(self, Op::Argmax | Op::Argmin)
    }

    /// Whether its result is a truth value.
    pub fn is_truth(self) -> bool {
        matches!(self, Op::Any | Op::All)
    }
}

words! {
    /// How the threads of a block combine their values in shared memory.
    Tree {
        /// The distance of the partners halves; the active threads are the first ones.
        Sequential = "sequential",
        /// The distance doubles; the active threads are the first ones, their elements strided.
        Interleaved = "interleaved",
        /// The distance doubles; every second, fourth, … thread is active, so warps diverge.
        InterleavedDivergent = "interleaved_divergent",
    }
}

words! {
    /// What is folded into one result. The elements are seen as (outer, length, inner): neighbours along `inner` lie next to one another.
    Over {
        /// All elements of an array.
        All = "all",
        /// Each row of a matrix, (outer, length).
        Rows = "rows",
        /// Each column of a matrix, (length, inner).
        Columns = "columns",
        /// Each column of each matrix of a batch, (outer, length, inner).
        Middle = "middle",
        /// Each of the segments that an array is cut into, by an array of offsets; of an empty one the result is that of no elements.
        Segments = "segments",
    }
}

words! {
    /// In how many launches several blocks fold what becomes one result. By `passes` and `once` of one spec it has the same bits.
    LaunchForm {
        /// As many as it takes until one value is left: each block folds one tile of its elements, and the same kernel then folds what the blocks have left. Of whole arrays of `f32` by `sum`, `prod`, `max` or `min` alone.
        Tiles = "tiles",
        /// Two: one folds elements, by at most as many blocks as there may be, the other what they have left.
        Passes = "passes",
        /// One: each block takes a ticket when it has left its part, and the one with the last folds all parts, by a fixed tree over the numbers of the blocks.
        Once = "once",
    }
}

spec! {
    /// A reduction of arrays: each result is made of many elements.
    ReduceSpec for "reduce_kernel" {
        /// What is made of the elements.
        op(Op): Op = Op::Sum, "", on NO_FOLD, what(Results);
        /// What is made of two values, in place of an operator. It should be associative and commutative: how the elements are grouped, and in which order they come, follows from the spec and the shape, and a result may depend on it.
        fold(Fold): Option<Fold> = None::<Fold>, "fold_{}", what(Results);
        /// The value of `fold` that changes no other: it stands for missing elements.
        identity(Identity): Option<Identity> = None::<Identity>, "identity_{}", on FOLD, what;
        /// What is folded: an expression of an element of each of one to four arrays, of its index `i` and of the number `len` of elements, both integers.
        map(Map): Option<Map> = None::<Map>, "map_{}", what(Inputs);
        /// What the result is made of: an expression of the folded value, or the two of `mean_var`, and, where it is named behind, of the number of elements, in the type that is folded in.
        finish(Finish): Option<Finish> = None::<Finish>, "finish_{}", on NUMBERS, what(Results);
        /// What the elements are.
        element(DataType): DataType = DataType::F32, "{}", called "type", what(Inputs, Results);
        /// What they are folded in. Without it, elements that are only stored in `f32`, `i32` or `u32`, others in their own type; sums of integers wrap.
        acc(AccType): Option<AccType> = None::<AccType>, "acc_{}", what(Results) as ReduceSpec::acc_elem;
        /// What a result is; without it what was folded in.
        result(ResultType): Option<ResultType> = None::<ResultType>, "result_{}", on NUMBERS, what(Results) as ReduceSpec::result_elem;
        /// The type of indices, of counts and of the offsets of segments.
        index(IndexType): IndexType = IndexType::U32, "index_{}", on INDICES, what(Results);
        /// Whether the rounding errors of a sum are summed too (Neumaier): what is left is one rounding of the result and, of the sum of magnitudes, about 2 d² u², where an element takes part in d additions and u is the unit of rounding.
        compensated(bool): bool = false, "compensated", on SUM, what;
        /// What is folded into one result.
        over(Over): Over = Over::All, "{}", what;
        /// Whether rows may lie apart, as those of a part of a matrix: strides come with the launch.
        pitched(bool): bool = false, "pitched", on DIMENSIONS, what;
        /// Threads of a block: a power of two from 32 to 1024.
        block(u32): u32 = 256, "";
        /// Threads that fold one result together: a power of two up to 32, or the whole block, of a row or a segment (32 without it); of columns, up to the block, which has `block / group` threads for neighbours (8 without it).
        group(u32): Option<u32> = None::<u32>, "group{}", least 1 "a result takes a thread", on MANY;
        /// How a block combines its values.
        tree(Tree): Tree = Tree::Sequential, "{}", on SHARED_TREE;
        /// Items that a thread folds while loading, the threads of a result apart.
        items(u32): u32 = 1, "items{}", least 1 "a thread takes in at least one item";
        /// Whether the last 32 threads finish unrolled, without block barriers.
        unroll_last_warp(bool): bool = false, "unroll_last_warp", on WHOLE_BLOCK;
        /// Whether registers are shuffled in a warp, then across warps, in place of the tree.
        shuffle(bool): bool = false, "shuffle", on WHOLE_BLOCK;
        /// Whether an item is a vector of 16 bytes, as `float4` is, instead of one element. Of columns a thread then folds as many neighbours, and what becomes of them is stored by vectors, too.
        float4(bool): bool = false, "float4", on ALIGNED;
        /// Columns that a thread folds, as far apart as the block is wide.
        coarsen(u32): u32 = 1, "coarsen{}", least 1 "a thread folds at least one column", on COLUMNS;
        /// The most blocks that fold one result, each of which goes on until no elements are left; without it 1024 of a whole array, else 1. What they leave is folded by a fixed tree over their numbers.
        blocks(u32): Option<u32> = None::<u32>, "blocks{}", least 1 "a result takes a block", on SHARED;
        /// Elements of a result, one after the other, that a block folds: a multiple of what it takes in at once. There are as many blocks as such runs, in place of `blocks`, which take turns. What is left of runs is folded by a fixed tree over their numbers, so that pieces of whole runs may be folded apart, each on a device of its own, and give the same bits.
        run(u32): Option<u32> = None::<u32>, "run{}", least 1 "a run has elements", on SHARED;
        /// In how many launches several blocks fold one result. Without it `tiles` where that goes and there are neither `blocks` nor `run`, else `passes`.
        launch(LaunchForm): Option<LaunchForm> = None::<LaunchForm>, "{}", on SEVERAL;
    }
}

impl ReduceSpec {
    /// The kernel's name: the user's behind `reduce_`, or one derived from the spec such as
    /// `reduce_sum_256_items4_shuffle`.
    pub fn kernel_name(&self) -> String {
        match &self.name {
            Some(name) => given_name("reduce_", name),
            None => derived_name(format!("reduce_{}_{}", self.verb(), self.block), self),
        }
    }

    /// The operator, unless the user has a `fold`.
    pub fn operator(&self) -> Option<Op> {
        if self.fold.is_none() { Some(self.op) } else { None }
    }

    fn verb(&self) -> &'static str {
        self.operator().map_or("by", Op::word)
    }

    /// Whether indices or counts of elements are kept.
    pub(crate) fn keeps_indices(&self) -> bool {
        self.operator().is_some_and(|op| op.is_index() || op == Op::MeanVar)
    }

    /// Whether indices or counts of elements are kept, or offsets read.
    pub(crate) fn has_indices(&self) -> bool {
        self.keeps_indices() || self.over == Over::Segments
    }

    /// Threads of a block that fold one result together.
    pub(crate) fn group_of_result(&self) -> u32 {
        match self.over {
            Over::All => self.block,
            Over::Rows | Over::Segments => self.group.unwrap_or(WARP),
            Over::Columns | Over::Middle => self.group.unwrap_or_else(|| self.block.min(8)),
        }
    }

    /// Elements of an item: those of 16 bytes for a vector, else 1.
    pub(crate) fn vector(&self) -> u32 {
        if self.float4 { VECTOR_BYTES / self.element.elem().size() } else { 1 }
    }

    /// Elements of an item that belong to one result: of columns a vector has one of each.
    pub(crate) fn vector_of_result(&self) -> u32 {
        match self.over {
            Over::All | Over::Rows | Over::Segments => self.vector(),
            Over::Columns | Over::Middle => 1,
        }
    }

    /// Whether the threads of a block fold one result in the end.
    pub(crate) fn folds_by_blocks(&self) -> bool {
        match self.over {
            // The block folds long segments.
            Over::All | Over::Segments => true,
            Over::Rows => self.group_of_result() == self.block,
            Over::Columns | Over::Middle => false,
        }
    }

    /// In how many launches several blocks fold one result.
    pub fn launch_form(&self) -> LaunchForm {
        match (self.launch, self.beyond_tiles()) {
            (Some(form), _) => form,
            (None, None) => LaunchForm::Tiles,
            (None, Some(_)) => LaunchForm::Passes,
        }
    }

    /// The first key of what is not folded tile by tile.
    pub(crate) fn beyond_tiles(&self) -> Option<&'static str> {
        let is_f32 = |elem: Elem| elem == Elem::F32;
        let beyond = [
            ("fold", self.fold.is_some()),
            ("op", !self.op.keeps_one_number()),
            ("map", self.map.is_some()),
            ("finish", self.finish.is_some()),
            ("type", !is_f32(self.element.elem())),
            ("acc", !is_f32(self.acc_elem())),
            ("result", !is_f32(self.result_elem())),
            ("compensated", self.compensated),
            ("over", self.over != Over::All),
            ("blocks", self.blocks.is_some()),
            ("run", self.run.is_some()),
        ];
        beyond.into_iter().find(|(_, beyond)| *beyond).map(|(key, _)| key)
    }

    /// How many runs so many elements of a result have: none where there is no element. None without `run`.
    pub fn runs(&self, len: u64) -> Option<u64> {
        self.run.filter(|run| *run > 0).map(|run| len.div_ceil(run.into()))
    }

    /// The names of the arrays that are folded together: those of `map`, in its order.
    pub fn inputs(&self) -> Vec<&str> {
        match &self.map {
            Some(map) => map.closure().params().iter().map(|param| &*param.name).collect(),
            None => vec!["input"],
        }
    }

    /// The results, by what messages call them, and what their elements are.
    pub fn results(&self) -> Vec<(&'static str, Elem)> {
        match self.operator() {
            Some(op) if op.is_index() => vec![("output", self.index.elem())],
            Some(op) if op.is_truth() => vec![("output", Elem::U8)],
            Some(Op::MeanVar) if self.finish.is_none() => {
                vec![("mean", self.result_elem()), ("var", self.result_elem())]
            }
            _ => vec![("output", self.result_elem())],
        }
    }

    /// What elements are folded in.
    pub fn acc_elem(&self) -> Elem {
        self.acc.map_or_else(
            || match self.element {
                DataType::F16 | DataType::Bf16 => Elem::F32,
                DataType::I8 => Elem::I32,
                DataType::U8 => Elem::U32,
                own => own.elem(),
            },
            AccType::elem,
        )
    }

    /// What a result is, where it is a number.
    fn result_elem(&self) -> Elem {
        self.result.map_or_else(|| self.acc_elem(), ResultType::elem)
    }
}
