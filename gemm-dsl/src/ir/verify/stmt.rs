//! Rules of statements: scopes, declarations and operands.

use super::{Verifier, VerifyResult, constant, require, sync};
use crate::ir::{
    Access, BufferId, BufferLayout, Change, Elem, Expr, Guard, LoadMatrix, Loop, Mma, Scope,
    Section, Space, Stmt, Ty, Var,
};
use crate::target::arch::WARP;

impl Verifier<'_> {
    pub(super) fn block(&mut self, block: &[Stmt]) -> VerifyResult {
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

    fn declare(&mut self, var: Var, value: &Expr) -> VerifyResult {
        let ty = self.ty(value)?;
        self.shows(var, value)?;
        self.declare_of(var, ty)
    }

    /// Checks that the initial value does not contain a variable that the declaration hides. In C,
    /// the name would refer to the new variable even inside its initialiser.
    fn shows(&self, var: Var, value: &Expr) -> VerifyResult {
        let name = self.k.vars.get(var.id).map(|decl| &decl.name);
        let mut hides = false;
        value.visit(&mut |e| {
            let used = match e {
                Expr::Var(other) => self.k.vars.get(other.id).map(|decl| &decl.name),
                Expr::Load(access) => self.k.buffers.get(access.buffer.id).map(|decl| &decl.name),
                _ => None,
            };
            hides |= used.is_some() && used == name;
        });
        require(!hides, || {
            format!(
                "{} is computed from the variable that it shadows",
                name.map_or("", |name| name)
            )
        })
    }

    pub(super) fn declare_of(&mut self, var: Var, ty: Ty) -> VerifyResult {
        let decl = self.k.vars.get(var.id).ok_or("a variable has no declaration")?;
        let name = &decl.name;
        require(self.declared.insert(var.id), || format!("{name} is declared twice"))?;
        require(ty == var.ty && decl.ty == var.ty, || format!("the type of {name}"))?;
        self.unclaimed(name)?;
        self.visible.push(var);
        Ok(())
    }

    /// Checks that a block declares a name only once. An inner block may hide the name.
    pub(super) fn unclaimed(&self, name: &str) -> VerifyResult {
        let (vars, arrays) = (&self.visible[self.block.0..], &self.registers[self.block.1..]);
        let clash = vars.iter().any(|v| self.k.vars[v.id].name == name)
            || arrays.iter().any(|b| self.k.buffers[b.id].name == name);
        require(!clash, || format!("{name} is declared twice in a block"))
    }

    pub(super) fn stmt(&mut self, stmt: &Stmt) -> VerifyResult {
        match stmt {
            Stmt::Let { var, value } => {
                self.declare(*var, value)?;
                let decl = &self.k[*var];
                require(!decl.is_unsigned || matches!(value, Expr::Special(_)), || {
                    format!("{} is unsigned and no coordinate", decl.name)
                })
            }
            Stmt::Mut { var, value } => {
                self.declare(*var, value)?;
                let decl = &self.k[*var];
                require(!decl.is_unsigned, || format!("{} is unsigned and changes", decl.name))?;
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
            Stmt::Registers { buffer, .. } => self.registers_of(buffer),
            Stmt::Choose { buffer, nth } => self.choose(buffer, nth),
            Stmt::Store { target, value } => {
                let ty = self.access(target)?;
                self.writable(target)?;
                require(is_stored_as(self.ty(value)?, ty), || "a store of another type".into())
            }
            Stmt::StoreRemote { block, target, value, barrier } => {
                self.store_remote(block, target, value, barrier.as_ref())
            }
            Stmt::If { cond, then, otherwise } => {
                require(self.ty(cond)? == Ty::Bool, || "a condition is not Bool".into())?;
                self.block(then)?;
                self.block(otherwise)
            }
            Stmt::For(l) => self.for_loop(l),
            Stmt::Section(section) => self.section(section),
            Stmt::Point { pointer, at } => {
                let into = self.pointer(pointer)?;
                self.access(at)?;
                require(at.buffer == into && !at.is_vector(), || {
                    "a pointer into another buffer".into()
                })
            }
            Stmt::Advance { pointer, by } => {
                self.pointer(pointer)?;
                require(self.ty(by)?.is_index(), || "a distance is not an integer".into())
            }
            Stmt::CopyAsync { target, source, guard } => {
                self.copy_async(target, source, guard.as_ref())
            }
            Stmt::Barrier(scope) => {
                require(*scope != Scope::Device, || "a barrier of all blocks".into())
            }
            Stmt::NamedBarrier { id, threads, .. } => self.named_barrier(*id, *threads),
            Stmt::Fence { order, scope } => sync::fence(*order, *scope),
            Stmt::Atomic(atomic) => self.atomic(atomic),
            Stmt::CopyWait { pending } => {
                require(self.ty(pending)? == Ty::I32, || {
                    "the number of groups in flight is not an I32".into()
                })?;
                constant(self.k, pending, "the groups in flight").map(drop)
            }
            Stmt::Mma(Mma { format: _, d, a, b }) => {
                self.fragment(d, Elem::F32, Mma::OF_D)?;
                self.fragment(a, Elem::U32, Mma::OF_A)?;
                self.fragment(b, Elem::U32, Mma::OF_B)?;
                self.whole_warps()
            }
            Stmt::LoadMatrix(load) => self.load_matrix(load),
            Stmt::Mbarrier(barrier) => self.mbarrier(barrier),
            Stmt::TensorCopy(copy) => self.tensor_copy(copy),
            Stmt::Wgmma(wgmma) => self.wgmma(wgmma),
            Stmt::WgmmaSync(sync) => self.wgmma_sync(sync),
            Stmt::RegisterLimit(limit) => self.register_limit(*limit),
            Stmt::ProxyFence(_) | Stmt::CopyCommit | Stmt::Comment(_) => Ok(()),
        }
    }

    /// Declares a register array, or pointers.
    fn registers_of(&mut self, buffer: &BufferId) -> VerifyResult {
        let decl = self.k.buffers.get(buffer.id).ok_or("an unknown register array")?;
        let local =
            decl.space == Space::Register || matches!(decl.layout, BufferLayout::Pointer { .. });
        require(local, || format!("{} in a body", decl.name))?;
        self.unclaimed(&decl.name)?;
        self.registers.push(*buffer);
        Ok(())
    }

    /// Checks the selection of an array of a list.
    fn choose(&mut self, buffer: &BufferId, nth: &Expr) -> VerifyResult {
        let decl = self.k.buffers.get(buffer.id).ok_or("an unknown array of a list")?;
        let chosen = matches!(decl.layout, BufferLayout::OfList { .. });
        require(chosen, || format!("{} is chosen of no list", decl.name))?;
        require(self.ty(nth)?.is_index(), || format!("which array {} is", decl.name))?;
        let fixed = match nth {
            Expr::Var(var) => !self.mutable.contains(&var.id),
            Expr::I32(_) | Expr::U64(_) | Expr::Const(_) => true,
            _ => false,
        };
        require(fixed, || format!("which array {} is may change", decl.name))?;
        self.unclaimed(&decl.name)?;
        self.registers.push(*buffer);
        Ok(())
    }

    /// Checks a section. Its function can access variables, arrays and pointers of the kernel.
    fn section(&mut self, section: &Section) -> VerifyResult {
        let Section { name, params, body, .. } = section;
        let declares = |stmt: &Stmt| matches!(stmt, Stmt::Let { .. });
        let are_params = body.get(..*params).is_some_and(|params| params.iter().all(declares));
        require(are_params, || format!("the parameters of {name}"))?;
        let mut nested = false;
        body.iter().for_each(|stmt| {
            stmt.visit(&mut |stmt| nested |= matches!(stmt, Stmt::Section(_)));
        });
        require(!nested, || format!("a section in section {name}"))?;
        self.block(body)
    }

    fn for_loop(&mut self, l: &Loop) -> VerifyResult {
        let outer = self.visible.len();
        self.declare(l.var, &l.from)?;
        require(l.var.ty.is_index(), || "a loop variable is not an integer".into())?;
        require(self.ty(&l.test)? == Ty::Bool, || "a loop test is not Bool".into())?;
        let (Change::Add(by) | Change::Sub(by) | Change::Mul(by) | Change::Div(by)) = &l.change;
        require(self.ty(by)? == l.var.ty, || "a loop step of another type".into())?;
        self.block(&l.body)?;
        self.visible.truncate(outer);
        Ok(())
    }

    /// Checks an asynchronous copy from global to shared memory.
    fn copy_async(&self, target: &Access, source: &Access, guard: Option<&Guard>) -> VerifyResult {
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
            Some(g) => require(self.ty(&g.cond)? == Ty::Bool, || "a guard is not Bool".into()),
            None => Ok(()),
        }
    }

    fn load_matrix(&self, load: &LoadMatrix) -> VerifyResult {
        let LoadMatrix { count, transposed: _, to, from } = load;
        require([1, 2, 4].contains(count), || format!("a load of {count} matrices"))?;
        let (word, row) = (to.buffer.elem, from.buffer.elem);
        require(matches!(word, Elem::U32 | Elem::F32), || format!("words of {word}"))?;
        self.fragment(to, word, usize::from(*count))?;
        let ty = self.access(from)?;
        let space = self.k.buffers[from.buffer.id].space;
        require(ty == Ty::Vector(row) && space == Space::Shared, || {
            "a row of a matrix is 16 bytes of shared memory".into()
        })?;
        // A `U32` word may have any bits, but an `F32` word must be one element.
        let fits = row == word || (word == Elem::U32 && matches!(row.size(), 2 | 4));
        require(fits, || format!("words of {word} from rows of {row}"))?;
        self.whole_warps()
    }

    fn whole_warps(&self) -> VerifyResult {
        require(self.k.geometry.threads().is_multiple_of(WARP), || {
            "a matrix instruction in a warp that is not whole".into()
        })
    }

    /// Checks a lane's part of a matrix: `count` elements that fill the last dimensions of a
    /// register array.
    fn fragment(&self, first: &Access, elem: Elem, count: usize) -> VerifyResult {
        let ty = self.access(first)?;
        let buffer = &self.k.buffers[first.buffer.id];
        let name = &buffer.name;
        require(buffer.space == Space::Register, || format!("a fragment in {name}"))?;
        require(ty == Ty::Scalar(elem), || format!("a fragment of {name}, which is not {elem}"))?;
        // Multiplies extents, starting at the last dimension, until they cover `count` elements.
        let (mut covered, mut whole) =
            (1, buffer.layout == BufferLayout::row_major(buffer.dims.len()));
        for (dim, index) in buffer.dims.iter().zip(&first.index).rev() {
            if covered < count as u64 {
                covered *= constant(self.k, dim, name)?;
                whole &= *index == Expr::I32(0);
            }
        }
        require(whole && covered == count as u64, || {
            format!("a fragment of {count} elements in {name}")
        })
    }
}

/// Returns true if a value is stored as elements of a type. A vector of small elements may be given
/// as words.
fn is_stored_as(value: Ty, ty: Ty) -> bool {
    let is_small = matches!(ty, Ty::Vector(elem) if elem.size() < 4);
    value == ty || is_small && value == Ty::Vector(Elem::U32)
}
