//! Binding of arguments, and the checks on the host before a kernel runs.

use super::buffer::{Buffer, BufferArg};
use super::error::SimError;
use super::region::{self, Region};
use crate::mask::WARP;
use crate::tensor_core::AccumulationRules;
use crate::trace::recorder::WatchedBlocks;
use gemm_dsl::ir::contract::{self, ArrayPlace, BoundArray};
use gemm_dsl::ir::{Param, ParamKind, Space, VerifiedKernel};

pub(super) struct Launch<'k> {
    pub(super) kernel: &'k VerifiedKernel,
    /// Bits of each scalar parameter, indexed by parameter; 0 for buffers.
    pub(super) scalars: Vec<u64>,
    pub(super) regions: Vec<Region>,
    pub(super) shared: region::SharedSize,
    /// First lane slot after the register arrays.
    pub(super) first_variable: u32,
    /// Blocks along x, y and z.
    pub(super) grid: (u32, u32, u32),
    /// For each declaration, the number of its first mbarrier and the number of mbarriers.
    pub(super) mbarrier_numbers: Vec<(u32, u32)>,
    /// Accumulation rules of the tensor cores; `sm_90` by default.
    pub(super) tensor_cores: AccumulationRules,
    pub(super) watched: WatchedBlocks,
    /// See [`crate::Options::unchecked`].
    pub(super) unchecked: bool,
    /// See [`crate::Options::compiled`]. If true, values that are known at launch are nevertheless
    /// computed at their places in the kernel, so that they are charged there.
    pub(super) compiled: bool,
}

/// Maximum number of blocks of a launch, because the race detector uses 32-bit block numbers.
const MAX_BLOCKS: u64 = u32::MAX as u64 - 1;

impl<'k> Launch<'k> {
    pub(super) fn new(
        kernel: &'k VerifiedKernel,
        buffers: &[BufferArg],
        scalars: &[u64],
    ) -> Result<Self, SimError> {
        let of_kind = |buffer: bool| {
            let is_buffer = |k: &ParamKind| !matches!(k, ParamKind::Scalar { .. });
            kernel.params.iter().filter(move |p| is_buffer(&p.kind) == buffer).count()
        };
        let (expected, given) = (of_kind(true), buffers.len());
        if expected != given {
            let kernel = kernel.name.clone();
            return Err(SimError::BufferCount { kernel, expected, given });
        }
        let (expected, given) = (of_kind(false), scalars.len());
        if expected != given {
            let kernel = kernel.name.clone();
            return Err(SimError::ScalarCount { kernel, expected, given });
        }
        let named = kernel.contract().arrays().zip(buffers);
        let stretches = |given: &BufferArg| -> Vec<contract::Region> {
            let buffers = given.buffers().iter();
            let stretch = |buffer: &Buffer| contract::Region {
                address: buffer.byte_offset(),
                len: buffer.len() as u64,
            };
            buffers.map(stretch).collect()
        };
        let places: Vec<Vec<contract::Region>> = buffers.iter().map(stretches).collect();
        let arrays: Vec<BoundArray<'_>> = named
            .zip(&places)
            .map(|((array, given), stretches)| {
                // The buffers of a list are checked one by one. An empty list matches any type.
                let other = |buffer: &&Buffer| !array.takes(buffer.elem());
                let elem = given.buffers().iter().find(other).map_or(array.elem, Buffer::elem);
                let place = match (given, &stretches[..]) {
                    (BufferArg::One(_), [stretch]) => ArrayPlace::One(*stretch),
                    (_, stretches) => ArrayPlace::List(stretches),
                };
                BoundArray { name: &array.name, elem, place, axes: None }
            })
            .collect();
        let call = kernel.contract().bind_in_order(&arrays, scalars)?;
        let is_index = |p: &Param| matches!(p.kind, ParamKind::Scalar { ty, .. } if ty.is_index());
        let params = kernel.params.iter().zip(&call.scalars);
        let values: Vec<Option<u64>> =
            params.map(|(param, bits)| is_index(param).then_some(*bits)).collect();
        let (regions, shared, first_variable) = region::resolve(kernel, &values, buffers)?;
        let blocks = call.grid.iter().map(|&n| u64::from(n)).product::<u64>();
        if blocks > MAX_BLOCKS {
            return Err(SimError::ExtentRange {
                what: format!("the number of blocks of `{}`", kernel.name),
                value: blocks.into(),
                limit: MAX_BLOCKS,
            });
        }
        Ok(Self {
            kernel,
            scalars: call.scalars.into_vec(),
            regions,
            shared,
            first_variable,
            grid: (call.grid[0], call.grid[1], call.grid[2]),
            mbarrier_numbers: mbarrier_numbers(kernel),
            tensor_cores: AccumulationRules::SM_90,
            watched: WatchedBlocks::default(),
            unchecked: false,
            compiled: false,
        })
    }

    /// Returns an error if a buffer that the kernel writes overlaps another buffer. If the kernel
    /// works in place, a buffer that it only reads may be the same elements in the same layout.
    pub(super) fn distinct(&self, stored: &[bool]) -> Result<(), SimError> {
        let globals = || {
            let regions = self.regions.iter().enumerate();
            regions.filter(|(_, r)| r.space == Space::Global)
        };
        for (i, written) in globals().filter(|(i, _)| stored.get(*i) == Some(&true)) {
            for (j, other) in globals().filter(|(j, _)| *j != i) {
                let is_read = stored.get(j) != Some(&true);
                if self.kernel.in_place && is_read && written.is_same(other) {
                    continue;
                }
                if let (Some(a), Some(b)) = (&written.given, &other.given)
                    && a.overlaps(b)
                {
                    return Err(SimError::Overlap {
                        written: written.name.clone(),
                        other: other.name.clone(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Number of mbarriers of a block.
    pub(super) fn mbarriers(&self) -> u32 {
        self.mbarrier_numbers.last().map_or(0, |(first, count)| first + count)
    }

    /// Blocks per cluster; 1 for a kernel without clusters.
    pub(super) fn cluster(&self) -> u32 {
        self.kernel.cluster
    }

    pub(super) fn clusters(&self) -> u32 {
        self.blocks() / self.cluster()
    }

    pub(super) fn warps(&self) -> u32 {
        self.kernel.geometry.threads().div_ceil(WARP as u32)
    }

    /// Linear number of the block with this rank in its cluster.
    pub(super) fn of_cluster(&self, cluster: u32, rank: u32) -> u32 {
        cluster * self.cluster() + rank
    }

    /// Linear number of a thread's block, and the number of the thread in this block. The threads
    /// of a cluster are numbered block after block, and the last warp of each block counts as full.
    pub(super) fn whereabouts(&self, cluster: u32, thread: u32) -> (u32, u32) {
        let threads = self.warps() * WARP as u32;
        (self.of_cluster(cluster, thread / threads), thread % threads)
    }

    pub(super) fn blocks(&self) -> u32 {
        self.grid.0 * self.grid.1 * self.grid.2
    }

    /// Coordinates of the block with this linear number, in which x is the fastest dimension.
    pub(super) fn block(&self, number: u32) -> (u32, u32, u32) {
        let (width, height) = (self.grid.0.max(1), self.grid.1.max(1));
        (number % width, number / width % height, number / width / height)
    }

    /// Coordinates of the thread with this linear index.
    pub(super) fn thread(&self, index: u32) -> (u32, u32) {
        let width = self.kernel.geometry.block.0.max(1);
        (index % width, index / width)
    }
}

/// Numbers the mbarriers of all declarations consecutively.
fn mbarrier_numbers(kernel: &VerifiedKernel) -> Vec<(u32, u32)> {
    let mut first = 0;
    let counts = kernel.mbarriers.iter().map(|decl| {
        let count = kernel.eval_const(&decl.count).ok().and_then(|count| count.try_into().ok());
        count.unwrap_or_else(|| unreachable!("verified: the number of barriers is a constant"))
    });
    let numbers = counts.map(|count: u32| {
        first += count;
        (first - count, count)
    });
    numbers.collect()
}
