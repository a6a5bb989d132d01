//! Messages on requirements that a GPU does not meet.

use std::fmt;

pub(super) fn shared_memory(
    kernel: &str,
    needed: &u64,
    limit: &u64,
    device: &str,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(
        f,
        "kernel `{kernel}` needs {needed} bytes of shared memory, but {device} allows {limit} per \
         block. Use a smaller tile or fewer stages"
    )
}

pub(super) fn architecture(
    kernel: &str,
    needed: &u32,
    has: &str,
    device: &str,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(
        f,
        "kernel `{kernel}` needs sm_{needed} or later, but {device} is {has}. Use a newer GPU, or \
         a kernel without `stages` and `arith`"
    )
}

pub(super) fn other_architecture(
    kernel: &str,
    needed: &u32,
    has: &str,
    device: &str,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(
        f,
        "kernel `{kernel}` uses instructions such as `wgmma`, which only sm_{needed} has, but \
         {device} is {has}. Use a kernel without `mma: wgmma`"
    )
}
