//! The operands by which the launches of a product give one another what they compute.

use crate::ir::Operand;

/// Sums that blocks leave for others, and their tickets.
pub const PARTIALS: Operand = Operand::Temp(0);
pub const TICKETS: Operand = Operand::Temp(1);
/// The planes of A and of B.
pub const SPLITS: [Operand; 2] = [Operand::Temp(2), Operand::Temp(3)];
/// The word that tells of numbers that planes do not hold, and the tickets by which it is set back.
pub const UNREPRESENTABLE: Operand = Operand::Temp(4);
pub const UNREPRESENTABLE_TICKETS: Operand = Operand::Temp(5);
/// The greatest magnitudes of A's rows, and of B's columns.
pub const ROW_MAX: [Operand; 2] = [Operand::Temp(6), Operand::Temp(7)];
