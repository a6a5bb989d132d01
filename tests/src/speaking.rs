//! Kernels whose blocks, or whose warps, speak to one another: built by hand, as no spec asks for them.
//! What each must leave in memory is known on paper, whatever the order in which blocks run.

use gemm_dsl::ir::{
    Access, AtomicOp, BufferId, BufferLayout, Elem, Expr, For, Geometry, KernelBuilder,
    MemoryOrder, Operand, Scope, Special, VerifiedKernel,
};
use gemm_sim::{Buffer, SimError};

/// One kernel, launched several times on the same memory.
pub struct Speaking {
    /// What is tested.
    pub name: &'static str,
    /// The kernel: its parameters are buffers only.
    pub kernel: VerifiedKernel,
    /// What the buffers hold before the first launch.
    pub before: Vec<(Elem, Vec<u64>)>,
    /// What they must hold after the last.
    pub after: Vec<Vec<u64>>,
}

/// Blocks of a launch.
pub const BLOCKS: u32 = 48;
/// Threads of a block.
pub const THREADS: u32 = 128;
/// Launches, one after the other: what a launch leaves in memory must not disturb the next.
pub const LAUNCHES: usize = 3;

impl Speaking {
    /// What the buffers hold after the launches on the simulator.
    ///
    /// # Errors
    /// What the simulator finds.
    pub fn simulate(&self) -> Result<Vec<Vec<u64>>, SimError> {
        let before = self.before.iter();
        let buffers: Vec<Buffer> =
            before.map(|(elem, bits)| Buffer::from_bits(*elem, bits.iter().copied())).collect();
        for _ in 0..LAUNCHES {
            gemm_sim::launch(&self.kernel, &buffers, &[])?;
        }
        Ok(buffers.iter().map(Buffer::bits).collect())
    }
}

/// All of them.
pub fn kernels() -> Vec<Speaking> {
    vec![
        ticket("ticket_acq_rel", MemoryOrder::AcqRel, false),
        ticket("ticket_fences", MemoryOrder::Relaxed, true),
        roles(),
        folds(),
    ]
}

fn builder(name: &str) -> KernelBuilder {
    let mut k = KernelBuilder::new(name);
    let grid = [Expr::U64(BLOCKS.into()), Expr::U64(1), Expr::U64(1)];
    k.geometry(Geometry { block: (THREADS, 1), grid, blocks_per_sm: 1 });
    k
}

fn array(k: &mut KernelBuilder, name: &str, elem: Elem, operand: Operand, len: u32) -> BufferId {
    let buffer = k.global(name, elem, operand);
    k.shape(buffer, [Expr::U64(len.into())], [1.into()]);
    buffer
}

fn at(buffer: BufferId, index: impl Into<Expr>) -> Access {
    Access::new(buffer, [index.into()])
}

/// The elements of the input, small enough that every order of a sum of them is exact.
fn input() -> Vec<f32> {
    (0..BLOCKS * THREADS).map(|i| (i * 37 % 101) as f32 - 50.0).collect()
}

/// Every block writes a row of partial results and takes a ticket; the one that takes the last adds up
/// the rows, column by column in the order of blocks, and puts the tickets back.
fn ticket(name: &'static str, order: MemoryOrder, fences: bool) -> Speaking {
    let mut k = builder(name);
    let source = array(&mut k, "in", Elem::F32, Operand::Input(0), BLOCKS * THREADS);
    let partial = array(&mut k, "partial", Elem::F32, Operand::Temp(0), BLOCKS * THREADS);
    let tickets = array(&mut k, "tickets", Elem::U32, Operand::Temp(1), 1);
    let out = array(&mut k, "out", Elem::F32, Operand::Output(0), THREADS);
    let last = k.shared("last", Elem::U32, [4.into()], BufferLayout::row_major(1), "");
    let tid = k.let_("tid", Special::ThreadX);
    let here = k.let_("here", Expr::from(Special::BlockX) * THREADS as i32 + tid);
    k.store(at(partial, here), at(source, here).load() * 2.0);
    k.barrier();
    k.if_(Expr::from(tid).equals(0), |k| {
        if fences {
            // Behind the barrier: what the other threads have written comes before it too.
            k.fence(MemoryOrder::AcqRel, Scope::Device);
        }
        let one = Expr::U32(1);
        let old = k.atomic("old", AtomicOp::Add, at(tickets, 0), one, order, Scope::Device);
        k.store(at(last, 0), old);
    });
    k.barrier();
    k.if_(at(last, 0).load().equals(Expr::U32(BLOCKS - 1)), |k| {
        if fences {
            k.if_(Expr::from(tid).equals(0), |k| k.fence(MemoryOrder::SeqCst, Scope::Device));
            k.barrier();
        }
        let sum = k.mut_("sum", 0.0);
        k.loop_("row", For::below(0, BLOCKS as i32), |k, row| {
            let part = at(partial, row * THREADS as i32 + tid).load();
            k.assign(sum, Expr::from(sum) + part);
        });
        k.store(at(out, tid), sum);
        k.if_(Expr::from(tid).equals(0), |k| {
            let zero = Expr::U32(0);
            k.atomic_only(
                AtomicOp::Exchange,
                at(tickets, 0),
                zero,
                MemoryOrder::Relaxed,
                Scope::Device,
            );
        });
    });
    let values = input();
    let bits = |values: &[f32]| values.iter().map(|v| v.to_bits().into()).collect::<Vec<u64>>();
    let doubled: Vec<f32> = values.iter().map(|v| v * 2.0).collect();
    let columns = 0..THREADS as usize;
    let sums: Vec<f32> =
        columns.map(|c| doubled.iter().skip(c).step_by(THREADS as usize).sum()).collect();
    Speaking {
        name,
        kernel: k.finish().expect("the kernel is valid"),
        before: vec![
            (Elem::F32, bits(&values)),
            (Elem::F32, vec![u64::from(f32::NAN.to_bits()); values.len()]),
            (Elem::U32, vec![0]),
            (Elem::F32, vec![u64::from(f32::NAN.to_bits()); THREADS as usize]),
        ],
        after: vec![bits(&values), bits(&doubled), vec![0], bits(&sums)],
    }
}

/// Half of the warps fill a buffer and go on, half wait until it is full and empty it, several times.
fn roles() -> Speaking {
    const ROUNDS: i32 = 5;
    let half = THREADS as i32 / 2;
    let mut k = builder("roles");
    let out = array(&mut k, "out", Elem::I32, Operand::Output(0), BLOCKS * THREADS / 2);
    let buffer = k.shared("buffer", Elem::I32, [half.into()], BufferLayout::row_major(1), "");
    let tid = k.let_("tid", Special::ThreadX);
    let (full, empty) = (1, 2);
    k.if_else(
        Expr::from(tid).lt(half),
        |k| {
            k.loop_("round", For::below(0, ROUNDS), |k, round| {
                k.store(at(buffer, tid), Expr::from(round) * 1000 + tid);
                k.named_arrive(full, THREADS);
                k.named_barrier(empty, THREADS);
            });
        },
        |k| {
            let mine = k.let_("mine", tid - half);
            let sum = k.mut_("sum", 0);
            k.loop_("round", For::below(0, ROUNDS), |k, _| {
                k.named_barrier(full, THREADS);
                let other = Expr::from(half - 1) - mine;
                k.assign(sum, Expr::from(sum) * 3 + at(buffer, other).load());
                k.named_arrive(empty, THREADS);
            });
            k.store(at(out, Expr::from(Special::BlockX) * half + mine), sum);
        },
    );
    let sum = |i: i32| (0..ROUNDS).fold(0, |sum, round| sum * 3 + round * 1000 + half - 1 - i);
    let sums = (0..BLOCKS).flat_map(|_| (0..half).map(|i| sum(i) as u32 as u64)).collect();
    Speaking {
        name: "roles",
        kernel: k.finish().expect("the kernel is valid"),
        before: vec![(Elem::I32, vec![0x55; (BLOCKS * THREADS / 2) as usize])],
        after: vec![sums],
    }
}

/// All threads of all blocks fold into one word of each type, through a word of the block for some.
fn folds() -> Speaking {
    let mut k = builder("folds");
    let sum = array(&mut k, "sum", Elem::U32, Operand::Output(0), 1);
    let least = array(&mut k, "least", Elem::I32, Operand::Output(1), 1);
    let most = array(&mut k, "most", Elem::I64, Operand::Output(2), 1);
    let total = array(&mut k, "total", Elem::U64, Operand::Output(3), 1);
    let block = k.shared("block_sum", Elem::U32, [4.into()], BufferLayout::row_major(1), "");
    let tid = k.let_("tid", Special::ThreadX);
    let n = Expr::from(Special::BlockX) * THREADS as i32 + tid;
    let here = k.let_("here", (n * 7919) % 10007 - 5000);
    k.if_(Expr::from(tid).equals(0), |k| k.store(at(block, 0), Expr::U32(0)));
    k.barrier();
    let big = Expr::U32(0x8000_0001);
    k.atomic_only(AtomicOp::Add, at(block, 0), big, MemoryOrder::Relaxed, Scope::Block);
    k.atomic_only(AtomicOp::Min, at(least, 0), here, MemoryOrder::Relaxed, Scope::Device);
    let wide = Expr::from(here).cast(Elem::I64) * Expr::I64(1 << 33);
    k.atomic_only(AtomicOp::Max, at(most, 0), wide, MemoryOrder::Release, Scope::Device);
    k.atomic_only(
        AtomicOp::Add,
        at(total, 0),
        Expr::U64(1 << 40),
        MemoryOrder::AcqRel,
        Scope::Device,
    );
    k.barrier();
    k.if_(Expr::from(tid).equals(0), |k| {
        let value = at(block, 0).load();
        k.atomic_only(AtomicOp::Add, at(sum, 0), value, MemoryOrder::Relaxed, Scope::Device);
    });
    let threads = u64::from(BLOCKS * THREADS);
    let here = |n: i64| n * 7919 % 10007 - 5000;
    let all = || (0..threads as i64).map(here);
    let times = LAUNCHES as u64;
    let expected = [
        u64::from((threads * times * 0x8000_0001) as u32),
        u64::from(all().min().unwrap_or_default() as i32 as u32),
        (all().max().unwrap_or_default() << 33) as u64,
        (threads * times) << 40,
    ];
    Speaking {
        name: "folds",
        kernel: k.finish().expect("the kernel is valid"),
        before: vec![
            (Elem::U32, vec![0]),
            (Elem::I32, vec![7]),
            (Elem::I64, vec![i64::MIN as u64]),
            (Elem::U64, vec![0]),
        ],
        after: expected.map(|bits| vec![bits]).into(),
    }
}
