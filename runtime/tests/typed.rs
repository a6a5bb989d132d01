//! GEMMs on matrices of f64, f16 and bf16.

use gemm_runtime::half::{bf16, f16};
use gemm_runtime::{Device, Element, Error, Gemm, gemm_kernel};

const SPECS: &[&str] = &[
    "block: 8x8",
    "block: 4x4, unroll: 4, partials: 2",
    "block: 4x4, thread: 2x2, float4",
    "block: 2x2, thread: 8x8, float4, layout: nt",
    "block: 2x2, thread: 8x8, float4, layout: tn, unroll: 2",
    "block: 2x1, lanes: k, thread: 4x2, float4, layout: nt",
    "tile: 16x16x8, thread: 4x4",
    "tile: 32x32x16, thread: 8x8, float4",
    "tile: 32x32x16, thread: 8x8, float4, layout: tt",
    "tile: 32x32x16, thread: 4x4, float4, transpose, fragment: split",
    "tile: 32x32x16, thread: 8x8, float4, double_buffer, pad_a: 8, layout: nt",
    "tile: 32x32x16, thread: 8x8, float4, stages: 3, layout: tn",
    "tile: 32x32x16, thread: 8x8, float4, stages: 3, split_k: 3",
    "tile: 32x32x16, thread: 8x8, prefetch, slices: 2",
    "tile: 32x32x16, thread: 8x8, float4, stages: 2, stream_k, stage_c",
    "layout: nt, tile: 64x32x64, arith: {a}, mma: wgmma, copy: tma",
    "layout: nt, tile: 128x64x64, arith: {a}, mma: wgmma, copy: tma, stages: 3, producer, \
     persistent, cluster: 2, float4",
    "layout: nt, tile: 128x64x64, arith: {a}, mma: wgmma, copy: tma, stages: 3, split_k: 2, \
     pitched",
];

fn check<T: Element + Copy, R: Element>(
    types: &str,
    of: impl Fn(f64) -> T,
    value: impl Fn(R) -> f64,
    allowed: f64,
) -> Result<(), Error> {
    let device = Device::simulator();
    let (m, n, k) = (37, 41, 29);
    let number = |i: usize| ((i * 7919 % 17) as f64 - 8.0) / 4.0;
    for spec in SPECS {
        for size in [(m, n, k), (32, 64, 32), (5, 7, 0), (130, 70, 72)] {
            let (m, n, k) = size;
            let spec = spec.replace("{a}", T::ELEM.name());
            let line = format!("{types}, {spec}");
            let gemm: Gemm<T, T, R> = match Gemm::new(match line.parse() {
                Ok(spec) => spec,
                Err(error) => {
                    println!("{line}: {error}");
                    continue;
                }
            }) {
                Ok(gemm) => gemm,
                Err(error) => panic!("{line}: {error}"),
            };
            let a: Vec<f64> = (0..m * k).map(number).collect();
            let b: Vec<f64> = (0..k * n).map(|i| number(i + 3)).collect();
            let by_col = |t: char| line.contains(&format!("layout: {t}"));
            let ta = by_col('t');
            let tb = line.contains("layout: nt") || line.contains("layout: tt");
            let stored = |of_a: &[f64], rows: usize, cols: usize, t: bool| -> Vec<f64> {
                if !t {
                    return of_a.to_vec();
                }
                (0..cols).flat_map(|c| (0..rows).map(move |r| of_a[r * cols + c])).collect()
            };
            let (sa, sb) = (stored(&a, m, k, ta), stored(&b, k, n, tb));
            let sa: Vec<T> = sa.into_iter().map(&of).collect();
            let sb: Vec<T> = sb.into_iter().map(&of).collect();
            let c = gemm.run(&device, &sa, &sb, size).unwrap_or_else(|e| panic!("{line}: {e}"));
            for (at, c) in c.iter().enumerate() {
                let (row, col) = (at / n, at % n);
                let exact: f64 = (0..k).map(|i| a[row * k + i] * b[i * n + col]).sum();
                let found = value(*c);
                assert!((found - exact).abs() <= allowed * exact.abs(), "{line}: {found} {exact}");
            }
        }
    }
    Ok(())
}

#[test]
fn typed_gemms_are_right() -> Result<(), Error> {
    check("a: f64, b: f64, c: f64", |v| v, |v: f64| v, 0.0)?;
    check("a: f64, b: f64", |v| v, |v: f32| v.into(), 0.0)?;
    check("a: bf16, b: bf16", bf16::from_f64, |v: f32| v.into(), 0.0)?;
    check("a: bf16, b: bf16, c: bf16", bf16::from_f64, |v: bf16| v.into(), 1.0 / 256.0)?;
    check("a: f16, b: f16, c: f16", f16::from_f64, |v: f16| v.into(), 1.0 / 2048.0)?;
    check("c: bf16", |v| v as f32, |v: bf16| v.into(), 1.0 / 256.0)
}

#[test]
fn macros_build_typed_kernels() -> Result<(), Error> {
    const GEMM: Gemm<bf16, bf16, f16> =
        gemm_kernel!(a: bf16, b: bf16, c: f16, tile: 16x16x8, thread: 4x4);
    let [a, b] = [[1.0, 2.0], [3.0, 4.0]].map(|of| of.map(bf16::from_f32));
    assert_eq!(GEMM.run(&Device::simulator(), &a, &b, (1, 1, 2))?, [f16::from_f32(11.0)]);
    println!("{}", GEMM.source());
    Ok(())
}

/// TMA copies need rows of whole 16-byte units. Other matrices have a kernel without TMA.
#[test]
fn tensor_maps_need_aligned_rows() -> Result<(), Error> {
    let line = "a: bf16, b: bf16, layout: nt, tile: 64x32x64, arith: bf16, mma: wgmma, copy: tma";
    let gemm: Gemm<bf16, bf16, f32> = Gemm::new(line.parse().expect("a spec"))?;
    let device = Device::simulator();
    for (k, has_maps) in [(72, true), (71, false)] {
        let ones = device.upload_of(&vec![bf16::ONE; 64 * k])?;
        let mut c = device.alloc(64 * 32)?;
        let report = gemm.launch(&device, &ones, &ones, &mut c, (64, 32, k))?;
        let names: Vec<String> = report.steps().map(|step| step.kernel().to_owned()).collect();
        assert_eq!(names.iter().any(|name| name.ends_with("_f32")), !has_maps, "{names:?}");
        assert_eq!(device.download(&c)?, vec![k as f32; 64 * 32]);
    }
    Ok(())
}
