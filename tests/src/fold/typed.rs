//! Reductions that the runtime launches from typed kernels and tables.

use super::Case;
use super::device::{Cut, cut, matrix, range, upload};
use super::placement::Images;
use super::simulate::Machine;
use gemm_dsl::ir::{Elem, Variant};
use gemm_dsl::spec::ReduceSpec;
use gemm_dsl::tables::KernelTable;
use gemm_runtime::bounds::{Elements, InputOf, InputsFor, ResultsFor};
use gemm_runtime::{
    Buffer, BufferView, BufferViewMut, Device, Element, Error, LaunchReport, ReduceKernel,
    ReduceTable,
};
use half::{bf16, f16};

/// Machine that launches typed reductions on a device.
#[derive(Debug)]
pub struct Typed<'d> {
    pub device: &'d Device,
    /// True to launch the spec as a rule of a table that selects by length, false to launch it as a
    /// kernel.
    pub in_table: bool,
}

/// Kernel name of the table's other rules.
const OTHER: &str = "of_another_length";

/// Element and result types for which kernels are instantiated.
macro_rules! pairs {
    ($($element:ident $T:ty => $($result:ident $R:ty),*;)*) => {
        /// True if a kernel is instantiated for the types of a case. None is for numbers, or for
        /// results of different types.
        pub fn has(case: &Case) -> bool {
            let results = case.spec.results();
            let is_one = results.iter().all(|(_, elem)| *elem == results[0].1);
            let types = (case.elem(), result(case));
            let is_listed = matches!(types, $($((Elem::$element, Elem::$result))|*)|*);
            case.spec.numbers().is_empty() && is_one && is_listed
        }

        impl Machine for Typed<'_> {
            fn launch(&self, case: &Case, images: &mut Images) -> Result<Vec<Variant>, String> {
                let launched = match (case.elem(), result(case)) {
                    $($((Elem::$element, Elem::$result) => launch::<$T, $R>(self, case, images),)*)*
                    (element, result) => return Err(format!("no kernel here folds {element} into \
                        {result}")),
                };
                let launched = launched.map_err(|error| error.to_string())?;
                match launched.steps().find(|step| step.kernel().contains(OTHER)) {
                    None => Ok(launched.steps().map(|step| step.variant()).collect()),
                    Some(_) => Err("the rule for another length was chosen".to_owned()),
                }
            }
        }
    };
}
pairs! {
    F32 f32 => F32 f32, F16 f16, U32 u32, U8 u8;
    F64 f64 => F64 f64, U64 u64;
    F16 f16 => F32 f32, U32 u32;
    Bf16 bf16 => F32 f32, Bf16 bf16;
    I8 i8 => I32 i32, F32 f32;
    U8 u8 => U32 u32, U8 u8;
    I32 i32 => I32 i32, F32 f32;
    U32 u32 => U32 u32;
    I64 i64 => I64 i64, U32 u32;
    U64 u64 => U64 u64, U8 u8;
}

/// Element type of the results. All results of a case have the same type.
fn result(case: &Case) -> Elem {
    case.spec.results()[0].1
}

/// Launches a reduction and copies the final memory into the images.
fn launch<T, R>(on: &Typed<'_>, case: &Case, images: &mut Images) -> Result<LaunchReport, Error>
where
    T: Element + Elements,
    R: Element + Elements,
{
    let (device, spec) = (on.device, &case.spec);
    let (inputs, offsets) = images.inputs.split_at_mut(spec.inputs().len());
    let arrays: Vec<Buffer<T>> =
        inputs.iter().map(|image| upload(device, image)).collect::<Result<_, _>>()?;
    let parts = arrays.iter().zip(&*inputs).map(|(array, image)| array.slice(range(image)));
    let parts: Vec<BufferView<'_, T>> = parts.collect::<Result<_, _>>()?;
    let matrices =
        parts.iter().zip(&*inputs).map(|(part, image)| matrix(spec.over, part, &image.axes));
    let matrices: Option<Vec<_>> = matrices.collect::<Result<_, _>>()?;
    let cut = offsets.first().map(|image| cut(device, image)).transpose()?;
    let mut results: Vec<Buffer<R>> =
        images.outputs.iter().map(|image| upload(device, image)).collect::<Result<_, _>>()?;
    let written = results.iter_mut().zip(&images.outputs);
    let mut written: Vec<BufferViewMut<'_, R>> =
        written.map(|(array, image)| array.slice_mut(range(image))).collect::<Result<_, _>>()?;

    let by = By { on, case, cut: cut.as_ref() };
    let launched = match &matrices {
        Some(matrices) => by.arrays::<T, R, _>(matrices, &mut written)?,
        None => by.arrays::<T, R, _>(&parts, &mut written)?,
    };
    drop(written);

    for (image, array) in inputs.iter_mut().zip(&arrays) {
        image.memory = bits(device, array)?;
    }
    for (image, array) in images.outputs.iter_mut().zip(&results) {
        image.memory = bits(device, array)?;
    }
    Ok(launched)
}

fn bits<T: Element>(device: &Device, array: &Buffer<T>) -> Result<Vec<u64>, Error> {
    Ok(gemm_sim::Buffer::from_slice(&device.download(array)?).bits())
}

/// Parameters of a typed launch.
struct By<'b> {
    on: &'b Typed<'b>,
    case: &'b Case,
    cut: Option<&'b Cut>,
}

impl By<'_> {
    /// Launches the kernel type that has the right number of arrays.
    fn arrays<T, R, V>(
        &self,
        inputs: &[V],
        results: &mut [BufferViewMut<'_, R>],
    ) -> Result<LaunchReport, Error>
    where
        T: Element + Elements,
        R: Element + Elements,
        V: InputOf<T>,
    {
        match (inputs, results) {
            ([a], [r]) => self.launch::<T, R>(a, r),
            ([a, b], [r]) => self.launch::<(T, T), R>((a, b), r),
            ([a, b, c], [r]) => self.launch::<(T, T, T), R>((a, b, c), r),
            ([a, b, c, d], [r]) => self.launch::<(T, T, T, T), R>((a, b, c, d), r),
            ([a], [r, s]) => self.launch::<T, (R, R)>(a, (r, s)),
            ([a, b], [r, s]) => self.launch::<(T, T), (R, R)>((a, b), (r, s)),
            ([a, b, c], [r, s]) => self.launch::<(T, T, T), (R, R)>((a, b, c), (r, s)),
            ([a, b, c, d], [r, s]) => self.launch::<(T, T, T, T), (R, R)>((a, b, c, d), (r, s)),
            _ => unreachable!("a reduction has one to four inputs, and one or two results"),
        }
    }

    fn launch<T: Elements, R: Elements>(
        &self,
        inputs: impl InputsFor<T>,
        results: impl ResultsFor<R>,
    ) -> Result<LaunchReport, Error> {
        let (device, spec) = (self.on.device, &self.case.spec);
        if self.on.in_table {
            let table = ReduceTable::<T, R>::new(&self.table())?;
            return match self.cut {
                None => table.launch(device, inputs, results),
                Some(Cut::U32(segments)) => {
                    table.launch_segments(device, inputs, segments, results)
                }
                Some(Cut::U64(segments)) => {
                    table.launch_segments(device, inputs, segments, results)
                }
            };
        }
        let kernel = ReduceKernel::<T, R>::new(spec.clone())?;
        match self.cut {
            None => kernel.launch(device, inputs, results),
            Some(Cut::U32(segments)) => kernel.launch_segments(device, inputs, segments, results),
            Some(Cut::U64(segments)) => kernel.launch_segments(device, inputs, segments, results),
        }
    }

    /// Table with rules for shorter and longer results around the case's own.
    fn table(&self) -> KernelTable<ReduceSpec> {
        let (spec, len) = (&self.case.spec, self.case.shape.len());
        let other = spec.clone().name(OTHER);
        let text = match len {
            0 => format!("len > 0 => {other}; else => {spec}"),
            _ => format!("len > {len} => {other}; len == {len} => {spec}; else => {other};"),
        };
        text.parse().unwrap_or_else(|faults| panic!("{text}: {faults}"))
    }
}
