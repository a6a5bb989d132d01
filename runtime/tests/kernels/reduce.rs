//! Reductions of any element type over any axis: results and errors.

mod arrays;
mod by_name;
mod numbers;
mod segments;
mod table;
mod topk;
mod types;

use gemm_runtime::generic::Kernel;
use gemm_runtime::half::{bf16, f16};
use gemm_runtime::{ByName, Device, Element, ReduceSpec};

fn spec(line: &str) -> ReduceSpec {
    line.parse().unwrap_or_else(|faults| panic!("`{line}`: {faults}"))
}

fn by_name(line: &str) -> Kernel<ReduceSpec, ByName> {
    Kernel::<ReduceSpec, ByName>::new(spec(line)).expect("a sound spec")
}

/// Element type for small values, which every type represents and whose sums are exact here.
trait Small: Element + PartialEq {
    const NAME: &'static str;

    fn of(value: u8) -> Self;
}

macro_rules! small {
    ($($ty:ty = $name:literal, |$v:ident| $of:expr;)*) => {
        $(
            impl Small for $ty {
                const NAME: &'static str = $name;

                fn of($v: u8) -> Self {
                    $of
                }
            }
        )*
    };
}

small! {
    f32 = "f32", |v| v.into();
    f64 = "f64", |v| v.into();
    f16 = "f16", |v| Self::from_f32(v.into());
    bf16 = "bf16", |v| Self::from_f32(v.into());
    i8 = "i8", |v| v as i8;
    u8 = "u8", |v| v;
    i32 = "i32", |v| v.into();
    u32 = "u32", |v| v.into();
    i64 = "i64", |v| v.into();
    u64 = "u64", |v| v.into();
}

/// Values from 0 to 4.
fn small<T: Small>(n: usize) -> Vec<T> {
    (0..n).map(|i| T::of(((i * 7 + i / 5) % 5) as u8)).collect()
}

fn device() -> Device {
    Device::simulator()
}
