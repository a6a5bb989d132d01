//! The access that is at fault, found among those that were seen; none where the fault is not in an access.

use gemm_dsl::cuda;
use gemm_dsl::ir::{Kernel, Layout, VerifiedKernel};
use gemm_runtime::fault::{Fault, FaultKind, Position};
use gemm_runtime::watch::{Accessed, Kind, Trace};

/// A thread's number in its block.
pub(super) fn number(kernel: &Kernel, (x, y): (u32, u32)) -> u32 {
    x + kernel.geometry.block.0 * y
}

/// The elements of an access, lane by lane, each with its thread.
pub(super) fn elements(kernel: &Kernel, access: &Accessed<'_>) -> Vec<(u32, u64)> {
    let (pattern, first, warp) = (access.pattern, access.first, access.event.warp);
    let width = i64::from(pattern.bytes / kernel.buffers[pattern.buffer].elem.size());
    let lanes = pattern.lanes.iter().zip(0u32..);
    let lanes = lanes.filter_map(|(at, lane)| Some((lane, i64::from(first) + i64::from((*at)?))));
    let of = |(lane, at): (u32, i64)| {
        (0..width).map(move |n| (warp * 32 + lane, (at + n).max(0) as u64))
    };
    lanes.flat_map(of).collect()
}

/// Where the access at fault stands among all, and the element that it is about, by its place in its buffer.
pub(super) fn access(
    kernel: &VerifiedKernel,
    scalars: &[Option<u64>],
    all: &[Accessed<'_>],
    fault: &Fault,
) -> Option<(usize, u64)> {
    let (place, writes) = match &fault.kind {
        FaultKind::Race { place, writes, .. } => (place, Some(*writes)),
        FaultKind::CopyNotAwaited { place, .. } => (place, None),
        FaultKind::Uninitialised { place } => (place, Some(false)),
        _ => return None,
    };
    let (element, thread) = (offset(kernel, scalars, place)?, number(kernel, fault.thread));
    let statements = kernel.statements();
    let is_it = |access: &Accessed<'_>| {
        let is_like = writes.is_none_or(|writes| match access.pattern.kind {
            Kind::Load | Kind::CopyRead => !writes,
            Kind::Store | Kind::CopyWrite => writes,
            Kind::Atomic => true,
        });
        is_like
            && kernel.buffers[access.pattern.buffer].name == place.buffer
            && elements(kernel, access).contains(&(thread, element))
            && cuda::statement(kernel, statements[access.event.stmt as usize]) == fault.statement
    };
    Some((all.iter().rposition(is_it)?, element))
}

/// The statement that a fault was in, by its number; none where several have that text and the trace does not say which.
pub(super) fn statement(kernel: &VerifiedKernel, trace: &Trace, fault: &Fault) -> Option<usize> {
    let statements = kernel.statements();
    let is_it = |number: &usize| cuda::statement(kernel, statements[*number]) == fault.statement;
    let warp = number(kernel, fault.thread) / 32;
    let last = trace.events.iter().rfind(|event| event.warp == warp);
    let last = last.map(|event| event.stmt as usize).filter(is_it);
    let mut alike = (0..statements.len()).filter(is_it);
    last.or_else(|| alike.next().filter(|_| alike.next().is_none()))
}

/// Where an element lies in its buffer, as accesses name it.
fn offset(kernel: &Kernel, scalars: &[Option<u64>], place: &Position) -> Option<u64> {
    let buffer = kernel.buffers.iter().find(|buffer| buffer.name == place.buffer)?;
    let index = |dim: usize| u64::try_from(*place.index.get(dim)?).ok();
    match &buffer.layout {
        Layout::Array { order, swizzle, .. } => {
            let (mut at, mut row) = (0, 0);
            for (dim, extent) in order.iter().zip(buffer.physical_dims()?) {
                row = u64::try_from(kernel.eval_const(&extent).ok()?).ok()?;
                at = at * row + index(*dim)?;
            }
            Some(match swizzle {
                Some(swizzle) if row > 0 => at / row * row + swizzle.apply(at / row, at % row),
                _ => at,
            })
        }
        Layout::Strided { strides } => {
            let along = |(dim, stride)| {
                let stride = u64::try_from(kernel.eval(stride, scalars).ok()?).ok()?;
                Some(index(dim)? * stride)
            };
            strides.iter().enumerate().map(along).sum()
        }
        Layout::Listed { .. } | Layout::OfList { .. } | Layout::Pointer { .. } => None,
    }
}
