//! Tensor maps: the driver's description of an array for hardware copies (TMA).
//!
//! A launch of a program encodes its own maps. A caller that launches an IR kernel through the
//! driver encodes them with [`encode`], from the arrays that the kernel's contract returns.

use super::driver;
use crate::error::{Error, Result};
use cudarc::driver::DeviceRepr;
use gemm_dsl::ir::contract::MappedArray;
use gemm_dsl::ir::{Elem, TensorMap, TensorSwizzle};
use smallvec::SmallVec;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// Encoded tensor map, passed to a kernel by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(128))]
pub struct EncodedTensorMap([u64; 16]);

// SAFETY: the type is plain data, as large as the kernel's parameter.
#[allow(unsafe_code, reason = "cudarc requires this trait of arguments by value")]
unsafe impl DeviceRepr for EncodedTensorMap {}

/// `cuTensorMapEncodeTiled` as declared in cuda.h since release 12.0, with its enumerations as
/// integers.
type Encode = unsafe extern "C" fn(
    *mut EncodedTensorMap,
    c_int,
    u32,
    *mut c_void,
    *const u64,
    *const u64,
    *const u32,
    *const u32,
    c_int,
    c_int,
    c_int,
    c_int,
) -> c_int;

/// `CU_TENSOR_MAP_L2_PROMOTION_L2_256B`: the L2 cache fetches 256 bytes at a time.
const L2_256_BYTES: c_int = 3;

/// Driver function, with the library that it belongs to.
fn function() -> Result<Encode> {
    static FUNCTION: OnceLock<Option<(Encode, libloading::Library)>> = OnceLock::new();
    #[allow(unsafe_code, reason = "the driver is loaded at run time")]
    let find = || {
        let library = driver::library()?;
        // SAFETY: cuda.h declares this type, and the library stays loaded as long as the function
        // is used.
        let encode = unsafe { library.get::<Encode>("cuTensorMapEncodeTiled") }.ok().map(|f| *f);
        Some((encode?, library))
    };
    let found = FUNCTION.get_or_init(find).as_ref().map(|(encode, _)| *encode);
    let reason = || "the installed one is too old: it has no cuTensorMapEncodeTiled".to_owned();
    found.ok_or_else(|| Error::DriverMissing { reason: reason() })
}

/// `CUtensorMapDataType` of an element type.
fn data_type(elem: Elem) -> c_int {
    match elem {
        Elem::I8 | Elem::U8 | Elem::E4m3 | Elem::E5m2 => 0,
        Elem::I16 | Elem::U16 => 1,
        Elem::U32 => 2,
        Elem::I32 => 3,
        Elem::U64 => 4,
        Elem::I64 => 5,
        Elem::F16 => 6,
        Elem::F32 | Elem::Tf32 => 7,
        Elem::F64 => 8,
        Elem::Bf16 => 9,
    }
}

/// Numbers of a tensor map, one for each dimension.
type Few<T> = SmallVec<[T; TensorMap::MOST_AXES]>;

/// Strides of all dimensions but the innermost, in bytes.
fn outer_strides(elem: Elem, mapped: &MappedArray) -> Few<u64> {
    let outer = mapped.extents.iter().zip(&mapped.strides).rev().skip(1);
    let bytes = outer.map(|(extent, stride)| match extent {
        // The driver rejects a stride of 0. Along one element, the stride has no effect.
        1 => (stride * u64::from(elem.size())).max(16),
        _ => stride * u64::from(elem.size()),
    });
    bytes.collect()
}

/// Encodes the tensor map of an array of a launch.
///
/// # Errors
/// * [`Error::DriverMissing`] if the driver cannot be loaded or has no such function.
/// * [`Error::Driver`] if the driver rejects a map that the kernel's contract accepts.
pub fn encode(
    address: u64,
    elem: Elem,
    map: &TensorMap,
    mapped: &MappedArray,
) -> Result<EncodedTensorMap> {
    // The driver lists the innermost dimension first and assumes that it is contiguous.
    let extents: Few<u64> = mapped.extents.iter().rev().copied().collect();
    let strides = outer_strides(elem, mapped);
    let tile: Few<u32> = map.tile.iter().rev().copied().collect();
    let steps: Few<u32> = tile.iter().map(|_| 1).collect();
    let swizzle = match map.swizzle {
        TensorSwizzle::None => 0,
        TensorSwizzle::Bytes32 => 1,
        TensorSwizzle::Bytes64 => 2,
        TensorSwizzle::Bytes128 => 3,
    };
    let is_of_rank = extents.len() == tile.len() && strides.len() + 1 == tile.len();
    if !is_of_rank {
        let reason = format!("a tensor map of {} dimensions for {}", tile.len(), extents.len());
        return Err(Error::Internal(reason));
    }
    let encode = function()?;
    let mut encoded = EncodedTensorMap([0; 16]);
    #[allow(unsafe_code, reason = "cudarc declares the function for some releases only")]
    // SAFETY: the map is aligned to more than the 64 bytes that the driver requires, and every
    // array has as many elements as the rank. The driver checks and stores the address but does not
    // access it.
    let status = unsafe {
        encode(
            &raw mut encoded,
            data_type(elem),
            tile.len() as u32,
            address as *mut c_void,
            extents.as_ptr(),
            strides.as_ptr(),
            tile.as_ptr(),
            steps.as_ptr(),
            0,
            swizzle,
            L2_256_BYTES,
            0,
        )
    };
    if status == 0 {
        return Ok(encoded);
    }
    Err(Error::Driver {
        doing: "encoding a tensor map".to_owned(),
        code: "CUresult".to_owned(),
        status,
        text: format!("extents {extents:?}, strides {strides:?} in bytes, boxes {tile:?}"),
    })
}

#[cfg(test)]
mod tests {
    use super::outer_strides;
    use gemm_dsl::ir::Elem;
    use gemm_dsl::ir::contract::MappedArray;

    #[test]
    fn only_the_stride_along_one_element_is_replaced() {
        let strides = |extents: [u64; 3], strides: [u64; 3]| {
            let (extents, strides) = (extents.into_iter().collect(), strides.into_iter().collect());
            outer_strides(Elem::Bf16, &MappedArray { position: 0, extents, strides }).to_vec()
        };
        assert_eq!(strides([3, 100, 64], [7200, 72, 1]), [144, 14400]);
        assert_eq!(strides([1, 100, 64], [0, 72, 1]), [144, 16]);
        assert_eq!(strides([1, 1, 64], [0, 72, 1]), [144, 16]);
        // The contract refuses this map, so the driver does not see it. It must not become another.
        assert_eq!(strides([3, 100, 64], [0, 72, 1]), [144, 0]);
    }
}
