//! The simulator's accumulation rules for tensor cores, compared with recorded results of GPUs on
//! the same operands.

mod gpu;
use gemm_dsl::target::Format;
use gemm_fixtures::tensor_core;
use gemm_fixtures::tensor_core::{Kind, Tile, Vector};
use gemm_oracle::random::Random;
use gemm_sim::tensor_core::AccumulationRules;
use libtest_mimic::Trial;

/// Published results of `sm_80` and `sm_89`.
const PUBLISHED: &str = include_str!("../data/tensor_core/published.txt");

/// Recorded results of `mma.sync` and `wgmma` for operands of all kinds.
const SM_90: &str = include_str!("../data/tensor_core/sm_90.txt");

/// Number of elements that differ from the rules.
fn differing(vectors: &[Vector], rules: AccumulationRules) -> usize {
    let of = |vector: &Vector| {
        let said = vector.tile.multiplied(rules);
        said.iter().zip(&vector.d).filter(|(said, found)| said != found).count()
    };
    vectors.iter().map(of).sum()
}

/// Vectors of one GPU and one format.
fn of(all: &[Vector], gpu: &str, format: Format) -> Vec<Vector> {
    let is_of = |vector: &&Vector| vector.gpu == gpu && vector.tile.format == format;
    all.iter().filter(is_of).cloned().collect()
}

fn sm_80_and_sm_89_sum_as_published() {
    let all = Vector::all(PUBLISHED);
    for gpu in ["A100", "Ada"] {
        for format in Format::FROM_F32 {
            let vectors = of(&all, gpu, format);
            assert_eq!(vectors.len(), 300);
            assert_eq!(differing(&vectors, AccumulationRules::SM_80), 0, "{gpu} {format:?}");
            // The vectors must distinguish the rules from similar rules. Sums of tf32 have four
            // products, so there is no longer group.
            let others = [
                AccumulationRules { kept: 23, ..AccumulationRules::SM_80 },
                AccumulationRules { kept: 25, ..AccumulationRules::SM_80 },
                AccumulationRules { group: 4, ..AccumulationRules::SM_80 },
            ];
            for rules in others {
                assert!(differing(&vectors, rules) > 0, "{gpu} {format:?} {rules:?}");
            }
        }
    }
}

fn sm_90_sums_as_it_did() {
    let all = Vector::all(SM_90);
    for format in Format::FROM_F32 {
        let vectors = of(&all, "NVIDIA_H200", format);
        assert!(vectors.iter().map(|vector| vector.d.len()).sum::<usize>() >= 5000);
        assert_eq!(differing(&vectors, AccumulationRules::SM_90), 0, "{format:?}");
        let mut others = vec![
            AccumulationRules::SM_80,
            AccumulationRules { kept: 24, ..AccumulationRules::SM_90 },
            AccumulationRules { kept: 26, ..AccumulationRules::SM_90 },
            AccumulationRules { group: 8, ..AccumulationRules::SM_90 },
        ];
        // Products of two f16 numbers are not small enough to distinguish these rules.
        if format != Format::F16 {
            others.extend(
                [-132, -134].map(|least| AccumulationRules { least, ..AccumulationRules::SM_90 }),
            );
        }
        for rules in others {
            assert!(differing(&vectors, rules) > 0, "{format:?} {rules:?}");
        }
    }
}

fn vectors_are_read_as_they_are_written() {
    for text in [PUBLISHED, SM_90] {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let again: Vec<String> = Vector::all(text).iter().map(Vector::to_string).collect();
        assert!(lines.eq(again.iter().map(String::as_str)));
    }
}

fn a_warp_multiplies_as_the_rules_say() {
    for format in Format::FROM_F32 {
        for (rolled, kind) in
            [false, true].into_iter().flat_map(|rolled| Kind::ALL.map(|kind| (rolled, kind)))
        {
            let mut random = Random::new(format as u64 * 10 + kind as u64);
            let mut tile = || kind.tile(format, tensor_core::extents(format), &mut random);
            let tiles: Vec<Tile> = (0..8).map(|_| tile()).collect();
            let kernel = tensor_core::kernel(format, tiles.len(), rolled);
            let rules = if rolled { AccumulationRules::SM_80 } else { AccumulationRules::SM_90 };
            let (found, counters) =
                tensor_core::simulate(&kernel, &tiles, rules).expect("no fault");
            let expected: Vec<u32> = tiles.iter().flat_map(|tile| tile.multiplied(rules)).collect();
            assert_eq!(found, expected, "{format:?} {kind:?}");
            let [m, n, k] = tensor_core::extents(format).map(|extent| extent as u64);
            assert_eq!((counters.mma, counters.mma_flops), (8 * 6, 8 * 2 * m * n * k));
        }
    }
}

pub fn trials() -> Vec<Trial> {
    let trials = [
        simulated![
            sm_80_and_sm_89_sum_as_published,
            sm_90_sums_as_it_did,
            vectors_are_read_as_they_are_written,
            a_warp_multiplies_as_the_rules_say,
        ],
        gpu::trials(),
    ];
    trials.into_iter().flatten().collect()
}
