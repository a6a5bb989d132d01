//! The spec of a reduction.

use super::expression::{Finish, Fold, Identity, Map};
use super::table::{ActsOn, derived_name, given_name, spec, words};
use crate::ir::Elem;

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
        /// Two results, the mean and the variance (of the whole population), in one reading (Welford, Chan): NaN of no elements, and where one is infinite.
        MeanVar = "mean_var",
        /// The logarithm of the sum of exponentials, in one reading, without overflow: −∞ of no elements.
        Logsumexp = "logsumexp",
    }
}

impl Op {
    /// The value of `f32` that changes no other where it is folded with one; none where what is folded
    /// is more than a value.
    pub fn identity(self) -> Option<f32> {
        match self {
            Op::Sum => Some(-0.0),
            Op::Prod => Some(1.0),
            Op::Max => Some(f32::NEG_INFINITY),
            Op::Min => Some(f32::INFINITY),
            Op::Argmax | Op::Argmin | Op::Any | Op::All | Op::MeanVar | Op::Logsumexp => None,
        }
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
    /// What the elements of an array are.
    DataType {
        /// IEEE binary32.
        F32 = "f32",
        /// IEEE binary64.
        F64 = "f64",
        /// IEEE binary16; folded in another type.
        F16 = "f16",
        /// The upper half of a binary32; folded in another type.
        Bf16 = "bf16",
        /// A signed byte; folded in another type.
        I8 = "i8",
        /// An unsigned byte; folded in another type.
        U8 = "u8",
        /// A signed 32-bit integer.
        I32 = "i32",
        /// An unsigned 32-bit integer.
        U32 = "u32",
        /// A signed 64-bit integer.
        I64 = "i64",
        /// An unsigned 64-bit integer.
        U64 = "u64",
    }
}

impl DataType {
    /// The element type of the IR.
    pub fn elem(self) -> Elem {
        match self {
            DataType::F32 => Elem::F32,
            DataType::F64 => Elem::F64,
            DataType::F16 => Elem::F16,
            DataType::Bf16 => Elem::Bf16,
            DataType::I8 => Elem::I8,
            DataType::U8 => Elem::U8,
            DataType::I32 => Elem::I32,
            DataType::U32 => Elem::U32,
            DataType::I64 => Elem::I64,
            DataType::U64 => Elem::U64,
        }
    }
}

words! {
    /// The type of indices and lengths.
    IndexType {
        /// Up to 2^32 − 1 elements for one result.
        U32 = "u32",
        /// As many as there may be.
        U64 = "u64",
    }
}

impl IndexType {
    /// The element type of the IR.
    pub fn elem(self) -> Elem {
        match self {
            IndexType::U32 => Elem::U32,
            IndexType::U64 => Elem::U64,
        }
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
    /// In how many launches several blocks fold what becomes one result.
    LaunchForm {
        /// One launch folds elements, others what the blocks before have left.
        Passes = "passes",
        /// One: each block takes a ticket when it has left its part, and the one with the last folds all parts, in the order of the blocks.
        Once = "once",
    }
}

/// Reductions whose blocks combine their values in shared memory.
const SHARED_TREE: ActsOn<ReduceSpec> = ActsOn {
    includes: |spec| !spec.shuffle,
    key: "shuffle",
    because: "`shuffle` replaces the shared-memory tree",
    remedy: "leave one of them out",
};

/// Reductions that have an operator of ours.
const NO_FOLD: ActsOn<ReduceSpec> = ActsOn {
    includes: |spec| spec.fold.is_none(),
    key: "fold",
    because: "`fold` says what is made of two values",
    remedy: "leave one of them out",
};

/// Reductions with a fold of the user's.
const FOLD: ActsOn<ReduceSpec> = ActsOn {
    includes: |spec| spec.fold.is_some(),
    key: "fold",
    because: "the operators of `op` have identities of their own",
    remedy: "leave it out, or write a `fold`",
};

/// Reductions whose results are numbers.
const NUMBERS: ActsOn<ReduceSpec> = ActsOn {
    includes: |spec| !spec.operator().is_some_and(|op| op.is_index() || op.is_truth()),
    key: "op",
    because: "its result is an index or a truth value",
    remedy: "leave it out",
};

/// Reductions that keep indices or counts of elements.
const INDICES: ActsOn<ReduceSpec> = ActsOn {
    includes: ReduceSpec::has_indices,
    key: "op",
    because: "it keeps neither indices nor counts of elements",
    remedy: "leave it out",
};

const SUM: ActsOn<ReduceSpec> = ActsOn {
    includes: |spec| spec.operator() == Some(Op::Sum),
    key: "op",
    because: "it is the rounding of sums that is made good",
    remedy: "leave it out",
};

/// Reductions with many results.
const MANY: ActsOn<ReduceSpec> = ActsOn {
    includes: |spec| spec.over != Over::All,
    key: "over",
    because: "all threads fold the one result",
    remedy: "leave it out, or say what is folded by `over`",
};

/// Reductions of tensors with more than one dimension.
const DIMENSIONS: ActsOn<ReduceSpec> = ActsOn {
    includes: |spec| matches!(spec.over, Over::Rows | Over::Columns | Over::Middle),
    key: "over",
    because: "there are no rows that may lie apart",
    remedy: "leave it out",
};

/// Reductions of which several blocks may share a result.
const SHARED: ActsOn<ReduceSpec> = ActsOn {
    includes: |spec| spec.over != Over::Segments,
    key: "over",
    because: "the length of a segment is not known when it is launched",
    remedy: "leave it out",
};

/// Reductions of which several blocks do.
const SEVERAL: ActsOn<ReduceSpec> = ActsOn {
    includes: |spec| spec.blocks.map_or(spec.over == Over::All, |blocks| blocks > 1),
    key: "over",
    because: "one block folds a result, so that there is one launch anyway",
    remedy: "leave it out, or add `blocks: 2` or more",
};

/// Reductions whose threads may read vectors.
const ALIGNED: ActsOn<ReduceSpec> = ActsOn {
    includes: |spec| spec.over != Over::Segments,
    key: "over",
    because: "a segment begins anywhere",
    remedy: "leave it out",
};

/// Reductions whose threads fold columns one by one.
const COLUMNS: ActsOn<ReduceSpec> = ActsOn {
    includes: |spec| matches!(spec.over, Over::Columns | Over::Middle) && !spec.float4,
    key: "over",
    because: "only of columns that are not read by vectors a thread folds several that lie apart",
    remedy: "leave it out",
};

/// Reductions whose block folds one result in the end.
const WHOLE_BLOCK: ActsOn<ReduceSpec> = ActsOn {
    includes: ReduceSpec::folds_by_blocks,
    key: "over",
    because: "no block folds one result: a warp, or a part of one, shuffles, and columns are folded in a tree",
    remedy: "leave it out",
};

spec! {
    /// A reduction of arrays: each result is made of many elements.
    ReduceSpec for "reduce_kernel" {
        /// What is made of the elements.
        op(Op): Op = Op::Sum, "", on NO_FOLD;
        /// What is made of two values, in place of an operator. It should be associative, and indifferent to the order: how the elements are grouped is for the spec and the shape to say, and a result may depend on it.
        fold(Fold): Option<Fold> = None::<Fold>, "fold_{}";
        /// The value of `fold` that changes no other: it stands for missing elements.
        identity(Identity): Option<Identity> = None::<Identity>, "identity_{}", on FOLD;
        /// What is folded: an expression of an element of each of one to four arrays, of its index `i` and of the number `len` of elements.
        map(Map): Option<Map> = None::<Map>, "map_{}";
        /// What the result is made of: an expression of the folded value, or the two of `mean_var`, and of the number of elements where it is named behind.
        finish(Finish): Option<Finish> = None::<Finish>, "finish_{}", on NUMBERS;
        /// What the elements are.
        element(DataType): DataType = DataType::F32, "{}", called "type";
        /// What they are folded in. Without it, elements that are only stored in `f32`, `i32` or `u32`, others in their own type; sums of integers wrap.
        acc(DataType): Option<DataType> = None::<DataType>, "acc_{}";
        /// What a result is; without it what was folded in.
        result(DataType): Option<DataType> = None::<DataType>, "result_{}", on NUMBERS;
        /// The type of indices, of counts and of the offsets of segments.
        index(IndexType): IndexType = IndexType::U32, "index_{}", on INDICES;
        /// Whether the rounding errors of a sum are summed too (Neumaier): what is left of them does not grow with the number of elements.
        compensated(bool): bool = false, "compensated", on SUM;
        /// What is folded into one result.
        over(Over): Over = Over::All, "{}";
        /// Whether rows may lie apart, as those of a part of a matrix: strides come with the launch.
        pitched(bool): bool = false, "pitched", on DIMENSIONS;
        /// Threads of a block: a power of two from 32 to 1024.
        block(u32): u32 = 256, "";
        /// Threads that fold one result together: a power of two up to 32, or the whole block, of a row or a segment (32 without it); of columns, up to the block, which has `block / group` threads for neighbours (8 without it).
        group(u32): Option<u32> = None::<u32>, "group{}", least 1 "a result takes a thread", on MANY;
        /// How a block combines its values.
        tree(Tree): Tree = Tree::Sequential, "{}", on SHARED_TREE;
        /// Items that a thread folds while loading, a block apart.
        items(u32): u32 = 1, "items{}", least 1 "a thread takes in at least one item";
        /// Whether the last 32 threads finish unrolled, without block barriers.
        unroll_last_warp(bool): bool = false, "unroll_last_warp", on WHOLE_BLOCK;
        /// Whether registers are shuffled in a warp, then across warps, in place of the tree.
        shuffle(bool): bool = false, "shuffle", on WHOLE_BLOCK;
        /// Whether an item is a vector of 16 bytes, as `float4` is, instead of one element. Of columns a thread then folds as many neighbours.
        float4(bool): bool = false, "float4", on ALIGNED;
        /// Columns that a thread folds, as far apart as the block is wide.
        coarsen(u32): u32 = 1, "coarsen{}", least 1 "a thread folds at least one column", on COLUMNS;
        /// The most blocks that fold one result: each goes on until no elements are left, and what they leave is folded in the order of the blocks.
        blocks(u32): Option<u32> = None::<u32>, "blocks{}", least 1 "a result takes a block", on SHARED;
        /// In how many launches several blocks fold one result.
        launch(LaunchForm): LaunchForm = LaunchForm::Passes, "{}", on SEVERAL;
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

    /// Whether indices or counts of elements are kept, or offsets read.
    pub(crate) fn has_indices(&self) -> bool {
        let kept = self.operator().is_some_and(|op| op.is_index() || op == Op::MeanVar);
        kept || self.over == Over::Segments
    }

    /// Whether the threads of a block fold one result in the end.
    pub(crate) fn folds_by_blocks(&self) -> bool {
        match self.over {
            // The block folds long segments.
            Over::All | Over::Segments => true,
            Over::Rows => self.group == Some(self.block),
            Over::Columns | Over::Middle => false,
        }
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
            DataType::elem,
        )
    }

    /// What a result is, where it is a number.
    fn result_elem(&self) -> Elem {
        self.result.map_or_else(|| self.acc_elem(), DataType::elem)
    }
}
