//! By model, not measured: the rows of `sm_90`, with as many stages as fit into the 99 KiB that a block has here.

use super::{Tables, sm_89};

pub(super) static TABLES: Tables = Tables::new(sm_89::ONE, sm_89::BATCH);
