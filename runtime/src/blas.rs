//! GEMM with the arguments of BLAS. The views have the layouts, and a table of this crate chooses
//! the kernel.

mod calls;
mod choice;
mod epilogue;
mod features;
mod gemm;
mod rule_lines;
mod tables;
#[cfg(test)]
mod tests;
mod tuned;
mod warm;

use crate::compile::Arch;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::kernel::operands::{AnyOperand, ByName, Named, Operands, OperandsFor, ScaledOperands};
use crate::kernel::{Chooses, GemmMatrices, GroupOffsets, NamedMatrix, SgemmTable, launch_chosen};
use crate::report::LaunchReport;
use crate::splits::SplitBuffers;
use crate::trace::{event, span};
use crate::view::{AsMatrixMutOf, AsMatrixOf, MatrixMut, MatrixRef};
use gemm_dsl::ir::Extent;
use gemm_dsl::ir::contract::Subject;
use gemm_dsl::spec::{Accuracy, EpilogueArg, Pairs};
use gemm_dsl::tables::SgemmProblem;
use gemm_dsl::target::element::Element;
use tables::{CallFeatures, Shipped, Tables};

pub use calls::SgemmCalls;
pub use epilogue::{Epilogue, EpilogueSlot};
pub use gemm::{F32Sums, GemmElement, gemm, gemm_tables};
pub use tuned::TunedCall;
pub use warm::warm;

/// C = alpha·A·B + beta·C for matrices of `f32` on a device.
///
/// Each matrix may be row-major or column-major, packed or padded, single, a batch or a list. One
/// of the [`sgemm_tables`] chooses the kernel by extents and layouts.
///
/// ```
/// use gemm_runtime::{Device, MatrixMut, MatrixRef, sgemm};
///
/// let device = Device::simulator();
/// let (a, b) = (device.upload(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?, device.upload(&[1.0; 6])?);
/// let mut c = device.upload(&[10.0; 4])?;
/// // A is column-major: a row-major view of its memory is Aᵀ.
/// let (a, b) = (MatrixRef::new(&a, 3, 2)?, MatrixRef::new(&b, 3, 2)?);
/// sgemm(&a.t(), &b, &mut MatrixMut::new(&mut c, 2, 2)?).alpha(0.5).beta(2.0).run(&device)?;
/// assert_eq!(device.download(&c)?, [24.5, 24.5, 26.0, 26.0]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
///
/// # From cuBLAS
///
/// cuBLAS takes column-major matrices. A column-major matrix is the transpose of a row-major
/// [`MatrixRef`]. In this table, `x(p, rows, cols, ld)` stands for
/// `MatrixRef::pitched(&p, cols, rows, ld)?.t()`.
///
/// | `cublasSgemm` | here |
/// | --- | --- |
/// | `handle` | the [`Device`] of [`SgemmCall::run`], with its stream |
/// | A, `CUBLAS_OP_N` | `&x(a, m, k, lda)` |
/// | A, `CUBLAS_OP_T` or `_C` | `&x(a, k, m, lda).t()` |
/// | B, `CUBLAS_OP_N` | `&x(b, k, n, ldb)` |
/// | B, `CUBLAS_OP_T` or `_C` | `&x(b, n, k, ldb).t()` |
/// | C | `&mut MatrixMut::pitched(&mut c, n, m, ldc)?.t()` |
/// | `alpha`, `beta` | [`SgemmCall::alpha`], [`SgemmCall::beta`], as host scalars |
///
/// For `cublasSgemmBatched`, pass a [`MatrixList`](crate::MatrixList) of such views for A and for
/// B, and a [`MatrixListMut`](crate::MatrixListMut) for C. For `cublasSgemmStridedBatched`, use
/// [`MatrixRef::batch_apart`] and [`MatrixMut::batch_apart`] in place of `pitched`. For a stride of
/// 0, use `pitched`.
///
/// As in BLAS, C is not read if beta is 0, so a NaN in C does not affect the result. If alpha or k
/// is 0, neither A nor B is read.
///
/// # Rounding
///
/// Without [`SgemmCall::accuracy`] all arithmetic is `f32`, and results differ from the results of
/// cuBLAS only in rounding. Each element is summed in ascending K, or in parts of K if the chosen
/// spec has `slices`, `lanes: k`, `split_k` or `stream_k`.
///
/// A GEMM of the same matrices in the same layouts has the same bits on every run, and on every
/// device with the same table and number of SMs. The table chooses its rule by the extents, by the
/// layouts, and by the alignment of rows or columns to 16 bytes. For a view at another offset or
/// with padded rows, it may therefore choose another kernel with other bits.
///
/// # First launches
///
/// The first launch of a kernel compiles it; [`LaunchReport::compiled`] returns the time. [`warm`]
/// compiles kernels in advance.
pub fn sgemm<'a, A, B, C>(a: &'a A, b: &'a B, c: &'a mut C) -> SgemmCall<'a>
where
    A: AsMatrixOf<f32> + ?Sized,
    B: AsMatrixOf<f32> + ?Sized,
    C: AsMatrixMutOf<f32> + ?Sized,
{
    gemm(a, b, c)
}

/// GEMM of matrices of `f32` that has not been launched, returned by [`sgemm`].
///
/// `E` lists the kinds of the operands of its epilogue, and `O` is the type of the operands passed
/// so far, as for a [`Call`](crate::generic::Call).
pub type SgemmCall<'a, E = (), O = ()> = GemmCall<'a, f32, f32, E, O>;

/// GEMM that has not been launched, returned by [`gemm`] and by [`sgemm`].
///
/// `T` is the type of the elements of A and B, and `C` of those of C. `E` lists the kinds of the
/// operands of its epilogue, and `O` is the type of the operands passed so far, as for a
/// [`Call`](crate::generic::Call).
#[derive(Debug)]
#[must_use = "nothing is computed before `run`"]
pub struct GemmCall<'a, T: Element, C: Element, E = (), O = ()> {
    a: MatrixRef<'a, T>,
    b: MatrixRef<'a, T>,
    c: MatrixMut<'a, C>,
    /// Prepared splits of A and of B, if the caller passed them.
    splits: [Option<&'a SplitBuffers>; 2],
    alpha: f32,
    beta: f32,
    accuracy: Accuracy,
    epilogue: Option<Epilogue<E>>,
    operands: O,
    /// Offsets of the groups of a grouped GEMM.
    groups: Option<GroupOffsets<'a>>,
    /// Answer that precedes the table.
    tuned: Option<&'a TunedCall>,
}

/// Table for a call, with the features that the call needs.
struct TableCall<'e, T: Element, C: Element> {
    table: &'static Shipped<T, C>,
    asked: CallFeatures<'e>,
    tuned: Option<&'e TunedCall>,
}

impl<'e, T: Element, C: Element> TableCall<'e, T, C> {
    /// Line for a problem: that of the answer, or else of the table.
    fn chosen(&self, problem: &SgemmProblem) -> Result<&'e str> {
        match self.tuned.and_then(|tuned| tuned.chosen(problem, self.asked)) {
            Some((_, line)) => Ok(line),
            None => Ok(self.table.chosen(problem, self.asked)?.1),
        }
    }
}

impl<T: Element, C: Element> Chooses for TableCall<'_, T, C> {
    fn operands(&self) -> &[EpilogueArg] {
        self.asked.epilogue.map_or(&[], |epilogue| &epilogue.operands)
    }

    fn pairs(&self) -> Pairs {
        self.asked.epilogue.map_or(Pairs::None, |epilogue| epilogue.pairs)
    }

    fn line(&self, problem: &SgemmProblem) -> Result<&str> {
        span!("choose");
        let line = self.chosen(problem)?;
        event!("chosen", spec = line);
        Ok(line)
    }
}

impl<'a, T: F32Sums, C: Element> GemmCall<'a, T, C> {
    /// Fuses an epilogue into the GEMM: C is the value of its expression. The accumulator `acc` is
    /// alpha·A·B + beta·C.
    ///
    /// The table chooses the rule by the matrices, as without an epilogue, and the kernel of this
    /// rule is generated with the epilogue. Pass the operands of the epilogue with
    /// [`operands`](SgemmCall::operands); a call without them does not compile:
    ///
    /// ```
    /// use gemm_runtime::{Device, Epilogue, MN, N, epilogue, sgemm};
    ///
    /// const LAYER: Epilogue<(N, MN)> =
    ///     epilogue!(|acc, bias[n], residual[m, n]| gelu(acc + bias) + residual);
    ///
    /// let device = Device::simulator();
    /// let x = device.upload_matrix(&[1.0; 6], 2, 3)?;
    /// let w = device.upload_matrix(&[2.0; 6], 3, 2)?;
    /// let (bias, residual) = (device.upload(&[-6.0; 2])?, device.upload_matrix(&[4.0; 4], 2, 2)?);
    /// let mut y = device.alloc_matrix(2, 2)?;
    /// let call = sgemm(&x, &w, &mut y).epilogue(LAYER).operands((&bias, &residual));
    /// assert!(call.choice(&device)?.spec.ends_with(&format!("epilogue: {LAYER}")));
    /// call.run(&device)?;
    /// assert_eq!(device.download(&y)?, [4.0; 4]);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// The indices of operands and the integers `m`, `n`, `row` and `col` refer to the C of this
    /// call, also if C is column-major. An `[m, n]` operand has the layout of C, and may be padded.
    /// It is a single matrix for all GEMMs, or a batch with a matrix for each.
    ///
    /// If a rule has no registers for the operands of an epilogue, the next rule whose condition
    /// holds is taken. [`choice`](SgemmCall::choice) returns the chosen rule.
    pub fn epilogue<E: Operands>(
        self,
        epilogue: Epilogue<E>,
    ) -> GemmCall<'a, T, C, E, E::Unset<'a>> {
        let Self { a, b, c, splits, alpha, beta, accuracy, groups, tuned, .. } = self;
        let (epilogue, operands) = (Some(epilogue), E::Unset::default());
        GemmCall { a, b, c, splits, alpha, beta, accuracy, epilogue, operands, groups, tuned }
    }
}

impl<'a, T: Element, C: Element, E> GemmCall<'a, T, C, E> {
    /// Passes all operands of the epilogue as a tuple, in the order of its type: `(&bias, 0.5)` for
    /// an `Epilogue<(N, f32)>`. A single operand needs no tuple.
    pub fn operands<O: OperandsFor<E>>(self, operands: O) -> GemmCall<'a, T, C, E, O> {
        let Self { a, b, c, splits, alpha, beta, accuracy, epilogue, groups, tuned, .. } = self;
        GemmCall { a, b, c, splits, alpha, beta, accuracy, epilogue, operands, groups, tuned }
    }
}

impl<'a, T: Element, C: Element> GemmCall<'a, T, C, ByName, Named<'a>> {
    /// Passes an operand of the epilogue by name: an `f32`, or a reference to an array on the
    /// device.
    pub fn operand(mut self, name: &str, given: impl AnyOperand + 'a) -> Self {
        self.operands.push(name, given);
        self
    }
}

impl<T: F32Sums, C: Element, E, O> GemmCall<'_, T, C, E, O> {
    /// Sets the factor of A·B. The default is 1.
    pub fn alpha(self, alpha: f32) -> Self {
        Self { alpha, ..self }
    }

    /// Sets the factor of the previous C. The default is 0.
    pub fn beta(self, beta: f32) -> Self {
        Self { beta, ..self }
    }
}

impl<E, O> SgemmCall<'_, E, O> {
    /// Sets the accuracy class, which bounds the error of the elements of A·B. The default is
    /// [`Accuracy::Ieee`].
    ///
    /// A wider class permits FP32 emulation on tensor cores, for the shapes where it was faster on
    /// an H200. Only the tables of `sm_90` have such rules; the rules of all other tables compute
    /// in `f32`. [`SgemmCall::choice`] returns the chosen spec, which names its arithmetic.
    ///
    /// ```
    /// use gemm_runtime::{Device, MatrixRef, sgemm, spec::Accuracy};
    ///
    /// let device = Device::simulator();
    /// let (a, b) = (device.upload(&[1.0; 6])?, device.upload(&[2.0; 12])?);
    /// let (a, b) = (MatrixRef::new(&a, 2, 3)?, MatrixRef::new(&b, 3, 4)?);
    /// let mut c = device.alloc_matrix(2, 4)?;
    /// sgemm(&a, &b, &mut c).accuracy(Accuracy::Bound).run(&device)?;
    /// assert_eq!(device.download(&c)?, [6.0; 8]);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    pub fn accuracy(self, accuracy: Accuracy) -> Self {
        Self { accuracy, ..self }
    }
}

impl<T: GemmElement<C>, C: Element, E, O> GemmCall<'_, T, C, E, O> {
    /// Launches the GEMM on the device's stream. On a GPU the call returns before the work is done.
    ///
    /// # Errors
    /// * [`Error::Extents`] if the extents of the views disagree.
    /// * [`Error::OddColumns`] if the epilogue computes pairs of columns and n is odd.
    /// * [`Error::Unlisted`] if some but not all views are lists.
    /// * [`Error::FoldsOfColumns`] if the epilogue folds the rows of a column-major C, and
    ///   [`Error::PairsOfRows`] if it computes pairs of its columns.
    /// * [`Error::Scattered`] for a matrix that is neither row-major nor column-major.
    /// * [`Error::OperandLayout`] if C is column-major and an `[m, n]` operand is not.
    /// * [`Error::Spec`] if no kernel can take the epilogue: its operands need too many registers,
    ///   or one has the name of `alpha` or `beta` in a call that sets alpha or beta.
    /// * The errors of [`SgemmKernel::launch`](crate::SgemmKernel::launch), also for operands. For
    ///   operands by name, [`Error::MissingOperand`], [`Error::UnknownOperand`],
    ///   [`Error::RepeatedOperand`] and [`Error::WrongOperand`].
    pub fn run(self, device: &Device) -> Result<LaunchReport>
    where
        O: OperandsFor<E>,
    {
        let tables = Tables::on(device, self.accuracy);
        self.run_by(tables, device)
    }

    fn run_by(self, tables: &'static Tables<T, C>, device: &Device) -> Result<LaunchReport>
    where
        O: OperandsFor<E>,
    {
        let features = self.features()?;
        let (splits, tuned) = (self.splits_of_factors(), self.answer());
        let Self { a, b, mut c, alpha, beta, epilogue, mut operands, groups, .. } = self;
        let is_row_major = c.shape().is_row_major();
        let epilogue = epilogue.as_ref().map(|epilogue| epilogue.for_c(is_row_major));
        let asked = CallFeatures { epilogue, ..features };
        let asks = TableCall { table: tables.table(asked), asked, tuned };
        let factors = asked.scaled.then_some([alpha, beta]);
        let mut operands = ScaledOperands { factors, operands: &mut operands };
        if is_row_major {
            let (a, b) = (NamedMatrix::new("a", &a), NamedMatrix::new("b", &b));
            let c = NamedMatrix::new("c", &mut c);
            let matrices = GemmMatrices { a, b, c, splits, groups, is_transposed: false };
            return launch_chosen(&asks, device, matrices, &mut operands);
        }
        // The transposed GEMM Cᵀ = Bᵀ·Aᵀ has a row-major result.
        let (first, second, mut to) = (b.t(), a.t(), c.t());
        let (a, b) = (NamedMatrix::new("b", &first), NamedMatrix::new("a", &second));
        let c = NamedMatrix::new("c", &mut to);
        let matrices = GemmMatrices { a, b, c, splits, groups, is_transposed: true };
        let turned = launch_chosen(&asks, device, matrices, &mut operands);
        turned.map_err(|error| match error {
            Error::Unmet(mut unmet) => {
                unmet.subject = match unmet.subject {
                    Subject::Extent(Extent::M) => Subject::Extent(Extent::N),
                    Subject::Extent(Extent::N) => Subject::Extent(Extent::M),
                    other => other,
                };
                Error::Unmet(unmet)
            }
            other => other,
        })
    }
}

/// Returns the two tables by which [`sgemm`] chooses a kernel. The first is for single GEMMs. The
/// second is for batches and lists; its specs have `batch: strided`.
///
/// * `sm_90`: the rules for single GEMMs are measured on an H200; the rules for batches are written
///   by hand.
/// * `sm_80` (also for 87), `sm_89` (86 and 88), `sm_100` (101, 103 and 110) and `sm_120` (121):
///   the rules of `sm_90`, adapted to the shared memory of the GPU and not measured.
/// * Other GPUs, and the simulator (`None`): rules that every GPU can run, not measured.
///
/// A spec in these tables has none of the keys `scaled`, `layout`, `pitched` and `epilogue`, which
/// `sgemm` sets for each call. `sgemm` also reduces `stages`, then `slices`, until the shared
/// memory of a block suffices (99 KiB on `sm_89` and `sm_120`). It reduces `blocks_per_sm` until
/// the shared memory of an SM suffices.
///
/// For an accuracy class wider than [`Accuracy::Ieee`], the tables of `sm_90` begin with rules for
/// tensor cores. These rules cover the GEMMs that were faster on the tensor cores of an H200.
///
/// ```
/// use gemm_runtime::{compile::Arch, sgemm_tables, spec::Accuracy};
///
/// let [single, batch] = sgemm_tables(Some(Arch::sm(90)), Accuracy::Ieee);
/// println!("{single}\n\n{batch}");
/// ```
pub fn sgemm_tables(arch: Option<Arch>, accuracy: Accuracy) -> [&'static SgemmTable; 2] {
    let Tables { one, batch } = Tables::for_arch(arch.map(Arch::number), accuracy);
    [&one.table, &batch.table]
}
