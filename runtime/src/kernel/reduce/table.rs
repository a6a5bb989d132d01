//! Tables that choose a reduction kernel by the shape of its input.

use super::super::table::{Choice, ParsedTable, Table};
use super::fold::{ReduceArrays, check_segments, extents, fold};
use super::lists::{InputsFor, ResultsFor};
use super::{Elements, Folds, ReduceKernel, check};
use crate::device::Device;
use crate::error::Result;
use crate::report::LaunchReport;
use crate::segments::{Offset, Segments};
use gemm_dsl::spec::ReduceSpec;
use gemm_dsl::tables::KernelTable;
use gemm_dsl::tables::shipped::tuned;

/// Table of specs for one reduction. It chooses a spec by the shape of the input. Built by
/// [`reduce_table!`](crate::reduce_table). `T` and `R` are the types of a [`ReduceKernel`]. Only
/// chosen kernels are compiled.
///
/// Conditions test the extents `outer`, `len` and `inner` of the input. An extent that `over` does
/// not have is 1. For segments, `outer` is the number of segments and `len` the number of elements
/// of the array. No condition depends on the device, so the bits of a result depend only on the
/// table and the shape.
///
/// ```
/// use gemm_runtime::{Device, MatrixRef, ReduceTable, reduce_table};
///
/// const NORMS: ReduceTable = reduce_table! {
///     len <= 64 => over: rows, map: |x| x * x, finish: |s| sqrt(s), group: 8;
///     else => over: rows, map: |x| x * x, finish: |s| sqrt(s), group: 256, shuffle, items: 4;
/// };
///
/// let device = Device::simulator();
/// let (x, mut norms) = (device.upload(&[3.0, 4.0, 0.0, 6.0, 8.0, 0.0])?, device.alloc(2)?);
/// NORMS.launch(&device, &MatrixRef::new(&x, 2, 3)?, &mut norms)?;
/// assert_eq!(device.download(&norms)?, [5.0, 10.0]);
/// assert_eq!(NORMS.choice((2, 3, 1))?.condition.as_deref(), Some("len <= 64"));
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
pub type ReduceTable<T = f32, R = T> = Table<ReduceSpec, Folds<T, R>>;

impl<T, R> ReduceTable<T, R> {
    /// Builds a table of parsed rules. It equals the table that the macro builds from the same
    /// rules.
    ///
    /// # Errors
    /// [`Error::KernelType`](crate::Error::KernelType) if `T` and `R` are not the types of the
    /// rules' inputs and results.
    pub fn new(table: &KernelTable<ReduceSpec>) -> Result<Self>
    where
        T: Elements,
        R: Elements,
    {
        for row in table.rules() {
            check::<T, R>(&row.spec)?;
        }
        Ok(Self::checked(table.clone()))
    }

    /// Returns the table of this crate for the computation of a spec. The computation consists of
    /// `op` or `fold`, the expressions, the types and `over`. All other keys are ignored. The rules
    /// were chosen by hand from times of `f32` arrays on an H200, which `cargo run --release -p
    /// gemm-bench --example rows` measures.
    ///
    /// ```
    /// use gemm_runtime::{Device, ReduceTable};
    ///
    /// let logsumexp = ReduceTable::<f32>::tuned(&"op: logsumexp, over: rows".parse()?)?;
    /// assert_eq!(
    ///     logsumexp.choice((4096, 128, 1))?.spec,
    ///     "op: logsumexp, over: rows, block: 128, group: 4, items: 4, float4, blocks_per_sm: 1"
    /// );
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// * [`Error::Spec`](crate::Error::Spec) with the faults of the spec.
    /// * The errors of [`ReduceTable::new`].
    pub fn tuned(what: &ReduceSpec) -> Result<Self>
    where
        T: Elements,
        R: Elements,
    {
        Self::new(&tuned(what)?)
    }

    /// Returns the rule for an input of extents (outer, len, inner), with the reason for the
    /// choice. An extent that `over` does not have is 1. For segments, pass (number of segments,
    /// elements of the array, 1).
    ///
    /// # Errors
    /// [`Error::TooLarge`](crate::Error::TooLarge) if a condition uses an extent above 2^48.
    pub fn choice(&self, size: (u64, u64, u64)) -> Result<Choice> {
        self.chosen(&size)
    }

    /// Compiles the kernels for inputs of these extents (outer, len, inner) before their first
    /// launch, in parallel, as [`SgemmTable::warm`](crate::SgemmTable::warm) does.
    ///
    /// # Errors
    /// * [`Error::Ahead`](crate::Error::Ahead) with the first spec that failed and its error, after
    ///   all others have been tried.
    /// * The errors of [`choice`](Self::choice).
    pub fn warm(
        &self,
        device: &Device,
        sizes: impl IntoIterator<Item = (u64, u64, u64)>,
    ) -> Result<()> {
        self.warm_for(device, sizes.into_iter())
    }

    /// Returns the kernel for an input of extents (outer, len, inner).
    ///
    /// # Errors
    /// Returns the errors of [`choice`](Self::choice).
    pub fn kernel(&self, size: (u64, u64, u64)) -> Result<ReduceKernel<T, R>> {
        self.kernel_for(&size)
    }

    /// Launches the kernel for the shape of the inputs, as [`ReduceKernel::launch`] does.
    ///
    /// # Errors
    /// * The errors of [`ReduceKernel::launch`] and of [`choice`](Self::choice).
    /// * [`Error::WrongOver`](crate::Error::WrongOver) for an `over: segments` table: use
    ///   [`launch_segments`](Self::launch_segments).
    pub fn launch<I, O>(&self, device: &Device, inputs: I, mut results: O) -> Result<LaunchReport>
    where
        I: InputsFor<T>,
        O: ResultsFor<R>,
    {
        let (numbers, inputs, read) = (inputs.numbers(), inputs.arrays(), self.read());
        let what = work(read);
        check_segments(what.over, false)?;
        let program = read.prepare(device, &extents(device, what, &inputs)?)?;
        let outputs = &mut results.arrays();
        let given = ReduceArrays { inputs: &inputs, numbers: &numbers, segments: None, outputs };
        fold(device, &program, given)
    }

    /// Launches the kernel for the number of segments and of elements, as
    /// [`ReduceKernel::launch_segments`] does.
    ///
    /// ```
    /// use gemm_runtime::{Device, ReduceTable, Segments, reduce_table};
    ///
    /// const SUMS: ReduceTable = reduce_table! {
    ///     len / max(outer, 1) <= 16 => over: segments, group: 8;
    ///     else => over: segments, group: 32;
    /// };
    ///
    /// let device = Device::simulator();
    /// let x = device.upload(&[1.0, 5.0, 2.0, 4.0])?;
    /// let segments: Segments = Segments::new(&device, &[0, 3, 3, 4])?;
    /// let mut sums = device.alloc(3)?;
    /// SUMS.launch_segments(&device, &x, &segments, &mut sums)?;
    /// assert_eq!(device.download(&sums)?, [8.0, 0.0, 4.0]);
    /// assert_eq!(SUMS.choice((3, 4, 1))?.spec, "over: segments, group: 8");
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`ReduceKernel::launch_segments`] and of [`choice`](Self::choice).
    pub fn launch_segments<I, J, O>(
        &self,
        device: &Device,
        inputs: I,
        segments: &Segments<J>,
        mut results: O,
    ) -> Result<LaunchReport>
    where
        I: InputsFor<T>,
        J: Offset,
        O: ResultsFor<R>,
    {
        let (numbers, inputs, read) = (inputs.numbers(), inputs.arrays(), self.read());
        let what = work(read);
        check_segments(what.over, true)?;
        let (_, len, _) = extents(device, what, &inputs)?;
        let cut = segments.cut();
        let program = read.prepare(device, &(cut.count, len, 1))?;
        let outputs = &mut results.arrays();
        let segments = Some(&cut);
        let given = ReduceArrays { inputs: &inputs, numbers: &numbers, segments, outputs };
        fold(device, &program, given)
    }
}

/// Spec of the first rule. All rules compute the same reduction.
fn work(read: &ParsedTable<ReduceSpec>) -> &ReduceSpec {
    let Some(row) = read.table.rules().first() else {
        unreachable!("table::read: a table has a rule")
    };
    &row.spec
}
