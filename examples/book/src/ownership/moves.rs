//! Movement of elements by threads, from a trace of a run on numbered elements.

use crate::observation::Observation;
use gemm_dsl::ir::{BufferLayout, Elem, Kernel, ParamKind, Space};
use gemm_runtime::sim::watch::{AccessEvent, Kind, Trace};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

/// Position of an element as (row, column).
pub(crate) type Position = (u64, u64);

/// Matrix of f32 in global memory, located by its strides.
pub(crate) struct GlobalMatrix {
    /// Index of its buffer in the kernel.
    pub(crate) buffer: usize,
    /// Numbers of its elements, which are also their values.
    numbers: Range<u64>,
    /// Row stride and column stride, in elements.
    strides: [u64; 2],
    /// Batch stride in elements, if it is not 0.
    product: Option<u64>,
}

impl GlobalMatrix {
    /// Returns the matrix with this array name, if the array is an f32 matrix with positive
    /// strides.
    pub(crate) fn new(
        kernel: &Kernel,
        name: &str,
        scalars: &[Option<u64>],
        numbers: &[Range<u64>],
    ) -> Option<Self> {
        let arrays = kernel.params.iter().filter_map(|param| match param.kind {
            ParamKind::Buffer { buffer, .. } | ParamKind::TensorMap { buffer, .. } => {
                Some(buffer.id)
            }
            ParamKind::Scalar { .. } => None,
        });
        let is_it = |(buffer, _): &(usize, &Range<u64>)| kernel.buffers[*buffer].name == name;
        let (buffer, numbers) = arrays.zip(numbers).find(is_it)?;
        let declared = &kernel.buffers[buffer];
        let BufferLayout::Strided { strides } = &declared.layout else { return None };
        let [products @ .., row, column] = &strides[..] else { return None };
        let stride = |expr| u64::try_from(kernel.eval(expr, scalars).ok()?).ok();
        let product = products.first().and_then(stride).filter(|stride| *stride > 0);
        let strides = [stride(row)?, stride(column)?];
        let is_sound = strides.iter().all(|stride| *stride > 0) && declared.elem == Elem::F32;
        is_sound.then(|| Self { buffer, numbers: numbers.clone(), strides, product })
    }

    /// Returns the matrix without numbers for its elements.
    pub(crate) fn placed(looked: &Observation, name: &str) -> Option<Self> {
        let kernel = &looked.kernel;
        let none = vec![0..0; kernel.params.len()];
        Self::new(kernel, name, &looked.arguments.scalars(kernel), &none)
    }

    /// True for an element of the first GEMM of a batch.
    fn is_of_first(&self, at: u64) -> bool {
        self.product.is_none_or(|stride| at < stride)
    }

    /// Row and column of an element in the matrix of its GEMM.
    pub(crate) fn place(&self, at: u64) -> Position {
        let at = self.product.map_or(at, |stride| at % stride);
        match self.strides {
            [row, 1] => (at / row, at % row),
            [1, column] => (at % column, at / column),
            [row, column] => (at / row, at % row / column),
        }
    }

    /// Position of the element with a number, if it belongs to the first GEMM of a batch.
    pub(crate) fn named(&self, number: u64) -> Option<Position> {
        let at = self.numbers.contains(&number).then(|| number - self.numbers.start)?;
        self.is_of_first(at).then(|| self.place(at))
    }
}

/// Movements of the elements of a matrix.
#[derive(Default)]
pub(super) struct MatrixMoves {
    /// Threads that copied or stored each element.
    pub(super) owned: BTreeMap<Position, BTreeSet<u32>>,
    /// Elements copied in one round of the loop, or elements read in the round if none is copied.
    pub(super) steady: BTreeSet<Position>,
    /// Buffer and index in shared memory to which each element was copied.
    pub(super) placement: BTreeMap<Position, BTreeSet<(usize, u64)>>,
    /// Threads that read each element, with the number of reads.
    pub(super) readers: BTreeMap<Position, BTreeMap<u32, u64>>,
}

/// Returns the movements of A, B and C. `steady` is the variable of a loop and the value of the
/// variable in one round.
pub(super) fn moves(
    kernel: &Kernel,
    trace: &Trace,
    matrices: &[Option<GlobalMatrix>; 3],
    steady: Option<(usize, i64)>,
) -> [MatrixMoves; 3] {
    let mut moved: [MatrixMoves; 3] = Default::default();
    // Matrix and position of the element in each word of shared memory.
    let mut held: HashMap<(usize, u64), (usize, Position)> = HashMap::new();
    let mut direct: Vec<(usize, Position, u32, bool)> = Vec::new();
    for access in trace.accesses() {
        let (event, pattern, words) = (access.event, access.pattern, access.words);
        let is_steady =
            steady.is_some_and(|steady| trace.rounds[event.rounds as usize].contains(&steady));
        let of_array = matrices.iter().position(|matrix| {
            matrix.as_ref().is_some_and(|matrix| matrix.buffer == pattern.buffer)
        });
        let elements = elements(&access);
        match (kernel.buffers[pattern.buffer].space, pattern.kind) {
            (Space::Shared, Kind::Store | Kind::CopyWrite) if elements.len() == words.len() => {
                for ((thread, at), word) in elements.into_iter().zip(words) {
                    let named = matrices.iter().enumerate().find_map(|(number, matrix)| {
                        Some((number, matrix.as_ref()?.named(u64::from(*word))?))
                    });
                    held.remove(&(pattern.buffer, at));
                    if let Some((matrix, place)) = named {
                        held.insert((pattern.buffer, at), (matrix, place));
                        moved[matrix].owned.entry(place).or_default().insert(thread);
                        if is_steady {
                            moved[matrix].steady.insert(place);
                        }
                        if is_steady || steady.is_none() {
                            let placement = moved[matrix].placement.entry(place).or_default();
                            placement.insert((pattern.buffer, at));
                        }
                    }
                }
            }
            (Space::Shared, Kind::Load) => {
                for (thread, at) in elements {
                    if let Some((matrix, place)) = held.get(&(pattern.buffer, at)) {
                        moved[*matrix].is_read(*place, thread);
                    }
                }
            }
            (Space::Global, kind @ (Kind::Load | Kind::Store)) => {
                let Some((number, matrix)) =
                    of_array.and_then(|number| Some((number, matrices[number].as_ref()?)))
                else {
                    continue;
                };
                for (thread, at) in elements.into_iter().filter(|(_, at)| matrix.is_of_first(*at)) {
                    let place = matrix.place(at);
                    if kind == Kind::Store {
                        moved[number].owned.entry(place).or_default().insert(thread);
                    } else {
                        direct.push((number, place, thread, is_steady));
                    }
                }
            }
            _ => {}
        }
    }
    // Loads from global memory count as reads only if the matrix is not copied to shared memory.
    for (matrix, place, thread, is_steady) in direct {
        if matrix < 2 && moved[matrix].owned.is_empty() {
            moved[matrix].is_read(place, thread);
            if is_steady {
                moved[matrix].steady.insert(place);
            }
        }
    }
    moved
}

impl MatrixMoves {
    fn is_read(&mut self, place: Position, thread: u32) {
        *self.readers.entry(place).or_default().entry(thread).or_default() += 1;
    }
}

/// Returns the 4-byte elements of an access, in the order of lanes, each with its thread.
pub(crate) fn elements(access: &AccessEvent<'_>) -> Vec<(u32, u64)> {
    elements_of(access, 4)
}

/// Returns the elements of `size` bytes of an access, in the order of lanes, each with its thread.
pub(crate) fn elements_of(access: &AccessEvent<'_>, size: u32) -> Vec<(u32, u64)> {
    let (pattern, first, warp) = (access.pattern, access.first, access.event.warp);
    let count = i64::from(pattern.bytes / size);
    let mut elements = Vec::with_capacity(pattern.lanes.len() * count as usize);
    for (lane, at) in pattern.lanes.iter().enumerate() {
        let Some(at) = at else { continue };
        let (thread, at) = (warp * 32 + lane as u32, i64::from(first) + i64::from(*at));
        elements.extend((at..at + count).map(|at| (thread, at.max(0) as u64)));
    }
    elements
}

/// Returns the bits of the elements that each active lane writes. Elements have `size` bytes and
/// are packed in the lane's words from the lowest byte up.
pub(crate) fn written(bytes_of_lane: u32, words: &[u32], size: u32) -> Vec<Vec<u64>> {
    let words_of_lane = bytes_of_lane.div_ceil(4).max(1) as usize;
    let bytes =
        |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let element =
        |bytes: &[u8]| bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
    let of_lane = |words: &[u32]| {
        bytes(words)[..bytes_of_lane as usize].chunks(size.max(1) as usize).map(element).collect()
    };
    words.chunks_exact(words_of_lane).map(of_lane).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Elements of all sizes are decoded, alone and in vectors.
    #[test]
    fn words_are_taken_apart() {
        assert_eq!(written(4, &[7, 9], 4), [[7], [9]]);
        assert_eq!(written(8, &[1, 2, 3, 4], 8), [[2 << 32 | 1], [4 << 32 | 3]]);
        assert_eq!(written(2, &[0x1234, 0xffff_0005], 2), [[0x1234], [5]]);
        assert_eq!(written(8, &[0x0002_0001, 0x0004_0003], 2), [[1, 2, 3, 4]]);
        assert_eq!(written(4, &[0x0403_0201], 1), [[1, 2, 3, 4]]);
        assert_eq!(written(16, &[1, 2, 3, 4], 8), [[2 << 32 | 1, 4 << 32 | 3]]);
        assert!(written(4, &[], 4).is_empty());
    }
}
