//! Checks of grouped GEMMs, which `batch: grouped` computes.

use crate::error::SpecError;
use crate::plan::Faults;
use crate::spec::{Along, Batch, Bounds, Convert, Epilogue, EpilogueInput, SgemmSpec, Sharing};

/// Rejects keys that do not compose with groups of rows.
pub(super) fn check(spec: &SgemmSpec, faults: &mut Faults) {
    if spec.batch != Some(Batch::Grouped) {
        return;
    }
    if spec.tile.is_none() {
        faults.0.push(without_tile());
    }
    if spec.layout.transposes_a() {
        faults.0.push(column_major(spec));
    }
    match spec.sharing() {
        Sharing::Whole => {}
        Sharing::Stream => faults.0.push(shared_sums("stream_k")),
        Sharing::Partitions(_) | Sharing::AutoPartitions => faults.0.push(shared_sums("split_k")),
    }
    if spec.products > 1 {
        faults.0.push(several_products());
    }
    if spec.bounds == Bounds::Aligned {
        faults.0.push(aligned());
    }
    if spec.is_wgmma() && !spec.reads_matrices() {
        faults.0.push(converted("mma", "mma: wgmma"));
    } else if spec.converts_matrices() {
        faults.0.push(converted("convert", &format!("convert: {}", Convert::Matrix)));
    }
    if spec.epilogue.as_ref().is_some_and(Epilogue::folds_rows) {
        faults.0.push(folded_rows());
    }
    for (param, input) in spec.epilogue.iter().flat_map(Epilogue::named) {
        if input == EpilogueInput::Operand(Along::BatchM) {
            let name = &param.name;
            let message = format!(
                "each row of C is in one group, so `{param}` has one element for each row; write \
                 `{name}[m]`"
            );
            faults.0.push(SpecError::at_tokens("epilogue", param.at, message));
        }
    }
}

fn without_tile() -> SpecError {
    SpecError::at_value(
        &["batch", "tile"],
        "`batch: grouped` needs `tile`: its blocks compute tiles of rows of one group; add a tile, \
         such as `tile: 64x64x8, thread: 8x4`"
            .into(),
    )
}

fn column_major(spec: &SgemmSpec) -> SpecError {
    let rest = if spec.layout.transposes_b() { "nt" } else { "nn" };
    SpecError::at_value(
        &["layout", "batch"],
        format!(
            "`layout: {}` has a column-major A, and `batch: grouped` needs a row-major A, because \
             a group may begin at any row; use `layout: {rest}`",
            spec.layout
        ),
    )
}

fn shared_sums(key: &'static str) -> SpecError {
    SpecError::at_key(
        &[key, "batch"],
        format!(
            "`{key}` divides the sums of a tile among blocks, and `batch: grouped` knows its tiles \
             only on the device; leave `{key}` out"
        ),
    )
}

fn several_products() -> SpecError {
    SpecError::at_key(
        &["products", "batch"],
        "`products` computes several GEMMs of one size in a block, and groups have different \
         numbers of rows; leave `products` out"
            .into(),
    )
}

fn aligned() -> SpecError {
    SpecError::at_value(
        &["bounds", "batch"],
        "`bounds: aligned` needs tiles of whole rows, and a group may have any number of rows; \
         leave `bounds` out"
            .into(),
    )
}

fn converted(key: &'static str, entry: &str) -> SpecError {
    SpecError::at_value(
        &[key, "batch"],
        format!(
            "`{entry}` multiplies copies of A and B that an earlier launch converts, and `batch: \
             grouped` has one launch; leave `{key}` out"
        ),
    )
}

fn folded_rows() -> SpecError {
    SpecError::at_value(
        &["epilogue", "batch"],
        "the epilogue folds rows of C by a second launch, and `batch: grouped` has one launch; \
         fold the rows of C with `row_kernel!`"
            .into(),
    )
}
