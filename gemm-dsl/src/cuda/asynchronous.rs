//! The spelling of asynchronous units, for which CUDA C has no words: the text defines device functions of one PTX
//! instruction each.

mod definitions;

pub(super) use definitions::definition;

use super::Printer;
use super::cluster;
use super::expr::text;
use super::stmt::indexed;
use crate::ir::{
    Access, BufferId, Descriptor, Kernel, Mbarrier, MbarrierOp, MbarrierRef, ProxyFence,
    RegisterLimit, Stmt, TensorCopy, TensorSwizzle, Wgmma, WgmmaSync,
};
use crate::target::tensor_core::Format;

/// The type of a barrier in shared memory.
pub(super) const MBARRIER: &str = "unsigned long long";
/// The type of a tensor map, which the text defines.
pub(super) const TENSOR_MAP: &str = "TensorMap";
/// What keeps the compiler from moving the use of sums over what stands before or behind it.
pub(super) const KEEP: &str = "wgmma_keep";
const FENCE: &str = "wgmma_fence";
const COMMIT: &str = "wgmma_commit";
const WAIT: &str = "wgmma_wait";

/// Every name that is called here or defined.
pub(super) fn names() -> Vec<String> {
    let mut names: Vec<String> = [TENSOR_MAP, KEEP, FENCE, COMMIT, WAIT].map(str::to_owned).into();
    let ops = ["init", "arrive", "arrive_expect", "wait"].map(|op| format!("mbarrier_{op}"));
    names.extend(ops);
    names.extend([ProxyFence::Async, ProxyFence::MbarrierInit].map(|f| fence(f).to_owned()));
    names.extend([2, 3].into_iter().flat_map(|rank| [false, true].map(|m| tensor_copy(rank, m))));
    names.extend([true, false].map(|more| register_limit(more).to_owned()));
    names.extend(TensorSwizzle::ALL.map(descriptor));
    for format in Format::ALL {
        let columns = (8..=Wgmma::MOST_COLUMNS).step_by(8);
        names.extend(columns.map(|columns| wgmma(format, columns)));
    }
    names
}

fn op(op: &MbarrierOp) -> &'static str {
    match op {
        MbarrierOp::Init { .. } => "mbarrier_init",
        MbarrierOp::Arrive => "mbarrier_arrive",
        MbarrierOp::ArriveRemote { order, .. } => cluster::arrive(*order),
        MbarrierOp::ArriveExpect { .. } => "mbarrier_arrive_expect",
        MbarrierOp::Wait { .. } => wait(false),
    }
}

/// The function that waits at a barrier, at which threads of other blocks may arrive or not.
fn wait(hears_others: bool) -> &'static str {
    if hears_others { cluster::WAIT } else { "mbarrier_wait" }
}

fn fence(fence: ProxyFence) -> &'static str {
    match fence {
        ProxyFence::Async => "fence_proxy_async",
        ProxyFence::MbarrierInit => "fence_mbarrier_init",
    }
}

/// The function that copies a box of so many dimensions, to one block or to several.
fn tensor_copy(rank: usize, multicast: bool) -> String {
    format!("tensor_{}_{rank}d", if multicast { "multicast" } else { "copy" })
}

/// The function that makes the descriptor of rows that are swizzled so.
fn descriptor(swizzle: TensorSwizzle) -> String {
    format!("descriptor_{}", swizzle.bytes().unwrap_or_default())
}

/// The function of a matrix instruction.
fn wgmma(format: Format, columns: u32) -> String {
    format!("wgmma_{}_n{columns}", format.name())
}

fn register_limit(more: bool) -> &'static str {
    if more { "more_registers" } else { "fewer_registers" }
}

/// The lines of a statement.
pub(super) fn print(out: &mut Printer<'_>, stmt: &Stmt) {
    let k: &Kernel = out.kernel;
    match stmt {
        Stmt::Mbarrier(Mbarrier { at, op: done }) => {
            let more = match done {
                MbarrierOp::Arrive => String::new(),
                MbarrierOp::Init { count: e }
                | MbarrierOp::ArriveRemote { block: e, order: _ }
                | MbarrierOp::ArriveExpect { bytes: e }
                | MbarrierOp::Wait { parity: e } => format!(", {}", text(k, e)),
            };
            let name = match done {
                MbarrierOp::Wait { .. } => wait(cluster::hears_others(k, at.barriers)),
                done => op(done),
            };
            out.line(format!("{name}(&{}{more});", barrier(k, at)));
        }
        Stmt::ProxyFence(which) => out.line(format!("{}();", fence(*which))),
        Stmt::TensorCopy(TensorCopy { from, at, to, barrier: counted, multicast }) => {
            let name = tensor_copy(at.len(), multicast.is_some());
            // PTX has the innermost dimension first.
            let at = at.iter().rev().chain(multicast).map(|e| text(k, e));
            let (map, at) = (&k[*from].name, at.collect::<Vec<String>>().join(", "));
            // A box begins with a row, where no swizzle moves anything.
            let (to, counted) = (indexed(k, to.buffer, &to.index), barrier(k, counted));
            out.line(format!("{name}(&{to}, &{map}, &{counted}, {at});"));
        }
        Stmt::Wgmma(Wgmma { format, columns, d, a, b, accumulate }) => {
            let sums = indexed(k, d.buffer, d.index.split_last().map_or(&[], |(_, index)| index));
            let [a, b] = [a, b].map(|tile| operand(k, tile));
            let (name, accumulate) = (wgmma(*format, *columns), text(k, accumulate));
            out.line(format!("{name}({sums}, {a}, {b}, {accumulate});"));
        }
        Stmt::WgmmaSync(sync) => match sync {
            WgmmaSync::Fence { accumulators } => {
                accumulators.iter().for_each(|of| keep(out, *of));
                out.line(format!("{FENCE}();"));
            }
            WgmmaSync::Commit => out.line(format!("{COMMIT}();")),
            WgmmaSync::Wait { pending, accumulators } => {
                out.line(format!("{WAIT}<{pending}>();"));
                accumulators.iter().for_each(|of| keep(out, *of));
            }
        },
        Stmt::RegisterLimit(RegisterLimit { registers, more }) => {
            out.line(format!("{}<{registers}>();", register_limit(*more)));
        }
        stmt => unreachable!("{stmt:?} is no statement of an asynchronous unit"),
    }
}

fn barrier(k: &Kernel, at: &MbarrierRef) -> String {
    format!("{}[{}]", k[at.barriers].name, text(k, &at.index))
}

/// The descriptor of a tile, by the place where its first row begins: the hardware swizzles what it reads by itself.
fn operand(k: &Kernel, first: &Access) -> String {
    let descriptor = Descriptor::of(k, &k[first.buffer]).map(|d| descriptor(d.swizzle));
    let descriptor = descriptor.unwrap_or_default();
    format!("{descriptor}(&{})", indexed(k, first.buffer, &first.index))
}

/// The line that keeps the sums of a register array in place.
fn keep(out: &mut Printer<'_>, accumulators: BufferId) {
    let k: &Kernel = out.kernel;
    let decl = &k[accumulators];
    let count: String =
        decl.dims.iter().map(|dim| text_of_factor(k, dim)).collect::<Vec<_>>().join(" * ");
    let first = "[0]".repeat(decl.dims.len());
    out.line(format!("{KEEP}<{count}>(&{}{first});", decl.name));
}

/// An extent as a factor of a template's argument, which ends at a bracket that is not in parentheses.
fn text_of_factor(k: &Kernel, dim: &crate::ir::Expr) -> String {
    let factor = text(k, dim);
    let plain = factor.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if plain { factor } else { format!("({factor})") }
}
