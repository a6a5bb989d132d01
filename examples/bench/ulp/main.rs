//! Measures the worst error of each function of the expression language, in units in the last place
//! of the exact result.
//!
//! On a GPU, every function is compiled from the source of an epilogue, and all 2^32 inputs are
//! compared with a reference in double precision. Without a GPU, a sample of inputs runs on the
//! simulator.

mod gpu;
mod host;

use gemm_bench::cli::{Failure, Outcome, exit};
use gemm_bench::gpu::Gpu;
use gemm_bench::table::{Table, number, text};
use gemm_dsl::expr::{Closure, EPILOGUE, Function, FunctionInfo};
use gemm_dsl::ir::{Access, Elem, Expr, Geometry, KernelBuilder, Operand, Special, VerifiedKernel};
use gemm_dsl::{SpecErrors, cuda};
use gemm_runtime::Device;
use std::process::ExitCode;

/// Worst case of a function.
struct Worst {
    ulp: f64,
    /// Bits of the `f32` input.
    input: u32,
}

/// Name of a function, and its reference as a CUDA C expression of a `double x` and as a Rust
/// function.
type FunctionReference = (&'static str, &'static str, fn(f64) -> f64);

const REFERENCES: [FunctionReference; 11] = [
    ("exp", "exp(x)", f64::exp),
    ("exp2", "exp2(x)", f64::exp2),
    ("log", "log(x)", f64::ln),
    ("log2", "log2(x)", f64::log2),
    ("rsqrt", "1.0 / sqrt(x)", |x| 1.0 / x.sqrt()),
    ("tanh", "tanh(x)", f64::tanh),
    ("erf", "erf(x)", libm::erf),
    ("sigmoid", "sigmoid(x)", host::sigmoid),
    ("silu", "at_minus_zero(x, x * sigmoid(x))", host::silu),
    ("gelu", "at_minus_zero(x, 0.5 * x * erfc(-x * 0.70710678118654752440))", host::gelu),
    (
        "gelu_tanh",
        "at_minus_zero(x, x * sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x)))",
        host::gelu_tanh,
    ),
];

/// Threads in a block of [`each`].
const THREADS: u32 = 256;

/// Builds a kernel that computes the function at each of `len` numbers; `len` is a multiple of
/// [`THREADS`].
fn each(name: &str, len: u32) -> Result<VerifiedKernel, Failure> {
    let closure = Closure::parse(&EPILOGUE, &format!("|acc| {name}(acc)"))?;
    let mut k = KernelBuilder::new("each");
    k.title(format!("out[i] = {name}(in[i])"));
    let input = k.global("in", Elem::F32, Operand::Input(0));
    let output = k.global("out", Elem::F32, Operand::Output(0));
    for buffer in [input, output] {
        k.shape(buffer, [Expr::U64(len.into())], [1.into()]);
    }
    let blocks = Expr::U64((len / THREADS).into());
    k.geometry(Geometry {
        block: (THREADS, 1),
        grid: [blocks, Expr::U64(1), Expr::U64(1)],
        blocks_per_sm: Some(1),
    });
    let lowered = closure.lower(&mut k);
    let block = Expr::from(Special::BlockX);
    let i = k.let_("i", block * THREADS as i32 + Special::ThreadX);
    let at = |buffer| Access::new(buffer, [i.into()]);
    let value = lowered.apply([at(input).load()], |name| unreachable!("`{name}` cannot be parsed"));
    k.store(at(output), value);
    Ok(k.finish().map_err(SpecErrors::from)?)
}

fn run() -> Result<Outcome, Failure> {
    let device = Device::auto().unwrap_or_else(|_| Device::simulator());
    match Gpu::new(&device) {
        Some(_) => println!("All 2^32 inputs on {}.\n", device.name()),
        None => println!("No GPU: {} inputs of each function on the simulator.\n", host::SAMPLE),
    }
    let mut table =
        Table::new([text("function"), number("worst ulp"), number("bound"), text("at"), text("")]);
    let mut sound = true;
    for FunctionInfo { name, bound, .. } in Function::ALL.iter().map(|function| function.info()) {
        let Some(bound) = bound else { continue };
        let Some((_, in_cuda, on_host)) = REFERENCES.iter().find(|(known, ..)| *known == name)
        else {
            table.add([name, "", "", "", "has no reference"].map(String::from));
            sound = false;
            continue;
        };
        let worst = match Gpu::new(&device) {
            Some(gpu) => gpu::worst(gpu, &cuda::source(&each(name, THREADS)?), in_cuda)?,
            None => host::worst(&each(name, host::SAMPLE)?, *on_host)?,
        };
        let holds = worst.ulp <= bound.ulp;
        sound &= holds;
        table.add([
            name.to_owned(),
            format!("{:.4}", worst.ulp),
            format!("{:.2}", bound.ulp),
            format!("{:e}", f32::from_bits(worst.input)),
            if holds { String::new() } else { "above its bound".into() },
        ]);
    }
    println!("{}", table.text());
    Ok(if sound { Outcome::Right } else { Outcome::Wrong })
}

fn main() -> ExitCode {
    exit(run())
}
