use super::{Verifier, VerifyResult, constant, require};
use crate::ir::{Buffer, BufferLayout, Expr, Kernel, Mbarrier, Param, ParamKind, Space, Swizzle};

/// Returns the bytes of all shared arrays and mbarriers together, including alignment.
pub(super) fn shared_bytes(k: &Kernel) -> VerifyResult<u64> {
    let mut total: u64 = 0;
    let aligned = k.buffers.iter().zip(k.alignments());
    for (buffer, alignment) in aligned.filter(|(b, _)| b.space == Space::Shared) {
        let mut bytes: u64 = buffer.elem.size().into();
        for dim in buffer.physical_dims().ok_or("a shared array is not strided")? {
            bytes = bytes.saturating_mul(constant(k, &dim, "a shared extent")?);
        }
        total = total.checked_next_multiple_of(alignment).unwrap_or(u64::MAX).saturating_add(bytes);
    }
    for decl in &k.mbarriers {
        let count = constant(k, &decl.count, &decl.name)?;
        let bytes = count.saturating_mul(Mbarrier::BYTES);
        total = total.checked_next_multiple_of(16).unwrap_or(u64::MAX).saturating_add(bytes);
    }
    Ok(total)
}

impl Verifier<'_> {
    pub(super) fn buffer(&self, buffer: &Buffer) -> VerifyResult {
        let name = &buffer.name;
        for dim in &buffer.dims {
            require(self.ty(dim)?.is_index(), || format!("an extent of {name} is not an integer"))?;
            if buffer.space != Space::Global {
                constant(self.k, dim, name)?;
            }
        }
        let declared = buffer.unordered || buffer.exclusive;
        require(buffer.layout.is_bound() || !declared, || format!("{name} is not a result"))?;
        match &buffer.layout {
            BufferLayout::Array { order, pad, swizzle } => {
                require(buffer.space != Space::Global, || format!("{name} is global"))?;
                let mut sorted = order.clone();
                sorted.sort_unstable();
                require(sorted.into_iter().eq(0..buffer.dims.len()), || {
                    format!("the layout of {name} permutes other dimensions")
                })?;
                constant(self.k, pad, name)?;
                swizzle.map_or(Ok(()), |swizzle| self.swizzle(buffer, swizzle))
            }
            BufferLayout::Pointer { into } => {
                let global = |b: &Buffer| {
                    b.layout.is_bound() || matches!(b.layout, BufferLayout::OfList { .. })
                };
                require(self.k.buffers.get(into.id).is_some_and(global), || {
                    format!("{name} points into no global buffer")
                })?;
                buffer.dims.iter().try_for_each(|d| constant(self.k, d, name).map(drop))
            }
            BufferLayout::OfList { list, strides } => {
                let of = self.k.buffers.get(list.id);
                let same = of.is_some_and(|of| {
                    let listed =
                        matches!(&of.layout, BufferLayout::Listed { strides: s } if s == strides);
                    listed && of.elem == buffer.elem && of.dims.get(1..) == Some(&buffer.dims[..])
                });
                require(same && buffer.space == Space::Global, || {
                    format!("{name} is not as the arrays of a list")
                })
            }
            BufferLayout::Strided { strides } | BufferLayout::Listed { strides } => {
                require(buffer.space == Space::Global, || format!("{name} is strided"))?;
                let listed = usize::from(matches!(buffer.layout, BufferLayout::Listed { .. }));
                let rank = strides.len() + listed;
                require(rank == buffer.dims.len(), || format!("strides of {name}"))?;
                for stride in strides {
                    require(self.ty(stride)?.is_index(), || format!("a stride of {name}"))?;
                }
                let units = strides.iter().filter(|s| **s == Expr::I32(1)).count();
                require(units == 1, || format!("{units} strides of {name} are 1"))
            }
        }
    }

    /// Checks that exactly the bound global buffers are parameters. The rule of spans applies only
    /// to parameters.
    pub(super) fn bound(&self, id: usize, buffer: &Buffer) -> VerifyResult {
        let names = |p: &&Param| {
            matches!(
                p.kind,
                ParamKind::Buffer { buffer, .. } | ParamKind::TensorMap { buffer, .. }
                    if buffer.id == id
            )
        };
        let params = self.k.params.iter().filter(names).count();
        let expected = usize::from(buffer.layout.is_bound());
        require(params == expected, || format!("{} is {params} parameters", buffer.name))
    }

    /// Checks that rows consist of whole groups of columns, because a swizzle permutes elements
    /// only inside a group.
    fn swizzle(&self, buffer: &Buffer, swizzle: Swizzle) -> VerifyResult {
        let name = &buffer.name;
        let Swizzle { bits, base, shift } = swizzle;
        require(bits + base < 32 && shift < 32, || format!("the swizzle of {name}"))?;
        let dims = buffer.physical_dims().unwrap_or_default();
        require(dims.len() >= 2, || format!("{name} has no rows to swizzle"))?;
        let last = dims.last().map_or(Ok(0), |d| constant(self.k, d, name))?;
        require(last.is_multiple_of(1 << (bits + base)), || {
            format!("rows of {name} hold {last} elements, not groups of 2^{}", bits + base)
        })?;
        require(buffer.space == Space::Shared, || format!("{name} is swizzled, but not shared"))
    }
}
