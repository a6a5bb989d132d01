//! Unrolled loops over the elements of a thread, and guards.

use super::elements::Elements;
use crate::ir::{Expr, KernelBuilder};

/// Emits `body` for each element of a thread.
pub(crate) fn each(
    b: &mut KernelBuilder,
    [rows, cols]: [&Elements; 2],
    body: impl FnOnce(&mut KernelBuilder, &Expr, &Expr),
) {
    over(b, "m", rows.name.into(), rows.count, |b, m| {
        over(b, "n", cols.name.into(), cols.count, |b, n| body(b, &m, &n));
    });
}

/// Emits an unrolled loop, or only its body if there is a single iteration.
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

/// Emits `body`, under a condition if it is guarded.
pub(crate) fn guarded(
    b: &mut KernelBuilder,
    guards: bool,
    inside: Expr,
    body: impl FnOnce(&mut KernelBuilder),
) {
    if guards {
        b.if_(inside, body);
    } else {
        body(b);
    }
}
