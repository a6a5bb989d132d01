//! Output of the programs, and their archive.

use gemm_runtime::internal::entries;
use gemm_runtime::{Archive, Error, include_archive};
use std::collections::BTreeSet;
use std::process::Command;

/// Output of a program without a visible GPU, which runs on the simulator even if a driver is
/// installed.
fn output(program: &str) -> String {
    let output = Command::new(program).env("CUDA_VISIBLE_DEVICES", "").output().expect("a program");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const KERNELS: Archive = include_archive!("kernels");

#[test]
fn the_program_runs() {
    let told = output(env!("CARGO_BIN_EXE_gemm-example-archive"));
    assert!(told.contains("the sum of C is 196608"), "{told}");
}

#[test]
fn answers_of_the_server_do_not_depend_on_batches() {
    let told = output(env!("CARGO_BIN_EXE_gemm-example-server"));
    assert!(told.starts_with("200 requests in "), "{told}");
    assert!(told.contains("each answer has the bits of its request alone"), "{told}");
}

/// Without NVRTC, the build script embeds an empty archive.
#[test]
fn the_archive_has_all_kernels_for_both_architectures() -> Result<(), Error> {
    let entries = entries(KERNELS)?;
    let is_required = std::env::var_os("GEMM_REQUIRE_NVRTC").is_some_and(|value| value == "1");
    if entries.is_empty() && !is_required {
        return Ok(());
    }
    let of = |arch: &str| -> BTreeSet<&str> {
        entries.iter().filter(|entry| entry.arch == arch).map(|entry| &*entry.name).collect()
    };
    let kernels = of("sm_80");
    assert_eq!(kernels, of("sm_90"));
    let expected = [
        "reduce_kernel!(items: 4, shuffle)",
        "sgemm_kernel!(tile: 64x64x8, thread: 4x4, float4)",
        "row_kernel!(|x[m, n]| { let e = exp(x - max(x)); e / sum(e) })",
    ];
    for kernel in expected {
        assert!(kernels.contains(kernel), "{kernel} is not among {kernels:?}");
    }
    // Each rule of the table, for the layouts and strides that matrices may have.
    let rules = kernels.iter().filter(|kernel| kernel.contains("epilogue"));
    for tile in ["tile: 8x32x16", "tile: 32x32x16"] {
        let kernels: Vec<_> = rules.clone().filter(|kernel| kernel.contains(tile)).collect();
        let nn = |kernel: &&&str| kernel.starts_with("sgemm_kernel!(tile");
        assert!(kernels.iter().any(nn) && kernels.len() >= 4, "{tile}: {kernels:?}");
    }
    Ok(())
}
