use super::{e4m3, e5m2};

/// Type of 8 bits with its tables of values, as the OCP specification of FP8 gives them.
macro_rules! check {
    ($ty:ident, $bias:literal, $fraction:literal, $max:literal, $infinity:expr) => {
        // Values by magnitude, from the definition: 2^(e - bias) * (1 + f / 2^fraction).
        let finite: Vec<f64> = (0..=$max)
            .map(|bits: i32| {
                let (e, f) = (bits >> $fraction, bits & ((1 << $fraction) - 1));
                let of_one = f64::from(f) / f64::from(1 << $fraction);
                match e {
                    0 => of_one * 2f64.powi(1 - $bias),
                    _ => (1.0 + of_one) * 2f64.powi(e - $bias),
                }
            })
            .collect();
        for bits in 0..=255u8 {
            let (value, size) = ($ty::from_bits(bits), usize::from(bits & 0x7f));
            let found = value.to_f64();
            if Some(bits & 0x7f) == $infinity {
                assert!(found.is_infinite(), "{bits:#x}");
            } else if let Some(size) = finite.get(size) {
                let expected = if bits < 0x80 { *size } else { -size };
                assert_eq!(found.to_bits(), expected.to_bits(), "{bits:#x}");
                assert_eq!($ty::from_f32(value.to_f32()).to_bits(), bits, "{bits:#x}");
                assert_eq!($ty::from_f64(found).to_bits(), bits, "{bits:#x}");
            } else {
                assert!(found.is_nan() && value.is_nan(), "{bits:#x}");
            }
        }
        // Between neighbours, the nearer one is the result, and the even one in the middle.
        for (low, pair) in finite.windows(2).enumerate() {
            let middle = (pair[0] + pair[1]) / 2.0;
            let (below, above) = (middle - middle * 1e-7, middle + middle * 1e-7);
            let even = low + low % 2;
            for sign in [1.0, -1.0] {
                let bits = |x: f64| usize::from($ty::from_f32((sign * x) as f32).to_bits() & 0x7f);
                assert_eq!([bits(below), bits(middle), bits(above)], [low, even, low + 1]);
                // Rounded once from `f64`, where `f32` cannot tell the sides apart.
                let bits = |x: f64| usize::from($ty::from_f64(sign * x).to_bits() & 0x7f);
                let (below, above) = (middle * (1.0 - 1e-15), middle * (1.0 + 1e-15));
                assert_eq!([bits(below), bits(middle), bits(above)], [low, even, low + 1]);
            }
        }
        for large in [f32::MAX, f32::INFINITY, finite[$max] as f32 * 1.01] {
            assert_eq!($ty::from_f32(large).to_bits(), $max);
            assert_eq!($ty::from_f32(-large).to_bits(), 0x80 | $max);
        }
        assert!($ty::from_f32(f32::NAN).is_nan() && $ty::from_f64(f64::NAN).is_nan());
        assert!($ty::NAN != $ty::NAN && $ty::MAX > $ty::default());
    };
}

#[test]
fn conversions_of_e4m3() {
    check!(e4m3, 7, 3, 0x7e, None);
    let one = [(0x38, 1.0), (0x7e, 448.0), (0x01, 0.001_953_125), (0x08, 0.015_625)];
    for (bits, value) in one {
        assert_eq!(e4m3::from_bits(bits).to_f32(), value);
    }
}

#[test]
fn conversions_of_e5m2() {
    check!(e5m2, 15, 2, 0x7b, Some(0x7c));
    for (bits, value) in [(0x3c, 1.0), (0x7b, 57344.0), (0x01, 2f32.powi(-16))] {
        assert_eq!(e5m2::from_bits(bits).to_f32(), value);
    }
}
