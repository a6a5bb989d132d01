//! What a launch is charged with.

use std::ops::AddAssign;

/// Counters of one launch.
///
/// Barriers are counted per block, everything else over the whole grid.
///
/// **Instructions** are operations of the IR that a warp executes, each counted once however many
/// lanes are active:
/// * an operator, a comparison, a logical operator, a select or an intrinsic call;
/// * a matrix instruction, of a warpgroup once for each of its warps;
/// * a load or store of global or shared memory, an asynchronous copy, its commit and its wait;
/// * a barrier, a fence, an atomic, an operation on a barrier in shared memory;
/// * a branch: one for each executed `if` and for each executed test of a loop, beside the
///   operators of the condition; the step of a loop is one integer operation.
///
/// Nothing is counted for what needs no instruction or none at run time: variables, register
/// arrays, assignments, conversions, packing and unpacking of vectors; operators of `I32` and `U64` on
/// literals, named constants, variables of completely unrolled loops and immutable variables computed
/// from such alone, and those of `F32` that give a number, on literals; test and step of a loop that
/// is marked for complete unrolling and whose bounds are such constants; an `if` on such a condition.
/// The arithmetic that a layout implies is no part of the IR either. The right operand of `&&` and
/// `||` and the arms of a select count when some lane evaluates them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Blocks launched.
    pub blocks: u64,
    /// Barriers of the block, each once, in the block that executes most.
    pub block_barriers: u64,
    /// Barriers of a warp, each once for each warp, in the block that executes most.
    pub warp_barriers: u64,

    /// All instructions of all warps.
    pub instructions: u64,
    /// Instructions times the lanes active in each.
    pub thread_instructions: u64,
    /// Instructions on integers, truth values and comparisons of integers.
    pub integer: u64,
    /// Instructions on `F32` but multiply-adds, comparisons included.
    pub float: u64,
    /// Multiply-add instructions.
    pub fma: u64,
    /// Selects.
    pub select: u64,
    /// Branches of `if`s and loops.
    pub branch: u64,
    /// Shuffles.
    pub shuffle: u64,
    /// Barriers of any scope, with a name and in shared memory, but for waits at those, fences, commits and waits of
    /// asynchronous copies and of matrix instructions, limits of registers.
    pub sync: u64,
    /// Loads from global memory.
    pub global_loads: u64,
    /// Stores to global memory, and atomics on it.
    pub global_stores: u64,
    /// Loads from shared memory.
    pub shared_loads: u64,
    /// Stores to shared memory, and atomics on it; an asynchronous copy is not among them.
    pub shared_stores: u64,
    /// Asynchronous copies.
    pub copies: u64,

    /// Copies of boxes.
    pub bulk_copies: u64,
    /// Waits at barriers in shared memory, each once however long.
    pub mbarrier_waits: u64,

    /// Matrix instructions of a warp.
    pub mma: u64,
    /// Matrix instructions of a warpgroup, once for each of its warps.
    pub wgmma: u64,

    /// Multiplications and additions of matrix instructions.
    pub mma_flops: u64,
    /// Multiply-adds of all threads: lanes active in multiply-add instructions.
    pub fmas: u64,
    /// Executed `if`s and loop tests whose active lanes disagree.
    pub divergent_branches: u64,

    /// Accesses of a warp to global memory: loads, stores, and copies that read something.
    pub global_requests: u64,
    /// 32-byte sectors touched, each once for each request.
    pub global_sectors: u64,
    /// Bytes that threads read from global memory, whether or not two read the same ones.
    pub global_load_bytes: u64,
    /// Bytes that threads write to global memory.
    pub global_store_bytes: u64,

    /// Accesses of a warp to shared memory: loads, stores and the writes of copies.
    pub shared_requests: u64,
    /// Wavefronts of those: for each phase the most distinct words on one bank. A 4-byte access has
    /// one phase, a 16-byte access four of eight lanes; of a load they merge in pairs where all lanes
    /// read what their neighbour reads, or all what the lane two away in their group of four reads, as
    /// on an H200.
    pub shared_wavefronts: u64,
    /// Wavefronts beyond one for each phase.
    pub shared_bank_conflicts: u64,
    /// Bytes that threads read from shared memory.
    pub shared_load_bytes: u64,
    /// Bytes that threads and copies write to shared memory.
    pub shared_store_bytes: u64,

    /// Bytes of all boxes that were copied, those outside of the arrays included: what is asked of global memory, once for each
    /// copy, whether it goes to one block or to several of a cluster.
    pub bulk_bytes: u64,
    /// Bytes of boxes that came to blocks of a cluster beside the first that they came to: what was not asked for again.
    pub multicast_bytes: u64,
}

impl Counters {
    /// Bytes that threads read from and write to global memory.
    pub fn global_bytes(&self) -> u64 {
        self.global_load_bytes + self.global_store_bytes
    }

    /// Bytes of boxes that have come to shared memory: those of a copy once for each block that it goes to.
    pub fn bulk_arrived_bytes(&self) -> u64 {
        self.bulk_bytes + self.multicast_bytes
    }

    /// Bytes that threads and copies read from and write to shared memory.
    pub fn shared_bytes(&self) -> u64 {
        self.shared_load_bytes + self.shared_store_bytes
    }
}

/// The counters of two sets of blocks together.
impl AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.block_barriers = self.block_barriers.max(other.block_barriers);
        self.warp_barriers = self.warp_barriers.max(other.warp_barriers);
        macro_rules! add {
            ($($field:ident)*) => { $(self.$field += other.$field;)* };
        }
        add!(blocks instructions thread_instructions integer float fma select branch shuffle sync
            global_loads global_stores shared_loads shared_stores copies bulk_copies mbarrier_waits
            mma wgmma mma_flops fmas divergent_branches
            global_requests global_sectors global_load_bytes global_store_bytes
            shared_requests shared_wavefronts shared_bank_conflicts shared_load_bytes
            shared_store_bytes bulk_bytes multicast_bytes);
    }
}

/// The classes that an instruction is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
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

/// The instructions of one site, a piece of code that is executed as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost([u32; CLASSES]);

impl Cost {
    pub(super) fn add(&mut self, class: Class) {
        self.0[class as usize] += 1;
    }
}

/// What each statement of a kernel was charged with, in one launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Profile {
    /// The counters of the launch: those of all statements and functions together, beside what is counted for each block.
    pub total: Counters,
    /// Those of each statement by its number ([`Kernel::statements`](crate::ir::Kernel::statements)), without what is inside it,
    /// and without blocks and their barriers.
    pub statements: Vec<Counters>,
    /// What the kernel's own functions were charged with, whoever applies them.
    pub functions: Counters,
}

/// Those of two sets of blocks together.
impl AddAssign<&Self> for Profile {
    fn add_assign(&mut self, other: &Self) {
        self.total += other.total;
        self.functions += other.functions;
        let missing = other.statements.len().saturating_sub(self.statements.len());
        self.statements.extend(std::iter::repeat_n(Counters::default(), missing));
        self.statements.iter_mut().zip(&other.statements).for_each(|(own, other)| *own += *other);
    }
}

/// How often each site was executed.
#[derive(Clone, Debug)]
pub(super) struct Sites {
    /// Executions by warps, and the active lanes summed over them.
    sites: Vec<[u64; 2]>,
}

impl Sites {
    pub(super) fn new(sites: usize) -> Self {
        Self { sites: vec![[0; 2]; sites] }
    }

    #[inline(always)]
    pub(super) fn hit(&mut self, site: u32, mask: u32) {
        let counts = &mut self.sites[site as usize];
        counts[0] += 1;
        counts[1] += u64::from(mask.count_ones());
    }

    /// Charges the executions to the statements that they are of, or to functions.
    pub(super) fn charge(&self, costs: &[Cost], of: &[Option<u32>], profile: &mut Profile) {
        for ((executions, cost), stmt) in self.sites.iter().zip(costs).zip(of) {
            let counters = match stmt {
                Some(number) => &mut profile.statements[*number as usize],
                None => &mut profile.functions,
            };
            cost.charge(*executions, counters);
        }
    }
}

impl Cost {
    /// Charges executions by so many warps, and so many lanes in all.
    fn charge(&self, [warps, lanes]: [u64; 2], counters: &mut Counters) {
        let instructions: u64 = self.0.iter().map(|n| u64::from(*n)).sum();
        counters.instructions += warps * instructions;
        counters.thread_instructions += lanes * instructions;
        let count = |class: Class| u64::from(self.0[class as usize]);
        counters.fmas += lanes * count(Class::Fma);
        let of = |class: Class| warps * count(class);
        counters.integer += of(Class::Integer);
        counters.float += of(Class::Float);
        counters.fma += of(Class::Fma);
        counters.select += of(Class::Select);
        counters.branch += of(Class::Branch);
        counters.shuffle += of(Class::Shuffle);
        counters.sync += of(Class::Sync);
        counters.global_loads += of(Class::GlobalLoad);
        counters.global_stores += of(Class::GlobalStore);
        counters.shared_loads += of(Class::SharedLoad);
        counters.shared_stores += of(Class::SharedStore);
        counters.copies += of(Class::Copy);
        counters.mma += of(Class::Mma);
        counters.bulk_copies += of(Class::BulkCopy);
        counters.mbarrier_waits += of(Class::MbarrierWait);
        counters.wgmma += of(Class::Wgmma);
    }
}
