//! GEMMs on matrices of f64, f16 and bf16.

use gemm_runtime::half::{bf16, f16};
use gemm_runtime::{Device, Element, Error, Gemm, SgemmSpec, gemm_kernel};

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

/// The simulator, and the first GPU if there is one.
fn devices() -> impl Iterator<Item = Device> {
    [Device::simulator()].into_iter().chain(Device::cuda(0).ok())
}

/// Elements of a matrix in the order of its layout.
fn stored<T>(of: &[f64], [rows, cols]: [usize; 2], by_col: bool, to: impl Fn(f64) -> T) -> Vec<T> {
    let at = |line: usize, i: usize| if by_col { i * cols + line } else { line * cols + i };
    let (lines, line) = if by_col { (cols, rows) } else { (rows, cols) };
    (0..lines).flat_map(|n| (0..line).map(move |i| at(n, i))).map(|at| to(of[at])).collect()
}

/// Multiplies small numbers, whose sums are exact, by all specs with these types. `allowed` is the
/// relative error from rounding a sum to the type of C.
fn check<T: Element, R: Element>(
    types: &str,
    of: impl Fn(f64) -> T,
    value: impl Fn(R) -> f64,
    allowed: f64,
) -> Result<(), Error> {
    let number = |i: usize| ((i * 7919 % 17) as f64 - 8.0) / 4.0;
    let tensor_cores = ["bf16", "f16"].contains(&T::ELEM.name());
    for spec in SPECS.iter().filter(|spec| tensor_cores || !spec.contains("wgmma")) {
        let line = format!("{types}, {}", spec.replace("{a}", T::ELEM.name()));
        let spec: SgemmSpec = line.parse()?;
        let by_col = [spec.layout.transposes_a(), spec.layout.transposes_b()];
        let gemm = Gemm::<T, T, R>::new(spec)?;
        for device in devices() {
            for size @ (m, n, k) in [(37, 41, 29), (32, 64, 32), (5, 7, 0), (130, 70, 72)] {
                let a: Vec<f64> = (0..m * k).map(number).collect();
                let b: Vec<f64> = (0..k * n).map(|i| number(i + 3)).collect();
                let of_a = stored(&a, [m, k], by_col[0], &of);
                let of_b = stored(&b, [k, n], by_col[1], &of);
                let c = gemm.run(&device, &of_a, &of_b, size)?;
                for (at, c) in c.iter().enumerate() {
                    let (row, col) = (at / n, at % n);
                    let exact: f64 = (0..k).map(|i| a[row * k + i] * b[i * n + col]).sum();
                    let error = (value(*c) - exact).abs();
                    assert!(error <= allowed * exact.abs(), "{line} at {size:?}: {row}, {col}");
                }
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
    Ok(())
}

/// TMA copies need rows of whole 16-byte units. Other matrices have a kernel without TMA.
#[test]
fn tensor_maps_need_aligned_rows() -> Result<(), Error> {
    let line = "a: bf16, b: bf16, layout: nt, tile: 64x32x64, arith: bf16, mma: wgmma, copy: tma";
    let gemm: Gemm<bf16, bf16, f32> = Gemm::new(line.parse().expect("a spec"))?;
    for (device, (k, has_maps)) in
        devices().flat_map(|device| [(72, true), (71, false)].map(|case| (device.clone(), case)))
    {
        let ones = device.upload_of(&vec![bf16::ONE; 64 * k])?;
        let mut c = device.alloc(64 * 32)?;
        let report = gemm.launch(&device, &ones, &ones, &mut c, (64, 32, k))?;
        let names: Vec<String> = report.steps().map(|step| step.kernel().to_owned()).collect();
        assert_eq!(names.iter().any(|name| name.ends_with("_f32")), !has_maps, "{names:?}");
        assert_eq!(device.download(&c)?, vec![k as f32; 64 * 32]);
    }
    Ok(())
}
