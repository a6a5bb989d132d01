//! Expressions of a contract, compiled for launches.

use super::super::{Elem, Expr, HostExpr, Kernel, ParamKind, Scalar, Source};
use crate::ir::eval;

/// Compiles an expression over constants, and over extents and strides among the scalar parameters.
/// Fails if the host cannot evaluate the expression.
pub(super) fn host_expr(k: &Kernel, expr: &Expr) -> Result<HostExpr, String> {
    eval::check(expr, &k.consts, &|param| match is_bound(k, param) {
        true => Ok(()),
        false => Err(format!("parameter {} is neither an extent nor a stride", param.param)),
    })?;
    if let Ok(value) = k.eval_const(expr) {
        let value = u64::try_from(value).map_err(|_| format!("it is {value}"))?;
        return Ok(HostExpr::Number(value));
    }
    // The cast is dropped: a binding checks extents and strides against the type of their
    // parameter, and they are never negative.
    let scalar = match expr {
        Expr::Param(scalar) => Some(scalar),
        Expr::Cast(Elem::U64, inner) => match &**inner {
            Expr::Param(scalar) => Some(scalar),
            _ => None,
        },
        _ => None,
    };
    match scalar {
        Some(scalar) => Ok(HostExpr::Scalar(scalar.param)),
        None => HostExpr::new(expr, &k.consts),
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
