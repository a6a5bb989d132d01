//! Device functions of asynchronous units, with one PTX instruction each: names and definitions.

use super::{HelperFamily, cluster, head};
use crate::cuda::types::{MBARRIER, TENSOR_MAP, element_type};
use crate::ir::{
    Descriptor, Elem, Expr, Kernel, MbarrierOp, ParamKind, ProxyFence, Stmt, TensorSwizzle, Wgmma,
    WgmmaSync,
};
use crate::target::Format;

/// Name of the function across which the compiler must not move accesses to accumulators.
pub(in crate::cuda) const KEEP: &str = "wgmma_keep";
pub(in crate::cuda) const FENCE: &str = "wgmma_fence";
pub(in crate::cuda) const COMMIT: &str = "wgmma_commit";
pub(in crate::cuda) const WAIT: &str = "wgmma_wait";

pub(in crate::cuda) fn op(op: &MbarrierOp) -> &'static str {
    match op {
        MbarrierOp::Init { .. } => "mbarrier_init",
        MbarrierOp::Arrive => "mbarrier_arrive",
        MbarrierOp::ArriveRemote { order, .. } => cluster::arrive(*order),
        MbarrierOp::ArriveExpect { .. } => "mbarrier_arrive_expect",
        MbarrierOp::Wait { .. } => wait(false),
    }
}

/// Name of the function that waits. `has_remote_arrivals` is true if threads of other blocks arrive
/// at the mbarrier.
pub(in crate::cuda) fn wait(has_remote_arrivals: bool) -> &'static str {
    if has_remote_arrivals { cluster::WAIT } else { "mbarrier_wait" }
}

pub(in crate::cuda) fn fence(fence: ProxyFence) -> &'static str {
    match fence {
        ProxyFence::Async => "fence_proxy_async",
        ProxyFence::MbarrierInit => "fence_mbarrier_init",
    }
}

/// Name of the function that copies a box of `rank` dimensions, to one block or by multicast.
pub(in crate::cuda) fn tensor_copy(rank: usize, multicast: bool) -> String {
    format!("tensor_{}_{rank}d", if multicast { "multicast" } else { "copy" })
}

/// Bytes of a swizzled row. `wgmma` reads only swizzled rows.
fn row_bytes(swizzle: TensorSwizzle) -> u32 {
    swizzle.bytes().unwrap_or_else(|| unreachable!("verify: rows that `wgmma` reads are swizzled"))
}

/// Name of the function that builds the descriptor for rows with this swizzle.
pub(in crate::cuda) fn descriptor(swizzle: TensorSwizzle, mn_major: bool) -> String {
    let order = if mn_major { "mn_" } else { "" };
    format!("{order}descriptor_{}", row_bytes(swizzle))
}

/// Names of the formats of A and B, or a single one if they have the same.
fn names([a, b]: [Format; 2]) -> String {
    if a == b { a.name().to_owned() } else { format!("{}_{}", a.name(), b.name()) }
}

/// Name of the function for a `wgmma` instruction.
pub(in crate::cuda) fn wgmma([a, b]: [Format; 2], columns: u32, mn_major: [bool; 2]) -> String {
    let order = match mn_major {
        [false, false] => "",
        [true, false] => "_mn_a",
        [false, true] => "_mn_b",
        [true, true] => "_mn_ab",
    };
    format!("wgmma_{}_n{columns}{order}", names([a, b]))
}

pub(in crate::cuda) fn register_limit(more: bool) -> &'static str {
    if more { "more_registers" } else { "fewer_registers" }
}

/// Passes to `note` the definitions that parameters and statements need, with their positions in
/// the source.
pub(in crate::cuda) fn definition(k: &Kernel, note: &mut impl FnMut((HelperFamily, u8), String)) {
    if k.params.iter().any(|p| matches!(p.kind, ParamKind::TensorMap { .. })) {
        note((HelperFamily::Cluster, 0), TENSOR_MAP_TYPE.to_owned());
    }
    k.visit(&mut |stmt| match stmt {
        Stmt::Mbarrier(barrier) => match &barrier.op {
            MbarrierOp::Init { .. } => {
                note((HelperFamily::Mbarrier, 0), mbarrier(op(&barrier.op), INIT))
            }
            MbarrierOp::Arrive => {
                note((HelperFamily::Mbarrier, 1), mbarrier(op(&barrier.op), ARRIVE))
            }
            MbarrierOp::ArriveRemote { .. } => {}
            MbarrierOp::ArriveExpect { .. } => {
                note((HelperFamily::Mbarrier, 3), mbarrier(op(&barrier.op), ARRIVE_EXPECT))
            }
            MbarrierOp::Wait { .. } => {
                let has_remote_arrivals = cluster::has_remote_arrivals(k, barrier.at.barriers);
                note(
                    (HelperFamily::Mbarrier, 4 + u8::from(has_remote_arrivals)),
                    try_wait(has_remote_arrivals),
                );
            }
        },
        Stmt::ProxyFence(which) => {
            note((HelperFamily::ProxyFence, *which as u8), proxy_fence(*which))
        }
        Stmt::TensorCopy(copy) => {
            let (rank, multicast) = (copy.at.len(), copy.multicast.is_some());
            let order = 2 * rank as u8 + u8::from(multicast);
            note((HelperFamily::TensorCopy, order), tensor_copy_definition(rank, multicast));
        }
        Stmt::Wgmma(of) => {
            for (access, mn_major) in [&of.a, &of.b].into_iter().zip(of.mn_major) {
                let found = Descriptor::from_buffer(k, &k[access.buffer], mn_major);
                if let Some(descriptor) = found {
                    let rows = descriptor.stride / Wgmma::GROUP;
                    let order = if mn_major { rows as u8 } else { 0 };
                    let text = descriptor_definition(descriptor, mn_major);
                    note((HelperFamily::Descriptor, order), text);
                }
            }
            let order = 32 * of.formats[0] as u8 + (of.columns / 8 - 1) as u8;
            note((HelperFamily::Wgmma, order), wgmma_definition(of, always_accumulates(k)));
        }
        Stmt::WgmmaSync(sync) => {
            let (order, text, accumulators) = match sync {
                WgmmaSync::Fence { accumulators } => (1, WGMMA_FENCE, Some(accumulators)),
                WgmmaSync::Commit => (2, WGMMA_COMMIT, None),
                WgmmaSync::Wait { accumulators, .. } => (3, WGMMA_WAIT, Some(accumulators)),
            };
            note((HelperFamily::WgmmaSync, order), text.to_owned());
            if let Some([first, ..]) = accumulators.map(|of| &of[..]) {
                note((HelperFamily::WgmmaSync, 0), keep_definition(k[*first].elem));
            }
        }
        Stmt::RegisterLimit(limit) => {
            note((HelperFamily::RegisterLimit, limit.more.into()), limit_definition(limit.more))
        }
        _ => {}
    });
}

const TENSOR_MAP_TYPE: &str = "\
// TMA descriptor (`CUtensorMap`) of an array and of the box of a copy, encoded by the host.
struct __align__(128) TensorMap {
    unsigned long long words[16];
};
";

/// Parts in which mbarrier functions differ: comment, second parameter, and body.
struct Operation<'a> {
    comment: &'a str,
    param: &'a str,
    body: &'a str,
}

const INIT: Operation<'_> = Operation {
    comment: "Initialises an mbarrier: a phase completes after `count` arrivals and all expected \
              bytes.",
    param: ", int count",
    body: "    asm volatile(\"mbarrier.init.shared::cta.b64 [%0], %1;\" \
           :: \"r\"(at), \"r\"(count) : \"memory\");\n",
};

const ARRIVE: Operation<'_> = Operation {
    comment: "Arrives at an mbarrier without waiting.",
    param: "",
    body: "    asm volatile(\"mbarrier.arrive.shared::cta.b64 _, [%0];\" \
           :: \"r\"(at) : \"memory\");\n",
};

const ARRIVE_EXPECT: Operation<'_> = Operation {
    comment: "Arrives at an mbarrier, and adds `bytes` to the transaction count that its phase \
              expects.",
    param: ", int bytes",
    body: "    asm volatile(\"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\"
                 :: \"r\"(at), \"r\"(bytes) : \"memory\");\n",
};

fn try_wait(has_remote_arrivals: bool) -> String {
    let (comment, acquire) = match has_remote_arrivals {
        false => (
            "Waits until the phase with this parity is complete: 0 for the first, third, ... one.",
            "",
        ),
        true => (
            "Waits until the phase with this parity is complete: 0 for the first, third, ... one.\n\
             // Other blocks of the cluster arrive at the mbarrier.",
            ".acquire.cluster",
        ),
    };
    let body = format!(
        "    unsigned int complete;
    do {{
        asm volatile(\"{{ .reg .pred p;\"
                     \"  mbarrier.try_wait.parity{acquire}.shared::cta.b64 p, [%1], %2;\"
                     \"  selp.u32 %0, 1, 0, p; }}\"
                     : \"=r\"(complete) : \"r\"(at), \"r\"(parity) : \"memory\");
    }} while (!complete);\n"
    );
    mbarrier(wait(has_remote_arrivals), Operation { comment, param: ", int parity", body: &body })
}

fn mbarrier(name: &str, operation: Operation<'_>) -> String {
    let Operation { comment, param, body } = operation;
    format!(
        "\
// {comment}
__device__ __forceinline__ void {name}({MBARRIER}* barrier{param})
{{
    const unsigned int at = __cvta_generic_to_shared(barrier);
{body}}}
"
    )
}

fn proxy_fence(which: ProxyFence) -> String {
    let (comment, instruction) = match which {
        ProxyFence::Async => (
            "Orders this thread's shared-memory accesses with those of the async proxy (wgmma, \
             TMA).",
            "fence.proxy.async.shared::cta",
        ),
        ProxyFence::MbarrierInit => (
            "Makes the mbarriers that this thread has initialised visible to the cluster and to \
             TMA.",
            "fence.mbarrier_init.release.cluster",
        ),
    };
    format!(
        "\
// {comment}
__device__ __forceinline__ void {}()
{{
    asm volatile(\"{instruction};\" ::: \"memory\");
}}
",
        fence(which)
    )
}

fn tensor_copy_definition(rank: usize, multicast: bool) -> String {
    let name = tensor_copy(rank, multicast);
    let axes = ["x", "y", "z", "u", "v"];
    let mut params: Vec<String> =
        axes.iter().take(rank).map(|axis| format!("int {axis}")).collect();
    let places: Vec<String> = (0..rank).map(|i| format!("%{}", 3 + i)).collect();
    let mut given: Vec<String> =
        axes.iter().take(rank).map(|axis| format!("\"r\"({axis})")).collect();
    let (comment, how, blocks) = match multicast {
        false => (
            "\
// Starts a TMA copy of a box from global to shared memory, zero-filled outside the array. The map
// fixes the extents of the box. Its bytes are counted at the mbarrier as they arrive.",
            "",
            String::new(),
        ),
        true => {
            params.push("int blocks".to_owned());
            given.push("\"h\"((unsigned short)blocks)".to_owned());
            (
                "\
// Starts a TMA multicast of a box, zero-filled outside the array. The map fixes the extents of the
// box. The box goes to the same address in each block of the cluster whose bit in `blocks` is set.
// Its bytes are counted at that block's mbarrier as they arrive.",
                "\"\n                 \".multicast::cluster",
                format!(", %{}", 3 + rank),
            )
        }
    };
    let (params, places, given) = (params.join(", "), places.join(", "), given.join(", "));
    format!(
        "\
{comment}
__device__ __forceinline__ void {name}(
    void* to, const {TENSOR_MAP}* map, {MBARRIER}* barrier, {params})
{{
    const unsigned int dst = __cvta_generic_to_shared(to);
    const unsigned int at = __cvta_generic_to_shared(barrier);
    asm volatile(\"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile\
        .mbarrier::complete_tx::bytes{how}\"
                 \" [%0], [%1, {{{places}}}], [%2]{blocks};\"
                 :: \"r\"(dst), \"l\"(map), \"r\"(at), {given}
                 : \"memory\");
}}
"
    )
}

fn descriptor_definition(of: Descriptor, mn_major: bool) -> String {
    let Descriptor { swizzle, stride, leading } = of;
    let (name, mode) = (descriptor(swizzle, mn_major), of.mode());
    let row = row_bytes(swizzle);
    let (order, leading) = match mn_major {
        false => (
            "K-major",
            "    constexpr unsigned long long LEADING = 1;  // unused by swizzled layouts"
                .to_owned(),
        ),
        true => (
            "MN-major",
            format!(
                "    // distance between slabs, in units of 16 bytes\n    constexpr unsigned long \
                 long LEADING = {leading} / 16;"
            ),
        ),
    };
    format!(
        "\
// Shared-memory descriptor of a wgmma operand with {order} rows of {row} bytes.
__device__ __forceinline__ unsigned long long {name}(const void* tile)
{{
{leading}
    // distance between groups of 8 rows, in units of 16 bytes
    constexpr unsigned long long STRIDE = {stride} / 16;
    constexpr unsigned long long SWIZZLE = {mode};  // mode: {row} bytes
    const unsigned long long at = (__cvta_generic_to_shared(tile) & 0x3ffff) / 16;
    return at | LEADING << 16 | STRIDE << 32 | SWIZZLE << 62;
}}
"
    )
}

/// Returns true if all matrix instructions of the kernel add to their accumulators.
pub(in crate::cuda) fn always_accumulates(k: &Kernel) -> bool {
    let mut always = true;
    k.visit(&mut |stmt| {
        if let Stmt::Wgmma(of) = stmt {
            always &= of.accumulate == Expr::truth();
        }
    });
    always
}

fn wgmma_definition(of: &Wgmma, always_accumulates: bool) -> String {
    let Wgmma { formats, columns, mn_major, .. } = *of;
    let acc = of.acc();
    let (name, of, terms) =
        (wgmma(formats, columns, mn_major), formats[0].name(), formats[0].terms());
    let of = if formats[0] == formats[1] { of } else { "8-bit" };
    let [of_a, of_b] = formats.map(Format::ptx);
    let (register, sum) = match acc {
        Elem::U32 => ("r", "s32"),
        _ => ("f", "f32"),
    };
    let sums = columns / 2;
    let (rows, lines) =
        (Wgmma::ROWS, |width: usize, separator: &str, prefix: &str, f: &dyn Fn(u32) -> String| {
            let groups = (0..sums).step_by(width).map(|first| {
                let last = (first + width as u32).min(sums);
                (first..last).map(f).collect::<Vec<_>>().join(", ")
            });
            groups.collect::<Vec<_>>().join(&format!("{separator}\n{prefix}"))
        });
    let operands = lines(8, ", \"", "                 \"", &|i| format!("%{i}"));
    let registers = lines(4, ",", "                   ", &|i| format!("\"+{register}\"(d[{i}])"));
    let [a, b, add] = [0, 1, 2].map(|i| sums + i);
    // Only instructions on 16-bit formats take transposition flags.
    let (immediates, meaning) = match (formats[0].bits(), formats[0].is_integer()) {
        (16, _) => {
            let [a, b] = mn_major.map(u8::from);
            let meaning = "// Immediates after p: scale a, scale b, transpose a, transpose b.\n";
            (format!(", 1, 1, {a}, {b}"), meaning)
        }
        (_, false) => (", 1, 1".to_owned(), "// Immediates after p: scale a, scale b.\n"),
        (_, true) => (String::new(), "// Sums wrap modulo 2^32.\n"),
    };
    let (effect, param, predicate, flag) = match always_accumulates {
        true => ("d += a * b", "", "1".to_owned(), ""),
        false => (
            "d = a * b, or d += a * b if `accumulate`",
            ", bool accumulate",
            format!("%{add}"),
            ", \"r\"((int)accumulate)",
        ),
    };
    let head = head(
        &name,
        &format!(
            "{} (&d)[{sums}], unsigned long long a, unsigned long long b{param}",
            element_type(acc)
        ),
    );
    format!(
        "\
// Starts {effect}: m{rows}n{columns}k{terms}, {of} operands in shared memory,
// given by descriptors. All four warps of a warpgroup issue it together; it runs asynchronously.
{meaning}{head}
{{
    asm volatile(\"{{ .reg .pred p; setp.ne.b32 p, {predicate}, 0;\"
                 \" wgmma.mma_async.sync.aligned.m{rows}n{columns}k{terms}.{sum}.{of_a}.{of_b} {{\"
                 \"{operands}}},\"
                 \" %{a}, %{b}, p{immediates}; }}\"
                 : {registers}
                 : \"l\"(a), \"l\"(b){flag});
}}
"
    )
}

fn keep_definition(acc: Elem) -> String {
    let (ty, register) = (element_type(acc), if acc == Elem::U32 { "r" } else { "f" });
    format!(
        "\
// Keeps the compiler from moving accumulator accesses across this point: wgmma writes the
// accumulators asynchronously, which the compiler does not see.
template <int count>
__device__ __forceinline__ void wgmma_keep({ty} (&d)[count])
{{
    #pragma unroll
    for (int i = 0; i < count; ++i) asm volatile(\"\" : \"+{register}\"(d[i]) :: \"memory\");
}}
"
    )
}

const WGMMA_FENCE: &str = "\
// Orders accesses to the accumulators before the wgmma instructions that follow.
__device__ __forceinline__ void wgmma_fence()
{
    asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");
}
";

const WGMMA_COMMIT: &str = "\
// Commits the wgmma instructions issued so far as one group.
__device__ __forceinline__ void wgmma_commit()
{
    asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\");
}
";

const WGMMA_WAIT: &str = "\
// Waits until at most `pending` groups of wgmma instructions are in flight.
template <int pending>
__device__ __forceinline__ void wgmma_wait()
{
    asm volatile(\"wgmma.wait_group.sync.aligned %0;\" :: \"n\"(pending) : \"memory\");
}
";

fn limit_definition(more: bool) -> String {
    let (name, how) = (register_limit(more), if more { "inc" } else { "dec" });
    let comment = match more {
        true => {
            "Raises the register limit per thread; waits until other warps have released enough.\n\
             // The whole warpgroup must execute it."
        }
        false => {
            "Lowers the register limit per thread and releases the rest.\n\
             // The whole warpgroup must execute it."
        }
    };
    format!(
        "\
// {comment}
template <int registers>
__device__ __forceinline__ void {name}()
{{
    asm volatile(\"setmaxnreg.{how}.sync.aligned.u32 %0;\" :: \"n\"(registers));
}}
"
    )
}
