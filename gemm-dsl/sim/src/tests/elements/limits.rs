//! Array ends, vector alignment and uninitialised elements, for every type.

use super::*;
use gemm_dsl::ir::Source;
use gemm_dsl::ir::{BufferLayout, Intrinsic, Ty};

const SPACES: [Space; 3] = [Space::Global, Space::Shared, Space::Register];

#[derive(Clone, Copy, Debug)]
enum Known {
    Literal,
    Launch,
    Uniform,
    Lane,
}

const KNOWN: [Known; 4] = [Known::Literal, Known::Launch, Known::Uniform, Known::Lane];

/// One thread reads or writes an array of two vectors at an index. Shared arrays and register
/// arrays are initialised except for one element.
struct Attempt {
    elem: Elem,
    space: Space,
    vector: bool,
    writes: bool,
    known: Known,
    at: usize,
    hole: Option<usize>,
}

impl Attempt {
    fn outcome(&self) -> Result<Counters, SimError> {
        let lanes = usize::from(self.elem.vector_lanes());
        let len = 2 * lanes as i32;
        let bits: Vec<u64> = (0..2 * lanes as u64).collect();
        let mut t = team(1, 1);
        let input = t.bound("in", Buffer::from_bits(self.elem, bits.iter().copied()));
        let output = t.bound("out", Buffer::zeros_of(self.elem, 2 * lanes));
        let k = &mut t.k;
        let array = match self.space {
            Space::Global if self.writes => output,
            Space::Global => input,
            Space::Shared => k.shared("x", self.elem, [len.into()], BufferLayout::row_major(1), ""),
            Space::Register => k.registers("x", self.elem, [len.into()], ""),
        };
        if self.space != Space::Global {
            let written = (0..2 * lanes).filter(|i| Some(*i) != self.hole);
            written.for_each(|i| k.store(at(array, i as i32), load(input, i as i32)));
        }
        let zero = k.scalar("zero", Ty::I32, Source::Argument(0));
        let index: Expr = match self.known {
            Known::Literal => (self.at as i32).into(),
            Known::Launch => Expr::from(zero) + self.at as i32,
            Known::Uniform => k.mut_("at", self.at as i32).into(),
            Known::Lane => tid() + self.at as i32,
        };
        let wide = |place: Access| if self.vector { place.vector() } else { place };
        let (place, other) = (wide(at(array, index)), wide(at(input, 0)));
        match self.writes {
            true => k.store(place, other.load()),
            false => k.store(wide(at(output, 0)), place.load()),
        }
        let (kernel, memories) = t.finish();
        launch(&kernel, &memories, &[0])
    }

    fn kind(&self) -> FaultKind {
        fault(self.outcome()).kind
    }
}

fn each(mut test: impl FnMut(Elem, Space, bool, Known)) {
    for elem in Elem::ALL {
        for space in SPACES {
            for vector in [false, true] {
                KNOWN.into_iter().for_each(|known| test(elem, space, vector, known));
            }
        }
    }
}

#[test]
fn arrays_end_behind_their_last_element() {
    each(|elem, space, vector, known| {
        let lanes = usize::from(elem.vector_lanes());
        let last = if vector { lanes } else { 2 * lanes - 1 };
        for writes in [false, true] {
            let attempt = |at| Attempt { elem, space, vector, writes, known, at, hole: None };
            let what = format!("{elem} {space:?} {vector} {writes} {known:?}");
            attempt(last).outcome().unwrap_or_else(|e| panic!("{what}: {e}"));
            match attempt(last + 1).kind() {
                FaultKind::OutOfBounds { place, extents, width } => assert_eq!(
                    (place.index, extents, width as usize),
                    (
                        vec![last as i128 + 1],
                        vec![2 * lanes as u64],
                        if vector { lanes } else { 1 }
                    ),
                    "{what}"
                ),
                kind => panic!("{what}: {kind:?}"),
            }
        }
    });
}

/// A wrapped 64-bit index is reported as an unsigned number.
#[test]
fn an_index_of_64_bits_is_told_without_a_sign() {
    for known in KNOWN {
        let mut t = team(1, 1);
        let input = t.array("in", &[1]);
        let k = &mut t.k;
        let zero = k.scalar("zero", Ty::U64, Source::Argument(0));
        let least: Expr = match known {
            Known::Literal => Expr::U64(0),
            Known::Launch => zero.into(),
            Known::Uniform => k.mut_("least", Expr::U64(0)).into(),
            Known::Lane => tid().wide(),
        };
        k.let_("value", load(input, least - Expr::U64(1)));
        let (kernel, memories) = t.finish();
        match fault(launch(&kernel, &memories, &[0])).kind {
            FaultKind::OutOfBounds { place, .. } => {
                assert_eq!(place.index, [u64::MAX.into()], "{known:?}");
            }
            kind => panic!("{known:?}: {kind:?}"),
        }
    }
}

#[test]
fn vectors_lie_on_sixteen_bytes() {
    each(|elem, space, vector, known| {
        for writes in [false, true] {
            let attempt = Attempt { elem, space, vector, writes, known, at: 1, hole: None };
            let what = format!("{elem} {space:?} {writes} {known:?}");
            match (vector, attempt.outcome()) {
                (false, outcome) => drop(outcome.unwrap_or_else(|e| panic!("{what}: {e}"))),
                (true, outcome) => match fault(outcome).kind {
                    FaultKind::Misaligned { place } => assert_eq!(place.index, [1], "{what}"),
                    kind => panic!("{what}: {kind:?}"),
                },
            }
        }
    });
}

#[test]
fn the_element_that_was_never_written_is_named() {
    each(|elem, space, vector, known| {
        let lanes = usize::from(elem.vector_lanes());
        for hole in (0..2 * lanes).filter(|_| space != Space::Global) {
            let at = if vector { hole / lanes * lanes } else { hole };
            let attempt =
                |at| Attempt { elem, space, vector, writes: false, known, at, hole: Some(hole) };
            let what = format!("{elem} {space:?} {vector} {known:?} {hole}");
            match attempt(at).kind() {
                FaultKind::Uninitialised { place } => {
                    assert_eq!((&*place.buffer, place.index), ("x", vec![hole as i128]), "{what}");
                }
                kind => panic!("{what}: {kind:?}"),
            }
            // The neighbouring elements are initialised.
            let beside = if vector { lanes - at } else { (hole + 1) % (2 * lanes) };
            attempt(beside).outcome().unwrap_or_else(|e| panic!("{what}: {e}"));
        }
    });
}

/// A multiply-add checks each of its three operands, in any subset of lanes. It has an instruction
/// of its own.
#[test]
fn a_multiply_add_reads_three_elements() {
    let lacking = [(1, 0), (1 << 5, 5), (1 << 31, 31), (u32::MAX, 0), (0xfff0, 4)];
    for (hole, (lanes, first)) in [0, 1, 2].into_iter().flat_map(|i| lacking.map(|l| (i, l))) {
        let mut b = bench(32, 1, [1, 32]);
        let r = b.k.registers("r", Elem::F32, [3.into()], "");
        for i in 0..3 {
            for lane in (0..32).filter(|lane| i != hole || lanes >> lane & 1 == 0) {
                b.k.if_(tid().equals(lane), |k| k.store(at(r, i), 1.0));
            }
        }
        let operands = [0, 1, 2].map(|i| load(r, i));
        let sum = b.k.let_("sum", Expr::Call(Intrinsic::Fma, operands.to_vec()));
        b.write(tid(), sum);
        let fault = b.fault();
        assert_eq!(fault.thread, (first, 0), "operand {hole}, lanes {lanes:x}");
        match fault.kind {
            FaultKind::Uninitialised { place } => assert_eq!(place.index, [hole.into()]),
            kind => panic!("operand {hole}: {kind:?}"),
        }
    }
}
