//! Temporary operands that the launches of a GEMM share.

use crate::ir::Operand;

/// Partial accumulators of split-K and stream-K. [`TICKETS`] are their ticket counters.
pub const PARTIALS: Operand = Operand::Temp(0);
pub const TICKETS: Operand = Operand::Temp(1);
/// Splits of A and of B.
pub const SPLITS: [Operand; 2] = [Operand::Temp(2), Operand::Temp(3)];
/// Flag for values that the splits cannot represent. `UNREPRESENTABLE_TICKETS` is the ticket
/// counter for its reset.
pub const UNREPRESENTABLE: Operand = Operand::Temp(4);
pub const UNREPRESENTABLE_TICKETS: Operand = Operand::Temp(5);
/// Flags of tiles of A and of B with values that the splits cannot represent.
pub const TILE_FLAGS: [Operand; 2] = [Operand::Temp(8), Operand::Temp(9)];
/// Parts of the folds over rows of an epilogue.
pub const FOLDS: Operand = Operand::Temp(10);
/// Greatest magnitude of each row of A, and of each column of B.
pub const ROW_MAX: [Operand; 2] = [Operand::Temp(6), Operand::Temp(7)];
