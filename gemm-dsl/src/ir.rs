//! The kernel IR and its normative semantics.
//!
//! A [`Kernel`] is one CUDA kernel: parameters, named constants, buffers and a structured body. Two
//! back ends read it, the CUDA printer and the simulator. Neither may add meaning of its own. This
//! page is the definition that both are tested against.
//!
//! **Execution.** Every thread of a block runs the body. Threads are grouped into warps of 32 by
//! linear thread index (`y * blockDim.x + x`). The order in which two threads run between
//! synchronising statements is unspecified, even inside a warp. Blocks run in any order,
//! concurrently or one after another, so a block that waits for another may wait forever. Only the
//! blocks of a cluster are guaranteed to run concurrently. A kernel with atomics may exchange data
//! between the threads of a block and between blocks ([`Kernel::communicates`]). Its results must
//! not depend on either order, except in the buffers that it declares
//! [`unordered`](Buffer::unordered). The final content of a temporary buffer is a result like any
//! other.
//!
//! **Values.** A type is a boolean, a scalar of an [`Elem`], or a vector of 16 bytes of elements.
//! [`Ty::I32`] and [`Ty::I64`] are signed integers whose arithmetic must not overflow; [`Ty::U32`]
//! and [`Ty::U64`] wrap. Integer division truncates towards zero. A shift count is less than the
//! width, and only non-negative integers are shifted right. [`Ty::F32`] and [`Ty::F64`] are IEEE
//! binary32 and binary64, round to nearest even, with subnormals. The CUDA source is compiled
//! without contraction, so a multiply-add is fused exactly where the IR has [`Intrinsic::Fma`]. A
//! NaN produced by binary32 arithmetic is the canonical `0x7fffffff`. The NaN produced by binary64
//! arithmetic, or by a conversion between the two, is unspecified: GPUs propagate an operand's
//! payload, the simulator returns `0xfff8000000000000`. Loads, stores, selects, shuffles and bit
//! casts keep payloads. The other element types are stored, moved and converted, but not computed
//! with.
//!
//! **Vectors** only move data: they are loaded, stored, packed and unpacked.
//!
//! **Conversions.** [`Expr::Cast`] from integer to integer keeps the value, which must fit. A
//! conversion to floating point rounds to nearest, ties to even (to [`Elem::Tf32`]: ties away from
//! zero). A conversion from floating point to an integer truncates towards zero and saturates. A
//! NaN becomes the integer 0 if both types have 4 bytes, otherwise the integer with only the
//! topmost bit set. A narrow element type converts from and to its wide one: [`Elem::F32`] or
//! [`Elem::I32`].
//!
//! **Expressions** have no side effects. They read variables, parameters and memory. The operands
//! of [`Expr::Select`], [`Logic::And`] and [`Logic::Or`] are evaluated only in the threads that
//! need them, as in C, so a guard protects the load behind it. Within one statement all reads
//! happen before the write.
//!
//! **Memory.** An [`Access`] names a buffer and a *logical* index, one expression per dimension.
//! Only the buffer's [`BufferLayout`] maps it to an address, so padding, transposition and row
//! strides change no other code. A vector access covers the consecutive elements of 16 aligned
//! bytes along the contiguous dimension. An index outside the logical extents is an error even if
//! it hits allocated memory. A pointer is an alias of a global buffer that starts at a moving
//! element. An access through it is bounded only by the allocation, or by the array of a list that
//! it was set into. Arrays of a list ([`BufferLayout::Listed`]) may overlap; an element in both is
//! one element. Shared memory starts uninitialised, and so do register arrays unless their
//! declaration zeroes them.
//!
//! **Ordering.** Accesses of two agents are ordered only through synchronisation. Order follows
//! from program order within a thread, from [`Stmt::Barrier`] among all threads of its scope, from
//! named barriers, and from a release to the acquire that reads it. An asynchronous copy is an
//! agent of its own. It is ordered after its issue and before the [`Stmt::CopyWait`] of the issuing
//! thread that covers its group. Order is transitive. Two unordered accesses to one word, one of
//! them a write, are a data race, unless both are atomics within each other's scope. In a kernel
//! with atomics on global memory, accesses of two threads to an [`exclusive`](Buffer::exclusive)
//! buffer are never ordered. All threads of a barrier's scope must reach the *same* barrier
//! statement, converged; the same holds for the lanes of a warp-wide intrinsic.
//!
//! **Named barriers.** A block has 15 barriers besides the one of all its threads. Each
//! [`Stmt::NamedBarrier`] adds 32 to the count of its barrier for each warp that reaches it. The
//! whole warp reaches it converged, at any such statement. When the count reaches the barrier's
//! number of threads, the barrier completes a round and counts from 0 again. Everything that the
//! participants did before they arrived is ordered before everything that the waiting threads do
//! next. A thread that only arrived has not waited and is ordered after nobody. A warp arrives in a
//! round only after every arrival of the previous round is ordered before it: one of its threads
//! must be ordered after one thread of each of those warps. A thread may arrive without waiting at
//! a barrier that is still incomplete when the block ends.
//!
//! **Atomics.** A [`Stmt::Atomic`] evaluates its index and operands, then reads its word and writes
//! it in one step. Each thread that executes it does so independently. The atomics on a word have
//! one total order. It agrees with all other order, and each atomic reads the value that the
//! previous one wrote. Its scope, the threads of its block or of the launch, limits for whom this
//! holds. If the scope of one of two atomics or fences excludes the other's thread, neither orders
//! the other. By itself, a [`MemoryOrder::Relaxed`] atomic orders no other access.
//!
//! * An atomic *releases* if its order is [`MemoryOrder::Release`] or [`MemoryOrder::AcqRel`]. It
//!   also releases if a fence precedes it in its thread: then the accesses before the fence are
//!   released. A failed compare-and-exchange writes nothing and releases nothing, but counts as a
//!   write for races.
//! * An atomic *acquires* if its order is [`MemoryOrder::Acquire`] or [`MemoryOrder::AcqRel`]. It
//!   also acquires if a fence follows it in its thread: then it acquires for the accesses after the
//!   fence.
//! * Released accesses are ordered before an acquiring atomic that reads the value written by the
//!   releasing one, or a value that later atomics computed from it. As every atomic reads the value
//!   it replaces, each continues the release sequences that it finds, in whatever thread and with
//!   whatever order. A store ends them: it releases nothing, even after a fence, and a load
//!   acquires nothing.
//!
//! **Matrix instructions.** A [`Stmt::Mma`] is executed by whole converged warps of 32 lanes.
//! [`Mma::place_of_a`], [`Mma::place_of_b`] and [`Mma::place_of_d`] map the elements of A, B and D
//! to lanes. All operands are read before D is written. The summation is not IEEE arithmetic and
//! depends on the architecture; `gemm_sim::tensor_core::Rules::dot` defines it. The simulator uses
//! the rules of `sm_90` unless others are requested.
//!
//! A [`Wgmma`] is executed by the 128 threads of a warpgroup: four warps, the first with an index
//! that is a multiple of 4. As whole warps, they execute the same sequence of [`Wgmma`],
//! [`WgmmaSync`] and [`RegisterLimit`] statements, each with the same operands. The instruction
//! accumulates by `gemm_sim::tensor_core::Rules::dot`, starting from D or from +0. It is
//! asynchronous, and acts as an agent of each of its warps that reads all of A and B. Commits close
//! groups. A [`WgmmaSync::Wait`] that leaves a group unfinished leaves all later ones unfinished;
//! the groups that it covers are complete for all lanes of its warp. It orders nothing else among
//! threads, not even among those of a warp. Between the instruction and the wait that covers it and
//! names its accumulator array, no thread may touch the accumulators. Only instructions of one
//! shape may follow one another on them. A [`WgmmaSync::Fence`] that names the array must precede
//! the first instruction that changes an accumulator in it, and again the next one after a
//! statement that reads or writes any of it.
//!
//! A [`Stmt::LoadMatrix`] is also executed by whole converged warps. It reads the row addresses
//! from the lanes that supply them, and gives each lane its words ([`LoadMatrix::place`]).
//!
//! **Mbarriers.** Each thread that executes an [`Mbarrier`] statement performs the operation
//! independently. A barrier exists from its [`MbarrierOp::Init`] on, which happens once and is
//! ordered before every other operation on it. It has phases, counted from 0; the phase before the
//! first is complete. Each phase awaits the number of arrivals given at initialisation and the
//! bytes expected in it. The phase completes when all have arrived, not earlier, and the next one
//! begins. Bytes may arrive before they are expected while an arrival is pending. The accesses of a
//! thread before its arrival are ordered before the accesses after a wait for that phase. So are
//! the writes of copies whose bytes count in it. A thread that arrives or issues a copy must be
//! ordered after the previous phase. A wait for a parity waits for the last phase of that parity
//! that the thread is ordered after, if it is ordered after no later phase, and otherwise for the
//! next phase. This is always the current phase or the previous one: all waits for a phase must be
//! ordered before the completion of the next.
//!
//! **Box copies (TMA).** A [`TensorCopy`] is asynchronous and belongs to no thread's agent: it is
//! ordered after everything that its thread is ordered after when it issues it. Its bytes count at
//! its barrier. A box may begin anywhere, also outside the array, at a multiple of 16 bytes from
//! the start of a row. Elements outside the array are read as +0: all bits 0, for every type. In
//! shared memory a box has the extents of the tensor map, lies entirely inside the buffer, and is
//! aligned to [`TensorSwizzle::alignment`] bytes. Some thread of the block must have waited for it
//! before the block ends. No thread may write global memory covered by a tensor map while the
//! kernel runs.
//!
//! **Clusters.** [`Kernel::cluster`] blocks, neighbours along x, form a cluster; they run
//! concurrently. [`Special::ClusterRank`] is a block's index in its cluster. [`Scope::Cluster`]
//! covers all their threads, and only barriers may use it. Each block has its own shared memory.
//! Two operations act on the object of the same name in another block's shared memory. A
//! [`TensorCopy`] with a [`multicast`](TensorCopy::multicast) reads the array once and writes the
//! shared memory of several blocks of the cluster; in each, the bytes count at that block's
//! barrier. A thread that waits for that phase is also ordered after the phases that the issuer was
//! ordered after, but after nothing else of the issuer. A [`MbarrierOp::ArriveRemote`] arrives at a
//! barrier of another block. The thread that initialised the barrier must have published it by a
//! [`ProxyFence::MbarrierInit`]. A relaxed arrival orders the copies, matrix instructions and waits
//! known to its thread, and no access of a thread. Both operations must be ordered before the exit
//! of some thread of the target block. A kernel with clusters has no atomics.
//!
//! **Proxies.** Ordinary statements access memory through one proxy; box copies and warpgroup
//! matrix instructions that read shared memory use another, the async proxy. An access through one
//! proxy is ordered before an access through the other only if a thread executes a
//! [`ProxyFence::Async`] that is ordered between them. No fence is needed after an operation that
//! itself reports the completion of asynchronous work: a wait for a phase or for a group. A
//! [`ProxyFence::MbarrierInit`] by the initialising thread suffices to publish initialised
//! barriers.
//!
//! **Fences.** A [`Stmt::Fence`] is no access. It orders only together with the atomics before and
//! after it, as above, and its own scope counts as well as theirs. [`MemoryOrder::SeqCst`] fences
//! also have one total order: an atomic after the later fence sees the writes of atomics before the
//! earlier one. This orders no other access. The simulator cannot detect a kernel that lacks such a
//! fence: its memory has a single order, in which every fence is as strong.

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
pub use kernel::{ConstDecl, Kernel, Param, ParamKind, VarDecl};
pub use layout::{Buffer, BufferLayout, Space, Swizzle};
pub use list::List;
pub use mbarrier::{Mbarrier, MbarrierDecl, MbarrierOp, MbarrierRef, ProxyFence};
pub use mma::{LoadMatrix, Mma};
#[cfg(test)]
pub(crate) use names::is_free;
pub use names::is_identifier;
pub(crate) use names::{MAX_NAME, Names, joined};
pub use program::VerifiedProgram;
pub use stmt::{Change, Guard, Loop, PointerRef, Stmt, Unroll};
pub use tensor_map::{TensorCopy, TensorMap, TensorSwizzle};
pub use verify::{IrError, VerifiedKernel};
pub use wgmma::{Descriptor, RegisterLimit, Wgmma, WgmmaSync};

pub use crate::target::intrinsic::Intrinsic;
