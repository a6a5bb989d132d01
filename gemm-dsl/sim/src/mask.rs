//! Masks of the lanes of a warp.

use gemm_dsl::target::arch;

pub(crate) const WARP: usize = arch::WARP as usize;
pub(crate) const ALL: u32 = u32::MAX;

/// Active lanes in ascending order.
#[inline]
pub(crate) fn lanes_of(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (lane < arch::WARP).then_some(lane as usize)
    })
}

/// Active lanes in the order in which they execute an atomic.
pub(crate) fn turns(mask: u32, reversed: bool) -> impl Iterator<Item = usize> {
    let lanes = (0..WARP).map(move |i| if reversed { WARP - 1 - i } else { i });
    lanes.filter(move |&lane| mask >> lane & 1 == 1)
}

/// Mask of the lanes for which the predicate is true.
#[inline(always)]
pub(crate) fn mask_where(holds: impl Fn(usize) -> bool) -> u32 {
    let mut mask = 0;
    for lane in 0..WARP {
        mask |= u32::from(holds(lane)) << lane;
    }
    mask
}
