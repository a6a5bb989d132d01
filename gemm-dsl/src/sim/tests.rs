//! Self-tests: every detector on a kernel with a planted fault and on the same kernel without it,
//! every counter on a kernel whose count is known on paper.

mod bounds;
mod copies;
mod counters;
mod divergence;
mod launches;
mod pointers;
mod races;
mod values;
mod wavefronts;

use super::{Buffer, Counters, Fault, FaultKind, SimError, launch};
use crate::ir::contract::{Need, Subject, Unmet};
use crate::ir::{
    Access, BufferId, Elem, Expr, Geometry, KernelBuilder, Layout, Operand, Special, VerifiedKernel,
};

/// A kernel with one input `in` and one output `out` of given lengths.
struct Bench {
    k: KernelBuilder,
    input: BufferId,
    output: BufferId,
    lens: [usize; 2],
}

/// A bench whose grid has `blocks` blocks of `threads` threads.
fn bench(threads: u32, blocks: u64, lens: [usize; 2]) -> Bench {
    let mut k = KernelBuilder::new("kernel");
    let input = k.global("in", Elem::F32, Operand::Input(0));
    let output = k.global("out", Elem::F32, Operand::Output(0));
    for (buffer, len) in [(input, lens[0]), (output, lens[1])] {
        k.shape(buffer, [Expr::U64(len as u64)], [1.into()]);
    }
    k.geometry(Geometry {
        block: (threads, 1),
        grid: [Expr::U64(blocks), Expr::U64(1), Expr::U64(1)],
        blocks_per_sm: 1,
    });
    Bench { k, input, output, lens }
}

impl Bench {
    fn shared(&mut self, len: i32) -> BufferId {
        self.k.shared("x", Elem::F32, [len.into()], Layout::row_major(1), "")
    }

    /// The element of the input.
    fn read(&self, at: impl Into<Expr>) -> Expr {
        Access::new(self.input, [at.into()]).load()
    }

    fn write(&mut self, at: impl Into<Expr>, value: impl Into<Expr>) {
        let place = Access::new(self.output, [at.into()]);
        self.k.store(place, value);
    }

    fn finish(self) -> VerifiedKernel {
        self.k.finish().expect("the test's kernel is valid")
    }

    /// Runs the kernel on the input 0, 1, 2 … and gives the output with the counters.
    fn run(self) -> Result<(Vec<f32>, Counters), SimError> {
        let lens = self.lens;
        let input: Vec<f32> = (0..lens[0]).map(|i| i as f32).collect();
        let buffers = [Buffer::from_f32(&input), Buffer::zeros(lens[1])];
        let counters = launch(&self.finish(), &buffers, &[])?;
        Ok((buffers[1].to_vec(), counters))
    }

    fn counters(self) -> Counters {
        self.run().expect("the kernel is right").1
    }

    fn fault(self) -> Fault {
        match self.run() {
            Err(SimError::Fault(fault)) => *fault,
            other => panic!("a fault was expected: {other:?}"),
        }
    }

    fn kind(self) -> FaultKind {
        self.fault().kind
    }
}

/// What a launch is lacking.
fn unmet(outcome: Result<Counters, SimError>) -> Unmet {
    match outcome {
        Err(SimError::Unmet(unmet)) => unmet,
        other => panic!("an unmet requirement was expected: {other:?}"),
    }
}

fn tid() -> Expr {
    Special::ThreadX.into()
}

fn at(buffer: BufferId, index: impl Into<Expr>) -> Access {
    Access::new(buffer, [index.into()])
}

fn load(buffer: BufferId, index: impl Into<Expr>) -> Expr {
    at(buffer, index).load()
}
