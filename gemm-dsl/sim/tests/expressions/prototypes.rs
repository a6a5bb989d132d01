//! Library functions in plain Rust, as they were originally written and measured. They are the
//! reference for the definitions in the IR.

use gemm_dsl::target::intrinsic::canonical;

fn fma(a: f32, b: f32, c: f32) -> f32 {
    a.mul_add(b, c)
}

pub fn max(a: f32, b: f32) -> f32 {
    if a.is_nan() || b.is_nan() {
        canonical(f32::NAN)
    } else if a == b {
        f32::from_bits(a.to_bits() & b.to_bits())
    } else if a > b {
        a
    } else {
        b
    }
}

pub fn min(a: f32, b: f32) -> f32 {
    canonical(-max(-a, -b))
}

const LOG2E: f32 = std::f32::consts::LOG2_E;
const LN2: f32 = std::f32::consts::LN_2;
const LN2_LO: f32 = -1.904_654_2e-9;
const MAGIC: f32 = 12_582_912.0;

fn scale(p: f32, n: u32) -> f32 {
    let half = n >> 1;
    let s1 = f32::from_bits((half << 23).wrapping_add(0x3f80_0000));
    let s2 = f32::from_bits((n.wrapping_sub(half) << 23).wrapping_add(0x3f80_0000));
    p * s1 * s2
}

fn horner(x: f32, coefficients: &[f32]) -> f32 {
    coefficients[1..].iter().fold(coefficients[0], |p, c| fma(p, x, *c))
}

fn expm1_poly(r: f32) -> f32 {
    horner(r, &[0.001_382_098_3, 0.008_368_671, 0.041_668_262, 0.166_665_21, 0.499_999_94])
}

pub fn exp(x: f32) -> f32 {
    let c = min(max(x, -105.0), 90.0);
    let t = fma(c, LOG2E, MAGIC);
    let n = t - MAGIC;
    let r = fma(n, -LN2_LO, fma(n, -LN2, c));
    let q = fma(expm1_poly(r), r, 1.0);
    canonical(scale(fma(q, r, 1.0), t.to_bits()))
}

#[allow(clippy::approx_constant, reason = "a coefficient of a fit, which is near ln 2 and not it")]
pub fn exp2(x: f32) -> f32 {
    let c = min(max(x, -151.0), 129.0);
    let t = c + MAGIC;
    let f = c - (t - MAGIC);
    let p = [
        0.000_153_288_73,
        0.001_339_097,
        0.009_618_5,
        0.055_503_596,
        0.240_226_48,
        0.693_147_2,
        1.0,
    ];
    canonical(scale(horner(f, &p), t.to_bits()))
}

fn split(x: f32) -> (f32, f32) {
    let tiny = x < f32::MIN_POSITIVE;
    let v = if tiny { x * 8_388_608.0 } else { x };
    let bits = v.to_bits();
    let e = bits.wrapping_sub(0x3f2a_aaab) & 0xff80_0000;
    let m = f32::from_bits(bits.wrapping_sub(e));
    let e = (e as i32) as f32;
    (fma(e, 1.192_092_9e-7, if tiny { -23.0 } else { 0.0 }), m - 1.0)
}

fn logarithm(x: f32, positive: f32) -> f32 {
    if x > 0.0 {
        if x < f32::INFINITY { positive } else { x }
    } else if x == 0.0 {
        f32::NEG_INFINITY
    } else {
        canonical(f32::NAN)
    }
}

pub fn log(x: f32) -> f32 {
    let (e, f) = split(x);
    let p = [
        -0.127_670_17,
        0.140_027_76,
        -0.122_134_775,
        0.140_016_2,
        -0.166_783_33,
        0.200_107_14,
        -0.249_998_46,
        0.333_332_1,
        -0.5,
    ];
    logarithm(x, fma(e, LN2, fma(f * f, horner(f, &p), f)))
}

pub fn log2(x: f32) -> f32 {
    let (e, f) = split(x);
    let p = [
        -0.184_098_51,
        0.201_836_75,
        -0.176_257_54,
        0.202_042_39,
        -0.240_608_5,
        0.288_690_57,
        -0.360_672_1,
        0.480_896_62,
        -0.721_347_5,
    ];
    let tail = fma(f * f, horner(f, &p), f * 1.925_963e-8);
    let s = fma(f, LOG2E, e);
    let s_lo = fma(f, LOG2E, e - s);
    logarithm(x, s + (s_lo + tail))
}

pub fn rsqrt(x: f32) -> f32 {
    canonical(1.0 / x.sqrt())
}

pub fn tanh(x: f32) -> f32 {
    let a = x.abs();
    let s = x * x;
    let p = [-0.005_680_683_5, 0.020_619_597, -0.053_734_56, 0.133_313_92, -0.333_332_8];
    let small = x * fma(s, horner(s, &p), 1.0);
    let large = 1.0 - 2.0 / (exp(2.0 * a) + 1.0);
    let large = if x < 0.0 { -large } else { large };
    canonical(if a < 0.63 { small } else { large })
}

pub fn erf(x: f32) -> f32 {
    let a = x.abs();
    let s = x * x;
    let p = [
        7.969_663_4e-5,
        -0.000_804_383_95,
        0.005_191_948,
        -0.026_855_588,
        0.112_836_24,
        -0.376_126_3,
        0.128_379_17,
    ];
    let small = fma(x, horner(s, &p), x);
    let c = min(a, 4.0);
    let q = [
        1.123_003_1e-5,
        -0.000_322_801_47,
        0.003_642_481_8,
        -0.023_762_16,
        0.106_237_03,
        0.635_151_2,
        1.128_648_5,
    ];
    let large = 1.0 - exp(-(horner(c, &q) * c));
    let large = if x < 0.0 { -large } else { large };
    canonical(if a < 0.93 { small } else { large })
}

fn times_sigmoid(y: f32, v: f32, v_lo: f32) -> f32 {
    let z = -min(v.abs(), 160.0);
    let lo = if v < 0.0 { v_lo } else { -v_lo };
    let t = fma(z, LOG2E, MAGIC);
    let n = t - MAGIC;
    let r = fma(n, -LN2, z) + fma(n, -LN2_LO, lo);
    let em1 = fma(r * r, expm1_poly(r), r);
    let s = scale(1.0, t.to_bits());
    let e = fma(s, em1, s);
    let e_lo = fma(s, em1, s - e);
    let den = 1.0 + e;
    let den_lo = (e - (den - 1.0)) + e_lo;
    let inv = 1.0 / den;
    let num = if v < 0.0 { fma(y, em1, y) } else { y };
    let num_lo = if v < 0.0 { fma(y, em1, y - num) } else { 0.0 };
    let q = num * inv;
    let rem = fma(q, den_lo, fma(q, den, -num)) - num_lo;
    let w = fma(-rem, inv, q);
    if v > 30.0 {
        y
    } else if v < 0.0 {
        scale(w, t.to_bits())
    } else {
        w
    }
}

pub fn sigmoid(x: f32) -> f32 {
    canonical(times_sigmoid(1.0, x, 0.0))
}

pub fn silu(x: f32) -> f32 {
    canonical(times_sigmoid(max(x, -160.0), x, 0.0))
}

pub fn gelu_tanh(x: f32) -> f32 {
    const K: f32 = 1.595_769_2;
    const K_LO: f32 = -4.534_068e-8;
    const C: f32 = 0.071_354_814;
    const C_LO: f32 = 2.398_832_5e-9;
    let y = max(x, -20.0);
    let c = min(y, 20.0);
    let h = c * c;
    let h_lo = fma(c, c, -h);
    let p = C * h;
    let p_lo = fma(C, h, -p) + fma(C, h_lo, C_LO * h);
    let w = K + p;
    let b = w - K;
    let w_lo = (K - (w - b)) + (p - b) + (p_lo + K_LO);
    let v = c * w;
    let v_lo = fma(c, w_lo, fma(c, w, -v));
    canonical(times_sigmoid(y, v, v_lo))
}

pub fn gelu(x: f32) -> f32 {
    const S0: f32 = 0.729_083_7;
    const S0_LO: f32 = -2.645_292_9e-8;
    let a = min(x.abs(), 16.0);
    let h = a * a;
    let h_lo = fma(a, a, -h);
    let z = -0.5 * h;
    let t = fma(z, LOG2E, MAGIC);
    let n = t - MAGIC;
    let r = fma(n, -LN2, z) + fma(n, -LN2_LO, -0.5 * h_lo);
    let em1 = fma(r * r, expm1_poly(r), r);
    let d = a + 3.0;
    let b = d - a;
    let d_lo = (a - (d - b)) + (3.0 - b);
    let inv = 1.0 / d;
    let p = a * inv;
    let p_lo = fma(-p, d_lo, fma(-p, d, a)) * inv;
    let u = fma(2.0, p_lo, fma(2.0, p, -1.0));
    let s1 = [
        5.228_324e-5,
        0.000_127_747_74,
        -0.000_243_379_68,
        -0.001_028_606_6,
        0.001_024_764_8,
        0.006_967_769_5,
        -0.010_462_608,
        -0.047_262_453,
        0.230_017_7,
        -0.509_332,
    ];
    let q = horner(u, &s1);
    let s = fma(q, u, S0);
    let s_lo = fma(q, u, S0 - s) + S0_LO;
    let g = p * s;
    let g_lo = fma(p, s, -g) + fma(p, s_lo, p_lo * s);
    let w = g + fma(g, em1, fma(g_lo, em1, g_lo));
    let w = scale(w, t.to_bits());
    canonical(if x < 0.0 { -w } else { x - w })
}
