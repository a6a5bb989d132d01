//! Names that a kernel in CUDA C++ cannot declare.

use crate::target::Format;
use std::collections::BTreeSet;
use std::sync::LazyLock;

const KEYWORDS: &str = "\
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t \
    char32_t char8_t class co_await co_return co_yield compl concept const const_cast \
    consteval constexpr constinit continue decltype default delete do double dynamic_cast \
    else enum explicit export extern false float for friend goto if inline int long \
    mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected \
    public register reinterpret_cast requires return short signed sizeof static \
    static_assert static_cast struct switch template this thread_local throw true try \
    typedef typeid typename union unsigned using virtual void volatile wchar_t while xor \
    xor_eq";

/// Names of CUDA that a source uses, and names that a source defines. A test of the printer
/// compares this list with the printer's device functions.
pub(crate) const CUDA: &str = "\
    Shared TensorMap atomicAdd atomicAdd_block atomicCAS atomicCAS_block atomicExch \
    atomicExch_block atomicMax atomicMax_block atomicMin atomicMin_block \
    atomic_add_acq_rel atomic_add_acq_rel_block atomic_add_acq_rel_block_shared \
    atomic_add_acq_rel_shared atomic_add_acquire atomic_add_acquire_block \
    atomic_add_acquire_block_shared atomic_add_acquire_shared atomic_add_release \
    atomic_add_release_block atomic_add_release_block_shared atomic_add_release_shared \
    atomic_compare_exchange_acq_rel atomic_compare_exchange_acq_rel_block \
    atomic_compare_exchange_acq_rel_block_shared atomic_compare_exchange_acq_rel_shared \
    atomic_compare_exchange_acquire atomic_compare_exchange_acquire_block \
    atomic_compare_exchange_acquire_block_shared atomic_compare_exchange_acquire_shared \
    atomic_compare_exchange_release atomic_compare_exchange_release_block \
    atomic_compare_exchange_release_block_shared atomic_compare_exchange_release_shared \
    atomic_exchange_acq_rel atomic_exchange_acq_rel_block \
    atomic_exchange_acq_rel_block_shared atomic_exchange_acq_rel_shared \
    atomic_exchange_acquire atomic_exchange_acquire_block \
    atomic_exchange_acquire_block_shared atomic_exchange_acquire_shared \
    atomic_exchange_release atomic_exchange_release_block \
    atomic_exchange_release_block_shared atomic_exchange_release_shared atomic_max_acq_rel \
    atomic_max_acq_rel_block atomic_max_acq_rel_block_shared atomic_max_acq_rel_shared \
    atomic_max_acquire atomic_max_acquire_block atomic_max_acquire_block_shared \
    atomic_max_acquire_shared atomic_max_release atomic_max_release_block \
    atomic_max_release_block_shared atomic_max_release_shared atomic_min_acq_rel \
    atomic_min_acq_rel_block atomic_min_acq_rel_block_shared atomic_min_acq_rel_shared \
    atomic_min_acquire atomic_min_acquire_block atomic_min_acquire_block_shared \
    atomic_min_acquire_shared atomic_min_release atomic_min_release_block \
    atomic_min_release_block_shared atomic_min_release_shared blockDim blockIdx ceil ceilf \
    cluster_barrier cluster_rank copy_async_16 copy_async_16_if copy_async_16_or_zero \
    copy_async_4 copy_async_4_if copy_async_4_or_zero copy_async_8 copy_async_8_if \
    copy_async_8_or_zero copy_commit copy_wait descriptor_128 descriptor_32 descriptor_64 dim3 \
    double2 fabs fabsf fence_acq_rel fence_acq_rel_block fence_mbarrier_init fence_proxy_async \
    fewer_registers float2 float3 float4 floor floorf fma fmaf fmaxf fminf from_bf16 \
    from_e4m3 from_e5m2 from_f16 gridDim int4 load16 load4 load_matrix_x1 \
    load_matrix_x1_transposed load_matrix_x2 load_matrix_x2_transposed load_matrix_x4 \
    load_matrix_x4_transposed longlong2 main \
    make_double2 make_float4 make_int4 make_longlong2 make_uint4 make_ulonglong2 maximum \
    mbarrier_arrive mbarrier_arrive_expect mbarrier_arrive_relaxed mbarrier_arrive_remote \
    mbarrier_init mbarrier_wait mbarrier_wait_cluster min minimum mma_bf16 mma_f16 mma_tf32 \
    more_registers named_arrive named_barrier pack_bf16 pack_f16 rint rintf shared \
    shared_memory size_t store16 store4 store_async store_remote store_remote_16 \
    tensor_copy_2d tensor_copy_3d tensor_multicast_2d tensor_multicast_3d threadIdx \
    to_bf16 to_e4m3 to_e5m2 to_f16 to_tf32 trunc truncf uint4 ulonglong2 warpSize \
    wgmma_commit wgmma_fence wgmma_keep wgmma_wait";

/// Returns true if C++, CUDA or a device function of a source may use the name.
pub(crate) fn is_reserved(name: &str) -> bool {
    static WORDS: LazyLock<BTreeSet<&str>> =
        LazyLock::new(|| KEYWORDS.split(' ').chain(CUDA.split(' ')).collect());
    name.contains("__") || WORDS.contains(name) || is_wgmma(name)
}

/// Returns true for the function of a `wgmma` instruction, such as `wgmma_bf16_n128`.
fn is_wgmma(name: &str) -> bool {
    let shape = name.strip_prefix("wgmma_").and_then(|rest| rest.split_once("_n"));
    shape.is_some_and(|(formats, columns)| {
        let is_format = |format: &str| Format::ALL.iter().any(|known| known.name() == format);
        let columns = ["_mn_a", "_mn_b", "_mn_ab"]
            .iter()
            .find_map(|order| columns.strip_suffix(order))
            .unwrap_or(columns);
        formats.split('_').all(is_format)
            && columns.parse().is_ok_and(|n: u32| {
                n.is_multiple_of(8) && (8..=256).contains(&n) && n.to_string() == columns
            })
    })
}
