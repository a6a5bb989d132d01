//! Typing rules of accesses and expressions.

use super::{Verifier, VerifyResult, constant, require};
use crate::ir::{
    Access, BufferId, BufferLayout, Expr, FunctionId, Operand, ParamKind, PointerRef, Space, Ty,
    VECTOR_BYTES,
};

impl Verifier<'_> {
    /// Returns the global buffer into which a pointer in scope points.
    pub(super) fn pointer(&self, pointer: &PointerRef) -> VerifyResult<BufferId> {
        let buffer = self.k.buffers.get(pointer.buffer.id).ok_or("an unknown pointer")?;
        let name = &buffer.name;
        let BufferLayout::Pointer { into } = buffer.layout else {
            return Err(format!("{name} is not a pointer"));
        };
        require(self.registers.contains(&pointer.buffer), || format!("{name} out of scope"))?;
        require(pointer.index.len() == buffer.dims.len(), || format!("the rank of {name}"))?;
        for index in &pointer.index {
            require(self.ty(index)?.is_index(), || format!("an index of {name}"))?;
        }
        Ok(into)
    }

    pub(super) fn writable(&self, access: &Access) -> VerifyResult {
        let memory = self.k.memory_of(access.buffer);
        let input = self.k.params.iter().any(|p| {
            matches!(p.kind, ParamKind::Buffer { buffer, operand: Operand::Input(_) }
                if buffer == memory)
        });
        let pointer = self.k.buffers.get(access.buffer.id);
        let pointer = pointer.is_some_and(|b| matches!(b.layout, BufferLayout::Pointer { .. }));
        require(!input && !pointer, || {
            format!("{} is read-only", self.k.buffers[access.buffer.id].name)
        })
    }

    pub(super) fn access(&self, access: &Access) -> VerifyResult<Ty> {
        let buffer = self.k.buffers.get(access.buffer.id).ok_or("an unknown buffer")?;
        let name = &buffer.name;
        let pointer = matches!(buffer.layout, BufferLayout::Pointer { .. });
        let chosen = matches!(buffer.layout, BufferLayout::OfList { .. });
        require(self.k.tensor_map(access.buffer).is_none(), || {
            format!("{name} is accessed, but has only a tensor map")
        })?;
        if buffer.space == Space::Register || pointer || chosen {
            require(self.registers.contains(&access.buffer), || format!("{name} out of scope"))?;
        }
        let rank = buffer.dims.len() + usize::from(pointer);
        require(access.index.len() == rank, || format!("the rank of {name}"))?;
        for index in &access.index {
            require(self.ty(index)?.is_index(), || format!("an index of {name}"))?;
        }
        let elem = buffer.elem;
        require(access.buffer.elem == elem, || format!("the elements of {name}"))?;
        let lanes = access.lanes;
        require(lanes == 1 || lanes == elem.vector_lanes(), || {
            format!("an access of {lanes} elements of {name}")
        })?;
        if let (true, Some(dims)) = (access.is_vector(), buffer.physical_dims()) {
            let last = dims.last().map_or(Ok(0), |d| constant(self.k, d, name))?;
            require(last.is_multiple_of(lanes.into()), || {
                format!("rows of {name} hold {last} elements")
            })?;
            let swizzle = match buffer.layout {
                BufferLayout::Array { swizzle, .. } => swizzle,
                _ => None,
            };
            require(swizzle.is_none_or(|s| 1 << s.base >= lanes), || {
                format!("the swizzle of {name} splits a vector")
            })?;
        }
        Ok(access.ty())
    }

    /// Returns the type of an expression, or an error if the types of its operands do not match.
    pub(super) fn ty(&self, expr: &Expr) -> VerifyResult<Ty> {
        match expr {
            Expr::I32(_)
            | Expr::U64(_)
            | Expr::F32(_)
            | Expr::F64(_)
            | Expr::U32(_)
            | Expr::I64(_)
            | Expr::Special(_) => {}
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
                require(op.takes(ty), || format!("{op:?} of {ty}"))?;
            }
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.ty(a)?, self.ty(b)?);
                require(op.takes(a, b), || format!("{op:?} of {a} and {b}"))?;
            }
            Expr::Select(c, a, b) => {
                let (c, a, b) = (self.ty(c)?, self.ty(a)?, self.ty(b)?);
                require(c == Ty::Bool && a == b, || format!("select of {a} and {b}"))?;
            }
            Expr::Cast(to, e) => {
                let from = self.ty(e)?;
                let fits = matches!(from, Ty::Scalar(from) if from.converts_to(*to));
                require(fits, || format!("a cast of {from} to {to}"))?;
            }
            Expr::Bitcast(to, e) => {
                let from = self.ty(e)?;
                let fits = matches!(from, Ty::Scalar(from) if from.size() == to.size());
                require(fits, || format!("the bits of {from} as {to}"))?;
            }
            Expr::Load(access) => return self.access(access),
            Expr::Call(f, args) => {
                let tys = args.iter().map(|a| self.ty(a)).collect::<VerifyResult<Vec<Ty>>>()?;
                require(f.result(&tys).is_some(), || format!("{f:?} of {tys:?}"))?;
            }
            Expr::Apply(function, args) => self.applied(*function, args)?,
            Expr::Pack(parts) => self.packed(parts)?,
            Expr::Lane(e, lane) => {
                let ty = self.ty(e)?;
                let fits = matches!(ty, Ty::Vector(elem) if *lane < elem.vector_lanes());
                require(fits, || format!("lane {lane} of {ty}"))?;
            }
        }
        Ok(expr.ty())
    }

    /// Checks a call of a function of the kernel.
    fn applied(&self, function: FunctionId, args: &[Expr]) -> VerifyResult {
        let tys = args.iter().map(|a| self.ty(a)).collect::<VerifyResult<Vec<Ty>>>()?;
        let known = self.k.functions.get(function.id).filter(|_| function.id < self.callable);
        let fits = known.is_some_and(|f| {
            f.value.ty() == function.result && f.params.iter().map(|p| p.ty).eq(tys.iter().copied())
        });
        require(fits, || format!("function {} of {tys:?}", function.id))
    }

    /// Checks a vector that is packed from its elements.
    fn packed(&self, parts: &[Expr]) -> VerifyResult {
        let tys = parts.iter().map(|p| self.ty(p)).collect::<VerifyResult<Vec<Ty>>>()?;
        let vector = tys.first().copied();
        let fits = match vector {
            Some(first @ Ty::Scalar(elem)) => {
                elem.size() < VECTOR_BYTES
                    && tys.len() == usize::from(elem.vector_lanes())
                    && tys.iter().all(|ty| *ty == first)
            }
            _ => false,
        };
        require(fits, || format!("a vector of {tys:?}"))
    }
}
