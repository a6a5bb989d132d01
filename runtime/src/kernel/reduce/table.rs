//! Tables of reductions: which kernel computes a problem of which shape.

use super::fold::{Given, check_segments, extents, fold};
use super::lists::{InputsFor, ResultsFor};
use super::{Elements, Folds, ReduceKernel, check};
use crate::device::Device;
use crate::error::Result;
use crate::launched::Launched;
use crate::segments::{Offset, Segments};
use gemm_dsl::SpecErrors;
use gemm_dsl::kernel_table::KernelTable;
use gemm_dsl::spec::ReduceSpec;
use gemm_dsl::tuned::tuned;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

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
/// assert_eq!(NORMS.choice((2, 3, 1)).condition.as_deref(), Some("len <= 64"));
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
pub struct ReduceTable<T = f32, R = T> {
    /// The canonical text.
    text: Cow<'static, str>,
    of: PhantomData<fn() -> Folds<T, R>>,
}

/// Which row of a table computes a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// Its number, from 0.
    pub row: usize,
    /// Its condition; none of the last row.
    pub condition: Option<String>,
    /// The line of its kernel.
    pub line: String,
}

impl<T, R> ReduceTable<T, R> {
    #[doc(hidden)]
    pub const fn __from_macro(text: &'static str) -> Self {
        Self { text: Cow::Borrowed(text), of: PhantomData }
    }

    /// The table of a text or of data: the same as the macro makes of the same rows.
    ///
    /// # Errors
    /// [`Error::KernelType`](crate::Error::KernelType) where its inputs or results are of other types.
    pub fn new(table: &KernelTable<ReduceSpec>) -> Result<Self>
    where
        T: Elements,
        R: Elements,
    {
        for row in table.rows() {
            check::<T, R>(&row.spec)?;
        }
        Ok(Self { text: Cow::Owned(table.to_string()), of: PhantomData })
    }

    /// The table that ships for what a spec computes: its `op` or `fold`, expressions, types and `over`. How it says
    /// that it is computed does not count. Measured on an H200.
    ///
    /// ```
    /// use gemm_runtime::{Device, ReduceTable};
    ///
    /// let softmax_scale = ReduceTable::<f32>::tuned(&"op: logsumexp, over: rows".parse()?)?;
    /// assert_eq!(softmax_scale.choice((4096, 128, 1)).line, "op: logsumexp, over: rows, block: 128, group: 4, items: 4, float4");
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

    /// The rows, one a line.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The row that computes a problem of extents (outer, len, inner); those that `over` has not are 1. Of segments
    /// they are (segments, elements of the array, 1).
    pub fn choice(&self, size: (u64, u64, u64)) -> Choice {
        let read = parsed(&self.text);
        let row = read.choose(size);
        let condition = read.table.rows()[row].when.as_ref().map(ToString::to_string);
        Choice { row, condition, line: read.lines[row].clone() }
    }

    /// The kernel that computes a problem of extents (outer, len, inner).
    pub fn kernel(&self, size: (u64, u64, u64)) -> ReduceKernel<T, R> {
        parsed(&self.text).kernel(size)
    }

    /// Launches the kernel for the shape of what is given, as [`ReduceKernel::launch`].
    ///
    /// # Errors
    /// Those of [`ReduceKernel::launch`]. A table `over: segments` is launched by
    /// [`launch_segments`](Self::launch_segments).
    pub fn launch<I, O>(&self, device: &Device, inputs: I, mut results: O) -> Result<Launched>
    where
        I: InputsFor<T>,
        O: ResultsFor<R>,
    {
        let (inputs, read) = (inputs.arrays(), parsed(&self.text));
        let what = read.work();
        check_segments(what.over, false)?;
        let kernel: ReduceKernel<T, R> = read.kernel(extents(device, what, &inputs)?);
        let given = Given { inputs: &inputs, segments: None, outputs: &mut results.arrays() };
        fold(device, &kernel.prepare(device)?, given)
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
    /// assert_eq!(SUMS.choice((3, 4, 1)).line, "over: segments, group: 8");
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`ReduceKernel::launch_segments`].
    pub fn launch_segments<I, J, O>(
        &self,
        device: &Device,
        inputs: I,
        segments: &Segments<J>,
        mut results: O,
    ) -> Result<Launched>
    where
        I: InputsFor<T>,
        J: Offset,
        O: ResultsFor<R>,
    {
        let (inputs, read) = (inputs.arrays(), parsed(&self.text));
        let what = read.work();
        check_segments(what.over, true)?;
        let (_, len, _) = extents(device, what, &inputs)?;
        let cut = segments.cut();
        let kernel: ReduceKernel<T, R> = read.kernel((cut.count, len, 1));
        let outputs = &mut results.arrays();
        let given = Given { inputs: &inputs, segments: Some(&cut), outputs };
        fold(device, &kernel.prepare(device)?, given)
    }
}

/// A table as launches use it.
struct Read {
    table: KernelTable<ReduceSpec>,
    /// The line of each row, which no launch prints again.
    lines: Vec<String>,
}

impl Read {
    /// A spec of what the rows compute.
    fn work(&self) -> &ReduceSpec {
        let Some(row) = self.table.rows().first() else { unreachable!("a table has a row") };
        &row.spec
    }

    fn choose(&self, (outer, len, inner): (u64, u64, u64)) -> usize {
        self.table.choose(|name| match name {
            "outer" => outer,
            "inner" => inner,
            _ => len,
        })
    }

    fn kernel<T, R>(&self, size: (u64, u64, u64)) -> ReduceKernel<T, R> {
        let line = self.lines[self.choose(size)].clone();
        ReduceKernel { line: Cow::Owned(line), of: PhantomData }
    }
}

/// What a text that has been checked describes. Each is read once.
fn parsed(text: &str) -> Arc<Read> {
    static READ: LazyLock<Mutex<HashMap<String, Arc<Read>>>> = LazyLock::new(Mutex::default);
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(table) = read.get(text) {
        return Arc::clone(table);
    }
    let table: Result<KernelTable<ReduceSpec>, SpecErrors> = text.parse();
    match table {
        Ok(table) => {
            let lines = table.rows().iter().map(|row| row.spec.to_string()).collect();
            Arc::clone(read.entry(text.to_owned()).or_insert(Arc::new(Read { table, lines })))
        }
        Err(faults) => unreachable!("the rows were checked when the table was made: {faults}"),
    }
}

impl<T, R> Clone for ReduceTable<T, R> {
    fn clone(&self) -> Self {
        Self { text: self.text.clone(), of: PhantomData }
    }
}

impl<T, R> fmt::Debug for ReduceTable<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReduceTable").field("text", &self.text).finish()
    }
}

/// The rows.
impl<T, R> fmt::Display for ReduceTable<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
