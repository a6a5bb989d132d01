//! Operands of the epilogue, including C if it is read: their declaration, and the point at which a
//! thread loads them.
//!
//! A thread may load the operands of its GEMM and of its columns first, and then the operands of a
//! row before the outputs of the row. All remaining operands are loaded for each store.
//! [`LoadedArgs`] contains all operands of a store.

use super::batch_axes::{batched, distance_name};
use super::problem::{GemmProblem, Matrix, halved};
use crate::ir::{
    Access, BufferId, Elem, Expr, KernelBuilder, Operand, Requirement, Scalar, Source, Ty, Var,
    joined,
};
use crate::lower::literal::zero_of;
use crate::plan::SgemmPlan;
use crate::spec::{Along, ArgSlot, Batch, EpilogueArg, SgemmSpec, Sharing};

/// Epilogue operands and the state of their loading: the spec's operands in order, then C.
#[derive(Clone)]
pub(crate) struct EpilogueArgs(Vec<DeclaredArg>);

#[derive(Clone)]
struct DeclaredArg {
    name: String,
    /// Name of the variable for this thread's part of the array.
    own: String,
    elem: Elem,
    value: ArgSource,
}

/// Index of an epilogue operand, including C.
#[derive(Clone, Copy)]
pub(crate) struct ArgIndex(usize);

/// Location of an operand's value for an output.
#[derive(Clone)]
enum ArgSource {
    Number(Scalar),
    /// Global memory, with one element for each column of C.
    Column(ArgLine),
    /// Array of registers, with one element for each column of the thread.
    Kept(BufferId),
    /// Global memory, with one element for each row of C.
    Row(ArgLine),
    /// Global memory, with one element for each GEMM of a batch.
    Item(Access),
    /// Loaded value that applies to all outputs of a row, or of the GEMM.
    Loaded(Expr),
    /// Global memory, with one element for each element of C. If there is a condition and it is
    /// false, the value is 0.
    Element(Matrix, Option<Expr>),
}

/// Array with one element for each column or row of C.
#[derive(Clone, Copy)]
pub(crate) struct ArgLine {
    buffer: BufferId,
    /// GEMM of the batch, if each has a line of its own.
    product: Option<Var>,
}

impl ArgLine {
    pub(crate) fn at(&self, i: impl Into<Expr>) -> Access {
        let product = self.product.map(Expr::from);
        Access::new(self.buffer, product.into_iter().chain([i.into()]))
    }
}

/// Name of a variable for a part of the n-th array, such as `loaded_bias`. C++ reserves names with
/// double underscores, so these are merged. The array's index distinguishes names that are equal
/// after merging.
fn called(what: &str, name: &str, nth: usize) -> String {
    match joined(name) {
        plain if plain == name => format!("{what}_{name}"),
        plain => format!("{what}_{nth}_{plain}"),
    }
}

impl EpilogueArgs {
    /// Declares the operands' parameters, after those of the GEMM, and their launch requirements.
    pub(crate) fn declare(b: &mut KernelBuilder, plan: &SgemmPlan, problem: &GemmProblem) -> Self {
        let spec = plan.spec();
        let vectors = plan.epilogue_plan().is_some_and(|epilogue| epilogue.width() > 1);
        let read = spec.operands().into_iter().filter(|operand| !operand.is_output());
        let declared = read.map(|operand| {
            let (value, own) = match operand.slot {
                ArgSlot::Output(_) => unreachable!("filter: the operand is read"),
                ArgSlot::Number(nth) => {
                    let number = b.scalar(
                        &operand.name,
                        Ty::Scalar(plan.types().value()),
                        Source::Argument(nth),
                    );
                    b.mark_user_named();
                    (ArgSource::Number(number), String::new())
                }
                ArgSlot::Array(nth) => {
                    let value = array(b, plan, problem, &operand, vectors);
                    (value, called("loaded", &operand.name, nth))
                }
            };
            DeclaredArg { name: operand.name.into_owned(), own, elem: plan.types().value(), value }
        });
        let mut operands = Self(declared.collect());
        if spec.reads_c() {
            // Under `scaled` without an epilogue that names C, C is read only if beta is nonzero.
            let beta = match operands.named(SgemmSpec::BETA) {
                Some((_, ArgSource::Number(beta))) if spec.scaled && !spec.names_c() => Some(*beta),
                _ => None,
            };
            let none = Expr::F32(0.0).cast(plan.types().value());
            let when = beta.map(|beta| Expr::from(beta).differs(none));
            let (elem, value) = (plan.types().c, ArgSource::Element(problem.c(), when));
            operands.0.push(DeclaredArg { name: C.into(), own: "old_c".into(), elem, value });
        }
        operands
    }

    fn named(&self, name: &str) -> Option<(ArgIndex, &ArgSource)> {
        let nth = self.0.iter().position(|beside| beside.name == name)?;
        Some((ArgIndex(nth), &self.0[nth].value))
    }

    /// Index of the operand with this name in the spec. The name of C is `c`.
    pub(crate) fn nth(&self, name: &str) -> ArgIndex {
        let found = self.named(name);
        found.map_or_else(|| unreachable!("declare: `{name}` is there"), |(nth, _)| nth)
    }

    /// Loads the operands of a GEMM of a batch.
    pub(crate) fn items(&self, b: &mut KernelBuilder) -> Self {
        let mut read = self.clone();
        for beside in &mut read.0 {
            if let ArgSource::Item(memory) = &beside.value {
                let own = b.let_(&beside.own, memory.clone().load());
                beside.value = ArgSource::Loaded(own.into());
            }
        }
        read
    }

    /// Loads the operands of a thread's columns before the loop over its rows. `fill` copies them
    /// from global memory to arrays of `count` registers.
    pub(crate) fn columns(
        &self,
        b: &mut KernelBuilder,
        count: Expr,
        fill: impl FnOnce(&mut KernelBuilder, &[(ArgLine, BufferId)]),
    ) -> Self {
        if !self.0.iter().any(|beside| matches!(beside.value, ArgSource::Column(_))) {
            return self.clone();
        }
        b.comment("Epilogue operands of this thread's columns.");
        let mut filled = Vec::new();
        let mut read = self.clone();
        for beside in &mut read.0 {
            if let ArgSource::Column(memory) = beside.value {
                let kept = b.registers(&beside.own, beside.elem, [count.clone()], "");
                filled.push((memory, kept));
                beside.value = ArgSource::Kept(kept);
            }
        }
        fill(b, &filled);
        read
    }

    /// Loads the operands of a row of C.
    pub(crate) fn row(&self, b: &mut KernelBuilder, row: &Expr) -> Self {
        let mut read = self.clone();
        for beside in &mut read.0 {
            if let ArgSource::Row(memory) = beside.value {
                let own = b.let_(&beside.own, memory.at(row.clone()).load());
                beside.value = ArgSource::Loaded(own.into());
            }
        }
        read
    }

    /// Returns true if an operand has the shape of C.
    pub(crate) fn has_elements(&self) -> bool {
        self.0.iter().any(|beside| matches!(beside.value, ArgSource::Element(..)))
    }

    /// The operands with elements of C's shape read as 0 if `inside` is false.
    pub(crate) fn only_if(&self, inside: &Expr) -> Self {
        let mut guarded = self.clone();
        for beside in &mut guarded.0 {
            if let ArgSource::Element(_, when) = &mut beside.value {
                *when = Some(match when.take() {
                    None => inside.clone(),
                    Some(when) => when.and(inside.clone()),
                });
            }
        }
        guarded
    }

    /// The operands with names of variables for the odd column of a pair.
    pub(crate) fn in_odd_column(&self) -> Self {
        let mut odd = self.clone();
        odd.0.iter_mut().for_each(|beside| beside.own.insert_str(0, "next_"));
        odd
    }

    /// Loads the remaining operands for one element of C, or for four elements of a row. `n` is the
    /// index of the first one among the thread's columns.
    pub(crate) fn rest(
        &self,
        b: &mut KernelBuilder,
        at: ElementOfC<'_>,
        n: Expr,
        vector: bool,
    ) -> LoadedArgs {
        let mut read = |arg: &DeclaredArg, from: Access, when: Option<&Expr>| {
            let DeclaredArg { own, elem, .. } = arg;
            let none = zero_of(*elem, 0.0);
            let (value, none) = match vector {
                true => {
                    let lanes = elem.vector_lanes().into();
                    (from.vector().load(), Expr::Pack(vec![none; lanes]))
                }
                false => (from.load(), none),
            };
            let value = match when {
                Some(when) => when.clone().select(value, none),
                None => value,
            };
            let own = b.let_(own, value).into();
            if vector { ArgValue::Lanes(own) } else { ArgValue::Same(own) }
        };
        let each = self.0.iter().map(|arg| match &arg.value {
            ArgSource::Number(number) => ArgValue::Same((*number).into()),
            ArgSource::Loaded(value) => ArgValue::Same(value.clone()),
            ArgSource::Kept(kept) => ArgValue::Kept(*kept),
            ArgSource::Column(memory) => read(arg, memory.at(at.col.clone()), None),
            ArgSource::Row(memory) => ArgValue::Same(memory.at(at.row.clone()).load()),
            ArgSource::Item(memory) => ArgValue::Same(memory.clone().load()),
            ArgSource::Element(memory, when) => {
                read(arg, memory.at(at.row.clone(), at.col.clone()), when.as_ref())
            }
        });
        LoadedArgs { each: each.collect(), n }
    }
}

/// Row and column of an element of C.
#[derive(Clone, Copy)]
pub(crate) struct ElementOfC<'e> {
    pub row: &'e Expr,
    pub col: &'e Expr,
}

/// Name of C in the epilogue language.
pub(crate) const C: &str = "c";

/// All operands for one element of C or for adjacent elements.
pub(crate) struct LoadedArgs {
    each: Vec<ArgValue>,
    /// Index of the first element's column among the thread's columns.
    n: Expr,
}

enum ArgValue {
    /// One value for all elements.
    Same(Expr),
    /// Vector with a value for each element.
    Lanes(Expr),
    /// Array of registers with a value for each column of the thread.
    Kept(BufferId),
}

impl LoadedArgs {
    /// Value for the j-th element.
    pub(crate) fn value(&self, index: ArgIndex, j: usize) -> Expr {
        match &self.each[index.0] {
            ArgValue::Same(value) => value.clone(),
            ArgValue::Lanes(vector) => vector.clone().lane(j as u8),
            ArgValue::Kept(kept) => Access::new(*kept, [self.n.clone() + j as i32]).load(),
        }
    }
}

/// Declares an array and its launch requirements.
fn array(
    b: &mut KernelBuilder,
    plan: &SgemmPlan,
    problem: &GemmProblem,
    operand: &EpilogueArg,
    vectors: bool,
) -> ArgSource {
    let ArgSlot::Array(nth) = operand.slot else { unreachable!("declare: the operand is read") };
    let of = Operand::Input(nth);
    let elem = plan.types().value();
    let buffer = b.global(&operand.name, elem, of);
    b.mark_user_named();
    let along = operand.along;
    let array = DeclaredArray { buffer, elem, of, along, name: &operand.name, nth };
    let (m, n) = (Expr::from(problem.m), Expr::from(problem.n));
    match operand.along {
        Along::Nothing => {
            unreachable!("SgemmSpec::operands: an operand without an axis is a number")
        }
        // An operand with elements along M alone is never read in vectors.
        Along::M => {
            b.shape(buffer, [m], [1.into()]);
            ArgSource::Row(ArgLine { buffer, product: None })
        }
        Along::BatchM => {
            array.declare_lines(b, problem, m);
            ArgSource::Row(ArgLine { buffer, product: problem.product })
        }
        Along::Batch => {
            let (count, product) = of_batch(problem);
            b.shape(buffer, [count.into()], [1.into()]);
            ArgSource::Item(Access::new(buffer, [product.into()]))
        }
        Along::N => {
            b.shape(buffer, [n], [1.into()]);
            array.require_vectors(b, None, vectors);
            ArgSource::Column(ArgLine { buffer, product: None })
        }
        Along::BatchN => {
            let apart = array.declare_lines(b, problem, n);
            array.require_vectors(b, Some(apart), vectors);
            ArgSource::Column(ArgLine { buffer, product: problem.product })
        }
        Along::Pairs => unreachable!("Along::ALL: no operand has this index"),
        Along::Mn => {
            let matrix = array.declare_matrix(b, plan, problem, vectors);
            array.require_vectors(b, None, vectors);
            ArgSource::Element(matrix, None)
        }
    }
}

/// Declares the matrices for the values of the epilogue after the first, and their launch
/// requirements.
pub(crate) fn outputs(
    b: &mut KernelBuilder,
    plan: &SgemmPlan,
    problem: &GemmProblem,
) -> Vec<Matrix> {
    let epilogue = plan.epilogue_plan();
    let vectors = epilogue.is_some_and(|epilogue| epilogue.width() > 1);
    let exchanges = epilogue.is_some_and(|epilogue| epilogue.groups() > 0);
    let outputs = plan.spec().operands().into_iter().filter(EpilogueArg::is_output);
    let outputs = outputs.filter(|output| !output.is_row_result());
    let outputs = outputs.map(|operand| {
        let ArgSlot::Output(nth) = operand.slot else { unreachable!("is_output: it is written") };
        let of = Operand::Output(nth);
        let name = operand.name.to_uppercase();
        let buffer = b.global(&name, plan.types().c, of);
        // Whichever block is last, each element is stored once.
        if plan.sharing() != Sharing::Whole {
            b.exclusive(buffer);
        }
        let (elem, along) = (plan.types().c, operand.along);
        let array = DeclaredArray { buffer, elem, of, along, name: &operand.name, nth };
        let vectors = exchanges || vectors && operand.along == Along::Mn;
        let matrix = array.declare_matrix(b, plan, problem, vectors);
        array.require_vectors(b, None, vectors);
        matrix
    });
    outputs.collect()
}

/// Parameter of an operand while the kernel declares it.
struct DeclaredArray<'o> {
    buffer: BufferId,
    elem: Elem,
    of: Operand,
    along: Along,
    name: &'o str,
    /// Index of the array among the inputs, or among the outputs.
    nth: usize,
}

impl DeclaredArray<'_> {
    /// Adds a parameter for each of `axes`: the distance between the parts of the GEMMs of a batch,
    /// in elements.
    fn declare_distances(&self, b: &mut KernelBuilder, axes: usize) -> Vec<Scalar> {
        let named = called("stride", self.name, self.nth);
        let declare = |dim| {
            let source = Source::Stride { operand: self.of, dim };
            let apart = b.scalar(&distance_name(&named, dim, axes), Ty::U64, source);
            b.mark_user_named();
            apart
        };
        (0..axes).map(declare).collect()
    }

    /// Sets the shape of an operand with a line of `len` elements for each GEMM of a batch. Returns
    /// the distance between two lines.
    fn declare_lines(&self, b: &mut KernelBuilder, problem: &GemmProblem, len: Expr) -> Scalar {
        let (count, _) = of_batch(problem);
        let source = Source::Stride { operand: self.of, dim: 0 };
        let apart = b.scalar(&called("stride", self.name, self.nth), Ty::U64, source);
        b.mark_user_named();
        b.shape(self.buffer, [count.into(), len], [apart.into(), 1.into()]);
        apart
    }

    /// Sets the shape of an operand with the shape of A·B, or with half as many columns.
    fn declare_matrix(
        &self,
        b: &mut KernelBuilder,
        plan: &SgemmPlan,
        problem: &GemmProblem,
        vectors: bool,
    ) -> Matrix {
        let lanes = u64::from(self.elem.vector_lanes());
        // For lists of A, B and C, the operand is a batch with one axis.
        let axes = match plan.batch() {
            Some(Batch::Pointers) => 1,
            batch => batch.map_or(0, Batch::axes),
        };
        let apart = self.declare_distances(b, axes);
        if vectors {
            for &scalar in &apart {
                b.require(Requirement::Multiple { scalar, of: lanes });
            }
        }
        let stride = match plan.pitched() {
            true => {
                let source = Source::Stride { operand: self.of, dim: axes };
                let stride = b.scalar(&called("ld", self.name, self.nth), Ty::I32, source);
                b.mark_user_named();
                stride
            }
            false => problem.n,
        };
        let dims = [problem.m, problem.n];
        let (dims, strides) = match self.along {
            Along::Pairs => halved(dims, stride),
            _ => (dims.map(Expr::from), [stride.into(), 1.into()]),
        };
        batched(b, self.buffer, problem.batch, &apart, dims, strides);
        if vectors && plan.pitched() {
            b.require(Requirement::Multiple { scalar: stride, of: lanes });
        }
        Matrix { buffer: self.buffer, stride, batch: problem.item }
    }

    /// Adds the launch requirements of an operand that is read in vectors. `apart` is the distance
    /// between its lines.
    fn require_vectors(&self, b: &mut KernelBuilder, apart: Option<Scalar>, vectors: bool) {
        if !vectors {
            return;
        }
        if let Some(scalar) = apart {
            let of = self.elem.vector_lanes().into();
            b.require(Requirement::Multiple { scalar, of });
        }
        b.require(Requirement::Aligned { operand: self.of, bytes: 16 });
    }
}

/// Number of GEMMs of a batch, and the index of the block's GEMM.
fn of_batch(problem: &GemmProblem) -> (Scalar, Var) {
    let found = problem.batch.zip(problem.product);
    let found = found.map(|(batch, product)| (batch.count, product));
    found.unwrap_or_else(|| unreachable!("plan: only a batch has such an operand"))
}
