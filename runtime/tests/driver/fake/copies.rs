//! Copies and fills of the fake driver.

use super::work::{Copy, Host, Source, Task, with_work};
use super::{Handle, INVALID_VALUE, SUCCESS, Status};
use std::ffi::c_uint;

/// Functions that copy consecutive bytes.
macro_rules! copies {
    ($($name:ident($to:ty, $from:ty), $host:expr;)*) => {
        $(
            /// # Safety
            /// Both ranges are valid.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                to: $to,
                from: $from,
                width: usize,
                stream: Handle,
            ) -> Status {
                let (to, from) = (to as u64, Source::Address(from as u64));
                let copy = Copy { to, to_pitch: width, from, from_pitch: width, width, height: 1 };
                with_work(|work| work.copy(stream, copy, $host));
                SUCCESS
            }
        )*
    };
}

copies! {
    cuMemcpyHtoDAsync_v2(u64, *const u8), Some(Host::Source);
    cuMemcpyDtoHAsync_v2(*mut u8, u64), Some(Host::Target);
    cuMemcpyDtoDAsync_v2(u64, u64), None;
}

/// One side of a copy of rows, as `cuda.h` declares it.
#[repr(C)]
pub struct Side {
    x_in_bytes: usize,
    y: usize,
    /// 1 for host memory, 4 for unified addresses.
    memory_type: c_uint,
    host: *mut u8,
    device: u64,
    array: Handle,
    pitch: usize,
}

impl Side {
    /// Address of the first row, if the driver accepts this side of rows of `width` bytes.
    fn first(&self, width: usize) -> Option<*mut u8> {
        let is_valid = (self.x_in_bytes, self.y) == (0, 0) && is_pitch(self.pitch, width);
        match self.memory_type {
            1 if is_valid => Some(self.host),
            4 if is_valid => Some(self.device as *mut u8),
            _ => None,
        }
    }
}

/// Returns true if the driver accepts a row stride, in bytes.
fn is_pitch(pitch: usize, width: usize) -> bool {
    (width..=i32::MAX as usize).contains(&pitch)
}

/// Copy of rows, as `cuda.h` declares it.
#[repr(C)]
pub struct Rows {
    from: Side,
    to: Side,
    width: usize,
    height: usize,
}

/// # Safety
/// Both sides have the rows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpy2DAsync_v2(rows: *const Rows, stream: Handle) -> Status {
    // SAFETY: the caller ensures it.
    let Rows { from, to, width, height } = unsafe { &*rows };
    let (Some(first), Some(target)) = (from.first(*width), to.first(*width)) else {
        return INVALID_VALUE;
    };
    let host = match (from.memory_type, to.memory_type) {
        (1, _) => Some(Host::Source),
        (_, 1) => Some(Host::Target),
        _ => None,
    };
    let copy = Copy {
        to: target as u64,
        to_pitch: to.pitch,
        from: Source::Address(first as u64),
        from_pitch: from.pitch,
        width: *width,
        height: *height,
    };
    with_work(|work| work.copy(stream, copy, host));
    SUCCESS
}

/// Functions that set elements, in a row and in rows.
macro_rules! sets {
    ($($row:ident, $rows:ident: $ty:ty;)*) => {
        $(
            /// # Safety
            /// The elements exist.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $row(at: u64, value: $ty, len: usize, stream: Handle)
            -> Status {
                set(stream, at, len * size_of::<$ty>(), &value.to_ne_bytes(), (len, 1))
            }

            /// # Safety
            /// The elements exist.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $rows(
                at: u64,
                pitch: usize,
                value: $ty,
                width: usize,
                height: usize,
                stream: Handle,
            ) -> Status {
                if !is_pitch(pitch, width * size_of::<$ty>()) {
                    return INVALID_VALUE;
                }
                set(stream, at, pitch, &value.to_ne_bytes(), (width, height))
            }
        )*
    };
}

/// Puts a copy of one value to rows on a stream.
fn set(stream: Handle, to: u64, to_pitch: usize, value: &[u8], extents: (usize, usize)) -> Status {
    let (from, width) = (Source::Bytes(value.repeat(extents.0)), value.len() * extents.0);
    let copy = Copy { to, to_pitch, from, from_pitch: 0, width, height: extents.1 };
    with_work(|work| work.push(stream, Task::Copy(copy)));
    SUCCESS
}

sets! {
    cuMemsetD8Async, cuMemsetD2D8Async: u8;
    cuMemsetD16Async, cuMemsetD2D16Async: u16;
    cuMemsetD32Async, cuMemsetD2D32Async: u32;
}
