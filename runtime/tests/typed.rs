//! Kernels of GEMMs on matrices of 16-bit elements. `tests/kernels/typed.rs` tests their results.

use gemm_runtime::half::{bf16, f16};
use gemm_runtime::{Device, Error, Gemm, gemm_kernel};

/// The simulator, and the first GPU if there is one.
fn devices() -> impl Iterator<Item = Device> {
    [Device::simulator()].into_iter().chain(Device::cuda(0).ok())
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
