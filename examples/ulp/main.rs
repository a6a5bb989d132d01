//! The worst error of each function of the expression language, in units in the last place of the
//! exact result.
//!
//! On a GPU every function is compiled from the text that an epilogue would have, and run on all
//! 2^32 inputs beside a reference in double precision. Without a GPU a sample runs on the simulator.

mod gpu;
mod host;

use gemm_dsl::ir::{Access, Elem, Expr, Geometry, KernelBuilder, Operand, Special, VerifiedKernel};
use gemm_dsl::value::{Closure, EPILOGUE};
use gemm_dsl::{SpecErrors, cuda};
use gemm_examples::cli::{Failure, Outcome, exit};
use gemm_examples::gpu::Gpu;
use gemm_examples::show::{Table, number, text};
use gemm_runtime::Device;
use std::process::ExitCode;

/// A function with its bound and its references.
struct Function {
    name: &'static str,
    /// What its documentation promises.
    bound: f64,
    /// The value in CUDA C, of a `double x`.
    cuda: &'static str,
    /// The value in Rust.
    host: fn(f64) -> f64,
}

/// The worst case of a function.
struct Worst {
    ulp: f64,
    /// The bits of the input.
    input: u32,
}

const FUNCTIONS: [Function; 11] = [
    Function { name: "exp", bound: 0.90, cuda: "exp(x)", host: f64::exp },
    Function { name: "exp2", bound: 0.88, cuda: "exp2(x)", host: f64::exp2 },
    Function { name: "log", bound: 0.94, cuda: "log(x)", host: f64::ln },
    Function { name: "log2", bound: 1.05, cuda: "log2(x)", host: f64::log2 },
    Function { name: "rsqrt", bound: 1.50, cuda: "1.0 / sqrt(x)", host: |x| 1.0 / x.sqrt() },
    Function { name: "tanh", bound: 1.37, cuda: "tanh(x)", host: f64::tanh },
    Function { name: "erf", bound: 1.08, cuda: "erf(x)", host: libm::erf },
    Function { name: "sigmoid", bound: 1.01, cuda: "sigmoid(x)", host: host::sigmoid },
    Function {
        name: "silu",
        bound: 1.10,
        cuda: "at_minus_zero(x, x * sigmoid(x))",
        host: host::silu,
    },
    Function {
        name: "gelu",
        bound: 1.73,
        cuda: "at_minus_zero(x, 0.5 * x * erfc(-x * 0.70710678118654752440))",
        host: host::gelu,
    },
    Function {
        name: "gelu_tanh",
        bound: 1.14,
        cuda: "at_minus_zero(x, x * sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x)))",
        host: host::gelu_tanh,
    },
];

/// Threads of a block of [`each`].
const THREADS: u32 = 256;

/// The kernel that gives the function at each of `len` numbers, a multiple of [`THREADS`].
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
        blocks_per_sm: 1,
    });
    let lowered = closure.lower(&mut k);
    let block = Expr::from(Special::BlockX);
    let i = k.let_("i", block * THREADS as i32 + Special::ThreadX);
    let at = |buffer| Access::new(buffer, [i.into()]);
    let value = lowered.apply([at(input).load()], |name| unreachable!("`{name}` is not read"));
    k.store(at(output), value);
    Ok(k.finish().map_err(SpecErrors::from)?)
}

fn run() -> Result<Outcome, Failure> {
    let device = Device::auto().unwrap_or_else(|_| Device::simulator());
    match Gpu::of(&device) {
        Some(_) => println!("All 2^32 inputs on {}.\n", device.name()),
        None => println!(
            "There is no GPU: {} inputs of each function on the simulator.\n",
            host::SAMPLE
        ),
    }
    let mut table =
        Table::new([text("function"), number("worst ulp"), number("bound"), text("at"), text("")]);
    let mut sound = true;
    for function in &FUNCTIONS {
        let worst = match Gpu::of(&device) {
            Some(gpu) => {
                gpu::worst(gpu, &cuda::source(&each(function.name, THREADS)?), function.cuda)?
            }
            None => host::worst(&each(function.name, host::SAMPLE)?, function.host)?,
        };
        sound &= worst.ulp <= function.bound;
        table.add([
            function.name.to_owned(),
            format!("{:.4}", worst.ulp),
            format!("{:.2}", function.bound),
            format!("{:e}", f32::from_bits(worst.input)),
            if worst.ulp <= function.bound { String::new() } else { "above its bound".into() },
        ]);
    }
    println!("{}", table.text());
    Ok(if sound { Outcome::Right } else { Outcome::Wrong })
}

fn main() -> ExitCode {
    exit(run())
}
