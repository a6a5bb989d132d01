//! Counters of a launch.

pub(crate) mod access_fate;
pub(crate) mod quantity;
pub(crate) mod traffic;
use crate::counters::quantity::SassCounters;
use std::ops::AddAssign;

/// Defines the counters, and how to combine the counters of two sets of blocks.
macro_rules! counters {
    ($(#[$of_all:meta])* { $($(#[doc = $doc:literal])* $field:ident: $together:ident,)* }) => {
        $(#[$of_all])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counters { $($(#[doc = $doc])* pub $field: u64,)* }

        impl Counters {
            /// Iterates over names and values, in declaration order.
            pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($field), self.$field)),*].into_iter()
            }

            /// Iterates over names, descriptions and values, in declaration order.
            pub fn described(&self) -> impl Iterator<Item = (&'static str, String, u64)> {
                let said = |lines: &[&str]| lines.concat().trim().to_owned();
                [$((stringify!($field), said(&[$($doc),*]), self.$field)),*].into_iter()
            }
        }

        /// Combines the counters of two sets of blocks.
        impl AddAssign for Counters {
            fn add_assign(&mut self, other: Self) {
                $(self.$field = counters!($together self.$field, other.$field);)*
            }
        }
    };
    (Sum $own:expr, $other:expr) => { $own + $other };
    (Greatest $own:expr, $other:expr) => { $own.max($other) };
}

counters! {
    /// Counters of one launch.
    ///
    /// Barriers are counted per block, everything else over the whole grid.
    ///
    /// **Instructions** are operations of the IR that a warp executes, each counted once regardless
    /// of the number of active lanes:
    /// * an operator, a comparison, a logical operator, a select or an intrinsic call;
    /// * a matrix instruction; `wgmma` counts once for each of the four warps;
    /// * a load or store of global or shared memory, an asynchronous copy, its commit and its wait;
    /// * a barrier, a fence, an atomic, an mbarrier operation;
    /// * a branch: one for each executed `if` and for each executed test of a loop, beside the
    ///   operators of the condition; the step of a loop is one integer operation.
    ///
    /// Operations that need no instruction at run time are not counted:
    /// * variables, register arrays, assignments, conversions, packing and unpacking of vectors;
    /// * operators of `I32` and `U64` on constants: literals, named constants, variables of
    ///   completely unrolled loops, and immutable variables computed from these alone;
    /// * operators of `F32` on literals, if the result is a number;
    /// * test and step of a loop that is marked for complete unrolling and has constant bounds;
    /// * an `if` on a constant condition;
    /// * the address arithmetic of a layout, which is not part of the IR.
    ///
    /// The right operand of `&&` and `||` and the arms of a select count if some lane evaluates
    /// them.
    {
        /// Launched blocks.
        blocks: Sum,
        /// Block barriers, each counted once, in the block that executes the most.
        block_barriers: Greatest,
        /// Warp barriers, counted once per warp, in the block that executes the most.
        warp_barriers: Greatest,

        /// Instructions of all warps.
        instructions: Sum,
        /// Instructions times active lanes.
        thread_instructions: Sum,
        /// Instructions on integers and booleans, and comparisons of integers.
        integer: Sum,
        /// `F32` instructions, including comparisons but not multiply-adds.
        float: Sum,
        /// Multiply-add instructions.
        fma: Sum,
        /// Selects.
        select: Sum,
        /// Branches of `if`s and loops.
        branch: Sum,
        /// Shuffles.
        shuffle: Sum,
        /// Synchronisation instructions: barriers of any scope, named barriers and mbarrier
        /// operations except waits; also fences, commits and waits of asynchronous copies and of
        /// matrix instructions, and register limits.
        sync: Sum,
        /// Loads from global memory.
        global_loads: Sum,
        /// Stores to global memory, including atomics.
        global_stores: Sum,
        /// Loads from shared memory.
        shared_loads: Sum,
        /// Stores to shared memory, including atomics but not asynchronous copies.
        shared_stores: Sum,
        /// Asynchronous copies.
        copies: Sum,

        /// TMA copies.
        bulk_copies: Sum,
        /// mbarrier waits, each counted once, however long it takes.
        mbarrier_waits: Sum,

        /// Matrix instructions of a warp.
        mma: Sum,
        /// Matrix instructions of a warpgroup, counted once per warp.
        wgmma: Sum,

        /// Multiplications and additions of matrix instructions.
        mma_flops: Sum,
        /// Multiply-adds of all threads: active lanes of multiply-add instructions.
        fmas: Sum,
        /// Divergent branches: executed `if`s and loop tests whose active lanes disagree.
        divergent_branches: Sum,

        /// Warp accesses to global memory: loads, stores, and copies that read.
        global_requests: Sum,
        /// 32-byte sectors accessed, counted once per request.
        global_sectors: Sum,
        /// 128-byte lines accessed by loads and stores, counted once per request; equals the
        /// wavefronts of the L1 cache. Asynchronous copies bypass it.
        global_lines: Sum,
        /// Bytes that threads read from global memory, counted once per read.
        global_load_bytes: Sum,
        /// Bytes that threads write to global memory.
        global_store_bytes: Sum,

        /// Warp accesses to shared memory: loads, stores and writes of copies.
        shared_requests: Sum,
        /// Wavefronts of shared memory: for each phase, the largest number of distinct words in one
        /// bank. A 4-byte access has one phase; a 16-byte access has four phases of eight lanes.
        /// Phases of a load merge in pairs if all lanes read the same word as their neighbour, or
        /// as the lane two away in their group of four, as on an H200.
        shared_wavefronts: Sum,
        /// Bank conflicts: wavefronts beyond one per phase.
        shared_bank_conflicts: Sum,
        /// Bytes that threads read from shared memory.
        shared_load_bytes: Sum,
        /// Bytes that threads and copies write to shared memory.
        shared_store_bytes: Sum,

        /// Bytes of all TMA boxes, including parts outside the arrays, counted once per copy even
        /// if it goes to several blocks of a cluster. These bytes are requested from global memory.
        bulk_bytes: Sum,
        /// Bytes of multicast boxes that arrive in further blocks of a cluster. They are not
        /// requested again.
        multicast_bytes: Sum,
    }
}

impl Counters {
    /// Bytes read from and written to global memory by threads.
    pub fn global_bytes(&self) -> u64 {
        self.global_load_bytes + self.global_store_bytes
    }

    /// Bytes of TMA copies that arrived in shared memory; a multicast copy counts once per
    /// destination block.
    pub fn bulk_arrived_bytes(&self) -> u64 {
        self.bulk_bytes + self.multicast_bytes
    }

    /// Bytes read from and written to shared memory by threads and copies.
    pub fn shared_bytes(&self) -> u64 {
        self.shared_load_bytes + self.shared_store_bytes
    }
}

/// Instruction classes of the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IrClass {
    Integer,
    Float,
    Fma,
    Select,
    Branch,
    Shuffle,
    Sync,
    GlobalLoad,
    GlobalStore,
    SharedLoad,
    SharedStore,
    Copy,
    Mma,
    BulkCopy,
    MbarrierWait,
    Wgmma,
}

const CLASSES: usize = 16;

/// Instructions of one site, a piece of code that is executed as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct IrCost([u32; CLASSES]);

impl IrCost {
    pub(super) fn add(&mut self, class: IrClass) {
        self.0[class as usize] += 1;
    }

    pub(super) fn instructions(&self) -> u64 {
        self.0.iter().map(|n| u64::from(*n)).sum()
    }

    pub(super) fn fma(&self) -> u64 {
        self.0[IrClass::Fma as usize].into()
    }
}

/// Counters of a launch, in total and per statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Profile {
    /// Counters of the launch: the sum over all statements, plus the per-block counters.
    pub total: Counters,
    /// Counters of each statement by its number
    /// ([`Kernel::statements`](gemm_dsl::ir::Kernel::statements)). Nested statements, numbers of
    /// blocks and barriers of blocks are not included. Instructions of a device function are
    /// charged to the statements that call it.
    pub statements: Vec<Counters>,
    /// Predicted machine counters, if requested ([`Options::compiled`](crate::Options::compiled)).
    pub compiled: Option<SassCounters>,
    /// Predicted machine counters of each statement by its number; empty if not requested.
    pub compiled_statements: Vec<SassCounters>,
    /// Number of executions of each site; `None` after they were charged to statements.
    pub(super) executions: Option<Executions>,
}

/// Combines the profiles of two sets of blocks.
impl AddAssign<&Self> for Profile {
    fn add_assign(&mut self, other: &Self) {
        self.total += other.total;
        let missing = other.statements.len().saturating_sub(self.statements.len());
        self.statements.extend(std::iter::repeat_n(Counters::default(), missing));
        self.statements.iter_mut().zip(&other.statements).for_each(|(own, other)| *own += *other);
        self.add_compiled(other);
    }
}

impl Profile {
    fn add_compiled(&mut self, other: &Self) {
        if let Some(compiled) = other.compiled {
            *self.compiled.get_or_insert_default() += compiled;
        }
        let own = &mut self.compiled_statements;
        let missing = other.compiled_statements.len().saturating_sub(own.len());
        own.extend(std::iter::repeat_n(SassCounters::default(), missing));
        own.iter_mut().zip(&other.compiled_statements).for_each(|(own, other)| *own += *other);
        match (&mut self.executions, &other.executions) {
            (Some(own), Some(other)) => own.add(other),
            (own @ None, Some(other)) => *own = Some(other.clone()),
            (_, None) => {}
        }
    }
}

/// Piece of code that is always executed as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site {
    pub(super) cost: IrCost,
    /// Number of the statement; `None` inside a device function.
    pub(super) stmt: Option<u32>,
}

/// Number of executions of each site by warps, and by lanes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Executions {
    /// Number of executions by warps, and the sum of active lanes over these executions.
    sites: Vec<[u64; 2]>,
    /// Number of sites in device functions. These sites are first in the list.
    functions: usize,
    /// Executions of each site in a device function, for each calling statement.
    applied: Vec<[u64; 2]>,
}

impl Executions {
    /// Creates counts of zero. The sites of device functions must come first.
    pub(super) fn new(sites: &[Site], statements: usize) -> Self {
        let functions = sites.partition_point(|site| site.stmt.is_none());
        let applied = vec![[0; 2]; functions * statements];
        Self { sites: vec![[0; 2]; sites.len()], functions, applied }
    }

    /// Counts an execution of a site by a warp, in a statement.
    #[inline(always)]
    pub(super) fn hit(&mut self, site: u32, mask: u32, stmt: u32) {
        let (site, lanes) = (site as usize, u64::from(mask.count_ones()));
        let add = |counts: &mut [u64; 2]| {
            counts[0] += 1;
            counts[1] += lanes;
        };
        add(&mut self.sites[site]);
        if site < self.functions {
            add(&mut self.applied[stmt as usize * self.functions + site]);
        }
    }

    /// Returns the executions of a site by warps, and the sum of their active lanes.
    pub(super) fn at_site(&self, site: u32) -> [u64; 2] {
        self.sites[site as usize]
    }

    fn add(&mut self, other: &Self) {
        for (own, other) in self.sites.iter_mut().zip(&other.sites) {
            own.iter_mut().zip(other).for_each(|(own, other)| *own += other);
        }
    }

    /// Charges the executions of sites to their statements, and those of sites in device functions
    /// to the calling statements.
    pub(super) fn charge(&self, sites: &[Site], statements: &mut [Counters]) {
        for (executions, site) in self.sites.iter().zip(sites) {
            if let Some(number) = site.stmt {
                site.cost.charge(*executions, &mut statements[number as usize]);
            }
        }
        let applied = self.applied.chunks_exact(self.functions.max(1));
        for (executions, counters) in applied.zip(statements) {
            let sites = executions.iter().zip(sites);
            sites.for_each(|(executions, site)| site.cost.charge(*executions, counters));
        }
    }
}

impl IrCost {
    /// Charges executions by `warps` warps with `lanes` active lanes in total.
    fn charge(&self, [warps, lanes]: [u64; 2], counters: &mut Counters) {
        let instructions = self.instructions();
        counters.instructions += warps * instructions;
        counters.thread_instructions += lanes * instructions;
        let count = |class: IrClass| u64::from(self.0[class as usize]);
        counters.fmas += lanes * count(IrClass::Fma);
        let of = |class: IrClass| warps * count(class);
        counters.integer += of(IrClass::Integer);
        counters.float += of(IrClass::Float);
        counters.fma += of(IrClass::Fma);
        counters.select += of(IrClass::Select);
        counters.branch += of(IrClass::Branch);
        counters.shuffle += of(IrClass::Shuffle);
        counters.sync += of(IrClass::Sync);
        counters.global_loads += of(IrClass::GlobalLoad);
        counters.global_stores += of(IrClass::GlobalStore);
        counters.shared_loads += of(IrClass::SharedLoad);
        counters.shared_stores += of(IrClass::SharedStore);
        counters.copies += of(IrClass::Copy);
        counters.mma += of(IrClass::Mma);
        counters.bulk_copies += of(IrClass::BulkCopy);
        counters.mbarrier_waits += of(IrClass::MbarrierWait);
        counters.wgmma += of(IrClass::Wgmma);
    }
}
