//! Statements of asynchronous units, which CUDA C++ cannot spell: calls of device functions.

use super::Printer;
use super::expr::{indexed, text};
use super::helper::asynchronous::{
    COMMIT, FENCE, KEEP, WAIT, always_accumulates, descriptor, fence, op, register_limit,
    tensor_copy, wait, wgmma,
};
use super::helper::cluster;
use crate::ir::{
    Access, BufferId, Descriptor, Kernel, Mbarrier, MbarrierOp, MbarrierRef, RegisterLimit, Stmt,
    TensorCopy, Wgmma, WgmmaSync,
};

pub(super) fn print(out: &mut Printer<'_>, stmt: &Stmt) {
    let k: &Kernel = out.kernel;
    match stmt {
        Stmt::Mbarrier(Mbarrier { at, op: done }) => {
            let more = done.operand().map_or_else(String::new, |e| format!(", {}", text(k, e)));
            let name = match done {
                MbarrierOp::Wait { .. } => wait(cluster::has_remote_arrivals(k, at.barriers)),
                done => op(done),
            };
            out.line(format!("{name}(&{}{more});", barrier(k, at)));
        }
        Stmt::ProxyFence(which) => out.line(format!("{}();", fence(*which))),
        Stmt::TensorCopy(TensorCopy { from, at, to, barrier: counted, multicast }) => {
            let name = tensor_copy(at.len(), multicast.is_some());
            // PTX takes the innermost dimension first.
            let at = at.iter().rev().chain(multicast).map(|e| text(k, e));
            let (map, at) = (&k[*from].name, at.collect::<Vec<String>>().join(", "));
            // Unswizzled address: a box begins at the start of a row, where the swizzle moves
            // nothing.
            let (to, counted) = (indexed(k, to.buffer, &to.index), barrier(k, counted));
            out.line(format!("{name}(&{to}, &{map}, &{counted}, {at});"));
        }
        Stmt::Wgmma(Wgmma { format, columns, d, a, b, accumulate }) => {
            let sums = indexed(k, d.buffer, d.index.split_last().map_or(&[], |(_, index)| index));
            let [a, b] = [a, b].map(|tile| operand(k, tile));
            let accumulate = match always_accumulates(k) {
                true => String::new(),
                false => format!(", {}", text(k, accumulate)),
            };
            out.line(format!("{}({sums}, {a}, {b}{accumulate});", wgmma(*format, *columns)));
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

/// Descriptor of a tile, built from the unswizzled address of its first row: the hardware applies
/// the swizzle to its reads.
fn operand(k: &Kernel, first: &Access) -> String {
    let Some(Descriptor { swizzle, .. }) = Descriptor::from_buffer(k, &k[first.buffer]) else {
        unreachable!("verify: a descriptor says how the tile lies")
    };
    format!("{}(&{})", descriptor(swizzle), indexed(k, first.buffer, &first.index))
}

/// Prints the call that pins the accumulators of a register array.
fn keep(out: &mut Printer<'_>, accumulators: BufferId) {
    let k: &Kernel = out.kernel;
    out.line(format!("{KEEP}({});", k[accumulators].name));
}
