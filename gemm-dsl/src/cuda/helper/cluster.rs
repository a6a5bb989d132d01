//! CUDA spelling of cluster operations.

use super::{HelperFamily, head};
use crate::cuda::types::{MBARRIER, element_type, vector_type};
use crate::ir::{
    Access, Elem, Expr, Kernel, MbarrierId, MbarrierOp, MemoryOrder, Scope, Special, Stmt,
};

/// Expression for a block's index in its cluster.
pub(in crate::cuda) const RANK: &str = "cluster_rank()";
/// Statement for a barrier of all threads of the cluster.
pub(in crate::cuda) const BARRIER: &str = "cluster_barrier();";
/// Name of the function that writes shared memory of another block.
pub(in crate::cuda) fn store(target: &Access) -> &'static str {
    if target.is_vector() { "store_remote_16" } else { "store_remote" }
}

/// Name of the function that writes shared memory of another block asynchronously.
pub(in crate::cuda) const STORE: &str = "store_async";

/// Name of the function that arrives at an mbarrier of another block.
pub(in crate::cuda) fn arrive(order: MemoryOrder) -> &'static str {
    Arrival::from_order(order).name
}

/// Parts in which arrivals at mbarriers of other blocks differ.
struct Arrival {
    name: &'static str,
    /// PTX spelling of the memory order.
    sem: &'static str,
    comment: &'static str,
    at: (HelperFamily, u8),
}

const RELEASE: Arrival = Arrival {
    name: "mbarrier_arrive_remote",
    sem: "release",
    comment: "// Arrives at this mbarrier in block `block` of the cluster, without waiting.",
    at: (HelperFamily::Mbarrier, 2),
};

const RELAXED: Arrival = Arrival {
    name: "mbarrier_arrive_relaxed",
    sem: "relaxed",
    comment: "// Arrives at this mbarrier in block `block` of the cluster, without waiting. \
              A relaxed arrival\n\
              // is enough: only the async proxy has read the stage that it releases.",
    at: (HelperFamily::Mbarrier, 6),
};

impl Arrival {
    fn from_order(order: MemoryOrder) -> &'static Self {
        match order {
            MemoryOrder::Relaxed => &RELAXED,
            MemoryOrder::Release => &RELEASE,
            MemoryOrder::Acquire | MemoryOrder::AcqRel | MemoryOrder::SeqCst => {
                unreachable!("Kernel::verify: arrivals release, or are relaxed")
            }
        }
    }

    fn definition(&self) -> String {
        let Self { name, sem, comment, .. } = self;
        format!(
            "\
{comment}
__device__ __forceinline__ void {name}({MBARRIER}* barrier, int block)
{{
    const unsigned int at = __cvta_generic_to_shared(barrier);
    unsigned int there;
    asm volatile(\"mapa.shared::cluster.u32 %0, %1, %2;\" \
        : \"=r\"(there) : \"r\"(at), \"r\"(block));
    asm volatile(\"mbarrier.arrive.{sem}.cluster.shared::cluster.b64 _, [%0];\"
                 :: \"r\"(there) : \"memory\");
}}
"
        )
    }
}

/// Name of the function that waits at an mbarrier at which threads of other blocks arrive.
pub(in crate::cuda) const WAIT: &str = "mbarrier_wait_cluster";

/// Returns true if threads of other blocks arrive at any of these mbarriers, or store values whose
/// bytes count there. A waiting thread must then see the accesses of those threads.
pub(in crate::cuda) fn has_remote_arrivals(k: &Kernel, barriers: MbarrierId) -> bool {
    let mut hears = false;
    k.visit(&mut |stmt| match stmt {
        Stmt::Mbarrier(barrier) => {
            let is_remote = matches!(barrier.op, MbarrierOp::ArriveRemote { .. });
            hears |= is_remote && barrier.at.barriers == barriers;
        }
        Stmt::StoreRemote { barrier: Some(barrier), .. } => hears |= barrier.barriers == barriers,
        _ => {}
    });
    hears
}

/// Passes to `note` the definitions that expressions and statements need, with their positions in
/// the source.
pub(in crate::cuda) fn definition(k: &Kernel, note: &mut impl FnMut((HelperFamily, u8), String)) {
    k.visit_exprs(&mut |e| {
        if *e == Expr::Special(Special::ClusterRank) {
            note((HelperFamily::Cluster, 1), CLUSTER_RANK.to_owned());
        }
    });
    k.visit(&mut |stmt| match stmt {
        Stmt::Barrier(Scope::Cluster) => {
            note((HelperFamily::Cluster, 2), CLUSTER_BARRIER.to_owned())
        }
        Stmt::StoreRemote { target, barrier, .. } => {
            let (family, rank) = (HelperFamily::Cluster, store_rank(target));
            match barrier {
                None => note((family, rank), store_definition(target)),
                Some(_) => note((family, 64 + rank), async_definition(target.buffer.elem)),
            }
        }
        Stmt::Mbarrier(barrier) => {
            if let MbarrierOp::ArriveRemote { order, .. } = barrier.op {
                let arrival = Arrival::from_order(order);
                note(arrival.at, arrival.definition());
            }
        }
        _ => {}
    });
}

const CLUSTER_RANK: &str = "\
// Rank of this block in its cluster.
__device__ __forceinline__ int cluster_rank()
{
    int rank;
    asm(\"mov.u32 %0, %%cluster_ctarank;\" : \"=r\"(rank));
    return rank;
}
";

const CLUSTER_BARRIER: &str = "\
// Barrier of all threads of the cluster.
__device__ __forceinline__ void cluster_barrier()
{
    asm volatile(\"barrier.cluster.arrive.release;\" ::: \"memory\");
    asm volatile(\"barrier.cluster.wait.acquire;\" ::: \"memory\");
}
";

/// Position of the definition of a remote store. Element types that CUDA C++ represents by the same
/// type share the function.
fn store_rank(target: &Access) -> u8 {
    let first = |elem: Elem| match elem {
        Elem::Tf32 => Elem::F32,
        Elem::F16 | Elem::Bf16 => Elem::U16,
        Elem::E4m3 | Elem::E5m2 => Elem::U8,
        elem => elem,
    };
    3 + 2 * first(target.buffer.elem) as u8 + u8::from(target.is_vector())
}

fn store_definition(target: &Access) -> String {
    let (name, elem) = (store(target), target.buffer.elem);
    let (ty, vector) = (element_type(elem), vector_type(elem));
    let (value, there) = match target.is_vector() {
        true => (vector, format!("*reinterpret_cast<{vector}*>(there)")),
        false => (ty, "*there".to_owned()),
    };
    let aligned = if target.is_vector() { ", which must be 16-byte aligned" } else { "" };
    format!(
        "\
// Writes `value` to this place in the shared memory of block `block` of the cluster{aligned}.
__device__ __forceinline__ void {name}({ty}* to, int block, {value} value)
{{
    {ty}* there;
    asm volatile(\"mapa.u64 %0, %1, %2;\" : \"=l\"(there) : \"l\"(to), \"r\"(block));
    {there} = value;
}}
"
    )
}

fn async_definition(elem: Elem) -> String {
    let ty = element_type(elem);
    let (suffix, constraint) = match elem {
        Elem::F32 | Elem::Tf32 => ("f32", "f"),
        Elem::F64 => ("f64", "d"),
        Elem::I64 | Elem::U64 => ("b64", "l"),
        Elem::I32 | Elem::U32 => ("b32", "r"),
        Elem::F16 | Elem::Bf16 | Elem::I16 | Elem::U16 => {
            unreachable!("verify: an asynchronous store has 4 or 8 bytes")
        }
        Elem::E4m3 | Elem::E5m2 | Elem::I8 | Elem::U8 => {
            unreachable!("verify: an asynchronous store has 4 or 8 bytes")
        }
    };
    let head = head(STORE, &format!("{ty}* to, int block, {ty} value, {MBARRIER}* barrier"));
    format!(
        "\
// Writes `value` to this place in the shared memory of block `block` of the cluster, \
without waiting.
// Its bytes count at this barrier of that block.
{head}
{{
    const unsigned int place = __cvta_generic_to_shared(to);
    const unsigned int counts = __cvta_generic_to_shared(barrier);
    unsigned int there, counts_there;
    asm volatile(\"mapa.shared::cluster.u32 %0, %1, %2;\" \
        : \"=r\"(there) : \"r\"(place), \"r\"(block));
    asm volatile(\"mapa.shared::cluster.u32 %0, %1, %2;\" \
        : \"=r\"(counts_there) : \"r\"(counts), \"r\"(block));
    asm volatile(\"st.async.shared::cluster.mbarrier::complete_tx::bytes.{suffix} [%0], %1, [%2];\"
                 :: \"r\"(there), \"{constraint}\"(value), \"r\"(counts_there) : \"memory\");
}}
"
    )
}
