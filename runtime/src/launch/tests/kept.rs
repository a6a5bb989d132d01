//! Requests of the runtime to a back end between launches, and its reports about zeroed scratch
//! memory.

use super::programs::fold;
use crate::Device;
use crate::backend::StepCounters;
use crate::backend::gpu::GpuAddress;
use crate::backend::{Backend, Place};
use crate::blocks::Blocks;
use crate::device::On;
use crate::error::{Error, Result};
use crate::kernel_arg::KernelArg;
use crate::launch::{BoundArray, launch};
use crate::program::CachedProgram;
use crate::shape::Shape;
use gemm_dsl::Plan;
use gemm_dsl::ir::program::{KernelId, TempFill};
use gemm_dsl::ir::{Elem, Extent, Operand, Variant, VerifiedProgram};
use gemm_dsl::spec::SgemmSpec;
use gemm_dsl::target::element::Element;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// Back end that runs nothing; its launch with the number `fails` returns an error.
struct Recorder {
    fails: usize,
    launches: Cell<usize>,
    /// Arguments of all calls of `holds_zeros`, in order.
    told: RefCell<Vec<bool>>,
    /// Number of elements requested, by temporary.
    asked: RefCell<BTreeMap<usize, u64>>,
}

impl Recorder {
    fn new(fails: usize) -> Self {
        let (told, asked) = (RefCell::default(), RefCell::default());
        Self { fails, launches: Cell::new(0), told, asked }
    }

    fn address(elem: Elem) -> GpuAddress {
        GpuAddress { at: 0, elem }
    }
}

impl Backend for Recorder {
    type Address = GpuAddress;
    type Allocation = ();
    type Pointers = ();
    type Workspace<'b> = &'b Self;

    fn alloc(&self, _: Elem, _: u64) -> Result<()> {
        Ok(())
    }

    fn address((): &()) -> GpuAddress {
        Self::address(Elem::F32)
    }

    fn pointers(&self, _: &[GpuAddress]) -> Result<()> {
        Ok(())
    }

    fn zero(&self, _: &GpuAddress, _: u64) -> Result<()> {
        panic!("zeros that are kept are nobody's to set")
    }

    fn allocations(&self) -> u64 {
        0
    }

    fn fill<T: Element>(&self, _: &GpuAddress, _: T, _: &Blocks) -> Result<()> {
        Ok(())
    }

    fn copy(&self, _: &GpuAddress, _: &GpuAddress, _: &Blocks) -> Result<()> {
        Ok(())
    }

    fn write<T: Element>(&self, _: &GpuAddress, _: &[T], _: &Blocks) -> Result<()> {
        Ok(())
    }

    fn read<T: Element>(&self, _: &mut [T], _: &GpuAddress, _: &Blocks) -> Result<()> {
        Ok(())
    }

    fn workspace(&self) -> &Self {
        self
    }

    fn scratch<'b>(
        &'b self,
        _: &mut &'b Self,
        number: usize,
        elem: Elem,
        len: u64,
    ) -> Result<GpuAddress> {
        self.asked.borrow_mut().insert(number, len);
        Ok(Self::address(elem))
    }

    fn scratch_of_zeros<'b>(
        &'b self,
        workspace: &mut &'b Self,
        number: usize,
        elem: Elem,
        len: u64,
    ) -> Result<GpuAddress> {
        self.scratch(workspace, number, elem, len)
    }

    fn holds_zeros(workspace: &mut &Self, holds: bool) {
        workspace.told.borrow_mut().push(holds);
    }

    fn launch(
        &self,
        _: &CachedProgram,
        _: KernelId,
        _: [u32; 3],
        _: bool,
        _: &[KernelArg<'_, GpuAddress, ()>],
    ) -> Result<Option<Box<StepCounters>>> {
        let number = self.launches.replace(self.launches.get() + 1);
        match number == self.fails {
            true => Err(Error::Internal("as it was told".to_owned())),
            false => Ok(None),
        }
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
}

/// Program of three launches. The first writes to the zeroed temporary, and the second reads it.
#[test]
fn a_program_that_stops_halfway_leaves_no_zeros() {
    let device = Device::simulator();
    let mut program = fold(&[Variant::Only]).into_inner();
    program.temps[0].fill = TempFill::Kept;
    let program = VerifiedProgram::new(program).expect("sound");
    let program = device.programs().get_or("test", "kept", || Ok(program)).expect("sound");
    for (fails, expected) in [
        // No launch was issued, so the memory is still zero.
        (0, &[][..]),
        (1, &[false]),
        (2, &[false, false]),
        (3, &[false, false, false, true]),
    ] {
        let backend = Recorder::new(fails);
        let vector = |name, at, len| {
            let address = GpuAddress { at, elem: Elem::F32 };
            BoundArray::vector(name, Place::One { address, len }, len)
        };
        let on = On { device: &device, backend: &backend };
        let (input, output) = (vector("input", 0x1000, 60), vector("output", 0x100, 1));
        let arrays = [(Operand::Input(0), input), (Operand::Output(0), output)];
        let values = program.program().bind(&[(Extent::LENGTH, 60)], &[]).expect("a length");
        let outcome = launch(on, &program, &values, &arrays);
        assert_eq!(outcome.is_ok(), fails == 3, "{fails}");
        assert_eq!(*backend.told.borrow(), expected, "the launch that failed: {fails}");
    }
}

/// Number of SMs of the recorded device.
const SMS: u64 = 16;

/// Number of partial sums and of tickets that a launch of a spec requests.
fn asked(line: &str, [m, n, k]: [usize; 3], alpha: f32) -> [u64; 2] {
    let device = Device::simulator();
    let spec: SgemmSpec = line.parse().expect("a line");
    let program = device.programs().get_or("test", line, || Ok(spec.plan()?.program()?));
    let program = program.expect("a sound spec");
    let matrix = |name, at, rows, cols| {
        let place = Place::One { address: GpuAddress { at, elem: Elem::F32 }, len: 1 << 40 };
        let shape = Shape { start: 0, rows, cols, row_stride: cols, col_stride: 1, batch: None };
        BoundArray::matrix(name, place, shape)
    };
    let (a, b, c) =
        (matrix("a", 1 << 40, m, k), matrix("b", 2 << 50, k, n), matrix("c", 3 << 50, m, n));
    let [m, n, k] = [m, n, k].map(|extent| extent as u64);
    let mut extents = vec![(Extent::M, m), (Extent::N, n), (Extent::K, k)];
    if program.program().extents.contains(&Extent::SMS) {
        extents.push((Extent::SMS, SMS));
    }
    let numbers = [("alpha", alpha), ("beta", 0.5)].map(|(name, of)| (name, of.to_bits().into()));
    let values = program.program().bind(&extents, &numbers).expect("a problem");
    let backend = Recorder::new(usize::MAX);
    let arrays = [(Operand::Input(0), a), (Operand::Input(1), b), (Operand::Output(0), c)];
    launch(On { device: &device, backend: &backend }, &program, &values, &arrays)
        .expect("a launch");
    let asked = backend.asked.borrow();
    [asked[&0], asked[&1]]
}

/// Scratch memory is requested for partial sums, and not at all if no two blocks share a tile. The
/// size does not depend on alpha. A launch with alpha 0 before a graph capture therefore allocates
/// enough memory for the captured launches.
#[test]
fn a_product_asks_for_as_much_memory_as_its_blocks_leave() {
    let tile = "tile: 16x16x8, thread: 4x4, scaled";
    let direct = "block: 4x4, thread: 4x4, unroll: 8, scaled";
    // Four tiles of 256 accumulators, and five K tiles.
    let size = [32, 32, 40];
    for (keys, size, expected) in [
        ("split_k: 3", size, [4 * 3 * 256, 4]),
        ("split_k: 1000", size, [4 * 5 * 256, 4]),
        ("split_k: 3", [32, 32, 8], [0, 0]),
        ("split_k: 3", [32, 32, 0], [0, 0]),
        // Four blocks are available for each tile, and `auto` chooses two partitions.
        ("split_k: auto", size, [4 * 2 * 256, 4]),
        ("split_k: auto", [32, 32, 31], [0, 0]),
        // There are as many tiles as blocks.
        ("split_k: auto", [64, 64, 40], [0, 0]),
        // Two blocks for each tile, with two partial tiles each.
        ("stream_k", size, [8 * 2 * 256, 16]),
        ("stream_k", [32, 32, 31], [0, 0]),
        ("stream_k", [64, 64, 40], [0, 0]),
        ("stream_k", [64, 80, 40], [16 * 2 * 256, 32]),
        // Tiles with a single step along K.
        ("stream_k", [64, 80, 8], [0, 0]),
    ] {
        let lines = match keys {
            "stream_k" => vec![tile],
            _ => vec![tile, direct],
        };
        for line in lines {
            for alpha in [1.0, 0.0, -0.0] {
                let line = format!("{line}, {keys}");
                assert_eq!(asked(&line, size, alpha), expected, "`{line}` at {size:?}, {alpha}");
            }
        }
    }
}
