//! Owners of elements, by numbered runs of kernels with known layouts.

use super::*;
use crate::observation::looked;
use gemm_bench::family::Family;
use gemm_dsl::ir::BufferLayout;

fn owners(family: Family, line: &str) -> Option<Ownership> {
    let looked = looked(family, line);
    ownership(&looked.kernel, &named(&looked).expect("the same launch")?, &looked.trace)
}

/// Stage 22: 16 x 16 threads with 8 x 16 accumulators each, in vectors of four; the lanes of a
/// warp are 4 x 8.
#[test]
fn a_thread_owns_what_the_layout_of_warps_and_lanes_says() {
    let line = "tile: 128x256x16, thread: 8x16, fragment: split, float4, transpose, pad_a: 4, \
                stages: 5, spread: 10, warp: 32x128";
    let owners = owners(Family::Sgemm, line).expect("a product");
    let [a, b, c] = &owners.tiles[..] else { panic!("three tiles") };
    assert_eq!((a.extents, b.extents, c.extents), ([128, 16], [16, 256], [128, 256]));
    // 256 / 16 columns of threads use an element of A. 128 / 8 rows of threads use an element
    // of B.
    assert_eq!((a.owners, a.reads, b.owners, b.reads), ([1; 2], [16; 2], [1; 2], [16; 2]));
    assert_eq!((c.owners, c.reads), ([1; 2], [0; 2]));
    let rect = |x, y, width, height| Rect { x, y, width, height };
    let warp: Vec<Rect> = c.warps.iter().map(|area| area.rects[0]).collect();
    let tile = |warp: u64| rect(warp % 2 * 128, warp / 2 * 32, 128, 32);
    assert_eq!(warp, (0..8).map(tile).collect::<Vec<_>>());
    let fours = [0, 16].iter().flat_map(|y| [0, 32, 64, 96].map(|x| rect(x, *y, 4, 4)));
    assert_eq!(c.threads[0].rects, fours.collect::<Vec<_>>());
    // The first thread reads the rows of A and columns of B for the elements that it stores.
    assert_eq!(a.read[0].rects, [rect(0, 0, 16, 4), rect(0, 16, 16, 4)]);
    assert_eq!(b.read[0].rects, [0, 32, 64, 96].map(|x| rect(x, 0, 4, 16)));
    // The same holds for all other lanes: the next lane stores and reads the next columns.
    let columns = |areas: &[Area]| areas.iter().map(|area| area.rects[0].x).collect::<Vec<_>>();
    assert_eq!((c.threads.len(), a.read.len(), b.read.len()), (32, 32, 32));
    assert_eq!(columns(&b.read), columns(&c.threads));
    assert_eq!(
        (a.of_thread_0(), c.of_thread_0()),
        ("copies 8, reads 128".into(), "stores 128".into())
    );
}

/// Stage 5: one thread for each element, with warps along the rows.
#[test]
fn a_thread_of_one_sum_reads_a_row_and_a_column() {
    let owners = owners(Family::Sgemm, "tile: 32x32x32").expect("a product");
    let [a, b, _] = &owners.tiles[..] else { panic!("three tiles") };
    let rect = |x, y, width, height| Rect { x, y, width, height };
    assert_eq!(
        (&a.read[0].rects[..], &b.read[0].rects[..]),
        (&[rect(0, 0, 32, 1)][..], &[rect(0, 0, 1, 32)][..])
    );
    assert_eq!((a.reads, b.reads, a.warps.len()), ([32; 2], [32; 2], 32));
}

/// Row-major, padded, transposed and swizzled arrays: each element is where the layout puts it.
#[test]
fn elements_lie_where_the_layout_says() {
    let lines = [
        "tile: 64x64x16, thread: 4x4",
        "tile: 64x64x16, thread: 4x4, float4, transpose, pad_a: 4, stages: 3",
        "tile: 64x64x16, thread: 4x4, float4, pad_a: 4, pad_b: 8, double_buffer",
        "tile: 64x64x16, thread: 4x4, float4, swizzle",
        "tile: 96x64x8, thread: 6x4",
    ];
    for line in lines {
        let looked = looked(Family::Sgemm, line);
        let kernel = &looked.kernel;
        let named = named(&looked).expect("the same launch").expect("a product");
        let owners = ownership(kernel, &named, &looked.trace).expect("tiles");
        for tile in &owners.tiles[..2] {
            let held = tile.held.as_ref().expect("it is copied");
            let array = kernel.buffers.iter().find(|of| of.name == held.name).expect("As");
            let BufferLayout::Array { order, pad, swizzle } = &array.layout else {
                panic!("{line}")
            };
            let is_turned = !order.is_sorted();
            let pad = kernel.eval_const(pad).expect("a number") as u64;
            let [rows, columns] = tile.extents;
            let inner = if is_turned { [columns, rows] } else { [rows, columns] };
            assert_eq!(held.extents, [inner[0], inner[1] + pad], "{line}, {}", held.name);
            assert_eq!(held.unused, inner[0] * pad);
            assert_eq!(held.places.len() as u64, rows * columns);
            let [top, left] = tile.origin;
            for (&(row, column), &placement) in &held.places {
                let (row, column) = (row - top, column - left);
                let (row, column) = if is_turned { (column, row) } else { (row, column) };
                let column = swizzle.map_or(column, |swizzle| swizzle.apply(row, column));
                assert_eq!(placement, (row, column), "{line}, {}", held.name);
            }
            // Warps write the words in shared memory that they copy.
            let words = |areas: &[Area]| {
                areas.iter().flat_map(|of| &of.rects).map(|r| r.width * r.height).sum::<u64>()
            };
            assert_eq!(words(&held.warps), rows * columns, "{line}");
            let of_lanes = |areas: &[Area]| {
                areas
                    .iter()
                    .map(|of| (of.owner, words(std::slice::from_ref(of))))
                    .collect::<Vec<_>>()
            };
            assert_eq!(of_lanes(&held.threads), of_lanes(&tile.threads), "{line}");
            assert_eq!(of_lanes(&held.read), of_lanes(&tile.read), "{line}");
        }
    }
}

/// If several GEMMs share a block, the tiles are those of the first one and its threads.
#[test]
fn a_batch_has_the_tiles_of_its_first_product() {
    let line = "tile: 16x16x16, thread: 4x4, products: 4, batch: strided";
    let owners = owners(Family::Sgemm, line).expect("a product");
    assert_eq!(owners.tiles.len(), 3);
    for tile in &owners.tiles {
        assert_eq!((tile.extents, tile.owners), ([16, 16], [1; 2]), "{}", tile.name);
        let threads: BTreeSet<u32> = tile.threads.iter().map(|area| area.owner).collect();
        assert_eq!(threads, (0..16).collect(), "{}", tile.name);
    }
}

/// Each element is in one group, and the readers of a group are the threads that read its
/// elements.
#[test]
fn groups_say_who_reads_an_element() {
    let lines = [
        "block: 16x16",
        "tile: 32x32x32",
        "tile: 64x64x16, thread: 4x4, float4, transpose, fragment: split",
        "tile: 16x16x64, thread: 4x4, float4, transpose, pad_a: 4, slices: 8",
        "tile: 96x64x8, thread: 6x4",
    ];
    for line in lines {
        let owners = owners(Family::Sgemm, line).expect("a product");
        for tile in &owners.tiles[..2] {
            let [rows, columns] = tile.extents;
            let count: usize = tile.groups.iter().map(|group| group.count).sum();
            assert_eq!(count as u64, rows * columns, "{line}");
            let numbers = tile.group.as_ref().expect("groups").numbers(tile.extents);
            let mut of_lanes: BTreeMap<u32, u64> = BTreeMap::new();
            for lane in 0..SHOWN {
                let of = |n: &&Option<i64>| {
                    let group = &tile.groups[n.expect("a group") as usize];
                    group.readers.as_ref().expect("told apart").has(lane)
                };
                let read = numbers.iter().filter(of).count() as u64;
                if read > 0 {
                    of_lanes.insert(lane, read);
                }
            }
            let words = |area: &Area| area.rects.iter().map(|r| r.width * r.height).sum::<u64>();
            let read: BTreeMap<u32, u64> =
                tile.read.iter().map(|area| (area.owner, words(area))).collect();
            assert_eq!(of_lanes, read, "{line}, {}", tile.name);
            let said = tile.unlisted();
            let hidden = tile.groups.len() - tile.listed().len();
            assert_eq!(said.starts_with(&hidden.to_string()), hidden > 0, "{line}: {said}");
            if said.contains("the same number of elements") {
                assert!(tile.groups.iter().all(|of| of.count == tile.groups[0].count));
            }
            for group in &tile.groups {
                assert!((tile.reads[0]..=tile.reads[1]).contains(&group.reads), "{line}");
                let readers = group.readers.as_ref().map_or(0, Threads::count);
                assert!(readers > 0 && group.reads.is_multiple_of(readers), "{line}: {group:?}");
            }
            // The formula of the owners agrees with the areas of the threads.
            if let Some(owner) = &tile.owner {
                let numbers = owner.numbers(tile.extents);
                let of_first = numbers.iter().filter(|n| **n == Some(0)).count() as u64;
                assert_eq!(of_first, words(&tile.threads[0]), "{line}");
            }
        }
    }
}

/// If elements are not copied, their tile contains the reads from global memory. TMA boxes also
/// form tiles.
#[test]
fn kernels_without_copies_by_threads_have_the_other_tiles() {
    let naive = owners(Family::Sgemm, "block: 16x16").expect("a product");
    let moved: Vec<_> = naive.tiles.iter().map(|tile| (tile.moved, tile.reads)).collect();
    let read = ("read from global memory", [16; 2]);
    assert_eq!(moved, [read, read, ("stored", [0; 2])]);
    let boxes = "tile: 128x128x64, float4, stages: 4, arith: bf16, mma: wgmma, copy: tma";
    let names =
        owners(Family::Sgemm, boxes).map(|all| all.tiles.iter().map(|t| t.name.clone()).collect());
    assert_eq!(names, Some(NAMES.map(str::to_owned).to_vec()));
    assert!(owners(Family::Reduce, "items: 2").is_none());
}
