//! Kernel of a tiny program.

use super::program::{ARRAYS, Action, Item, LEN, Place, Program, is_global};
use crate::mask::{WARP, lanes_of};
use crate::{Buffer, BufferArg};
use gemm_dsl::ir::{
    Access, AtomicOp, BufferId, BufferLayout, Elem, Expr, Geometry, KernelBuilder, MemoryOrder,
    Operand, Scope, Special, Stmt, Var, VerifiedKernel,
};

/// Builds the kernel. Its buffers are the arrays of the program and a read-only one.
pub(super) fn kernel(program: &Program) -> VerifiedKernel {
    let mut b = KernelBuilder::new("tiny");
    let arrays = ARRAYS.into_iter().enumerate().map(|(i, name)| match is_global(i) {
        true => global(&mut b, name, Operand::Temp(i)),
        false => b.shared(name, Elem::I32, [(LEN as i32).into()], BufferLayout::row_major(1), ""),
    });
    let arrays: Vec<BufferId> = arrays.collect();
    // Their final contents depend on the interleaving.
    (0..arrays.len()).filter(|&i| is_global(i)).for_each(|i| b.unordered(arrays[i]));
    let ones = global(&mut b, "ones", Operand::Input(0));
    b.geometry(Geometry {
        block: (program.threads(), 1),
        grid: [Expr::U64(program.blocks.len() as u64), Expr::U64(1), Expr::U64(1)],
        blocks_per_sm: Some(1),
    });
    let found = b.mut_("found", 0);
    b.if_(tid().equals(0), |b| {
        for array in (0..ARRAYS.len()).filter(|&i| !is_global(i)) {
            b.unrolled("i", LEN as i32, |b, i| b.store(Access::new(arrays[array], [i.into()]), 0));
        }
    });
    b.barrier();
    let text = Text { named: program.named, arrays, ones, found };
    for (block, items) in program.blocks.iter().enumerate() {
        b.if_(Expr::from(Special::BlockX).equals(block as i32), |b| {
            items.iter().for_each(|item| text.item(b, item));
        });
    }
    b.finish().expect("a tiny program is a valid kernel")
}

pub(super) fn buffers() -> Vec<Buffer> {
    let global = (0..ARRAYS.len()).filter(|&i| is_global(i));
    let zeros = global.map(|_| Buffer::zeros_of(Elem::I32, LEN as usize));
    zeros.chain([Buffer::from_slice(&[1; LEN as usize])]).collect()
}

/// The same buffers as launch arguments.
pub(super) fn given() -> Vec<BufferArg> {
    buffers().into_iter().map(BufferArg::One).collect()
}

fn global(b: &mut KernelBuilder, name: &str, operand: Operand) -> BufferId {
    let buffer = b.global(name, Elem::I32, operand);
    b.shape(buffer, [Expr::U64(LEN.into())], [1.into()]);
    buffer
}

fn tid() -> Expr {
    Special::ThreadX.into()
}

/// Parts of the kernel that its statements use.
struct Text {
    /// Number of warps that the named barriers 1 and 2 expect.
    named: [u32; 2],
    arrays: Vec<BufferId>,
    /// Read-only array of ones.
    ones: BufferId,
    /// Value returned by the thread's latest atomic operation.
    found: Var,
}

impl Text {
    fn item(&self, b: &mut KernelBuilder, item: &Item) {
        let of_warp = |warp: u32| (tid() / WARP as i32).equals(warp as i32);
        match *item {
            Item::Act { warp, lanes, guarded, action } => {
                let is = |lane: usize| tid().equals(warp as i32 * WARP as i32 + lane as i32);
                let acts = lanes_of(lanes).map(is).reduce(|one, other| one.or(other));
                let Some(acts) = acts else { return };
                let acts = if guarded { acts.and(Expr::from(self.found).gt(0)) } else { acts };
                b.if_(acts, |b| self.act(b, action));
            }
            Item::Block => b.barrier(),
            Item::Warp { warp } => b.if_(of_warp(warp), KernelBuilder::warp_barrier),
            Item::Named { warp, id, wait } => b.if_(of_warp(warp), |b| {
                let threads = self.named[id as usize - 1] * WARP as u32;
                b.push(Stmt::NamedBarrier { id, threads, wait });
            }),
        }
    }

    fn act(&self, b: &mut KernelBuilder, action: Action) {
        match action {
            Action::Read(place) => _ = b.let_("value", self.access(place).load()),
            Action::Write(place) if place.vector => {
                let ones = Access::new(self.ones, [0.into()]).vector();
                b.store(self.access(place), ones.load());
            }
            Action::Write(place) => b.store(self.access(place), 1),
            Action::Atomic(place, order, scope) => {
                self.atomic(b, AtomicOp::Add, place, order, scope)
            }
            Action::Swap(place, order, scope) => {
                let swap = AtomicOp::CompareExchange { expected: 0.into() };
                self.atomic(b, swap, place, order, scope);
            }
            Action::Copy { target, source } => {
                let (target, source) = (self.access(target), self.access(source));
                b.push(Stmt::CopyAsync { target, source, guard: None });
            }
            Action::Commit => b.push(Stmt::CopyCommit),
            Action::Wait(pending) => b.push(Stmt::CopyWait { pending: (pending as i32).into() }),
            Action::Fence(order, scope) => b.fence(order, scope),
        }
    }

    fn atomic(
        &self,
        b: &mut KernelBuilder,
        op: AtomicOp,
        on: Place,
        order: MemoryOrder,
        scope: Scope,
    ) {
        let old = b.atomic("old", op, self.access(on), 1, order, scope);
        b.assign(self.found, old);
    }

    fn access(&self, place: Place) -> Access {
        let element: Expr = match (place.vector, place.stride) {
            (true, _) => 0.into(),
            (_, 0) => (place.first as i32).into(),
            (_, stride) => {
                (Expr::from(place.first as i32) + tid() % WARP as i32 * stride as i32) % LEN as i32
            }
        };
        let access = Access::new(self.arrays[place.array], [element]);
        if place.vector { access.vector() } else { access }
    }
}
