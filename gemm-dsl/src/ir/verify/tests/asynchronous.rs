//! Rules of asynchronous units.

use super::{breaks, kernel, rule};
use crate::ir::{
    Access, AtomicOp, BufferId, BufferLayout, Elem, Expr, Geometry, KernelBuilder, MbarrierId,
    MbarrierRef, MemoryOrder, Operand, Scope, Stmt, TensorCopy, TensorMap, TensorSwizzle,
    VerifiedKernel, Wgmma,
};
use crate::target::Format;

/// Kernel of `threads` threads with this body.
fn doing(threads: u32, body: impl FnOnce(&mut KernelBuilder)) -> KernelBuilder {
    kernel(Elem::F32, |b, _, _| {
        let grid = [const { Expr::U64(1) }; 3];
        b.geometry(Geometry { block: (threads, 1), grid, blocks_per_sm: Some(1) });
        body(b);
    })
}

/// Kernel with two barriers and this body.
fn at_barrier(body: impl FnOnce(&mut KernelBuilder, MbarrierId)) -> KernelBuilder {
    doing(32, |b| {
        let barriers = b.mbarriers("full", 2, "");
        body(b, barriers);
    })
}

#[test]
fn a_barrier_in_shared_memory_has_a_number_of_arrivals() {
    let init = |count: Expr| at_barrier(|b, of| b.mbarrier_init(of, 1, count));
    for count in [1, (1 << 20) - 1] {
        assert_eq!(rule(init(count.into())), Ok(()));
    }
    breaks(init(0.into()), "a barrier of 0 arrivals");
    breaks(init((1 << 20).into()), "a barrier of 1048576 arrivals");
    breaks(init(Expr::U64(1)), "a count that is not I32");
    breaks(at_barrier(|b, of| b.mbarrier_wait(of, 0, Expr::U64(0))), "a parity that is not I32");
    breaks(
        at_barrier(|b, of| b.mbarrier_arrive_expect(of, 0, Expr::U64(0))),
        "the number of bytes is not an I32",
    );
    breaks(at_barrier(|b, of| b.mbarrier_arrive(of, Expr::F32(0.0))), "which of full");
    breaks(at_barrier(|b, _| b.mbarrier_arrive(MbarrierId { id: 1 }, 0)), "unknown barriers");
    for (count, says) in [(0, "0 barriers many"), (5000, "5000 barriers many")] {
        breaks(doing(32, |b| _ = b.mbarriers("many", count, "")), says);
    }
    breaks(at_barrier(|b, _| _ = b.mbarriers("full", 1, "")), "`full` is declared twice");
    let kernel = at_barrier(|b, of| b.mbarrier_arrive(of, 0)).finish().expect("a sound kernel");
    assert_eq!((kernel.shared_bytes(), kernel.min_arch()), (16, 90));
    assert!(!kernel.contract().is_specific);
}

/// Properties of a TMA copy.
struct Boxed {
    tile: Vec<u32>,
    swizzle: TensorSwizzle,
    elem: Elem,
    to: Elem,
    dims: Vec<i32>,
    lies: Option<TensorSwizzle>,
    pad: i32,
    operand: Operand,
}

impl Default for Boxed {
    fn default() -> Self {
        Self {
            tile: vec![16, 64],
            swizzle: TensorSwizzle::Bytes128,
            elem: Elem::Bf16,
            to: Elem::Bf16,
            dims: vec![2, 32, 64],
            lies: Some(TensorSwizzle::Bytes128),
            pad: 0,
            operand: Operand::Temp(0),
        }
    }
}

impl Boxed {
    fn kernel(self, more: impl FnOnce(&mut KernelBuilder, [BufferId; 2])) -> KernelBuilder {
        doing(32, |b| {
            let map = TensorMap { tile: self.tile.clone().into(), swizzle: self.swizzle };
            let from = b.tensor_map("g", self.elem, self.operand, map);
            let rank = self.tile.len().clamp(1, 3);
            let dims = [Expr::I32(4), 64.into(), 256.into()];
            let strides = [Expr::I32(64 * 256), 256.into(), 1.into()];
            b.shape(from, dims[3 - rank..].to_vec(), strides[3 - rank..].to_vec());
            let swizzle = self.lies.and_then(|swizzle| swizzle.layout(self.to));
            let order = (0..self.dims.len()).collect();
            let layout = BufferLayout::Array { order, pad: self.pad.into(), swizzle };
            let dims: Vec<Expr> = self.dims.iter().map(|dim| Expr::I32(*dim)).collect();
            let to = b.shared("s", self.to, dims, layout, "");
            let barriers = b.mbarriers("full", 1, "");
            let first = Access::new(to, vec![0.into(); self.dims.len()]);
            b.tensor_copy(from, vec![0.into(); rank], first, (barriers, 0.into()));
            more(b, [from, to]);
        })
    }

    fn breaks(self, says: &str) {
        breaks(self.kernel(|_, _| ()), says);
    }
}

#[test]
fn a_box_fits_its_map_and_where_it_goes() {
    let made = || Boxed::default().kernel(|_, _| ());
    let kernel = made().finish().expect("a sound kernel");
    // A barrier after an array that is aligned to 1024 bytes.
    assert_eq!((kernel.shared_bytes(), kernel.min_arch()), (2 * 32 * 128 + 8, 90));
    assert_eq!(kernel.contract().min_release, (12, 0));
    let sound = |boxed: Boxed| assert_eq!(rule(boxed.kernel(|_, _| ())), Ok(()));
    sound(Boxed { tile: vec![2, 32, 64], ..Boxed::default() });
    sound(Boxed { tile: vec![1, 8, 64], ..Boxed::default() });
    let plain = || Boxed { swizzle: TensorSwizzle::None, lies: None, ..Boxed::default() };
    sound(plain());
    sound(Boxed { tile: vec![3, 8], dims: vec![3, 8], ..plain() });
    Boxed { tile: vec![64], ..Boxed::default() }.breaks("a box of rank 1 of g, whose rank is 1");
    Boxed { tile: vec![2, 16, 64], ..Boxed::default() }.breaks("has gaps in s");
    Boxed { tile: vec![64, 64], ..Boxed::default() }.breaks("has gaps in s");
    Boxed { tile: vec![16, 257], ..plain() }.breaks("a box of [16, 257] elements of g");
    Boxed { tile: vec![16, 0], ..plain() }.breaks("a box of [16, 0] elements of g");
    Boxed { tile: vec![16, 9], ..plain() }.breaks("rows of 18 bytes of g");
    Boxed { tile: vec![16, 32], ..Boxed::default() }
        .breaks("rows of 64 bytes of g, swizzled Bytes128");
    Boxed { tile: vec![16, 32], ..plain() }.breaks("has gaps in s");
    Boxed { lies: None, ..Boxed::default() }.breaks("g is swizzled Bytes128, and s None");
    Boxed { lies: Some(TensorSwizzle::Bytes64), ..Boxed::default() }
        .breaks("no box fits the layout of s");
    Boxed { pad: 64, ..Boxed::default() }.breaks("no box fits the layout of s");
    Boxed { to: Elem::F16, ..Boxed::default() }.breaks("of another type");
    Boxed { operand: Operand::Output(1), ..Boxed::default() }.breaks("g is read by a tensor map");
    let accessed = Boxed::default().kernel(|b, [from, _]| {
        _ = b.let_("x", Access::new(from, [0.into(), 0.into()]).load());
    });
    breaks(accessed, "g is accessed, but has only a tensor map");
    let integers = Boxed {
        elem: Elem::I32,
        to: Elem::I32,
        dims: vec![32, 32],
        tile: vec![8, 32],
        ..Boxed::default()
    };
    let atomic = integers.kernel(|b, [_, to]| {
        let word = Access::new(to, [0.into(), 0.into()]);
        b.atomic_only(AtomicOp::Add, word, 1, MemoryOrder::Relaxed, Scope::Block);
    });
    breaks(atomic, "an atomic on shared memory that asynchronous units access");
    let unmapped = Boxed::default().kernel(|b, [_, to]| {
        let (barriers, index) = (MbarrierId { id: 0 }, Expr::I32(0));
        b.push(Stmt::TensorCopy(TensorCopy {
            from: to,
            at: Vec::new(),
            to: Access::new(to, vec![0.into(); 3]),
            barrier: MbarrierRef { barriers, index },
            multicast: None,
        }));
    });
    breaks(unmapped, "a copy of a box without a tensor map");
}

/// Kernel with two tiles and accumulators and a changed `wgmma` at the end.
fn multiplied(
    threads: u32,
    (elem, row): (Elem, i32),
    change: impl FnOnce(&mut Wgmma),
) -> KernelBuilder {
    doing(threads, |b| {
        let layout = || BufferLayout::Array {
            order: vec![0, 1],
            pad: 0.into(),
            swizzle: TensorSwizzle::Bytes128.layout(elem),
        };
        let mut tile = |name: &str| {
            let tile = b.shared(name, elem, [64.into(), row.into()], layout(), "");
            Access::new(tile, [0.into(), 0.into()])
        };
        let (first, second) = (tile("a"), tile("b"));
        let acc = b.zeroed_registers("acc", Elem::F32, [32.into()], "");
        let d = Access::new(acc, [0.into()]);
        let accumulate = Expr::from(1).lt(2);
        let (formats, columns) = ([Format::Bf16; 2], 64);
        let mut wgmma =
            Wgmma { formats, columns, d, a: first, b: second, mn_major: [false; 2], accumulate };
        change(&mut wgmma);
        b.wgmma_fence([acc]);
        b.wgmma(wgmma);
        b.wgmma_commit();
        b.wgmma_wait(0, [acc]);
    })
}

#[test]
fn a_matrix_instruction_of_a_warpgroup_has_tiles_that_a_descriptor_can_say() {
    let bf16 = (Elem::Bf16, 64);
    let kernel = multiplied(128, bf16, |_| ()).finish().expect("a sound kernel");
    assert!(kernel.contract().is_specific && kernel.min_arch() == 90);
    assert_eq!(rule(multiplied(128, (Elem::F32, 32), |w| w.formats = [Format::Tf32; 2])), Ok(()));
    breaks(multiplied(64, bf16, |_| ()), "a warpgroup that is not whole");
    breaks(multiplied(160, bf16, |_| ()), "a warpgroup that is not whole");
    breaks(multiplied(128, bf16, |w| w.formats = [Format::F16; 2]), "f16 in a");
    let mixed = |w: &mut Wgmma| w.formats = [Format::Bf16, Format::F16];
    breaks(multiplied(128, bf16, mixed), "a matrix instruction of bf16 by f16");
    let fp8 = |w: &mut Wgmma| w.formats = [Format::E4m3; 2];
    assert_eq!(rule(multiplied(128, (Elem::E4m3, 128), fp8)), Ok(()));
    let integers = |w: &mut Wgmma| w.formats = [Format::I8; 2];
    breaks(multiplied(128, (Elem::I8, 128), integers), "accumulators of f32 for i8 by i8");
    breaks(multiplied(128, (Elem::F32, 32), |_| ()), "bf16 in a");
    breaks(multiplied(128, bf16, |w| w.columns = 60), "a matrix instruction of 60 columns");
    breaks(multiplied(128, bf16, |w| w.columns = 264), "a matrix instruction of 264 columns");
    breaks(multiplied(128, bf16, |w| w.columns = 32), "32 columns in acc, whose last extent is 32");
    breaks(multiplied(128, bf16, |w| w.accumulate = 1.into()), "accumulate flag is not Bool");
    breaks(multiplied(128, bf16, |w| w.a = w.d.clone()), "bf16 in acc");
    breaks(
        multiplied(128, (Elem::Bf16, 128), |_| ()),
        "a has a layout that no descriptor describes",
    );
}

#[test]
fn limits_of_registers_and_groups_in_flight() {
    let limit = |registers| doing(128, |b| b.more_registers(registers));
    for registers in [24, 232, 256] {
        assert_eq!(rule(limit(registers)), Ok(()));
    }
    for registers in [16, 28, 264] {
        breaks(limit(registers), &format!("a limit of {registers} registers"));
    }
    breaks(doing(96, |b| b.fewer_registers(24)), "a warpgroup that is not whole");
    let not_fixed = doing(128, |b| {
        let grid = [const { Expr::U64(1) }; 3];
        b.geometry(Geometry { block: (128, 1), grid, blocks_per_sm: None });
        b.fewer_registers(24);
    });
    breaks(not_fixed, "no number of blocks that fixes them at launch");
    assert_eq!(rule(doing(128, |b| b.wgmma_wait(7, []))), Ok(()));
    breaks(doing(128, |b| b.wgmma_wait(8, [])), "8 groups in flight");
    let not_sums = doing(128, |b| {
        let words = b.registers("words", Elem::F64, [4.into()], "");
        b.wgmma_fence([words]);
    });
    breaks(not_sums, "words holds no accumulators");
    let gone = doing(128, |b| {
        let mut acc = None;
        b.if_(Expr::from(1).lt(2), |b| {
            acc = Some(b.registers("acc", Elem::F32, [4.into()], ""));
        });
        b.wgmma_fence(acc);
    });
    breaks(gone, "acc out of scope");
}

/// A verified kernel prints.
#[test]
fn verified_kernels_print() {
    let kernel: VerifiedKernel = multiplied(128, (Elem::Bf16, 64), |_| ()).finish().expect("sound");
    let text = crate::cuda::source(&kernel);
    for line in [
        "__shared__ alignas(1024) unsigned short a[64][64];",
        "wgmma_keep(acc);\n    wgmma_fence();",
        "wgmma_bf16_n64(acc, descriptor_128(&a[0][0]), descriptor_128(&b[0][0]), 1 < 2);",
        "wgmma_wait<0>();\n    wgmma_keep(acc);",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let copied = Boxed::default().kernel(|_, _| ()).finish().expect("sound");
    let text = crate::cuda::source(&copied);
    for line in [
        "const __grid_constant__ TensorMap g",
        "__shared__ unsigned long long full[1];",
        "tensor_copy_2d(&s[0][0][0], &g, &full[0], 0, 0);",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}
