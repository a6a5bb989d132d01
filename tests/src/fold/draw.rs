//! Random elements that are chosen for the reduction, so that results rarely overflow. They include
//! zeros of both signs, subnormals and equal values. Some arrays also have NaN and infinities.

use gemm_dsl::ir::Elem;
use gemm_oracle::fold::{Kind, Number};
use gemm_oracle::random::Random;

/// Special values of some arrays.
const SPECIAL: [f64; 6] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 65504.0];

pub fn elements(kind: Kind, elem: Elem, len: usize, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    // Style of most elements, and number of special elements, which is usually zero.
    let (style, some) = (random.bits(), random.bits());
    let mut bits: Vec<u64> = (0..len).map(|_| element(kind, elem, style, &mut random)).collect();
    if some % 4 == 0 && elem.is_float() && len > 0 {
        for _ in 0..=some / 4 % 3 {
            let (at, which) = (random.bits() as usize % len, random.bits() as usize);
            bits[at] = Number::Float(SPECIAL[which % SPECIAL.len()]).bits(elem);
        }
    }
    bits
}

fn element(kind: Kind, elem: Elem, style: u64, random: &mut Random) -> u64 {
    let (pick, unit) = (random.bits(), f64::from(random.unit()));
    if !elem.is_float() {
        return integer(kind, elem, style, pick);
    }
    let value = match kind {
        Kind::Sum | Kind::Compensated => match style % 4 {
            // Zeros of one sign, or of both signs.
            0 if (style / 4).is_multiple_of(8) => -0.0,
            0 => [0.0, -0.0, unit, unit * 1e-3][pick as usize % 4],
            // Cancellation: a few large values, and small ones that they hide.
            1 => [1024.0, -1024.0, unit, unit / 512.0][pick as usize % 4],
            2 => unit,
            _ => return small(elem, pick),
        },
        // Numbers close to 1, or powers of 2 that cancel.
        Kind::Prod if style.is_multiple_of(2) => 1.0 + unit / 256.0,
        Kind::Prod => {
            [1.0, -1.0, 1.0, -1.0, 2.0, 0.5][if pick % 64 == 0 { 4 } else { pick as usize % 4 }]
        }
        Kind::Max | Kind::Min | Kind::Argmax | Kind::Argmin => match style % 4 {
            0 => [0.0, -0.0][pick as usize % 2],
            // Few distinct values, so that many are equal.
            1 => (unit * 4.0).round(),
            2 => return small(elem, pick),
            _ => unit * 100.0,
        },
        Kind::Any if !style.is_multiple_of(3) => [0.0, -0.0][pick as usize % 2],
        Kind::Any | Kind::All => [1.0, -1.0, unit, 0.5][pick as usize % 4],
        Kind::MeanVar => match style % 5 {
            0 => unit,
            1 => 100.0 + unit,
            // Squares overflow, and the variance may be in range; or sums and differences overflow.
            2 => unit * huge(elem, style / 5),
            3 if pick % 64 == 0 => unit.signum() * huge(elem, style / 5),
            3 => unit,
            _ => 0.5,
        },
        Kind::Logsumexp => match style % 4 {
            0 => unit * 30.0,
            1 => unit * 2000.0,
            2 if pick % 3 == 0 => f64::NEG_INFINITY,
            2 => unit,
            _ => 3.0,
        },
    };
    Number::Float(value).bits(elem)
}

/// Power of two around the root of the greatest number of the type, or around that number.
fn huge(elem: Elem, style: u64) -> f64 {
    let (root, last) = match elem {
        Elem::F64 => (512, 1023),
        Elem::F32 | Elem::Bf16 => (64, 127),
        _ => (7, 15),
    };
    2f64.powi(if style.is_multiple_of(3) { last } else { root + 2 - (style / 3 % 8) as i32 })
}

/// Subnormal number of the type, or one of its smallest normal numbers, with either sign.
fn small(elem: Elem, pick: u64) -> u64 {
    let mantissa = match elem {
        Elem::F64 => 52,
        Elem::F32 => 23,
        Elem::F16 => 10,
        _ => 7,
    };
    let sign = (pick >> 63) << (8 * elem.size() - 1);
    (pick % (2 << mantissa)) | sign
}

fn integer(kind: Kind, elem: Elem, style: u64, pick: u64) -> u64 {
    let mask = u64::MAX >> (64 - 8 * elem.size());
    let value = match (kind, style % 3) {
        (Kind::Any, 1 | 2) => 0,
        (Kind::All | Kind::Any, _) => 1 + pick % 5,
        // Any values, so that sums and products wrap.
        (_, 0) => pick,
        // Few distinct values, so that many are equal.
        (_, 1) => pick % 3,
        // Minimum and maximum of the type.
        (Kind::Prod, _) => pick | 1,
        _ => [0, mask >> 1, (mask >> 1) + 1, mask][pick as usize % 4],
    };
    value & mask
}
