//! Shapes of the measured GEMMs.

use gemm_dsl::spec::GemmLayout;
use gemm_dsl::tables::SgemmShape;
use gemm_oracle::product::Size;
use std::fmt;

/// Extents of M and of N in the grid.
pub const SIDES: [usize; 7] = [1, 4, 16, 64, 256, 1024, 4096];
/// Extents of K in the grid.
pub const DEPTHS: [usize; 4] = [64, 512, 4096, 32_768];

/// Smallest min(M, N) for which the grid has all layouts.
const ALL_LAYOUTS: usize = 64;

/// Largest extent that is drawn at random.
pub const MOST: usize = 8192;

/// GEMM of packed matrices, with its layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GemmShape {
    pub size: Size,
    /// Layout of A and B.
    pub layout: GemmLayout,
}

impl GemmShape {
    /// Returns the shape in the form that kernel tables require.
    pub fn of_table(&self) -> SgemmShape {
        SgemmShape::from(self.size.extents()).layout(self.layout)
    }

    /// Returns true if M or N is at most 64.
    pub fn is_thin(&self) -> bool {
        self.size.m.min(self.size.n) <= 64
    }

    /// Returns true if the shape is in the grid.
    pub fn is_of_grid(&self) -> bool {
        let Size { m, n, k } = self.size;
        SIDES.contains(&m)
            && SIDES.contains(&n)
            && DEPTHS.contains(&k)
            && layouts(m, n).contains(&self.layout)
    }
}

/// Writes extents and layout: `64x16x512 nt`.
impl fmt::Display for GemmShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Size { m, n, k } = self.size;
        write!(f, "{m}x{n}x{k} {}", self.layout)
    }
}

/// Layouts in the grid for these sides.
fn layouts(m: usize, n: usize) -> &'static [GemmLayout] {
    if m.min(n) >= ALL_LAYOUTS { GemmLayout::ALL } else { &[GemmLayout::Nn] }
}

/// Returns all GEMMs with these extents in the given layouts. No layouts mean the layouts of the
/// grid.
pub fn products(sides: [&[usize]; 2], depths: &[usize], given: &[GemmLayout]) -> Vec<GemmShape> {
    let mut shapes = Vec::new();
    for &k in depths {
        for &m in sides[0] {
            for &n in sides[1] {
                let of_grid = layouts(m, n);
                let layouts = GemmLayout::ALL.iter().filter(|layout| match given {
                    [] => of_grid.contains(layout),
                    given => given.contains(layout),
                });
                let size = Size { m, n, k };
                shapes.extend(layouts.map(|&layout| GemmShape { size, layout }));
            }
        }
    }
    shapes
}

/// Returns all shapes of the grid.
pub fn grid() -> Vec<GemmShape> {
    products([&SIDES, &SIDES], &DEPTHS, &[])
}

/// Draws `count` shapes. Extents are log-uniform from 1 to 8192. Layouts are from the given ones,
/// or from all if none is given.
pub fn random(seed: u64, count: usize, layouts: &[GemmLayout]) -> Vec<GemmShape> {
    let mut random = fastrand::Rng::with_seed(seed);
    let layouts = if layouts.is_empty() { GemmLayout::ALL } else { layouts };
    let draw = |_| {
        let mut extent = || ((MOST as f64).powf(random.f64()).round() as usize).clamp(1, MOST);
        let size = Size { m: extent(), n: extent(), k: extent() };
        GemmShape { size, layout: layouts[random.usize(..layouts.len())] }
    };
    (0..count).map(draw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_has_all_layouts_of_what_is_not_thin() {
        let grid = grid();
        assert_eq!(grid.len(), 7 * 7 * 4 + 3 * 4 * 4 * 4);
        assert!(grid.iter().all(GemmShape::is_of_grid));
        let nn = grid.iter().filter(|shape| shape.layout == GemmLayout::Nn);
        assert_eq!(nn.count(), 196);
        let size = Size::new(16, 4096, 64);
        assert!(!GemmShape { size, layout: GemmLayout::Nt }.is_of_grid());
        assert!(!GemmShape { size: Size::new(5, 4, 64), layout: GemmLayout::Nn }.is_of_grid());
    }

    #[test]
    fn drawn_extents_are_spread_over_their_magnitudes() {
        let shapes = random(7, 4000, &[]);
        assert_eq!(shapes, random(7, 4000, &[]));
        assert_ne!(shapes, random(8, 4000, &[]));
        let extents = |shape: &GemmShape| [shape.size.m, shape.size.n, shape.size.k];
        let all: Vec<usize> = shapes.iter().flat_map(extents).collect();
        assert!(all.iter().all(|extent| (1..=MOST).contains(extent)));
        // Half of the extents are below the square root of the largest.
        let below = all.iter().filter(|extent| **extent <= 90).count() as f64 / all.len() as f64;
        assert!((below - 0.5).abs() < 0.03, "{below}");
        for layout in GemmLayout::ALL {
            let of = shapes.iter().filter(|shape| shape.layout == *layout).count();
            assert!((800..1200).contains(&of), "{layout}: {of}");
        }
        let some = random(7, 50, &[GemmLayout::Tn]);
        assert!(some.iter().all(|shape| shape.layout == GemmLayout::Tn));
    }
}
