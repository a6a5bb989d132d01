//! The typing rules of accesses and expressions.

use super::{Check, Checked, constant, require};
use crate::intrinsic::Semantics;
use crate::ir::{
    Access, BinaryOp, BufferId, Expr, Layout, Operand, ParamKind, PointerRef, Space, Ty, UnaryOp,
};

impl Check<'_> {
    /// The buffer that a pointer in scope points into.
    pub(super) fn pointer(&self, pointer: &PointerRef) -> Checked<BufferId> {
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

    pub(super) fn writable(&self, access: &Access) -> Checked {
        let input = self.k.params.iter().any(|p| {
            matches!(p.kind, ParamKind::Buffer { buffer, operand: Operand::Input(_) }
                if buffer == access.buffer)
        });
        let pointer = self.k.buffers.get(access.buffer.0);
        let pointer = pointer.is_some_and(|b| matches!(b.layout, Layout::Pointer { .. }));
        require(!input && !pointer, || {
            format!("{} is read-only", self.k.buffers[access.buffer.0].name)
        })
    }

    pub(super) fn access(&self, access: &Access) -> Checked<Ty> {
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
    pub(super) fn ty(&self, expr: &Expr) -> Checked<Ty> {
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
