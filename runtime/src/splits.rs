//! Storage of the splits of a matrix.

use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::{Error, Result};
use gemm_dsl::ir::Elem;
use gemm_dsl::ir::contract::ArrayAxis;
use gemm_dsl::spec::Arith;
use half::{bf16, f16};

/// Splits of a matrix in device memory.
#[derive(Debug)]
pub struct SplitBuffers {
    pub(crate) arith: Arith,
    pub(crate) numbers: SplitElements,
    /// Greatest magnitude of each column of the matrix, as the bits of an `f32`. `None` for an
    /// arithmetic that does not scale columns.
    pub(crate) greatest: Option<Buffer<u32>>,
    /// Extents and strides of the splits.
    pub(crate) axes: Vec<ArrayAxis>,
    /// Number of columns of the matrix.
    pub(crate) lines: u64,
}

/// Elements of the splits, by their type in memory.
#[derive(Debug)]
pub enum SplitElements {
    Bf16(Buffer<bf16>),
    F16(Buffer<f16>),
    Tf32(Buffer<f32>),
}

/// Evaluates an expression for either element type of the splits.
macro_rules! with_elements {
    ($numbers:expr, $buffer:ident => $then:expr) => {
        match $numbers {
            $crate::splits::SplitElements::Bf16($buffer) => $then,
            $crate::splits::SplitElements::F16($buffer) => $then,
            $crate::splits::SplitElements::Tf32($buffer) => $then,
        }
    };
}
pub(crate) use with_elements;

impl SplitElements {
    pub fn alloc(device: &Device, elem: Elem, len: usize) -> Result<Self> {
        Ok(match elem {
            Elem::Bf16 => Self::Bf16(device.alloc_of(len)?),
            Elem::F16 => Self::F16(device.alloc_of(len)?),
            Elem::F32 => Self::Tf32(device.alloc_of(len)?),
            other => return Err(Error::Internal(format!("splits of {other}"))),
        })
    }
}

impl SplitBuffers {
    /// Returns true if GEMMs in `arith` take these splits.
    pub fn are_for(&self, arith: Arith) -> bool {
        self.arith == arith
    }
}
