//! The spec of a scan.

use super::table::{Follow, derived_name, given_name, spec, words};
use super::{AccType, DataType, ResultType, Spec};
use crate::expr::FoldOp;
use crate::ir::Elem;
use crate::spec::table::{ActsOn, Suggestion};
use crate::target::arch::WARP;

words! {
    /// Operator of a scan. Its identity is the first result of an `exclusive` scan.
    ScanOp {
        /// `a + b`, identity −0 for floating-point numbers, else 0.
        Sum = "sum",
        /// `a * b`, identity 1.
        Prod = "prod",
        /// IEEE 754-2019 maximum, identity −∞ or the least integer: NaN wins, and −0 is below +0.
        Max = "max",
        /// IEEE 754-2019 minimum, identity +∞ or the greatest integer: NaN wins, and −0 is below
        /// +0.
        Min = "min",
    }
}

words! {
    /// Elements that are scanned together.
    ScanOver {
        /// All elements of an array. A matrix must have one row.
        All = "all",
        /// Each row of a matrix.
        Rows = "rows",
    }
}

/// Scans of rows.
const ROWS: ActsOn<ScanSpec> = ActsOn {
    includes: |spec| spec.over == ScanOver::Rows,
    rests_on: &["over"],
    because: "all threads of a block scan the array together",
    suggestion: Suggestion::Or("scan each row with `over: rows`"),
};

spec! {
    /// Scan of arrays or rows: each result is folded from an element and all elements before it.
    ScanSpec for "scan_kernel", functions "scan_" {
        /// Operator that folds the elements.
        op(ScanOp): ScanOp = ScanOp::Sum, "", what(Results);
        /// Each result is folded from the elements before it, without the element at its own index.
        /// The first result is the identity of the operator.
        exclusive(bool): bool = false, "exclusive", what;
        /// Type of the elements in memory.
        element(DataType): DataType = DataType::F32, "{}", called "type", what(Inputs, Results);
        /// Accumulator type. Without the key: `f32` for `f16` and `bf16`, `i32` for `i8`, `u32` for
        /// `u8`, else the element type. Integer sums and products wrap.
        acc(AccType): Option<AccType> = None::<AccType>, "acc_{}",
            what(Results) as ScanSpec::acc_elem;
        /// Type of a result. Without the key: the accumulator type.
        result(ResultType): Option<ResultType> = None::<ResultType>, "result_{}",
            what(Results) as ScanSpec::result_elem;
        /// Elements that are scanned together.
        over(ScanOver): ScanOver = ScanOver::All, "{}", what;
        /// Number of threads of a block: a power of two from 32 to 1024.
        block(u32): u32 = 256, "block{}";
        /// Number of threads that scan a row together: a power of two up to 32, or the whole block;
        /// default 32. Use the whole block for long rows.
        group(u32): Option<u32> = None::<u32>, "group{}", least 1 "a row needs at least one thread",
            on ROWS;
        /// Number of items of a thread. An item is a vector of 16 bytes of the elements or of the
        /// results, whichever has more elements. For rows, `block` times `items` is at most 1024;
        /// for an array it is at most 2048, and the items of a block have at most 32 KiB. Default
        /// for rows: 16 elements per thread, at most 4 items. Default for arrays: 24 elements per
        /// thread, at most 6 items. A large `block` lowers both.
        items(u32): Option<u32> = None::<u32>, "items{}",
            least 1 "a thread scans at least one item";
        /// Minimum number of resident blocks per SM: `__launch_bounds__(threads, n)`. Default
        /// for rows: none. Default for arrays with 16-byte accesses: 2048 / `block` if an item has
        /// four values of 4 bytes, else 1536 / `block`; at most 16.
        blocks_per_sm(u32): Option<u32> = None::<u32>, "blocks_per_sm{}",
            least 1 "at least one block must fit";
    }
}

impl ScanOp {
    /// Returns the operator of a fold.
    pub(crate) fn fold(self) -> FoldOp {
        match self {
            Self::Sum => FoldOp::Sum,
            Self::Prod => FoldOp::Prod,
            Self::Max => FoldOp::Max,
            Self::Min => FoldOp::Min,
        }
    }
}

impl Follow for ScanSpec {}

impl ScanSpec {
    /// Returns the kernel's name: `scan_` with the user's name, or a name derived from the spec.
    pub fn kernel_name(&self) -> String {
        match &self.name {
            Some(name) => given_name(<Self as Spec>::PREFIX, name),
            None => derived_name(format!("scan_{}", self.op.word()), self),
        }
    }

    /// Returns the accumulator type.
    pub fn acc_elem(&self) -> Elem {
        self.acc.map_or_else(|| self.element.acc(), AccType::elem)
    }

    /// Returns the element type of the results.
    pub fn result_elem(&self) -> Elem {
        self.result.map_or_else(|| self.acc_elem(), ResultType::elem)
    }

    /// Returns the number of threads of a block that scan a row or the array together.
    pub(crate) fn team(&self) -> u32 {
        match self.over {
            ScanOver::All => self.block,
            ScanOver::Rows => self.group.unwrap_or(WARP),
        }
    }
}
