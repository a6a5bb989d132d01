//! Measures the simulator: thread-instructions and multiply-adds per second and core.
//!
//! Run with `cargo run --release -p gemm-sim --example sim_throughput`. Set
//! `RAYON_NUM_THREADS=1` for the figure of one core.

use gemm_dsl::ir::{
    Access, BufferLayout, Change, Elem, Expr, For, Geometry, Intrinsic, IrError, KernelBuilder,
    Operand, Special, VerifiedKernel,
};
use gemm_sim::{Buffer, Counters, SimError, launch};
use std::error::Error;
use std::time::Instant;

fn thread() -> Expr {
    Special::ThreadX.into()
}

/// Inner loop of a tiled GEMM. Each step reads fragments of 8 values of `A` and of `B` from shared
/// memory by 16-byte accesses, then executes 64 multiply-adds.
fn product(steps: i32) -> Result<VerifiedKernel, IrError> {
    let mut k = KernelBuilder::new("product");
    let c = k.global("C", Elem::F32, Operand::Output(0));
    k.shape(c, [Expr::U64(64 * 256 * 16)], [1.into()]);
    let tile = |k: &mut KernelBuilder, name: &str| {
        let dims = [Expr::from(8), Expr::from(128)];
        k.shared(name, Elem::F32, dims, BufferLayout::row_major(2), "")
    };
    let (a_tile, b_tile) = (tile(&mut k, "As"), tile(&mut k, "Bs"));
    k.geometry(Geometry {
        block: (256, 1),
        grid: [Expr::U64(16), Expr::U64(1), Expr::U64(1)],
        blocks_per_sm: None,
    });
    let row = k.let_("row", thread() / 16 * 4);
    let col = k.let_("col", thread() % 16 * 4);
    let acc = k.registers("acc", Elem::F32, [8.into(), 8.into()], "");
    k.unrolled("m", 8, |k, m| {
        k.unrolled("n", 8, |k, n| k.store(Access::new(acc, [m.into(), n.into()]), 0.0));
    });
    k.unrolled("i", 4, |k, i| {
        let at = [(i * 256 + thread()) / 128, thread() % 128];
        k.store(Access::new(a_tile, at.clone()), 0.5);
        k.store(Access::new(b_tile, at), 0.25);
    });
    k.barrier();
    k.loop_("t", For::below(0, steps), |k, _| {
        let a = k.registers("a", Elem::F32, [8.into()], "");
        let b = k.registers("b", Elem::F32, [8.into()], "");
        k.unrolled("kk", 8, |k, kk| {
            k.unrolled("half", 2, |k, half| {
                let from = |tile, at: Expr| Access::new(tile, [kk.into(), at]).vector();
                let to = |fragment| Access::new(fragment, [half * 4]).vector();
                k.store(to(a), from(a_tile, row + half * 64).load());
                k.store(to(b), from(b_tile, col + half * 64).load());
            });
            k.unrolled("m", 8, |k, m| {
                k.unrolled("n", 8, |k, n| {
                    let acc = Access::new(acc, [m.into(), n.into()]);
                    let operands = vec![
                        Access::new(a, [m.into()]).load(),
                        Access::new(b, [n.into()]).load(),
                        acc.clone().load(),
                    ];
                    k.store(acc, Expr::Call(Intrinsic::Fma, operands));
                });
            });
        });
    });
    k.unrolled("m", 8, |k, m| {
        k.unrolled("n", 8, |k, n| {
            let block = Expr::from(Special::BlockX);
            let at = ((block * 64 + m * 8 + n) * 256 + thread()).wide();
            k.store(Access::new(c, [at]), Access::new(acc, [m.into(), n.into()]).load());
        });
    });
    k.finish()
}

/// Reduction tree in shared memory with block barriers.
fn tree(blocks: u64) -> Result<VerifiedKernel, IrError> {
    let mut k = KernelBuilder::new("tree");
    let input = k.global("in", Elem::F32, Operand::Input(0));
    k.shape(input, [Expr::U64(256 * blocks)], [1.into()]);
    let out = k.global("out", Elem::F32, Operand::Output(0));
    k.shape(out, [Expr::U64(blocks)], [1.into()]);
    let x = k.shared("x", Elem::F32, [256.into()], BufferLayout::row_major(1), "");
    k.geometry(Geometry {
        block: (256, 1),
        grid: [Expr::U64(blocks), Expr::U64(1), Expr::U64(1)],
        blocks_per_sm: None,
    });
    let at = |i: Expr| Access::new(x, [i]);
    let block = Expr::from(Special::BlockX);
    let element = Access::new(input, [(block.clone() * 256 + thread()).wide()]);
    k.store(at(thread()), element.load());
    k.barrier();
    k.loop_("s", For::above(128, 0).change(Change::Div(2.into())), |k, s| {
        k.if_(thread().lt(s), |k| {
            k.store(at(thread()), at(thread()).load() + at(thread() + s).load());
        });
        k.barrier();
    });
    k.if_(thread().equals(0), |k| {
        k.store(Access::new(out, [block.wide()]), at(0.into()).load());
    });
    k.finish()
}

fn report(name: &str, run: impl Fn() -> Result<Counters, SimError>) -> Result<(), SimError> {
    run()?;
    let start = Instant::now();
    let counters = run()?;
    let seconds = start.elapsed().as_secs_f64();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = std::env::var("RAYON_NUM_THREADS").ok().and_then(|n| n.parse().ok());
    let cores = threads.unwrap_or(cores) as f64;
    let per_core = |n: u64| n as f64 / seconds / cores / 1e6;
    println!(
        "{name}: {:.0} M thread-instructions/s per core ({:.0} M fma/s, {:.2} s)",
        per_core(counters.thread_instructions),
        per_core(counters.fmas),
        seconds
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let kernel = product(100)?;
    let c = Buffer::zeros(64 * 256 * 16);
    report("shared-memory product", || launch(&kernel, std::slice::from_ref(&c), &[]))?;
    let blocks = 4096;
    let kernel = tree(blocks)?;
    let buffers =
        [Buffer::from_f32(&vec![1.0; 256 * blocks as usize]), Buffer::zeros(blocks as usize)];
    report("shared-memory tree", || launch(&kernel, &buffers, &[]))?;
    Ok(())
}
