//! Tables of reductions: which kernel computes a problem of which shape.

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

/// A table of reductions that compute the same, of `T` to `R` as a [`ReduceKernel`]: for each shape the line that
/// computes it, made by [`reduce_table!`](crate::reduce_table). Only kernels that are chosen are compiled.
///
/// The conditions are over the extents `outer`, `len` and `inner` of what is folded, as far as `over` has them; others
/// are 1. Of segments `outer` is how many there are, and `len` the elements of the array that they are cut from. They
/// are over nothing of the device, so that the bits of a result depend on the table and on the shape alone.
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
    /// The table of a text or of data: the same as the macro makes of the same rows.
    ///
    /// # Errors
    /// [`Error::KernelType`](crate::Error::KernelType) where its inputs or results are of other types.
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

    /// The table that ships for what a spec computes: its `op` or `fold`, expressions, types and `over`. How it says
    /// that it is computed does not count. Measured on an H200.
    ///
    /// ```
    /// use gemm_runtime::{Device, ReduceTable};
    ///
    /// let softmax_scale = ReduceTable::<f32>::tuned(&"op: logsumexp, over: rows".parse()?)?;
    /// assert_eq!(softmax_scale.choice((4096, 128, 1))?.line, "op: logsumexp, over: rows, block: 128, group: 4, items: 4, float4");
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Spec`](crate::Error::Spec) with the spec's faults, and as [`ReduceTable::new`].
    pub fn tuned(what: &ReduceSpec) -> Result<Self>
    where
        T: Elements,
        R: Elements,
    {
        Self::new(&tuned(what)?)
    }

    /// The row that computes a problem of extents (outer, len, inner); those that `over` has not are 1. Of segments
    /// they are (segments, elements of the array, 1).
    ///
    /// # Errors
    /// [`Error::TooLarge`](crate::Error::TooLarge) for an extent that no array has and that a condition asks for.
    pub fn choice(&self, size: (u64, u64, u64)) -> Result<Choice> {
        self.chosen(&size)
    }

    /// Compiles ahead and in parallel what problems of these extents (outer, len, inner) take, as
    /// [`SgemmTable::warm`](crate::SgemmTable::warm).
    ///
    /// # Errors
    /// [`Error::Ahead`](crate::Error::Ahead) with the first line that failed and why, when all others are made; and as
    /// [`choice`](Self::choice).
    pub fn warm(
        &self,
        device: &Device,
        sizes: impl IntoIterator<Item = (u64, u64, u64)>,
    ) -> Result<()> {
        self.warm_for(device, sizes.into_iter())
    }

    /// The kernel that computes a problem of extents (outer, len, inner).
    ///
    /// # Errors
    /// As [`choice`](Self::choice).
    pub fn kernel(&self, size: (u64, u64, u64)) -> Result<ReduceKernel<T, R>> {
        self.kernel_for(&size)
    }

    /// Launches the kernel for the shape of what is given, as [`ReduceKernel::launch`].
    ///
    /// # Errors
    /// Those of [`ReduceKernel::launch`] and of [`choice`](Self::choice). A table `over: segments` is launched by
    /// [`launch_segments`](Self::launch_segments).
    pub fn launch<I, O>(&self, device: &Device, inputs: I, mut results: O) -> Result<LaunchReport>
    where
        I: InputsFor<T>,
        O: ResultsFor<R>,
    {
        let (inputs, read) = (inputs.arrays(), self.read());
        let what = work(read);
        check_segments(what.over, false)?;
        let program = read.prepare(device, &extents(device, what, &inputs)?)?;
        let given =
            ReduceArrays { inputs: &inputs, segments: None, outputs: &mut results.arrays() };
        fold(device, &program, given)
    }

    /// Launches the kernel for so many segments and elements, as [`ReduceKernel::launch_segments`].
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
    /// assert_eq!(SUMS.choice((3, 4, 1))?.line, "over: segments, group: 8");
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`ReduceKernel::launch_segments`] and of [`choice`](Self::choice).
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
        let (inputs, read) = (inputs.arrays(), self.read());
        let what = work(read);
        check_segments(what.over, true)?;
        let (_, len, _) = extents(device, what, &inputs)?;
        let cut = segments.cut();
        let program = read.prepare(device, &(cut.count, len, 1))?;
        let outputs = &mut results.arrays();
        let given = ReduceArrays { inputs: &inputs, segments: Some(&cut), outputs };
        fold(device, &program, given)
    }
}

/// A spec of what the rows compute.
fn work(read: &ParsedTable<ReduceSpec>) -> &ReduceSpec {
    let Some(row) = read.table.rules().first() else { unreachable!("a table has a row") };
    &row.spec
}
