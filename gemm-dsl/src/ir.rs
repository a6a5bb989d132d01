//! The kernel IR and the definition of its semantics.
//!
//! A [`Kernel`] is one CUDA kernel: parameters, named constants, buffers and a structured body. Two
//! back ends read it: the CUDA printer and the simulator. Neither may add meaning. This page
//! defines the semantics against which both are tested.
//!
//! **Execution.** Every thread of a block runs the body. Threads are grouped into warps of 32 by
//! linear thread index (`y * blockDim.x + x`). Between two synchronising statements, the execution
//! order of threads is unspecified, even inside a warp. Blocks run in any order, concurrently or
//! one after another. A block that waits for another block may therefore wait forever. Only the
//! blocks of a cluster are guaranteed to run concurrently. A kernel with atomics may exchange data
//! between the threads of a block and between blocks ([`Kernel::communicates`]). Its results must
//! not depend on the order of threads or blocks, except in the buffers that it declares
//! [`unordered`](Buffer::unordered). The final content of a temporary buffer counts as a result.
//!
//! **Values.** A type is a boolean, a scalar of an [`Elem`], or a vector with 16 bytes of elements.
//! [`Ty::I32`] and [`Ty::I64`] are signed integers whose arithmetic must not overflow; [`Ty::U32`]
//! and [`Ty::U64`] wrap. Integer division truncates towards zero. A shift count must be less than
//! the width, and a right shift must have a non-negative operand. [`Ty::F32`] and [`Ty::F64`] are
//! IEEE binary32 and binary64, with subnormals and rounding to nearest even. The CUDA source is
//! compiled without contraction, so the compiler fuses no multiply-adds: only [`Intrinsic::Fma`] is
//! fused. A NaN produced by binary32 arithmetic is the canonical `0x7fffffff`. A NaN produced by
//! binary64 arithmetic, or by a conversion between binary32 and binary64, has unspecified bits:
//! GPUs propagate an operand's payload, and the simulator returns `0xfff8000000000000`. Loads,
//! stores, selects, shuffles and bit casts keep payloads. Values of other element types can be
//! stored, moved and converted, but there is no arithmetic on them.
//!
//! **Vectors** only move data: they are loaded, stored, packed and unpacked.
//!
//! **Conversions.** [`Expr::Cast`] from an integer to an integer type keeps the value, which the
//! new type must be able to represent. A conversion to floating point rounds to nearest, ties to
//! even (to [`Elem::Tf32`]: ties away from zero). A conversion from floating point to an integer
//! truncates towards zero and saturates. A NaN becomes 0 if both types have 4 bytes, and otherwise
//! the integer with only the topmost bit set. A narrow element type converts only from and to its
//! wide type, [`Elem::F32`] or [`Elem::I32`].
//!
//! **Expressions** have no side effects. They read variables, parameters and memory. The operands
//! of [`Expr::Select`], [`Logic::And`] and [`Logic::Or`] are evaluated only in the threads that
//! need them, as in C. The condition of a `Select` or `And` therefore guards a load in the other
//! operand. Within one statement all reads happen before the write.
//!
//! **Memory.** An [`Access`] names a buffer and a *logical* index, one expression per dimension.
//! Only the buffer's [`BufferLayout`] maps it to an address, so padding, transposition and row
//! strides change no other code. A vector access covers 16 aligned bytes of consecutive elements
//! along the contiguous dimension. An index outside the logical extents is an error even if it hits
//! allocated memory. A pointer is an alias of a global buffer, and statements can move the element
//! at which the alias starts. An access through a pointer must stay inside the allocation, or
//! inside the array of a list that the pointer was set into. Arrays of a list
//! ([`BufferLayout::Listed`]) may overlap; an element that two arrays share is one element. Shared
//! memory starts uninitialised, and so do register arrays unless their declaration zeroes them.
//!
//! **Ordering.** An agent is a thread or an asynchronous operation. Accesses of two agents are
//! ordered only by synchronisation. Four things order accesses: program order within a thread, a
//! [`Stmt::Barrier`] among all threads of its scope, a named barrier, and an acquire that reads the
//! value of a release. An asynchronous copy is an agent. It is ordered after its issue, and before
//! the issuing thread's [`Stmt::CopyWait`] that covers its group. Order is transitive. Two
//! unordered accesses to the same word are a data race if at least one is a write, unless both are
//! atomics and the scope of each includes the other's thread. In a kernel with atomics on global
//! memory, accesses of two threads to an [`exclusive`](Buffer::exclusive) buffer are never ordered.
//! All threads of a barrier's scope must reach the *same* barrier statement, and the lanes of a
//! warp must reach it converged. The same holds for the lanes of a warp that execute a warp-wide
//! intrinsic.
//!
//! **Named barriers.** A block has 15 named barriers in addition to the barrier of all its threads.
//! Each [`Stmt::NamedBarrier`] adds 32 to the count of its barrier for each warp that reaches it. A
//! warp must reach it as a whole, converged. Different warps may reach different statements that
//! name the same barrier. When the count reaches the barrier's number of threads, the barrier
//! completes a round and counts from 0 again. Everything that the participants did before they
//! arrived is ordered before everything that the waiting threads do next. A thread that only
//! arrives does not wait, and is ordered after no other thread. Before a warp arrives in a round,
//! every arrival of the previous round must be ordered before it. That is, one thread of the warp
//! must be ordered after one thread of each warp that arrived in the previous round. A thread may
//! arrive without waiting at a barrier that is still incomplete when the block ends.
//!
//! **Atomics.** A [`Stmt::Atomic`] evaluates its index and operands, then reads its word and writes
//! it in one step; a load writes nothing. Each thread executes the atomic independently. All
//! atomics on a word have one total order, which is consistent with all other ordering. Each atomic
//! reads the value that the previous one in this order wrote. An atomic's scope is its block or the
//! launch. If the scope of one of two atomics or fences excludes the thread of the other, neither
//! orders the other. By itself, a [`MemoryOrder::Relaxed`] atomic orders no other access.
//!
//! * An atomic *releases* if its order is [`MemoryOrder::Release`] or [`MemoryOrder::AcqRel`]. It
//!   also releases if a fence precedes it in its thread, and then it releases the accesses before
//!   the fence. A failed compare-and-exchange writes nothing and releases nothing, but the race
//!   rule counts it as a write. The same holds for a load.
//! * An atomic *acquires* if its order is [`MemoryOrder::Acquire`] or [`MemoryOrder::AcqRel`]. It
//!   also acquires if a fence follows it in its thread, and then only accesses after the fence are
//!   ordered by the acquire.
//! * Released accesses are ordered before an acquiring atomic if it reads the value that the
//!   releasing atomic wrote, or a value that later atomics computed from that value. Every atomic
//!   reads the value that it replaces. It therefore continues the release sequence of that value,
//!   in whatever thread and with whatever order it executes. A store ends the sequence: a store
//!   releases nothing, even after a fence, and a load acquires nothing.
//!
//! **Matrix instructions.** All 32 lanes of a warp must execute a [`Stmt::Mma`] together,
//! converged. [`Mma::place_of_a`], [`Mma::place_of_b`] and [`Mma::place_of_d`] map the elements of
//! A, B and D to lanes. All operands are read before D is written. The summation is not IEEE
//! arithmetic and depends on the architecture; `gemm_sim::tensor_core::Rules::dot` defines it. The
//! simulator uses the rules of `sm_90` unless its caller requests another architecture.
//!
//! A [`Wgmma`] is executed by the 128 threads of a warpgroup: four warps of which the first has an
//! index that is a multiple of 4. Each warp must execute these statements as a whole. All four
//! warps must execute the same sequence of [`Wgmma`], [`WgmmaSync`] and [`RegisterLimit`]
//! statements, each with the same operands. The instruction accumulates by
//! `gemm_sim::tensor_core::Rules::dot`, starting from D or from +0. It is asynchronous: each of the
//! four warps has its own agent, and each agent reads all of A and B. A commit closes a group of
//! instructions. A [`WgmmaSync::Wait`] covers all groups except the `pending` most recent ones. All
//! lanes of its warp are then ordered after the groups that it covers. The wait orders nothing else
//! among threads, not even among the threads of a warp. Between the instruction and the wait that
//! covers it and names its accumulator array, no thread may touch the accumulators. Consecutive
//! instructions on the same accumulators must have the same shape. A [`WgmmaSync::Fence`] that
//! names the array must precede the first instruction that changes an accumulator in it, and also
//! the next such instruction after a statement that reads or writes any part of the array.
//!
//! A [`Stmt::LoadMatrix`] must also be executed by whole converged warps. Some lanes supply the row
//! addresses, and each lane receives its words ([`LoadMatrix::place`]).
//!
//! **Mbarriers.** Each thread that executes an [`Mbarrier`] statement performs the operation
//! independently. A barrier exists after its [`MbarrierOp::Init`], which must happen once and be
//! ordered before every other operation on the barrier. It has phases, counted from 0; the phase
//! before phase 0 counts as complete. A phase needs the number of arrivals given at initialisation,
//! and the bytes that the program expects in this phase. It completes when all arrivals and bytes
//! have arrived, and then the next phase begins. Bytes may arrive before the program expects them,
//! as long as an arrival is pending. The accesses of a thread before its arrival in a phase are
//! ordered before the accesses after a wait for that phase. So are the writes of copies whose bytes
//! count in it. A thread that arrives or issues a copy must be ordered after the completion of the
//! previous phase. Consider the last phase after whose completion a thread is ordered. A wait for
//! the parity of this phase returns at once. A wait for the other parity waits for the phase that
//! follows. The awaited phase is always the current or the previous one, because all waits for a
//! phase must be ordered before the completion of the next phase.
//!
//! **TMA copies.** A [`TensorCopy`] is asynchronous and has its own agent. It is ordered
//! after everything that the issuing thread is ordered after at the issue. Its bytes count at its
//! mbarrier. A box may begin anywhere, also outside the array, at a multiple of 16 bytes from the
//! start of a row. Elements outside the array are read as +0: all bits 0, for every type. In shared
//! memory a box has the extents of the tensor map, lies entirely inside the buffer, and is aligned
//! to [`TensorSwizzle::alignment`] bytes. Before the block ends, some thread of it must have waited
//! for the copy. No thread may write global memory covered by a tensor map while the kernel runs.
//!
//! **Clusters.** Groups of [`Kernel::cluster`] blocks, neighbours along x, form clusters. The
//! blocks of a cluster run concurrently. [`Special::ClusterRank`] is a block's index in its
//! cluster. [`Scope::Cluster`] covers the threads of all blocks of the cluster, and only barriers
//! may use it. Each block has its own shared memory. Three operations access another block's shared
//! memory, at the variable that has the same name there. A [`Stmt::StoreRemote`] is an ordinary
//! access of its thread to that memory. It must be ordered after the start of some thread of the
//! target block, which a barrier of the cluster achieves. With an mbarrier, the store is
//! asynchronous, like a copy whose bytes count at this mbarrier of the target block, and uses the
//! generic proxy. A thread that waits for the phase there is also ordered after everything that the
//! storing thread did before. A [`TensorCopy`] with a
//! [`multicast`](TensorCopy::multicast) reads the array once and writes the shared memory of
//! several blocks of the cluster. The bytes that a block receives count at the mbarrier of that
//! block. A thread that waits for the phase there is also ordered after the phases that the issuer
//! was ordered after, but after no other operation of the issuer. A [`MbarrierOp::ArriveRemote`]
//! arrives at a barrier of another block. The thread that initialised the barrier must have
//! published it by a [`ProxyFence::MbarrierInit`]. A relaxed arrival orders the copies, matrix
//! instructions and waits that its thread is ordered after, but no accesses of threads. All three
//! operations must be ordered before the exit of some thread of the target block. A kernel with
//! clusters has no atomics.
//!
//! **Proxies.** Ordinary statements access memory through the generic proxy. TMA copies, and
//! warpgroup matrix instructions that read shared memory, use the async proxy. An access through
//! one proxy is ordered before an access through the other only if a thread executes a
//! [`ProxyFence::Async`] that is ordered between them. No fence is needed after a wait for a phase
//! or for a group, because the wait itself reports that asynchronous work is complete. A
//! [`ProxyFence::MbarrierInit`] by the initialising thread suffices to publish initialised
//! barriers.
//!
//! **Fences.** A [`Stmt::Fence`] is not an access. It orders accesses only together with atomics
//! before and after it, as described above. The scopes of the fence and of these atomics all apply.
//! [`MemoryOrder::SeqCst`] fences also have one total order: an atomic after the later of two such
//! fences sees the writes of atomics before the earlier fence. This orders no other access. The
//! simulator cannot detect that a kernel lacks such a fence, because all threads see its memory
//! change in one order.

mod atomic;
mod box_rows;
mod build;
pub mod contract;
mod eval;
mod expr;
mod function;
mod handle;
mod host_expr;
mod interface;
mod kernel;
mod layout;
mod list;
mod mbarrier;
mod mma;
mod names;
pub mod program;
mod stmt;
mod tensor_map;
mod verify;
mod visit;
mod wgmma;

pub use crate::target::types::{Elem, Ty, VECTOR_BYTES};
pub use atomic::{Atomic, AtomicOp, MemoryOrder, Scope};
pub use build::{For, KernelBuilder};
pub use eval::{HostError, Scalars};
pub use expr::{Access, Arith, BinaryOp, Cmp, Expr, Integer, Logic, Special, UnaryOp};
pub use function::Function;
pub use handle::{BufferId, Const, FunctionId, MbarrierId, Scalar, Var};
pub use host_expr::{HostExpr, HostOp};
pub use interface::{Extent, Geometry, Operand, Requirement, Source, Variant};
pub use kernel::{ConstDecl, Kernel, KernelFamily, Param, ParamKind, VarDecl};
pub use layout::{Buffer, BufferLayout, Space, Swizzle};
pub use list::List;
pub use mbarrier::{Mbarrier, MbarrierDecl, MbarrierOp, MbarrierRef, ProxyFence};
pub use mma::{LoadMatrix, Mma};
#[cfg(test)]
pub(crate) use names::is_free;
pub use names::is_identifier;
pub(crate) use names::{MAX_NAME, Names, joined, listed};
pub use program::VerifiedProgram;
pub use stmt::{Change, Guard, Loop, PointerRef, Section, Stmt, Unroll};
pub use tensor_map::{TensorCopy, TensorMap, TensorSwizzle};
pub use verify::{IrError, VerifiedKernel};
pub use wgmma::{Descriptor, RegisterLimit, Wgmma, WgmmaSync};

pub use crate::target::intrinsic::Intrinsic;
