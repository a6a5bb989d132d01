//! Statements of asynchronous units, printed as calls of device functions because CUDA C++ has no
//! syntax for them.

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
            // PTX takes the coordinate of the innermost dimension first.
            let at = at.iter().rev().chain(multicast).map(|e| text(k, e));
            let (map, at) = (&k[*from].name, at.collect::<Vec<String>>().join(", "));
            // The address is unswizzled, because a box begins at the start of a row, which the
            // swizzle does not move.
            let (to, counted) = (indexed(k, to.buffer, &to.index), barrier(k, counted));
            out.line(format!("{name}(&{to}, &{map}, &{counted}, {at});"));
        }
        Stmt::Wgmma(Wgmma { formats, columns, d, a, b, mn_major, accumulate }) => {
            let sums = indexed(k, d.buffer, d.index.split_last().map_or(&[], |(_, index)| index));
            let a = operand(k, a, mn_major[0]);
            let b = operand(k, b, mn_major[1]);
            let accumulate = match always_accumulates(k) {
                true => String::new(),
                false => format!(", {}", text(k, accumulate)),
            };
            out.line(format!(
                "{}({sums}, {a}, {b}{accumulate});",
                wgmma(*formats, *columns, *mn_major)
            ));
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
        stmt => unreachable!("{stmt:?} is not a statement of an asynchronous unit"),
    }
}

pub(super) fn barrier(k: &Kernel, at: &MbarrierRef) -> String {
    format!("{}[{}]", k[at.barriers].name, text(k, &at.index))
}

/// Prints the descriptor of a tile. It contains the unswizzled address of the first row, because
/// the hardware swizzles the addresses that it reads.
fn operand(k: &Kernel, first: &Access, mn_major: bool) -> String {
    let found = Descriptor::from_buffer(k, &k[first.buffer], mn_major);
    let Some(Descriptor { swizzle, .. }) = found else {
        unreachable!("verify: a descriptor expresses the tile's layout")
    };
    format!("{}(&{})", descriptor(swizzle, mn_major), indexed(k, first.buffer, &first.index))
}

/// Prints the call that keeps the accumulators of an array in registers until this point.
fn keep(out: &mut Printer<'_>, accumulators: BufferId) {
    let k: &Kernel = out.kernel;
    out.line(format!("{KEEP}({});", k[accumulators].name));
}
