//! The numbers of the operands that the launches of a product give one another.

use crate::ir::Operand;

/// Sums that blocks leave for others, and their tickets.
pub(crate) const PARTIALS: Operand = Operand::Temp(0);
pub(crate) const TICKETS: Operand = Operand::Temp(1);
/// The planes of A and of B.
pub(crate) const PLANES: [Operand; 2] = [Operand::Temp(2), Operand::Temp(3)];
/// The word that tells of numbers that planes do not hold, and the tickets by which it is set back.
pub(crate) const LOST: Operand = Operand::Temp(4);
pub(crate) const LOST_TICKETS: Operand = Operand::Temp(5);
/// The greatest magnitudes of A's rows, and of B's columns.
pub(crate) const GREATEST: [Operand; 2] = [Operand::Temp(6), Operand::Temp(7)];
