//! Tests of single sums. Test vectors from GPUs are checked elsewhere.

use super::*;
use gemm_dsl::target::fp8::{e4m3, e5m2};

/// Bits of a number that the format can represent.
fn word(format: Format, value: f32) -> u32 {
    match format {
        Format::Bf16 => value.to_bits() >> 16,
        Format::F16 => u32::from(half::f16::from_f32(value).to_bits()),
        Format::Tf32 => value.to_bits(),
        Format::E4m3 => e4m3::from_f32(value).to_bits().into(),
        Format::E5m2 => e5m2::from_f32(value).to_bits().into(),
        Format::I8 | Format::U8 => value as i32 as u32,
    }
}

fn dot(rules: AccumulationRules, format: Format, terms: &[(f32, f32)], c: f32) -> f32 {
    let decoded = |value| MmaOperand::decode(format, word(format, value));
    let a: Vec<MmaOperand> = terms.iter().map(|(a, _)| decoded(*a)).collect();
    let b: Vec<MmaOperand> = terms.iter().map(|(_, b)| decoded(*b)).collect();
    f32::from_bits(rules.dot(format, &a, &b, c.to_bits()))
}

/// Smallest subnormal number of a format.
fn least(format: Format) -> f32 {
    match format {
        Format::Bf16 => f32::from_bits(1 << 16),
        Format::Tf32 => f32::from_bits(1 << 13),
        Format::F16 => 2_f32.powi(-24),
        other => unreachable!("{other:?}"),
    }
}

#[test]
fn exact_sums_are_unchanged() {
    for format in Format::FROM_F32 {
        for rules in [AccumulationRules::SM_80, AccumulationRules::SM_90] {
            assert_eq!(dot(rules, format, &[(3.0, 5.0), (-2.0, 4.0)], 0.5), 7.5);
            assert_eq!(dot(rules, format, &[(1.5, 1.5); 40], 1.0), 91.0);
            let tiny = least(format);
            assert_eq!(dot(rules, format, &[(tiny, 1.0)], 0.0), tiny, "{format:?}");
            assert_eq!(dot(rules, format, &[(tiny, -3.0)], 0.0), -3.0 * tiny, "{format:?}");
            assert_eq!(dot(rules, format, &[], -1e-40), -1e-40);
        }
    }
}

#[test]
fn sums_are_cut_towards_zero() {
    for format in Format::FROM_F32 {
        // Adds 2^24 and 1.5: more than half a unit in the last place of the sum.
        for sign in [1.0_f32, -1.0] {
            let large = sign * 16_777_216.0;
            assert_eq!(
                dot(AccumulationRules::SM_90, format, &[(sign, 1.0), (sign, 0.5)], large),
                large
            );
            let below = dot(AccumulationRules::SM_90, format, &[(-sign, 1.0)], large);
            assert_eq!(below, large - sign);
        }
    }
}

/// One group sums its terms exactly in any order; a chain of two truncates between them.
#[test]
fn groups_are_as_long_as_they_are() {
    for (rules, terms) in
        [(AccumulationRules::SM_80, [8, 8, 4]), (AccumulationRules::SM_90, [16, 16, 8])]
    {
        for (format, terms) in Format::FROM_F32.into_iter().zip(terms) {
            assert_eq!(rules.terms(format), terms);
            // Adds 2^24 and 1: the 1 is truncated at the end of a group unless another term has
            // cancelled 2^24 before.
            let mut products = vec![(0.0, 0.0); terms];
            (products[0], products[terms - 1]) = ((1.0, 1.0), (-4096.0, 4096.0));
            assert_eq!(dot(rules, format, &products, 16_777_216.0), 1.0, "{format:?}");
            products.insert(1, (0.0, 0.0));
            assert_eq!(dot(rules, format, &products, 16_777_216.0), 0.0, "{format:?}");
        }
    }
}

#[test]
fn non_finite_operands_give_the_expected_bits() {
    let (inf, nan) = (f32::INFINITY, f32::from_bits(0xffc1_2000));
    for format in Format::FROM_F32 {
        let of = |terms: &[(f32, f32)], c: f32| {
            dot(AccumulationRules::SM_90, format, terms, c).to_bits()
        };
        let none = CANONICAL_NAN;
        assert_eq!(of(&[(nan, 1.0)], 1.0), none);
        assert_eq!(of(&[(1.0, 1.0)], nan), none);
        assert_eq!(of(&[(0.0, inf)], 1.0), none);
        assert_eq!(of(&[(inf, -0.0)], 1.0), none);
        assert_eq!(of(&[(inf, 1.0), (-1.0, inf)], 1.0), none);
        assert_eq!(of(&[(inf, 1.0)], -inf), none);
        assert_eq!(of(&[(inf, -2.0), (3.0, 1.0)], 1.0), (-inf).to_bits());
        assert_eq!(of(&[(-inf, -2.0)], inf), inf.to_bits());
        // Sums near the largest number are truncated, so they do not become infinite.
        assert_eq!(of(&[(1.0, 1.0)], f32::MAX), f32::MAX.to_bits());
        assert_eq!(of(&[(-32768.0, 32768.0); 8], -f32::MAX), (-f32::MAX).to_bits());
    }
    let of = |terms: &[(f32, f32)], c: f32| dot(AccumulationRules::SM_90, Format::Bf16, terms, c);
    let large = 2_f32.powi(127);
    assert_eq!(of(&[(large, 1.0), (large, 1.0)], 0.0), inf);
    assert_eq!(of(&[(large, -1.5), (large, -1.5)], 0.0), -inf);
    // A product out of range may be cancelled within the group.
    assert_eq!(of(&[(large, 4.0), (-large, 4.0)], -large), -large);
}

#[test]
fn a_sum_without_a_bit_is_zero_above() {
    for format in Format::FROM_F32 {
        let of = |terms: &[(f32, f32)], c: f32| {
            dot(AccumulationRules::SM_90, format, terms, c).to_bits()
        };
        assert_eq!(of(&[(-0.0, 1.0)], -0.0), 0);
        assert_eq!(of(&[(1.5, 1.5), (-1.5, 1.5)], -0.0), 0);
        assert_eq!(of(&[], -0.0), (-0.0_f32).to_bits(), "no group, and nothing is added");
    }
    // Half of the smallest number has a bit on the grid, but none in binary32.
    let half = [(-(2_f32.powi(-100)), 2_f32.powi(-50))];
    assert_eq!(dot(AccumulationRules::SM_90, Format::Bf16, &half, 0.0).to_bits(), 0);
    // Products of subnormal numbers vanish, and so does their sign.
    let tiny = least(Format::Bf16);
    assert_eq!(dot(AccumulationRules::SM_90, Format::Bf16, &[(-tiny, tiny)], 0.0).to_bits(), 0);
}

/// Zeros do not take part in the largest exponent.
#[test]
fn a_zero_moves_nothing() {
    let large = 2_f32.powi(127);
    let of = |terms: &[(f32, f32)]| dot(AccumulationRules::SM_90, Format::Bf16, terms, 0.0);
    let tiny = 2_f32.powi(-120);
    assert_eq!(of(&[(tiny, 1.0), (0.0, large), (large, -0.0)]), tiny);
}

#[test]
fn low_bits_of_a_tf32_do_not_count() {
    let [low, none] = [0x3f80_1fff, 0x7f80_1000].map(|word| MmaOperand::decode(Format::Tf32, word));
    assert_eq!(low, MmaOperand::decode(Format::Tf32, 0x3f80_0000));
    // A NaN whose payload lies only in the low bits is decoded as infinity.
    assert_eq!(none, MmaOperand::INFINITY);
    assert_eq!(MmaOperand::decode(Format::Tf32, 0x7fc0_0000), MmaOperand::NAN);
}

#[test]
fn architectures_have_their_rules() {
    assert_eq!([70, 75, 79].map(AccumulationRules::for_arch), [None; 3]);
    assert_eq!(
        [80, 86, 87, 89].map(AccumulationRules::for_arch),
        [Some(AccumulationRules::SM_80); 4]
    );
    assert_eq!(
        [90, 100, 120].map(AccumulationRules::for_arch),
        [Some(AccumulationRules::SM_90); 3]
    );
}

/// Sum of products of 8-bit floats, given by their bits.
fn fp8(formats: [Format; 2], terms: &[(u32, u32)], c: f32) -> f32 {
    let decoded = |nth: usize, word| MmaOperand::decode(formats[nth], word);
    let a: Vec<MmaOperand> = terms.iter().map(|(a, _)| decoded(0, *a)).collect();
    let b: Vec<MmaOperand> = terms.iter().map(|(_, b)| decoded(1, *b)).collect();
    f32::from_bits(AccumulationRules::FP8.dot_of(formats, &a, &b, c.to_bits()))
}

/// On an H200, `wgmma` keeps 13 bits below the leading one of the largest term, and of the sum.
#[test]
fn sums_of_8_bit_floats_keep_13_bits() {
    const ONE: [u32; 2] = [0x38, 0x3c];
    let (e4m3, e5m2) = (Format::E4m3, Format::E5m2);
    for formats in [[e4m3; 2], [e5m2; 2], [e4m3, e5m2], [e5m2, e4m3]] {
        let one = formats.map(|format| ONE[usize::from(format == e5m2)]);
        let one = (one[0], one[1]);
        assert_eq!(fp8(formats, &[one; 32], 0.0), 32.0);
        // The last kept bit of 2^13 is 1, that of 2^14 is 2.
        assert_eq!(fp8(formats, &[one], 8192.0), 8193.0);
        assert_eq!(fp8(formats, &[one], 16384.0), 16384.0);
        // Two ones are lost one by one. The sum is truncated after an exact addition.
        assert_eq!(fp8(formats, &[one, one], 16384.0), 16384.0);
        assert_eq!(fp8(formats, &[one, one], 16383.0), 16384.0);
        assert_eq!(fp8(formats, &[one], 16383.0), 16384.0);
        // The addend alone loses its low bits, towards zero.
        assert_eq!(fp8(formats, &[(0, 0)], 1.0 + f32::EPSILON), 1.0);
        assert_eq!(fp8(formats, &[(0, 0)], -1.999_999), -(2.0 - 2f32.powi(-13)));
        assert_eq!(fp8(formats, &[(0, 0)], f32::from_bits(1)).to_bits(), 0);
        // NaN; the greatest bits of e5m2 are NaN, and 0x7c is infinity there, a number in e4m3.
        assert_eq!(fp8(formats, &[(0x7f, one.1)], 0.0).to_bits(), CANONICAL_NAN);
        let large = fp8(formats, &[(0x7c, one.1)], 0.0);
        assert_eq!(large, if formats[0] == e5m2 { f32::INFINITY } else { 384.0 });
    }
    // Subnormal numbers: 2^-9 squared, and 2^-16 squared.
    assert_eq!(fp8([e4m3; 2], &[(1, 1)], 0.0), 2f32.powi(-18));
    assert_eq!(fp8([e5m2; 2], &[(1, 0x81)], 0.0), -2f32.powi(-32));
}

/// Sums of integers are exact modulo 2^32.
#[test]
fn sums_of_bytes_wrap() {
    let of = |formats: [Format; 2], a: u32, b: u32, c: u32| {
        let (a, b) = (MmaOperand::decode(formats[0], a), MmaOperand::decode(formats[1], b));
        AccumulationRules::SM_90.dot_of(formats, &[a; 32], &[b; 32], c)
    };
    let (i8, u8) = (Format::I8, Format::U8);
    assert_eq!(of([i8; 2], 0x80, 0x80, 0), 32 * 128 * 128);
    assert_eq!(of([i8; 2], 0x80, 0x7f, 5) as i32, 5 - 32 * 128 * 127);
    assert_eq!(of([u8; 2], 0xff, 0xff, 0), 32 * 255 * 255);
    assert_eq!(of([u8, i8], 0xff, 0xff, 0) as i32, -32 * 255);
    assert_eq!(of([i8; 2], 1, 1, 0x7fff_ffff) as i32, i32::MIN + 31);
}
