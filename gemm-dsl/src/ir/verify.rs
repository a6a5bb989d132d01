//! The rules of the IR. Only a [`VerifiedKernel`] reaches a back end, so a back end need not check.

use super::{
    Access, BinaryOp, BufferId, Expr, Guard, Kernel, Layout, ParamKind, PointerRef, Space, Step,
    Stmt, Ty, UnaryOp, Var,
};
use crate::intrinsic::Semantics;
use std::collections::HashSet;
use std::ops::Deref;
use thiserror::Error;

/// A kernel that satisfies every rule of the IR.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedKernel(Kernel);

impl Deref for VerifiedKernel {
    type Target = Kernel;
    fn deref(&self) -> &Kernel {
        &self.0
    }
}

/// A violation of the IR's rules: a mistake in the generator, never in a user's spec.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the generator built an invalid kernel `{kernel}`: {rule}. Please report it.")]
pub struct IrError {
    /// The kernel.
    pub kernel: String,
    /// The rule and where it was broken.
    pub rule: String,
}

/// The most threads a block may have on any architecture.
pub const MAX_THREADS: u32 = 1024;
/// The most shared memory a block may have on any architecture, in bytes (227 KiB, sm_90).
pub const MAX_SHARED_BYTES: u64 = 227 * 1024;
/// The shared memory a block may declare statically, in bytes; beyond it memory is dynamic.
pub const STATIC_SHARED_BYTES: u64 = 48 * 1024;

impl VerifiedKernel {
    /// Checks a kernel.
    ///
    /// # Errors
    /// The first broken rule.
    pub fn new(kernel: Kernel) -> Result<Self, IrError> {
        let mut check = Check {
            k: &kernel,
            visible: Vec::new(),
            mutable: HashSet::new(),
            registers: Vec::new(),
            block: (0, 0),
            declared: HashSet::new(),
        };
        match check.kernel() {
            Ok(()) => Ok(Self(kernel)),
            Err(rule) => Err(IrError { kernel: kernel.name.clone(), rule }),
        }
    }

    /// The kernel back, to change it: a test plants its faults this way.
    pub fn into_inner(self) -> Kernel {
        self.0
    }

    /// Bytes of shared memory, all arrays together, each starting on 16 bytes.
    pub fn shared_bytes(&self) -> u64 {
        shared_bytes(&self.0).unwrap_or(0)
    }

    /// Whether the shared memory exceeds what a kernel may declare statically.
    pub fn shared_is_dynamic(&self) -> bool {
        self.shared_bytes() > STATIC_SHARED_BYTES
    }

    /// The oldest architecture that has all the kernel's intrinsics, as in `sm_80`.
    pub fn min_arch(&self) -> u32 {
        self.0.intrinsics().into_iter().map(|i| i.row().min_arch).max().unwrap_or(75)
    }
}

type Checked<T = ()> = Result<T, String>;

fn shared_bytes(k: &Kernel) -> Checked<u64> {
    let mut total: u64 = 0;
    for buffer in k.buffers.iter().filter(|b| b.space == Space::Shared) {
        let mut bytes: u64 = 4;
        for dim in buffer.physical_dims().ok_or("a shared array is not strided")? {
            bytes = bytes.saturating_mul(constant(k, &dim, "a shared extent")?);
        }
        total = total.div_ceil(16) * 16 + bytes;
    }
    Ok(total)
}

fn constant(k: &Kernel, expr: &Expr, what: &str) -> Checked<u64> {
    let value = k.eval_const(expr).map_err(|e| format!("{what}: {e}"))?;
    u64::try_from(value).map_err(|_| format!("{what} is negative: {value}"))
}

fn require(ok: bool, rule: impl FnOnce() -> String) -> Checked {
    if ok { Ok(()) } else { Err(rule()) }
}

struct Check<'a> {
    k: &'a Kernel,
    /// Variables in scope, innermost last.
    visible: Vec<Var>,
    mutable: HashSet<usize>,
    /// Register arrays in scope.
    registers: Vec<BufferId>,
    /// Where the innermost block starts in `visible` and in `registers`.
    block: (usize, usize),
    declared: HashSet<usize>,
}

impl Check<'_> {
    fn kernel(&mut self) -> Checked {
        let k = self.k;
        self.names()?;
        let threads = u64::from(k.geometry.block.0) * u64::from(k.geometry.block.1);
        require((1..=MAX_THREADS.into()).contains(&threads), || format!("{threads} threads"))?;
        if let Some(bounds) = &k.launch_bounds {
            let named = constant(k, bounds, "the launch bounds")?;
            require(named == threads, || {
                format!("launch bounds of {named} for {threads} threads")
            })?;
        }
        require(k.geometry.blocks_per_sm >= 1, || "no block per multiprocessor".into())?;
        for (i, c) in k.consts.iter().enumerate() {
            let mut earlier = true;
            c.value.visit(&mut |e| earlier &= !matches!(e, Expr::Const(other) if other.id >= i));
            require(earlier, || format!("constant {} reads a later one", c.name))?;
            require(self.ty(&c.value)? == c.ty, || {
                format!("constant {} has another type", c.name)
            })?;
            if c.ty.is_integer() {
                k.eval_const(&c.value).map_err(|e| format!("constant {}: {e}", c.name))?;
            }
        }
        for grid in &k.geometry.grid {
            require(self.ty(grid)? == Ty::U64, || "a grid extent is not U64".into())?;
        }
        for buffer in &k.buffers {
            self.buffer(buffer)?;
        }
        let shared = shared_bytes(k)?;
        require(shared <= MAX_SHARED_BYTES, || format!("{shared} bytes of shared memory"))?;
        self.block(&k.body)
    }

    fn names(&self) -> Checked {
        let k = self.k;
        let mut seen = HashSet::new();
        let globals = k.params.iter().map(|p| &p.name).chain(k.consts.iter().map(|c| &c.name));
        let shared = k.buffers.iter().filter(|b| b.space == Space::Shared).map(|b| &b.name);
        for name in globals.chain(shared).chain([&k.name]) {
            require(is_identifier(name), || format!("`{name}` is no C++ identifier"))?;
            require(seen.insert(name), || format!("`{name}` is declared twice"))?;
        }
        for local in &k.vars {
            require(is_identifier(&local.name), || format!("`{}` is no identifier", local.name))?;
            require(!seen.contains(&local.name), || format!("`{}` is shadowed", local.name))?;
        }
        Ok(())
    }

    fn buffer(&self, buffer: &super::Buffer) -> Checked {
        let name = &buffer.name;
        for dim in &buffer.dims {
            require(self.ty(dim)?.is_integer(), || format!("an extent of {name} is no integer"))?;
            if buffer.space != Space::Global {
                constant(self.k, dim, name)?;
            }
        }
        match &buffer.layout {
            Layout::Array { order, pad } => {
                require(buffer.space != Space::Global, || format!("{name} is global"))?;
                let mut sorted = order.clone();
                sorted.sort_unstable();
                require(sorted.into_iter().eq(0..buffer.dims.len()), || {
                    format!("the layout of {name} permutes other dimensions")
                })?;
                constant(self.k, pad, name).map(drop)
            }
            Layout::Pointer { into } => {
                let global = |b: &super::Buffer| matches!(b.layout, Layout::Strided { .. });
                require(self.k.buffers.get(into.0).is_some_and(global), || {
                    format!("{name} points into no global buffer")
                })?;
                buffer.dims.iter().try_for_each(|d| constant(self.k, d, name).map(drop))
            }
            Layout::Strided { strides } => {
                require(buffer.space == Space::Global, || format!("{name} is strided"))?;
                require(strides.len() + 1 == buffer.dims.len(), || format!("strides of {name}"))?;
                for stride in strides {
                    require(self.ty(stride)?.is_integer(), || format!("a stride of {name}"))?;
                }
                Ok(())
            }
        }
    }

    fn block(&mut self, block: &[Stmt]) -> Checked {
        let outer = self.block;
        self.block = (self.visible.len(), self.registers.len());
        for stmt in block {
            self.stmt(stmt)?;
        }
        self.visible.truncate(self.block.0);
        self.registers.truncate(self.block.1);
        self.block = outer;
        Ok(())
    }

    fn declare(&mut self, var: Var, value: &Expr) -> Checked {
        let decl = self.k.vars.get(var.id).ok_or("a variable has no declaration")?;
        let name = &decl.name;
        require(self.declared.insert(var.id), || format!("{name} is declared twice"))?;
        require(self.ty(value)? == var.ty && decl.ty == var.ty, || format!("the type of {name}"))?;
        self.unclaimed(name)?;
        self.visible.push(var);
        Ok(())
    }

    /// A block declares a name once; an inner block may hide it.
    fn unclaimed(&self, name: &str) -> Checked {
        let (vars, arrays) = (&self.visible[self.block.0..], &self.registers[self.block.1..]);
        let clash = vars.iter().any(|v| self.k.vars[v.id].name == name)
            || arrays.iter().any(|b| self.k.buffers[b.0].name == name);
        require(!clash, || format!("{name} is declared twice in a block"))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Checked {
        match stmt {
            Stmt::Let { var, value } => self.declare(*var, value),
            Stmt::Mut { var, value } => {
                self.declare(*var, value)?;
                self.mutable.insert(var.id);
                Ok(())
            }
            Stmt::Assign { var, value } => {
                let ty = self.ty(&Expr::Var(*var))?;
                require(self.mutable.contains(&var.id), || {
                    format!("{} is not mutable", self.k.vars[var.id].name)
                })?;
                require(self.ty(value)? == ty, || "an assignment of another type".into())
            }
            Stmt::Registers { buffer, .. } => {
                let decl = self.k.buffers.get(buffer.0).ok_or("an unknown register array")?;
                let local =
                    decl.space == Space::Register || matches!(decl.layout, Layout::Pointer { .. });
                require(local, || format!("{} in a body", decl.name))?;
                self.unclaimed(&decl.name)?;
                self.registers.push(*buffer);
                Ok(())
            }
            Stmt::Store { target, value } => {
                let ty = self.access(target)?;
                self.writable(target)?;
                require(self.ty(value)? == ty, || "a store of another type".into())
            }
            Stmt::If { cond, then, otherwise } => {
                require(self.ty(cond)? == Ty::Bool, || "a condition is no Bool".into())?;
                self.block(then)?;
                self.block(otherwise)
            }
            Stmt::For(l) => {
                let outer = self.visible.len();
                self.declare(l.var, &l.from)?;
                require(l.var.ty.is_integer(), || "a loop variable is no integer".into())?;
                require(self.ty(&l.test)? == Ty::Bool, || "a loop test is no Bool".into())?;
                let (Step::Add(by) | Step::Sub(by) | Step::Mul(by) | Step::Div(by)) = &l.step;
                require(self.ty(by)? == l.var.ty, || "a loop step of another type".into())?;
                self.block(&l.body)?;
                self.visible.truncate(outer);
                Ok(())
            }
            Stmt::Point { pointer, at } => {
                let into = self.pointer(pointer)?;
                self.access(at)?;
                require(at.buffer == into && at.lanes == 1, || {
                    "a pointer into another buffer".into()
                })
            }
            Stmt::Advance { pointer, by } => {
                self.pointer(pointer)?;
                require(self.ty(by)?.is_integer(), || "a distance is no integer".into())
            }
            Stmt::CopyAsync { target, source, guard } => {
                self.access(target)?;
                self.access(source)?;
                let space = |a: &Access| self.k.buffers[a.buffer.0].space;
                require(space(target) == Space::Shared && space(source) == Space::Global, || {
                    "an asynchronous copy goes from global to shared memory".into()
                })?;
                require(target.lanes == source.lanes, || "a copy of two widths".into())?;
                match guard {
                    Some(g) => {
                        require(self.ty(&g.cond)? == Ty::Bool, || "a guard is no Bool".into())
                    }
                    None => Ok(()),
                }
            }
            Stmt::Barrier(_) | Stmt::CopyCommit | Stmt::CopyWait { .. } | Stmt::Comment(_) => {
                Ok(())
            }
        }
    }

    /// The buffer that a pointer in scope points into.
    fn pointer(&self, pointer: &PointerRef) -> Checked<BufferId> {
        let buffer = self.k.buffers.get(pointer.buffer.0).ok_or("an unknown pointer")?;
        let name = &buffer.name;
        let Layout::Pointer { into } = buffer.layout else {
            return Err(format!("{name} is no pointer"));
        };
        require(self.registers.contains(&pointer.buffer), || format!("{name} out of scope"))?;
        require(pointer.index.len() == buffer.dims.len(), || format!("the rank of {name}"))?;
        for index in &pointer.index {
            require(self.ty(index)?.is_integer(), || format!("an index of {name}"))?;
        }
        Ok(into)
    }

    fn writable(&self, access: &Access) -> Checked {
        let input = self.k.params.iter().any(|p| {
            matches!(p.kind, ParamKind::Buffer { buffer, operand: super::Operand::Input(_) }
                if buffer == access.buffer)
        });
        let pointer = self.k.buffers.get(access.buffer.0);
        let pointer = pointer.is_some_and(|b| matches!(b.layout, Layout::Pointer { .. }));
        require(!input && !pointer, || {
            format!("{} is read-only", self.k.buffers[access.buffer.0].name)
        })
    }

    fn access(&self, access: &Access) -> Checked<Ty> {
        let buffer = self.k.buffers.get(access.buffer.0).ok_or("an unknown buffer")?;
        let name = &buffer.name;
        let pointer = matches!(buffer.layout, Layout::Pointer { .. });
        if buffer.space == Space::Register || pointer {
            require(self.registers.contains(&access.buffer), || format!("{name} out of scope"))?;
        }
        let rank = buffer.dims.len() + usize::from(pointer);
        require(access.index.len() == rank, || format!("the rank of {name}"))?;
        for index in &access.index {
            require(self.ty(index)?.is_integer(), || format!("an index of {name}"))?;
        }
        require(matches!(access.lanes, 1 | 4), || format!("an access of {} lanes", access.lanes))?;
        if let (4, Some(dims)) = (access.lanes, buffer.physical_dims()) {
            let last = dims.last().map_or(Ok(0), |d| constant(self.k, d, name))?;
            require(last.is_multiple_of(4), || format!("rows of {name} hold {last} elements"))?;
        }
        Ok(access.ty())
    }

    /// The type of an expression whose parts fit together.
    fn ty(&self, expr: &Expr) -> Checked<Ty> {
        match expr {
            Expr::I32(_) | Expr::U64(_) | Expr::F32(_) | Expr::Special(_) => {}
            Expr::Const(c) => {
                let known = self.k.consts.get(c.id).is_some_and(|d| d.ty == c.ty);
                require(known, || "an unknown constant".into())?;
            }
            Expr::Param(p) => {
                let known =
                    self.k.params.get(p.param).is_some_and(
                        |d| matches!(d.kind, ParamKind::Scalar { ty, .. } if ty == p.ty),
                    );
                require(known, || "an unknown parameter".into())?;
            }
            Expr::Var(v) => require(self.visible.contains(v), || {
                let name = self.k.vars.get(v.id).map_or("?", |d| &d.name);
                format!("variable {name} is out of scope")
            })?,
            Expr::Unary(op, e) => {
                let ty = self.ty(e)?;
                let fits = match op {
                    UnaryOp::Not => ty == Ty::Bool,
                    UnaryOp::Neg => matches!(ty, Ty::I32 | Ty::F32),
                };
                require(fits, || format!("{op:?} of {ty:?}"))?;
            }
            Expr::Binary(op, a, b) => {
                use BinaryOp::{Add, And, BitAnd, Div, Mul, Or, Rem, Shl, Shr, Sub, Xor};
                let (a, b) = (self.ty(a)?, self.ty(b)?);
                let fits = match op {
                    And | Or => a == Ty::Bool,
                    Rem | Xor | BitAnd | Shl | Shr => a.is_integer(),
                    Add | Sub | Mul | Div => a.is_integer() || a == Ty::F32,
                    _ => a.is_integer() || a == Ty::F32,
                };
                require(fits && a == b, || format!("{op:?} of {a:?} and {b:?}"))?;
            }
            Expr::Select(c, a, b) => {
                let (c, a, b) = (self.ty(c)?, self.ty(a)?, self.ty(b)?);
                require(c == Ty::Bool && a == b, || format!("select of {a:?} and {b:?}"))?;
            }
            Expr::Cast(ty, e) => {
                let from = self.ty(e)?;
                require(from.is_integer() && ty.is_integer(), || format!("cast {from:?} {ty:?}"))?;
            }
            Expr::Load(access) => return self.access(access),
            Expr::Call(f, args) => {
                let row = f.row();
                let tys = args.iter().map(|a| self.ty(a)).collect::<Checked<Vec<Ty>>>()?;
                let callable = !matches!(row.semantics, Semantics::Copy);
                require(callable && tys == row.operands, || format!("{} of {tys:?}", row.cuda))?;
            }
            Expr::Pack(parts) => {
                for part in parts.iter() {
                    require(self.ty(part)? == Ty::F32, || "a part of a vector".into())?;
                }
            }
            Expr::Lane(e, lane) => {
                require(self.ty(e)? == Ty::F32x4 && *lane < 4, || "a lane of a vector".into())?;
            }
        }
        Ok(expr.ty())
    }
}

/// Whether a name can stand for a kernel, a parameter or a variable in CUDA C.
pub fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    let head = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    head && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_') && !is_reserved(name)
}

/// Whether CUDA C++ gives the name a meaning of its own.
pub fn is_reserved(name: &str) -> bool {
    const KEYWORDS: &[&str] = &[
        "alignas",
        "alignof",
        "and",
        "and_eq",
        "asm",
        "auto",
        "bitand",
        "bitor",
        "bool",
        "break",
        "case",
        "catch",
        "char",
        "char16_t",
        "char32_t",
        "char8_t",
        "class",
        "co_await",
        "co_return",
        "co_yield",
        "compl",
        "concept",
        "const",
        "const_cast",
        "consteval",
        "constexpr",
        "constinit",
        "continue",
        "decltype",
        "default",
        "delete",
        "do",
        "double",
        "dynamic_cast",
        "else",
        "enum",
        "explicit",
        "export",
        "extern",
        "false",
        "float",
        "for",
        "friend",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "mutable",
        "namespace",
        "new",
        "noexcept",
        "not",
        "not_eq",
        "nullptr",
        "operator",
        "or",
        "or_eq",
        "private",
        "protected",
        "public",
        "register",
        "reinterpret_cast",
        "requires",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "static_assert",
        "static_cast",
        "struct",
        "switch",
        "template",
        "this",
        "thread_local",
        "throw",
        "true",
        "try",
        "typedef",
        "typeid",
        "typename",
        "union",
        "unsigned",
        "using",
        "virtual",
        "void",
        "volatile",
        "wchar_t",
        "while",
        "xor",
        "xor_eq",
        // CUDA's own names, and functions that the text calls.
        "blockDim",
        "blockIdx",
        "gridDim",
        "threadIdx",
        "warpSize",
        "size_t",
        "float2",
        "float3",
        "float4",
        "dim3",
        "main",
        "fmaf",
        "fmaxf",
        "fminf",
        "make_float4",
        "load4",
        "store4",
        "min",
        "shared_memory",
        "maximum",
        "minimum",
        "copy_async_4",
        "copy_async_16",
        "copy_async_4_or_zero",
        "copy_async_16_or_zero",
        "copy_async_4_if",
        "copy_async_16_if",
        "copy_commit",
        "copy_wait",
    ];
    KEYWORDS.contains(&name) || name.starts_with("__")
}

impl Kernel {
    /// The intrinsics that the kernel uses, sorted.
    pub fn intrinsics(&self) -> Vec<super::Intrinsic> {
        use super::Intrinsic as I;
        let mut found = std::collections::BTreeSet::new();
        let mut stmts: Vec<&Stmt> = self.body.iter().collect();
        while let Some(stmt) = stmts.pop() {
            stmt.visit_exprs(&mut |e| {
                if let Expr::Call(f, _) = e {
                    found.insert(*f);
                }
            });
            match stmt {
                Stmt::If { then, otherwise, .. } => stmts.extend(then.iter().chain(otherwise)),
                Stmt::For(l) => stmts.extend(&l.body),
                Stmt::CopyAsync { target, guard, .. } => {
                    _ = found.insert(match (target.lanes, guard) {
                        (4, None) => I::CopyAsync16,
                        (4, Some(Guard { or_zero: true, .. })) => I::CopyAsync16Guarded,
                        (4, Some(_)) => I::CopyAsync16If,
                        (_, None) => I::CopyAsync4,
                        (_, Some(Guard { or_zero: true, .. })) => I::CopyAsync4Guarded,
                        (_, Some(_)) => I::CopyAsync4If,
                    })
                }
                Stmt::CopyCommit => _ = found.insert(I::CopyCommit),
                Stmt::CopyWait { .. } => _ = found.insert(I::CopyWait),
                _ => {}
            }
        }
        found.into_iter().collect()
    }
}

impl Stmt {
    /// Visits the expressions of this statement itself, not those of the blocks inside it.
    pub fn visit_exprs<'a>(&'a self, f: &mut impl FnMut(&'a Expr)) {
        let index = |a: &'a Access, f: &mut dyn FnMut(&'a Expr)| {
            a.index.iter().for_each(|e| e.visit(&mut |e| f(e)));
        };
        match self {
            Stmt::Let { value, .. } | Stmt::Mut { value, .. } | Stmt::Assign { value, .. } => {
                value.visit(f);
            }
            Stmt::Store { target, value } => {
                index(target, f);
                value.visit(f);
            }
            Stmt::If { cond, .. } => cond.visit(f),
            Stmt::For(l) => {
                l.from.visit(f);
                l.test.visit(f);
                let (Step::Add(by) | Step::Sub(by) | Step::Mul(by) | Step::Div(by)) = &l.step;
                by.visit(f);
            }
            Stmt::CopyAsync { target, source, guard } => {
                index(target, f);
                index(source, f);
                if let Some(guard) = guard {
                    guard.cond.visit(f);
                }
            }
            Stmt::Point { pointer, at } => {
                pointer.index.iter().for_each(|e| e.visit(f));
                index(at, f);
            }
            Stmt::Advance { pointer, by } => {
                pointer.index.iter().for_each(|e| e.visit(f));
                by.visit(f);
            }
            Stmt::Registers { .. }
            | Stmt::Barrier(_)
            | Stmt::CopyCommit
            | Stmt::CopyWait { .. }
            | Stmt::Comment(_) => {}
        }
    }
}
