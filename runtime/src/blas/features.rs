//! Features of a call that are not part of its problem.

use super::SgemmCall;
use super::tables::CallFeatures;
use crate::error::{Error, Result};
use crate::kernel::operands::{OperandsFor, batches, sealed};
use crate::shape::{CallBatch, NamedBatch, Shape};
use gemm_dsl::spec::Batch;
use smallvec::SmallVec;

impl<E, O: OperandsFor<E>> SgemmCall<'_, E, O> {
    /// Features of this call other than the epilogue, after checking the matrices.
    pub(super) fn features(&self) -> Result<CallFeatures<'static>> {
        self.extents()?;
        let shapes = [self.a.shape(), self.b.shape(), self.c.shape()];
        for (argument, shape) in ["a", "b", "c"].into_iter().zip(&shapes) {
            if !shape.is_row_major() && !shape.is_column_major() {
                let (row_stride, col_stride) = (shape.row_stride, shape.col_stride);
                return Err(Error::Scattered { argument, row_stride, col_stride });
            }
        }
        let counts = [self.a.count(), self.b.count(), self.c.count()];
        let lists = [("a", self.a.is_list()), ("b", self.b.is_list()), ("c", self.c.is_list())];
        let first = |is_list| lists.into_iter().find(|(_, of)| *of == is_list);
        let batch = match (first(true), first(false)) {
            (Some((list, _)), Some((other, _))) => return Err(Error::Unlisted { list, other }),
            (Some(_), None) => Some(Batch::Pointers),
            (None, _) if counts.iter().any(Option::is_some) => Some(self.strided(shapes)?),
            (None, _) => None,
        };
        let scaled = self.alpha.to_bits() != 1f32.to_bits() || self.beta != 0.0;
        Ok(CallFeatures { scaled, batch, epilogue: None })
    }

    /// Kind of a strided batch with matrices of these shapes: the fewest axes that have a stride in
    /// each operand.
    fn strided(&self, shapes: [Shape; 3]) -> Result<Batch> {
        let of = |shape: Shape| shape.batch.map(|batch| batch.array_axes()).unwrap_or_default();
        let is_row_major = shapes[2].is_row_major();
        let epilogue = self.epilogue.as_ref().map(|epilogue| epilogue.for_c(is_row_major));
        let named = epilogue.map_or(&[][..], |epilogue| &epilogue.operands);
        let forms = sealed::GiveAll::forms(&self.operands, named)?;
        let matrices = ["a", "b", "c"].into_iter().zip(shapes.map(of));
        let matrices = matrices.chain(batches(named, &forms));
        let matrices: SmallVec<[NamedBatch<'_>; 4]> = matrices.collect();
        let batch = CallBatch::new(shapes[2].batch().count(), &matrices)?;
        let kind = Batch::strided(batch.len());
        Ok(kind.unwrap_or_else(|| unreachable!("CallBatch: it has from one to three axes")))
    }
}
