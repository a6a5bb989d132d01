//! Predicted quantities, with their profiler metrics and tolerances.

use std::ops::AddAssign;

/// Count that may be unknown.
trait Tally: Copy {
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

/// Defines the counts. Each has a profiler metric, a tolerance, and a count of which the tolerance
/// is a fraction.
macro_rules! compiled {
    ($(
        $(#[doc = $doc:literal])*
        $field:ident: $ty:ty, $metric:literal, $tolerance:expr, of $whole:ident;
    )*) => {
        /// Predicted hardware counters of a launch. Accesses and instructions are counted per warp.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct SassCounters { $($(#[doc = $doc])* pub $field: $ty,)* }

        impl SassCounters {
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

/// Predicted count, with the profiler's metric and a tolerance.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Quantity {
    pub name: &'static str,
    /// Name in the profiler: an `ncu` metric, or an opcode among the instances of
    /// `sass__inst_executed_per_opcode`.
    pub metric: &'static str,
    /// Maximum intended error, as a fraction of a measured value; 0 for exact counts.
    pub tolerance: f64,
    /// Name of the reference quantity: the tolerance is a fraction of its measured value. It is the
    /// quantity itself, except that bank conflicts refer to all wavefronts.
    pub share_of: &'static str,
    /// Reads the value; `None` if it is unknown.
    pub of: fn(&SassCounters) -> Option<u64>,
}

impl SassCounters {
    /// Iterates over names and known values, in declaration order.
    pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Self::QUANTITIES.iter().filter_map(|quantity| Some((quantity.name, (quantity.of)(self)?)))
    }
}

/// Tolerance of memory accesses and their instructions.
const NEAR: f64 = 0.05;
/// Tolerance of the total instruction count.
const ROUGH: f64 = 0.2;
/// Tolerance of counts that follow directly from the CUDA source.
const EXACT: f64 = 0.0;

compiled! {
    /// Instructions. Unknown for a kernel with arrays in local memory.
    instructions: Option<u64>, "smsp__inst_executed.sum", ROUGH, of instructions;
    /// Multiply-adds of binary32 of all threads.
    thread_ffma: u64, "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", EXACT, of thread_ffma;
    /// Wavefronts of loads from shared memory.
    shared_load_wavefronts: u64, "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", NEAR,
        of shared_load_wavefronts;
    /// Wavefronts of stores to shared memory.
    shared_store_wavefronts: u64, "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", NEAR,
        of shared_store_wavefronts;
    /// Bank conflicts of loads: wavefronts beyond one per phase.
    shared_load_conflicts: u64, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", NEAR,
        of shared_load_wavefronts;
    /// Bank conflicts of stores: wavefronts beyond one per phase.
    shared_store_conflicts: u64, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", NEAR,
        of shared_store_wavefronts;
    /// Loads from global memory, and asynchronous copies, with a lane that reads.
    global_load_requests: u64, "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", NEAR,
        of global_load_requests;
    /// Stores to global memory with a lane that writes.
    global_store_requests: u64, "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", NEAR,
        of global_store_requests;
    /// 32-byte sectors touched by loads from global memory and by asynchronous copies.
    global_load_sectors: u64, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", NEAR,
        of global_load_sectors;
    /// 32-byte sectors touched by stores to global memory.
    global_store_sectors: u64, "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", NEAR,
        of global_store_sectors;
    /// Multiply-adds of binary32, once per warp.
    ffma: u64, "FFMA", EXACT, of ffma;
    /// Matrix instructions of a warp.
    hmma: u64, "HMMA", EXACT, of hmma;
    /// Matrix instructions of a warpgroup, once for each of its warps.
    hgmma: u64, "HGMMA", EXACT, of hgmma;
    /// Block barriers and named barriers, once per warp.
    barriers: u64, "BAR", EXACT, of barriers;
    shuffles: u64, "SHFL", NEAR, of shuffles;
    /// Loads from global memory, predicated-off ones included.
    global_loads: u64, "LDG", NEAR, of global_loads;
    /// Stores to global memory, predicated-off ones included.
    global_stores: u64, "STG", NEAR, of global_stores;
    /// Loads from shared memory, predicated-off ones included.
    shared_loads: u64, "LDS", NEAR, of shared_loads;
    /// Loads of matrices from shared memory.
    matrix_loads: u64, "LDSM", NEAR, of matrix_loads;
    /// Stores to shared memory, predicated-off ones included.
    shared_stores: u64, "STS", NEAR, of shared_stores;
    /// Asynchronous copies of elements (`cp.async`).
    copies: u64, "LDGSTS", NEAR, of copies;
    /// Asynchronous copies of TMA boxes.
    box_copies: u64, "UTMALDG", NEAR, of box_copies;
    atomics: u64, "ATOMG, REDG, ATOMS", NEAR, of atomics;
}
