//! Checks of GEMMs with `mma: wgmma`.

mod messages;

use super::{LEAST_SLAB, WgmmaDraft, part_of_b, slab};
use crate::error::SpecError;
use crate::ir::{Elem, TensorMap, TensorSwizzle, Wgmma};
use crate::plan::Faults;
use crate::plan::residency::{resident_blocks, resident_threads};
use crate::plan::sgemm::mma;
use crate::plan::sgemm::occupancy::{self, resident_shared};
use crate::plan::sgemm::registers::even_registers;
use crate::plan::sgemm::shared_memory::SharedBytes;
use crate::spec::{Convert, Copies, Epilogue, Pairs, Rect, SgemmSpec, SplitK, Tile};
use crate::target::arch::{BLOCK_THREADS, CLUSTER_BLOCKS, LARGEST};

/// Rejects keys that choose how other kernels stage or divide tiles.
pub(crate) fn acting(spec: &SgemmSpec, faults: &mut Faults) {
    const LIES: &str = "A and B are converted to the layout that the instruction reads";
    const COPIED: &str = "A and B are copied as they were converted";
    const SHARES: &str = "accumulators belong to whole warpgroups";
    let given = [
        ("unroll", spec.unroll.is_some(), "the loop over the K steps of a tile is always unrolled"),
        ("transpose", spec.transpose, LIES),
        ("pad_a", spec.pad_a > 0, LIES),
        ("pad_b", spec.pad_b > 0, LIES),
        ("swizzle", spec.swizzle, LIES),
        ("ldmatrix", spec.ldmatrix, "the instruction reads shared memory itself"),
        ("convert", spec.convert != Convert::Fragment, "whole matrices are converted in any case"),
        ("prefetch", spec.prefetch, COPIED),
        ("double_buffer", spec.double_buffer, COPIED),
        ("spread", spec.spread > 1, COPIED),
        ("slices", spec.slices > 1, SHARES),
        ("products", spec.products > 1, SHARES),
        ("stream_k", spec.stream_k, SHARES),
    ];
    for (key, is_given, because) in given {
        if is_given && faults.sound(&[key]) {
            faults.0.push(messages::beside_wgmma(key, because));
        }
    }
    if spec.copy == Copies::Threads && faults.sound(&["stages"]) {
        faults.require(spec.stages.is_none(), messages::stages_without_boxes);
    }
}

/// Checks the block tile, the warp tile and the cluster, and that instructions divide the tile
/// evenly.
pub(crate) fn of_tile(spec: &SgemmSpec, tile: Tile, faults: &mut Faults) {
    if !faults.sound(&["tile"]) {
        return;
    }
    let most = Wgmma::MOST_COLUMNS;
    let [rows, columns] = if spec.swap_ab { [tile.n, tile.m] } else { [tile.m, tile.n] };
    faults.require(rows.is_multiple_of(Wgmma::ROWS) && rows <= TensorMap::LONGEST, || {
        messages::rows_of_tile(spec, tile, TensorMap::LONGEST)
    });
    faults.require(columns.is_multiple_of(8) && columns <= most, || {
        messages::columns_of_tile(spec, tile, most)
    });
    if let (Some(warp), true) = (spec.warp, faults.sound(&["warp"])) {
        let rows = SgemmSpec::ROWS_OF_WARP;
        let fits = warp.m == rows && warp.n.is_multiple_of(8) && tile.n.is_multiple_of(warp.n);
        faults.require(fits && !spec.swap_ab, || match spec.swap_ab {
            true => messages::swapped("warp", "a warpgroup has all rows of the block tile"),
            false => messages::warp_of_warpgroup(warp, Rect::new(rows, tile.n)),
        });
    }
    if spec.swap_ab && faults.sound(&["swap_ab"]) {
        let folds = spec.epilogue.as_ref().is_some_and(Epilogue::folds_rows);
        let given = [
            ("cluster", spec.cluster > 1, "the blocks of a cluster are adjacent along M"),
            (
                "epilogue",
                folds || spec.pairs() != Pairs::None,
                "a lane has no neighbouring columns of a row",
            ),
        ];
        for (key, is_given, because) in given {
            if is_given && faults.sound(&[key]) {
                faults.0.push(messages::swapped(key, because));
            }
        }
    }
    if spec.cluster > 1 && faults.sound(&["cluster", "tile"]) {
        if spec.cluster > CLUSTER_BLOCKS {
            faults.0.push(messages::blocks_of_cluster(spec.cluster, CLUSTER_BLOCKS));
        } else {
            let whole = tile.n.is_multiple_of(8 * spec.cluster);
            faults.require(whole, || messages::parts_of_cluster(spec.cluster, tile));
        }
        let alone = spec.split_k == SplitK::Partitions(1);
        faults.require(alone, messages::ranges_of_cluster);
    }
    if let (Some(formats), Some(warp)) = (spec.formats(), spec.warp_tile()) {
        let columns = if spec.swap_ab { warp.m } else { warp.n };
        let has_columns = Wgmma::has_columns(formats, columns) || !columns.is_multiple_of(8);
        faults.require(has_columns, || messages::columns_of_integers(spec, columns));
    }
    // The instruction's rows are whole slabs; its columns may not be.
    let reads_columns = match spec.swap_ab {
        false => !spec.layout.transposes_b(),
        true => spec.layout.transposes_a(),
    };
    let reads_columns = reads_columns && spec.reads_matrices() && faults.sound(&["layout"]);
    if let Some(warp) = spec.warp_tile().filter(|_| reads_columns && faults.sound(&["warp"])) {
        let part = if spec.swap_ab { warp.m } else { part_of_b(spec, warp.n) };
        faults.require(slab(part).is_some(), || messages::columns_of_slab(spec, part, LEAST_SLAB));
    }
    let Some([format, _]) = spec.formats() else { return };
    let size = Elem::from_format(format).size();
    let rows: Vec<u32> =
        TensorSwizzle::ALL.iter().filter_map(|s| s.bytes()).map(|bytes| bytes / size).collect();
    faults.require(rows.contains(&tile.k), || messages::row_of_tile(spec.arith, tile, &rows));
    mma::check::steps(spec, tile, faults);
}

/// Checks the resources of a block, and returns the geometry if they suffice.
pub(crate) fn geometry(spec: &SgemmSpec, tile: Tile, faults: &mut Faults) -> Option<WgmmaDraft> {
    resident_blocks(spec.resident_blocks(), faults);
    let keys = ["a", "b", "tile", "warp", "arith", "mma", "copy", "stages", "promote", "producer"];
    if !faults.sound(&keys) {
        return None;
    }
    let sum = SharedBytes::of_spec(spec, tile);
    if !sum.fits() {
        faults.0.push(too_much_shared(spec, tile, &sum));
        return None;
    }
    let draft = WgmmaDraft::new(spec, tile);
    let plan = draft.look();
    let threads = plan.threads();
    if threads > BLOCK_THREADS {
        faults.0.push(messages::threads(tile, plan));
        return None;
    }
    resident_threads(spec.resident_blocks(), threads.into(), faults);
    resident_shared(spec, &sum, faults);
    if faults.sound(&["blocks_per_sm"]) {
        let blocks = spec.resident_blocks();
        let even = even_registers(threads.into(), blocks);
        let available = plan.registers().map_or(even, |[_, of_sums]| of_sums);
        let needed = plan.registers_of_thread();
        faults.require(needed <= available, || messages::registers(plan, available, blocks));
    }
    Some(draft)
}

fn too_much_shared(spec: &SgemmSpec, tile: Tile, sum: &SharedBytes) -> SpecError {
    let single = SharedBytes::of_spec(&SgemmSpec { stages: None, ..spec.clone() }, tile);
    let most = u128::from(LARGEST.shared_per_block) / single.total().max(1);
    let (guilty, remedy) = match (spec.stages, most) {
        (Some(_), 2..) => ("stages", format!("use `stages: {most}` or less, or a smaller tile")),
        (Some(_), 1) => ("stages", "leave `stages` out, or use a smaller tile".to_owned()),
        _ => ("tile", "use a smaller tile".to_owned()),
    };
    let mut keys = vec![guilty];
    keys.extend(["tile", "stages", "arith"].into_iter().filter(|key| *key != guilty));
    occupancy::messages::shared_memory(spec, &keys, sum, &remedy)
}
