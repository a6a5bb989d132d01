//! Reductions of host arrays, with upload and download.

use super::super::ReduceKernel;
use super::elements::Elements;
use super::fold::{ReduceArrays, fold};
use super::shape;
use crate::buffer::Buffer;
use crate::device::Device;
use crate::dyn_array::{AnyInput, AnyOutput};
use crate::error::{Error, Result};
use crate::operand::Input;
use crate::program::CachedProgram;
use crate::view::MatrixRef;
use gemm_dsl::ir::Extent;
use gemm_dsl::spec::{Over, newer_word};
use gemm_dsl::target::element::Element;
use std::sync::Arc;

impl<T: Elements, R: Elements> ReduceKernel<T, R> {
    /// Folds all elements of a host array, with an `over: all` kernel: uploads, launches and
    /// downloads. `inputs` is a slice, or a tuple of slices for several arrays.
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
    /// * [`Error::WrongOver`] for a kernel without `over: all`.
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
        let arrays = upload::<T>(device, inputs)?;
        let arrays: Vec<&Buffer<T::One>> = arrays.iter().collect();
        let results = folded::<R>(device, &program, &any_inputs(&arrays), 1)?;
        R::first(&results).ok_or_else(|| Error::Internal("the download has no element".to_owned()))
    }

    /// Folds the rows or columns of packed host matrices, or the columns of each matrix of a batch:
    /// uploads, launches and downloads.
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
    /// * [`Error::WrongOver`] for an `over: all` or `over: segments` kernel, or if an extent that
    ///   must be 1 is not.
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
        check_size(over, size)?;
        let wide = |n: usize| n as u64;
        let extents = [
            (Extent::OUTER, wide(outer)),
            (Extent::LENGTH, wide(length)),
            (Extent::INNER, wide(inner)),
        ];
        let slices = T::slices(inputs);
        for (array, slice) in program.program().inputs.iter().zip(&slices) {
            let needed = shape::count(&array.name, &extents)?;
            if slice.len() as u64 != needed {
                let need =
                    format!("outer·len·inner = {outer}·{length}·{inner} = {needed} are needed");
                let (argument, has) = (array.name.to_string(), slice.len() as u64);
                return Err(Error::WrongExtent { argument, has, need });
            }
        }
        let results = shape::count("output", &[extents[0], extents[2]])?;
        let arrays = upload_all(device, &slices)?;
        let views: Vec<MatrixRef<'_, T::One>> = arrays
            .iter()
            .map(|array| match over {
                Over::Columns => MatrixRef::new(array, length, inner),
                Over::Middle => MatrixRef::batch(array, outer, length, inner),
                Over::Rows | Over::All | Over::Segments => MatrixRef::new(array, outer, length),
                over => newer_word(over),
            })
            .collect::<Result<_>>()?;
        let views: Vec<&MatrixRef<'_, T::One>> = views.iter().collect();
        // `count` has checked that the number fits in a `usize`.
        folded::<R>(device, &program, &any_inputs(&views), results as usize)
    }
}

/// Checks that the extents (outer, length, inner) suit the kernel's `over`.
fn check_size(over: Over, size: (usize, usize, usize)) -> Result<()> {
    let (outer, _, inner) = size;
    let (found, remedy) = match over {
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

fn upload<L: Elements>(device: &Device, slices: L::Slices<'_>) -> Result<Vec<Buffer<L::One>>> {
    upload_all(device, &L::slices(slices))
}

fn upload_all<E: Element>(device: &Device, slices: &[&[E]]) -> Result<Vec<Buffer<E>>> {
    slices.iter().map(|slice| device.upload_of(slice)).collect()
}

fn any_inputs<'e, I: Input>(inputs: &'e [&I]) -> Vec<AnyInput<'e>> {
    inputs.iter().map(|input| AnyInput(input)).collect()
}

/// Allocates arrays of `results` elements, launches the program on the inputs, and downloads the
/// results.
fn folded<R: Elements>(
    device: &Device,
    program: &Arc<CachedProgram>,
    inputs: &[AnyInput<'_>],
    results: usize,
) -> Result<R::Vecs> {
    let arrays = (0..R::COUNT).map(|_| device.alloc_of::<R::One>(results));
    let mut arrays: Vec<Buffer<R::One>> = arrays.collect::<Result<_>>()?;
    let mut outputs: Vec<&mut Buffer<R::One>> = arrays.iter_mut().collect();
    let mut outputs: Vec<AnyOutput<'_>> =
        outputs.iter_mut().map(|output| AnyOutput(output)).collect();
    fold(device, program, ReduceArrays { inputs, segments: None, outputs: &mut outputs })?;
    let arrays = arrays.iter().map(|array| device.download(array)).collect::<Result<Vec<_>>>()?;
    R::vecs(arrays).ok_or_else(|| Error::Internal("the download has too few arrays".to_owned()))
}
