//! Input arrays of random elements. The elements repeat periodically, so that few must be drawn.

use crate::gpu::{Gpu, failed};
use cudarc::driver::CudaSlice;
use fastrand::Rng;
use gemm_dsl::spec::newer_word;
use gemm_oracle::fold::Number;
use gemm_runtime::half::{bf16, f16};
use gemm_runtime::spec::DataType;
use gemm_runtime::{Element, Error};
use rayon::prelude::*;

/// Number of elements that one random generator draws.
const CHUNK: usize = 1 << 16;

/// Limit on the bytes of random elements.
const MOST_BYTES: usize = 1 << 26;

/// Number of elements by which the period is shortened, so that an array whose row length is a
/// power of two has no equal rows.
const FEWER: usize = 3;

/// One period of an array's elements. Floats are uniform in −1..1, integers in their whole range.
#[derive(Clone, Debug)]
pub struct Tile {
    element: DataType,
    bytes: Vec<u8>,
}

/// Element type of the input arrays.
pub trait TileElement: Element {
    /// Reads an element from its little-endian bytes.
    fn of_bytes(bytes: &[u8]) -> Self;

    /// Returns the bits of the element, zero-extended.
    fn bits(self) -> u64;
}

macro_rules! tiled {
    ($($element:ty),*) => {
        $(
            impl TileElement for $element {
                fn of_bytes(bytes: &[u8]) -> Self {
                    let mut own = [0; size_of::<Self>()];
                    own.copy_from_slice(&bytes[..size_of::<Self>()]);
                    Self::from_le_bytes(own)
                }

                fn bits(self) -> u64 {
                    let mut all = [0; 8];
                    all[..size_of::<Self>()].copy_from_slice(&self.to_le_bytes());
                    u64::from_le_bytes(all)
                }
            }
        )*
    };
}
tiled!(f32, f64, f16, bf16, i8, u8, i32, u32, i64, u64);

impl Tile {
    /// Draws the tile of an array of `len` elements.
    pub fn new(element: DataType, seed: u64, len: usize) -> Self {
        let period = len.min(MOST_BYTES / element.elem().size() as usize - FEWER);
        let uniform = |random: &mut Rng| 2.0 * random.f32() - 1.0;
        let bytes = match element {
            DataType::F32 => drawn(seed, period, |random| uniform(random).to_le_bytes()),
            DataType::F64 => drawn(seed, period, |random| (2.0 * random.f64() - 1.0).to_le_bytes()),
            DataType::F16 => drawn(seed, period, |r| f16::from_f32(uniform(r)).to_le_bytes()),
            DataType::Bf16 => drawn(seed, period, |r| bf16::from_f32(uniform(r)).to_le_bytes()),
            DataType::I8 | DataType::U8 => drawn(seed, period, |r| [r.u8(..)]),
            DataType::I32 | DataType::U32 => drawn(seed, period, |r| r.u32(..).to_le_bytes()),
            DataType::I64 | DataType::U64 => drawn(seed, period, |r| r.u64(..).to_le_bytes()),
            element => newer_word(element),
        };
        Self { element, bytes }
    }

    /// Returns the number of elements after which the array repeats.
    pub fn period(&self) -> usize {
        self.bytes.len() / self.width()
    }

    pub fn element(&self) -> DataType {
        self.element
    }

    /// Returns the element at an index of the array.
    pub fn number(&self, at: usize) -> Number {
        let start = at % self.period() * self.width();
        let mut bits = [0; 8];
        bits[..self.width()].copy_from_slice(&self.bytes[start..start + self.width()]);
        Number::of_bits(self.element.elem(), u64::from_le_bytes(bits))
    }

    /// Returns an array of `len` elements on the host.
    pub fn elements<T: TileElement>(&self, len: usize) -> Vec<T> {
        let width = self.width();
        let chunks = self.bytes.chunks_exact(width).cycle().take(len);
        chunks.map(T::of_bytes).collect()
    }

    /// Returns an array on a GPU. The period is uploaded once and replicated on the GPU.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`], [`Error::Driver`], and [`Error::Internal`] if the array on
    /// the GPU differs.
    pub fn on_gpu(&self, gpu: Gpu<'_>, len: usize) -> Result<CudaSlice<u8>, Error> {
        let bytes = len * self.width();
        let allocated = gpu.stream.alloc_zeros::<u8>(bytes);
        let mut array = allocated.map_err(|error| {
            let full = error.0 == cudarc::driver::sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY;
            let device = gpu.device.name().to_owned();
            let other = failed(format!("allocating {bytes} bytes"));
            if full { Error::OutOfMemory { bytes: bytes as u64, device } } else { other(error) }
        })?;
        let mut filled = self.bytes.len().min(bytes);
        let copied = gpu.stream.memcpy_htod(&self.bytes[..filled], &mut array.slice_mut(..filled));
        copied.map_err(failed("copying elements to the GPU"))?;
        while filled < bytes {
            // The source starts at element 0, because the filled part is a multiple of the period.
            let more = filled.min(bytes - filled);
            let (from, mut to) = array.split_at_mut(filled);
            let copied = gpu.stream.memcpy_dtod(&from.slice(..more), &mut to.slice_mut(..more));
            copied.map_err(failed("copying elements on the GPU"))?;
            filled += more;
        }
        self.compare(gpu, &array)?;
        Ok(array)
    }

    /// Compares the elements at the ends and in the middle of the array with the expected ones.
    fn compare(&self, gpu: Gpu<'_>, array: &CudaSlice<u8>) -> Result<(), Error> {
        let window = CHUNK.min(array.len());
        for start in [0, array.len() / 2, array.len() - window] {
            let view = array.slice(start..(start + window).min(array.len()));
            let found = gpu.stream.clone_dtoh(&view);
            let found = found.map_err(failed("copying elements from the GPU"))?;
            let wanted = |k: usize| self.bytes[(start + k) % self.bytes.len()];
            if found.iter().enumerate().any(|(k, byte)| *byte != wanted(k)) {
                let what =
                    format!("the bytes starting at {start} differ from those that were copied");
                return Err(Error::Internal(what));
            }
        }
        Ok(())
    }

    fn width(&self) -> usize {
        self.element.elem().size() as usize
    }
}

/// Draws random elements. A seed gives the same elements for any number of threads.
fn drawn<const WIDTH: usize>(
    seed: u64,
    len: usize,
    draw: impl Fn(&mut Rng) -> [u8; WIDTH] + Sync,
) -> Vec<u8> {
    let mut bytes = vec![0; len * WIDTH];
    let base = Rng::with_seed(seed).u64(..);
    bytes.par_chunks_mut(CHUNK * WIDTH).enumerate().for_each(|(number, chunk)| {
        let mut random = Rng::with_seed(base.wrapping_add(number as u64));
        for to in chunk.chunks_exact_mut(WIDTH) {
            to.copy_from_slice(&draw(&mut random));
        }
    });
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_come_again_after_a_period() {
        let tile = Tile::new(DataType::F32, 5, 1000);
        assert_eq!(tile.period(), 1000);
        let array: Vec<f32> = tile.elements(2500);
        assert_eq!(array[..1000], array[1000..2000]);
        for at in [0, 999, 1000, 2499] {
            assert_eq!(tile.number(at), Number::Float(array[at].into()));
        }
        assert!(array.iter().all(|x| (-1.0..1.0).contains(x)) && array[0] != array[1]);
        let other: Vec<f32> = Tile::new(DataType::F32, 6, 1000).elements(2500);
        assert_ne!(array, other);
    }

    #[test]
    fn the_longest_tile_is_odd() {
        let tile = Tile::new(DataType::I8, 5, usize::MAX);
        assert_eq!(tile.period(), MOST_BYTES - FEWER);
        let bytes: Vec<i8> = tile.elements(1000);
        assert!(bytes.iter().any(|x| *x < 0) && bytes.iter().any(|x| *x > 0));
        assert_eq!(tile.number(7), Number::Int(bytes[7].into()));
    }
}
