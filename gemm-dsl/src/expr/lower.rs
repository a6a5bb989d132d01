//! Lowering to the IR: a closure becomes a device function of the kernel.

use super::library::{self, neg};
use super::tree::{Binary, Block, Node, NodeKind, Unary};
use super::{Closure, Float, Function, Type, Typing, literal};
use crate::ir::{
    Arith, BinaryOp, Cmp, Elem, Expr, FunctionId, Integer, KernelBuilder, Logic, Names, Ty,
    UnaryOp, Var,
};
use std::borrow::Cow;
use std::collections::BTreeSet;

impl Type {
    /// Returns the type of the IR.
    pub fn ty(self) -> Ty {
        match self {
            Type::F32 => Ty::F32,
            Type::F64 => Ty::F64,
            Type::Int => Ty::I64,
            Type::Bool => Ty::Bool,
        }
    }
}

/// Closure, lowered to a device function of a kernel.
#[derive(Clone, Debug)]
pub struct Lowered {
    function: FunctionId,
    /// Reserved integers that the function takes after the closure's parameters.
    integers: Vec<&'static str>,
}

impl Lowered {
    /// Device function of the closure.
    pub(crate) fn id(&self) -> FunctionId {
        self.function
    }

    /// Applies the closure to the arguments `params`. `integer` returns the value of a reserved
    /// name that the closure reads.
    pub fn apply(
        &self,
        params: impl IntoIterator<Item = Expr>,
        integer: impl Fn(&'static str) -> Expr,
    ) -> Expr {
        let integers = self.integers.iter().map(|name| integer(name).cast(Elem::I64));
        self.function.apply(params.into_iter().chain(integers))
    }
}

impl Closure {
    /// Returns the number of operations that compute the closure's values.
    pub(crate) fn operations(&self) -> u64 {
        let mut b = KernelBuilder::new(self.scope.key);
        let lowered = self.row_results().lower(&mut b);
        lowered.iter().map(|lowered| b.operations(lowered.function)).sum()
    }

    /// Declares a device function for each value of the closure, as [`Closure::lower`] does for
    /// the first. `described` returns the name and the meaning of some values after the first.
    pub(super) fn lower_values(
        &self,
        b: &mut KernelBuilder,
        described: impl Fn(usize) -> Option<(String, String)>,
    ) -> Vec<Lowered> {
        let first = self.lower(b);
        let others = (1..=self.others.len()).map(|nth| match &self.scope.typing {
            Some(typing) => {
                let (name, meaning) = described(nth).unwrap_or_else(|| {
                    let key = self.scope.key;
                    let meaning = format!("Value {} of `{key}` of the spec.", nth + 1);
                    (format!("{key}_{}", nth + 1), meaning)
                });
                self.lower_value(b, &name, typing, nth, &meaning)
            }
            None => {
                unreachable!("ExprScope: only an epilogue has several values, and it has types")
            }
        });
        [first].into_iter().chain(others).collect()
    }

    /// Declares the closure as a device function of the kernel, named after its key. If the types
    /// depend on the spec, use [`Closure::lower_as`]: this function then records a mistake, which
    /// [`KernelBuilder::finish`] reports.
    pub fn lower(&self, b: &mut KernelBuilder) -> Lowered {
        let key = self.scope.key;
        match &self.scope.typing {
            Some(typing) => self.lower_as(b, key, typing),
            None => {
                b.mistake(|| format!("`{key}` has no types of its own"));
                self.nothing(b, key, &Typing::F32)
            }
        }
    }

    /// Declares the closure as a device function of the kernel with this name. Its parameters are
    /// the closure's: floats in their own type, integers as [`Ty::I64`], booleans as
    /// [`Ty::Bool`]. The reserved integers that the closure reads follow. If [`Closure::check`]
    /// rejects the closure, [`KernelBuilder::finish`] reports a mistake.
    pub fn lower_as(&self, b: &mut KernelBuilder, name: &str, typing: &Typing) -> Lowered {
        // The head of the source contains the spec, and therefore the closure itself.
        let meaning = match self.others.as_slice() {
            [] => format!("`{}` of the spec.", self.scope.key),
            _ => format!("Value 1 of `{}` of the spec.", self.scope.key),
        };
        self.lower_value(b, name, typing, 0, &meaning)
    }

    /// Declares the closure as [`Closure::lower_as`] does, with this comment in the source.
    pub(crate) fn lower_described(
        &self,
        b: &mut KernelBuilder,
        name: &str,
        typing: &Typing,
        meaning: &str,
    ) -> Lowered {
        self.lower_value(b, name, typing, 0, meaning)
    }

    /// Declares the n-th value of the closure as a device function, with a comment on its meaning.
    fn lower_value(
        &self,
        b: &mut KernelBuilder,
        name: &str,
        typing: &Typing,
        nth: usize,
        meaning: &str,
    ) -> Lowered {
        if let Some(fault) = self.check(typing).first() {
            b.mistake(|| format!("{name}: {}", fault.message()));
            return self.nothing(b, name, typing);
        }
        if self.scope.conditions.is_some() {
            b.mistake(|| format!("{name}: a {} is evaluated on the host", self.scope.key));
            return self.nothing(b, name, typing);
        }
        let mut read = BTreeSet::new();
        // A device function must be declared before its first call.
        let mut library = Definitions::default();
        let body = match self.others.as_slice() {
            [] => Some(Cow::Borrowed(&self.body)),
            _ => self.value_block(nth).map(Cow::Owned),
        };
        let body = &*body.unwrap_or_else(|| unreachable!("lower_values: it has the n-th value"));
        body.visit(&mut |e| match &e.kind {
            NodeKind::Name(name) => _ = read.insert(name.as_str()),
            NodeKind::Call(function, _) => library.define(b, *function),
            _ => {}
        });
        let integers = self.scope.integers.iter().map(|(name, _)| *name);
        let integers = integers.filter(|name| read.contains(name));
        let integers: Vec<&'static str> = integers.collect();
        let params = self.typed(typing);
        let names: Vec<(&str, Ty)> =
            params.chain(integers.iter().map(|name| (*name, Ty::I64))).collect();
        let mut spelt = Names::without([name]);
        let params: Vec<(String, Ty)> =
            names.iter().map(|(name, ty)| (spelt.fresh(name), *ty)).collect();
        let params: Vec<(&str, Ty)> = params.iter().map(|(n, ty)| (n.as_str(), *ty)).collect();
        let function = b.function(name, &[meaning], &params, |b, vars| {
            let known = names.iter().map(|(name, _)| (*name).to_owned()).zip(vars.iter().copied());
            let known = known.collect();
            let float = typing.float;
            BodyLowering { b, float, library: &library, known, spelt }.block(body)
        });
        Lowered { function, integers }
    }

    /// Returns the parameters with their IR types.
    fn typed(&self, typing: &Typing) -> impl Iterator<Item = (&str, Ty)> {
        let params = self.params.iter().enumerate();
        params.map(|(n, param)| (param.name.as_str(), typing.param(n).ty().ty()))
    }

    /// Declares a placeholder function with the closure's parameters, after a mistake.
    fn nothing(&self, b: &mut KernelBuilder, name: &str, typing: &Typing) -> Lowered {
        let params: Vec<(&str, Ty)> = self.typed(typing).collect();
        let value = match typing.result {
            Type::F32 => Expr::F32(0.0),
            Type::F64 => Expr::F64(0.0),
            Type::Int => Expr::I64(0),
            Type::Bool => Expr::I64(0).lt(Expr::I64(0)),
        };
        let function = b.function(name, &[], &params, |_, _| value);
        Lowered { function, integers: Vec::new() }
    }
}

/// Functions of the language, with the device functions that implement them.
#[derive(Default)]
struct Definitions(Vec<(Function, FunctionId)>);

impl Definitions {
    fn define(&mut self, b: &mut KernelBuilder, function: Function) {
        if let library::Lowering::Library(define) = library::lowering(function)
            && self.defined(function).is_none()
        {
            self.0.push((function, define(b)));
        }
    }

    fn defined(&self, function: Function) -> Option<FunctionId> {
        self.0.iter().find(|(known, _)| *known == function).map(|(_, id)| *id)
    }
}

struct BodyLowering<'l> {
    b: &'l mut KernelBuilder,
    /// Type of literals with a point.
    float: Float,
    library: &'l Definitions,
    known: Vec<(String, Var)>,
    spelt: Names,
}

impl BodyLowering<'_> {
    /// Lowers a block. Definitions inside the branch of an `if` that is not taken are computed as
    /// well. No operation has side effects or traps, so the difference is not observable.
    fn block(&mut self, block: &Block) -> Expr {
        let outer = self.known.len();
        for definition in &block.lets {
            let value = self.node(&definition.value);
            let name = self.spelt.fresh(&definition.name);
            let var = self.b.let_(&name, value);
            self.known.push((definition.name.clone(), var));
        }
        let value = self.node(&block.value);
        self.known.truncate(outer);
        value
    }

    /// Binds `e` to a variable, unless it is a variable or a literal already.
    fn shared(&mut self, name: &str, e: Expr) -> Expr {
        if matches!(e, Expr::Var(_) | Expr::I64(_)) {
            return e;
        }
        let name = self.spelt.fresh(name);
        self.b.let_(&name, e).into()
    }

    fn node(&mut self, e: &Node) -> Expr {
        match &e.kind {
            NodeKind::Float(bits) => match self.float {
                Float::F32 => Expr::F32(literal::to_f32(*bits)),
                Float::F64 => Expr::F64(f64::from_bits(*bits)),
            },
            NodeKind::Int(value) => Expr::I64(*value),
            NodeKind::Name(name) => {
                match self.known.iter().rev().find(|(known, _)| known == name) {
                    Some((_, var)) => (*var).into(),
                    None => unreachable!("checked: {name} is known"),
                }
            }
            NodeKind::Unary(Unary::Neg, e) => match self.node(e) {
                Expr::F32(value) => Expr::F32(-value),
                Expr::F64(value) => Expr::F64(-value),
                Expr::I64(value) => Expr::I64(-value),
                e => neg(e),
            },
            NodeKind::Unary(Unary::Not, e) => Expr::Unary(UnaryOp::Not, Box::new(self.node(e))),
            NodeKind::Binary(op, a, b, _) => {
                let (a, b) = (self.node(a), self.node(b));
                Expr::binary(operator(*op), a, b)
            }
            NodeKind::If(cond, yes, no) => {
                let cond = self.node(cond);
                let (yes, no) = (self.block(yes), self.block(no));
                cond.select(yes, no)
            }
            NodeKind::Waves(..) => {
                unreachable!("lower_as: only conditions have it, and the host evaluates them")
            }
            NodeKind::Fold(..) => unreachable!("RowExpression: folds are parts of their own"),
            NodeKind::Next(_) | NodeKind::Pair(..) => {
                unreachable!("row_results: columns of a pair have names of their own")
            }
            NodeKind::Call(function, args) => {
                let args: Vec<Expr> = args.iter().map(|e| self.node(e)).collect();
                self.call(*function, args)
            }
        }
    }

    fn call(&mut self, function: Function, args: Vec<Expr>) -> Expr {
        let int = args.first().is_some_and(|e| e.ty() == Ty::I64);
        if int && function.converts_to().is_none() {
            return self.integer(function, args);
        }
        match (library::lowering(function), self.library.defined(function)) {
            (library::Lowering::InPlace(make), _) => in_place(make, args),
            (library::Lowering::Shared(make), _) => {
                in_place(make, args.into_iter().map(|e| self.shared("part", e)).collect())
            }
            (library::Lowering::Library(_), Some(defined)) => defined.apply(args),
            (library::Lowering::Library(_), None) => {
                unreachable!("Closure::lower_as: it defines all functions first")
            }
        }
    }
}

impl BodyLowering<'_> {
    /// Lowers a function call with integer arguments.
    fn integer(&mut self, function: Function, args: Vec<Expr>) -> Expr {
        let args: Vec<Expr> = args.into_iter().map(|e| self.shared("part", e)).collect();
        let less = |a: &Expr, b: &Expr| a.clone().lt(b.clone());
        match (function, args.as_slice()) {
            (Function::Min, [a, b]) => less(a, b).select(a.clone(), b.clone()),
            (Function::Max, [a, b]) => less(a, b).select(b.clone(), a.clone()),
            (Function::Abs, [x]) => less(x, &Expr::I64(0)).select(neg(x.clone()), x.clone()),
            (Function::Sign, [x]) => {
                let negative = less(x, &Expr::I64(0)).select(Expr::I64(-1), Expr::I64(0));
                less(&Expr::I64(0), x).select(Expr::I64(1), negative)
            }
            (Function::Clamp, [x, low, high]) => {
                let x = less(x, low).select(low.clone(), x.clone());
                let x = self.shared("part", x);
                less(&x, high).select(x.clone(), high.clone())
            }
            _ => unreachable!("checked: {function:?} takes no integers"),
        }
    }
}

/// Returns a function's expression of its arguments.
fn in_place(make: fn([Expr; 3]) -> Expr, args: Vec<Expr>) -> Expr {
    let mut args = args.into_iter();
    make([(); 3].map(|()| args.next().unwrap_or(Expr::I32(0))))
}

fn operator(op: Binary) -> BinaryOp {
    match op {
        Binary::Add => BinaryOp::Arith(Arith::Add),
        Binary::Sub => BinaryOp::Arith(Arith::Sub),
        Binary::Mul => BinaryOp::Arith(Arith::Mul),
        Binary::Div => BinaryOp::Arith(Arith::Div),
        Binary::Rem => BinaryOp::Integer(Integer::Rem),
        Binary::Lt => BinaryOp::Cmp(Cmp::Lt),
        Binary::Le => BinaryOp::Cmp(Cmp::Le),
        Binary::Gt => BinaryOp::Cmp(Cmp::Gt),
        Binary::Ge => BinaryOp::Cmp(Cmp::Ge),
        Binary::Eq => BinaryOp::Cmp(Cmp::Eq),
        Binary::Ne => BinaryOp::Cmp(Cmp::Ne),
        Binary::And => BinaryOp::Logic(Logic::And),
        Binary::Or => BinaryOp::Logic(Logic::Or),
    }
}
