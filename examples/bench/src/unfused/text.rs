//! CUDA C of an unfused epilogue, as a user of cuBLAS would write it.

use gemm_dsl::expr::{Block, Closure, Function, Node, NodeKind, Unary};
use gemm_dsl::spec::{Along, EpilogueArg};
use std::fmt::Write as _;

/// Functions of the DSL that CUDA C lacks.
const PRELUDE: &str = "\
__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
__device__ __forceinline__ float softplus(float x) {
    return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x)));
}
__device__ __forceinline__ float mish(float x) { return x * tanhf(softplus(x)); }
__device__ __forceinline__ float silu(float x) { return x / (1.0f + expf(-x)); }
__device__ __forceinline__ float gelu(float x) {
    return 0.5f * x * (1.0f + erff(x * 0.70710678f));
}
__device__ __forceinline__ float gelu_tanh(float x) {
    return 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
}
";

/// Returns a kernel that applies the epilogue in one pass, in vectors of `width` elements.
///
/// The parameters are C, the results of cuBLAS if they are separate, the operands in order, the
/// number of vectors, and m, n and k of each GEMM.
pub(super) fn source(
    name: &str,
    closure: &Closure,
    operands: &[EpilogueArg],
    sums_apart: bool,
    width: u32,
) -> String {
    let along = |name: &str| operands.iter().find(|o| o.name == *name).map(|o| o.along);
    let mut values = Vec::new();
    let (mut params, mut loads, mut given) = (String::new(), String::new(), Vec::new());
    for (i, param) in closure.params().iter().enumerate() {
        let name = format!("v_{}", param.name);
        values.push(format!("float {name}"));
        let array = |params: &mut String| {
            let _ = write!(params, "const float *__restrict__ p_{}, ", param.name);
        };
        let place = match (i, along(&param.name)) {
            (0, _) if sums_apart => "((const Vector *)sums)[v]".to_owned(),
            // The vector is read from C, or from the results of cuBLAS if they are in C.
            (0, _) | (_, None) => "((const Vector *)C)[v]".to_owned(),
            (_, Some(Along::Nothing | Along::Batch)) => {
                let _ = write!(params, "float {name}, ");
                given.push(name);
                continue;
            }
            (_, Some(Along::M | Along::BatchM)) => {
                array(&mut params);
                let _ = writeln!(loads, "        const float {name} = p_{}[row];", param.name);
                given.push(name);
                continue;
            }
            (_, Some(Along::N | Along::BatchN)) => {
                array(&mut params);
                format!("((const Vector *)p_{})[v - line * per_line]", param.name)
            }
            (_, Some(Along::Mn | Along::Pairs)) => {
                array(&mut params);
                format!("((const Vector *)p_{})[v]", param.name)
            }
        };
        let _ = writeln!(loads, "        const Vector {name} = {place};");
        given.push(format!("{name}.e[i]"));
    }
    let sums = if sums_apart { "const float *__restrict__ sums, " } else { "" };
    let (values, given) = (values.join(", "), given.join(", "));
    let body = block(closure.body());
    format!(
        "{PRELUDE}
struct __align__({bytes}) Vector {{ float e[{width}]; }};

__device__ __forceinline__ float value({values}, long long v_row, long long v_col, long long v_m,
                                       long long v_n, long long v_k) {{
    {body}
}}

extern \"C\" __global__ void __launch_bounds__({THREADS})
{name}(float *C, {sums}{params}unsigned int vectors, int m, int n, int k) {{
    const unsigned int per_line = n / {width};
    const unsigned int stride = gridDim.x * blockDim.x;
    for (unsigned int v = blockIdx.x * blockDim.x + threadIdx.x; v < vectors; v += stride) {{
        const unsigned int line = v / per_line, row = line % m;
        const unsigned int col = (v - line * per_line) * {width};
{loads}        Vector c;
#pragma unroll
        for (int i = 0; i < {width}; ++i) c.e[i] = value({given}, row, col + i, m, n, k);
        ((Vector *)C)[v] = c;
    }}
}}
",
        bytes = 4 * width,
    )
}

pub(super) const THREADS: u32 = 256;

/// Writes the statements of a block. The last statement returns the value of the block.
fn block(block: &Block) -> String {
    let mut text = String::new();
    for definition in &block.lets {
        let _ = write!(text, "const auto v_{} = {}; ", definition.name, node(&definition.value));
    }
    text + &format!("return {};", node(&block.value))
}

fn node(e: &Node) -> String {
    match &e.kind {
        NodeKind::Float(bits) => format!("{:?}f", f64::from_bits(*bits)),
        NodeKind::Int(value) => format!("{value}LL"),
        NodeKind::Name(name) => format!("v_{name}"),
        NodeKind::Waves(..) => unreachable!("an epilogue is not a condition"),
        NodeKind::Fold(..) => unreachable!("an epilogue has no folds"),
        NodeKind::Next(_) | NodeKind::Pair(..) => unreachable!("an epilogue has no pairs"),
        NodeKind::Unary(Unary::Neg, of) => format!("(-{})", node(of)),
        NodeKind::Unary(Unary::Not, of) => format!("(!{})", node(of)),
        NodeKind::Binary(op, a, b, _) => format!("({} {} {})", node(a), op.sign(), node(b)),
        NodeKind::If(condition, yes, no) => {
            let (condition, yes, no) = (node(condition), block(yes), block(no));
            format!("[&] {{ if ({condition}) {{ {yes} }} else {{ {no} }} }}()")
        }
        NodeKind::Call(function, operands) => {
            call(*function, &operands.iter().map(node).collect::<Vec<_>>())
        }
    }
}

fn call(function: Function, operands: &[String]) -> String {
    let name = match function {
        Function::Clamp => {
            let [x, low, high] = [0, 1, 2].map(|i| operands.get(i).map_or("", String::as_str));
            return format!("min(max({x}, {low}), {high})");
        }
        Function::Relu => return format!("fmaxf({}, 0.0f)", operands.concat()),
        Function::Sign => {
            let x = operands.concat();
            return format!("[&] {{ const auto x = {x}; return x > 0 ? 1 : x < 0 ? -1 : x; }}()");
        }
        // These functions also support integers.
        Function::Min => "min",
        Function::Max => "max",
        Function::Abs => "abs",
        Function::Sqrt => "sqrtf",
        Function::Rsqrt => "rsqrtf",
        Function::Fma => "fmaf",
        Function::Floor => "floorf",
        Function::Round => "rintf",
        Function::Ceil => "ceilf",
        Function::Trunc => "truncf",
        Function::IsNan => "isnan",
        Function::Exp => "expf",
        Function::Exp2 => "exp2f",
        Function::Log => "logf",
        Function::Log2 => "log2f",
        Function::Tanh => "tanhf",
        Function::Erf => "erff",
        Function::Pow => "powf",
        Function::Expm1 => "expm1f",
        Function::Log1p => "log1pf",
        Function::Sin => "sinf",
        Function::Cos => "cosf",
        Function::Erfc => "erfcf",
        Function::Softplus => "softplus",
        Function::Mish => "mish",
        Function::Sigmoid => "sigmoid",
        Function::Silu => "silu",
        Function::Gelu => "gelu",
        Function::GeluTanh => "gelu_tanh",
        Function::ToF32 => "(float)",
        Function::ToF64 => "(double)",
    };
    format!("{name}({})", operands.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gemm_dsl::expr::{EPILOGUE, Signature};
    use gemm_runtime::SgemmSpec;

    fn kernel_text(epilogue: &str, width: u32) -> String {
        let spec: SgemmSpec = format!("epilogue: {epilogue}").parse().expect("sound");
        let operands = spec.operands();
        let closure = spec.epilogue.as_ref().expect("it has one").closure();
        source("apart", closure, &operands, spec.reads_c(), width)
    }

    #[test]
    fn each_operand_is_read_along_its_axes() {
        let text = kernel_text(
            "|acc, bias[n], scale[m], res[m, n], slope| acc * scale + bias * slope - res",
            4,
        );
        for line in [
            "apart(float *C, const float *__restrict__ p_bias, const float *__restrict__ p_scale, \
             const float *__restrict__ p_res, float v_slope, unsigned int vectors, int m, int n, \
             int k)",
            "const Vector v_acc = ((const Vector *)C)[v];",
            "const Vector v_bias = ((const Vector *)p_bias)[v - line * per_line];",
            "const float v_scale = p_scale[row];",
            "const Vector v_res = ((const Vector *)p_res)[v];",
            "value(v_acc.e[i], v_bias.e[i], v_scale, v_res.e[i], v_slope, row, col + i, m, n, k);",
            "return (((v_acc * v_scale) + (v_bias * v_slope)) - v_res);",
            "struct __align__(16) Vector { float e[4]; };",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn previous_c_and_sums_are_separate_arrays() {
        let text = kernel_text("|acc, c[m, n]| acc - c", 1);
        assert!(
            text.contains("apart(float *C, const float *__restrict__ sums, unsigned int"),
            "{text}"
        );
        assert!(text.contains("v_acc = ((const Vector *)sums)[v];"), "{text}");
        assert!(text.contains("v_c = ((const Vector *)C)[v];"), "{text}");
        assert!(text.contains("struct __align__(4) Vector { float e[1]; };"), "{text}");
    }

    #[test]
    fn an_expression_is_written_in_cuda_c() {
        let text = kernel_text(
            "|acc| { let t = 0.5 * acc; if col > row && !(acc < 1e-3) { max(t, 0.25) } else { -t \
             * f32(m / 2) } }",
            1,
        );
        let body = "const auto v_t = (0.5f * v_acc); return [&] { if (((v_col > v_row) && \
                    (!(v_acc < 0.001f)))) { return max(v_t, 0.25f); } else \
                    { return ((-v_t) * (float)((v_m / 2LL))); } }();";
        assert!(text.contains(body), "{text}");
    }

    #[test]
    fn nvrtc_takes_every_function() {
        use gemm_runtime::compile::{Arch, Options, compile, nvrtc_version};
        if let Err(missing) = nvrtc_version() {
            let required = std::env::var_os("GEMM_REQUIRE_NVRTC").is_some_and(|value| value == "1");
            assert!(!required, "{missing}");
            eprintln!("not compiled: {missing}");
            return;
        }
        for function in EPILOGUE.functions() {
            let row = function.info();
            let operands = match row.name {
                "f32" => "col".to_owned(),
                _ => vec!["acc"; row.operands.len()].join(", "),
            };
            let call = format!("{}({operands})", row.name);
            let value = match row.signature {
                Signature::Predicate => format!("if {call} {{ acc }} else {{ bias }}"),
                _ => format!("acc + bias * {call}"),
            };
            for width in [1, 4] {
                let text = kernel_text(&format!("|acc, bias[n]| {value}"), width);
                let compiled = compile("apart", &text, Arch::sm(90), &Options::default());
                assert!(compiled.is_ok(), "{compiled:?}\n{text}");
            }
        }
        let all = "|acc, s[m], r[m, n], x, c[m, n]| { let t = s * acc; let w = if row > 3 { row % \
                   4 - m } else { col }; if t < x || w == k { let u = r * c; u - 1e-30 } else { \
                   -t * f32(min(w, n)) } }";
        let compiled = compile("apart", &kernel_text(all, 4), Arch::sm(80), &Options::default());
        assert!(compiled.is_ok(), "{compiled:?}\n{}", kernel_text(all, 4));
    }
}
