use super::*;
use crate::observation::{Observation, Spec, looked};
use crate::wgmma::multistage::{SlotState, Tiles};
use gemm_bench::family::Family;
use gemm_dsl::ir::MbarrierOp;
use gemm_dsl::ir::Stmt;
use gemm_dsl::spec::SgemmSpec;
use gemm_dsl::stages::{self, Stage};
use gemm_runtime::sim::watch::{Action, Trace, VerifiedKernel};
use std::sync::Arc;

/// Number of random specs.
const COUNT: usize = 8;

/// Launch of a kernel, with its tiles on tensor cores.
struct Watched {
    launch: Arc<Observation>,
    tensor: Option<WgmmaTiles>,
}

fn watched(line: &str) -> Watched {
    let looked = looked(Family::Sgemm, line);
    let tensor = tiles(&looked.kernel, &looked.trace).expect(line);
    Watched { launch: looked, tensor }
}

/// Stages with `wgmma` instructions.
fn of_warpgroups() -> Vec<Stage<SgemmSpec>> {
    let is_it = |stage: &Stage<SgemmSpec>| stage.spec.to_string().contains("mma: wgmma");
    stages::sgemm().into_iter().filter(is_it).collect()
}

/// Every second of these stages in a thinned run, beginning with the first or the second.
fn in_turn(turn: usize) -> impl Iterator<Item = Stage<SgemmSpec>> {
    let stages = of_warpgroups().into_iter().enumerate();
    stages.filter(move |(nth, _)| gemm_cases::is_in_turn(*nth, 2, turn)).map(|(_, stage)| stage)
}

/// Returns true if TMA copies the tiles of the stage.
fn has_boxes(stage: &Stage<SgemmSpec>) -> bool {
    stage.spec.to_string().contains("copy: tma")
}

/// Swizzled address of a byte in shared memory, computed from the address bits as PTX specifies.
fn exchanged(at: u32, mode: u64) -> u32 {
    match mode {
        1 => at ^ (at >> 3 & 0x70),
        2 => at ^ (at >> 3 & 0x30),
        3 => at ^ (at >> 3 & 0x10),
        _ => at,
    }
}

/// Checks that each part of eight rows is in the picture once, at the position that the formula
/// gives.
fn lies_as_said(swizzled: &swizzle::SwizzledTile) {
    let mode = swizzled.descriptor >> 62;
    let mut seen = 0;
    for (row, cells) in (0u32..).zip(&swizzled.cells) {
        for (group, cell) in (0u32..).zip(cells) {
            let Some(cell) = cell else { continue };
            let byte = exchanged(row * swizzled.row + cell.part * 16, mode);
            assert_eq!(byte / 16 % 8, group, "row {row} of {swizzled:?}");
            if mode == 1 {
                assert_eq!(group, cell.part ^ (row % 8));
            }
            seen += 1;
        }
    }
    assert_eq!(seen, 8 * swizzled.row / 16, "{swizzled:?}");
}

#[test]
fn tiles_lie_as_their_swizzle_says_and_are_read_where_they_were_written() {
    assert_eq!(of_warpgroups().len(), 7);
    for stage in in_turn(0) {
        let Watched { launch, tensor } = watched(&stage.spec.to_string());
        let tensor = tensor.expect(stage.name);
        let arrays: usize = tensor.swizzles.iter().map(|of| of.arrays.len()).sum();
        assert!(arrays >= 2, "{}", stage.name);
        for swizzled in &tensor.swizzles {
            lies_as_said(swizzled);
            assert_eq!((swizzled.row, swizzled.wavefronts), (128, [1, 8]), "{}", stage.name);
            assert_eq!(swizzled.is_boxed, has_boxes(&stage), "{}", stage.name);
            let cells = || swizzled.cells.iter().flatten().flatten();
            assert!(cells().all(|cell| cell.instruction == Some(cell.part / 2)));
            assert_eq!(cells().all(|cell| cell.thread.is_some()), !swizzled.is_boxed);
        }
        // A box or a thread wrote each part to the address from which an instruction reads it.
        let mut written = std::collections::BTreeSet::new();
        for detail in &launch.trace.details {
            match &detail.did {
                Action::BoxCopy(boxed) => written.extend(boxed.parts.iter().copied()),
                Action::Multiplied { a, b, .. } if has_boxes(&stage) => {
                    // Only the first rows of a box are recorded.
                    let known = [a, b].into_iter().filter(|operand| {
                        let own = operand.parts[0] - operand.column;
                        written.contains(&own)
                    });
                    for operand in known {
                        assert!(operand.parts.iter().all(|at| written.contains(at)));
                    }
                }
                _ => {}
            }
        }
    }
}

/// The swizzle mode depends on the row length.
#[test]
fn rows_of_64_bytes_are_exchanged_every_two() {
    let line = "tile: 128x128x32, float4, stages: 4, arith: bf16, mma: wgmma, copy: tma";
    let tensor = watched(line).tensor.expect("matrix instructions");
    for swizzled in &tensor.swizzles {
        lies_as_said(swizzled);
        assert_eq!((swizzled.row, swizzled.wavefronts), (64, [1, 4]));
    }
}

fn hands_on(name: &str, tiles: &Tiles, kernel: &VerifiedKernel, trace: &Trace) {
    let slots = tiles.slots as usize;
    assert!(tiles.turns.len() > slots, "{name}");
    // The source declares the number of arrivals.
    let made: Vec<u32> = kernel
        .mbarriers
        .iter()
        .enumerate()
        .map(|(id, _)| {
            let count = kernel.statements().into_iter().find_map(|stmt| match stmt {
                Stmt::Mbarrier(of) if of.at.barriers.id == id => match &of.op {
                    MbarrierOp::Init { count } => kernel.eval_const(count).ok(),
                    _ => None,
                },
                _ => None,
            });
            count.and_then(|count| u32::try_from(count).ok()).expect("a barrier is made")
        })
        .collect();
    let said: Vec<u32> = tiles.barriers.iter().map(|of| of.arrivals).collect();
    assert_eq!(said, made, "{name}");
    for (number, turn) in tiles.turns.iter().enumerate() {
        assert_eq!(
            (turn.slot as usize, turn.phase as usize),
            (number % slots, number / slots),
            "{name}: {number}"
        );
        assert_eq!((turn.expected, turn.is_complete), (turn.come, true), "{name}: {number}");
        // A request follows the release of the slot, after the previous tile was read.
        assert_eq!(turn.after, number.checked_sub(slots), "{name}: {number}");
        assert!(turn.instructions > 0 && !turn.waited_by.is_empty());
        if let Some((_, phase)) = &turn.given_at {
            assert_eq!((*phase, turn.given), (turn.phase, made[1]), "{name}: {number}");
        }
        assert_eq!(turn.given_at.is_some(), made.len() > 1);
        // While a tile is read, the other slots hold the following tiles.
        for (slot, held) in tiles.while_read(&number).into_iter().enumerate() {
            let held = match held {
                SlotState::Read(of) | SlotState::Asked(of) => Some(of),
                SlotState::Empty => None,
            };
            let due = (number..number + slots).find(|of| of % slots == slot);
            assert_eq!(held, due.filter(|of| *of < tiles.turns.len()), "{name}: {number}");
        }
    }
    let completed = trace.details.iter().filter(|of| matches!(of.did, Action::Completed { .. }));
    let phases: u64 = tiles.barriers.iter().map(|of| of.phases).sum();
    assert_eq!(phases, completed.count() as u64, "{name}");
    assert_eq!(phases, (tiles.turns.len() * made.len()) as u64, "{name}");
}

#[test]
fn slots_are_handed_on_by_the_phases_that_the_text_makes() {
    for stage in in_turn(1) {
        let Watched { launch, tensor } = watched(&stage.spec.to_string());
        let tiles = tensor.expect(stage.name).ring.expect(stage.name);
        match has_boxes(&stage) {
            true => hands_on(stage.name, &tiles, &launch.kernel, &launch.trace),
            false => stores(&stage, &tiles),
        }
    }
}

/// Checks that all warps store and read each tile in the single slot.
fn stores(stage: &Stage<SgemmSpec>, tiles: &Tiles) {
    let plan = stage.spec.plan().expect("a plan");
    let (rows, columns) = plan.block_tile();
    let bytes = u64::from((rows + columns) * plan.k_step() * 2);
    assert_eq!((tiles.slots, tiles.turns.len()), (1, 8));
    for (number, turn) in tiles.turns.iter().enumerate() {
        assert_eq!((turn.come, turn.after), (bytes, number.checked_sub(1)));
        assert_eq!(turn.asked_by, turn.waited_by);
        // Two warpgroups with four instructions of K = 16 each.
        assert_eq!((turn.asked_by.len(), turn.instructions), (8, 8));
        assert_eq!(tiles.while_read(&number), [SlotState::Read(number)]);
    }
}

/// Warpgroups divide the rows of the tile, and the lanes of a warp hold each accumulator once.
#[test]
fn warpgroups_share_the_tile_out() {
    for stage in in_turn(0) {
        let spec = &stage.spec;
        let (rows, columns) = spec.plan().expect("a plan").block_tile();
        let held = watched(&spec.to_string()).tensor.expect(stage.name).held;
        let mut all = std::collections::BTreeSet::new();
        for of in &held {
            all.extend((0..64).map(|row| of.row + row));
            assert_eq!(of.columns, [0, u64::from(columns)], "{}", stage.name);
        }
        assert!(all.into_iter().eq(0..u64::from(rows)), "{}", stage.name);
    }
    // `d_i` of lane `4 g + t` is at row g + 8 (i / 2 mod 2), column 2 t + i mod 2.
    for (row, column) in (0..16usize).flat_map(|row| (0..8usize).map(move |column| (row, column))) {
        let lane = row % 8 * 4 + column / 2;
        assert_eq!(fragments::lane_of(&row, &column), Some((lane, row / 8 * 2 + column % 2)));
    }
}

#[test]
fn kernels_without_matrix_instructions_have_none() {
    assert!(watched("tile: 32x32x32").tensor.is_none());
}

/// Random choice.
fn one<'v>(rng: &mut fastrand::Rng, values: &[&'v str]) -> &'v str {
    values[rng.usize(..values.len())]
}

/// Random valid specs with `wgmma` instructions.
fn lines(seed: u64) -> impl Iterator<Item = String> {
    let mut rng = fastrand::Rng::with_seed(seed);
    std::iter::repeat_with(move || {
        let keys = [
            one(
                &mut rng,
                &[
                    "tile: 64x64x64",
                    "tile: 128x64x64",
                    "tile: 128x128x32",
                    "tile: 128x128x64",
                    "tile: 256x128x64",
                ],
            ),
            "mma: wgmma",
            one(
                &mut rng,
                &[
                    "arith: bf16",
                    "arith: f16",
                    "arith: tf32",
                    "arith: bf16x6",
                    "arith: f16x3",
                    "arith: tf32x3",
                ],
            ),
            one(&mut rng, &["", "copy: tma", "copy: tma", "copy: tma"]),
            one(&mut rng, &["", "stages: 2", "stages: 3", "stages: 4"]),
            one(&mut rng, &["", "", "producer"]),
            one(&mut rng, &["", "", "persistent"]),
            one(&mut rng, &["", "", "cluster: 2", "cluster: 2x1", "cluster: 1x2", "cluster: 2x2"]),
            one(&mut rng, &["", "layout: nt", "layout: tn", "layout: tt"]),
            one(&mut rng, &["", "", "batch: strided"]),
            one(&mut rng, &["", "", "float4"]),
            one(&mut rng, &["", "", "scaled", "epilogue: |x, bias[n]| max(x + bias, 0.0)"]),
            one(&mut rng, &["", "", "split_k: 2", "split_k: auto"]),
        ];
        let keys: Vec<&str> = keys.into_iter().filter(|key| !key.is_empty()).collect();
        keys.join(", ")
    })
    .filter(|line| Spec::parse(Family::Sgemm, line).is_ok_and(|spec| spec.at().is_ok()))
}

/// Checks that a tensor-core kernel is drawn without a contradiction.
fn is_drawn(line: &str) {
    let tensor = watched(line).tensor.expect(line);
    let tiles = tensor.ring.unwrap_or_else(|| panic!("{line}: no ring"));
    assert_eq!(tensor.swizzles.iter().map(|of| of.arrays.len()).sum::<usize>() % 2, 0, "{line}");
    assert!(!tensor.held.is_empty() && !tiles.turns.is_empty(), "{line}");
    tensor.swizzles.iter().for_each(lies_as_said);
    for turn in &tiles.turns {
        assert_eq!((turn.expected, turn.is_complete), (turn.come, true), "{line}: {turn:?}");
        assert!(turn.instructions > 0 && !turn.waited_by.is_empty(), "{line}: {turn:?}");
    }
}

#[test]
fn random_kernels_of_tensor_cores_are_drawn_without_a_contradiction() {
    lines(7).take(COUNT).for_each(|line| is_drawn(&line));
}
