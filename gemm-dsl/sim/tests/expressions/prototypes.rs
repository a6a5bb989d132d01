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
const POWER: [f32; 7] =
    [0.000_153_288_73, 0.001_339_097, 0.009_618_5, 0.055_503_596, 0.240_226_48, 0.693_147_2, 1.0];

pub fn exp2(x: f32) -> f32 {
    let c = min(max(x, -151.0), 129.0);
    let t = c + MAGIC;
    let f = c - (t - MAGIC);
    canonical(scale(horner(f, &POWER), t.to_bits()))
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

const LOG: [f32; 9] = [
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

pub fn log(x: f32) -> f32 {
    let (e, f) = split(x);
    logarithm(x, fma(e, LN2, fma(f * f, horner(f, &LOG), f)))
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

pub fn log1p(x: f32) -> f32 {
    let u = 1.0 + x;
    let e = u.to_bits().wrapping_sub(0x3f2a_aaab) & 0xff80_0000;
    // 2^-n - 1 and x 2^-n
    let inverse = f32::from_bits(0x4080_0000u32.wrapping_sub(e));
    let one = fma(0.25, inverse, -1.0);
    let m = f32::from_bits(x.to_bits().wrapping_sub(e));
    let f = one + m;
    let f_lo = m - (f - one);
    let n = (e as i32) as f32 * 1.192_092_9e-7;
    let part = fma(f * f, horner(f, &LOG), f_lo * (1.0 - f)) + f;
    let inside = fma(n, LN2, part);
    canonical(if x > -1.0 {
        if x < f32::INFINITY && x != 0.0 { inside } else { x }
    } else if x == -1.0 {
        f32::NEG_INFINITY
    } else {
        f32::NAN
    })
}

pub fn expm1(x: f32) -> f32 {
    let c = min(max(x, -30.0), 89.0);
    let t = fma(c, LOG2E, MAGIC);
    let p = [0.000_199_119, 0.001_395_248, 0.008_333_288, 0.041_666_258, 0.166_666_67, 0.5];
    let near = c.abs() < 0.41;
    let n = if near { 0.0 } else { t - MAGIC };
    let r = fma(n, -LN2_LO, fma(n, -LN2, c));
    let p = fma(r * r, horner(r, &p), r);
    let half =
        if near { 0.5 } else { f32::from_bits((t.to_bits() << 23).wrapping_add(0x3f00_0000)) };
    let y = 2.0 * fma(p, half, half - 0.5);
    canonical(if x.abs() < 2f32.powi(-25) { x } else { y })
}

pub fn softplus(x: f32) -> f32 {
    canonical(max(x, 0.0) + log1p(exp(-x.abs())))
}

pub fn mish(x: f32) -> f32 {
    let z = min(max(x, -160.0), 20.0);
    let t = fma(z, LOG2E, MAGIC);
    let n = t - MAGIC;
    let r = fma(n, -LN2_LO, fma(n, -LN2, z));
    let em1 = fma(r * r, expm1_poly(r), r);
    let s = scale(1.0, t.to_bits());
    let e = fma(s, em1, s);
    let e_lo = fma(s, em1, s - e);
    let g = e + 2.0;
    let g_lo = (e - (g - 2.0)) + e_lo;
    let k = e * g;
    let k_lo = fma(e, g, -k) + fma(e, g_lo, e_lo * g);
    let d = k + 2.0;
    let d_lo = (k - (d - 2.0)) + k_lo;
    let inv = 1.0 / d;
    let y = fma(z, em1, z);
    let y_lo = fma(z, em1, z - y);
    let top = y * g;
    let top_lo = fma(y, g, -top) + fma(y, g_lo, y_lo * g);
    let q = top * inv;
    let over = fma(q, d_lo, fma(q, d, -top)) - top_lo;
    let w = fma(-over, inv, q);
    let w = scale(w, t.to_bits());
    canonical(if x > 20.0 || x == 0.0 { x } else { w })
}

pub fn erfc(x: f32) -> f32 {
    const C: [f32; 9] = [
        6.943_781e-5,
        4.690_979_4e-5,
        -0.000_592_482_6,
        -0.000_832_151_1,
        0.003_062_559,
        0.006_475_881_7,
        -0.021_505_68,
        -0.036_441_762,
        0.279_471_78,
    ];
    const T1: f32 = -0.687_160_7;
    const T0: f32 = 1.021_582_7;
    const T0_LO: f32 = -3.540_783_7e-8;
    let a = min(x.abs(), 11.0);
    let h = a * a;
    let h_lo = fma(a, a, -h);
    let z = -h;
    let t = fma(z, LOG2E, MAGIC);
    let n = t - MAGIC;
    let r = fma(n, -LN2, z) + fma(n, -LN2_LO, -h_lo);
    let em1 = fma(r * r, expm1_poly(r), r);
    let d = a + 2.0;
    let b = d - a;
    let d_lo = (a - (d - b)) + (2.0 - b);
    let inv = 1.0 / d;
    let inv_lo = fma(-inv, d_lo, fma(-inv, d, 1.0)) * inv;
    // u = 1 - 4/(a+2)
    let u = fma(-4.0, inv_lo, fma(-4.0, inv, 1.0));
    let k = horner(u, &C);
    let q = fma(k, u, T1);
    let q_lo = fma(k, u, T1 - q);
    let s = fma(q, u, T0);
    let s_lo = fma(q, u, T0 - s) + fma(q_lo, u, T0_LO);
    let g = inv * s;
    let g_lo = fma(inv, s, -g) + fma(inv, s_lo, inv_lo * s);
    let w = g + fma(g, em1, fma(g_lo, em1, g_lo));
    let w = scale(w, t.to_bits());
    canonical(if x < 0.0 { 2.0 - w } else { w })
}

const P1: f32 = std::f32::consts::FRAC_PI_2;
const P2: f32 = -4.371_139e-8;
const P3: f32 = -1.715_124_5e-15;

fn sine_near(r: f32, r_lo: f32, quadrant: u32) -> f32 {
    let s = r * r;
    let c = fma(s, -0.5, 1.0);
    let ps = horner(s, &[-0.000_195_184_05, 0.008_332_19, -0.166_666_55]);
    let sine = r + fma(r * s, ps, r_lo * c);
    let pc = horner(s, &[2.443_067e-5, -0.001_388_730_1, 0.041_666_646]);
    let c_lo = fma(s, -0.5, 1.0 - c);
    let cosine = c + fma(s * s, pc, fma(-r, r_lo, c_lo));
    let v = if quadrant & 1 != 0 { cosine } else { sine };
    if quadrant & 2 != 0 { -v } else { v }
}

fn sine_far(x: f32, quadrant: u32) -> f32 {
    const W: [u32; 8] = [
        0,
        0xa2f9_836e,
        0x4e44_1529,
        0xfc27_57d1,
        0xf534_ddc0,
        0xdb62_9599,
        0x3c43_9041,
        0xfe51_63ab,
    ];
    let b = x.to_bits() & 0x7fff_ffff;
    let q = (b >> 23).wrapping_sub(120);
    let (j, sh) = ((q >> 5).min(4) as usize, q & 31);
    let hi = (W[j] as u64) << 32 | W[j + 1] as u64;
    let lo = (W[j + 2] as u64) << 32 | W[j + 3] as u64;
    let high = hi << sh | (lo >> 1) >> (63 - sh);
    let next = (lo << sh) >> 32;
    let m = ((b & 0x7f_ffff) | 0x80_0000) as u64;
    let turn = m.wrapping_mul(high).wrapping_add(m.wrapping_mul(next) >> 32);
    let up = (turn >> 61) & 1;
    let n = (turn >> 62) + up;
    let part = turn & ((1 << 62) - 1);
    let mag = if up != 0 { (1u64 << 62) - part } else { part };
    let m1 = (mag >> 38) as f32 * 274_877_906_944.0;
    let m2 = ((mag >> 14) & 0xff_ffff) as f32 * 16384.0;
    let m3 = (mag & 0x3fff) as f32;
    let s = m1 + m2;
    let s_lo = (m2 - (s - m1)) + m3;
    const C: f32 = 3.406_121_7e-19;
    const C_LO: f32 = -9.478_396e-27;
    let r = s * C;
    let r_lo = fma(s, C, -r) + fma(s, C_LO, s_lo * C);
    let neg = (up != 0) != (x < 0.0);
    // sin(-y + q) with quadrant: x<0 negates the whole turn
    let (r, r_lo) = if neg { (-r, -r_lo) } else { (r, r_lo) };
    let n = n as u32;
    let n = if x < 0.0 { n.wrapping_neg() } else { n };
    sine_near(r, r_lo, n.wrapping_add(quadrant))
}

fn sine(x: f32, quadrant: u32) -> f32 {
    let a = x.abs();
    let t = fma(x, std::f32::consts::FRAC_2_PI, MAGIC);
    let n = t - MAGIC;
    let r0 = fma(n, -P1, x);
    let p = n * P2;
    let p_lo = fma(n, P2, -p);
    let r = r0 - p;
    let r_lo = fma(n, -P3, ((r0 - r) - p) - p_lo);
    if a < 1e5 {
        sine_near(r, r_lo, t.to_bits().wrapping_add(quadrant))
    } else if a < f32::INFINITY {
        sine_far(x, quadrant)
    } else {
        f32::NAN
    }
}

pub fn sin(x: f32) -> f32 {
    canonical(if x.abs() < 2f32.powi(-12) { x } else { sine(x, 0) })
}

pub fn cos(x: f32) -> f32 {
    canonical(sine(x, 1))
}

pub fn pow(x: f32, y: f32) -> f32 {
    let a = x.abs();
    let (n, f) = split(a);
    // atanh(q), q = f / (2 + f)
    let d = f + 2.0;
    let d_lo = f - (d - 2.0);
    let inv = 1.0 / d;
    let q = f * inv;
    let q_lo = fma(-q, d_lo, fma(-q, d, f)) * inv;
    let s = q * q;
    let s_lo = fma(q, q, -s) + 2.0 * q * q_lo;
    let p = horner(s, &[0.099_620_86, 0.110_776_64, 0.142_862_35, 0.199_999_97]);
    const T: f32 = 1.0 / 3.0;
    const T_LO: f32 = -9.934_108e-9;
    let b = s * T;
    let b_lo = fma(s, T, -b) + fma(s * s, p, fma(s, T_LO, s_lo * T));
    let g = q * b;
    let g_lo = fma(q, b, -g) + fma(q, b_lo, q_lo * b);
    let l = q + g;
    let l_lo = ((q - l) + g) + (g_lo + q_lo);
    const K: f32 = 2.0 * LOG2E;
    const K_LO: f32 = 3.851_926e-8;
    let m = l * K;
    let m_lo = fma(l, K, -m) + fma(l, K_LO, l_lo * K);
    let h = n + m;
    let h_lo = ((n - h) + m) + m_lo;
    let h = if a > 0.0 {
        if a < f32::INFINITY { h } else { a }
    } else if a == 0.0 {
        f32::NEG_INFINITY
    } else {
        f32::NAN
    };
    let e = y * h;
    let e_lo = fma(y, h, -e) + y * h_lo;
    let c = min(max(e, -160.0), 160.0);
    let c_lo = if c == e { e_lo } else { 0.0 };
    let t = c + MAGIC;
    let r = (c - (t - MAGIC)) + c_lo;
    let p = horner(r, &POWER);
    let w = scale(p, t.to_bits());
    let one = x == 1.0 || y == 0.0 || (x == -1.0 && y.abs() == f32::INFINITY);
    let integer = y.trunc() == y;
    let half = y * 0.5;
    let odd = integer && half.trunc() != half;
    let w = if x < 0.0 && a < f32::INFINITY && !integer { f32::NAN } else { w };
    let negative = odd && (x < 0.0 || (x == 0.0 && x.to_bits() != 0));
    let w = if negative { -w } else { w };
    canonical(if one { 1.0 } else { w })
}
