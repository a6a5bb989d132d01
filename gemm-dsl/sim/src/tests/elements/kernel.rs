//! Kernel for a program of moves.

use super::plain::Plain;
use super::*;
use gemm_dsl::ir::Source;
use gemm_dsl::ir::{Guard, Scalar, Stmt, Ty};

struct Build {
    k: KernelBuilder,
    arrays: Vec<BufferId>,
    /// Indices of each step that differ between lanes: the read ones, then the written ones.
    table: BufferId,
    zero: Scalar,
    lanes: usize,
}

/// Runs a program. Returns the final allocations of the global arrays and the counters.
pub(super) fn run(plain: &Plain, steps: &[Step]) -> Result<(Vec<Vec<u64>>, Counters), SimError> {
    let (elem, lanes) = (plain.elem, usize::from(plain.elem.vector_lanes()));
    let mut memories: Vec<Buffer> =
        plain.allocations().map(|bits| Buffer::from_bits(elem, bits.iter().copied())).collect();
    let places = steps.iter().flat_map(|step| [&step.read, &step.written]);
    let places = places.flat_map(|index| (0..THREADS).map(|t| index.of(t) as i32));
    let places: Vec<i32> = places.collect();
    let mut b = KernelBuilder::new("moves");
    b.geometry(Geometry {
        block: (THREADS as u32, 1),
        grid: [const { Expr::U64(1) }; 3],
        blocks_per_sm: Some(1),
    });
    let mut global = 0;
    let arrays = ARRAYS.iter().enumerate().map(|(number, &(space, vectors))| {
        let (name, len) = (format!("array{number}"), (vectors * lanes) as i32);
        match space {
            Space::Global => {
                let array = b.global(&name, elem, Operand::Temp(global));
                b.shape(array, [len.into()], [1.into()]);
                global += 1;
                array
            }
            Space::Shared => b.shared(&name, elem, [len.into()], BufferLayout::row_major(1), ""),
            // Two-dimensional, so that the strides of a register array exceed 1.
            Space::Register => {
                b.registers(&name, elem, [(vectors as i32).into(), (lanes as i32).into()], "")
            }
        }
    });
    let arrays: Vec<BufferId> = arrays.collect();
    let table = b.global("table", Elem::I32, Operand::Temp(global));
    b.shape(table, [(places.len() as i32).into()], [1.into()]);
    let zero = b.scalar("zero", Ty::I32, Source::Argument(0));
    let mut build = Build { k: b, arrays, table, zero, lanes };
    for (number, step) in steps.iter().enumerate() {
        build.step(number, step);
        build.k.barrier();
    }
    let views = memories.iter().map(|m| m.view(lanes, m.len() - 2 * lanes).expect("inside"));
    let mut views: Vec<Buffer> = views.collect();
    views.push(Buffer::from_slice(&places));
    let kernel = build.k.finish().expect("the test's kernel is valid");
    let counters = launch(&kernel, &views, &[0])?;
    Ok((memories.drain(..).map(|m| m.bits()).collect(), counters))
}

impl Build {
    fn step(&mut self, number: usize, step: &Step) {
        let Active { factor, below } = step.active;
        let active = (tid() * factor as i32 % 41).lt(below as i32);
        // Uniform values stay uniform only outside of a branch.
        let read = self.shared(&step.read, 2 * number);
        let written = self.shared(&step.written, 2 * number + 1);
        let places = |build: &mut Self| {
            let read = build.place(step, step.from, read, 2 * number);
            (read, build.place(step, step.to, written, 2 * number + 1))
        };
        if let Through::Copy { zeros } = step.through {
            let (source, target) = places(self);
            let guard = Some(Guard { cond: active, or_zero: zeros });
            self.k.push(Stmt::CopyAsync { target, source, guard });
            self.k.push(Stmt::CopyCommit);
            self.k.push(Stmt::CopyWait { pending: 0.into() });
            return;
        }
        let body = |build: &mut Self| {
            let (source, target) = places(build);
            let mut value = source.load();
            if !matches!(step.through, Through::Nothing) {
                value = build.k.let_(&format!("value{number}"), value).into();
            }
            if let Through::Packed(by) = step.through {
                let lane = |i: usize| value.clone().lane(((i + by) % build.lanes) as u8);
                value = Expr::Pack((0..build.lanes).map(lane).collect());
            }
            build.k.store(target, value);
        };
        if below == Active::ALL.below {
            return body(self);
        }
        self.guarded(active, body);
    }

    fn guarded(&mut self, cond: Expr, body: impl FnOnce(&mut Self)) {
        let mut k = std::mem::replace(&mut self.k, KernelBuilder::new("inside"));
        k.if_(cond, |b| {
            std::mem::swap(&mut self.k, b);
            body(self);
            std::mem::swap(&mut self.k, b);
        });
        self.k = k;
    }

    /// Uniform index, or None if it differs between lanes.
    fn shared(&mut self, index: &Index, row: usize) -> Option<Expr> {
        match index {
            Index::Literal(at) => Some(Expr::I32(*at as i32)),
            Index::Launch(at) => Some(Expr::from(self.zero) + *at as i32),
            Index::Uniform(at) => Some(self.k.mut_(&format!("at{row}"), *at as i32).into()),
            Index::Lanes(_) => None,
        }
    }

    fn place(&mut self, step: &Step, array: usize, index: Option<Expr>, row: usize) -> Access {
        let index = index.unwrap_or_else(|| {
            let at = tid() + (row * THREADS) as i32;
            self.k.let_(&format!("at{row}"), load(self.table, at)).into()
        });
        let index = if step.wide { index.wide() } else { index };
        let lanes = self.lanes as i32;
        let index = match ARRAYS[array].0 {
            Space::Register => vec![index.clone() / lanes, index % lanes],
            _ => vec![index],
        };
        let place = Access::new(self.arrays[array], index);
        if step.vector { place.vector() } else { place }
    }
}
