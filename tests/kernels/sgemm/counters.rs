//! Counters of the GEMM ladder equal values that are calculated by hand.

use crate::planted_faults::{kernel, launch_product};
use gemm_dsl::spec::{Arith, SgemmSpec, SplitK};
use gemm_dsl::stages::{self, Stage};
use gemm_oracle::product::Size;
use gemm_runtime::{Device, Sgemm};
use gemm_sim::Counters;
use libtest_mimic::Trial;

/// 128 is divisible by every tile along M and N of the stages up to 20, and 64 by every K tile.
const SIZE: Size = Size::new(128, 128, 64);
/// Multiply-adds of the GEMM.
const FMAS: u64 = 128 * 128 * 64;

fn stage(index: u32) -> SgemmSpec {
    let stage = stages::sgemm().into_iter().find(|stage| stage.index == index);
    stage.expect("a stage of the catalogue").spec
}

fn counters(spec: &SgemmSpec) -> Counters {
    let counters = launch_product(&kernel(spec), SIZE).expect("a launch");
    assert_eq!(counters.fmas, FMAS, "{spec}");
    counters
}

fn every_stage_multiplies_each_pair_once() {
    // Stages that are launched only on packed A, B and C.
    let alone = |stage: &&Stage<SgemmSpec>| {
        let shared = stage.spec.split_k != SplitK::Partitions(1) || stage.spec.stream_k;
        let of_one = !stage.spec.pitched && stage.spec.batch.is_none();
        of_one && !shared && stage.spec.operands().is_empty()
    };
    for stage in stages::sgemm().iter().filter(alone) {
        let size = if stage.index >= 22 { Size::new(256, 256, 64) } else { SIZE };
        let counters = match stage.spec.converts_matrices() {
            false => launch_product(&kernel(&stage.spec), size).expect("a launch"),
            true => behind_splits(&stage.spec, size).expect("a launch"),
        };
        // Extents that are multiples of the matrix instruction.
        let pairs = (size.m * size.n * size.k) as u64;
        let (arith, name) = (stage.spec.arith, &stage.name);
        let on_tensor_cores = 2 * pairs * arith.products().len() as u64;
        let fmas = match arith {
            Arith::F32 => pairs,
            _ => 0,
        };
        assert_eq!((counters.fmas, counters.mma_flops), (fmas, on_tensor_cores), "{name}");
    }
}

/// Counters of the multiplying kernel, whose operands another kernel splits.
fn behind_splits(
    spec: &SgemmSpec,
    Size { m, n, k }: Size,
) -> Result<Counters, gemm_runtime::Error> {
    let device = Device::simulator();
    let (a, b) = (device.upload(&vec![1.0; m * k])?, device.upload(&vec![1.0; k * n])?);
    let mut c = device.alloc(m * n)?;
    let launched = Sgemm::<()>::new(spec.clone())?.launch(&device, &a, &b, &mut c, (m, n, k))?;
    Ok(*launched.counters().expect("the simulator counts"))
}

fn a_shared_tile_divides_the_global_bytes_by_its_width() {
    let (naive, tiled) = (counters(&stage(2)), counters(&stage(5)));
    // The naive kernel loads two words for each multiply-add, the tiled kernel two words for each
    // 32.
    assert_eq!(naive.global_load_bytes, 8 * FMAS);
    assert_eq!(tiled.global_load_bytes, 8 * FMAS / 32);
    // A warp of stage 2 has two rows of sixteen threads. It reads two sectors of A and two of B for
    // 32 multiply-adds. A warp of stage 5 reads eight sectors for 32·32 multiply-adds.
    let stores = 128 * 128 / 8;
    assert_eq!(naive.global_sectors - stores, 4 * FMAS / 32);
    assert_eq!(tiled.global_sectors - stores, 8 * FMAS / 1024);
}

fn consecutive_threads_along_rows_touch_a_sector_each() {
    let (rows, columns) = (counters(&stage(1)), counters(&stage(2)));
    assert_eq!(rows.global_load_bytes, columns.global_load_bytes);
    // A warp has sixteen rows and two columns. For 32 multiply-adds it reads sixteen sectors of A
    // and one of B. At the end it stores to sixteen sectors.
    let stores = 16 * 128 * 128 / 32;
    assert_eq!(rows.global_sectors - stores, 17 * FMAS / 32);
}

fn a_register_tile_divides_the_shared_words() {
    let words = |index| counters(&stage(index)).shared_load_bytes / 4;
    assert_eq!(words(5), 2 * FMAS);
    assert_eq!(words(11), 5 * FMAS / 4);
    assert_eq!(words(12), 8 * FMAS / 16);
    assert_eq!(words(13), 16 * FMAS / 64);
}

/// Number of K tiles of extent eight, for the single block of stages 13 to 20.
const TILES: u64 = 8;
const WARPS: u64 = 8;

fn split_fragments_leave_only_the_conflicts_of_the_transposing_stores() {
    // A warp stores 16 rows for two values of k to the same banks. This causes two-way conflicts in
    // four stores per tile.
    let stores = TILES * WARPS * 4;
    assert!(counters(&stage(15)).shared_bank_conflicts > stores);
    assert_eq!(counters(&stage(16)).shared_bank_conflicts, stores);
    assert_eq!(counters(&stage(17)).shared_bank_conflicts, stores);
    // Scalar copies load eight values of k for four rows, with 8-way conflicts. The scalar reads of
    // B's fragment, by sixteen threads four words apart, have two-way conflicts. There are eight
    // such reads for each of 64 values of k.
    let reads = WARPS * 64 * 8;
    assert_eq!(counters(&stage(18)).shared_bank_conflicts, TILES * WARPS * 4 * 7 + reads);
}

fn a_double_buffer_halves_the_barriers_of_a_tile() {
    // There is one barrier before the first tile is used. Each further tile has two barriers in
    // stage 16, and one in stage 17.
    assert_eq!(counters(&stage(16)).block_barriers, 1 + 2 * (TILES - 1));
    assert_eq!(counters(&stage(17)).block_barriers, 1 + (TILES - 1));
}

fn padding_removes_the_conflicts_on_a() {
    let padded = stage(9);
    let bare = padded.clone().pad_a(0);
    let conflicts = |spec: &SgemmSpec| counters(spec).shared_bank_conflicts;
    assert!(
        conflicts(&bare) > 4 * conflicts(&padded),
        "{} {}",
        conflicts(&bare),
        conflicts(&padded)
    );
}

fn asynchronous_copies_do_not_conflict_and_need_one_barrier_a_tile() {
    let counters = counters(&stage(21));
    assert_eq!(counters.shared_bank_conflicts, 0);
    // There is one barrier before the first K tile, and one for each of four K tiles of extent
    // sixteen.
    assert_eq!(counters.block_barriers, 1 + 4);
    // Only copies write to shared memory.
    assert_eq!((counters.shared_stores, counters.shared_store_bytes), (0, 4 * 64 * 256));
}

pub fn trials() -> Vec<Trial> {
    simulated![
        every_stage_multiplies_each_pair_once,
        a_shared_tile_divides_the_global_bytes_by_its_width,
        consecutive_threads_along_rows_touch_a_sector_each,
        a_register_tile_divides_the_shared_words,
        split_fragments_leave_only_the_conflicts_of_the_transposing_stores,
        a_double_buffer_halves_the_barriers_of_a_tile,
        padding_removes_the_conflicts_on_a,
        asynchronous_copies_do_not_conflict_and_need_one_barrier_a_tile,
    ]
}
