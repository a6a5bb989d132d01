//! Unrolled loops over the elements of a thread.

use super::elements::Elements;
use crate::ir::{Expr, KernelBuilder};

/// Does something for each element of a thread.
pub(crate) fn each(
    b: &mut KernelBuilder,
    [rows, cols]: [&Elements; 2],
    body: impl FnOnce(&mut KernelBuilder, &Expr, &Expr),
) {
    over(b, "m", rows.name.into(), rows.count, |b, m| {
        over(b, "n", cols.name.into(), cols.count, |b, n| body(b, &m, &n));
    });
}

/// An unrolled loop, or its body alone where there is one round.
pub(crate) fn over(
    b: &mut KernelBuilder,
    name: &str,
    count: Expr,
    number: u32,
    body: impl FnOnce(&mut KernelBuilder, Expr),
) {
    if number == 1 {
        body(b, 0.into());
    } else {
        b.unrolled(name, count, |b, i| body(b, i.into()));
    }
}
