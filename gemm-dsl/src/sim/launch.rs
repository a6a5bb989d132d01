//! Binding of arguments: what the host checks before a kernel runs.

use super::Buffer;
use super::error::SimError;
use super::region::{self, Region};
use crate::ir::{ParamKind, Requirement, Space, Ty, VerifiedKernel};

/// A kernel's arguments, checked and resolved.
pub(super) struct Launch<'k> {
    pub(super) kernel: &'k VerifiedKernel,
    /// The bits of each scalar parameter, by parameter; 0 for buffers.
    pub(super) scalars: Vec<u64>,
    pub(super) regions: Vec<Region>,
    /// Words of shared memory.
    pub(super) shared_words: u32,
    /// The first lane slot that is no element of a register array.
    pub(super) first_variable: u32,
    /// Blocks along x and y.
    pub(super) grid: (u32, u32),
}

/// The largest grid extents of CUDA.
const MAX_GRID: [u64; 2] = [i32::MAX as u64, 65535];
/// The most blocks of a launch: the race detector numbers them with 32 bits.
const MAX_BLOCKS: u64 = u32::MAX as u64 - 1;

impl<'k> Launch<'k> {
    pub(super) fn new(
        kernel: &'k VerifiedKernel,
        buffers: &[Buffer],
        scalars: &[u64],
    ) -> Result<Self, SimError> {
        let of_kind = |buffer: bool| {
            let is_buffer = |k: &ParamKind| matches!(k, ParamKind::Buffer { .. });
            kernel.params.iter().filter(move |p| is_buffer(&p.kind) == buffer).count()
        };
        let (expected, given) = (of_kind(true), buffers.len());
        if expected != given {
            let kernel = kernel.name.clone();
            return Err(SimError::BufferCount { kernel, expected, given });
        }
        let (expected, given) = (of_kind(false), scalars.len());
        if expected != given {
            let kernel = kernel.name.clone();
            return Err(SimError::ScalarCount { kernel, expected, given });
        }
        let mut given = scalars.iter();
        let mut bits = Vec::with_capacity(kernel.params.len());
        let mut values = Vec::with_capacity(kernel.params.len());
        for param in &kernel.params {
            let ParamKind::Scalar { ty, .. } = param.kind else {
                bits.push(0);
                values.push(None);
                continue;
            };
            let value = given.next().copied().unwrap_or(0);
            let limit = match ty {
                Ty::I32 => i32::MAX as u64,
                Ty::U64 => u64::MAX,
                _ => u32::MAX.into(),
            };
            if value > limit {
                let name = param.name.clone();
                return Err(SimError::ScalarRange { name, ty, value });
            }
            bits.push(value);
            values.push(ty.is_integer().then_some(value));
        }
        let (regions, shared_words, first_variable) = region::resolve(kernel, &values, buffers)?;
        let mut extents = [0; 2];
        for (axis, extent) in extents.iter_mut().enumerate() {
            let what = || format!("grid extent {} of `{}`", ["x", "y"][axis], kernel.name);
            let value = kernel.eval(&kernel.geometry.grid[axis], &values);
            let value = value.map_err(|reason| SimError::Extent { what: what(), reason })?;
            let limit = MAX_GRID[axis];
            *extent = u64::try_from(value)
                .ok()
                .filter(|&n| n <= limit)
                .ok_or_else(|| SimError::ExtentRange { what: what(), value, limit })?;
        }
        let blocks = extents[0] * extents[1];
        if blocks > MAX_BLOCKS {
            return Err(SimError::ExtentRange {
                what: format!("the number of blocks of `{}`", kernel.name),
                value: blocks.into(),
                limit: MAX_BLOCKS,
            });
        }
        let launch = Self {
            kernel,
            scalars: bits,
            regions,
            shared_words,
            first_variable,
            grid: (extents[0] as u32, extents[1] as u32),
        };
        launch.requirements()?;
        Ok(launch)
    }

    fn requirements(&self) -> Result<(), SimError> {
        for requirement in &self.kernel.requires {
            match *requirement {
                Requirement::Aligned { operand, bytes } => {
                    let bound = self.regions.iter().filter(|r| r.operand == Some(operand));
                    for (region, memory) in bound.filter_map(|r| Some((r, r.memory.as_ref()?))) {
                        let offset = memory.byte_offset();
                        if !offset.is_multiple_of(bytes.max(1).into()) {
                            let buffer = region.name.clone();
                            return Err(SimError::BaseAlignment { buffer, offset, bytes });
                        }
                    }
                }
                Requirement::Range { scalar, min, max } => {
                    let value = self.scalars.get(scalar.param).copied().unwrap_or(0);
                    if !(min..=max).contains(&value) {
                        let param = self.kernel.params.get(scalar.param);
                        let name = param.map_or_else(String::new, |p| p.name.clone());
                        return Err(SimError::OutOfRange { name, value, min, max });
                    }
                }
                Requirement::Multiple { scalar, of } => {
                    let value = self.scalars.get(scalar.param).copied().unwrap_or(0);
                    if !value.is_multiple_of(of.max(1)) {
                        let param = self.kernel.params.get(scalar.param);
                        let name = param.map_or_else(String::new, |p| p.name.clone());
                        return Err(SimError::NotMultiple { name, value, of });
                    }
                }
            }
        }
        Ok(())
    }

    /// Fails where a buffer that the kernel writes shares memory with another one.
    pub(super) fn distinct(&self, stored: &[bool]) -> Result<(), SimError> {
        let globals = || {
            let regions = self.regions.iter().enumerate();
            regions.filter(|(_, r)| r.space == Space::Global)
        };
        for (i, written) in globals().filter(|(i, _)| stored.get(*i) == Some(&true)) {
            for (_, other) in globals().filter(|(j, _)| *j != i) {
                if let (Some(a), Some(b)) = (&written.memory, &other.memory)
                    && a.overlaps(b)
                {
                    return Err(SimError::Overlap {
                        written: written.name.clone(),
                        other: other.name.clone(),
                    });
                }
            }
        }
        Ok(())
    }

    /// The coordinates of the block with this number, x fastest.
    pub(super) fn block(&self, number: u32) -> (u32, u32) {
        let width = self.grid.0.max(1);
        (number % width, number / width)
    }

    /// The coordinates of the thread with this linear index.
    pub(super) fn thread(&self, index: u32) -> (u32, u32) {
        let width = self.kernel.geometry.block.0.max(1);
        (index % width, index / width)
    }
}
