//! Device functions of a translation unit, whose bodies are straight-line arithmetic on their
//! parameters.

use super::parse::Parser;
use super::value::{Result, Value};
use super::{Environment, Tree};
use gemm_dsl::ir::Ty;
use std::collections::{HashMap, HashSet};

/// Functions that a source defines, by name.
#[derive(Debug, Default)]
pub struct Unit(HashMap<String, Function>);

#[derive(Debug)]
struct Function {
    result: Ty,
    params: Vec<(Ty, String)>,
    body: Vec<Statement>,
}

#[derive(Debug)]
enum Statement {
    Declare { ty: Ty, name: String, constant: bool, value: Tree },
    Assign { name: String, value: Tree },
    Return(Tree),
}

const HEAD: &str = "__device__ __forceinline__ ";

impl Unit {
    /// Parses the functions of a source with the given names. Other functions are ignored, because
    /// they may use more of C.
    ///
    /// # Errors
    /// Returns a description of the fault in one of the given functions.
    pub fn parse(text: &str, wanted: &[&str]) -> Result<Self> {
        let without_comments = |line: &&str| !line.trim_start().starts_with("//");
        let mut unit = Self::default();
        for rest in text.split(HEAD).skip(1) {
            let (head, rest) = rest.split_once("\n{\n").ok_or("a head without a body")?;
            let (body, _) = rest.split_once("\n}\n").ok_or("a body without an end")?;
            let name = head.split('(').next().and_then(|head| head.split(' ').next_back());
            if !name.is_some_and(|name| wanted.contains(&name)) {
                continue;
            }
            let lines: Vec<&str> = body.lines().filter(without_comments).collect();
            let (name, function) = function(head, &lines.join("\n"))?;
            if unit.0.insert(name.clone(), function).is_some() {
                return Err(format!("`{name}` is defined twice"));
            }
        }
        Ok(unit)
    }

    /// Calls a function that the source defines.
    ///
    /// # Errors
    /// Returns an error if C does not define the result.
    pub fn call(&self, name: &str, args: &[Value]) -> Result<Value> {
        let function = self.0.get(name).ok_or(format!("there is no function `{name}`"))?;
        if args.len() != function.params.len() {
            return Err(format!("`{name}` of {} operands", args.len()));
        }
        let mut known = Environment::new();
        for (arg, (ty, param)) in args.iter().zip(&function.params) {
            // An `int` is widened to a required `long long`; all other conversions must be
            // explicit.
            let widened = match (ty, arg) {
                (&Ty::I64, Value::I32(_) | Value::Coordinate(_)) => arg.converted(Ty::I64)?,
                _ => of_type(*ty, *arg)?,
            };
            known.insert(param.clone(), widened);
        }
        let mut variables = HashSet::new();
        for statement in &function.body {
            match statement {
                Statement::Declare { ty, name, constant, value } => {
                    let value = of_type(*ty, value.value(&known, self)?)?;
                    if known.insert(name.clone(), value).is_some() {
                        return Err(format!("`{name}` is declared twice"));
                    }
                    if !constant {
                        variables.insert(name);
                    }
                }
                Statement::Assign { name, value } => {
                    if !variables.contains(name) {
                        return Err(format!("`{name}` is not a variable"));
                    }
                    let value = value.value(&known, self)?;
                    if known.insert(name.clone(), value).and_then(Value::ty) != value.ty() {
                        return Err(format!("{value:?} for `{name}`"));
                    }
                }
                Statement::Return(value) => {
                    return of_type(function.result, value.value(&known, self)?);
                }
            }
        }
        Err(format!("`{name}` returns nothing"))
    }
}

/// Checks that a value already has the type, because the source must convert explicitly.
fn of_type(ty: Ty, value: Value) -> Result<Value> {
    if value.ty() == Some(ty) { Ok(value) } else { Err(format!("{value:?} for {ty}")) }
}

/// Name of a function, and its definition.
fn function(head: &str, body: &str) -> Result<(String, Function)> {
    let mut parser = Parser::new(head);
    let result = parser.ty().ok_or("a result without a type")?;
    let name = parser.name()?;
    parser.expect("(")?;
    let mut params = Vec::new();
    while !parser.takes(")") {
        if !params.is_empty() {
            parser.expect(",")?;
        }
        params.push((parser.ty().ok_or("a parameter without a type")?, parser.name()?));
    }
    parser.end()?;
    let mut parser = Parser::new(body);
    let mut body = Vec::new();
    while !parser.peek().is_empty() {
        body.push(statement(&mut parser)?);
        parser.expect(";")?;
    }
    Ok((name, Function { result, params, body }))
}

fn statement(parser: &mut Parser) -> Result<Statement> {
    if parser.takes("return") {
        return parser.expression().map(Statement::Return);
    }
    let constant = parser.takes("const");
    if let Some(ty) = parser.ty() {
        let name = parser.name()?;
        parser.expect("=")?;
        return Ok(Statement::Declare { ty, name, constant, value: parser.expression()? });
    }
    let name = parser.name()?;
    if parser.takes("=") {
        return Ok(Statement::Assign { name, value: parser.expression()? });
    }
    let operator = parser.next();
    parser.expect("=")?;
    let (old, right) = (Tree::Name(name.clone()), parser.expression()?);
    let value = Tree::Binary(operator, Box::new(old), Box::new(right));
    Ok(Statement::Assign { name, value })
}
