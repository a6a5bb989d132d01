//! Registers of each stage, as reported by the pinned compiler release. They are read from the
//! snapshots, so that the book is the same on every machine.

use crate::occupancy::Registers;
use gemm_dsl::ir::Variant;

macro_rules! pinned {
    ($ladder:literal: $($stem:literal)*) => {
        &[$((
            $stem,
            include_str!(concat!(
                "../../../../snapshots/", $ladder, "/", $stem, ".resources.snap"
            )),
        )),*]
    };
}

/// Resource reports of the stages, by the names of their snapshots.
const REDUCE: &[(&str, &str)] = pinned! { "reduce":
    "00_interleaved_divergent"
    "01_interleaved"
    "02_sequential"
    "03_items"
    "04_unroll_last_warp"
    "05_shuffle"
    "06_ticket"
    "07_grid_stride"
    "08_rows"
    "09_columns"
    "10_online"
};
const SGEMM: &[(&str, &str)] = pinned! { "sgemm":
    "01_naive_uncoalesced"
    "02_naive"
    "03_unroll"
    "04_coarsen"
    "05_shared_tile"
    "06_shared_tile_k"
    "07_thread_strided"
    "08_private_row"
    "09_register_tile_padded"
    "10_padded_prefetch"
    "11_float4"
    "12_outer_product"
    "13_block_128"
    "14_block_128_float4"
    "15_transpose"
    "16_split_fragment"
    "17_double_buffer"
    "18_guarded_scalar"
    "19_pitched"
    "20_warp_tile"
    "21_async_pipeline"
    "22_fastest"
    "23_layout_tn"
    "24_layout_nt"
    "25_scaled"
    "26_batched"
    "27_epilogue_bias_relu"
    "28_epilogue_gelu_residual"
    "29_matrix_vector"
    "30_slices"
    "31_split_k"
    "32_stream_k"
    "33_mma_sync"
    "34_ldmatrix"
    "35_mma_ring"
    "36_mma_bf16x6"
    "37_wgmma"
    "38_tma"
    "39_warp_specialised"
    "40_persistent"
    "41_wgmma_bf16x6"
    "42_wgmma_f16x3"
    "43_cluster_multicast"
    "44_mma_converted"
    "45_mma_converted_bf16x6"
};

/// Returns the registers of a variant of a stage's kernel on each architecture. The result is empty
/// for an unknown stage.
pub fn registers(ladder: &str, stem: &str, variant: Variant) -> Vec<Registers> {
    let all = if ladder == "reduce" { REDUCE } else { SGEMM };
    let report = all.iter().find(|(known, _)| *known == stem).map_or("", |(_, report)| report);
    let variant = match variant {
        Variant::Only => "-".to_owned(),
        several => several.to_string(),
    };
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let is_it = words.next() == Some(&*variant);
        let arch = words.next()?.strip_prefix("sm_")?.trim_end_matches('a').parse().ok()?;
        let mut number = || words.next()?.parse::<u64>().ok();
        let (registers, stores, loads) = (number()?, number()?, number()?);
        let registers = u32::try_from(registers).ok()?;
        is_it.then_some(Registers { arch, registers, spilled: stores + loads })
    };
    report.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gemm_dsl::stages;

    #[test]
    fn every_stage_is_pinned_and_nothing_else() {
        let stem = |index: u32, name: &str| format!("{index:02}_{name}");
        let reduce: Vec<String> = stages::reduce().iter().map(|s| stem(s.index, s.name)).collect();
        let sgemm: Vec<String> = stages::sgemm().iter().map(|s| stem(s.index, s.name)).collect();
        let known = |all: &[(&str, &str)]| -> Vec<String> {
            all.iter().map(|(stem, _)| (*stem).to_owned()).collect()
        };
        assert_eq!((known(REDUCE), known(SGEMM)), (reduce, sgemm));
    }

    #[test]
    fn registers_are_those_of_the_variant() {
        let of = |variant| registers("sgemm", "22_fastest", variant);
        let archs: Vec<u32> = of(Variant::Vector).iter().map(|of| of.arch).collect();
        assert_eq!(archs, [80, 90, 100]);
        assert!(of(Variant::Vector).iter().all(|of| of.registers > 200 && of.spilled == 0));
        assert_ne!(of(Variant::Vector), of(Variant::Scalar));
        assert_eq!(registers("sgemm", "02_naive", Variant::Only).len(), 3);
        assert_eq!(registers("sgemm", "40_persistent", Variant::Vector)[0].arch, 90);
        assert_eq!(registers("sgemm", "none", Variant::Vector), []);
    }
}
