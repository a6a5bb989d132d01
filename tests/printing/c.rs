//! Interpreter for the C in the source of a kernel. It parses expressions and device functions
//! independently of the printer, and evaluates them with C's conversions.

mod parse;
mod unit;
mod value;

pub use parse::parse;
pub use unit::Unit;
pub use value::Value;

use gemm_dsl::ir::Ty;
use std::collections::HashMap;
use value::{Result, binary, builtin};

pub type Environment = HashMap<String, Value>;

#[derive(Clone, Debug)]
pub enum Tree {
    Number(Value),
    Name(String),
    Unary(char, Box<Tree>),
    Cast(Ty, Box<Tree>),
    Binary(String, Box<Tree>, Box<Tree>),
    Ternary(Box<[Tree; 3]>),
    Call(String, Vec<Tree>),
}

impl Tree {
    /// Evaluates the expression with the functions of a unit. Returns an error for undefined
    /// behaviour of C.
    pub fn value(&self, names: &Environment, unit: &Unit) -> Result<Value> {
        let value = |e: &Tree| e.value(names, unit);
        match self {
            Tree::Number(value) => Ok(*value),
            Tree::Name(name) if name == "true" => Ok(Value::Bool(true)),
            Tree::Name(name) => names.get(name).copied().ok_or(format!("`{name}` is unknown")),
            Tree::Unary('!', e) => Ok(Value::Bool(!value(e)?.truth()?)),
            Tree::Unary(_, e) => value(e)?.negated(),
            Tree::Cast(ty, e) => value(e)?.converted(*ty),
            Tree::Ternary(parts) => {
                let [c, a, b] = &**parts;
                if value(c)?.truth()? { value(a) } else { value(b) }
            }
            Tree::Call(name, args) => {
                let args: Vec<Value> = args.iter().map(value).collect::<Result<_>>()?;
                builtin(name, &args).unwrap_or_else(|| unit.call(name, &args))
            }
            Tree::Binary(op, a, b) => {
                let a = value(a)?;
                match (op.as_str(), a) {
                    ("&&", Value::Bool(false)) | ("||", Value::Bool(true)) => Ok(a),
                    ("&&" | "||", Value::Bool(_)) => value(b)?.truth().map(Value::Bool),
                    (op, a) => binary(op, a, value(b)?),
                }
            }
        }
    }
}
