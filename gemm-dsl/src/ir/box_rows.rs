//! Layouts of shared arrays that TMA copies and `wgmma` instructions accept.

use super::{
    Access, Buffer, BufferLayout, Descriptor, Kernel, Space, Stmt, TensorSwizzle, VECTOR_BYTES,
    Wgmma,
};

/// Layout of a TMA box in shared memory: contiguous rows. A row is the buffer's last dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BoxRows {
    /// Row length in elements.
    pub(crate) length: u64,
    /// XOR swizzle of the 16-byte vectors within rows. A swizzled row has exactly the length of the
    /// swizzle in bytes.
    pub(crate) swizzle: TensorSwizzle,
}

impl BoxRows {
    /// Returns the layout of a shared array; `None` if neither TMA nor `wgmma` can use it.
    pub(crate) fn from_buffer(k: &Kernel, buffer: &Buffer) -> Option<Self> {
        let BufferLayout::Array { order, pad, swizzle } = &buffer.layout else { return None };
        let plain = order.iter().copied().eq(0..buffer.dims.len());
        let packed = k.eval_const(pad).is_ok_and(|pad| pad == 0);
        if buffer.space != Space::Shared || !plain || !packed {
            return None;
        }
        let length = u64::try_from(k.eval_const(buffer.dims.last()?).ok()?).ok()?;
        let bytes = length.checked_mul(buffer.elem.size().into())?;
        let swizzle = match swizzle {
            None => TensorSwizzle::None,
            Some(swizzle) => TensorSwizzle::ALL.into_iter().find(|of| {
                of.layout(buffer.elem) == Some(*swizzle) && of.bytes().map(u64::from) == Some(bytes)
            })?,
        };
        Some(Self { length, swizzle })
    }
}

impl Descriptor {
    /// Returns the descriptor of operands in a shared array; `None` if a descriptor cannot express
    /// its layout.
    pub fn from_buffer(k: &Kernel, buffer: &Buffer, mn_major: bool) -> Option<Self> {
        let swizzle = BoxRows::from_buffer(k, buffer)?.swizzle;
        let row = swizzle.bytes()?;
        let leading = match mn_major {
            false => Self::CHUNK,
            true => {
                let rows = k.eval_const(buffer.dims.iter().nth_back(1)?).ok()?;
                u32::try_from(rows).ok()?.checked_mul(row)?
            }
        };
        Some(Self { swizzle, stride: Wgmma::GROUP * row, leading })
    }
}

impl Kernel {
    /// Alignment of each buffer if it is in shared memory, in bytes. Other entries are meaningless.
    pub fn alignments(&self) -> Vec<u64> {
        let mut bytes = vec![u64::from(VECTOR_BYTES); self.buffers.len()];
        let mut note = |access: &Access| {
            let rows =
                self.buffers.get(access.buffer.id).and_then(|b| BoxRows::from_buffer(self, b));
            if let (Some(rows), Some(bytes)) = (rows, bytes.get_mut(access.buffer.id)) {
                *bytes = rows.swizzle.alignment();
            }
        };
        self.visit(&mut |stmt| match stmt {
            Stmt::TensorCopy(copy) => note(&copy.to),
            Stmt::Wgmma(wgmma) => [&wgmma.a, &wgmma.b].into_iter().for_each(&mut note),
            _ => {}
        });
        bytes
    }
}
