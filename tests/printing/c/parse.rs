//! Grammar of C expressions, by precedence.

use super::Tree;
use super::value::{Result, Value};
use gemm_dsl::ir::Ty;

/// Binary operators of C, loosest first.
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

/// C types of values that support arithmetic.
const TYPES: [(&[&str], Ty); 6] = [
    (&["bool"], Ty::Bool),
    (&["int"], Ty::I32),
    (&["unsigned", "int"], Ty::U32),
    (&["long", "long"], Ty::I64),
    (&["size_t"], Ty::U64),
    (&["float"], Ty::F32),
];

/// Parses a whole text as one expression.
///
/// # Errors
/// Returns a description of a construct that C does not allow or this parser does not know.
pub fn parse(text: &str) -> Result<Tree> {
    let mut parser = Parser::new(text);
    let tree = parser.expression()?;
    parser.end()?;
    Ok(tree)
}

fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let len = if first.is_ascii_alphanumeric() || first == '_' {
            word(rest)
        } else {
            // Longest match, as in C: `--1` is a decrement.
            let long = ["<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "--", "++"];
            if long.iter().any(|token| rest.starts_with(token)) { 2 } else { first.len_utf8() }
        };
        tokens.push(rest[..len].to_owned());
        rest = rest[len..].trim_start();
    }
    tokens
}

/// Length of the name or number at the start. A number may have an exponent with a sign.
fn word(text: &str) -> usize {
    let is_number = text.starts_with(|c: char| c.is_ascii_digit()) && !text.starts_with("0x");
    let mut before = ' ';
    let ends = |c: char| {
        let signed = is_number && matches!(before, 'e' | 'E') && matches!(c, '+' | '-');
        before = c;
        !(signed || c.is_ascii_alphanumeric() || c == '_' || c == '.')
    };
    text.find(ends).unwrap_or(text.len())
}

/// Value of a literal, with the type that its form has in C.
fn number(token: &str) -> Result<Value> {
    let fault = |e: &dyn std::fmt::Display| format!("{token}: {e}");
    if let Some(digits) = token.strip_prefix("0x") {
        if let Some(digits) = digits.strip_suffix('u') {
            return u32::from_str_radix(digits, 16).map(Value::U32).map_err(|e| fault(&e));
        }
        let bits = u32::from_str_radix(digits, 16).map_err(|e| fault(&e))?;
        return i32::try_from(bits).map(Value::I32).or(Ok(Value::U32(bits)));
    }
    if let Some(digits) = token.strip_suffix("ull") {
        return digits.parse().map(Value::U64).map_err(|e| fault(&e));
    }
    if let Some(digits) = token.strip_suffix("ll") {
        return digits.parse().map(Value::I64).map_err(|e| fault(&e));
    }
    if let Some(digits) = token.strip_suffix('u') {
        return digits.parse().map(Value::U32).map_err(|e| fault(&e));
    }
    match token.strip_suffix('f') {
        // A number without a decimal point would not be a `float` in C.
        Some(digits) if digits.contains(['.', 'e']) => {
            digits.parse().map(f32::into).map_err(|e| fault(&e))
        }
        _ => token.parse().map(Value::I32).map_err(|e| fault(&e)),
    }
}

/// Text that is being parsed.
pub struct Parser {
    tokens: Vec<String>,
    at: usize,
}

impl Parser {
    pub fn new(text: &str) -> Self {
        Self { tokens: tokens(text), at: 0 }
    }

    /// Next token, or an empty string at the end.
    pub fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", String::as_str)
    }

    pub fn next(&mut self) -> String {
        let token = self.peek().to_owned();
        self.at += 1;
        token
    }

    /// Consumes the next token if it equals `token`. Returns true if so.
    pub fn takes(&mut self, token: &str) -> bool {
        let found = self.peek() == token;
        self.at += usize::from(found);
        found
    }

    pub fn expect(&mut self, token: &str) -> Result<()> {
        match self.takes(token) {
            true => Ok(()),
            false => Err(format!("`{}` instead of `{token}`", self.peek())),
        }
    }

    pub fn end(&self) -> Result<()> {
        match self.peek() {
            "" => Ok(()),
            rest => Err(format!("`{rest}` remains after the end")),
        }
    }

    /// Type at the current position.
    pub fn ty(&mut self) -> Option<Ty> {
        let rest = self.tokens.get(self.at..)?;
        let here = |words: &[&str]| {
            rest.iter().map(String::as_str).take(words.len()).eq(words.iter().copied())
        };
        let (words, ty) = TYPES.iter().find(|(words, _)| here(words))?;
        self.at += words.len();
        Some(*ty)
    }

    pub fn name(&mut self) -> Result<String> {
        let token = self.next();
        match token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            true => Ok(token),
            false => Err(format!("`{token}` instead of a name")),
        }
    }

    pub fn expression(&mut self) -> Result<Tree> {
        let condition = self.binary(0)?;
        if !self.takes("?") {
            return Ok(condition);
        }
        let yes = self.expression()?;
        self.expect(":")?;
        Ok(Tree::Ternary(Box::new([condition, yes, self.expression()?])))
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
        if self.takes("!") {
            return Ok(Tree::Unary('!', Box::new(self.unary()?)));
        }
        if self.takes("-") {
            return Ok(Tree::Unary('-', Box::new(self.unary()?)));
        }
        let start = self.at;
        if self.takes("(")
            && let Some(ty) = self.ty()
        {
            self.expect(")")?;
            return Ok(Tree::Cast(ty, Box::new(self.unary()?)));
        }
        self.at = start;
        self.primary()
    }

    fn primary(&mut self) -> Result<Tree> {
        if self.takes("(") {
            let inner = self.expression()?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.peek().starts_with(|c: char| c.is_ascii_digit()) {
            return number(&self.next()).map(Tree::Number);
        }
        let name = self.name()?;
        if !self.takes("(") {
            return Ok(Tree::Name(name));
        }
        let mut args = Vec::new();
        while !self.takes(")") {
            if !args.is_empty() {
                self.expect(",")?;
            }
            args.push(self.expression()?);
        }
        Ok(Tree::Call(name, args))
    }
}
