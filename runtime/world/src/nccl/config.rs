use std::ffi::{c_char, c_int, c_uint};
use std::ptr;

/// Minimum version of NCCL in its own numbering: the first version that can abort several
/// communicators in one group.
pub const OLDEST: u32 = 22_200;

const UNDEFINED: c_int = c_int::MIN;

/// `ncclConfig_t` of version 2.22 (`src/nccl.h.in`). Later versions append fields. They copy `size`
/// bytes and ignore fields that are newer than `version` (`parseCommConfig` in `src/init.cc`, read
/// in 2.22.3, 2.28.9 and 2.30.7).
#[derive(Debug)]
#[repr(C)]
pub(super) struct Config {
    size: usize,
    magic: c_uint,
    version: c_uint,
    blocking: c_int,
    cga_cluster_size: c_int,
    min_ctas: c_int,
    max_ctas: c_int,
    net_name: *const c_char,
    split_share: c_int,
}

impl Config {
    /// Returns the configuration of a non-blocking communicator. Its calls return while NCCL is
    /// still working, so a wait for NCCL can end at a deadline. `max_ctas` limits the number of
    /// blocks that move data.
    ///
    /// `NCCL_COMM_BLOCKING` and `NCCL_MAX_CTAS` in the environment override both.
    pub(super) fn non_blocking(max_ctas: Option<c_int>) -> Self {
        Self {
            size: size_of::<Self>(),
            magic: 0xcafe_beef,
            version: OLDEST,
            blocking: 0,
            cga_cluster_size: UNDEFINED,
            min_ctas: UNDEFINED,
            max_ctas: max_ctas.unwrap_or(UNDEFINED),
            net_name: ptr::null(),
            split_share: UNDEFINED,
        }
    }
}

// Layout of the struct in C with pointers of 8 bytes.
#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;

    assert!(offset_of!(Config, magic) == 8 && offset_of!(Config, version) == 12);
    assert!(offset_of!(Config, blocking) == 16 && offset_of!(Config, cga_cluster_size) == 20);
    assert!(offset_of!(Config, min_ctas) == 24 && offset_of!(Config, max_ctas) == 28);
    assert!(offset_of!(Config, net_name) == 32 && offset_of!(Config, split_share) == 40);
    assert!(size_of::<Config>() == 48);
};
