//! What is predicted, with what the profiler calls it and how far off it may be.

use std::ops::AddAssign;

/// A count, or one that may not be known.
trait Tally: Copy {
    /// Of nothing.
    const NONE: Self;
    fn plus(self, other: Self) -> Self;
    fn known(self) -> Option<u64>;
}

impl Tally for u64 {
    const NONE: Self = 0;

    fn plus(self, other: Self) -> Self {
        self + other
    }

    fn known(self) -> Option<u64> {
        Some(self)
    }
}

impl Tally for Option<u64> {
    const NONE: Self = Some(0);

    fn plus(self, other: Self) -> Self {
        Some(self? + other?)
    }

    fn known(self) -> Option<u64> {
        self
    }
}

/// Defines the counts: what each is called by the profiler, and how far it may be off, as a share of another one or of itself.
macro_rules! compiled {
    ($($(#[doc = $doc:literal])* $field:ident: $ty:ty, $metric:literal, $tolerance:expr, of $whole:ident;)*) => {
        /// What the hardware counts of a launch, as predicted. Accesses and instructions are those of warps.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct SassCounters { $($(#[doc = $doc])* pub $field: $ty,)* }

        impl SassCounters {
            /// All of them.
            pub const QUANTITIES: &[Quantity] = &[$(Quantity {
                name: stringify!($field),
                metric: $metric,
                tolerance: $tolerance,
                share_of: stringify!($whole),
                of: |counts| counts.$field.known(),
            }),*];
        }

        impl Default for SassCounters {
            fn default() -> Self {
                Self { $($field: Tally::NONE,)* }
            }
        }

        impl AddAssign for SassCounters {
            fn add_assign(&mut self, other: Self) {
                $(self.$field = self.$field.plus(other.$field);)*
            }
        }
    };
}

/// One of the counts.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Quantity {
    /// What it is called here.
    pub name: &'static str,
    /// What the profiler calls it: a metric of `ncu`, or an opcode among the instances of `sass__inst_executed_per_opcode`.
    pub metric: &'static str,
    /// How far off a prediction is meant to be at most, as a share of what is measured. 0 of what is told exactly.
    pub tolerance: f64,
    /// The quantity of whose measured value that is a share: its own, but of conflicts that of all wavefronts.
    pub share_of: &'static str,
    /// Its value; none where it cannot be known.
    pub of: fn(&SassCounters) -> Option<u64>,
}

impl SassCounters {
    /// All of them by name, in the order in which they stand here; without those that cannot be known.
    pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Self::QUANTITIES.iter().filter_map(|quantity| Some((quantity.name, (quantity.of)(self)?)))
    }
}

/// The share by which accesses to memory, and instructions for them, may be off.
const NEAR: f64 = 0.05;
/// That of all instructions.
const ROUGH: f64 = 0.2;
/// That of what the text says outright.
const EXACT: f64 = 0.0;

compiled! {
    /// Instructions. None of a kernel with arrays in local memory.
    instructions: Option<u64>, "smsp__inst_executed.sum", ROUGH, of instructions;
    /// Multiply-adds of binary32 of all threads.
    thread_ffma: u64, "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", EXACT, of thread_ffma;
    /// Wavefronts of loads from shared memory.
    shared_load_wavefronts: u64, "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", NEAR, of shared_load_wavefronts;
    /// Wavefronts of stores to shared memory.
    shared_store_wavefronts: u64, "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", NEAR, of shared_store_wavefronts;
    /// Those of loads beyond one for each phase.
    shared_load_conflicts: u64, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", NEAR, of shared_load_wavefronts;
    /// Those of stores beyond one for each phase.
    shared_store_conflicts: u64, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", NEAR, of shared_store_wavefronts;
    /// Loads from global memory, and asynchronous copies, of which some lane reads.
    global_load_requests: u64, "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", NEAR, of global_load_requests;
    /// Stores to global memory of which some lane writes.
    global_store_requests: u64, "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", NEAR, of global_store_requests;
    /// The 32-byte sectors that those loads and copies touch.
    global_load_sectors: u64, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", NEAR, of global_load_sectors;
    /// The 32-byte sectors that those stores touch.
    global_store_sectors: u64, "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", NEAR, of global_store_sectors;
    /// Multiply-adds of binary32.
    ffma: u64, "FFMA", EXACT, of ffma;
    /// Matrix instructions of a warp.
    hmma: u64, "HMMA", EXACT, of hmma;
    /// Matrix instructions of a warpgroup, once for each of its warps.
    hgmma: u64, "HGMMA", EXACT, of hgmma;
    /// Barriers of the block and those with a name, once for each warp.
    barriers: u64, "BAR", EXACT, of barriers;
    /// Shuffles.
    shuffles: u64, "SHFL", NEAR, of shuffles;
    /// Loads from global memory, under a false predicate too.
    global_loads: u64, "LDG", NEAR, of global_loads;
    /// Stores to global memory, under a false predicate too.
    global_stores: u64, "STG", NEAR, of global_stores;
    /// Loads from shared memory, under a false predicate too.
    shared_loads: u64, "LDS", NEAR, of shared_loads;
    /// Loads of matrices from shared memory.
    matrix_loads: u64, "LDSM", NEAR, of matrix_loads;
    /// Stores to shared memory, under a false predicate too.
    shared_stores: u64, "STS", NEAR, of shared_stores;
    /// Asynchronous copies of elements.
    copies: u64, "LDGSTS", NEAR, of copies;
    /// Asynchronous copies of boxes.
    box_copies: u64, "UTMALDG", NEAR, of box_copies;
    /// Atomics.
    atomics: u64, "ATOMG, REDG, ATOMS", NEAR, of atomics;
}
