//! Constant folding gives the same results as execution. Random expressions are computed with
//! values loaded from global memory, and with the same values as literals, constants, variables,
//! parameters, or elements of other memory or of vectors. All give the same bits or the same fault.

mod casts;
mod tree;

use super::model::Random;
use super::*;
use gemm_dsl::ir::Source;
use gemm_dsl::ir::Ty;
use tree::Tree;

const TREES: usize = 6000;
/// Random choices of the kinds of values, per tree.
const ROUNDS: usize = 4;

/// Kind of a value in an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Known {
    Literal,
    Constant,
    Let,
    Mutable,
    /// Scalar parameter.
    Launch,
    Global,
    Shared,
    /// Element of a register array at a static index.
    Register,
    /// Element of a register array at an index that differs between lanes.
    Indexed,
    /// Element of a vector, which is in global memory (`Part`), in registers (`Kept`), or packed
    /// from scalars (`Packed`).
    Part,
    Kept,
    Packed,
}

const ANY: [Known; 7] = [
    Known::Global,
    Known::Shared,
    Known::Register,
    Known::Indexed,
    Known::Part,
    Known::Kept,
    Known::Packed,
];
const COMPUTED: [Known; 4] = [Known::Literal, Known::Let, Known::Mutable, Known::Launch];

/// Kinds of values of this type.
fn ways(elem: Elem) -> Vec<Known> {
    let computed = if elem.computes() { &COMPUTED[..] } else { &[] };
    let constant = (elem == Elem::I32).then_some(Known::Constant);
    ANY.iter().chain(computed).copied().chain(constant).collect()
}

/// Literal of a type that supports arithmetic.
fn literal(elem: Elem, bits: u64) -> Expr {
    match elem {
        Elem::F64 => Expr::F64(f64::from_bits(bits)),
        Elem::F32 => Expr::F32(f32::from_bits(bits as u32)),
        Elem::I64 => Expr::I64(bits as i64),
        Elem::U64 => Expr::U64(bits),
        Elem::U32 => Expr::U32(bits as u32),
        _ => Expr::I32(bits as i32),
    }
}

/// Kernel of one thread that computes one expression.
struct Rig {
    t: Team,
    scalars: Vec<u64>,
    numbers: usize,
}

impl Rig {
    fn new() -> Self {
        Self { t: team(1, 1), scalars: Vec::new(), numbers: 0 }
    }

    /// Expression for a value of this kind.
    fn number(&mut self, elem: Elem, bits: u64, known: Known) -> Expr {
        self.numbers += 1;
        let name = |what: &str| format!("{what}{}", self.numbers);
        let lanes = i32::from(elem.vector_lanes());
        // The vector holds the number beside its complement.
        let place = self.numbers as i32 % lanes;
        let k = &mut self.t.k;
        match known {
            Known::Literal => return literal(elem, bits),
            Known::Constant => return k.constant(&name("C"), bits as i32, "").into(),
            Known::Let => return k.let_(&name("l"), literal(elem, bits)).into(),
            Known::Mutable => return k.mut_(&name("m"), literal(elem, bits)).into(),
            Known::Launch => {
                let number = Source::Argument(self.scalars.len());
                self.scalars.push(bits);
                return k.scalar(&name("s"), Ty::Scalar(elem), number).into();
            }
            _ => {}
        }
        let beside = !bits & u64::MAX >> (64 - 8 * elem.size());
        let all = (0..lanes).map(|i| if i == place { bits } else { beside });
        let all: Vec<u64> = all.collect();
        let (array, kept) = (name("g"), name("r"));
        let memory = self.t.bound(&array, Buffer::from_bits(elem, all.into_iter()));
        let k = &mut self.t.k;
        let own = || at(memory, tid() + place);
        match known {
            Known::Global => own().load(),
            Known::Part => at(memory, 0).vector().load().lane(place as u8),
            Known::Packed => {
                let parts = (0..lanes).map(|i| load(memory, tid() + i)).collect();
                Expr::Pack(parts).lane(place as u8)
            }
            Known::Shared => {
                let tile = k.shared(&kept, elem, [lanes.into()], BufferLayout::row_major(1), "");
                k.store(at(tile, place), own().load());
                load(tile, place)
            }
            _ => {
                let held = k.registers(&kept, elem, [lanes.into()], "");
                k.store(at(held, 0).vector(), at(memory, 0).vector().load());
                match known {
                    Known::Register => load(held, place),
                    Known::Indexed => load(held, tid() + place),
                    _ => at(held, 0).vector().load().lane(place as u8),
                }
            }
        }
    }

    /// Bits of an expression's value, and the counters of its kernel.
    fn result(mut self, elem: Elem, value: Expr) -> Result<(u64, Counters), FaultKind> {
        let out = self.t.bound("out", Buffer::zeros_of(elem, 1));
        self.t.k.store(at(out, 0), value);
        let (kernel, memories) = self.t.finish();
        match launch(&kernel, &memories, &self.scalars) {
            Ok(counters) => {
                Ok((memories.last().map(|m| m.bits()[0]).unwrap_or_default(), counters))
            }
            Err(SimError::Fault(fault)) => Err(fault.kind),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn folded_values_equal_executed_values() {
    let (mut values, mut faults) = (0, 0);
    for seed in gemm_cases::seeds(TREES) {
        let random = &mut Random::new(seed);
        let elem = random.of(&Elem::ALL);
        let depth = 1 + random.below(3);
        let tree = Tree::grow(elem, depth, random);
        let compute = |way: &mut dyn FnMut(Elem) -> Known| {
            let mut rig = Rig::new();
            let value = tree.expr(&mut |elem, bits| rig.number(elem, bits, way(elem)));
            rig.result(elem, value).map(|(bits, _)| bits)
        };
        let loaded = compute(&mut |_| Known::Global);
        match loaded {
            Ok(_) => values += 1,
            Err(_) => faults += 1,
        }
        for round in 0..ROUNDS {
            let mut taken = Vec::new();
            let found = compute(&mut |elem| {
                let way = match round {
                    0 if elem.computes() => Known::Literal,
                    _ => random.of(&ways(elem)),
                };
                taken.push(way);
                way
            });
            assert_eq!(found, loaded, "seed {seed}, {tree:?}, known by {taken:?}");
        }
    }
    assert!(6 * faults.min(values) > values, "{values} values, {faults} faults");
}

/// Operators on literals cost nothing in the counters, for types that are folded.
#[test]
fn operators_on_literals_cost_nothing() {
    for seed in gemm_cases::seeds(TREES) {
        let random = &mut Random::new(seed);
        let elem = random.of(&[Elem::I32, Elem::U64, Elem::F32]);
        let tree = Tree::arithmetic(elem, 1 + random.below(3), random);
        let mut rig = Rig::new();
        let value = tree.expr(&mut |elem, bits| rig.number(elem, bits, Known::Literal));
        if let Ok((_, counters)) = rig.result(elem, value) {
            assert_eq!(counters.instructions, 1, "seed {seed}, only the store of {tree:?}");
        }
    }
}
