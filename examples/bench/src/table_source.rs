//! Parser for kernel tables in source files.

use gemm_dsl::SpecErrors;
use gemm_dsl::spec::SgemmSpec;
use gemm_dsl::tables::KernelTable;

/// Returns the rules of the first `sgemm_table!` in a source. A source without this macro consists
/// of rules only.
pub fn rows_of(source: &str) -> &str {
    let Some((_, inside)) = source.split_once("sgemm_table! {") else { return source };
    inside.rsplit_once('}').map_or(inside, |(rows, _)| rows)
}

/// Parses a table as the macro does.
///
/// # Errors
/// Returns a message that lists the faults.
pub fn read(text: &str) -> Result<KernelTable<SgemmSpec>, String> {
    text.parse().map_err(|faults: SpecErrors| faults.to_string())
}
