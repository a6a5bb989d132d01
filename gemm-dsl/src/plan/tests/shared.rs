//! Tests that the parts in the shared-memory message add up to its total.

use super::{message, plausible};
use crate::spec::{SgemmSpec, SplitK, Tile};
use proptest::prelude::*;
use proptest::sample::select;

/// Total and parts in a message; asserts that each part is the product of its factors.
fn told(text: &str) -> Option<(u128, Vec<u128>)> {
    let start = text.split_once("the block needs ")?.1;
    let (total, rest) = start.split_once(" bytes of shared memory: ")?;
    let (parts, _) = rest.split_once(", and a block has at most ")?;
    // This comma does not separate parts.
    let parts = parts.replace("arrays, which", "arrays which");
    let parts = parts.split(", ").map(|part| {
        let Some((factors, product)) = part.split_once(" = ") else {
            return part.split(' ').next()?.parse().ok();
        };
        let factors = factors.split(['·', ' ']).filter_map(|word| word.parse::<u128>().ok());
        let product = product.split(' ').next()?.parse().ok()?;
        assert_eq!(factors.product::<u128>(), product, "{part}");
        Some(product)
    });
    Some((total.parse().ok()?, parts.collect::<Option<_>>()?))
}

/// Specs whose tiles exceed shared memory.
fn too_large() -> impl Strategy<Value = SgemmSpec> {
    let tile = (select(vec![60, 64, 70, 128]), select(vec![60, 66, 128]), 200..400u32);
    let sharing = (0..4u32, select(vec![1, 2, 3, 4]), select(vec![1, 1, 2]), 0..9u32);
    (plausible(), tile, sharing).prop_map(|(spec, (m, n, k), (split, slices, products, pad))| {
        let spec = spec.tile(Tile::new(m, n, k)).slices(slices).products(products).pad_a(pad);
        match split {
            0 => spec,
            1 => spec.split_k(SplitK::Auto),
            2 => spec.split_k(2),
            _ => spec.stream_k(true),
        }
    })
}

proptest! {
    #![proptest_config(gemm_cases::cases(2000))]

    #[test]
    fn the_parts_of_shared_memory_add_up(spec in too_large()) {
        let text = message(spec.plan());
        let Some((total, parts)) = told(&text) else {
            prop_assert!(!text.contains("bytes of shared memory: "), "{}", text);
            return Ok(());
        };
        prop_assert_eq!(parts.iter().sum::<u128>(), total, "{}", text);
    }
}
