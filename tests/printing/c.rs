//! C expressions over integers: a parser by precedence, and an evaluator with C's conversions.

use gemm_dsl::ir::Ty;
use std::collections::HashMap;

/// The values of names.
pub type Environment = HashMap<String, Value>;

/// A value with its C type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// `bool`
    Bool(bool),
    /// `int`
    I32(i32),
    /// `unsigned`: a coordinate, which may be converted and nothing else.
    U32(u32),
    /// `size_t`
    U64(u64),
}

use Value::{Bool, I32, U32, U64};

type Result<T> = std::result::Result<T, String>;

impl Value {
    /// The value as an initialiser of a variable.
    pub fn converted(self, ty: Ty) -> Result<Value> {
        match (ty, self) {
            (Ty::I32, U32(v)) => i32::try_from(v).map(I32).map_err(|e| e.to_string()),
            (Ty::I32, I32(_)) | (Ty::Bool, Bool(_)) => Ok(self),
            (Ty::I32, U64(v)) => i32::try_from(v).map(I32).map_err(|e| e.to_string()),
            (Ty::U64, _) => Ok(U64(self.wide()?)),
            _ => Err(format!("{self:?} as {ty:?}")),
        }
    }

    fn wide(self) -> Result<u64> {
        match self {
            I32(v) => Ok(v as i64 as u64),
            U32(v) => Ok(v.into()),
            U64(v) => Ok(v),
            Bool(_) => Err("arithmetic on a truth value".into()),
        }
    }

    fn truth(self) -> Result<bool> {
        match self {
            Bool(v) => Ok(v),
            other => Err(format!("{other:?} as a condition")),
        }
    }
}

/// A parsed expression.
#[derive(Clone, Debug)]
pub enum Tree {
    Number(Value),
    Name(String),
    Unary(char, Box<Tree>),
    Cast(Ty, Box<Tree>),
    Binary(String, Box<Tree>, Box<Tree>),
    Ternary(Box<[Tree; 3]>),
    Min(Box<[Tree; 2]>),
}

impl Tree {
    /// The value; an error where C gives none.
    pub fn value(&self, names: &Environment) -> Result<Value> {
        match self {
            Tree::Number(value) => Ok(*value),
            Tree::Name(name) => names.get(name).copied().ok_or(format!("`{name}` is unknown")),
            Tree::Unary('!', e) => Ok(Bool(!e.value(names)?.truth()?)),
            Tree::Unary(_, e) => match e.value(names)? {
                I32(v) => v.checked_neg().map(I32).ok_or("overflow".into()),
                other => Err(format!("-{other:?}")),
            },
            Tree::Cast(ty, e) => e.value(names)?.converted(*ty),
            Tree::Ternary(parts) => {
                let [c, a, b] = &**parts;
                if c.value(names)?.truth()? { a.value(names) } else { b.value(names) }
            }
            Tree::Min(parts) => {
                let [a, b] = &**parts;
                let (a, b) = (a.value(names)?, b.value(names)?);
                let less = binary("<", a, b)? == Bool(true);
                Ok(if less { a } else { b })
            }
            Tree::Binary(op, a, b) => {
                let a = a.value(names)?;
                match (op.as_str(), a) {
                    ("&&", Bool(false)) | ("||", Bool(true)) => Ok(a),
                    ("&&" | "||", Bool(_)) => b.value(names)?.truth().map(Bool),
                    (op, a) => binary(op, a, b.value(names)?),
                }
            }
        }
    }
}

/// An operator after the usual arithmetic conversions: an `int` beside a `size_t` becomes one.
fn binary(op: &str, a: Value, b: Value) -> Result<Value> {
    match (op, a, b) {
        (_, U32(_), _) | (_, _, U32(_)) => Err(format!("{a:?} {op} {b:?} is unsigned")),
        ("<<" | ">>", I32(a), b) => {
            let by = u32::try_from(b.wide()?).map_err(|e| e.to_string())?;
            let wide = i64::from(a);
            let shifted = if op == "<<" { wide.checked_shl(by) } else { wide.checked_shr(by) };
            let shifted = shifted.filter(|_| by < 32 && a >= 0).ok_or("a bad shift")?;
            i32::try_from(shifted).map(I32).map_err(|e| e.to_string())
        }
        ("<<" | ">>", a, b) => {
            let by = u32::try_from(b.wide()?).map_err(|e| e.to_string())?;
            let a = a.wide()?;
            let shifted = if op == "<<" { a.checked_shl(by) } else { a.checked_shr(by) };
            shifted.map(U64).ok_or("a bad shift".into())
        }
        (_, I32(a), I32(b)) => {
            let arithmetic = match op {
                "+" => a.checked_add(b),
                "-" => a.checked_sub(b),
                "*" => a.checked_mul(b),
                "/" => a.checked_div(b),
                "%" => a.checked_rem(b),
                "^" => Some(a ^ b),
                "|" => Some(a | b),
                "&" => Some(a & b),
                _ => return compare(op, &a, &b),
            };
            arithmetic.map(I32).ok_or(format!("{a} {op} {b} has no value"))
        }
        _ => {
            let (a, b) = (a.wide()?, b.wide()?);
            let arithmetic = match op {
                "+" => Some(a.wrapping_add(b)),
                "-" => Some(a.wrapping_sub(b)),
                "*" => Some(a.wrapping_mul(b)),
                "/" => a.checked_div(b),
                "%" => a.checked_rem(b),
                "^" => Some(a ^ b),
                "|" => Some(a | b),
                "&" => Some(a & b),
                _ => return compare(op, &a, &b),
            };
            arithmetic.map(U64).ok_or(format!("{a} {op} {b} has no value"))
        }
    }
}

fn compare<T: Ord>(op: &str, a: &T, b: &T) -> Result<Value> {
    Ok(Bool(match op {
        "<" => a < b,
        "<=" => a <= b,
        ">" => a > b,
        ">=" => a >= b,
        "==" => a == b,
        "!=" => a != b,
        _ => return Err(format!("operator {op}")),
    }))
}

/// The binary operators of C, loosest first.
const LEVELS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", "<=", ">", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

/// Reads a whole text as one expression.
///
/// # Errors
/// What C does not allow, or this parser does not know.
pub fn parse(text: &str) -> Result<Tree> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0 };
    let tree = parser.ternary()?;
    match parser.peek() {
        "" => Ok(tree),
        rest => Err(format!("`{rest}` is left over")),
    }
}

fn tokens(text: &str) -> Result<Vec<String>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let len = if word(first) {
            rest.find(|c| !word(c)).unwrap_or(rest.len())
        } else {
            // The longest match, as in C: `--1` is a decrement.
            let long = ["<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "--", "++"];
            if long.iter().any(|token| rest.starts_with(token)) { 2 } else { first.len_utf8() }
        };
        tokens.push(rest[..len].to_owned());
        rest = rest[len..].trim_start();
    }
    Ok(tokens)
}

struct Parser {
    tokens: Vec<String>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", String::as_str)
    }

    fn next(&mut self) -> String {
        let token = self.peek().to_owned();
        self.at += 1;
        token
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        let next = self.next();
        if next == token { Ok(()) } else { Err(format!("`{next}` where `{token}` should be")) }
    }

    fn ternary(&mut self) -> Result<Tree> {
        let condition = self.binary(0)?;
        if self.peek() != "?" {
            return Ok(condition);
        }
        self.next();
        let yes = self.ternary()?;
        self.expect(":")?;
        Ok(Tree::Ternary(Box::new([condition, yes, self.ternary()?])))
    }

    fn binary(&mut self, level: usize) -> Result<Tree> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.binary(level + 1)?;
        while operators.contains(&self.peek()) {
            let operator = self.next();
            let right = self.binary(level + 1)?;
            left = Tree::Binary(operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Tree> {
        let cast = |token: Option<&String>| match token.map(String::as_str) {
            Some("int") => Some(Ty::I32),
            Some("size_t") => Some(Ty::U64),
            _ => None,
        };
        match self.peek() {
            "!" | "-" => {
                let sign = self.next();
                let sign = if sign == "!" { '!' } else { '-' };
                Ok(Tree::Unary(sign, Box::new(self.unary()?)))
            }
            "(" if let Some(ty) = cast(self.tokens.get(self.at + 1)) => {
                self.at += 2;
                self.expect(")")?;
                Ok(Tree::Cast(ty, Box::new(self.unary()?)))
            }
            _ => self.primary(),
        }
    }

    fn primary(&mut self) -> Result<Tree> {
        let token = self.next();
        if token == "(" {
            let inner = self.ternary()?;
            self.expect(")")?;
            return Ok(inner);
        }
        if token == "min" {
            self.expect("(")?;
            let a = self.ternary()?;
            self.expect(",")?;
            let b = self.ternary()?;
            self.expect(")")?;
            return Ok(Tree::Min(Box::new([a, b])));
        }
        match token.chars().next() {
            Some(digit) if digit.is_ascii_digit() => {
                let value = match token.strip_suffix("ull") {
                    Some(digits) => digits.parse().map(U64),
                    None => token.parse().map(I32),
                };
                value.map(Tree::Number).map_err(|e| format!("{token}: {e}"))
            }
            Some(letter) if letter.is_ascii_alphabetic() || letter == '_' => Ok(Tree::Name(token)),
            _ => Err(format!("`{token}` where an operand should be")),
        }
    }
}
