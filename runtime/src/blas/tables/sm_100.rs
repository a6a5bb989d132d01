//! By model, not measured: the rows of `sm_90`, as a multiprocessor has the same memory and registers. What they count in `waves` counts
//! the multiprocessors of the device.

use super::{Tables, sm_90};

pub(super) static TABLES: Tables = Tables::new(sm_90::ONE, sm_90::BATCH);
