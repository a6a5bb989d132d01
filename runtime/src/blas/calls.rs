//! Sets of [`sgemm`](crate::sgemm) calls, for archives.

use super::epilogue::CallEpilogue;
use super::gemm::GemmElement;
use super::tables::{CallFeatures, Shipped};
use crate::error::{Error, Result};
use gemm_dsl::Plan;
use gemm_dsl::spec::{Accuracy, Batch, Epilogue, GemmLayout, SgemmSpec};
use gemm_dsl::tables::{SgemmProblem, SgemmShape, Target};
use gemm_dsl::target::element::Element;
use std::collections::BTreeSet;

/// Calls of [`sgemm`](gemm_runtime::sgemm) whose kernels an archive shall contain.
///
/// [`all`](Self::all) selects every rule of the table of an architecture, for all layouts of A and
/// B. These are hundreds of kernels: compiling them takes minutes of processor time. [`layouts`]
/// and [`for_shapes`] select fewer.
///
/// C is row-major. A call with a column-major C launches the kernels of the transposed GEMM
/// Cᵀ = Bᵀ·Aᵀ.
///
/// [`layouts`]: Self::layouts
/// [`for_shapes`]: Self::for_shapes
#[derive(Clone, Debug)]
pub struct SgemmCalls {
    extents: Extents,
    /// Layouts of A and B, if they are restricted.
    layouts: Option<Vec<GemmLayout>>,
    is_padded: bool,
    is_scaled: bool,
    batch: Option<Batch>,
    accuracy: Accuracy,
    epilogue: Option<Epilogue>,
    /// [`lines_of`](SgemmCalls::lines_of) the element types.
    lines: fn(&Self, u32) -> Result<BTreeSet<String>>,
}

/// Extents of the calls, for the choice of rules.
#[derive(Clone, Debug)]
enum Extents {
    Any,
    /// These shapes, on GPUs with this number of SMs.
    Shapes(Vec<SgemmShape>, u32),
}

impl SgemmCalls {
    /// Calls of all extents and layouts, for single packed matrices, without alpha and beta.
    pub fn all() -> Self {
        Self::new(Extents::Any)
    }

    /// Calls of these shapes, which are `(m, n, k)` or [`SgemmShape`]s, on GPUs with this number of
    /// SMs. The conditions of the tables test the number of SMs: another model of the same
    /// architecture may choose other kernels. [`Device::multiprocessors`] returns the number.
    ///
    /// [`Device::multiprocessors`]: gemm_runtime::Device::multiprocessors
    pub fn for_shapes<I>(sms: u32, shapes: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<SgemmShape>,
    {
        Self::new(Extents::Shapes(shapes.into_iter().map(Into::into).collect(), sms))
    }

    fn new(extents: Extents) -> Self {
        Self {
            extents,
            layouts: None,
            is_padded: false,
            is_scaled: false,
            batch: None,
            accuracy: Accuracy::Ieee,
            epilogue: None,
            lines: Self::lines_of::<f32, f32>,
        }
    }

    /// Selects calls of [`gemm`](gemm_runtime::gemm) on matrices A and B with elements of type `T`,
    /// and C with elements of type `C`, in place of calls of `sgemm`.
    ///
    /// ```
    /// use gemm_runtime::half::bf16;
    /// use gemm_runtime::internal::SgemmCalls;
    ///
    /// let calls = SgemmCalls::for_shapes(132, [(4096, 4096, 4096)]).types::<bf16, bf16>();
    /// let lines = calls.lines(90)?;
    /// assert!(lines.iter().all(|line| line.contains("arith: bf16, mma: wgmma")));
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    #[must_use]
    pub fn types<T: GemmElement<C>, C: Element>(self) -> Self {
        Self { lines: Self::lines_of::<T, C>, ..self }
    }

    /// Restricts the calls to these layouts of A and B. Each shape of
    /// [`for_shapes`](Self::for_shapes) is taken in all of these layouts, in place of its own.
    #[must_use]
    pub fn layouts(self, layouts: &[GemmLayout]) -> Self {
        Self { layouts: Some(layouts.to_vec()), ..self }
    }

    /// Selects calls with padded rows or columns, in place of packed matrices. A shape of
    /// [`for_shapes`](Self::for_shapes) that does not say whether its rows are
    /// [aligned](SgemmShape::aligned) is taken with and without alignment.
    #[must_use]
    pub fn padded(self) -> Self {
        Self { is_padded: true, ..self }
    }

    /// Selects calls that set alpha or beta.
    #[must_use]
    pub fn scaled(self) -> Self {
        Self { is_scaled: true, ..self }
    }

    /// Selects batches of this kind.
    #[must_use]
    pub fn batch(self, batch: Batch) -> Self {
        Self { batch: Some(batch), ..self }
    }

    /// Selects calls with this accuracy class.
    #[must_use]
    pub fn accuracy(self, accuracy: Accuracy) -> Self {
        Self { accuracy, ..self }
    }

    /// Selects calls with this epilogue.
    #[must_use]
    pub fn epilogue(self, epilogue: Epilogue) -> Self {
        Self { epilogue: Some(epilogue), ..self }
    }

    /// Returns the specs of all kernels that the calls may launch on a GPU of this architecture,
    /// such as 90 for `sm_90`.
    ///
    /// # Errors
    /// * [`Error::Spec`] if no rule can take the epilogue.
    /// * [`Error::TooLarge`] for an extent of 2^31 or more.
    pub fn lines(&self, arch: u32) -> Result<BTreeSet<String>> {
        (self.lines)(self, arch)
    }

    fn lines_of<T: GemmElement<C>, C: Element>(&self, arch: u32) -> Result<BTreeSet<String>> {
        let epilogue = self.epilogue.clone().map(CallEpilogue::new);
        let (scaled, batch) = (self.is_scaled, self.batch);
        let asked = CallFeatures { scaled, batch, epilogue: epilogue.as_ref() };
        let table = T::tables(Some(arch), self.accuracy).table(asked);
        let types = table.table.types();
        match &self.extents {
            Extents::Any => {
                let layouts = self.layouts.as_deref().unwrap_or(GemmLayout::ALL);
                self.all_lines(table, layouts, asked)
            }
            Extents::Shapes(shapes, sms) => {
                let target = Target { arch, sms: *sms };
                let chosen = shapes.iter().flat_map(|shape| self.forms(*shape)).map(|shape| {
                    let problem = SgemmProblem { shape: shape.of_types(types), target };
                    table.chosen(&problem, asked).map(|(_, line)| line.to_owned())
                });
                chosen.collect()
            }
        }
    }

    /// Shape in the layouts, and with the padding and alignment, that the calls may have.
    fn forms(&self, shape: SgemmShape) -> Vec<SgemmShape> {
        let layouts = self.layouts.clone().unwrap_or_else(|| vec![shape.layout]);
        let forms = layouts.into_iter().map(|layout| shape.layout(layout));
        match (self.is_padded, shape.aligned) {
            (false, _) => forms.collect(),
            (true, Some(_)) => forms.map(|shape| shape.padded(true)).collect(),
            (true, None) => {
                let padded = forms.map(|shape| shape.padded(true));
                padded.flat_map(|shape| [true, false].map(|is| shape.aligned(is))).collect()
            }
        }
    }

    /// Specs of all rules in these layouts that can take the epilogue.
    fn all_lines<T: Element, C: Element>(
        &self,
        table: &Shipped<T, C>,
        layouts: &[GemmLayout],
        asked: CallFeatures<'_>,
    ) -> Result<BTreeSet<String>> {
        let (mut lines, mut faults) = (BTreeSet::new(), None);
        for (rule, row) in table.table.rules().iter().enumerate() {
            for SgemmSpec { layout, pitched, .. } in row.kernels().map(Plan::spec) {
                if *pitched != self.is_padded || !layouts.contains(layout) {
                    continue;
                }
                match table.spec(rule, *layout, *pitched, asked) {
                    Ok(spec) => _ = lines.insert(spec.to_string()),
                    // Calls skip a rule that cannot take the epilogue.
                    Err(found) => faults = Some(found),
                }
            }
        }
        match faults {
            Some(faults) if lines.is_empty() => Err(Error::Spec(faults)),
            _ => Ok(lines),
        }
    }
}
