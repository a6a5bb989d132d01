//! Reference evaluator of expressions in plain Rust.

use super::prototypes as prototype;
use gemm_dsl::expr::{Binary, Block, Closure, Float, Function, Node, NodeKind, Unary};
use gemm_dsl::target::intrinsic::canonical;

pub fn function(function: Function) -> fn(f32) -> f32 {
    match function {
        Function::Exp => prototype::exp,
        Function::Exp2 => prototype::exp2,
        Function::Expm1 => prototype::expm1,
        Function::Log1p => prototype::log1p,
        Function::Softplus => prototype::softplus,
        Function::Mish => prototype::mish,
        Function::Erfc => prototype::erfc,
        Function::Sin => prototype::sin,
        Function::Cos => prototype::cos,
        Function::Log => prototype::log,
        Function::Log2 => prototype::log2,
        Function::Rsqrt => prototype::rsqrt,
        Function::Tanh => prototype::tanh,
        Function::Erf => prototype::erf,
        Function::Sigmoid => prototype::sigmoid,
        Function::Silu => prototype::silu,
        Function::Gelu => prototype::gelu,
        Function::GeluTanh => prototype::gelu_tanh,
        Function::Abs => |x| f32::from_bits(canonical(x).to_bits() & 0x7fff_ffff),
        Function::Sqrt => |x| canonical(x.sqrt()),
        Function::Floor => |x| canonical(x.floor()),
        Function::Round => |x| canonical(x.round_ties_even()),
        Function::Ceil => |x| canonical(x.ceil()),
        Function::Trunc => |x| canonical(x.trunc()),
        Function::Sign => |x| if x == 0.0 || x.is_nan() { x } else { x.signum() },
        Function::Relu => |x| prototype::max(x, 0.0),
        _ => unreachable!("no function of one number"),
    }
}

/// Function on one `f64`, if it has one.
fn function_f64(function: Function) -> fn(f64) -> f64 {
    match function {
        Function::Rsqrt => |x| 1.0 / x.sqrt(),
        Function::Abs => f64::abs,
        Function::Sqrt => f64::sqrt,
        Function::Floor => f64::floor,
        Function::Round => f64::round_ties_even,
        Function::Ceil => f64::ceil,
        Function::Trunc => f64::trunc,
        Function::Sign => |x| if x == 0.0 || x.is_nan() { x } else { x.signum() },
        Function::Relu => |x| greater(x, 0.0),
        _ => unreachable!("no function of one f64"),
    }
}

fn greater(a: f64, b: f64) -> f64 {
    match a.partial_cmp(&b) {
        None => f64::NAN,
        Some(std::cmp::Ordering::Equal) => {
            if a.is_sign_negative() {
                b
            } else {
                a
            }
        }
        Some(std::cmp::Ordering::Greater) => a,
        Some(std::cmp::Ordering::Less) => b,
    }
}

fn smaller(a: f64, b: f64) -> f64 {
    -greater(-a, -b)
}

#[derive(Clone, Copy, Debug)]
pub enum Value {
    F32(f32),
    F64(f64),
    Int(i64),
    Bool(bool),
}

/// Value of a closure whose names, including the reserved ones, are bound to these values.
pub fn value<'c>(
    closure: &'c Closure,
    float: Float,
    known: impl IntoIterator<Item = (&'c str, Value)>,
) -> Value {
    Evaluator { float, known: known.into_iter().collect() }.block(closure.body())
}

struct Evaluator<'c> {
    float: Float,
    known: Vec<(&'c str, Value)>,
}

impl<'c> Evaluator<'c> {
    fn block(&mut self, block: &'c Block) -> Value {
        let outer = self.known.len();
        for definition in &block.lets {
            let value = self.node(&definition.value);
            self.known.push((&definition.name, value));
        }
        let value = self.node(&block.value);
        self.known.truncate(outer);
        value
    }

    fn node(&mut self, e: &'c Node) -> Value {
        use Value::{Bool, F32, F64, Int};
        match &e.kind {
            NodeKind::Float(bits) => match self.float {
                Float::F32 => F32(e.to_string().parse().expect("a number")),
                Float::F64 => F64(f64::from_bits(*bits)),
            },
            NodeKind::Waves(..) => unreachable!("of conditions alone"),
            NodeKind::Fold(..) => unreachable!("of whole rows alone"),
            NodeKind::Next(_) | NodeKind::Pair(..) => unreachable!("of pairs of columns alone"),
            NodeKind::Int(value) => Int(*value),
            NodeKind::Name(name) => {
                let known = self.known.iter().rev().find(|(known, _)| known == name);
                known.unwrap_or_else(|| panic!("{name}")).1
            }
            NodeKind::Unary(op, e) => match (op, self.node(e)) {
                (Unary::Neg, F32(x)) => F32(canonical(-x)),
                (Unary::Neg, F64(x)) => F64(-x),
                (Unary::Neg, Int(x)) => Int(x.checked_neg().expect("in range")),
                (Unary::Not, Bool(x)) => Bool(!x),
                wrong => panic!("{wrong:?}"),
            },
            NodeKind::If(cond, yes, no) => match self.node(cond) {
                Bool(true) => self.block(yes),
                Bool(false) => self.block(no),
                wrong => panic!("{wrong:?}"),
            },
            NodeKind::Binary(op, a, b, _) => match (op, self.node(a), self.node(b)) {
                (Binary::And, Bool(a), Bool(b)) => Bool(a && b),
                (Binary::Or, Bool(a), Bool(b)) => Bool(a || b),
                (op, F32(a), F32(b)) if op.is_comparison() => Bool(compared(*op, a, b)),
                (op, F64(a), F64(b)) if op.is_comparison() => Bool(compared(*op, a, b)),
                (op, Int(a), Int(b)) if op.is_comparison() => Bool(compared(*op, a, b)),
                (Binary::Add, F32(a), F32(b)) => F32(canonical(a + b)),
                (Binary::Sub, F32(a), F32(b)) => F32(canonical(a - b)),
                (Binary::Mul, F32(a), F32(b)) => F32(canonical(a * b)),
                (Binary::Div, F32(a), F32(b)) => F32(canonical(a / b)),
                (Binary::Add, F64(a), F64(b)) => F64(a + b),
                (Binary::Sub, F64(a), F64(b)) => F64(a - b),
                (Binary::Mul, F64(a), F64(b)) => F64(a * b),
                (Binary::Div, F64(a), F64(b)) => F64(a / b),
                // Checked, so that release builds panic on overflow too.
                (Binary::Add, Int(a), Int(b)) => Int(a.checked_add(b).expect("in range")),
                (Binary::Sub, Int(a), Int(b)) => Int(a.checked_sub(b).expect("in range")),
                (Binary::Mul, Int(a), Int(b)) => Int(a.checked_mul(b).expect("in range")),
                (Binary::Div, Int(a), Int(b)) => Int(a.checked_div(b).expect("in range")),
                (Binary::Rem, Int(a), Int(b)) => Int(a.checked_rem(b).expect("in range")),
                wrong => panic!("{wrong:?}"),
            },
            NodeKind::Call(f, args) => {
                let args: Vec<Value> = args.iter().map(|e| self.node(e)).collect();
                call(*f, &args)
            }
        }
    }
}

fn call(f: Function, args: &[Value]) -> Value {
    use Value::{Bool, F32, F64, Int};
    match (f, args) {
        (Function::IsNan, [F32(x)]) => Bool(x.is_nan()),
        (Function::IsNan, [F64(x)]) => Bool(x.is_nan()),
        (Function::Pow, [F32(x), F32(y)]) => F32(prototype::pow(*x, *y)),
        (Function::Min, [F32(a), F32(b)]) => F32(prototype::min(*a, *b)),
        (Function::Max, [F32(a), F32(b)]) => F32(prototype::max(*a, *b)),
        (Function::Clamp, [F32(x), F32(low), F32(high)]) => {
            F32(prototype::min(prototype::max(*x, *low), *high))
        }
        (Function::Fma, [F32(a), F32(b), F32(c)]) => F32(canonical(a.mul_add(*b, *c))),
        (Function::Min, [F64(a), F64(b)]) => F64(smaller(*a, *b)),
        (Function::Max, [F64(a), F64(b)]) => F64(greater(*a, *b)),
        (Function::Clamp, [F64(x), F64(low), F64(high)]) => F64(smaller(greater(*x, *low), *high)),
        (Function::Fma, [F64(a), F64(b), F64(c)]) => F64(a.mul_add(*b, *c)),
        (Function::Min, [Int(a), Int(b)]) => Int(*a.min(b)),
        (Function::Max, [Int(a), Int(b)]) => Int(*a.max(b)),
        (Function::Clamp, [Int(x), Int(low), Int(high)]) => Int(*x.max(low).min(high)),
        (Function::Sign, [Int(x)]) => Int(x.signum()),
        (Function::Abs, [Int(x)]) => Int(x.checked_abs().expect("in range")),
        (Function::ToF32, [Int(x)]) => F32(*x as f32),
        (Function::ToF32, [F64(x)]) => F32(canonical(*x as f32)),
        (Function::ToF64, [Int(x)]) => F64(*x as f64),
        (Function::ToF64, [F32(x)]) => F64(f64::from(*x)),
        (f, [F32(x)]) => F32(function(f)(*x)),
        (f, [F64(x)]) => F64(function_f64(f)(*x)),
        wrong => panic!("{wrong:?}"),
    }
}

fn compared<T: PartialOrd>(op: Binary, a: T, b: T) -> bool {
    match op {
        Binary::Lt => a < b,
        Binary::Le => a <= b,
        Binary::Gt => a > b,
        Binary::Ge => a >= b,
        Binary::Eq => a == b,
        _ => a != b,
    }
}
