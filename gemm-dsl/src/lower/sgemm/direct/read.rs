//! Reads and multiplication in kernels without staging. A thread reads rows of A and columns of B
//! from global memory.

use crate::ir::{Access, BufferId, Const, Elem, Expr, KernelBuilder};
use crate::lower::literal::zero_of;
use crate::lower::sgemm::common::accumulator_tile::AccumulatorTile;
use crate::lower::sgemm::common::accumulators::{AccumulatorIndex, Accumulators};
use crate::lower::sgemm::common::edge::inside;
use crate::lower::sgemm::common::elements::Elements;
use crate::lower::sgemm::common::loops::over;
use crate::lower::sgemm::common::problem::Matrix;
use crate::plan::{Axis, Edge, ReadPlan};

/// Steps that a thread reads. A constant exists only for a count above one.
#[derive(Clone, Copy)]
pub(super) struct Steps {
    /// Number of steps that are loaded together.
    pub unroll: Option<Const>,
    /// Number of elements of K per step, as a constant and, in `count`, as a value.
    pub terms: Option<Const>,
    pub count: u32,
}

/// Reader of one operand by a thread.
pub(super) struct FactorReader {
    plan: ReadPlan,
    matrix: Matrix,
    steps: Steps,
    own: Elements,
    place: LinePlace,
}

/// Positions of a thread's rows or columns, or of vectors of them.
enum LinePlace {
    /// Consecutive positions that start at this one, none of which is beyond the edge of C.
    Behind(Expr),
    One(Expr),
    /// Positions in an array of registers.
    Many(BufferId),
}

/// Elements of an operand that a thread has loaded but not yet multiplied.
pub(super) enum FactorRegisters {
    /// One element; `None` until it is loaded.
    One(Option<Expr>),
    /// Array of registers. `several` is true if it has the elements of several steps.
    Many { array: BufferId, several: bool },
}

impl FactorReader {
    /// Computes the positions that the thread reads.
    pub(super) fn declare(
        b: &mut KernelBuilder,
        plan: ReadPlan,
        block: &AccumulatorTile<'_>,
        steps: Steps,
    ) -> Self {
        let of_a = plan.free() == Axis::M;
        let (p, origin) = (&block.problem, &block.origin);
        let (matrix, extent, own, first) = match of_a {
            true => (p.a(), p.m, block.rows, origin.row + block.rows.first),
            false => (p.b(), p.n, block.cols, origin.col + block.cols.first),
        };
        let name = if of_a { "a_row" } else { "b_col" };
        let (width, loop_name) = match (plan.has_free_vectors(), of_a) {
            (true, _) => (plan.width(), "v"),
            (false, true) => (1, "m"),
            (false, false) => (1, "n"),
        };
        let count = own.count / width;
        let nth = |i: Expr| first.clone() + i * width as i32;
        let place = match (plan.edge(), count) {
            (Edge::Exact, _) => LinePlace::Behind(first),
            (edge, 1) => LinePlace::One(
                b.let_(name, inside(edge, plan.elem(), nth(0.into()), extent)).into(),
            ),
            (edge, _) => {
                let all = own.name / width as i32;
                let array = b.registers(name, Elem::I32, [all.clone()], "");
                over(b, loop_name, all, count, |b, i| {
                    b.store(
                        Access::new(array, [i.clone()]),
                        inside(edge, plan.elem(), nth(i), extent),
                    );
                });
                LinePlace::Many(array)
            }
        };
        Self { plan, matrix, steps, own, place }
    }

    /// Declares registers for the elements of a whole round if `of_round` is true, else of one
    /// step.
    pub(super) fn hold(&self, b: &mut KernelBuilder, of_round: bool) -> FactorRegisters {
        let unroll = self.steps.unroll.filter(|_| of_round);
        let own = (self.own.count > 1).then_some(self.own.name);
        let dims = match self.plan.lies_along_k() {
            true => [unroll, own, self.steps.terms],
            false => [unroll, self.steps.terms, own],
        };
        let dims: Vec<Expr> = dims.into_iter().flatten().map(Expr::from).collect();
        if dims.is_empty() {
            return FactorRegisters::One(None);
        }
        let name = self.name("frag");
        let array = b.registers(&name, self.plan.elem(), dims, "");
        FactorRegisters::Many { array, several: unroll.is_some() }
    }

    fn name(&self, what: &str) -> String {
        format!("{}_{what}", self.plan.letter().to_ascii_lowercase())
    }

    /// Loads step `u` of a round; the step starts at k = `at`. If `end` is given, elements with k ≥
    /// `end` are replaced by zeros.
    pub(super) fn read(
        &self,
        b: &mut KernelBuilder,
        held: &mut FactorRegisters,
        u: &Expr,
        at: &Expr,
        end: Option<&Expr>,
    ) {
        match held {
            FactorRegisters::One(element) => {
                // For `batch: pointers`, the letter alone is already the name of the matrix's
                // pointer.
                let value = self.load(&0.into(), at, end);
                *element = Some(b.let_(&self.name("k"), value).into());
            }
            FactorRegisters::Many { .. } => self.fill(b, held, u, at, end),
        }
    }

    /// Loads step `u` into an array of registers; see [`read`](Self::read).
    pub(super) fn fill(
        &self,
        b: &mut KernelBuilder,
        held: &FactorRegisters,
        u: &Expr,
        at: &Expr,
        end: Option<&Expr>,
    ) {
        let (along_k, width) = (self.plan.lies_along_k(), self.plan.width());
        let terms = self.steps.terms.map_or(Expr::I32(1), Expr::from);
        let own = Expr::from(self.own.name);
        let element = if self.plan.free() == Axis::M { "m" } else { "n" };
        // A step that may extend past the end is loaded element by element.
        if along_k && width > 1 && end.is_none() {
            over(b, element, own, self.own.count, |b, i| {
                let value = self.at(&i, at.clone()).vector().load();
                b.store(self.place_of(held, u, &i, &0.into()).vector(), value);
            });
        } else if along_k {
            over(b, element, own, self.own.count, |b, i| {
                over(b, "t", terms, self.steps.count, |b, t| {
                    let value = self.load(&i, &(at.clone() + t.clone()), end);
                    b.store(self.place_of(held, u, &i, &t), value);
                });
            });
        } else {
            let (name, count) = match self.plan.has_free_vectors() {
                true => ("v", width),
                false => (element, 1),
            };
            over(b, "t", terms, self.steps.count, |b, t| {
                over(b, name, own / count as i32, self.own.count / count, |b, i| {
                    let value = self.load(&i, &(at.clone() + t.clone()), end);
                    let to = self.place_of(held, u, &(i * count as i32), &t);
                    b.store(if count > 1 { to.vector() } else { to }, value);
                });
            });
        }
    }

    /// Element `i` of the thread at k = `at`, or vector `i` along the free axis. It is replaced by
    /// zero if k ≥ `end`.
    fn load(&self, i: &Expr, at: &Expr, end: Option<&Expr>) -> Expr {
        let from = self.at(i, at.clone());
        let vector = self.plan.has_free_vectors();
        let value = if vector { from.vector().load() } else { from.load() };
        let Some(end) = end else { return value };
        let zero = if self.plan.free() == Axis::M { -0.0 } else { 0.0 };
        let zero = zero_of(self.plan.elem(), zero);
        let none = if vector { Expr::Pack(vec![zero; self.plan.width() as usize]) } else { zero };
        at.clone().lt(end.clone()).select(value, none)
    }

    /// Access to element (or vector) `i` of the thread at k = `at`.
    fn at(&self, i: &Expr, at: Expr) -> Access {
        let free = match &self.place {
            LinePlace::Behind(first) if self.plan.has_free_vectors() => {
                first.clone() + i.clone() * self.plan.width() as i32
            }
            LinePlace::Behind(first) => first.clone() + i.clone(),
            LinePlace::One(place) => place.clone(),
            LinePlace::Many(places) => Access::new(*places, [i.clone()]).load(),
        };
        match self.plan.free() {
            Axis::M => self.matrix.at(free, at),
            Axis::N | Axis::K => self.matrix.at(at, free),
        }
    }

    /// Register of element `i`, for element `t` of step `u`.
    fn place_of(&self, held: &FactorRegisters, u: &Expr, i: &Expr, t: &Expr) -> Access {
        let FactorRegisters::Many { array, several } = held else {
            unreachable!("`read`: one element is not in an array")
        };
        let u = several.then(|| u.clone());
        let i = (self.own.count > 1).then(|| i.clone());
        let t = self.steps.terms.map(|_| t.clone());
        let index = if self.plan.lies_along_k() { [u, i, t] } else { [u, t, i] };
        Access::new(*array, index.into_iter().flatten())
    }

    /// Value of element `i`, for element `t` of step `u`.
    fn element(&self, held: &FactorRegisters, u: &Expr, i: &Expr, t: &Expr) -> Expr {
        match held {
            FactorRegisters::One(Some(element)) => element.clone(),
            FactorRegisters::One(None) => unreachable!("`read` comes before `multiply`"),
            FactorRegisters::Many { .. } => self.place_of(held, u, i, t).load(),
        }
    }
}

/// Operand, with the registers of its loaded elements.
#[derive(Clone, Copy)]
pub(super) struct LoadedFactor<'r> {
    pub reader: &'r FactorReader,
    pub registers: &'r FactorRegisters,
}

impl LoadedFactor<'_> {
    fn element(&self, u: &Expr, i: &Expr, t: &Expr) -> Expr {
        self.reader.element(self.registers, u, i, t)
    }
}

/// Multiplies the loaded elements of step `u`, in ascending k.
pub(super) fn multiply(
    b: &mut KernelBuilder,
    acc: &Accumulators,
    left: LoadedFactor<'_>,
    right: LoadedFactor<'_>,
    u: &Expr,
) {
    let (rows, cols) = (left.reader.own, right.reader.own);
    let steps = left.reader.steps;
    let terms = steps.terms.map_or(Expr::I32(1), Expr::from);
    over(b, "t", terms, steps.count, |b, t| {
        over(b, "m", rows.name.into(), rows.count, |b, m| {
            over(b, "n", cols.name.into(), cols.count, |b, n| {
                let (a_element, b_element) = (left.element(u, &m, &t), right.element(u, &n, &t));
                let at = AccumulatorIndex { partial: 0.into(), m, n };
                acc.multiply_add(b, at, a_element, b_element);
            });
        });
    });
}
