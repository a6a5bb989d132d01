//! Tests of the simulator. Each detector runs on a kernel with an injected fault, and on the same
//! kernel without the fault. Each counter runs on a kernel whose count was computed by hand.

mod access_history;
mod atomics;
mod block_orders;
mod bounds;
mod clusters;
mod concurrent_launches;
mod constant_folding;
mod copies;
mod counters;
mod deadlocks;
mod divergence;
mod drawn_orders;
mod elements;
mod fault_reports;
mod grid_races;
mod hidden_races;
mod instruction_limit;
mod interleavings;
mod last_block;
mod launches;
mod lists;
mod livelocks;
mod mbarriers;
mod model;
mod named_barriers;
mod persistent_map;
mod pointers;
mod polling;
mod proxy_model;
mod races;
mod refused_accesses;
mod release_sequences;
mod sass;
mod shadow;
mod traces;
mod values;
mod wavefronts;

use super::{
    Buffer, BufferArg, Counters, Fault, FaultKind, Options, SimError, UnfinishedWarp, launch,
    launch_with,
};
use gemm_dsl::ir::contract::{ContractError, Need, Subject};
use gemm_dsl::ir::{
    Access, AtomicOp, BufferId, BufferLayout, Elem, Expr, Geometry, KernelBuilder, MemoryOrder,
    Operand, Scope, Special, VerifiedKernel,
};
use gemm_dsl::target::element::Element;

/// Kernel with one input `in` and one output `out` of the given lengths.
struct Bench {
    k: KernelBuilder,
    input: BufferId,
    output: BufferId,
    lens: [usize; 2],
}

fn bench(threads: u32, blocks: u64, lens: [usize; 2]) -> Bench {
    let mut b = KernelBuilder::new("kernel");
    let input = b.global("in", Elem::F32, Operand::Input(0));
    let output = b.global("out", Elem::F32, Operand::Output(0));
    for (buffer, len) in [(input, lens[0]), (output, lens[1])] {
        b.shape(buffer, [Expr::U64(len as u64)], [1.into()]);
    }
    b.geometry(Geometry {
        block: (threads, 1),
        grid: [Expr::U64(blocks), Expr::U64(1), Expr::U64(1)],
        blocks_per_sm: Some(1),
    });
    Bench { k: b, input, output, lens }
}

impl Bench {
    fn shared(&mut self, len: i32) -> BufferId {
        self.k.shared("x", Elem::F32, [len.into()], BufferLayout::row_major(1), "")
    }

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

    /// Runs the kernel on the input 0, 1, 2 … and returns the output and the counters.
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
        fault(self.run())
    }

    fn kind(self) -> FaultKind {
        self.fault().kind
    }
}

/// Kernel under construction, with the arrays that its blocks read and write.
struct Team {
    k: KernelBuilder,
    arrays: Vec<Buffer>,
    globals: Vec<BufferId>,
}

fn team(threads: u32, blocks: u64) -> Team {
    let mut b = KernelBuilder::new("kernel");
    b.geometry(Geometry {
        block: (threads, 1),
        grid: [Expr::U64(blocks), Expr::U64(1), Expr::U64(1)],
        blocks_per_sm: Some(1),
    });
    Team { k: b, arrays: Vec::new(), globals: Vec::new() }
}

impl Team {
    fn array<T: Element>(&mut self, name: &str, contents: &[T]) -> BufferId {
        self.bound(name, Buffer::from_slice(contents))
    }

    fn bound(&mut self, name: &str, memory: Buffer) -> BufferId {
        let array = self.k.global(name, memory.elem(), Operand::Temp(self.arrays.len()));
        self.k.shape(array, [Expr::U64(memory.len() as u64)], [1.into()]);
        self.arrays.push(memory);
        self.globals.push(array);
        array
    }

    fn shared(&mut self, name: &str, len: i32) -> BufferId {
        self.k.shared(name, Elem::I32, [len.into()], BufferLayout::row_major(1), "")
    }

    fn finish(self) -> (VerifiedKernel, Vec<Buffer>) {
        (self.k.finish().expect("the test's kernel is valid"), self.arrays)
    }

    /// Declares that the contents of its arrays may depend on the order of blocks.
    fn unordered(&mut self) {
        self.globals.iter().for_each(|&array| self.k.unordered(array));
    }

    /// Runs the kernel and returns the integers of its last array.
    fn run(self) -> Result<Vec<i32>, SimError> {
        self.run_with(&Options::default())
    }

    fn run_with(self, options: &Options<'_>) -> Result<Vec<i32>, SimError> {
        let (kernel, arrays) = self.finish();
        launch_with(&kernel, &arrays, &[], options)?;
        Ok(arrays.last().and_then(Buffer::to_vec_of).unwrap_or_default())
    }

    fn fault(self) -> Fault {
        fault(self.run())
    }

    fn kind(self) -> FaultKind {
        self.fault().kind
    }
}

fn fault<T: std::fmt::Debug>(outcome: Result<T, SimError>) -> Fault {
    match outcome {
        Err(SimError::Fault(fault)) => *fault,
        other => panic!("a fault was expected: {other:?}"),
    }
}

/// Error for an exceeded instruction limit, at an unspecified place.
fn spent<T>(instructions: u64) -> Result<T, SimError> {
    let (kernel, statement) = ("kernel".into(), String::new());
    let at = UnfinishedWarp { block: (0, 0, 0), warp: 0, statement, order: None, turns: None };
    Err(SimError::OutOfInstructions { kernel, instructions, at: Box::new(at) })
}

/// Clears the place of the last instruction from an outcome.
fn anywhere<T>(outcome: Result<T, SimError>) -> Result<T, SimError> {
    match outcome {
        Err(SimError::OutOfInstructions { instructions, .. }) => spent(instructions),
        outcome => outcome,
    }
}

/// Name of the array on which two accesses race.
fn race(kind: FaultKind) -> String {
    match kind {
        FaultKind::Race { place, .. } => place.buffer,
        other => panic!("a race was expected: {other:?}"),
    }
}

/// Unmet requirement of a launch.
fn unmet(outcome: Result<Counters, SimError>) -> ContractError {
    match outcome {
        Err(SimError::Unmet(unmet)) => *unmet,
        other => panic!("an unmet requirement was expected: {other:?}"),
    }
}

fn tid() -> Expr {
    Special::ThreadX.into()
}

fn block() -> Expr {
    Special::BlockX.into()
}

/// Emits statements for one thread of every block.
fn thread(b: &mut KernelBuilder, number: i32, body: impl FnOnce(&mut KernelBuilder)) {
    b.if_(tid().equals(number), body);
}

/// Emits statements for one warp of every block.
fn warp(b: &mut KernelBuilder, number: i32, body: impl FnOnce(&mut KernelBuilder)) {
    b.if_((tid() / 32).equals(number), body);
}

/// Emits statements for the first thread of one block.
fn in_block(b: &mut KernelBuilder, number: i32, body: impl FnOnce(&mut KernelBuilder)) {
    b.if_(block().equals(number).and(tid().equals(0)), body);
}

fn at(buffer: BufferId, index: impl Into<Expr>) -> Access {
    Access::new(buffer, [index.into()])
}

fn load(buffer: BufferId, index: impl Into<Expr>) -> Expr {
    at(buffer, index).load()
}
