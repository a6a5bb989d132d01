//! Effect of `raster`: the order in which blocks compute the tiles of C, and the reuse of A and B
//! in the first wave.

use crate::observation::{SampleShape, Spec};
use crate::ownership::GlobalMatrix;
use crate::ownership::moves::elements;
use gemm_bench::cli::Failure;
use gemm_oracle::product::Size;
use gemm_perf::{DEVICES, DeviceModel, H200};
use gemm_runtime::Error;
use gemm_runtime::sim::watch::{Kind, Trace};
use serde::Serialize;
use std::collections::BTreeSet;

/// Tiles of C along each axis.
const TILES: usize = 24;
/// Number of SMs: an H100 or H200, and an A100.
const MULTIPROCESSORS: [usize; 2] = [H200.sms as usize, A100.sms as usize];
const A100: DeviceModel = DEVICES[1];
/// Size of a drawn square in pixels, and step between blocks whose numbers are drawn.
const SIDE: usize = 20;
const NUMBERED: usize = 12;

/// Order in which blocks compute the tiles of C.
#[derive(Clone, Debug, Serialize)]
pub struct BlockOrder {
    /// Rows and columns of C.
    pub size: [usize; 2],
    /// Rows and columns of a tile.
    pub tile: [u32; 2],
    /// Tile row and column of the first tile of each block.
    pub tiles: Vec<[u64; 2]>,
    /// Operand traffic of the first wave, for each number of SMs.
    pub waves: Vec<Wave>,
}

/// First wave: one block on each SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Wave {
    pub blocks: usize,
    /// Number of distinct tile rows and columns, which is the number of strips of A and B read.
    pub strips: [usize; 2],
    /// Bytes of these strips for one step of K.
    pub bytes: u64,
    /// Bytes for the same number of blocks in row-major order of tiles.
    pub row_by_row: u64,
}

/// Reasons for a missing order: a reduction, a kernel that is not launched, or blocks that store no
/// tile.
const NONE: &str = "The kernel is not a GEMM.";
const UNMET: &str =
    "The order is recorded with a small K, for which the kernel of this page is not launched.";
const UNSTORED: &str =
    "Some block passes partial sums to other blocks instead of storing its tile of C.";

/// Reason for a batch given as lists of matrix pointers, whose elements cannot be located.
pub(super) const LIST: &str = "The matrices of a pointer batch can be anywhere in memory, so \
                               an address does not identify a matrix and its element.";

/// Returns the order of a GEMM's blocks from a launch with small K, or the reason for a missing
/// order.
pub(super) fn block_order(spec: &Spec) -> Result<Result<BlockOrder, String>, Failure> {
    let none = |why: &str| Ok(Err(why.to_owned()));
    let Some((rows, columns)) = spec.block_tile() else { return none(NONE) };
    let (m, n) = (TILES * rows as usize, TILES * columns as usize);
    let size = Size { m, n, k: spec.min_k() };
    let (looked, others) = match spec.look_at_preferred(SampleShape::Size(size)) {
        Ok(Some(seen)) => seen,
        // The kernel rejects this shape. Split-K kernels may do so.
        Ok(None) | Err(Failure::Runtime(Error::Unmet(_))) => return none(UNMET),
        Err(failure) => return Err(failure),
    };
    let Some(c) = GlobalMatrix::placed(&looked, "C") else { return none(LIST) };
    let tile = [u64::from(rows), u64::from(columns)];
    let traces = std::iter::once(&looked.trace).chain(&others);
    let tiles: Option<Vec<[u64; 2]>> = traces.map(|trace| first(&c, trace, tile)).collect();
    let most = MULTIPROCESSORS[0];
    let of_number = spec.bytes_of_number();
    let Some(tiles) = tiles else { return none(UNSTORED) };
    if tiles.len() < most {
        let few = format!("{} blocks loop over all tiles, fewer than {most}.", tiles.len());
        return none(&few);
    }
    let wave = |blocks: usize| {
        let row_by_row: Vec<[u64; 2]> =
            (0..blocks).map(|at| [at / TILES, at % TILES].map(|at| at as u64)).collect();
        let strips = strips(&tiles[..blocks]);
        let bytes =
            |[of_a, of_b]: [usize; 2]| of_number * (of_a as u64 * tile[0] + of_b as u64 * tile[1]);
        Wave { blocks, strips, bytes: bytes(strips), row_by_row: bytes(self::strips(&row_by_row)) }
    };
    let waves = MULTIPROCESSORS.map(wave).to_vec();
    Ok(Ok(BlockOrder { size: [m, n], tile: [rows, columns], tiles, waves }))
}

/// First tile that a block stores to.
fn first(c: &GlobalMatrix, trace: &Trace, tile: [u64; 2]) -> Option<[u64; 2]> {
    let mut stores = trace
        .accesses()
        .filter(|access| access.pattern.buffer == c.buffer && access.pattern.kind == Kind::Store);
    let (_, element) = elements(&stores.next()?).into_iter().next()?;
    let (row, column) = c.place(element);
    Some([row / tile[0], column / tile[1]])
}

/// Number of distinct rows and columns of the tiles.
fn strips(tiles: &[[u64; 2]]) -> [usize; 2] {
    [0, 1].map(|axis| tiles.iter().map(|tile| tile[axis]).collect::<BTreeSet<_>>().len())
}

impl BlockOrder {
    /// Width of the picture in pixels.
    pub fn pixels(&self) -> usize {
        TILES * SIDE
    }

    /// SVG squares of the blocks in the first wave of the device with fewer SMs, and of the further
    /// blocks in the first wave of the other device.
    pub fn squares(&self) -> [String; 2] {
        let [more, fewer] = MULTIPROCESSORS;
        let square = |tile: &[u64; 2]| {
            let [y, x] = tile.map(|at| at as usize * SIDE);
            format!("M{x} {y}h{SIDE}v{SIDE}h-{SIDE}z")
        };
        [&self.tiles[..fewer], &self.tiles[fewer..more]]
            .map(|tiles| tiles.iter().map(square).collect())
    }

    /// SVG points of the path through the tiles of the first wave.
    pub fn way(&self) -> String {
        let point = |tile: &[u64; 2]| {
            let [y, x] = tile.map(|at| at as usize * SIDE + SIDE / 2);
            format!("{x},{y}")
        };
        let points = self.tiles[..MULTIPROCESSORS[0]].iter().map(point);
        points.collect::<Vec<_>>().join(" ")
    }

    /// Drawn block numbers with their x and y.
    pub fn numbers(&self) -> Vec<(usize, usize, usize)> {
        let some = self.tiles.iter().enumerate().step_by(NUMBERED);
        let place = |at: u64| at as usize * SIDE + SIDE / 2;
        some.map(|(block, [row, column])| (place(*column), place(*row), block)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiprocessors_are_those_of_the_devices() {
        assert_eq!((A100.name, MULTIPROCESSORS), ("a100", [132, 108]));
    }
    use gemm_bench::family::Family;

    fn order(line: &str) -> BlockOrder {
        let spec = Spec::parse(Family::Sgemm, line).expect("a spec");
        block_order(&spec).expect("a launch").expect("an order")
    }

    #[test]
    fn tiles_are_taken_row_by_row_unless_raster_says_otherwise() {
        let plain = order("tile: 32x32x8, thread: 4x4");
        let tiles: Vec<[u64; 2]> = (0..576).map(|at| [at / 24, at % 24]).collect();
        assert_eq!(plain.tiles, tiles);
        // 132 blocks fill five and a half rows.
        let [wave, _] = plain.waves[..] else { panic!("two waves") };
        assert_eq!((wave.strips, wave.bytes), ([6, 24], 4 * 32 * 30));
        assert_eq!(wave.bytes, wave.row_by_row);
    }

    /// If K is 0, the fallback kernel is the main one. The order is nevertheless that of the
    /// preferred kernel. The bytes are those of the split operands.
    #[test]
    fn the_order_is_that_of_the_kernel_that_multiplies() {
        let plain = order("tile: 64x32x64, arith: f16, mma: wgmma");
        let tiles: Vec<[u64; 2]> = (0..576).map(|at| [at / 24, at % 24]).collect();
        assert_eq!(plain.tiles, tiles);
        let [wave, _] = plain.waves[..] else { panic!("two waves") };
        assert_eq!((wave.strips, wave.bytes), ([6, 24], 2 * (6 * 64 + 24 * 32)));
        let aligned = order("tile: 64x32x64, arith: f16, mma: wgmma, bounds: aligned");
        assert_eq!(aligned.tiles, plain.tiles);
        let grouped = order("tile: 64x32x64, arith: bf16x6, mma: wgmma, raster: 16");
        let [wave, _] = grouped.waves[..] else { panic!("two waves") };
        assert_eq!((wave.strips, wave.bytes), ([16, 9], 6 * (16 * 64 + 9 * 32)));
    }

    /// In groups of eight rows, 132 blocks fill 16 columns of a group and half of the next column.
    #[test]
    fn raster_makes_the_first_blocks_share_strips() {
        let grouped = order("tile: 32x32x8, thread: 4x4, raster: 8");
        let tiles: Vec<[u64; 2]> = (0..192).map(|at| [at % 8, at / 8]).collect();
        assert_eq!(grouped.tiles[..192], tiles);
        let [wave, _] = grouped.waves[..] else { panic!("two waves") };
        assert_eq!(wave.strips, [8, 17]);
        assert!(wave.bytes < wave.row_by_row);
    }
}
