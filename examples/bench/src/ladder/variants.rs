//! Stages that support several block widths.

use gemm_dsl::stages::{self, Stage};
use gemm_runtime::SgemmSpec;
use gemm_runtime::spec::{Block, Rect, Tile};

/// Returns all stages. If widths are given, a stage that depends on its block width is replaced by
/// one stage for each width.
pub fn stages(widths: &[u32]) -> Vec<Stage<SgemmSpec>> {
    let mut all = Vec::new();
    for stage in stages::sgemm() {
        let sized: Vec<_> = widths.iter().filter_map(|&width| sized(&stage, width)).collect();
        if sized.is_empty() {
            all.push(stage);
        } else {
            all.extend(sized);
        }
    }
    all
}

/// Returns a stage at another block width.
///
/// Returns `None` if the stage does not depend on its width, or does not support this width.
fn sized(stage: &Stage<SgemmSpec>, width: u32) -> Option<Stage<SgemmSpec>> {
    let spec = stage.spec.clone();
    let spec = match stage.name {
        "naive" | "unroll" | "coarsen" => spec.block(Block::new(width, width)),
        "shared_tile" | "padded_prefetch" => spec.tile(Tile::new(width, width, width)),
        // The block has as many columns of threads as rows, and a thread computes several outputs
        // of a row.
        "private_row" => {
            let outputs = spec.thread.n;
            let cols = width.checked_mul(outputs)?;
            spec.tile(Tile::new(width, cols, width)).thread(Rect::new(1, outputs))
        }
        _ => return None,
    };
    spec.plan().ok()?;
    let mut stage = stage.clone();
    stage.spec = spec;
    Some(stage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_widths_it_is_the_catalogue() {
        assert_eq!(stages(&[]), stages::sgemm());
    }

    #[test]
    fn six_stages_have_both_widths() {
        let stages = stages(&[16, 32]);
        assert_eq!(stages.len(), stages::sgemm().len() + 6);
        for stage in &stages {
            assert!(stage.spec.plan().is_ok(), "{}", stage.name);
        }
        let tiles = stages.iter().filter(|stage| stage.name == "private_row");
        let tiles: Vec<String> = tiles.filter_map(|s| Some(s.spec.tile?.to_string())).collect();
        assert_eq!(tiles, ["16x64x16", "32x128x32"]);
    }
}
