//! Reduction kernels: construction and launches.

mod by_name;
mod elements;
mod fold;
mod host;
mod input;
mod lists;
mod number;
mod shape;
mod shards;
mod table;

pub use by_name::NamedArrays;
pub(super) use by_name::{names, places};
pub use elements::Elements;
use elements::Listed;
pub use lists::{InputsFor, ResultsFor};
pub use number::{FoldNumber, Number};
pub use table::ReduceTable;

use super::ReduceKernel;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::report::LaunchReport;
use crate::segments::{Offset, Segments};
pub use fold::{ReduceArrays, fold};
pub(super) use fold::{check_elements, number_of};

use gemm_dsl::spec::ReduceSpec;
pub use lists::sealed;
pub use shards::{fold_partials, fold_shard};
use std::marker::PhantomData;

/// Inputs and results of a reduction, as [`ReduceKernel`] lists them: elements of type `T` are
/// folded into results of type `R`. `T` and `R` are each one type, or a tuple with one type for
/// each array.
pub struct Folds<T, R>(PhantomData<fn() -> (T, R)>);

impl<T, R> ReduceKernel<T, R> {
    /// Builds the kernel of a spec. It equals the kernel that the macro builds from the same spec.
    ///
    /// If neither `T` nor `R` can be inferred, name them: `<ReduceKernel>::new(spec)` folds `f32`
    /// to `f32`, `ReduceKernel::<f16, f32>::new(spec)` folds `f16` to `f32`.
    ///
    /// ```
    /// use gemm_runtime::{Device, ReduceKernel};
    ///
    /// let kernel = <ReduceKernel>::new("op: max, block: 128".parse()?)?;
    /// assert_eq!(kernel.run(&Device::simulator(), &[1.0, 7.0, 3.0])?, 7.0);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// * [`Error::Spec`] with all faults of the spec.
    /// * [`Error::KernelType`] if `T` and `R` are not the types of the spec's inputs and results.
    ///   The error names the right kernel type.
    pub fn new(spec: ReduceSpec) -> Result<Self>
    where
        T: Elements,
        R: Elements,
    {
        let kernel = Self::checked(&spec)?;
        check::<T, R>(&spec)?;
        Ok(kernel)
    }

    /// Folds arrays on the device.
    ///
    /// `inputs` is a reference to the input, or a tuple of references in the order of the
    /// parameters of `map`. The numbers of `map` and `finish` follow, by value. `results` is a
    /// mutable reference to the array for the results, or a tuple of such references. A vector may
    /// have more elements than there are results. On a GPU the call returns before the work is
    /// complete; later work of the device is ordered after it.
    ///
    /// The `over` key determines the inputs and the number of results:
    ///
    /// | `over` | each input | results |
    /// | --- | --- | --- |
    /// | `all` | a vector, or a matrix without padding | one |
    /// | `rows` | a matrix, or a batch with equally spaced rows | one for each row |
    /// | `columns` | a matrix | one for each column |
    /// | `middle` | a batch of matrices | one for each column of each matrix |
    ///
    /// Under `topk: k`, each result is k elements: those of rows are a packed matrix (rows, k).
    ///
    /// All inputs must have the same shape. Only a `pitched` kernel accepts padded inputs.
    ///
    /// ```
    /// use gemm_runtime::{Device, MatrixRef, ReduceKernel, reduce_kernel};
    ///
    /// const DOT: ReduceKernel<(f32, f32), f32> = reduce_kernel!(map: |x, y| x * y);
    /// const STATISTICS: ReduceKernel<f32, (f32, f32)> = reduce_kernel!(op: mean_var, over: rows);
    ///
    /// let device = Device::simulator();
    /// let x = device.upload(&[1.0, 2.0, 3.0, 4.0, 4.0, 4.0])?;
    /// let y = device.upload(&[1.0, 0.0, 1.0, 0.0, 1.0, 0.0])?;
    /// let mut dot = device.alloc(1)?;
    /// DOT.launch(&device, (&x, &y), &mut dot)?;
    /// assert_eq!(device.download(&dot)?, [8.0]);
    ///
    /// let (mut mean, mut var) = (device.alloc(2)?, device.alloc(2)?);
    /// let rows = MatrixRef::new(&x, 2, 3)?;
    /// STATISTICS.launch(&device, &rows, (&mut mean, &mut var))?;
    /// assert_eq!(device.download(&mean)?, [2.0, 4.0]);
    /// assert_eq!(device.download(&var)?, [2.0 / 3.0, 0.0]);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// * [`Error::WrongOver`] for an `over: segments` kernel.
    /// * [`Error::WrongDevice`] if an array belongs to another device.
    /// * [`Error::WrongExtent`] if a result array is too short, or if an `argmax` or `argmin` with
    ///   `over: all` has no elements and so no index. A row or column without elements gives the
    ///   greatest index of its type instead. Under `topk`, also if a row or an array has fewer
    ///   elements than are selected.
    /// * [`Error::Extents`] if two inputs disagree in an extent.
    /// * [`Error::WrongOperand`] for a vector in place of a matrix, or for a batch with
    ///   `over: columns`.
    /// * [`Error::Padded`] for a matrix with padding where elements must be consecutive.
    /// * [`Error::UnevenRows`] with `over: rows`, for a batch whose rows are not equally spaced.
    /// * [`Error::List`] for a list of matrices.
    /// * [`Error::Overlap`] if a result shares memory with another array.
    /// * [`Error::Unmet`] if extents or arguments violate the kernel's contract.
    /// * The errors of compiling and loading the kernel and of allocating scratch memory, in the
    ///   first launch.
    /// * [`Error::Simulator`] in the simulator.
    pub fn launch<I, O>(&self, device: &Device, inputs: I, mut results: O) -> Result<LaunchReport>
    where
        I: InputsFor<T>,
        O: ResultsFor<R>,
    {
        let given = ReduceArrays {
            inputs: &inputs.arrays(),
            numbers: &inputs.numbers(),
            segments: None,
            outputs: &mut results.arrays(),
        };
        fold(device, &self.prepare(device)?, given)
    }

    /// Folds segments of vectors on the device, with an `over: segments` kernel. Each segment has
    /// one result. `inputs` and `results` are as for [`launch`](Self::launch).
    ///
    /// ```
    /// use gemm_runtime::{Device, ReduceKernel, Segments, reduce_kernel};
    ///
    /// const MAX: ReduceKernel = reduce_kernel!(op: max, over: segments);
    /// let device = Device::simulator();
    /// let x = device.upload(&[1.0, 5.0, 2.0, 4.0])?;
    /// let segments: Segments = Segments::new(&device, &[0, 3, 3, 4])?;
    /// let mut max = device.alloc(3)?;
    /// MAX.launch_segments(&device, &x, &segments, &mut max)?;
    /// assert_eq!(device.download(&max)?, [5.0, f32::NEG_INFINITY, 4.0]);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// * The errors of [`launch`](Self::launch).
    /// * [`Error::WrongOver`] for a kernel without `over: segments`.
    /// * [`Error::WrongExtent`] if the last segment ends beyond an input.
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
        let cut = segments.cut();
        let given = ReduceArrays {
            inputs: &inputs.arrays(),
            numbers: &inputs.numbers(),
            segments: Some(&cut),
            outputs: &mut results.arrays(),
        };
        fold(device, &self.prepare(device)?, given)
    }
}

/// Checks that the type of a kernel lists the inputs and the results of its spec.
fn check<T: Elements, R: Elements>(spec: &ReduceSpec) -> Result<()> {
    let element = spec.element.elem();
    let (inputs, numbers, results) = (spec.inputs(), spec.numbers(), spec.results());
    let arrays = vec![Listed::Array(element); inputs.len()].into_iter();
    let takes = arrays.chain(numbers.iter().map(|(_, elem)| Listed::Number(*elem))).collect();
    let gives = results.iter().map(|(_, elem)| Listed::Array(*elem)).collect();
    let (needed, found) = ([takes, gives], [T::LISTED.to_vec(), R::LISTED.to_vec()]);
    if needed == found {
        return Ok(());
    }
    let inputs = inputs.into_iter().map(|name| format!("{name}: {element}"));
    let numbers = numbers.into_iter().map(|(name, elem)| format!("{name}: {elem}"));
    let results = results.into_iter().map(|(name, elem)| format!("{name}: {elem}"));
    Err(Error::KernelType {
        line: spec.to_string(),
        operands: inputs.chain(numbers).chain(results).collect(),
        needed: type_of(&needed),
        found: type_of(&found),
        by_name: "Kernel<ReduceSpec, ByName>",
    })
}

/// Kernel type for these inputs and results, in the user's notation.
fn type_of([inputs, results]: &[Vec<Listed>; 2]) -> String {
    let one = |listed: &Listed| match listed {
        Listed::Array(elem) => elem.to_string(),
        Listed::Number(elem) => format!("Number<{elem}>"),
    };
    let list = |listed: &[Listed]| match listed {
        [only] => one(only),
        several => {
            let several: Vec<String> = several.iter().map(one).collect();
            format!("({})", several.join(", "))
        }
    };
    match [list(inputs), list(results)] {
        [inputs, results] if inputs == results && inputs == "f32" => "ReduceKernel".to_owned(),
        [inputs, results] if inputs == results => format!("ReduceKernel<{inputs}>"),
        [inputs, results] => format!("ReduceKernel<{inputs}, {results}>"),
    }
}
