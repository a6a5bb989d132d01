//! Sentences on the launch of a kernel: its grid, its block and its dynamic shared memory.

use super::expr::text;
use super::extremum::{MAX, extremum};
use crate::ir::{Arith, BinaryOp, Elem, Expr, Kernel, VerifiedKernel};
use crate::target::arch::STATIC_SHARED_BYTES;

/// Maximum length of the number of blocks, in characters. A longer one has a line of its own.
const LONGEST: usize = 60;

/// Returns the sentences, one for each line; none if the number of blocks has no formula.
pub(super) fn sentences(k: &VerifiedKernel) -> Vec<String> {
    all(k).unwrap_or_default()
}

fn all(k: &VerifiedKernel) -> Option<Vec<String>> {
    let geometry = &k.geometry;
    let one = Expr::U64(1);
    let [x, y, z] = &geometry.grid;
    if *z != one {
        return None;
    }
    let (prefix, number) = match *y == one {
        true => ("", count(k, x)?),
        false => ("grid of ", format!("({}, {})", count(k, x)?, count(k, y)?)),
    };
    let plural = if number == "1" { "" } else { "s" };
    let blocks = format!("{prefix}{number} block{plural}");
    let (blocks, grid) = match blocks.len() > LONGEST {
        false => (blocks, None),
        true => ("blocks".to_owned(), Some(format!("Grid: {number} blocks."))),
    };
    let threads = match (&k.launch_bounds, geometry.block) {
        (_, (x, y)) if y > 1 => format!("({x}, {y}) threads"),
        (Some(named), _) => format!("{} threads", text(k, named)),
        (None, (x, _)) => format!("{x} threads"),
    };
    let shared = match k.contract().dynamic_shared_bytes() {
        0 => String::new(),
        bytes @ ..=STATIC_SHARED_BYTES => format!(", with {bytes} bytes of dynamic shared memory"),
        bytes => format!(
            ", with {bytes} bytes of dynamic shared memory, which cudaFuncSetAttribute must allow"
        ),
    };
    let resident = match geometry.blocks_per_sm {
        // One block per SM always fits.
        None | Some(1) => String::new(),
        Some(blocks) => format!("; compiled for at least {blocks} blocks per SM"),
    };
    let launch = format!("Launch: {blocks} of {threads}{shared}{resident}.");
    Some([launch].into_iter().chain(grid).collect())
}

/// Prints a number of blocks as a formula; `None` if it has none.
fn count(k: &Kernel, e: &Expr) -> Option<String> {
    // Encloses an operand in parentheses if it contains one of these operators.
    let operand = |e: &Expr, operators: &[&str]| {
        let text = count(k, e)?;
        let encloses = operators.iter().any(|operator| text.contains(operator));
        Some(if encloses { format!("({text})") } else { text })
    };
    let simple = |e: &Expr| operand(e, &[" * ", " + "]);
    Some(match e {
        Expr::I32(n) => n.to_string(),
        Expr::U64(n) => n.to_string(),
        Expr::Param(scalar) => k.params[scalar.param].name.clone(),
        Expr::Const(_) => text(k, e),
        Expr::Cast(Elem::U64, e) => count(k, e)?,
        Expr::Binary(BinaryOp::Arith(Arith::Mul), a, b) => {
            format!("{} * {}", operand(a, &[" + "])?, operand(b, &[" + "])?)
        }
        Expr::Binary(BinaryOp::Arith(Arith::Add), a, b) => {
            format!("{} + {}", count(k, a)?, count(k, b)?)
        }
        Expr::Binary(BinaryOp::Arith(Arith::Div), dividend, by) => match rounded_up(e) {
            Some(dividend) => format!("ceil({} / {})", simple(dividend)?, simple(by)?),
            None => format!("({} / {})", simple(dividend)?, simple(by)?),
        },
        Expr::Select(cond, yes, no) => {
            let name = match extremum(cond, yes, no) {
                Some(name) => name,
                None if is_at_least_one(cond, yes, no) => MAX,
                None => return None,
            };
            format!("{name}({}, {})", count(k, yes)?, count(k, no)?)
        }
        _ => return None,
    })
}

/// Returns true for a quotient, rounded up, that is replaced by 1 if its dividend is 0.
fn is_at_least_one(cond: &Expr, yes: &Expr, no: &Expr) -> bool {
    let is_some = |dividend: &Expr| *cond == dividend.clone().gt(0u64);
    *no == Expr::U64(1) && rounded_up(yes).is_some_and(is_some)
}

/// Returns the dividend of a quotient that is rounded up, as [`Expr::div_ceil`] builds it.
fn rounded_up(e: &Expr) -> Option<&Expr> {
    let Expr::Binary(_, dividend, by) = e else { return None };
    let Expr::Binary(BinaryOp::Arith(Arith::Sub), sum, _) = &**dividend else { return None };
    let Expr::Binary(BinaryOp::Arith(Arith::Add), number, _) = &**sum else { return None };
    let expected = (**number).clone().div_ceil((**by).clone());
    (*e == expected).then_some(&**number)
}
