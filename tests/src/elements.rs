//! Kernels over every element type, built by hand: what no spec asks for yet must be right on the
//! simulator, in the text and on a GPU all the same.

use crate::random::Random;
use gemm_dsl::ir::{
    Access, Arith, BinaryOp, BufferLayout, Cmp, Elem, Expr, Extent, Geometry, Integer, Intrinsic,
    KernelBuilder, LoadMatrix, Operand, Special, Swizzle, Ty, UnaryOp, VerifiedKernel,
};
use gemm_sim::{Buffer, SimError};

/// Threads of a block.
const BLOCK: u32 = 128;

/// A kernel with its arrays, by the bits of their elements.
#[derive(Clone, Debug)]
pub struct Case {
    /// What is tested.
    pub name: String,
    /// The kernel: its inputs, one output, the number of elements.
    pub kernel: VerifiedKernel,
    /// What the inputs hold.
    pub inputs: Vec<(Elem, Vec<u64>)>,
    /// The element type of the output.
    pub output: Elem,
    /// What the output must hold.
    pub expected: Vec<u64>,
}

impl Case {
    /// The number of elements of the output.
    pub fn len(&self) -> usize {
        self.expected.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.expected.is_empty()
    }

    /// The bits of what the simulator computes.
    ///
    /// # Errors
    /// Those of the simulator.
    pub fn simulate(&self) -> Result<Vec<u64>, SimError> {
        let inputs = self.inputs.iter();
        let mut buffers: Vec<Buffer> =
            inputs.map(|(elem, bits)| Buffer::from_bits(*elem, bits.iter().copied())).collect();
        buffers.push(Buffer::zeros_of(self.output, self.len()));
        gemm_sim::launch(&self.kernel, &buffers, &[self.len() as u64])?;
        Ok(buffers.pop().map(|output| output.bits()).unwrap_or_default())
    }

    /// Blocks of a launch.
    pub fn blocks(&self) -> u32 {
        self.len().div_ceil(BLOCK as usize) as u32
    }
}

/// All cases, the same on every run.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for elem in Elem::ALL {
        cases.push(moved(elem));
        cases.extend(conversions(elem));
        if elem.computes() {
            cases.extend(arithmetic(elem));
        }
    }
    for count in [1, 2, 4] {
        cases.extend([false, true].map(|transposed| loaded(count, transposed)));
    }
    cases
}

/// Matrices of a swizzled shared tile, whose rows lie in another order than they are asked for.
fn loaded(count: u8, transposed: bool) -> Case {
    const ROWS: usize = 32;
    let name = format!("loaded_x{count}{}", if transposed { "_transposed" } else { "" });
    let len = 32 * usize::from(count);
    let mut k = KernelBuilder::new(format!("elements_{name}"));
    let input = k.global("in0", Elem::U32, Operand::Input(0));
    let out = k.global("out", Elem::U32, Operand::Output(0));
    let n = k.extent("n", Ty::I32, Extent::LENGTH);
    k.shape(input, [(4 * ROWS as i32).into()], [1.into()]);
    k.shape(out, [n.into()], [1.into()]);
    k.geometry(Geometry { block: (32, 1), grid: [const { Expr::U64(1) }; 3], blocks_per_sm: 1 });
    let layout = BufferLayout::Array {
        order: vec![0, 1],
        pad: 0.into(),
        swizzle: Some(Swizzle { bits: 2, base: 2, shift: 0 }),
    };
    // Each row of the tile holds four of a matrix.
    let tile = k.shared("tile", Elem::U32, [(ROWS as i32 / 4).into(), 16.into()], layout, "");
    let lane = k.let_("lane", Special::ThreadX);
    let row_of = |line: Expr| Access::new(tile, [line.clone() / 4, line % 4 * 4]).vector();
    k.store(row_of(lane.into()), Access::new(input, [lane * 4]).vector().load());
    k.barrier();
    let held = k.registers("held", Elem::U32, [i32::from(count).into()], "");
    let asked = (lane * 5 + 3) % 32;
    let to = Access::new(held, [0.into()]);
    k.load_matrix(LoadMatrix { count, transposed, to, from: row_of(asked) });
    k.unrolled("i", i32::from(count), |k, i| {
        let place = Access::new(out, [lane * i32::from(count) + i]);
        k.store(place, Access::new(held, [i.into()]).load());
    });
    let words = samples(Elem::U32, 21, 4 * ROWS);
    // Row `r` of matrix `i`, as lane `8 * i + r` has asked for it.
    let half = |i: usize, r: usize, c: usize| {
        let line = ((8 * i + r) * 5 + 3) % ROWS;
        words[4 * line + c / 2] >> (16 * (c % 2)) & 0xffff
    };
    let word = |lane: usize, i: usize| {
        let (r, c) = (lane / 4, 2 * (lane % 4));
        match transposed {
            false => half(i, r, c) | half(i, r, c + 1) << 16,
            true => half(i, c, r) | half(i, c + 1, r) << 16,
        }
    };
    let count = usize::from(count);
    let expected = (0..len).map(|at| word(at / count, at % count)).collect();
    let kernel = k.finish().expect("a sound kernel");
    Case { name, kernel, inputs: vec![(Elem::U32, words)], output: Elem::U32, expected }
}

/// `n` elements, one a thread: the value is made of those of the inputs.
fn lanewise(
    name: &str,
    inputs: &[Elem],
    output: Elem,
    value: impl FnOnce(&[Expr]) -> Expr,
) -> VerifiedKernel {
    let mut k = KernelBuilder::new(format!("elements_{name}"));
    let arrays: Vec<_> = inputs
        .iter()
        .enumerate()
        .map(|(i, elem)| k.global(&format!("in{i}"), *elem, Operand::Input(i)))
        .collect();
    let out = k.global("out", output, Operand::Output(0));
    let n = k.extent("n", Ty::I32, Extent::LENGTH);
    for array in arrays.iter().chain([&out]) {
        k.shape(*array, [n.into()], [1.into()]);
    }
    let blocks = Expr::from(n).wide().div_ceil(u64::from(BLOCK));
    k.geometry(Geometry {
        block: (BLOCK, 1),
        grid: [blocks, 1u64.into(), 1u64.into()],
        blocks_per_sm: 1,
    });
    let i = k.let_("i", Expr::from(Special::BlockX) * BLOCK as i32 + Special::ThreadX);
    let loaded: Vec<Expr> =
        arrays.iter().map(|array| Access::new(*array, [i.into()]).load()).collect();
    k.if_(Expr::from(i).lt(n), |k| k.store(Access::new(out, [i.into()]), value(&loaded)));
    k.finish().expect("a sound kernel")
}

/// Elements of every kind: zeros, ones, the least and the greatest, subnormals, NaN, random bits.
fn samples(elem: Elem, seed: u64, len: usize) -> Vec<u64> {
    let mut random = Random::new(seed ^ u64::from(elem.size()));
    let width = u64::MAX >> (64 - 8 * elem.size());
    let top = 1u64 << (8 * elem.size() - 1);
    let special: &[u64] = match elem {
        Elem::F64 => &[
            0,
            1 << 63,
            1,
            0x3ff0_0000_0000_0000,
            0x7ff0_0000_0000_0000,
            0xfff0_0000_0000_0000,
            0x7ff8_0000_0000_0000,
            0x41df_ffff_ffc0_0000,
            0x47ef_ffff_ffff_ffff,
        ],
        Elem::F32 | Elem::Tf32 => &[
            0,
            1 << 31,
            1,
            0x3f80_0000,
            0xbf80_0000,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0000,
            0x4f00_0000,
            0x7f7f_ffff,
            0x0080_0000,
            0x477f_f000,
        ],
        Elem::F16 => &[0, 0x8000, 1, 0x3c00, 0x7c00, 0xfc00, 0x7e00, 0x7bff],
        Elem::Bf16 => &[0, 0x8000, 1, 0x3f80, 0x7f80, 0xff80, 0x7fc0, 0x7f7f],
        _ => &[0, 1, 2, 3, 7],
    };
    (0..len)
        .map(|i| match i {
            _ if i < special.len() => special[i],
            _ if i == special.len() => width,
            _ if i == special.len() + 1 => top,
            // Numbers of ordinary size meet each other more often than random bits do.
            _ if i % 3 == 0 && elem == Elem::F32 => random.unit().to_bits().into(),
            _ if i % 3 == 0 && elem == Elem::F64 => f64::from(random.unit()).to_bits(),
            _ => random.bits() & width,
        })
        .map(|bits| if elem == Elem::Tf32 { bits & 0xffff_e000 } else { bits })
        .collect()
}

/// Through a swizzled shared tile and a register array, 16 bytes at a time on one side and one
/// element at a time on the other: a transposition.
fn moved(elem: Elem) -> Case {
    let lanes = i32::from(elem.vector_lanes());
    // 16 rows of 8 vectors, one vector a thread.
    let (rows, row) = (16i32, 8 * lanes);
    let len = rows * row;
    let mut k = KernelBuilder::new(format!("elements_moved_{elem}"));
    let input = k.global("in0", elem, Operand::Input(0));
    let out = k.global("out", elem, Operand::Output(0));
    let n = k.extent("n", Ty::I32, Extent::LENGTH);
    for array in [input, out] {
        k.shape(array, [n.into()], [1.into()]);
    }
    k.geometry(Geometry { block: (BLOCK, 1), grid: [const { Expr::U64(1) }; 3], blocks_per_sm: 1 });
    let base = elem.vector_lanes().ilog2() as u8;
    let layout = BufferLayout::Array {
        order: vec![0, 1],
        pad: 0.into(),
        swizzle: Some(Swizzle { bits: 3, base, shift: 0 }),
    };
    let tile = k.shared("tile", elem, [rows.into(), row.into()], layout, "");
    let tid = k.let_("tid", Special::ThreadX);
    let r = k.let_("r", tid / 8);
    let c = k.let_("c", tid % 8 * lanes);
    let place = Access::new(tile, [r.into(), c.into()]).vector();
    k.store(place, Access::new(input, [r * row + c]).vector().load());
    k.barrier();
    // Element e of the output, column by column of the tile.
    let held = k.registers("held", elem, [lanes.into()], "");
    k.unrolled("j", lanes, |k, j| {
        let e = k.let_("e", tid * lanes + j);
        let value = Access::new(tile, [e % rows, e / rows]).load();
        k.store(Access::new(held, [j.into()]), value);
    });
    let v = k.let_("v", Access::new(held, [0.into()]).vector().load());
    let parts = (0..elem.vector_lanes()).map(|i| Expr::from(v).lane(i)).collect();
    k.store(Access::new(out, [tid * lanes]).vector(), Expr::Pack(parts));
    let inputs = vec![(elem, samples(elem, 1, len as usize))];
    let transposed = (0..len).map(|e| inputs[0].1[(e % rows * row + e / rows) as usize]).collect();
    let kernel = k.finish().expect("a sound kernel");
    Case { name: format!("moved_{elem}"), kernel, inputs, output: elem, expected: transposed }
}

mod reference;
use reference::{binary, convert, unary};

/// Every conversion from a type.
fn conversions(from: Elem) -> Vec<Case> {
    let len = 700;
    let reachable = Elem::ALL.into_iter().filter(|to| *to != from && from.converts_to(*to));
    reachable
        .map(|to| {
            let name = format!("{from}_to_{to}");
            let kernel = lanewise(&name, &[from], to, |v| v[0].clone().cast(to));
            // An integer must fit an integer type.
            let fitting = |bits: u64| match from.is_integer() && to.is_integer() {
                true => reference::fit(from, to, bits),
                false => bits,
            };
            let input: Vec<u64> = samples(from, 2, len).into_iter().map(fitting).collect();
            let expected = input.iter().map(|bits| convert(from, to, *bits)).collect();
            Case { name, kernel, inputs: vec![(from, input)], output: to, expected }
        })
        .collect()
}

/// Every operator and function of a type that is computed with.
fn arithmetic(elem: Elem) -> Vec<Case> {
    let mut cases = Vec::new();
    let arith = [Arith::Add, Arith::Sub, Arith::Mul, Arith::Div].map(BinaryOp::Arith);
    let integer =
        [Integer::Rem, Integer::And, Integer::Or, Integer::Xor, Integer::Shl, Integer::Shr];
    let compare = [Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge, Cmp::Eq, Cmp::Ne].map(BinaryOp::Cmp);
    let integer = integer.map(BinaryOp::Integer);
    let integers: &[BinaryOp] = if elem.is_integer() { &integer } else { &[] };
    for op in arith.iter().chain(integers).chain(&compare) {
        let word = match op {
            BinaryOp::Arith(op) => format!("{op:?}"),
            BinaryOp::Integer(op) => format!("{op:?}"),
            BinaryOp::Cmp(op) => format!("{op:?}"),
            BinaryOp::Logic(op) => format!("{op:?}"),
        };
        let name = format!("{elem}_{}", word.to_lowercase());
        let (one, zero) = (literal(elem, 1), literal(elem, 0));
        let kernel = lanewise(&name, &[elem, elem], elem, |v| {
            let value = Expr::Binary(*op, Box::new(v[0].clone()), Box::new(v[1].clone()));
            if op.is_predicate() { value.select(one, zero) } else { value }
        });
        let pairs = samples(elem, 3, 900).into_iter().zip(samples(elem, 4, 900));
        let kept = pairs.filter_map(|(a, b)| {
            let (a, b) = reference::domain(elem, *op, a, b);
            Some((a, b, binary(elem, *op, a, b)?))
        });
        let kept: Vec<(u64, u64, u64)> = kept.collect();
        let inputs = vec![
            (elem, kept.iter().map(|k| k.0).collect()),
            (elem, kept.iter().map(|k| k.1).collect()),
        ];
        let expected = kept.iter().map(|k| k.2).collect();
        cases.push(Case { name, kernel, inputs, output: elem, expected });
    }
    if elem.is_float() {
        use Intrinsic::{Abs, Floor, Fma, Maximum, Minimum, RoundEven, Sqrt};
        for f in [Fma, Maximum, Minimum, Abs, Sqrt, Floor, RoundEven] {
            let arity = f.row().arity;
            let name = format!("{elem}_{}", format!("{f:?}").to_lowercase());
            let types = vec![elem; arity];
            let kernel = lanewise(&name, &types, elem, |v| Expr::Call(f, v.to_vec()));
            let inputs: Vec<(Elem, Vec<u64>)> =
                (0..arity).map(|i| (elem, samples(elem, 5 + i as u64, 1500))).collect();
            let operands = |i: usize| inputs.iter().map(|(_, bits)| bits[i]).collect::<Vec<u64>>();
            let expected = (0..1500).map(|i| unary(elem, f, &operands(i))).collect();
            cases.push(Case { name, kernel, inputs, output: elem, expected });
        }
    }
    if elem.is_float() || elem.is_signed() {
        let name = format!("{elem}_neg");
        let kernel =
            lanewise(&name, &[elem], elem, |v| Expr::Unary(UnaryOp::Neg, Box::new(v[0].clone())));
        let least = 1u64 << (8 * elem.size() - 1);
        let input = samples(elem, 9, 500);
        // The least integer has no negative.
        let input: Vec<u64> =
            input.into_iter().filter(|b| elem.is_float() || *b != least).collect();
        let expected = input.iter().map(|b| reference::negated(elem, *b)).collect();
        cases.push(Case { name, kernel, inputs: vec![(elem, input)], output: elem, expected });
    }
    // The value of the lane three above, and that of the lane with two bits flipped.
    let above = |i: usize| if i % 32 < 29 { i + 3 } else { i };
    cases.push(shuffled(elem, ("shuffle", Intrinsic::ShuffleDown, 3), above));
    cases.push(shuffled(elem, ("shuffle_xor", Intrinsic::ShuffleXor, 5), |i| i ^ 5));
    cases
}

/// A literal of any type that is computed with.
fn literal(elem: Elem, value: i32) -> Expr {
    match elem {
        Elem::F64 => Expr::F64(value.into()),
        Elem::F32 => Expr::F32(value as f32),
        Elem::I64 => Expr::I64(value.into()),
        Elem::U64 => Expr::U64(value as u64),
        Elem::U32 => Expr::U32(value as u32),
        _ => Expr::I32(value),
    }
}

/// The value of another lane.
fn shuffled(
    elem: Elem,
    (name, shuffle, by): (&str, Intrinsic, i32),
    source: impl Fn(usize) -> usize,
) -> Case {
    let name = format!("{elem}_{name}");
    let len = 4 * BLOCK as usize;
    let mut k = KernelBuilder::new(format!("elements_{name}"));
    let input = k.global("in0", elem, Operand::Input(0));
    let out = k.global("out", elem, Operand::Output(0));
    let n = k.extent("n", Ty::I32, Extent::LENGTH);
    for array in [input, out] {
        k.shape(array, [n.into()], [1.into()]);
    }
    let blocks = Expr::from(n).wide() / u64::from(BLOCK);
    k.geometry(Geometry {
        block: (BLOCK, 1),
        grid: [blocks, 1u64.into(), 1u64.into()],
        blocks_per_sm: 1,
    });
    let i = k.let_("i", Expr::from(Special::BlockX) * BLOCK as i32 + Special::ThreadX);
    let own = k.let_("own", Access::new(input, [i.into()]).load());
    let other = Expr::Call(shuffle, vec![own.into(), by.into()]);
    k.store(Access::new(out, [i.into()]), other);
    let input = samples(elem, 12, len);
    let expected = (0..len).map(|i| input[source(i)]).collect();
    let kernel = k.finish().expect("a sound kernel");
    Case { name, kernel, inputs: vec![(elem, input)], output: elem, expected }
}
