//! Reductions: every block folds its part of the input into one value. The axes are how a thread
//! loads ([`Loader`]) and how the block folds what its threads hold ([`fold`]).
//!
//! The ladder follows M. Harris, "Optimizing Parallel Reduction in CUDA" (2007), with the warp
//! barriers and shuffles that GPUs with independent thread scheduling need.

use crate::ir::{
    Access, BufferId, Const, Expr, Extent, Fill, Geometry, Intrinsic, IrError, KernelBuilder,
    Layout, Operand, Passes, Program, Requirement, Scalar, Scratch, Special, Step, Stmt, Ty,
    Unroll, Var, VerifiedKernel,
};
use crate::plan::{Finish, ReducePlan};
use crate::spec::{Op, Tree};

/// Threads of a warp.
const WARP: i32 = 32;

/// The program of a reduction: one kernel, launched on its own results until one value is left.
///
/// # Errors
/// A kernel that breaks a rule of the IR: a mistake of this module.
pub fn reduce(plan: &ReducePlan) -> Result<Program, IrError> {
    let vector = plan.vector() == 4;
    let kernel = kernel(plan, vector)?;
    let fallback = if vector { Some(self::kernel(plan, false)?) } else { None };
    let per_block = plan.elements_per_block();
    let length = Expr::Param(Scalar { param: 2, ty: Ty::U64 });
    let first = length.div_ceil(per_block);
    let second = first.clone().div_ceil(per_block);
    let scratch =
        [first, second].map(|len| Scratch { len, fill: Fill::Uninitialised }).into_iter().collect();
    Ok(Program { kernel, fallback, scratch, passes: Passes::Fold { per_block } })
}

/// One kernel; `wide` where a vector of four is one 16-byte load.
fn kernel(plan: &ReducePlan, wide: bool) -> Result<VerifiedKernel, IrError> {
    let mut k = KernelBuilder::new(plan.kernel_name());
    let op = plan.op();
    k.title(format!("{} of n floats: each block folds its part of `in` into one value.", noun(op)));
    k.title(format!("reduce_kernel!({})", plan.spec()));
    if plan.vector() == 4 {
        k.variant(if wide { "vector" } else { "scalar" });
        if !wide {
            k.title("Access variant for an input that is not aligned to 16 bytes.");
        }
    }

    let input = k.global("in", Operand::Input(0));
    let output = k.global("out", Operand::Output(0));
    let n = k.extent("n", Ty::U64, Extent::Length);
    let per_block = plan.elements_per_block();
    let blocks = Expr::from(n).gt(0u64).select(Expr::from(n).div_ceil(per_block), 1u64);
    k.shape(input, [n.into()], []);
    k.shape(output, [blocks.clone()], []);

    let block = k.constant("BLOCK", plan.block() as i32, "threads per block");
    k.launch_bounds(block);
    k.geometry(Geometry {
        block: (plan.block(), 1),
        grid: [blocks, 1u64.into()],
        blocks_per_sm: 1,
    });
    if wide {
        k.require(Requirement::Aligned { operand: Operand::Input(0), bytes: 16 });
    }

    let tid = k.let_("tid", Special::ThreadX).into();
    let mut reducer = Reducer { plan, k, input, output, n, block, tid };
    reducer.build(wide);
    reducer.k.finish()
}

struct Reducer<'p> {
    plan: &'p ReducePlan,
    k: KernelBuilder,
    input: BufferId,
    output: BufferId,
    n: Scalar,
    /// Threads of the block.
    block: Const,
    /// The index of the thread in its block.
    tid: Expr,
}

impl Reducer<'_> {
    fn build(&mut self, wide: bool) {
        let op = self.plan.op();
        let identity = self.k.let_("identity", identity(op));
        let sum = if self.plan.vector() == 4 {
            self.load_vectors(identity, wide)
        } else {
            self.load_items(identity)
        };
        match self.plan.finish() {
            Finish::Shuffle => self.fold_by_shuffles(sum, identity),
            Finish::Tree => _ = self.fold_by_tree(sum, 1),
            Finish::UnrolledWarp => {
                let x = self.fold_by_tree(sum, 2 * WARP);
                self.unrolled_warp(x, identity);
            }
        }
    }

    /// Each thread's elements, one at a time and a block apart; past the end, the identity.
    fn load_items(&mut self, identity: Var) -> Expr {
        let items = self.plan.items() as i32;
        let (tid, block, n, input) = (self.tid.clone(), self.block, self.n, self.input);
        let element = |i: Expr| i.clone().lt(n).select(Access::new(input, [i]).load(), identity);
        let k = &mut self.k;
        if items == 1 {
            k.comment("Each thread loads one element; past the end, the identity.");
            let i = k.let_("i", Expr::from(Special::BlockX).wide() * block + tid);
            return element(i.into());
        }
        let items = k.constant("ITEMS", items, "elements of a thread, a block apart");
        k.comment(
            "Each thread folds ITEMS elements, a block apart so that every load of a warp is",
        );
        k.comment("coalesced; past the end, the identity.");
        let first = Expr::from(Special::BlockX).wide() * (block * items) + tid;
        let first = k.let_("first", first);
        let sum = k.mut_(accumulator(self.plan.op()), identity);
        let op = self.plan.op();
        k.unrolled("item", items, |k, item| {
            let i = k.let_("i", first + item * block);
            k.assign(sum, combine(op, sum.into(), element(i.into())));
        });
        sum.into()
    }

    /// Each thread's vectors of four, a block of vectors apart. `wide` loads a vector at once.
    fn load_vectors(&mut self, identity: Var, wide: bool) -> Expr {
        let op = self.plan.op();
        let (tid, block, n, input) = (self.tid.clone(), self.block, self.n, self.input);
        let k = &mut self.k;
        let items =
            k.constant("ITEMS", self.plan.items() as i32, "vectors of a thread, a block apart");
        let tile = k.constant("TILE", block * items * 4, "elements of a block");
        k.comment("Each thread folds ITEMS vectors of four, a block of vectors apart.");
        let begin = k.let_("begin", Expr::from(Special::BlockX).wide() * tile);
        let first = k.let_("first", begin + tid * 4);
        let sum = k.mut_(accumulator(op), identity);
        let fold4 = |parts: [Expr; 4]| {
            let [x, y, z, w] = parts;
            combine(op, sum.into(), combine(op, combine(op, x, y), combine(op, z, w)))
        };
        let at = |i: Var, lane: i32| Access::new(input, [i + lane]);
        let whole = k.block(|k| {
            if wide {
                k.comment("The whole tile lies inside the array: 16-byte loads without a guard.");
            } else {
                k.comment("The whole tile lies inside the array: no guard.");
            }
            k.unrolled("item", items, |k, item| {
                let i = k.let_("i", first + item * (block * 4));
                if wide {
                    let v = k.let_("v", at(i, 0).vector().load());
                    k.assign(sum, fold4([0, 1, 2, 3].map(|l| Expr::from(v).lane(l))));
                } else {
                    k.assign(sum, fold4([0, 1, 2, 3].map(|l| at(i, l).load())));
                }
            });
        });
        let ragged = k.block(|k| {
            k.comment("The last tile: the same elements in the same order, each behind a guard.");
            k.unrolled("item", items, |k, item| {
                let i = k.let_("i", first + item * (block * 4));
                let part = |(lane, name): (i32, &str), k: &mut KernelBuilder| {
                    let inside = (i + lane).lt(n);
                    Expr::from(k.let_(name, inside.select(at(i, lane).load(), identity)))
                };
                let parts = [(0, "e0"), (1, "e1"), (2, "e2"), (3, "e3")].map(|p| part(p, k));
                k.assign(sum, fold4(parts));
            });
        });
        let inside = (begin + tile).le(n);
        k.push(Stmt::If { cond: inside, then: whole, otherwise: ragged });
        sum.into()
    }

    /// The shared-memory tree, down to `left` values; with one left, it is stored.
    fn fold_by_tree(&mut self, value: Expr, left: i32) -> BufferId {
        let (op, block, tid) = (self.plan.op(), self.block, self.tid.clone());
        let to_the_end = left == 1;
        let all_done = self.plan.block() as i32 <= left;
        let k = &mut self.k;
        let x = k.shared("x", [block.into()], Layout::row_major(1), "one value per thread");
        let at = |i: Expr| Access::new(x, [i]);
        k.store(at(tid.clone()), value);
        k.barrier();

        let add = |k: &mut KernelBuilder, left: Expr, s: Var| {
            let sum = combine(op, at(left.clone()).load(), at(left.clone() + s).load());
            k.store(at(left), sum);
        };
        match self.plan.tree() {
            _ if all_done => {}
            Tree::Sequential => {
                k.comment("Tree: the lower half of the threads folds the upper half onto its own.");
                let stop = if to_the_end { 0 } else { left / 2 };
                let half = block / 2;
                k.loop_(
                    "s",
                    half,
                    |s| Expr::from(s).gt(stop),
                    halve(),
                    Unroll::Auto,
                    |k, s| {
                        k.if_(tid.clone().lt(s), |k| add(k, tid.clone(), s));
                        k.barrier();
                    },
                );
            }
            Tree::Interleaved => {
                k.comment("Tree: consecutive threads fold pairs that lie s apart.");
                let stop = if to_the_end { block.into() } else { block / left };
                k.loop_(
                    "s",
                    1,
                    |s| Expr::from(s).lt(stop),
                    double(),
                    Unroll::Auto,
                    |k, s| {
                        let left = k.let_("left", Expr::I32(2) * s * tid.clone());
                        k.if_(Expr::from(left).lt(block), |k| add(k, left.into(), s));
                        k.barrier();
                    },
                );
            }
            Tree::InterleavedDivergent => {
                k.comment(
                    "Tree: the threads whose index is a multiple of 2s fold the value s above.",
                );
                k.loop_(
                    "s",
                    1,
                    |s| Expr::from(s).lt(block),
                    double(),
                    Unroll::Auto,
                    |k, s| {
                        let active = (tid.clone() % (Expr::I32(2) * s)).equals(0);
                        k.if_(active, |k| add(k, tid.clone(), s));
                        k.barrier();
                    },
                );
            }
        }
        if to_the_end {
            let out = Access::new(self.output, [Special::BlockX.into()]);
            k.if_(tid.equals(0), |k| k.store(out, at(0.into()).load()));
        }
        x
    }

    /// The last steps of the tree, whose adders are all in the first warp: unrolled, and ordered by
    /// the warp's barriers, one between everybody's read and the writes and one after the writes.
    fn unrolled_warp(&mut self, x: BufferId, identity: Var) {
        let (op, block, tid) = (self.plan.op(), self.block, self.tid.clone());
        let at = |i: Expr| Access::new(x, [i]);
        let out = Access::new(self.output, [Special::BlockX.into()]);
        let interleaved = self.plan.tree() == Tree::Interleaved;
        let k = &mut self.k;
        k.comment("The threads that are left are one warp: its own barriers order each step, one");
        k.comment("between the reads and the writes and one after the writes.");
        k.if_(tid.clone().lt(WARP), |k| {
            if interleaved {
                let from = block / (2 * WARP);
                k.loop_(
                    "s",
                    from,
                    |s| Expr::from(s).lt(block),
                    double(),
                    Unroll::Full,
                    |k, s| {
                        let left = k.let_("left", Expr::I32(2) * s * tid.clone());
                        let active = Expr::from(left).lt(block);
                        let sum = combine(op, at(left.into()).load(), at(left + s).load());
                        let value = k.let_("value", active.clone().select(sum, identity));
                        k.warp_barrier();
                        k.if_(active, |k| k.store(at(left.into()), value));
                        k.warp_barrier();
                    },
                );
            } else {
                let value = k.mut_("value", at(tid.clone()).load());
                k.loop_(
                    "s",
                    WARP,
                    |s| Expr::from(s).gt(0),
                    halve(),
                    Unroll::Full,
                    |k, s| {
                        k.assign(value, combine(op, value.into(), at(tid.clone() + s).load()));
                        k.warp_barrier();
                        k.store(at(tid.clone()), value);
                        k.warp_barrier();
                    },
                );
            }
            k.if_(tid.clone().equals(0), |k| k.store(out, at(0.into()).load()));
        });
    }

    /// Shuffles inside each warp, one shared word per warp, shuffles inside the first warp.
    fn fold_by_shuffles(&mut self, value: Expr, identity: Var) {
        let (op, block, tid) = (self.plan.op(), self.block, self.tid.clone());
        let out = Access::new(self.output, [Special::BlockX.into()]);
        let one_warp = self.plan.block() == WARP as u32;
        let k = &mut self.k;
        let value = match value {
            Expr::Var(var) => var,
            loaded => k.mut_(accumulator(op), loaded),
        };
        let shuffles = |k: &mut KernelBuilder, value: Var| {
            k.loop_(
                "s",
                WARP / 2,
                |s| Expr::from(s).gt(0),
                halve(),
                Unroll::Full,
                |k, s| {
                    let above = Expr::Call(Intrinsic::ShuffleDown, vec![value.into(), s.into()]);
                    k.assign(value, combine(op, value.into(), above));
                },
            );
        };
        k.comment("Each warp folds its registers: a lane takes the value of the lane s above.");
        shuffles(k, value);
        if one_warp {
            k.if_(tid.equals(0), |k| k.store(out, value));
            return;
        }
        let warps = k.constant("WARPS", block / WARP, "warps of a block");
        let x = k.shared("x", [warps.into()], Layout::row_major(1), "one value per warp");
        k.comment("Lane 0 of each warp hands its value to the first warp, which folds them.");
        let handed = Access::new(x, [tid.clone() / WARP]);
        k.if_((tid.clone() % WARP).equals(0), |k| k.store(handed, value));
        k.barrier();
        k.if_(tid.clone().lt(WARP), |k| {
            let held = Access::new(x, [tid.clone()]).load();
            k.assign(value, tid.clone().lt(warps).select(held, identity));
            shuffles(k, value);
            k.if_(tid.equals(0), |k| k.store(out, value));
        });
    }
}

fn halve() -> Step {
    Step::Div(2.into())
}

fn double() -> Step {
    Step::Mul(2.into())
}

/// `a op b`.
fn combine(op: Op, a: Expr, b: Expr) -> Expr {
    match op {
        Op::Sum => a + b,
        Op::Prod => a * b,
        Op::Max => Expr::Call(Intrinsic::Maximum, vec![a, b]),
        Op::Min => Expr::Call(Intrinsic::Minimum, vec![a, b]),
    }
}

/// The value that changes no other. Of the sum it is −0: −0 + x is x for every x, −0 included.
fn identity(op: Op) -> f32 {
    match op {
        Op::Sum => -0.0,
        Op::Prod => 1.0,
        Op::Max => f32::NEG_INFINITY,
        Op::Min => f32::INFINITY,
    }
}

fn noun(op: Op) -> &'static str {
    match op {
        Op::Sum => "Sum",
        Op::Prod => "Product",
        Op::Max => "Maximum",
        Op::Min => "Minimum",
    }
}

/// The name of the variable in which a thread folds its elements.
fn accumulator(op: Op) -> &'static str {
    match op {
        Op::Sum => "sum",
        Op::Prod => "product",
        Op::Max => "largest",
        Op::Min => "smallest",
    }
}
