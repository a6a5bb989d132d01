//! The kernel IR and its normative semantics.
//!
//! A [`Kernel`] is one CUDA kernel: parameters, named constants, buffers and a structured body.
//! Two back ends read it, the CUDA printer and the simulator, and neither may add meaning of its
//! own. What follows is the definition both are tested against.
//!
//! **Execution.** Every thread of a block runs the body. Threads are grouped into warps of 32 by
//! linear thread index (`y * blockDim.x + x`). Nothing may be assumed about the order in which two
//! threads run between synchronising statements, not even inside a warp. Blocks run in any order, at
//! once or one after another, but for those of a cluster: one that waits for another may wait for ever. The results of a kernel with
//! atomics, by which threads of a block and blocks ([`Kernel::communicates`]) speak to one another, must
//! not depend on either order, but for the buffers of which it declares that they may
//! ([`Buffer::unordered`]). What it leaves in a buffer of its own is a result like any other.
//!
//! **Values.** A type is a truth value, one number of an [`Elem`], or a vector: the elements of 16
//! bytes. [`Ty::I32`] and [`Ty::I64`] are signed integers whose arithmetic must not overflow;
//! [`Ty::U32`] and [`Ty::U64`] wrap; all divide towards zero, and are shifted by less than their width,
//! to the right only if they are not negative. [`Ty::F32`] and [`Ty::F64`] are IEEE binary32 and
//! binary64, round to nearest even, subnormals kept; the text is compiled without contraction, so a
//! multiply-add is fused exactly where the IR has [`Intrinsic::Fma`]. A NaN produced by arithmetic on
//! binary32 is the canonical `0x7fffffff`; which NaN binary64 produces, or a conversion between the
//! two, is left open: GPUs hand on an operand's payload, the simulator gives `0xfff8000000000000`.
//! Loads, stores, selects, shuffles and bit casts move payloads unchanged. The other elements are
//! stored, moved and converted, never computed with.
//!
//! **Vectors** only move data: they are loaded, stored, packed and taken apart.
//!
//! **Conversions.** [`Expr::Cast`] keeps the value of an integer, which must fit; rounds an integer or a
//! wider number to the nearest floating-point number, of two the even one (to [`Elem::Tf32`] the one
//! greater in magnitude); cuts a floating-point number to the integer towards zero, or to the nearest
//! that the type has. A NaN becomes the integer 0 if both types have 4 bytes, else the integer with only
//! the topmost bit. A narrow element converts from and to its wide one: [`Elem::F32`] or [`Elem::I32`].
//!
//! **Expressions** have no side effects. They read variables, parameters and memory. The operands
//! of [`Expr::Select`], [`Logic::And`] and [`Logic::Or`] are evaluated only in the threads
//! that need them, as in C, so a guard protects the load behind it. Within one statement all reads
//! happen before the write.
//!
//! **Memory.** An [`Access`] names a buffer and a *logical* index, one expression per dimension.
//! The buffer's [`BufferLayout`] alone says where that element lies: padding, transposition and pitch
//! change no other code. A vector access covers the consecutive elements of 16 aligned bytes along the
//! dimension in which elements are adjacent. An index outside the logical extents is an error even
//! where it hits allocated memory. A pointer is an alias of a global buffer from a moving element on:
//! an access through it is bounded by the allocation alone, of a list by that of the array that it was set
//! into. Arrays of a list ([`BufferLayout::Listed`]) may share memory: an element of both is one. Shared memory
//! starts uninitialised, and so do register arrays unless their declaration says otherwise.
//!
//! **Ordering.** Accesses of two agents are ordered only through synchronisation: program order
//! within a thread, [`Stmt::Barrier`] among all threads of its scope, named barriers, an acquire after
//! the release that it reads from, and for an asynchronous copy (an agent of its own) from its issue,
//! and to the [`Stmt::CopyWait`] of the issuing thread that covers its group. Order is transitive. Two
//! unordered accesses to one word, one of them a write, are a data race, unless both are atomics within
//! each other's scope. Of a buffer that a kernel declares [`exclusive`](Buffer::exclusive) accesses of two threads are
//! never ordered, where atomics on global memory let blocks speak. All threads of a barrier's scope must reach the *same* barrier statement,
//! converged; the same holds for the lanes of a warp-wide intrinsic.
//!
//! **Named barriers.** A block has 15 barriers beside the one of all its threads. Each
//! [`Stmt::NamedBarrier`] adds 32 to the count of its barrier for each warp that reaches it, which it
//! does whole and converged, at whichever statement. At its number of threads the barrier completes a
//! round and counts from 0 again: what all who came did before they came is ordered before what those
//! who waited do next. Who only arrived has not waited, and is ordered after nobody. A warp comes to a
//! round after all have come to the one before: of each of those warps one of its threads knows one, by
//! that order. Who has arrived, without waiting, at one that is not complete when the block ends is no
//! fault.
//!
//! **Atomics.** A [`Stmt::Atomic`] evaluates its index and operands, then reads its word and writes it
//! in one step; each thread that executes it does so by itself. The atomics of a word have one order,
//! which agrees with all other order, and each reads what the one before it wrote. Its scope says for
//! whom this holds: the threads of its block or of the launch. Of two atomics or fences of which one's
//! scope lacks the other's thread, neither is ordered by the other. By itself, [`MemoryOrder::Relaxed`], an
//! atomic orders no other access.
//!
//! * It *releases* if its order is [`MemoryOrder::Release`] or [`MemoryOrder::AcqRel`], and also if a fence precedes
//!   it in its thread: then what precedes the fence is released. A compare-and-exchange that fails
//!   writes nothing and releases nothing, but is a write as far as races go.
//! * It *acquires* if its order is [`MemoryOrder::Acquire`] or [`MemoryOrder::AcqRel`], and also if a fence follows it
//!   in its thread: then it is for what follows the fence.
//! * What was released is ordered before what acquires it: an atomic that reads what the releasing one
//!   wrote, or what later atomics have made of it. As every atomic reads what it replaces, each
//!   continues the release sequences that it finds, whoever executes it and in whatever order. A store
//!   ends them: it releases nothing, even behind a fence, and a load acquires nothing.
//!
//! **Matrix instructions.** A [`Stmt::Mma`] is executed by whole warps of 32 lanes, converged. Which elements of
//! A, B and D a lane holds say [`Mma::place_of_a`], [`Mma::place_of_b`] and [`Mma::place_of_d`]. All operands are
//! read before D is written. How it sums is no IEEE arithmetic and depends on the architecture:
//! `gemm_sim::tensor_core::AccumulationRules::dot` says it. The simulator's are those of `sm_90`,
//! unless it is asked for others.
//!
//! A [`Wgmma`] is executed by the 128 threads of a warpgroup: four warps, of which the number of the first is a multiple
//! of 4. They execute the same sequence of such statements, of [`WgmmaSync`] and of [`RegisterLimit`], each with the same
//! operands, as whole warps. The instruction sums as
//! `gemm_sim::tensor_core::AccumulationRules::dot` says, from D or from +0 on. It
//! is asynchronous, and an agent of each of its warps that reads all of A and B. Commits close groups; a
//! [`WgmmaSync::Wait`] that leaves a group unfinished leaves all later ones so, and what it covers is over for all lanes of
//! its warp. It orders nothing else among threads, not even among those of a warp. From the instruction to the wait that
//! covers it and names the register array of its sums no thread touches them, but that instructions of one shape may
//! follow one another. A [`WgmmaSync::Fence`] that names the array stands before the first instruction that changes a sum
//! in it, and again before the next one behind a statement that reads or writes any of it.
//!
//! A [`Stmt::LoadMatrix`], too, is executed by whole warps, converged. It reads what each lane that counts says, in
//! that lane, and gives each lane its words ([`LoadMatrix::place`]).
//!
//! **Barriers in shared memory.** An [`Mbarrier`] is done by each thread that executes it, by itself. A barrier is one
//! from its [`MbarrierOp::Init`] on, which happens once and is ordered before all else at it. It has phases, counted from 0;
//! the phase before the first is complete. In each so many arrivals are awaited as the barrier was made for, and as many
//! bytes as are expected in it; the phase is complete when all have come, and not before, and the next one begins. Bytes may
//! come before they are expected, as long as an arrival is missing. What a thread did before it arrived is ordered before
//! what those do next who wait for that phase; what copies have written whose bytes count in it, too. Who arrives, or issues
//! a copy, comes after the phase before by that order. A wait for a parity is one for the last phase of that parity that the
//! thread comes after, if it comes after no later one, or else for the next phase. That is the current one or the one
//! before, whenever the wait happens: all who wait for a phase have done so, by that order, when the next one is complete.
//!
//! **Copies of boxes.** A [`TensorCopy`] is asynchronous, and no agent of a thread's: it comes after what its thread knows
//! when it issues it. Its bytes count at its barrier. It begins anywhere, outside of the array too, but at a multiple of
//! 16 bytes from the start of a row; what it reads outside is +0, of all types the bits 0. In shared memory a box is as large as the tensor map says, all of it inside
//! the buffer, and starts on [`TensorSwizzle::alignment`] bytes. Some thread of the block has waited for it
//! before the block ends. Global memory that a tensor map stands for no thread writes while the kernel runs.
//!
//! **Clusters.** So many blocks as [`Kernel::cluster`] says, neighbours along x, make a cluster; they run at once. A block's
//! number in it is [`Special::ClusterRank`]. [`Scope::Cluster`] is all their threads, for barriers alone. Each block has shared
//! memory of its own; what is done to that of another one, at the place that has the same name there, is one of two things.
//! A [`TensorCopy`] with a [`multicast`](TensorCopy::multicast) is as many copies, that read the array once: each writes the
//! shared memory of a block of the cluster, and its bytes count at the barrier of that block. Who waits for that phase comes
//! after the phases too that its issuer came after, but after nothing else for it. A [`MbarrierOp::ArriveRemote`] is an
//! arrival at a barrier of another block, which a [`ProxyFence::MbarrierInit`] of the thread that has made it has shown;
//! a relaxed one orders what its thread knows of copies, matrix instructions and waits, and no access of a thread.
//! Either comes, by that order, before some thread of that block leaves the kernel. A kernel of clusters has no atomics.
//!
//! **Proxies.** Statements go to memory one way; copies of boxes, and the matrix instructions of warpgroups that read
//! shared memory, another. What went one way is ordered before what goes the other only where a thread has executed a
//! [`ProxyFence::Async`] in between: behind the one in that order, before the other. No fence is needed behind what itself
//! says that asynchronous work is over, a wait for a phase or for a group. That barriers have been made,
//! [`ProxyFence::MbarrierInit`] of the thread that has made them is enough to show.
//!
//! **Fences.** A [`Stmt::Fence`] is no access and orders nothing by itself, only with the atomics before
//! and behind it, as above: for that its own scope counts as well as theirs. Those that are
//! [`MemoryOrder::SeqCst`] have one order besides: an atomic behind the later one sees what atomics before the
//! earlier one wrote. No other access is ordered by that, and the simulator cannot tell a kernel that lacks
//! it: its memory has one order for all, in which every fence is as strong.

mod atomic;
mod box_rows;
mod build;
pub mod contract;
mod eval;
mod expr;
mod function;
mod handle;
mod interface;
mod kernel;
mod layout;
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
pub use interface::{Extent, Geometry, Operand, Requirement, Source, Variant};
pub use kernel::{ConstDecl, Kernel, Param, ParamKind, VarDecl};
pub use layout::{Buffer, BufferLayout, Space, Swizzle};
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
