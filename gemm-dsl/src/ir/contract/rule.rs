//! Expressions of a contract, cheap to evaluate at every launch.

use super::super::host::{HostError, eval};
use super::super::{ConstDecl, Expr, Kernel, ParamKind};
use super::Source;

/// An expression over constants and the extents and strides among the scalar parameters.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Rule {
    /// A number.
    Number(u64),
    /// A parameter.
    Param(usize),
    /// Anything else, with the constants that it may name.
    General(Expr, Vec<ConstDecl>),
}

impl Rule {
    /// Fails where the expression has no value on the host.
    pub(super) fn new(k: &Kernel, expr: &Expr) -> Result<Self, String> {
        let mut unknown = None;
        let mut constant = true;
        expr.visit(&mut |e| match e {
            Expr::Param(p) => {
                constant = false;
                let source = k.params.get(p.param).map(|p| &p.kind);
                let known = matches!(source, Some(ParamKind::Scalar {
                    ty,
                    source: Source::Extent(_) | Source::Stride { .. },
                }) if *ty == p.ty && ty.is_index());
                if !known {
                    unknown = Some(format!("parameter {} is no extent and no stride", p.param));
                }
            }
            Expr::Var(_) | Expr::Special(_) | Expr::Load(_) | Expr::Call(..) => {
                unknown = Some(HostError::NotUniform.to_string());
            }
            _ => {}
        });
        if let Some(unknown) = unknown {
            return Err(unknown);
        }
        if constant {
            let value = k.eval_const(expr).map_err(|e| e.to_string())?;
            let value = u64::try_from(value).map_err(|_| format!("it is {value}"))?;
            return Ok(Rule::Number(value));
        }
        Ok(match expr {
            Expr::Param(p) => Rule::Param(p.param),
            // Extents and strides are never negative and fit their parameter's type.
            Expr::Cast(_, inner) if matches!(**inner, Expr::Param(_)) => Self::new(k, inner)?,
            _ => Rule::General(expr.clone(), k.consts.clone()),
        })
    }

    /// The value for a launch's scalar parameters.
    pub(super) fn value(&self, scalars: &[Option<u64>]) -> Result<i128, HostError> {
        match self {
            Rule::Number(value) => Ok((*value).into()),
            Rule::Param(param) => {
                let value = scalars.get(*param).copied().flatten();
                value.map(i128::from).ok_or(HostError::Unbound(*param))
            }
            Rule::General(expr, consts) => eval(expr, consts, scalars),
        }
    }
}
