//! Launches of macro calls.

use super::kept::MAX_KEPT;
use crate::generic::Kernel;
use crate::slot::KernelSlot;
use crate::{
    Device, Error, MatrixMut, MatrixRef, N, ReduceKernel, ReduceSpec, Sgemm, reduce_kernel,
    sgemm_kernel,
};
use gemm_dsl::artifact::Artifact;
use gemm_dsl::{Family, Plan};
use std::sync::Arc;

const LAYER: Sgemm<(N, f32)> = sgemm_kernel!(
    tile: 16x16x8, thread: 4x4, split_k: 2, pitched,
    epilogue: |acc, bias[n], slope| { let t = acc + bias; if t < 0.0 { slope * t } else { t } }
);
const SUM: ReduceKernel = reduce_kernel!(launch: passes, float4);
const ARGMAX: ReduceKernel<f32, u32> = reduce_kernel!(op: argmax);

/// Slot of one macro call.
macro_rules! slot {
    () => {
        || {
            static SLOT: KernelSlot = KernelSlot::new();
            &SLOT
        }
    };
}

/// Kernel as the macro builds it, except that its spec cannot be parsed.
fn unreadable<S, E>(kernel: &Kernel<S, E>, slot: fn() -> &'static KernelSlot) -> Kernel<S, E> {
    let line = format!("no spec {}", kernel.spec_line()).into();
    let artifact = Artifact { line, ..kernel.artifact().clone() };
    Kernel::__from_macro(Box::leak(Box::new(artifact)), slot)
}

/// Gives a simulator the bodies of a kernel's program, which it would generate from the spec.
fn give_bodies<S: Family, E>(device: &Device, unreadable: &Kernel<S, E>, kernel: &Kernel<S, E>) {
    let plan: S::Plan = kernel.spec_line().parse().expect("a spec");
    let program = unreadable.prepare(device).expect("nothing is parsed");
    program.keep(plan.program().expect("a program"));
}

fn layer(kernel: &Sgemm<(N, f32)>, device: &Device) -> Result<Vec<f32>, Error> {
    let (a, b) = (device.upload(&[1.0, 2.0])?, device.upload(&[1.0; 6])?);
    let (bias, mut c) = (device.upload(&[0.0, 10.0, -10.0])?, device.alloc(3)?);
    let (a, b) = (MatrixRef::new(&a, 1, 2)?, MatrixRef::new(&b, 2, 3)?);
    let mut c_view = MatrixMut::new(&mut c, 1, 3)?;
    kernel.call(device).operands((&bias, 0.5)).launch(&a, &b, &mut c_view)?;
    device.download(&c)
}

/// A kernel whose spec cannot be parsed is launched like any other. A launch therefore parses no
/// spec. It cannot plan, lower or print a kernel either, since these steps start from a parsed
/// spec.
#[test]
fn launches_do_not_read_the_spec() -> Result<(), Error> {
    let device = Device::simulator();
    let gemm = unreadable(&LAYER, slot!());
    give_bodies(&device, &gemm, &LAYER);
    assert_eq!(layer(&gemm, &device)?, [3.0, 13.0, -3.5]);
    gemm.warm(&device)?;

    let sum = unreadable(&SUM, slot!());
    give_bodies(&device, &sum, &SUM);
    assert_eq!(sum.run(&device, &vec![1.0; 5000])?, 5000.0);
    assert_eq!(sum.run(&device, &[])?, 0.0);

    let argmax = unreadable(&ARGMAX, slot!());
    give_bodies(&device, &argmax, &ARGMAX);
    assert_eq!(argmax.run(&device, &[1.0, 5.0, 2.0])?, 1);
    let error = argmax.run(&device, &[]).expect_err("no index");
    assert!(matches!(error, Error::WrongExtent { .. }), "{error}");
    Ok(())
}

/// Only the simulator reads the spec, to generate the bodies of the kernels.
#[test]
fn a_simulator_without_bodies_reads_the_spec() {
    let error = layer(&unreadable(&LAYER, slot!()), &Device::simulator()).expect_err("no spec");
    assert!(matches!(error, Error::Spec(_)), "{error}");
}

/// Kernel of a spec that differs from all others by its name.
fn named(n: usize) -> ReduceKernel {
    ReduceKernel::new(format!("block: 32, name: k{n}").parse().expect("a spec")).expect("sound")
}

/// A server that takes specs as text keeps a bounded number of them, and every launch is right.
#[test]
fn ten_thousand_specs_are_bounded() -> Result<(), Error> {
    let device = Device::simulator();
    assert_eq!(SUM.run(&device, &[1.0, 2.0])?, 3.0);
    let report = {
        let (kernel, x, mut sum) = (named(0), device.upload(&[4.0, 5.0])?, device.alloc(1)?);
        kernel.launch(&device, &x, &mut sum)?
    };
    // The program of a macro call and the one of a report stay; they are used longest ago.
    for n in 1..10_000 {
        let kernel = named(n);
        if n % 500 == 0 {
            assert_eq!(kernel.run(&device, &[1.0, 2.0, n as f32])?, 3.0 + n as f32);
        } else {
            drop(kernel.prepare(&device)?);
        }
        assert!(device.kept_kernels() <= MAX_KEPT, "{n}");
    }
    assert_eq!(device.kept_kernels(), MAX_KEPT);
    let is_kept = |n| device.programs().is_kept::<ReduceSpec>(named(n).spec_line());
    assert!(is_kept(0) && is_kept(9_999) && !is_kept(1) && !is_kept(9_000));
    assert!(device.programs().is_kept::<ReduceSpec>(SUM.spec_line()));
    drop(report);
    named(10_000).prepare(&device)?;
    assert!(!is_kept(0) && is_kept(10_000));
    Ok(())
}

#[test]
fn the_least_recently_used_programs_are_evicted() -> Result<(), Error> {
    let device = Device::simulator();
    device.keep_at_most(3);
    let is_kept = |n| device.programs().is_kept::<ReduceSpec>(named(n).spec_line());
    for n in [0, 1, 2, 0, 3] {
        assert_eq!(named(n).run(&device, &[1.0; 9])?, 9.0);
    }
    assert_eq!([0, 1, 2, 3].map(is_kept), [true, false, true, true]);
    // Programs in use are kept beyond the number, until nothing uses them.
    let used = [0, 2, 3, 4].map(|n| named(n).prepare(&device));
    assert_eq!(device.kept_kernels(), 4);
    drop(used);
    assert_eq!(device.kept_kernels(), 4);
    device.keep_at_most(1);
    assert_eq!([0, 2, 3, 4].map(is_kept), [false, false, false, true]);
    device.keep_at_most(0);
    assert_eq!(named(4).run(&device, &[1.0; 9])?, 9.0);
    Ok(())
}

#[test]
fn kernels_are_forgotten() -> Result<(), Error> {
    let device = Device::simulator();
    let (kernel, other) = (named(0), named(1));
    assert!(!device.forget(&kernel));
    for kernel in [&kernel, &other] {
        kernel.run(&device, &[1.0])?;
    }
    let used = kernel.prepare(&device)?;
    assert!(device.forget(&kernel));
    assert_eq!((device.kept_kernels(), used.line()), (1, kernel.spec_line()));
    assert_eq!(kernel.run(&device, &[1.0, 2.0])?, 3.0);
    assert!(!Arc::ptr_eq(&used, &kernel.prepare(&device)?));
    // A macro call holds its program, also for kernels of the same text.
    assert_eq!(SUM.run(&device, &[1.0, 2.0])?, 3.0);
    let same: ReduceKernel = ReduceKernel::new(SUM.spec_line().parse()?)?;
    assert!(!device.forget(&SUM) && !device.forget(&same));
    Ok(())
}
