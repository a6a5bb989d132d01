//! Launches of macro calls.

use crate::generic::Kernel;
use crate::slot::KernelSlot;
use crate::{
    Device, Error, MatrixMut, MatrixRef, N, ReduceKernel, Sgemm, reduce_kernel, sgemm_kernel,
};
use gemm_dsl::artifact::Artifact;
use gemm_dsl::{Family, Plan};

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
