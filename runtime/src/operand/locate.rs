//! Location of operands: checks that they belong to the device, and gives their addresses.

use super::{Exclusive, Input, ListArrays, Output, Shared};
use crate::backend::gpu::{Access, SliceUse, UseLog};
use crate::backend::{ArrayList, Backend, Borrowed, Place};
use crate::buffer::{BufferView, ELEMENTS};
use crate::device::{Device, On};
use crate::error::{Error, Owner, Result};
use crate::kernel_arg::Address;
use crate::shape::Shape;
use gemm_dsl::target::element::Element;
use std::sync::Arc;

/// Operand on the device of the call.
pub struct LocatedOperand<'a, B: Backend> {
    /// Address and length, or list of arrays.
    pub place: Place<'a, B>,
    /// Shape of a matrix, or of each matrix of a list. `place` has the address of the first element
    /// of the matrix.
    pub shape: Option<Shape>,
    /// Guard, dropped after the launch. The drop records the use of a `cudarc` slice on the
    /// device's stream, and `cudarc` orders later work of other streams after this use.
    _used: Option<SliceUse<'a>>,
    /// Guards for the arrays of a list.
    _all_used: Vec<SliceUse<'a>>,
}

impl<B: Backend> LocatedOperand<'_, B> {
    /// Returns true for a list without arrays.
    pub(crate) fn is_empty_list(&self) -> bool {
        matches!(self.place, Place::List(list) if list.arrays.is_empty())
    }

    /// Address of a single array, and the number of elements from this address on.
    ///
    /// # Errors
    /// [`Error::List`] for a list.
    pub(crate) fn array(&self, argument: &str) -> Result<(&B::Address, u64)> {
        match &self.place {
            Place::One { address, len } => Ok((address, *len)),
            Place::List(_) => Err(Error::List { argument: argument.to_owned() }),
        }
    }
}

/// Locates an input: checks that it belongs to the device, and makes the device's stream wait for
/// all work on the input that `cudarc` has recorded.
pub fn read<'a, B: Backend, I: Input + ?Sized>(
    on: On<'a, B>,
    input: &'a I,
    argument: &str,
) -> Result<LocatedOperand<'a, B>> {
    let (elements, shape) = input.input();
    resolve(on, elements, shape, argument)
}

/// Locates an input as [`read`] does, given its elements and its shape.
pub fn resolve<'a, T: Element, B: Backend>(
    on: On<'a, B>,
    elements: Shared<'a, T>,
    shape: Option<Shape>,
    argument: &str,
) -> Result<LocatedOperand<'a, B>> {
    let len = elements.len();
    let slice =
        |view| on.backend.slice(view)?.ok_or_else(|| wrong_device(on, argument, Owner::Context));
    let (address, used) = match elements {
        Shared::Buffer(view) => view_of(on, &view, Access::Read, argument)?,
        Shared::Cuda(part) => slice(part.view())?,
        Shared::List(arrays, slices) => {
            let list = listed(on, arrays, argument)?;
            let used = slices.views().into_iter().map(slice);
            let used = used.filter_map(|slice| slice.map(|(_, used)| used).transpose());
            let all_used = used.collect::<Result<_>>()?;
            let used = on.backend.begin_use(&list.uses, Access::Read)?;
            let place = Place::List(list);
            return Ok(LocatedOperand { place, shape, _used: used, _all_used: all_used });
        }
    };
    resolved(address, used, len, shape, argument)
}

/// Locates an output as [`read`] locates an input.
pub fn write<'a, B: Backend, O: Output + ?Sized>(
    on: On<'a, B>,
    output: &'a mut O,
    argument: &str,
) -> Result<LocatedOperand<'a, B>> {
    let (elements, shape) = output.output();
    resolve_mut(on, elements, shape, argument)
}

/// Locates an output as [`write`] does, given its elements and its shape.
pub fn resolve_mut<'a, T: Element, B: Backend>(
    on: On<'a, B>,
    elements: Exclusive<'a, T>,
    shape: Option<Shape>,
    argument: &str,
) -> Result<LocatedOperand<'a, B>> {
    let len = elements.len();
    let slice = |view| {
        on.backend.slice_mut(view)?.ok_or_else(|| wrong_device(on, argument, Owner::Context))
    };
    let (address, used) = match elements {
        Exclusive::Buffer(view) => view_of(on, &view, Access::Write, argument)?,
        Exclusive::Cuda(view) => slice(view)?,
        Exclusive::List(arrays, views) => {
            let list = listed(on, arrays, argument)?;
            let used = views.into_iter().map(slice);
            let used = used.filter_map(|slice| slice.map(|(_, used)| used).transpose());
            let all_used = used.collect::<Result<_>>()?;
            let used = on.backend.begin_use(&list.uses, Access::Write)?;
            let place = Place::List(list);
            return Ok(LocatedOperand { place, shape, _used: used, _all_used: all_used });
        }
    };
    resolved(address, used, len, shape, argument)
}

/// Arrays of a list, checked to belong to the device.
fn listed<'a, B: Backend>(
    on: On<'_, B>,
    arrays: &'a ListArrays,
    argument: &str,
) -> Result<&'a ArrayList<B>> {
    let owner = &arrays.device;
    let ours = if owner.is_same(on.device) { arrays.list.downcast_ref() } else { None };
    ours.ok_or_else(|| wrong_device(on, argument, owner_of(owner)))
}

/// Address of a buffer view, checked to belong to the device or to one that shares its buffers, and
/// ordered after the work of other streams.
fn view_of<'a, T: Element, B: Backend>(
    on: On<'a, B>,
    view: &BufferView<'a, T>,
    access: Access,
    argument: &str,
) -> Result<Borrowed<'a, B>> {
    let (buffer, start, len) = view.parts();
    let owner = buffer.device();
    let ours = owner.is_same(on.device) || owner.shares_buffers(on.device);
    let memory = if ours { buffer.allocation::<B>() } else { None };
    let memory = memory.ok_or_else(|| wrong_device(on, argument, owner_of(owner)))?;
    let part = B::address(memory).part(start as u64, len as u64);
    let part = part.ok_or_else(|| {
        let (end, len) = (start.saturating_add(len), buffer.len());
        Error::OutOfRange { start, end, len, of: ELEMENTS }
    })?;
    let logs = B::use_log(memory).map(std::slice::from_ref).unwrap_or_default();
    Ok((part, on.backend.begin_use(logs, access)?))
}

/// Uses of the buffer of a list's matrix. The list belongs to the device, and its buffers must,
/// too.
pub(crate) fn listed_uses<T: Element, B: Backend>(
    on: On<'_, B>,
    elements: &Shared<'_, T>,
    argument: &str,
) -> Result<Option<Arc<UseLog>>> {
    let Shared::Buffer(view) = elements else { return Ok(None) };
    let (buffer, ..) = view.parts();
    if !buffer.device().is_same(on.device) {
        return Err(wrong_device(on, argument, owner_of(buffer.device())));
    }
    Ok(buffer.allocation::<B>().and_then(B::use_log).map(Arc::clone))
}

fn owner_of(device: &Device) -> Owner {
    Owner::Device { name: device.name().to_owned(), is_simulator: device.is_simulator() }
}

fn wrong_device<B>(on: On<'_, B>, argument: &str, belongs: Owner) -> Error {
    let (argument, device) = (argument.to_owned(), on.device.name().to_owned());
    Error::WrongDevice { argument, device, belongs }
}

fn resolved<'a, B: Backend>(
    address: B::Address,
    used: Option<SliceUse<'a>>,
    len: usize,
    shape: Option<Shape>,
    argument: &str,
) -> Result<LocatedOperand<'a, B>> {
    let start = shape.map_or(0, |shape| shape.start);
    let left = len.checked_sub(start).map(|left| left as u64);
    let part = left.and_then(|left| Some((address.part(start as u64, left)?, left)));
    let (address, len) = part.ok_or_else(|| Error::WrongExtent {
        argument: argument.to_owned(),
        has: len as u64,
        need: format!("the matrix starts at element {start}"),
    })?;
    Ok(LocatedOperand {
        place: Place::One { address, len },
        shape,
        _used: used,
        _all_used: Vec::new(),
    })
}
