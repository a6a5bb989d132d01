//! Measures the worst error of each function of the expression language, in units in the last place
//! of the exact result.
//!
//! On a GPU, every function is compiled from the source of an epilogue, and all 2^32 inputs are
//! compared with a reference in double precision. For a function of two numbers, these are 2^32
//! pairs of numbers. Without a GPU, a sample of inputs runs on the simulator.

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
    arguments: [f32; 2],
}

/// Reference of a function: a CUDA C expression of the `double`s x and y, and a Rust function.
/// Functions of one number ignore y.
type FunctionReference = (&'static str, &'static str, fn(f64, f64) -> f64);

const REFERENCES: [FunctionReference; 19] = [
    ("pow", "pow(x, y)", libm::pow),
    ("exp", "exp(x)", |x, _| x.exp()),
    ("expm1", "expm1(x)", |x, _| libm::expm1(x)),
    ("exp2", "exp2(x)", |x, _| x.exp2()),
    ("log", "log(x)", |x, _| x.ln()),
    ("log1p", "log1p(x)", |x, _| libm::log1p(x)),
    ("log2", "log2(x)", |x, _| x.log2()),
    ("rsqrt", "1.0 / sqrt(x)", |x, _| 1.0 / x.sqrt()),
    ("sin", "sin(x)", |x, _| x.sin()),
    ("cos", "cos(x)", |x, _| x.cos()),
    ("tanh", "tanh(x)", |x, _| x.tanh()),
    ("erf", "erf(x)", |x, _| libm::erf(x)),
    ("erfc", "erfc(x)", |x, _| libm::erfc(x)),
    ("sigmoid", "sigmoid(x)", |x, _| host::sigmoid(x)),
    ("softplus", "softplus(x)", |x, _| host::softplus(x)),
    ("mish", "at_minus_zero(x, x * tanh(softplus(x)))", |x, _| host::mish(x)),
    ("silu", "at_minus_zero(x, x * sigmoid(x))", |x, _| host::silu(x)),
    ("gelu", "at_minus_zero(x, 0.5 * x * erfc(-x * 0.70710678118654752440))", |x, _| host::gelu(x)),
    (
        "gelu_tanh",
        "at_minus_zero(x, x * sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x)))",
        |x, _| host::gelu_tanh(x),
    ),
];

/// The n-th pair of arguments of a function of two numbers. Every fourth y has any bits, every
/// fourth is half an integer, and for the others |y log2 x| is at most about 155. The GPU computes
/// the same pairs.
fn pair(n: u32) -> [f32; 2] {
    let mix = |v: u32| {
        let v = (v ^ (v >> 16)).wrapping_mul(0x7feb_352d);
        let v = (v ^ (v >> 15)).wrapping_mul(0x846c_a68b);
        v ^ (v >> 16)
    };
    let (x, y) = (mix(n), mix(n ^ 0x9e37_79b9));
    match n % 4 {
        0 => [x, y].map(f32::from_bits),
        1 => [f32::from_bits(x), (y % 64) as f32 * 0.5 - 16.0],
        _ => {
            let x = x & 0x7fff_ffff;
            let log = (x as i32 - 0x3f80_0000) as f32 / 8_388_608.0;
            [f32::from_bits(x), (y as f32 / 4_294_967_296.0 - 0.5) * 310.0 / log]
        }
    }
}

/// Threads in a block of [`each`].
const THREADS: u32 = 256;

/// Builds a kernel that computes the function of one or two operands at each of `len` indices of
/// its arrays of arguments; `len` is a multiple of [`THREADS`].
fn each(name: &str, operands: usize, len: u32) -> Result<VerifiedKernel, Failure> {
    let names = ["acc", "y"].get(..operands).unwrap_or_default().join(", ");
    let closure = Closure::parse(&EPILOGUE, &format!("|{names}| {name}({names})"))?;
    let mut k = KernelBuilder::new("each");
    k.title(format!("out[i] = {name} of the arguments i"));
    let inputs = ["in", "second"].iter().take(operands).enumerate();
    let inputs = inputs.map(|(n, name)| k.global(name, Elem::F32, Operand::Input(n)));
    let inputs: Vec<_> = inputs.collect();
    let output = k.global("out", Elem::F32, Operand::Output(0));
    for buffer in inputs.iter().chain([&output]) {
        k.shape(*buffer, [Expr::U64(len.into())], [1.into()]);
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
    let arguments = inputs.into_iter().map(|input| at(input).load());
    let value = lowered.apply(arguments, |name| unreachable!("`{name}` cannot be parsed"));
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
    for FunctionInfo { name, bound, operands, .. } in
        Function::ALL.iter().map(|function| function.info())
    {
        let Some(bound) = bound else { continue };
        let Some((_, in_cuda, on_host)) = REFERENCES.iter().find(|(known, ..)| *known == name)
        else {
            table.add([name, "", "", "", "has no reference"].map(String::from));
            sound = false;
            continue;
        };
        let worst = match Gpu::new(&device) {
            Some(gpu) => {
                let source = cuda::source(&each(name, operands.len(), THREADS)?);
                gpu::worst(gpu, &source, operands.len(), in_cuda)?
            }
            None => {
                let kernel = each(name, operands.len(), host::SAMPLE)?;
                host::worst(&kernel, operands.len(), *on_host)?
            }
        };
        let holds = worst.ulp <= bound.ulp;
        sound &= holds;
        let arguments = worst.arguments.iter().take(operands.len()).map(|x| format!("{x:e}"));
        table.add([
            name.to_owned(),
            format!("{:.4}", worst.ulp),
            format!("{:.2}", bound.ulp),
            arguments.collect::<Vec<_>>().join(", "),
            if holds { String::new() } else { "above its bound".into() },
        ]);
    }
    println!("{}", table.text());
    Ok(if sound { Outcome::Right } else { Outcome::Wrong })
}

fn main() -> ExitCode {
    exit(run())
}
