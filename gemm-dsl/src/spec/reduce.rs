mod acts;
mod types;

pub use types::{AccType, DataType, IndexType, ResultType};

use super::Spec;
use super::expression::{Finish, Fold, Identity, Map};
use super::table::{Follow, derived_name, given_name, spec, words};
use crate::ir::{Elem, VECTOR_BYTES};
use crate::target::arch::WARP;
use acts::{
    ALIGNED, ARGS, COLUMNS, DIMENSIONS, EXTREMA, FOLD, INDICES, MANY, NO_FOLD, NUMBERS, SEVERAL,
    SHARED, SHARED_TREE, SUM, VALUES, WHOLE_BLOCK,
};

words! {
    /// Operator of a reduction. Its identity replaces missing elements.
    Op {
        /// `a + b`, identity −0 for floating-point numbers, else 0: adding −0 leaves every value
        /// unchanged, but −0 + +0 is +0.
        Sum = "sum",
        /// `a * b`, identity 1.
        Prod = "prod",
        /// IEEE 754-2019 maximum, identity −∞ or the least integer: NaN wins, and −0 is below +0.
        Max = "max",
        /// IEEE 754-2019 minimum, identity +∞ or the greatest integer: NaN wins, and −0 is below
        /// +0.
        Min = "min",
        /// Index of the greatest element, or of the first NaN if there is one. Of equal elements
        /// the first is taken, and zeros of both signs are equal. A row, column or segment without
        /// elements gives the greatest index of its type. For a whole array without elements, the
        /// launch returns an error.
        Argmax = "argmax",
        /// Index of the smallest element, with the rules of `argmax`.
        Argmin = "argmin",
        /// A `u8`: 1 if some element is not 0, else 0. With a `map`, 1 if the `map` is true for
        /// some element.
        Any = "any",
        /// A `u8`: 1 if no element is 0, else 0. With a `map`, 1 if the `map` is true for all
        /// elements.
        All = "all",
        /// Mean and population variance: two results in one pass (Welford, Chan). Each result is
        /// right if it is in range, even if intermediate values overflow. Both are NaN without
        /// elements or with an infinite element. The mean of zeros is +0, also if all of them are
        /// −0.
        MeanVar = "mean_var",
        /// Logarithm of the sum of exponentials, in one pass and without overflow. Without elements
        /// it is −∞.
        Logsumexp = "logsumexp",
    }
}

impl Op {
    /// Returns true if the folded state is a single number.
    pub fn keeps_one_number(self) -> bool {
        matches!(self, Op::Sum | Op::Prod | Op::Max | Op::Min)
    }

    /// Returns true if the result is the index of an input element.
    pub fn is_index(self) -> bool {
        matches!(self, Op::Argmax | Op::Argmin)
    }

    /// Returns true if the result is a boolean.
    pub fn is_truth(self) -> bool {
        matches!(self, Op::Any | Op::All)
    }
}

words! {
    /// Order in which the threads of a block combine their values in shared memory.
    Tree {
        /// The distance between partners halves at each step; the first threads are active.
        Sequential = "sequential",
        /// The distance doubles at each step; the first threads are active and access strided
        /// elements.
        Interleaved = "interleaved",
        /// The distance doubles at each step. Every second thread is active, then every fourth, and
        /// so on, so warps diverge.
        InterleavedDivergent = "interleaved_divergent",
    }
}

words! {
    /// Elements that are folded into one result. An array has the shape (outer, length, inner), and
    /// `inner` is the contiguous axis.
    Over {
        /// All elements of an array.
        All = "all",
        /// Each row of a matrix, (outer, length).
        Rows = "rows",
        /// Each column of a matrix, (length, inner).
        Columns = "columns",
        /// Each column of each matrix of a batch, (outer, length, inner).
        Middle = "middle",
        /// Each segment of an array. An array of offsets gives the bounds of the segments. An empty
        /// segment gives the result of a fold without elements.
        Segments = "segments",
    }
}

words! {
    /// Method by which the values of several blocks are folded into one result. For the same spec,
    /// `passes` and `once` give the same bits.
    LaunchForm {
        /// As many launches as it takes until one value is left. Each block folds one tile of
        /// elements, and the next launch folds the blocks' values. Only for whole arrays of `f32`
        /// with `sum`, `prod`, `max` or `min`, and accumulators and results in `f32`.
        Tiles = "tiles",
        /// Two launches: at most `blocks` blocks fold the elements, then a second launch folds the
        /// blocks' values.
        Passes = "passes",
        /// One launch: each block stores its value and takes a ticket. The block with the last
        /// ticket folds all values, by a fixed tree over the block numbers.
        Once = "once",
    }
}

spec! {
    /// Reduction of arrays: each result is folded from many elements.
    ReduceSpec for "reduce_kernel", functions "reduce_" {
        /// Operator that folds the elements.
        op(Op): Op = Op::Sum, "", on NO_FOLD, what(Results);
        /// Expression that folds two values; it replaces `op`. It should be associative and
        /// commutative, because spec and shape determine the grouping and order of elements.
        fold(Fold): Option<Fold> = None::<Fold>, "fold_{}", what(Results);
        /// Identity of `fold`: the value that leaves any other unchanged. It replaces missing
        /// elements. NaN is the identity only of a fold that ignores NaN.
        identity(Identity): Option<Identity> = None::<Identity>, "identity_{}", on FOLD, what;
        /// Expression of one element from each of one to four arrays. Its values are folded. It may
        /// use two integers: the element's index `i` and the number of elements `len`. A parameter
        /// with a type, after the arrays, is a number that the launch passes, as in
        /// `|x, mu: f32| (x - mu) * (x - mu)`.
        map(Map): Option<Map> = None::<Map>, "map_{}", what(Inputs);
        /// Expression that computes the result from the folded value, or from both values of
        /// `mean_var`. An optional next parameter is the number of elements, in the accumulator
        /// type. Parameters with a type are numbers that the launch passes, as in
        /// `|s, len, eps: f32| 1.0 / sqrt(s / len + eps)`. A number with the name of a number of
        /// `map` is the same number.
        finish(Finish): Option<Finish> = None::<Finish>, "finish_{}", on NUMBERS,
            what(Inputs, Results);
        /// Type of the elements in memory.
        element(DataType): DataType = DataType::F32, "{}", called "type", what(Inputs, Results);
        /// Accumulator type. Without the key: `f32` for `f16` and `bf16`, `i32` for `i8`, `u32` for
        /// `u8`, else the element type. Integer sums wrap.
        acc(AccType): Option<AccType> = None::<AccType>, "acc_{}",
            what(Results) as ReduceSpec::acc_elem;
        /// Also returns the greatest or smallest element itself: two results, the value and its
        /// index. The value is that of `map` if there is one. For elements that are equal, it is
        /// the first one, so its sign of zero and its NaN are those of the element at the index.
        with_value(bool): bool = false, "with_value", on ARGS, what(Results);
        /// Returns the k greatest or smallest elements instead of one, k from 1 to 64, in order:
        /// the values for `max` and `min`, the indices for `argmax` and `argmin`, both under
        /// `with_value`. The results of an array are a vector of k elements, those of a matrix a
        /// packed matrix (rows, k). Equal elements are in the order of their indices. NaNs come
        /// first, and `max` and `min` distinguish the zeros as they do without the key. A row or an
        /// array has at least k elements and, with 32-bit indices, fewer than 2^31. Each warp keeps
        /// its best elements in registers, so `group` is a warp or the whole block. Use the whole
        /// block and `blocks` for long rows.
        topk(u32): Option<u32> = None::<u32>, "top{}",
            least 1 "a selection has at least one element", on EXTREMA, what;
        /// Type of a result. Without the key: the accumulator type.
        result(ResultType): Option<ResultType> = None::<ResultType>, "result_{}", on VALUES,
            what(Results) as ReduceSpec::result_elem;
        /// Type of indices, of counts and of the offsets of segments.
        index(IndexType): IndexType = IndexType::U32, "index_{}", on INDICES, what(Results);
        /// Also sums the rounding errors (Neumaier). With d additions per element and unit roundoff
        /// u, the remaining error is one rounding of the result plus about 2 d² u² times the sum of
        /// magnitudes. It costs a second accumulator and several additions per element.
        compensated(bool): bool = false, "compensated", on SUM, what;
        /// Elements that are folded into one result.
        over(Over): Over = Over::All, "{}", what;
        /// Accepts padding between rows, as in a submatrix: the launch takes row strides.
        pitched(bool): bool = false, "pitched", on DIMENSIONS, what;
        /// Number of threads of a block: a power of two from 32 to 1024.
        block(u32): u32 = 256, "";
        /// Number of threads that fold one result together. For rows and segments: a power of two
        /// up to 32, or the whole block; default 32. For columns: a power of two up to the size of
        /// the block; default 8. A block then covers `block / group` adjacent columns, or under
        /// `float4` as many vectors of columns. The threads of a group divide the elements, so a
        /// small group makes long serial sums: with one thread, an `f32` sum of ones stops at
        /// 2^24. Use a larger group, `blocks`, `compensated` or `acc: f64` for long columns.
        group(u32): Option<u32> = None::<u32>, "group{}", least 1 "a result needs at least one \
                                                                   thread", on MANY;
        /// Order in which a block combines its values in shared memory.
        tree(Tree): Tree = Tree::Sequential, "{}", on SHARED_TREE;
        /// Number of elements, or vectors under `float4`, that a thread folds per round of loads.
        /// Consecutive elements go to consecutive threads of the group. More items keep more loads
        /// in flight and cost registers.
        items(u32): u32 = 1, "items{}", least 1 "a thread folds at least one item";
        /// Combines the values of the last 32 active threads by unrolled code without block
        /// barriers.
        unroll_last_warp(bool): bool = false, "unroll_last_warp", on WHOLE_BLOCK;
        /// Combines values by warp shuffles, first in each warp and then across warps, instead of
        /// the shared-memory tree.
        shuffle(bool): bool = false, "shuffle", on WHOLE_BLOCK;
        /// Loads vectors of 16 bytes, such as a `float4`, instead of single elements. For columns,
        /// a thread then folds a vector of neighbouring columns, and stores their results as
        /// vectors.
        float4(bool): bool = false, "float4", on ALIGNED;
        /// Number of columns that a thread folds, `block / group` columns apart. Only for columns
        /// without `float4`.
        coarsen(u32): u32 = 1, "coarsen{}", least 1 "a thread folds at least one column",
            on COLUMNS;
        /// Maximum number of blocks that fold one result; each block loops until no elements are
        /// left. Without the key: 1024 for a whole array, or 256 under `topk`; else 1. A fixed tree
        /// over the block numbers folds the blocks' values.
        blocks(u32): Option<u32> = None::<u32>, "blocks{}", least 1 "a result needs at least one \
                                                                     block", on SHARED;
        /// Number of consecutive elements of a result that a block folds: a multiple of a block's
        /// elements per round. It replaces `blocks` and determines the number of blocks. A fixed
        /// tree over the run numbers folds the runs' values. Several devices can therefore fold
        /// whole runs separately, and the result has the same bits as on one device: see
        /// `gemm_runtime::guide::determinism`.
        run(u32): Option<u32> = None::<u32>, "run{}", least 1 "a run has at least one element",
            on SHARED;
        /// Method by which the values of several blocks are folded into one result. Default:
        /// `tiles` if `sum`, `prod`, `max` or `min` folds a whole array of `f32`, `acc` and
        /// `result` are `f32`, and none of `fold`, `map`, `finish`, `compensated`, `topk`, `blocks`
        /// and `run` is given. Otherwise `passes`.
        launch(LaunchForm): Option<LaunchForm> = None::<LaunchForm>, "{}", on SEVERAL;
        /// Minimum number of resident blocks per SM: `__launch_bounds__(threads, n)`. It limits the
        /// registers of a thread. With `1`, one block may use all registers of an SM. Without the
        /// key, the compiler chooses.
        blocks_per_sm(u32): Option<u32> = None::<u32>, "blocks_per_sm{}",
            least 1 "at least one block must fit";
    }
}

impl Follow for ReduceSpec {}

impl ReduceSpec {
    /// Returns the kernel's name: `reduce_` with the user's name, or a name derived from the spec
    /// such as `reduce_sum_256_items4_shuffle`.
    pub fn kernel_name(&self) -> String {
        match &self.name {
            Some(name) => given_name(<Self as Spec>::PREFIX, name),
            None => derived_name(format!("reduce_{}_{}", self.verb(), self.block), self),
        }
    }

    /// Returns the operator; `None` if the spec has a `fold`.
    pub fn operator(&self) -> Option<Op> {
        if self.fold.is_none() { Some(self.op) } else { None }
    }

    /// Returns true if each result is a pair: the greatest or smallest value, and its index.
    pub(crate) fn has_value_and_index(&self) -> bool {
        self.with_value && self.operator().is_some_and(Op::is_index)
    }

    fn verb(&self) -> &'static str {
        self.operator().map_or("by", Op::word)
    }

    /// Returns true if the folded state holds indices or counts of elements.
    pub(crate) fn keeps_indices(&self) -> bool {
        self.operator().is_some_and(|op| op.is_index() || op == Op::MeanVar)
    }

    /// Returns true if the folded state holds indices or counts, or if the kernel reads segment
    /// offsets.
    pub(crate) fn has_indices(&self) -> bool {
        self.keeps_indices() || self.over == Over::Segments
    }

    /// Returns the number of threads of a block that fold one result together.
    pub(crate) fn group_of_result(&self) -> u32 {
        match self.over {
            Over::All => self.block,
            Over::Rows | Over::Segments => self.group.unwrap_or(WARP),
            Over::Columns | Over::Middle => self.group.unwrap_or_else(|| self.block.min(8)),
        }
    }

    /// Returns the number of elements of an item: 16 bytes of elements for a vector, else 1.
    pub(crate) fn vector(&self) -> u32 {
        if self.float4 { VECTOR_BYTES / self.element.elem().size() } else { 1 }
    }

    /// Returns the number of elements of an item that belong to one result: 1 for columns, where a
    /// vector spans several results.
    pub(crate) fn vector_of_result(&self) -> u32 {
        match self.over {
            Over::All | Over::Rows | Over::Segments => self.vector(),
            Over::Columns | Over::Middle => 1,
        }
    }

    /// Returns true if all threads of a block fold one result together.
    pub(crate) fn folds_by_blocks(&self) -> bool {
        match self.over {
            // A whole block folds the long segments.
            Over::All | Over::Segments => true,
            Over::Rows => self.group_of_result() == self.block,
            Over::Columns | Over::Middle => false,
        }
    }

    /// Returns the launch form: the key `launch`, or its default.
    pub fn launch_form(&self) -> LaunchForm {
        match (self.launch, self.beyond_tiles()) {
            (Some(form), _) => form,
            (None, None) => LaunchForm::Tiles,
            (None, Some(_)) => LaunchForm::Passes,
        }
    }

    /// Returns the first key that rules out `launch: tiles`, if any.
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
            ("topk", self.topk.is_some()),
            ("over", self.over != Over::All),
            ("blocks", self.blocks.is_some()),
            ("run", self.run.is_some()),
        ];
        beyond.into_iter().find(|(_, beyond)| *beyond).map(|(key, _)| key)
    }

    /// Returns the number of runs of a result with `len` elements, which is 0 for an empty array.
    /// `None` if the spec has no `run`.
    pub fn runs(&self, len: u64) -> Option<u64> {
        self.run.filter(|run| *run > 0).map(|run| len.div_ceil(run.into()))
    }

    /// Returns the names of the arrays that are folded together: the parameters of `map`, in order.
    pub fn inputs(&self) -> Vec<&str> {
        match &self.map {
            Some(map) => map.closure().value_params().iter().map(|param| &*param.name).collect(),
            None => vec!["input"],
        }
    }

    /// Returns the numbers that a launch passes, with their types: those of `map`, then those of
    /// `finish` that `map` does not have.
    pub fn numbers(&self) -> Vec<(&str, Elem)> {
        self.numbers_of(true, true)
    }

    /// Returns the numbers of `map`, of `finish`, or of both.
    pub(crate) fn numbers_of(&self, of_map: bool, of_finish: bool) -> Vec<(&str, Elem)> {
        let map = self.map.iter().filter(|_| of_map);
        let map = map.flat_map(|map| map.closure().number_params());
        let finish = self.finish.iter().filter(|_| of_finish);
        let finish = finish.flat_map(|finish| finish.closure().number_params());
        let mut numbers: Vec<(&str, Elem)> = Vec::new();
        for (number, elem) in map.chain(finish) {
            if numbers.iter().all(|(name, _)| *name != number.name) {
                numbers.push((&number.name, elem));
            }
        }
        numbers
    }

    /// Returns the names of the results, as used in messages, and their element types.
    pub fn results(&self) -> Vec<(&'static str, Elem)> {
        match self.operator() {
            _ if self.has_value_and_index() => {
                vec![("value", self.result_elem()), ("index", self.index.elem())]
            }
            Some(op) if op.is_index() => vec![("output", self.index.elem())],
            Some(op) if op.is_truth() => vec![("output", Elem::U8)],
            Some(Op::MeanVar) if self.finish.is_none() => {
                vec![("mean", self.result_elem()), ("var", self.result_elem())]
            }
            _ => vec![("output", self.result_elem())],
        }
    }

    pub fn acc_elem(&self) -> Elem {
        self.acc.map_or_else(|| self.element.acc(), AccType::elem)
    }

    /// Returns the element type of a numeric result.
    fn result_elem(&self) -> Elem {
        self.result.map_or_else(|| self.acc_elem(), ResultType::elem)
    }
}
