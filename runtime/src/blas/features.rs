//! Features of a call that are not part of its problem.

use super::GemmCall;
use super::tables::CallFeatures;
use crate::error::{Error, Result};
use crate::kernel::operands::{OperandsFor, batches, sealed};
use crate::kernel::{GroupOffset, GroupOffsets};
use crate::operand::Vector;
use crate::shape::{CallBatch, NamedBatch, Shape};
use gemm_dsl::spec::{Batch, Pairs};
use gemm_dsl::target::element::Element;
use smallvec::SmallVec;

impl<'a, T: Element, C: Element, E, O: OperandsFor<E>> GemmCall<'a, T, C, E, O> {
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
        let folds = self.epilogue.as_ref().filter(|of| of.expression().folds_rows());
        if let Some(epilogue) = folds.filter(|_| !self.c.shape().is_row_major()) {
            return Err(Error::FoldsOfColumns { epilogue: epilogue.text().to_owned() });
        }
        let pairs = self.epilogue.as_ref().filter(|of| of.expression().pairs() != Pairs::None);
        if let Some(epilogue) = pairs.filter(|_| !self.c.shape().is_row_major()) {
            return Err(Error::PairsOfRows { epilogue: epilogue.text().to_owned() });
        }
        let counts = [self.a.count(), self.b.count(), self.c.count()];
        let lists = [("a", self.a.is_list()), ("b", self.b.is_list()), ("c", self.c.is_list())];
        let first = |is_list| lists.into_iter().find(|(_, of)| *of == is_list);
        let batch = match (first(true), first(false)) {
            _ if self.groups.is_some() => {
                grouped(&shapes, first(true).map(|(list, _)| list))?;
                Some(Batch::Grouped)
            }
            (Some((list, _)), Some((other, _))) => return Err(Error::Unlisted { list, other }),
            (Some(_), None) => Some(Batch::Pointers),
            (None, _) if counts.iter().any(Option::is_some) => Some(self.strided(shapes)?),
            (None, _) => None,
        };
        let scaled = self.alpha.to_bits() != 1f32.to_bits() || self.beta != 0.0;
        Ok(CallFeatures { scaled, batch, epilogue: None })
    }

    /// Passes the offsets of the groups of a grouped GEMM: the first row of each group in A and C,
    /// then the row after the last group. B is a batch with a matrix per group, or one matrix for
    /// all. The offsets are `u32` or `i32`, and are read on the device, when the kernel runs.
    ///
    /// The table of single GEMMs chooses the rule, by all rows. The kernel is `batch: grouped`,
    /// without `split_k` and `stream_k`, and a tile of 128x256 becomes 64x256, because each group
    /// ends with a partial tile. Rules without `tile` and rules with `mma: wgmma` are skipped. The
    /// page [`batches`](crate::guide::batches) describes groups.
    ///
    /// ```
    /// use gemm_runtime::{BatchN, Device, Epilogue, MatrixRef, epilogue, sgemm};
    ///
    /// // Each expert has a bias of its own.
    /// const EXPERT: Epilogue<(BatchN,)> = epilogue!(|acc, bias[batch, n]| relu(acc + bias));
    ///
    /// let device = Device::simulator();
    /// let x = device.upload_matrix(&[1.0, 2.0, 3.0], 3, 1)?;
    /// let experts = device.upload(&[10.0, 100.0])?;
    /// let experts = MatrixRef::batch(&experts, 2, 1, 1)?;
    /// let bias = device.upload_matrix(&[0.5, -250.0], 2, 1)?;
    /// let offsets = device.upload_of(&[0_i32, 1, 3])?;
    /// let mut y = device.alloc_matrix(3, 1)?;
    /// sgemm(&x, &experts, &mut y).epilogue(EXPERT).operands(&bias).groups(&offsets).run(&device)?;
    /// assert_eq!(device.download(&y)?, [10.5, 0.0, 50.0]);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    pub fn groups<V>(self, offsets: &'a V) -> Self
    where
        V: Vector + ?Sized,
        V::Element: GroupOffset,
    {
        Self { groups: Some(GroupOffsets::new(offsets)), ..self }
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

/// Checks the matrices of a grouped GEMM: A and C are row-major, and none is a list.
fn grouped([a, _, c]: &[Shape; 3], list: Option<&'static str>) -> Result<()> {
    if let Some(list) = list {
        return Err(Error::List { argument: list.to_owned() });
    }
    for (argument, shape) in [("a", a), ("c", c)] {
        if !shape.is_row_major() {
            return Err(Error::WrongShape {
                argument: argument.to_owned(),
                has: "column-major".to_owned(),
                need: "groups are rows of a row-major matrix".to_owned(),
                remedy: "Copy it to a row-major matrix",
            });
        }
    }
    Ok(())
}
