//! Verification of the rules of the IR. Back ends accept only a [`VerifiedKernel`], so they need
//! not check the rules.

use super::contract::Contract;
use super::names::is_free;
use super::{BufferId, Expr, Function, Kernel, Space, Stmt, Ty, Var};
use crate::target::{arch, release};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Deref;
use thiserror::Error;

/// Kernel that obeys all rules of the IR.
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

/// Violation of a rule of the IR. It is a mistake of the code that used the
/// [`KernelBuilder`](super::KernelBuilder), or a bug of the generator if the kernel comes from a
/// spec.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "kernel `{kernel}` breaks a rule of the IR: {rule}. Fix the code that builds it; if it comes \
     from a spec, please report it"
)]
pub struct IrError {
    pub kernel: String,
    /// Broken rule, and the place of the violation.
    pub rule: String,
}

impl VerifiedKernel {
    /// Checks a kernel.
    ///
    /// # Errors
    /// Returns the first broken rule.
    pub fn new(kernel: Kernel) -> Result<Self, IrError> {
        let mut check = Verifier {
            k: &kernel,
            visible: Vec::new(),
            mutable: HashSet::new(),
            registers: Vec::new(),
            block: (0, 0),
            declared: HashSet::new(),
            callable: 0,
            named: HashMap::new(),
        };
        let broken = |rule| IrError { kernel: kernel.name.clone(), rule };
        check.kernel().map_err(broken)?;
        let shared = shared_bytes(&kernel).map_err(broken)?;
        let copies_boxes = kernel.copies_boxes() || kernel.has_warpgroups();
        let needs = [
            (kernel.copies_asynchronously(), arch::ASYNCHRONOUS_COPIES, release::OLDEST),
            (kernel.multiplies_matrices(), arch::TENSOR_CORES, release::OLDEST),
            (true, kernel.arch_of_intrinsics(), release::OLDEST),
            (copies_boxes, arch::TENSOR_COPIES, release::TENSOR_COPIES),
            (kernel.cluster > 1, arch::CLUSTERS, release::CLUSTERS),
            (kernel.stores_asynchronously(), arch::CLUSTERS, release::ASYNCHRONOUS_STORES),
            (kernel.arrives_relaxed(), arch::CLUSTERS, release::RELAXED_ARRIVALS),
        ];
        let needed = needs.into_iter().filter(|(is_needed, ..)| *is_needed);
        let min_arch = needed.clone().map(|(_, arch, _)| arch).max().unwrap_or(arch::OLDEST);
        let min_release = needed.map(|(.., release)| release).max().unwrap_or(release::OLDEST);
        let shared = (shared, shared > arch::STATIC_SHARED_BYTES);
        let contract = Contract::new(&kernel, shared, min_arch, min_release).map_err(broken)?;
        Ok(Self { kernel, contract })
    }

    /// Returns the kernel's requirements on a launch.
    pub fn contract(&self) -> &Contract {
        &self.contract
    }

    /// Returns the kernel for modification. Tests use this to inject faults.
    pub fn into_inner(self) -> Kernel {
        self.kernel
    }

    /// Shared memory of all arrays together, in bytes. Each array is aligned to 16 bytes.
    pub fn shared_bytes(&self) -> u64 {
        self.contract.shared_bytes
    }

    /// Returns true if the shared memory exceeds the limit of static shared memory.
    pub fn shared_is_dynamic(&self) -> bool {
        self.contract.dynamic_shared_bytes() > 0
    }

    /// Oldest compute capability that can run the kernel, for example 80 for `sm_80`.
    pub fn min_arch(&self) -> u32 {
        self.contract.min_arch
    }
}

mod asynchronous;
mod buffers;
mod cluster;
mod stmt;
mod sync;
#[cfg(test)]
mod tests;
mod types;

use buffers::shared_bytes;

type VerifyResult<T = ()> = Result<T, String>;

fn constant(k: &Kernel, expr: &Expr, what: &str) -> VerifyResult<u64> {
    let value = k.eval_const(expr).map_err(|e| format!("{what}: {e}"))?;
    u64::try_from(value).map_err(|_| format!("{what} is negative: {value}"))
}

fn require(ok: bool, rule: impl FnOnce() -> String) -> VerifyResult {
    if ok { Ok(()) } else { Err(rule()) }
}

struct Verifier<'a> {
    k: &'a Kernel,
    /// Variables in scope; those of the innermost block are last.
    visible: Vec<Var>,
    mutable: HashSet<usize>,
    registers: Vec<BufferId>,
    /// Indices in `visible` and in `registers` at which the innermost block starts.
    block: (usize, usize),
    declared: HashSet<usize>,
    /// Number of functions that may be called, which are the functions declared so far.
    callable: usize,
    /// Number of participating threads of each named barrier.
    named: HashMap<u32, u32>,
}

impl Verifier<'_> {
    fn kernel(&mut self) -> VerifyResult {
        let k = self.k;
        self.names()?;
        let threads = u64::from(k.geometry.block.0) * u64::from(k.geometry.block.1);
        require((1..=arch::BLOCK_THREADS.into()).contains(&threads), || {
            format!("{threads} threads")
        })?;
        if let Some(bounds) = &k.launch_bounds {
            let named = constant(k, bounds, "the launch bounds")?;
            require(named == threads, || {
                format!("launch bounds of {named} for {threads} threads")
            })?;
        }
        if let Some(name) = &k.cluster_name {
            let named = constant(k, name, "the number of blocks in a cluster")?;
            require(named == k.cluster.into(), || {
                format!("clusters of {named} for {} blocks", k.cluster)
            })?;
        }
        require(k.geometry.blocks_per_sm != Some(0), || "no block per SM".into())?;
        self.cluster()?;
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
        for decl in &k.mbarriers {
            self.mbarriers(decl)?;
        }
        self.tensor_maps()?;
        self.asynchronously_accessed()?;
        let shared = shared_bytes(k)?;
        require(shared <= arch::LARGEST.shared_per_block, || {
            format!("{shared} bytes of shared memory")
        })?;
        for (id, function) in k.functions.iter().enumerate() {
            self.callable = id;
            self.function(function)?;
        }
        self.callable = k.functions.len();
        self.block(&k.body)
    }

    /// Checks that a function is straight-line arithmetic on its own variables.
    fn function(&mut self, function: &Function) -> VerifyResult {
        let name = &function.name;
        let mut pure = true;
        let mut check = |e: &Expr| {
            e.visit(&mut |e| {
                pure &= match e {
                    Expr::Load(_) | Expr::Special(_) | Expr::Const(_) | Expr::Param(_) => false,
                    Expr::Call(f, _) => !f.info().warp_wide,
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
        require(pure, || format!("function {name} reads a value that is not a parameter"))?;
        for param in &function.params {
            let decl = self.k.vars.get(param.id).ok_or("a parameter has no declaration")?;
            let fresh = decl.ty == param.ty && self.declared.insert(param.id);
            require(fresh, || format!("parameter {} of {name}", decl.name))?;
            self.unclaimed(&decl.name)?;
            self.visible.push(*param);
        }
        // The body is checked in the scope of the parameters, so its declarations must not hide
        // them.
        function.body.iter().try_for_each(|stmt| self.stmt(stmt))?;
        self.ty(&function.value)?;
        self.visible.clear();
        Ok(())
    }

    fn names(&self) -> VerifyResult {
        let k = self.k;
        let mut seen = HashSet::new();
        let globals = k.params.iter().map(|p| &p.name).chain(k.consts.iter().map(|c| &c.name));
        let shared = k.buffers.iter().filter(|b| b.space == Space::Shared).map(|b| &b.name);
        let shared = shared.chain(k.mbarriers.iter().map(|decl| &decl.name));
        let functions = k.functions.iter().map(|f| &f.name);
        let sections: BTreeSet<&String> =
            k.sections().iter().map(|section| &section.name).collect();
        let functions = functions.chain(sections);
        for name in globals.chain(shared).chain(functions).chain([&k.name]) {
            require(is_free(name), || format!("`{name}` is not a C++ identifier"))?;
            require(seen.insert(name), || format!("`{name}` is declared twice"))?;
        }
        let own = k.own_variables();
        for (local, own) in k.vars.iter().zip(own) {
            require(is_free(&local.name), || format!("`{}` is not an identifier", local.name))?;
            // A function's variables are not in the kernel's scope, so they can only hide names of
            // functions.
            let shadows = match own {
                true => seen.contains(&local.name),
                false => k.functions.iter().any(|f| f.name == local.name),
            };
            require(!shadows, || format!("`{}` is shadowed", local.name))?;
        }
        Ok(())
    }
}
