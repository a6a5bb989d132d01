//! A product of matrices that are sums of three planes each, by hand: six products of planes, the smallest first, of which
//! each stage's are summed on tensor cores and added to the sums of the stages before by ordinary additions.

use crate::tensor_core::Tile;
use crate::warp_specialised::{Product, WARPGROUP, store_sums};
use gemm_dsl::ir::{
    Access, BufferId, BufferLayout, Elem, Expr, Extent, For, Geometry, KernelBuilder, Operand,
    ProxyFence, Special, TensorMap, TensorSwizzle, Ty, VerifiedKernel, Wgmma,
};
use gemm_dsl::target::tensor_core::{Format, Operand as Term, Rules};
use gemm_sim::{Buffer, Counters, SimError};

/// Planes of a matrix.
pub const PLANES: usize = 3;
/// Those that are multiplied: of A, and of B.
pub const PAIRS: [[usize; 2]; 6] = [[0, 2], [1, 1], [2, 0], [0, 1], [1, 0], [0, 0]];
/// Rows and columns of a tile, terms of a stage, and stages.
pub const TILE: [i32; 2] = [128, 64];
const DEPTH: i32 = 64;
const STAGES: i32 = 2;

/// The kernel. It takes the planes of A, those of B, and C, and the extents `m`, `n` and `k`.
///
/// # Panics
/// Never: the kernel is sound.
pub fn kernel() -> VerifiedKernel {
    let mut k = KernelBuilder::new("planes");
    k.title("C = A * transpose(B) of matrices that are three planes each.");
    let (planes, [rows, columns], elem) = (PLANES as i32, TILE, Elem::Bf16);
    let mut input = |name: &str, operand, lines: i32| {
        let tile = vec![planes as u32, lines as u32, DEPTH as u32];
        k.tensor_map(name, elem, operand, TensorMap { tile, swizzle: TensorSwizzle::Bytes128 })
    };
    let a = input("A", Operand::Input(0), rows);
    let b = input("B", Operand::Input(1), columns);
    let c = k.global("C", Elem::F32, Operand::Output(0));
    let [m, n, length] = [("m", Extent::M), ("n", Extent::N), ("k", Extent::K)]
        .map(|(name, extent)| Expr::from(k.extent(name, Ty::I32, extent)));
    for (of, lines) in [(a, &m), (b, &n)] {
        let dims = [planes.into(), lines.clone(), length.clone()];
        k.shape(of, dims, [lines.clone() * length.clone(), length.clone(), 1.into()]);
    }
    k.shape(c, [m.clone(), n.clone()], [n.clone(), 1.into()]);
    let tiles = |extent: &Expr, of: i32| extent.clone().wide().div_ceil(Expr::U64(of as u64));
    let grid = [tiles(&n, columns), tiles(&m, rows), Expr::U64(1)];
    k.geometry(Geometry { block: (3 * WARPGROUP as u32, 1), grid, blocks_per_sm: 1 });
    let mut stage = |name: &str, lines: i32| {
        let swizzle = TensorSwizzle::Bytes128.layout(elem);
        let layout = BufferLayout::Array { order: vec![0, 1, 2, 3], pad: 0.into(), swizzle };
        let dims = [STAGES, planes, lines, DEPTH].map(Expr::I32);
        k.shared(name, elem, dims, layout, "planes of a tile")
    };
    let (tile_a, tile_b) = (stage("As", rows), stage("Bs", columns));
    let full = k.mbarriers("full", STAGES, "a stage has come");
    let empty = k.mbarriers("empty", STAGES, "a stage has been read");
    let row = k.let_("row", Expr::from(Special::BlockY) * rows);
    let column = k.let_("column", Expr::from(Special::BlockX) * columns);
    let rounds = Expr::from(k.let_("rounds", length.div_ceil(DEPTH)));
    let tid = || Expr::from(Special::ThreadX);
    k.if_(tid().equals(0), |k| {
        k.unrolled("i", STAGES, |k, i| {
            k.mbarrier_init(full, i, 1);
            k.mbarrier_init(empty, i, 8);
        });
        k.proxy_fence(ProxyFence::MbarrierInit);
    });
    k.barrier();
    let at = |k: &mut KernelBuilder, round: Expr| -> [Expr; 2] {
        let stage = k.let_("stage", round.clone() % STAGES);
        [stage.into(), k.let_("parity", round / STAGES % 2).into()]
    };
    k.if_else(
        tid().lt(WARPGROUP),
        |k| {
            k.fewer_registers(40);
            k.if_(tid().equals(0), |k| {
                k.loop_("round", For::below(0, rounds.clone()), |k, round| {
                    let [stage, parity] = at(k, round.into());
                    k.mbarrier_wait(empty, stage.clone(), parity.xor(1));
                    let bytes = planes * (rows + columns) * DEPTH * elem.size() as i32;
                    k.mbarrier_arrive_expect(full, stage.clone(), bytes);
                    for (from, to, line) in [(a, tile_a, row), (b, tile_b, column)] {
                        let first = [stage.clone(), 0.into(), 0.into(), 0.into()];
                        let at = [0.into(), line.into(), Expr::from(round) * DEPTH];
                        k.tensor_copy(from, at, Access::new(to, first), (full, stage.clone()));
                    }
                });
            });
        },
        |k| {
            k.more_registers(232);
            let group = k.let_("group", tid() / WARPGROUP - 1);
            let sums = || [Expr::from(columns / 2)];
            let total = k.zeroed_registers("total", Elem::F32, sums(), "sums of C");
            let acc = k.zeroed_registers("acc", Elem::F32, sums(), "sums of a stage");
            k.loop_("round", For::below(0, rounds.clone()), |k, round| {
                let [stage, parity] = at(k, round.into());
                k.mbarrier_wait(full, stage.clone(), parity);
                k.wgmma_fence([acc]);
                for (pair, [of_a, of_b]) in PAIRS.into_iter().enumerate() {
                    k.unrolled("step", DEPTH / Format::Bf16.terms() as i32, |k, step| {
                        let tile = |of: BufferId, plane: usize, row: Expr| {
                            let at = Expr::from(step) * Format::Bf16.terms() as i32;
                            Access::new(of, [stage.clone(), (plane as i32).into(), row, at])
                        };
                        k.wgmma(Wgmma {
                            format: Format::Bf16,
                            columns: columns as u32,
                            d: Access::new(acc, [0.into()]),
                            a: tile(tile_a, of_a, Expr::from(group) * Wgmma::ROWS as i32),
                            b: tile(tile_b, of_b, 0.into()),
                            accumulate: (Expr::from(step) + pair as i32).gt(0),
                        });
                    });
                }
                k.wgmma_commit();
                k.wgmma_wait(0, [acc]);
                k.warp_barrier();
                k.if_((tid() % 32).equals(0), |k| k.mbarrier_arrive(empty, stage));
                k.unrolled("i", columns / 2, |k, i| {
                    let place = |of| Access::new(of, [Expr::from(i)]);
                    k.store(place(total), place(total).load() + place(acc).load());
                });
            });
            store_sums(k, (c, [m, n]), total, [row.into(), column.into(), group.into()], columns);
        },
    );
    k.finish().expect("a sound kernel")
}

/// What the rules say of planes, one below the other: row by row.
pub fn expected(operands: &Tile, rules: Rules) -> Vec<u32> {
    let [m, n, k] = operands.extents;
    let (m, n, depth) = (m / PLANES, n / PLANES, DEPTH as usize);
    let decoded = |words: &[u32]| -> Vec<Vec<Term>> {
        let padding = k.next_multiple_of(depth) - k;
        let line = |words: &[u32]| {
            let words = words.iter().copied().chain((0..padding).map(|_| 0));
            words.map(|word| Format::Bf16.decode(word)).collect()
        };
        words.chunks(k).map(line).collect()
    };
    let (a, b) = (decoded(&operands.a), decoded(&operands.b));
    let element = |at: usize| {
        let (row, column) = (at / n, at % n);
        let stage = |first: usize| {
            let part = first..first + depth;
            PAIRS.iter().fold(0, |sum, [of_a, of_b]| {
                let (a, b) =
                    (&a[of_a * m + row][part.clone()], &b[of_b * n + column][part.clone()]);
                rules.dot(Format::Bf16, a, b, sum)
            })
        };
        let stages = (0..k).step_by(depth).map(stage);
        stages.fold(0.0, |total, sum| total + f32::from_bits(sum)).to_bits()
    };
    (0..m * n).map(element).collect()
}

/// What the kernel makes of them, and its counters.
///
/// # Errors
/// What the simulator finds.
pub fn simulate(operands: &Tile) -> Result<(Vec<u32>, Counters), SimError> {
    let [m, n, k] = operands.extents;
    let (m, n) = (m / PLANES, n / PLANES);
    let [a, b] = [&operands.a, &operands.b].map(|words| Product::buffer(Format::Bf16, words));
    let buffers = [a, b, Buffer::zeros(m * n)];
    let counters = gemm_sim::launch(&kernel(), &buffers, &[m, n, k].map(|extent| extent as u64))?;
    Ok((buffers[2].bits().into_iter().map(|bits| bits as u32).collect(), counters))
}
