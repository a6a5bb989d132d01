//! Reductions of host arrays, with upload and download.

use super::super::ReduceKernel;
use super::elements::Elements;
use super::fold::{ReduceArrays, fold};
use super::input::{HostArray, HostInput, Uploaded};
use super::lists::sealed::GivenNumbers;
use super::shape;
use crate::device::Device;
use crate::dyn_array::{AnyInput, AnyOutput, Readable};
use crate::error::{Error, Result};
use crate::program::CachedProgram;
use gemm_dsl::ir::{Elem, Extent};
use gemm_dsl::spec::{Over, newer_word};
use std::sync::Arc;

impl<T: Elements, R: Elements> ReduceKernel<T, R> {
    /// Folds all elements of a host array, with an `over: all` kernel: uploads, launches and
    /// downloads. `inputs` is a slice, or a tuple of slices for several arrays, with the numbers of
    /// the kernel after them.
    ///
    /// ```
    /// use gemm_runtime::{Device, ReduceKernel, reduce_kernel};
    ///
    /// const MEAN: ReduceKernel<f32, (f32, f32)> = reduce_kernel!(op: mean_var);
    /// const DISTANCE: ReduceKernel<(f32, f32), f32> =
    ///     reduce_kernel!(map: |x, y| (x - y) * (x - y), finish: |s| sqrt(s));
    ///
    /// let device = Device::simulator();
    /// assert_eq!(MEAN.run(&device, &[1.0, 2.0, 3.0, 6.0])?, (3.0, 3.5));
    /// assert_eq!(DISTANCE.run(&device, (&[1.0, 2.0], &[4.0, 6.0]))?, 5.0);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// * [`Error::WrongOver`] for a kernel without `over: all`, or with `topk`: use
    ///   [`run_over`](Self::run_over).
    /// * The errors of [`Device::upload`], [`ReduceKernel::launch`] and [`Device::download`].
    pub fn run(&self, device: &Device, inputs: T::Slices<'_>) -> Result<R> {
        let program = self.prepare(device)?;
        let over = program.over();
        if over != Over::All {
            let remedy = match over {
                Over::Segments => "Upload it and call `launch_segments`",
                _ => "Call `run_over`, with the extents",
            };
            return Err(Error::WrongOver {
                over,
                found: "an array without extents".to_owned(),
                remedy,
            });
        }
        if let Some(k) = program.topk() {
            return Err(Error::WrongOver {
                over,
                found: format!("one value for the {k} of a result"),
                remedy: "Call `run_over`, with the extents (1, len, 1)",
            });
        }
        let (arrays, numbers) = split(T::given(inputs));
        let arrays = upload(device, &arrays)?;
        let whole: Vec<Box<dyn Readable + '_>> = arrays.iter().map(|array| array.whole()).collect();
        let results = folded::<R>(device, &program, (&any_inputs(&whole), &numbers), 1)?;
        R::first(&results).ok_or_else(|| Error::Internal("the download has no element".to_owned()))
    }

    /// Folds the rows or columns of packed host matrices, or the columns of each matrix of a batch:
    /// uploads, launches and downloads. With `topk`, it also selects from a whole array, of size
    /// (1, length, 1).
    ///
    /// `size` is (outer, length, inner). The inner extent must be 1 for `over: rows`, the outer
    /// extent must be 1 for `over: columns`. The results are a vector, or a tuple of vectors.
    ///
    /// ```
    /// use gemm_runtime::{Device, ReduceKernel, reduce_kernel};
    ///
    /// const LARGEST: ReduceKernel<f32, u32> = reduce_kernel!(op: argmax, over: columns);
    /// let device = Device::simulator();
    /// let matrix = [1.0, 5.0, 3.0, 4.0, 2.0, 6.0];
    /// assert_eq!(LARGEST.run_over(&device, &matrix, (1, 2, 3))?, [1, 0, 1]);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// * [`Error::WrongOver`] for an `over: segments` kernel, for an `over: all` kernel without
    ///   `topk`, or if an extent that must be 1 is not.
    /// * [`Error::WrongExtent`] if an input does not have outer·length·inner elements.
    /// * [`Error::TooLarge`] if outer·length·inner overflows.
    /// * The errors of [`Device::upload`], [`ReduceKernel::launch`] and [`Device::download`].
    pub fn run_over(
        &self,
        device: &Device,
        inputs: T::Slices<'_>,
        size: (usize, usize, usize),
    ) -> Result<R::Vecs> {
        let program = self.prepare(device)?;
        let over = program.over();
        let (outer, length, inner) = size;
        check_size(&program, size)?;
        let wide = |n: usize| n as u64;
        let extents = [
            (Extent::OUTER, wide(outer)),
            (Extent::LENGTH, wide(length)),
            (Extent::INNER, wide(inner)),
        ];
        let (slices, numbers) = split(T::given(inputs));
        for (array, slice) in program.program().inputs.iter().zip(&slices) {
            let needed = shape::count(&array.name, &extents)?;
            if slice.count() as u64 != needed {
                let need =
                    format!("outer·len·inner = {outer}·{length}·{inner} = {needed} are needed");
                let (argument, has) = (array.name.to_string(), slice.count() as u64);
                return Err(Error::WrongExtent { argument, has, need });
            }
        }
        let k = program.topk().map_or(1, u64::from);
        let results = shape::count("output", &[extents[0], extents[2], (Extent::TOPK, k)])?;
        let arrays = upload(device, &slices)?;
        let views =
            arrays.iter().map(|array| array.view(over, size)).collect::<Result<Vec<_>>>()?;
        // `count` has checked that the number fits in a `usize`.
        folded::<R>(device, &program, (&any_inputs(&views), &numbers), results as usize)
    }
}

/// Checks that the extents (outer, length, inner) suit the kernel's `over`.
fn check_size(program: &CachedProgram, size: (usize, usize, usize)) -> Result<()> {
    let (over, (outer, _, inner)) = (program.over(), size);
    let (found, remedy) = match over {
        Over::All if program.topk().is_some() && (outer, inner) == (1, 1) => return Ok(()),
        Over::All => ("extents of rows and columns".to_owned(), "Call `run`"),
        Over::Segments => {
            ("extents and no segments".to_owned(), "Upload it and call `launch_segments`")
        }
        Over::Rows if inner != 1 => (
            format!("an inner extent of {inner}"),
            "Rows need an inner extent of 1: use an `over: middle` or `over: columns` kernel",
        ),
        Over::Columns if outer != 1 => (
            format!("an outer extent of {outer}"),
            "Columns need an outer extent of 1: use an `over: middle` or `over: rows` kernel",
        ),
        Over::Rows | Over::Columns | Over::Middle => return Ok(()),
        over => newer_word(over),
    };
    Err(Error::WrongOver { over, found, remedy })
}

/// Separates the arrays from the types and bits of the numbers.
fn split(given: Vec<HostInput<'_>>) -> (Vec<Box<dyn HostArray + '_>>, GivenNumbers) {
    let (mut arrays, mut numbers) = (Vec::new(), GivenNumbers::new());
    for input in given {
        match input {
            HostInput::Array(array) => arrays.push(array),
            HostInput::Number(elem, bits) => numbers.push((elem, bits)),
        }
    }
    (arrays, numbers)
}

fn upload(device: &Device, arrays: &[Box<dyn HostArray + '_>]) -> Result<Vec<Box<dyn Uploaded>>> {
    arrays.iter().map(|array| array.upload(device)).collect()
}

fn any_inputs<'e>(inputs: &'e [Box<dyn Readable + '_>]) -> Vec<AnyInput<'e>> {
    inputs.iter().map(|input| AnyInput(&**input)).collect()
}

/// Allocates arrays of `results` elements, launches the program on the inputs and numbers, and
/// downloads the results.
fn folded<R: Elements>(
    device: &Device,
    program: &Arc<CachedProgram>,
    (inputs, numbers): (&[AnyInput<'_>], &[(Elem, u64)]),
    results: usize,
) -> Result<R::Vecs> {
    let mut arrays = R::alloc(device, results)?;
    let mut outputs = R::outputs(&mut arrays);
    let mut written = outputs.iter_mut().map(|output| AnyOutput(&mut **output)).collect::<Vec<_>>();
    fold(device, program, ReduceArrays { inputs, numbers, segments: None, outputs: &mut written })?;
    drop(written);
    drop(outputs);
    R::download(device, &arrays)
}
