//! The rules of the IR. Only a [`VerifiedKernel`] reaches a back end, so a back end need not check.

use super::contract::Contract;
use super::names::is_free;
use super::{
    Access, Buffer, BufferId, Expr, Function, Kernel, Layout, Param, ParamKind, Space, Step, Stmt,
    Swizzle, Ty, Var,
};
use std::collections::HashSet;
use std::ops::Deref;
use thiserror::Error;

/// A kernel that satisfies every rule of the IR.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedKernel {
    kernel: Kernel,
    contract: Contract,
}

impl Deref for VerifiedKernel {
    type Target = Kernel;
    fn deref(&self) -> &Kernel {
        &self.kernel
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

/// The oldest architecture that NVRTC 13 compiles for, as in `sm_75`.
pub const OLDEST_ARCH: u32 = 75;
/// The most threads a block may have on any architecture.
pub const MAX_THREADS: u32 = crate::arch::BLOCK_THREADS;
/// The most shared memory a block may have on any architecture, in bytes (227 KiB, sm_90).
pub const MAX_SHARED_BYTES: u64 = crate::arch::LARGEST.shared_per_block;
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
            callable: 0,
        };
        let broken = |rule| IrError { kernel: kernel.name.clone(), rule };
        check.kernel().map_err(broken)?;
        let shared = shared_bytes(&kernel).map_err(broken)?;
        let arch = if kernel.copies_asynchronously() { 80 } else { OLDEST_ARCH };
        let shared = (shared, shared > STATIC_SHARED_BYTES);
        let contract = Contract::new(&kernel, shared, arch).map_err(broken)?;
        Ok(Self { kernel, contract })
    }

    /// What a launch must know of the kernel.
    pub fn contract(&self) -> &Contract {
        &self.contract
    }

    /// The kernel back, to change it: a test plants its faults this way.
    pub fn into_inner(self) -> Kernel {
        self.kernel
    }

    /// Bytes of shared memory, all arrays together, each starting on 16 bytes.
    pub fn shared_bytes(&self) -> u64 {
        self.contract.shared_bytes()
    }

    /// Whether the shared memory exceeds what a kernel may declare statically.
    pub fn shared_is_dynamic(&self) -> bool {
        self.shared_bytes() > STATIC_SHARED_BYTES
    }

    /// The oldest architecture that can run the kernel, as in `sm_80`.
    pub fn min_arch(&self) -> u32 {
        self.contract.min_arch()
    }
}

#[cfg(test)]
mod tests;
mod types;

type Checked<T = ()> = Result<T, String>;

fn shared_bytes(k: &Kernel) -> Checked<u64> {
    let mut total: u64 = 0;
    for buffer in k.buffers.iter().filter(|b| b.space == Space::Shared) {
        let mut bytes: u64 = buffer.elem.size().into();
        for dim in buffer.physical_dims().ok_or("a shared array is not strided")? {
            bytes = bytes.saturating_mul(constant(k, &dim, "a shared extent")?);
        }
        total = total.checked_next_multiple_of(16).unwrap_or(u64::MAX).saturating_add(bytes);
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
    /// How many of the functions may be applied: those declared before.
    callable: usize,
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
            if c.ty.is_index() {
                k.eval_const(&c.value).map_err(|e| format!("constant {}: {e}", c.name))?;
            }
        }
        for grid in &k.geometry.grid {
            require(self.ty(grid)? == Ty::U64, || "a grid extent is not U64".into())?;
        }
        for (id, buffer) in k.buffers.iter().enumerate() {
            self.buffer(buffer)?;
            self.bound(id, buffer)?;
        }
        let shared = shared_bytes(k)?;
        require(shared <= MAX_SHARED_BYTES, || format!("{shared} bytes of shared memory"))?;
        for (id, function) in k.functions.iter().enumerate() {
            self.callable = id;
            self.function(function)?;
        }
        self.callable = k.functions.len();
        self.block(&k.body)
    }

    /// A function is straight-line arithmetic over variables of its own.
    fn function(&mut self, function: &Function) -> Checked {
        let name = &function.name;
        let mut pure = true;
        let mut check = |e: &Expr| {
            e.visit(&mut |e| {
                pure &= match e {
                    Expr::Load(_) | Expr::Special(_) | Expr::Const(_) | Expr::Param(_) => false,
                    Expr::Call(f, _) => !f.row().warp_wide,
                    _ => true,
                }
            });
        };
        for stmt in &function.body {
            match stmt {
                Stmt::Let { value, .. } | Stmt::Mut { value, .. } | Stmt::Assign { value, .. } => {
                    check(value);
                }
                Stmt::Comment(_) => {}
                _ => return Err(format!("a statement in function {name}")),
            }
        }
        check(&function.value);
        require(pure, || format!("function {name} reads what is no parameter"))?;
        for param in &function.params {
            let decl = self.k.vars.get(param.id).ok_or("a parameter has no declaration")?;
            let fresh = decl.ty == param.ty && self.declared.insert(param.id);
            require(fresh, || format!("parameter {} of {name}", decl.name))?;
            self.unclaimed(&decl.name)?;
            self.visible.push(*param);
        }
        // Declarations see the parameters as a part of their own block.
        function.body.iter().try_for_each(|stmt| self.stmt(stmt))?;
        self.ty(&function.value)?;
        self.visible.clear();
        Ok(())
    }

    fn names(&self) -> Checked {
        let k = self.k;
        let mut seen = HashSet::new();
        let globals = k.params.iter().map(|p| &p.name).chain(k.consts.iter().map(|c| &c.name));
        let shared = k.buffers.iter().filter(|b| b.space == Space::Shared).map(|b| &b.name);
        let functions = k.functions.iter().map(|f| &f.name);
        for name in globals.chain(shared).chain(functions).chain([&k.name]) {
            require(is_free(name), || format!("`{name}` is no C++ identifier"))?;
            require(seen.insert(name), || format!("`{name}` is declared twice"))?;
        }
        let own = k.own_variables();
        for (local, own) in k.vars.iter().zip(own) {
            require(is_free(&local.name), || format!("`{}` is no identifier", local.name))?;
            // What a function names lies outside the kernel: it hides the functions alone.
            let shadows = match own {
                true => seen.contains(&local.name),
                false => k.functions.iter().any(|f| f.name == local.name),
            };
            require(!shadows, || format!("`{}` is shadowed", local.name))?;
        }
        Ok(())
    }

    fn buffer(&self, buffer: &Buffer) -> Checked {
        let name = &buffer.name;
        for dim in &buffer.dims {
            require(self.ty(dim)?.is_index(), || format!("an extent of {name} is no integer"))?;
            if buffer.space != Space::Global {
                constant(self.k, dim, name)?;
            }
        }
        match &buffer.layout {
            Layout::Array { order, pad, swizzle } => {
                require(buffer.space != Space::Global, || format!("{name} is global"))?;
                let mut sorted = order.clone();
                sorted.sort_unstable();
                require(sorted.into_iter().eq(0..buffer.dims.len()), || {
                    format!("the layout of {name} permutes other dimensions")
                })?;
                constant(self.k, pad, name)?;
                swizzle.map_or(Ok(()), |swizzle| self.swizzle(buffer, swizzle))
            }
            Layout::Pointer { into } => {
                let global = |b: &Buffer| matches!(b.layout, Layout::Strided { .. });
                require(self.k.buffers.get(into.id).is_some_and(global), || {
                    format!("{name} points into no global buffer")
                })?;
                buffer.dims.iter().try_for_each(|d| constant(self.k, d, name).map(drop))
            }
            Layout::Strided { strides } => {
                require(buffer.space == Space::Global, || format!("{name} is strided"))?;
                require(strides.len() == buffer.dims.len(), || format!("strides of {name}"))?;
                for stride in strides {
                    require(self.ty(stride)?.is_index(), || format!("a stride of {name}"))?;
                }
                let units = strides.iter().filter(|s| **s == Expr::I32(1)).count();
                require(units == 1, || format!("{units} strides of {name} are 1"))
            }
        }
    }

    /// Global memory is what a launch binds: the rule of spans holds of parameters alone.
    fn bound(&self, id: usize, buffer: &Buffer) -> Checked {
        let names =
            |p: &&Param| matches!(p.kind, ParamKind::Buffer { buffer, .. } if buffer.id == id);
        let params = self.k.params.iter().filter(names).count();
        let expected = usize::from(matches!(buffer.layout, Layout::Strided { .. }));
        require(params == expected, || format!("{} is {params} parameters", buffer.name))
    }

    /// A swizzle exchanges elements inside a row: the columns come in whole groups.
    fn swizzle(&self, buffer: &Buffer, swizzle: Swizzle) -> Checked {
        let name = &buffer.name;
        let Swizzle { bits, base, shift } = swizzle;
        require(bits + base < 32 && shift < 32, || format!("the swizzle of {name}"))?;
        let dims = buffer.physical_dims().unwrap_or_default();
        require(dims.len() >= 2, || format!("{name} has no rows to swizzle"))?;
        let last = dims.last().map_or(Ok(0), |d| constant(self.k, d, name))?;
        require(last.is_multiple_of(1 << (bits + base)), || {
            format!("rows of {name} hold {last} elements, not groups of 2^{}", bits + base)
        })?;
        require(buffer.space == Space::Shared, || format!("{name} is swizzled, but not shared"))
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
            || arrays.iter().any(|b| self.k.buffers[b.id].name == name);
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
                let decl = self.k.buffers.get(buffer.id).ok_or("an unknown register array")?;
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
                require(l.var.ty.is_index(), || "a loop variable is no integer".into())?;
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
                require(at.buffer == into && !at.is_vector(), || {
                    "a pointer into another buffer".into()
                })
            }
            Stmt::Advance { pointer, by } => {
                self.pointer(pointer)?;
                require(self.ty(by)?.is_index(), || "a distance is no integer".into())
            }
            Stmt::CopyAsync { target, source, guard } => {
                self.access(target)?;
                self.access(source)?;
                let space = |a: &Access| self.k.buffers[a.buffer.id].space;
                require(space(target) == Space::Shared && space(source) == Space::Global, || {
                    "an asynchronous copy goes from global to shared memory".into()
                })?;
                require(target.ty() == source.ty(), || "a copy of two types".into())?;
                let bytes = u32::from(target.lanes) * target.buffer.elem.size();
                require(matches!(bytes, 4 | 8 | 16), || format!("a copy of {bytes} bytes"))?;
                match guard {
                    Some(g) => {
                        require(self.ty(&g.cond)? == Ty::Bool, || "a guard is no Bool".into())
                    }
                    None => Ok(()),
                }
            }
            Stmt::Assume(cond) => {
                require(self.ty(cond)? == Ty::Bool, || "an assumption is no Bool".into())?;
                // What the compiler may leave out must touch nothing and wait for nobody.
                let mut acts = false;
                cond.visit(&mut |e| acts |= matches!(e, Expr::Load(_) | Expr::Call(..)));
                require(!acts, || "an assumption with a load or a call".into())
            }
            Stmt::Barrier(_) | Stmt::CopyCommit | Stmt::CopyWait { .. } | Stmt::Comment(_) => {
                Ok(())
            }
        }
    }
}
