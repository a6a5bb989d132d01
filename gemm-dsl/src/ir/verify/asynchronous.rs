//! Rules of asynchronous units: mbarriers, tensor maps, `wgmma`.

use super::{Verifier, VerifyResult, constant, require};
use crate::ir::box_rows::BoxRows;
use crate::ir::{
    Access, Atomic, BufferId, BufferLayout, Descriptor, Elem, Mbarrier, MbarrierDecl, MbarrierOp,
    MbarrierRef, MemoryOrder, Operand, ParamKind, RegisterLimit, Space, Stmt, TensorCopy,
    TensorMap, Ty, Wgmma, WgmmaSync,
};
use crate::target::Format;
use crate::target::arch::WARP;

/// Maximum number of mbarriers of a declaration, which occupy 32 KiB of shared memory.
const MOST_MBARRIERS: u64 = 4096;

/// Maximum number of `wgmma` groups in flight.
const MOST_PENDING: u32 = 7;

impl Verifier<'_> {
    pub(super) fn mbarriers(&self, decl: &MbarrierDecl) -> VerifyResult {
        let name = &decl.name;
        require(self.ty(&decl.count)?.is_index(), || format!("the number of {name}"))?;
        let count = constant(self.k, &decl.count, name)?;
        require((1..=MOST_MBARRIERS).contains(&count), || format!("{count} barriers {name}"))
    }

    /// Checks that the box of each tensor map fits the array.
    pub(super) fn tensor_maps(&self) -> VerifyResult {
        for param in &self.k.params {
            let ParamKind::TensorMap { buffer, operand, map } = &param.kind else { continue };
            let name = &param.name;
            let buffer = self.k.buffers.get(buffer.id).ok_or("a parameter has no buffer")?;
            let rank = buffer.dims.len();
            require(matches!(operand, Operand::Input(_) | Operand::Temp(_)), || {
                format!("{name} is read by a tensor map")
            })?;
            require(matches!(buffer.layout, BufferLayout::Strided { .. }), || {
                format!("{name} is not a single array")
            })?;
            require((2..=TensorMap::MOST_AXES).contains(&rank) && map.tile.len() == rank, || {
                format!("a box of rank {} of {name}, whose rank is {rank}", map.tile.len())
            })?;
            require(buffer.contiguous_dim() + 1 == rank, || {
                format!("the last dimension of {name} is not contiguous")
            })?;
            require(map.tile.iter().all(|n| (1..=TensorMap::LONGEST).contains(n)), || {
                format!("a box of {:?} elements of {name}", map.tile)
            })?;
            let row = map.tile.last().map_or(0, |n| n * buffer.elem.size());
            let swizzle = map.swizzle;
            require(row.is_multiple_of(16) && swizzle.bytes().is_none_or(|n| n == row), || {
                format!("rows of {row} bytes of {name}, swizzled {swizzle:?}")
            })?;
            require(
                map.elements() * u64::from(buffer.elem.size()) <= Mbarrier::MOST.into(),
                || format!("a box of {} elements of {name}", map.elements()),
            )?;
        }
        Ok(())
    }

    /// Rejects atomics on buffers that asynchronous units access. Such units must not share buffers
    /// with atomics.
    pub(super) fn asynchronously_accessed(&self) -> VerifyResult {
        let (mut by_units, mut by_atomics) = (Vec::new(), Vec::new());
        self.k.visit(&mut |stmt| match stmt {
            Stmt::TensorCopy(copy) => by_units.push(copy.to.buffer.id),
            Stmt::Wgmma(wgmma) => by_units.extend([&wgmma.a, &wgmma.b].map(|a| a.buffer.id)),
            Stmt::Atomic(Atomic { target, .. }) => by_atomics.push(target.buffer.id),
            _ => {}
        });
        require(!by_units.iter().any(|id| by_atomics.contains(id)), || {
            "an atomic on shared memory that asynchronous units access".into()
        })
    }

    pub(super) fn mbarrier_ref(&self, at: &MbarrierRef) -> VerifyResult {
        let decl = self.k.mbarriers.get(at.barriers.id).ok_or("unknown barriers")?;
        require(self.ty(&at.index)?.is_index(), || format!("which of {}", decl.name))
    }

    pub(super) fn mbarrier(&self, barrier: &Mbarrier) -> VerifyResult {
        self.mbarrier_ref(&barrier.at)?;
        match &barrier.op {
            MbarrierOp::Init { count } => {
                require(self.ty(count)? == Ty::I32, || "a count that is not I32".into())?;
                let count = constant(self.k, count, "the arrivals of a phase")?;
                require((1..=Mbarrier::MOST.into()).contains(&count), || {
                    format!("a barrier of {count} arrivals")
                })
            }
            MbarrierOp::Arrive => Ok(()),
            MbarrierOp::ArriveRemote { block, order } => {
                require(matches!(order, MemoryOrder::Relaxed | MemoryOrder::Release), || {
                    format!("an arrival that is {order:?}")
                })?;
                require(self.ty(block)? == Ty::I32, || {
                    "a block of the cluster that is not I32".into()
                })
            }
            MbarrierOp::ArriveExpect { bytes } => {
                require(self.ty(bytes)? == Ty::I32, || "the number of bytes is not an I32".into())
            }
            MbarrierOp::Wait { parity } => {
                require(self.ty(parity)? == Ty::I32, || "a parity that is not I32".into())
            }
        }
    }

    pub(super) fn tensor_copy(&self, copy: &TensorCopy) -> VerifyResult {
        let map = self.k.tensor_map(copy.from).ok_or("a copy of a box without a tensor map")?;
        let from = self.k.buffers.get(copy.from.id).ok_or("an unknown buffer")?;
        require(copy.at.len() == from.dims.len(), || format!("the rank of {}", from.name))?;
        for at in &copy.at {
            require(self.ty(at)? == Ty::I32, || format!("an index of {} is not I32", from.name))?;
        }
        if let Some(blocks) = &copy.multicast {
            require(self.ty(blocks)? == Ty::I32, || {
                "the blocks of a multicast are not an I32".into()
            })?;
        }
        self.mbarrier_ref(&copy.barrier)?;
        self.access(&copy.to)?;
        let to = self.k.buffers.get(copy.to.buffer.id).ok_or("an unknown buffer")?;
        let name = &to.name;
        require(to.elem == from.elem && !copy.to.is_vector(), || {
            format!("a copy of {} to {name}, of another type", from.name)
        })?;
        let rows = BoxRows::from_buffer(self.k, to)
            .ok_or_else(|| format!("no box fits the layout of {name}"))?;
        require(rows.swizzle == map.swizzle, || {
            format!("{} is swizzled {:?}, and {name} {:?}", from.name, map.swizzle, rows.swizzle)
        })?;
        // The box must fill all buffer dimensions after its first extent greater than 1. Leading
        // extents of 1 need no dimension in the buffer.
        let tile: Vec<u32> = map.tile.iter().copied().skip_while(|extent| *extent == 1).collect();
        let rank = tile.len().max(1);
        let dims = to.dims.len().checked_sub(rank).and_then(|outer| to.dims.get(outer..));
        let dims = dims.ok_or_else(|| format!("a box of rank {rank} in {name}"))?;
        let (mut fills, mut begun) = (true, false);
        for (dim, &extent) in dims.iter().zip(&tile) {
            let dim = constant(self.k, dim, name)?;
            fills &= if begun { dim == extent.into() } else { dim >= extent.into() };
            begun |= extent > 1;
        }
        let whole = map.tile.last().is_some_and(|&row| u64::from(row) == rows.length);
        require(fills && whole, || format!("a box of {:?} elements has gaps in {name}", map.tile))
    }

    pub(super) fn wgmma(&self, wgmma: &Wgmma) -> VerifyResult {
        let Wgmma { formats, columns, d, a, b, mn_major, accumulate } = wgmma;
        self.whole_warpgroups()?;
        let names = || formats.map(Format::name).join(" by ");
        require(Wgmma::takes(*formats), || format!("a matrix instruction of {}", names()))?;
        require(Wgmma::has_columns(*formats, *columns), || {
            format!("a matrix instruction of {columns} columns")
        })?;
        require(self.ty(accumulate)? == Ty::Bool, || "the accumulate flag is not Bool".into())?;
        self.access(d)?;
        self.accumulators(d.buffer)?;
        let acc = self.k.buffers[d.buffer.id].elem;
        require(acc == wgmma.acc(), || format!("accumulators of {acc} for {}", names()))?;
        let name = &self.k.buffers[d.buffer.id].name;
        let last =
            self.k.buffers[d.buffer.id].dims.last().ok_or("an accumulator that is not an array")?;
        let held = constant(self.k, last, name)?;
        let first = d.index.last() == Some(&crate::ir::Expr::I32(0)) && !d.is_vector();
        require(first && held == u64::from(columns / 2), || {
            format!("{columns} columns in {name}, whose last extent is {held}")
        })?;
        let mut alike = true;
        self.k.visit(&mut |stmt| {
            if let Stmt::Wgmma(other) = stmt {
                alike &= other.mn_major == *mn_major;
            }
        });
        require(alike, || "matrix instructions that read operands in different orders".into())?;
        self.operand(formats[0], a, Wgmma::ROWS, mn_major[0])?;
        self.operand(formats[1], b, *columns, mn_major[1])
    }

    /// Checks a tile with `rows` rows of A, or columns of B, in shared memory. A descriptor must be
    /// able to express its layout.
    fn operand(&self, format: Format, first: &Access, rows: u32, mn_major: bool) -> VerifyResult {
        self.access(first)?;
        let buffer = &self.k.buffers[first.buffer.id];
        let name = &buffer.name;
        let fits = Elem::of_format(format).contains(&buffer.elem);
        require(fits && !first.is_vector(), || format!("{} in {name}", format.name()))?;
        require(Descriptor::from_buffer(self.k, buffer, mn_major).is_some(), || {
            format!("{name} has a layout that no descriptor describes")
        })?;
        let dim = buffer.dims.iter().nth_back(1).ok_or_else(|| format!("the rank of {name}"))?;
        let dim = constant(self.k, dim, name)?;
        if !mn_major {
            return require(dim >= rows.into() && dim.is_multiple_of(Wgmma::GROUP.into()), || {
                format!("{rows} rows of {name}, which has {dim}")
            });
        }
        require(format.bits() == 16, || format!("{} in {name} along M or N", format.name()))?;
        let of = |nth| {
            let dim = buffer.dims.iter().nth_back(nth).ok_or_else(|| format!("the rank of {name}"));
            constant(self.k, dim?, name)
        };
        let (slabs, width) = (of(2)?, of(0)?);
        let is_whole = u64::from(rows).is_multiple_of(width) && u64::from(rows) <= slabs * width;
        let terms = format.terms() as u64;
        require(is_whole && dim >= terms && dim.is_multiple_of(Wgmma::GROUP.into()), || {
            format!("{rows} x {terms} elements of {name}, which has {slabs} x {width} x {dim}")
        })
    }

    /// Checks that a buffer is a register array of accumulators.
    fn accumulators(&self, buffer: BufferId) -> VerifyResult {
        let decl = self.k.buffers.get(buffer.id).ok_or("unknown accumulators")?;
        let name = &decl.name;
        let fits = decl.space == Space::Register
            && matches!(decl.elem, Elem::F32 | Elem::U32)
            && decl.layout == BufferLayout::row_major(1);
        require(fits, || format!("{name} holds no accumulators"))?;
        require(self.registers.contains(&buffer), || format!("{name} out of scope"))
    }

    pub(super) fn wgmma_sync(&self, sync: &WgmmaSync) -> VerifyResult {
        self.whole_warpgroups()?;
        match sync {
            WgmmaSync::Commit => Ok(()),
            WgmmaSync::Fence { accumulators } => {
                accumulators.iter().try_for_each(|of| self.accumulators(*of))
            }
            WgmmaSync::Wait { pending, accumulators } => {
                require(*pending <= MOST_PENDING, || format!("{pending} groups in flight"))?;
                accumulators.iter().try_for_each(|of| self.accumulators(*of))
            }
        }
    }

    pub(super) fn register_limit(&self, limit: RegisterLimit) -> VerifyResult {
        let registers = limit.registers;
        require(registers.is_multiple_of(8) && (24..=256).contains(&registers), || {
            format!("a limit of {registers} registers")
        })?;
        require(self.k.geometry.blocks_per_sm.is_some(), || {
            "a limit of registers, and no number of blocks that fixes them at launch".into()
        })?;
        self.whole_warpgroups()
    }

    fn whole_warpgroups(&self) -> VerifyResult {
        require(self.k.geometry.threads().is_multiple_of(Wgmma::WARPS * WARP), || {
            "an instruction of a warpgroup that is not whole".into()
        })
    }
}
