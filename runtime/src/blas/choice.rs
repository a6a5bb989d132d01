//! Which kernel a product in the terms of BLAS takes: what the choice depends on, and the specs.

use gemm_dsl::spec::{Batch, Layout, SgemmSpec};
use gemm_dsl::stages;
use std::sync::OnceLock;

/// All that the kernel of a product depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub(super) layout: Layout,
    pub(super) size: Size,
    pub(super) pitched: bool,
    pub(super) batch: Option<Batch>,
    pub(super) scaled: bool,
}

/// How large C is: of a batch its larger extent, where each block computes a product, or several; else whether
/// it has large tiles for all multiprocessors of a GPU.
#[derive(Clone, Copy, Debug)]
pub(super) enum Size {
    /// At most 8.
    Upto8,
    /// At most 16.
    Upto16,
    /// At most 32.
    Upto32,
    /// At most 64.
    Upto64,
    /// At most 128.
    Upto128,
    /// Few large tiles.
    Medium,
    /// Many.
    Large,
}

impl Size {
    /// Of so many products, if it is a batch.
    pub(super) fn of(m: usize, n: usize, products: Option<usize>) -> Self {
        // With fewer tiles of 128 x 256 the smaller ones are faster: on an H200, of 132 multiprocessors, squares
        // of 1792 have 98 and are, those of 1920 have 120 and are not.
        const MANY: usize = 100;
        let tiles = m.div_ceil(128).saturating_mul(n.div_ceil(256));
        match (m.max(n), products) {
            (0..=8, Some(_)) => Self::Upto8,
            (9..=16, Some(_)) => Self::Upto16,
            (17..=32, Some(_)) => Self::Upto32,
            (33..=64, Some(_)) => Self::Upto64,
            (65..=128, Some(_)) => Self::Upto128,
            _ if tiles.saturating_mul(products.unwrap_or(1)) < MANY => Self::Medium,
            _ => Self::Large,
        }
    }
}

impl Choice {
    /// The line of its spec, made once.
    pub(super) fn line(&self) -> &'static str {
        const KERNELS: usize = 4 * 7 * 2 * 3 * 2;
        static LINES: [OnceLock<String>; KERNELS] = [const { OnceLock::new() }; KERNELS];
        let Self { layout, size, pitched, batch, scaled } = *self;
        let number = [
            (size as usize, 7),
            (pitched.into(), 2),
            (batch.map_or(0, |batch| 1 + batch as usize), 3),
            (scaled.into(), 2),
        ]
        .into_iter()
        .fold(layout as usize, |number, (digit, base)| number * base + digit);
        LINES[number].get_or_init(|| self.spec().to_string())
    }

    /// The spec.
    pub(super) fn spec(&self) -> SgemmSpec {
        let Self { layout, size, pitched, batch, scaled } = *self;
        let spec = match size {
            Size::Upto8 => {
                sound("tile: 8x8x8, thread: 1x4, float4, pad_a: 4, products: 8, batch: strided")
            }
            Size::Upto16 => {
                sound("tile: 16x16x16, thread: 4x4, float4, pad_a: 1, products: 4, batch: strided")
            }
            Size::Upto32 => sound(
                "tile: 32x32x32, thread: 4x4, fragment: split, float4, pad_a: 4, order: row_serpentine",
            ),
            Size::Upto64 => sound(
                "tile: 64x64x16, thread: 8x8, fragment: split, float4, pad_a: 4, stages: 3, \
                 warp: 32x64, order: row_serpentine",
            ),
            Size::Upto128 => sound(
                "tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, stages: 3, \
                 warp: 32x64, order: column_serpentine, blocks_per_sm: 2",
            ),
            Size::Medium => medium(layout),
            Size::Large => large(layout),
        };
        // Under `tn` nothing lies along K, and there is nothing to transpose.
        let transpose = spec.transpose && layout != Layout::Tn;
        let spec = spec.layout(layout).transpose(transpose).pitched(pitched).scaled(scaled);
        match batch {
            Some(batch) => spec.batch(batch),
            None => spec,
        }
    }
}

/// The kernels of matrices around 1024 x 1024, by layout, found by `tune`.
fn medium(layout: Layout) -> SgemmSpec {
    sound(match layout {
        Layout::Nn => {
            "tile: 64x128x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 4, stages: 5, spread: 8, \
             order: row_serpentine"
        }
        Layout::Nt => {
            "layout: nt, tile: 128x64x16, thread: 8x8, fragment: split, float4, transpose, pad_a: 12, \
             pad_b: 12, stages: 3, spread: 12, warp: 64x32, order: column_serpentine, blocks_per_sm: 3"
        }
        Layout::Tn => {
            "layout: tn, tile: 64x64x16, thread: 8x8, fragment: split, float4, stages: 3, spread: 10, \
             warp: 32x64, order: row_serpentine"
        }
        Layout::Tt => {
            "layout: tt, tile: 128x64x16, thread: 8x8, fragment: split, float4, transpose, pad_b: 4, \
             stages: 3, spread: 12, warp: 64x32, order: row_serpentine"
        }
    })
}

/// The kernels of large matrices, by layout: stages of the ladder, and one found by `tune`.
fn large(layout: Layout) -> SgemmSpec {
    match layout {
        Layout::Nn => stage("fastest"),
        Layout::Nt => stage("layout_nt"),
        Layout::Tn => stage("layout_tn"),
        Layout::Tt => sound(
            "layout: tt, tile: 256x128x16, thread: 8x16, fragment: split, float4, transpose, pad_b: 4, \
             stages: 3, spread: 10, warp: 32x128, raster: 8, order: column_serpentine",
        ),
    }
}

fn stage(name: &str) -> SgemmSpec {
    let found = stages::sgemm().into_iter().find(|stage| stage.name == name);
    found
        .unwrap_or_else(|| unreachable!("the ladder has a stage {name}: a test makes all choices"))
        .spec
}

/// The spec of a line of this file.
fn sound(line: &str) -> SgemmSpec {
    let spec = line.parse();
    spec.unwrap_or_else(|error| unreachable!("`{line}`: {error}: a test makes all choices"))
}

#[cfg(test)]
mod tests {
    use super::{Choice, Size};
    use gemm_dsl::spec::{Batch, Layout};

    /// Every choice has a sound spec, each another one, and its line is that of its spec.
    #[test]
    fn every_choice_has_a_kernel_of_its_own() {
        let mut lines = Vec::new();
        for layout in [Layout::Nn, Layout::Nt, Layout::Tn, Layout::Tt] {
            for batch in [None, Some(Batch::Strided), Some(Batch::Pointers)] {
                // Whatever their extents, single products are medium or large.
                let extents: &[usize] = match batch {
                    None => &[9, 4096],
                    Some(_) => &[8, 9, 32, 64, 128, 129, 4096],
                };
                for &extent in extents {
                    let size = Size::of(extent, extent, batch.map(|_| 3));
                    for [pitched, scaled] in [[false; 2], [true, false], [false, true], [true; 2]] {
                        let choice = Choice { layout, size, pitched, batch, scaled };
                        let spec = choice.spec();
                        spec.plan().unwrap_or_else(|error| panic!("{choice:?}: {error}"));
                        assert_eq!(choice.line(), spec.to_string());
                        assert_eq!(choice.line().parse(), Ok(spec));
                        lines.push(choice.line());
                    }
                }
            }
        }
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len(), 4 * 4 * (7 + 7 + 2));
    }
}
