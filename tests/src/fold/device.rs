//! Reductions that the runtime launches by name, on a GPU or on the simulator as a device.

use super::placement::{Image, Images};
use super::simulate::Machine;
use super::{Case, closures};
use crate::element_type::with_type;
use gemm_dsl::ir::contract::ArrayAxis;
use gemm_dsl::ir::{Elem, Variant};
use gemm_dsl::spec::{Over, ReduceSpec, newer_word};
use gemm_runtime::bounds::Offset;
use gemm_runtime::generic::{Call, Kernel, NamedArrays};
use gemm_runtime::{
    Buffer, BufferView, BufferViewMut, ByName, Device, Element, Error, MatrixRef, Segments,
};

/// Machine that launches reductions with the runtime on a device. Each array is a view of exactly
/// the required elements, and the memory around it is read back. The offsets of segments are copied
/// by the runtime, so there is no memory around them.
#[derive(Debug)]
pub struct OnDevice<'d>(pub &'d Device);

impl Machine for OnDevice<'_> {
    fn launch(&self, case: &Case, images: &mut Images) -> Result<Vec<Variant>, String> {
        let launched = with_type!(case.elem(), T => launch::<T>(self.0, case, images));
        launched.map_err(|error| error.to_string())
    }
}

/// Launches a reduction for an element type and copies the final memory into the images.
fn launch<T: Element>(
    device: &Device,
    case: &Case,
    images: &mut Images,
) -> Result<Vec<Variant>, Error> {
    let spec = &case.spec;
    let kernel = Kernel::<ReduceSpec, ByName>::new(spec.clone())?;
    let names = spec.inputs();
    let (inputs, offsets) = images.inputs.split_at_mut(names.len());
    let arrays: Vec<Buffer<T>> =
        inputs.iter().map(|image| upload(device, image)).collect::<Result<_, _>>()?;
    let parts = arrays.iter().zip(&*inputs).map(|(array, image)| array.slice(range(image)));
    let parts: Vec<BufferView<'_, T>> = parts.collect::<Result<_, _>>()?;
    let mut matrices = Vec::new();
    for (part, image) in parts.iter().zip(&*inputs) {
        matrices.push(matrix(spec.over, part, &image.axes)?);
    }
    let cut = offsets.first().map(|image| cut(device, image)).transpose()?;
    let mut results: Vec<Box<dyn Written>> = Vec::new();
    for image in &images.outputs {
        results.push(with_type!(image.elem, R => Box::new(upload::<R>(device, image)?)));
    }
    let mut written: Vec<Box<dyn Part + '_>> = Vec::new();
    for (result, image) in results.iter_mut().zip(&images.outputs) {
        written.push(result.part(image)?);
    }

    let mut call = kernel.call(device);
    // The operands are given in the reverse order of the spec, because only their names matter.
    for ((name, part), matrix) in names.iter().zip(&parts).zip(&matrices).rev() {
        call = match matrix {
            Some(matrix) => call.input(name, matrix),
            None => call.input(name, part),
        };
    }
    for ((name, _), part) in spec.results().iter().zip(&mut written).rev() {
        call = part.given(name, call);
    }
    call = with_numbers(spec, call);
    call = match &cut {
        Some(Cut::U32(segments)) => call.segments(segments),
        Some(Cut::U64(segments)) => call.segments(segments),
        None => call,
    };
    let launched = call.launch()?;
    drop(written);

    for (image, array) in inputs.iter_mut().zip(&arrays) {
        image.memory = array.bits(device)?;
    }
    if let (Some(image), Some(cut)) = (offsets.first_mut(), &cut) {
        let bits = match cut {
            Cut::U32(segments) => segments.offsets().bits(device)?,
            Cut::U64(segments) => segments.offsets().bits(device)?,
        };
        let range = range(image);
        image.memory[range].copy_from_slice(&bits);
    }
    for (image, result) in images.outputs.iter_mut().zip(&results) {
        image.memory = result.bits(device)?;
    }
    Ok(launched.steps().map(|step| step.variant()).collect())
}

/// Range of an image's elements in its memory.
pub(super) fn range(image: &Image) -> std::ops::Range<usize> {
    image.start..image.start + image.len
}

/// Uploads the whole memory of an image.
pub(super) fn upload<T: Element>(device: &Device, image: &Image) -> Result<Buffer<T>, Error> {
    device.upload_of(&of_bits(&image.memory))
}

/// View that a kernel takes for an input, or None for a vector.
pub(super) fn matrix<'a, T: Element>(
    over: Over,
    part: &'a BufferView<'_, T>,
    axes: &[ArrayAxis],
) -> Result<Option<MatrixRef<'a, T>>, Error> {
    let extent = |n: usize| axes[n].extent as usize;
    let stride = |n: usize| axes[n].stride as usize;
    Ok(Some(match over {
        Over::All | Over::Segments => return Ok(None),
        Over::Rows | Over::Columns => MatrixRef::pitched(part, extent(0), extent(1), stride(0))?,
        Over::Middle => {
            let batch = (extent(0), stride(0));
            MatrixRef::batch_apart(part, batch, extent(1), extent(2), stride(1))?
        }
        over => newer_word(over),
    }))
}

/// Segments with 32-bit or 64-bit offsets.
pub(super) enum Cut {
    U32(Segments<u32>),
    U64(Segments<u64>),
}

pub(super) fn cut(device: &Device, image: &Image) -> Result<Cut, Error> {
    fn segments<J: Offset>(device: &Device, image: &Image) -> Result<Segments<J>, Error> {
        Segments::new(device, &of_bits::<J>(&image.memory[range(image)]))
    }
    Ok(match image.elem {
        Elem::U64 => Cut::U64(segments(device, image)?),
        _ => Cut::U32(segments(device, image)?),
    })
}

/// Call to which arrays are added.
type Given<'a> = Call<'a, ReduceSpec, ByName, NamedArrays<'a>>;

/// Adds the numbers of a spec to a call.
fn with_numbers<'a>(spec: &ReduceSpec, mut call: Given<'a>) -> Given<'a> {
    for (name, elem) in spec.numbers() {
        call = match elem {
            Elem::F32 => call.number(name, closures::SINGLE),
            Elem::F64 => call.number(name, closures::DOUBLE),
            Elem::I32 => call.number(name, closures::INT),
            Elem::U32 => call.number(name, closures::UNSIGNED),
            _ => call.number(name, closures::LONG),
        };
    }
    call
}

/// Array for results of any type.
trait Written {
    /// Part of the array that an image describes.
    fn part(&mut self, image: &Image) -> Result<Box<dyn Part + '_>, Error>;

    /// Bits of the whole array.
    fn bits(&self, device: &Device) -> Result<Vec<u64>, Error>;
}

/// Part of an array for results.
trait Part {
    /// Adds the part to a call as the result `name`.
    fn given<'a>(&'a mut self, name: &str, call: Given<'a>) -> Given<'a>;
}

impl<T: Element> Written for Buffer<T> {
    fn part(&mut self, image: &Image) -> Result<Box<dyn Part + '_>, Error> {
        Ok(Box::new(self.slice_mut(range(image))?))
    }

    fn bits(&self, device: &Device) -> Result<Vec<u64>, Error> {
        Ok(gemm_sim::Buffer::from_slice(&device.download(self)?).bits())
    }
}

impl<T: Element> Part for BufferViewMut<'_, T> {
    fn given<'a>(&'a mut self, name: &str, call: Given<'a>) -> Given<'a> {
        call.output(name, self)
    }
}

fn of_bits<T: Element>(bits: &[u64]) -> Vec<T> {
    let elements = gemm_sim::Buffer::from_bits(T::ELEM, bits.iter().copied());
    elements.to_vec_of().unwrap_or_else(|| unreachable!("they are of the same size"))
}
