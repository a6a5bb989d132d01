//! Kernels that stage tiles of A and B in shared memory. Threads multiply the tiles by
//! multiply-adds or by `mma.sync`.

use super::pipeline::main_loop;
use crate::ir::KernelBuilder;
use crate::lower::sgemm::common::accumulator_tile::TileParts;
use crate::lower::sgemm::common::accumulators::Accumulators;
use crate::lower::sgemm::common::epilogue::{BlockSums, finish_block};
use crate::lower::sgemm::common::epilogue_expression::EpilogueExpression;
use crate::lower::sgemm::common::frame::{Frame, SplitOperands};
use crate::lower::sgemm::common::groups;
use crate::lower::sgemm::common::problem::{GemmProblem, TakenMatrices};
use crate::lower::sgemm::common::schedule::Origin;
use crate::lower::sgemm::common::sharing::TileDistribution;
use crate::lower::sgemm::common::split_k::SplitKWorkspace;
use crate::lower::sgemm::common::splits::Splits;
use crate::lower::sgemm::common::tile::Tiled;
use crate::lower::sgemm::common::unrepresentable::TileFlags;
use crate::lower::sgemm::mma::{recompute, seen_by_slices};
use crate::plan::{SgemmPlan, TiledPlan};

/// Emits the parameters and the body of the kernel.
pub(crate) fn body(b: &mut KernelBuilder, plan: &SgemmPlan, shape: &TiledPlan) {
    let buffers = shape.splits().map(|of| (of, Splits::arrays(b, &of)));
    let (problem, operands) = match buffers {
        None => (GemmProblem::declare(b, plan, TakenMatrices::All), None),
        Some((of, buffers)) => {
            // FP32 emulation recomputes some sums from A and B themselves.
            let emulates = of.arith().is_emulation();
            let takes = if emulates { TakenMatrices::All } else { TakenMatrices::Result };
            let problem = GemmProblem::declare(b, plan, takes).with_distinct(b);
            let flags = emulates.then(|| TileFlags::parameters(b));
            (problem, Some(SplitOperands { buffers, flags }))
        }
    };
    let frame = Frame::declare(b, plan, shape, problem, operands);
    let split = SplitKWorkspace::declare(b, plan, &problem, frame.accumulators());
    match problem.distribution {
        Some(TileDistribution::Persistent(_)) => {
            unreachable!("check: `persistent` needs a producer")
        }
        None => {
            let (tiled, parts) = frame.own_tile(b);
            let Origin { row, end_of_group, .. } = tiled.origin;
            groups::if_exists(b, row, end_of_group, |b| product(b, &tiled, parts, split.as_ref()));
        }
        Some(TileDistribution::StreamK(stream)) => {
            let (own, counts) = frame.any_tile(b);
            let slices = frame.t.slices();
            stream.each_tile(b, &frame.problem, frame.bk, slices, |b, tile, range, segment| {
                let tiled = frame.numbered_tile(b, own, counts, tile, range);
                product(b, &tiled, Some(TileParts::Segment(segment)), split.as_ref());
            });
        }
    }
}

/// Emits the computation of a tile of C, or of the part that the block has of it.
pub(crate) fn product(
    b: &mut KernelBuilder,
    tiled: &Tiled<'_>,
    parts: Option<TileParts>,
    split: Option<&SplitKWorkspace>,
) {
    let block = tiled.accumulator_tile();
    let finish = EpilogueExpression::declare(b, tiled.frame.plan, &block.problem);
    let acc = main_loop(b, tiled);
    if let Some((mma, warp)) = acc.mma().zip(tiled.mma.as_ref()) {
        mma.exchange(b, tiled, warp);
    }
    let slices = tiled.frame.slices.map(|slices| slices.of_block);
    let acc = if slices.is_some() { acc.in_one(b, &block) } else { acc };
    let seen = seen_by_slices(b, &acc);
    let others = slices.map(|slices| slices.hand_over(b, &block, &acc, None));
    let recompute = |b: &mut KernelBuilder, acc: &Accumulators| recompute(b, tiled, acc, seen);
    let correct = tiled.mma.is_some().then_some(&recompute as _);
    let sums = BlockSums { acc, others, correct };
    finish_block(b, &block, parts, split, sums, &finish);
}
