//! Expressions of a contract, in a form that is cheap to evaluate at every launch.

use super::super::{ConstDecl, Elem, Expr, Kernel, ParamKind, Scalar};
use crate::ir::Source;
use crate::ir::eval;
use crate::ir::eval::HostError;

/// Expression over constants, and over extents and strides among the scalar parameters.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum HostExpr {
    Number(u64),
    Param(usize),
    /// Any other expression, with the constants that it may contain.
    General(Expr, Vec<ConstDecl>),
}

impl HostExpr {
    /// Fails if the host cannot evaluate the expression.
    pub(super) fn new(k: &Kernel, expr: &Expr) -> Result<Self, String> {
        eval::check(expr, &k.consts, &|param| match is_bound(k, param) {
            true => Ok(()),
            false => Err(format!("parameter {} is neither an extent nor a stride", param.param)),
        })?;
        if let Ok(value) = k.eval_const(expr) {
            let value = u64::try_from(value).map_err(|_| format!("it is {value}"))?;
            return Ok(HostExpr::Number(value));
        }
        Ok(match expr {
            Expr::Param(p) => HostExpr::Param(p.param),
            // The cast is dropped, because extents and strides are never negative.
            Expr::Cast(Elem::U64, inner) if matches!(**inner, Expr::Param(_)) => {
                Self::new(k, inner)?
            }
            _ => HostExpr::General(expr.clone(), k.consts.clone()),
        })
    }

    /// Evaluates the expression for the scalar parameters of a launch.
    pub(super) fn value(&self, scalars: &[Option<u64>]) -> Result<i128, HostError> {
        match self {
            HostExpr::Number(value) => Ok((*value).into()),
            HostExpr::Param(param) => {
                let value = scalars.get(*param).copied().flatten();
                value.map(i128::from).ok_or(HostError::Unbound(*param))
            }
            HostExpr::General(expr, consts) => eval::eval(expr, consts, scalars),
        }
    }
}

/// Returns true if a parameter is an extent or a stride. Rules and requirements may depend only on
/// these.
pub(super) fn is_bound(k: &Kernel, scalar: Scalar) -> bool {
    match k.params.get(scalar.param).map(|p| &p.kind) {
        Some(ParamKind::Scalar { ty, source: Source::Extent(_) | Source::Stride { .. } }) => {
            *ty == scalar.ty && ty.is_index()
        }
        _ => false,
    }
}
