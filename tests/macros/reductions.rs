//! Macros for reductions: the types of kernels, and expressions parsed from tokens.

use gemm_dsl::{Plan, cuda};
use gemm_runtime::bounds::Elements;
use gemm_runtime::generic::Kernel;
use gemm_runtime::half::{bf16, f16};
use gemm_runtime::{ByName, Device, Error, ReduceKernel, ReduceSpec, reduce_kernel};

/// Kernel of a macro call, and the spec as text.
macro_rules! both {
    ($($spec:tt)*) => {
        (reduce_kernel!($($spec)*), stringify!($($spec)*))
    };
}

/// Asserts that a kernel equals that of its spec at run time, including its type.
fn same<T: Elements, R: Elements>((kernel, text): (ReduceKernel<T, R>, &str)) -> Result<(), Error> {
    let spec: ReduceSpec = text.parse()?;
    assert_eq!(kernel.spec_line(), spec.to_string(), "{text}");
    assert_eq!(ReduceKernel::<T, R>::new(spec.clone())?, kernel, "{text}");
    assert_eq!(kernel.source(), cuda::source(spec.plan()?.program()?.preferred()), "{text}");
    assert_eq!(Kernel::<ReduceSpec, ByName>::new(spec)?.source(), kernel.source(), "{text}");
    Ok(())
}

#[test]
fn a_line_of_tokens_has_the_type_of_its_text() -> Result<(), Error> {
    same::<f32, f32>(both!())?;
    same::<f32, f16>(both!(op: logsumexp, result: f16))?;
    same::<f16, f32>(both!(type: f16, over: rows, group: 8))?;
    same::<bf16, bf16>(both!(type: bf16, result: bf16, over: columns))?;
    same::<i8, i64>(both!(type: i8, acc: i64))?;
    same::<u8, u8>(both!(type: u8, op: all))?;
    same::<i32, i32>(
        both!(type: i32, over: middle, fold: |a, b| max(a, b) , identity: -2147483647 - 1),
    )?;
    same::<u32, u64>(both!(op: argmin, type: u32, index: u64, launch: once))?;
    same::<(f32, f32, f32), f32>(
        both!(map: |x, y, mask| if mask > 0.5 { x*y } else { 0. }, pitched, over: rows),
    )?;
    same::<(f64, f64), (f64, f64)>(
        both!(op: mean_var, type: f64, map: |a, b,| { let d = a - b; d * d }),
    )?;
    same::<f32, f16>(both!(
        map: |x| x * x, finish: |s, len| sqrt(s / len), result: f16, blocks: 8, over: rows,
        group: 256
    ))
}

const NORM: ReduceKernel = reduce_kernel!(map: |x| x * x, finish: |s| sqrt(s));
static LARGEST: ReduceKernel<f16, u32> = reduce_kernel! { <op: argmax, type: f16> };
const ALL: [ReduceKernel; 3] = [NORM, reduce_kernel!(op: min), reduce_kernel!(over: all, items: 2)];

macro_rules! folded {
    ($map:expr, $element:ident) => {
        reduce_kernel!(type: $element, map: $map)
    };
}

#[test]
fn kernels_run_as_their_types_say() -> Result<(), Error> {
    let device = Device::simulator();
    let results = ALL.map(|kernel| kernel.run(&device, &[3.0, 4.0]));
    assert_eq!(results.into_iter().collect::<Result<Vec<_>, _>>()?, [5.0, 3.0, 7.0]);
    assert_eq!(LARGEST.run(&device, &[1.0, 9.0, 9.0].map(f16::from_f32))?, 1);
    assert_eq!(
        folded!(|x, y| max(x, y), i64).run(&device, (&[1 << 40, 3], &[2, 5]))?,
        (1 << 40) + 5
    );
    Ok(())
}
