//! Output of the program, and its archive.

use gemm_runtime::internal::entries;
use gemm_runtime::{Archive, Error, include_archive};
use std::collections::BTreeSet;
use std::process::Command;

const KERNELS: Archive = include_archive!("kernels");

#[test]
fn the_program_runs() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_gemm-example-archive"));
    // Without a visible GPU, it runs on the simulator even if a driver is installed.
    let output = program.env("CUDA_VISIBLE_DEVICES", "").output().expect("a program");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("the sum of C is 196608"), "{told}");
}

/// Without NVRTC, the build script embeds an empty archive.
#[test]
fn the_archive_has_both_kernels_for_both_architectures() -> Result<(), Error> {
    let entries = entries(KERNELS)?;
    let is_required = std::env::var_os("GEMM_REQUIRE_NVRTC").is_some_and(|value| value == "1");
    if entries.is_empty() && !is_required {
        return Ok(());
    }
    let kernels: BTreeSet<_> = entries.iter().map(|entry| (&*entry.arch, &*entry.name)).collect();
    let expected = ["sm_80", "sm_90"].map(|arch| {
        ["reduce_kernel!(items: 4, shuffle)", "sgemm_kernel!(tile: 64x64x8, thread: 4x4, float4)"]
            .map(|name| (arch, name))
    });
    assert_eq!(kernels, expected.into_iter().flatten().collect());
    Ok(())
}
