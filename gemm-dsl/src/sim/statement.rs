//! The text of a statement in the simulator's messages.

use crate::ir::{Kernel, Stmt};

/// The first line of a statement.
pub(super) fn describe(_: &Kernel, stmt: &Stmt) -> String {
    let text = format!("{stmt:?}");
    text.chars().take(200).collect()
}
