//! Tables of kernels, read from a source.

use gemm_dsl::SpecErrors;
use gemm_dsl::spec::SgemmSpec;
use gemm_dsl::tables::KernelTable;

/// The rows of a source that has one `sgemm_table!`, or that is nothing but rows.
pub fn rows_of(source: &str) -> &str {
    let Some((_, inside)) = source.split_once("sgemm_table! {") else { return source };
    inside.rsplit_once('}').map_or(inside, |(rows, _)| rows)
}

/// Reads a table, as the macro does.
///
/// # Errors
/// Its faults.
pub fn read(text: &str) -> Result<KernelTable<SgemmSpec>, String> {
    text.parse().map_err(|faults: SpecErrors| faults.to_string())
}
