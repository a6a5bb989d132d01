//! Buffers for data from other ranks. Later GEMMs reuse them.

use super::{Block, Factor, Place};
use crate::{Error, Result};
use gemm_dsl::target::element::Element;
use gemm_runtime::Buffer;
use gemm_runtime::Device;
use gemm_runtime::internal::Address;
use gemm_runtime::internal::Area;
use gemm_runtime::internal::Backend;
use std::collections::HashMap;

/// Buffers of all places except shards.
#[derive(Default)]
pub(crate) struct StagingBuffers(HashMap<(Factor, Place), Buffer>);

impl StagingBuffers {
    /// Frees the buffers for which `is_used` is false.
    pub(crate) fn retain(&mut self, is_used: impl Fn(&(Factor, Place)) -> bool) {
        self.0.retain(|at, _| is_used(at));
    }

    /// Returns true if a place has a buffer of at least `len` elements.
    pub(crate) fn has(&self, at: (Factor, Place), len: usize) -> bool {
        self.0.get(&at).is_some_and(|buffer| buffer.len() >= len)
    }

    /// Ensures a buffer of at least `len` elements, with undefined contents.
    pub(crate) fn reserve(
        &mut self,
        device: &Device,
        at: (Factor, Place),
        len: usize,
    ) -> Result<()> {
        if !self.has(at, len) {
            // Frees the smaller buffer before allocating the larger one.
            self.0.remove(&at);
            self.0.insert(at, device.alloc(len)?);
        }
        Ok(())
    }

    /// Returns the buffer of a reserved place.
    pub(crate) fn buffer(&self, at: (Factor, Place)) -> Result<&Buffer> {
        let (factor, place) = at;
        let room = self.0.get(&at);
        room.ok_or_else(|| {
            Error::internal(format!("there is no buffer for the part of {factor} in {place}"))
        })
    }
}

/// Returns a packed row-major block at the start of a buffer.
pub(crate) fn area<B: Backend>(buffer: &Buffer<impl Element>, block: &Block) -> Result<Area<B>> {
    let (rows, cols) = (block.rows.len(), block.cols.len());
    area_of(buffer, rows, cols, cols)
}

/// Returns rows with a row stride of `pitch` elements, at the start of a buffer.
pub(crate) fn area_of<B: Backend>(
    buffer: &Buffer<impl Element>,
    rows: usize,
    cols: usize,
    pitch: usize,
) -> Result<Area<B>> {
    let outside = || Error::internal("a block is larger than its buffer".to_owned());
    let whole = buffer.address::<B>().ok_or_else(outside)?;
    let area = Area { first: whole.clone(), rows, cols, pitch };
    let first = whole.part(0, area.span() as u64).filter(|_| area.span() <= buffer.len());
    Ok(Area { first: first.ok_or_else(outside)?, ..area })
}

/// Returns the part of an area that contains `block`, if the area contains the block `origin`.
pub(crate) fn part<B: Backend>(area: &Area<B>, origin: &Block, block: &Block) -> Result<Area<B>> {
    let rows = block.rows.start.checked_sub(origin.rows.start);
    let cols = block.cols.start.checked_sub(origin.cols.start);
    let part = rows
        .zip(cols)
        .and_then(|(row, col)| area.part(row..row + block.rows.len(), col..col + block.cols.len()));
    part.ok_or_else(|| Error::internal(format!("{block} is not a part of {origin}")))
}
