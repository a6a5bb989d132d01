//! Offsets of the groups of a grouped GEMM.

use crate::backend::{Backend, Place};
use crate::device::On;
use crate::error::{Error, Result};
use crate::kernel_arg::Address;
use crate::launch::BoundArray;
use crate::operand::{LocatedOperand, Shared, Vector, resolve};
use crate::program::CachedProgram;
use crate::shape::{CallBatch, NamedBatch};
use gemm_dsl::ir::{Elem, Extent, Operand};
use gemm_dsl::spec::{Batch, SgemmSpec};
use gemm_dsl::target::element::Element;
use std::fmt;

/// Name of the offsets in messages.
const OFFSETS: &str = "offsets";

/// Element type of the offsets of a grouped GEMM: `u32` or `i32`.
///
/// ```
/// use gemm_runtime::bounds::{GroupOffset, Vector};
/// use gemm_runtime::{Device, Error, Matrix, MatrixRef, sgemm};
///
/// fn experts<V>(device: &Device, x: &Matrix, w: &MatrixRef, offsets: &V) -> Result<Matrix, Error>
/// where
///     V: Vector,
///     V::Element: GroupOffset,
/// {
///     let mut y = device.alloc_matrix(x.rows(), w.cols())?;
///     sgemm(x, w, &mut y).groups(offsets).run(device)?;
///     Ok(y)
/// }
///
/// let device = Device::simulator();
/// let x = device.upload_matrix(&[1.0, 2.0], 2, 1)?;
/// let w = device.upload(&[3.0, 4.0])?;
/// let w = MatrixRef::batch(&w, 2, 1, 1)?;
/// let y = experts(&device, &x, &w, &device.upload_of(&[0_u32, 1, 2])?)?;
/// assert_eq!(device.download(&y)?, [3.0, 8.0]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "offsets of groups are `u32` or `i32`, not `{Self}`",
    label = "not the type of an offset"
)]
pub trait GroupOffset: Element + sealed::GroupOffset {}

mod sealed {
    use super::{GroupOffsets, Shared};

    pub trait GroupOffset: Sized + super::Element {
        fn offsets(elements: Shared<'_, Self>) -> GroupOffsets<'_>;
    }
}

/// Offsets of a call, in elements of either type.
#[derive(Clone, Copy)]
pub enum GroupOffsets<'a> {
    U32(Shared<'a, u32>),
    I32(Shared<'a, i32>),
}

impl fmt::Debug for GroupOffsets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupOffsets").field("len", &self.len()).finish_non_exhaustive()
    }
}

macro_rules! offsets {
    ($($ty:ty => $variant:ident),*) => {
        $(
            impl GroupOffset for $ty {}
            impl sealed::GroupOffset for $ty {
                fn offsets(elements: Shared<'_, Self>) -> GroupOffsets<'_> {
                    GroupOffsets::$variant(elements)
                }
            }
        )*
    };
}
offsets!(u32 => U32, i32 => I32);

impl<'a> GroupOffsets<'a> {
    pub(crate) fn new<V>(offsets: &'a V) -> Self
    where
        V: Vector + ?Sized,
        V::Element: GroupOffset,
    {
        let (elements, _) = offsets.input();
        <V::Element as sealed::GroupOffset>::offsets(elements)
    }

    /// Number of offsets.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::U32(elements) => elements.len(),
            Self::I32(elements) => elements.len(),
        }
    }

    /// Number of groups.
    ///
    /// # Errors
    /// [`Error::WrongExtent`] without an offset.
    pub(crate) fn groups(&self) -> Result<usize> {
        self.len().checked_sub(1).ok_or_else(|| Error::WrongExtent {
            argument: OFFSETS.to_owned(),
            has: 0,
            need:
                "groups + 1 are needed: the first row of each group, then the row after the last \
                   group"
                    .to_owned(),
        })
    }

    pub(crate) fn locate<B: Backend>(&self, on: On<'a, B>) -> Result<LocatedOperand<'a, B>> {
        match *self {
            Self::U32(elements) => resolve(on, elements, None, OFFSETS),
            Self::I32(elements) => resolve(on, elements, None, OFFSETS),
        }
    }
}

/// Offsets of a launch, if its kernel computes groups.
///
/// # Errors
/// [`Error::WrongOperand`] if the kernel computes groups and the call gives no offsets, or the
/// other way round.
pub(super) fn of_kernel<'g>(
    program: &CachedProgram,
    given: Option<GroupOffsets<'g>>,
) -> Result<Option<(Operand, GroupOffsets<'g>)>> {
    let input = SgemmSpec::offsets_after(program.batch(), program.operands());
    match (input, given) {
        (None, None) => Ok(None),
        (Some(nth), Some(offsets)) => Ok(Some((Operand::Input(nth), offsets))),
        (Some(_), None) => Err(Error::WrongOperand {
            operand: OFFSETS.to_owned(),
            needed: "a vector with the first row of each group, then the row after the last group",
            found: "none".to_owned(),
            remedy: "Pass it with `.groups(&offsets)`",
        }),
        (None, Some(_)) => Err(Error::WrongOperand {
            operand: OFFSETS.to_owned(),
            needed: "an operand of kernels with `batch: grouped`",
            found: format!("it to {}", kind_of(program.batch())),
            remedy: "Use such a kernel, or leave the offsets out",
        }),
    }
}

fn kind_of(batch: Option<Batch>) -> String {
    match batch {
        None => "a kernel for one GEMM".to_owned(),
        Some(batch) => format!("a kernel with `batch: {batch}`"),
    }
}

/// Binds the offsets of `groups` groups.
pub(super) fn bind<'n, B: Backend>(
    offsets: &'n LocatedOperand<'_, B>,
    groups: usize,
) -> Result<BoundArray<'n, B>> {
    let (address, len) = offsets.array(OFFSETS)?;
    // The kernel reads offsets of `i32` as `u32`: a negative offset is beyond every row.
    let address = address.reinterpreted(Elem::U32);
    let address = address.unwrap_or_else(|| unreachable!("GroupOffset: offsets have four bytes"));
    Ok(BoundArray::vector(OFFSETS, Place::One { address, len }, groups as u64 + 1))
}

/// Gives B a matrix for each group. All groups share a single matrix.
///
/// # Errors
/// [`Error::Extents`] for another number of matrices, or if A or C is a batch.
pub(super) fn along_groups<B: Backend>(
    groups: usize,
    arrays: &mut [(Operand, BoundArray<'_, B>)],
) -> Result<[(Extent, u64); 1]> {
    for (operand, array) in arrays {
        let own = array.batch();
        let is_b = *operand == Operand::Input(1);
        let needs = if is_b { groups } else { 1 };
        let count = own.iter().map(|axis| axis.extent).fold(1, u64::saturating_mul);
        if !own.is_empty() && count != needs as u64 {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            let (first, other) = ((array.name().to_owned(), count), (OFFSETS.to_owned(), needs));
            return Err(Error::Extents { extent: Extent::BATCH, first, other });
        }
        let named: [NamedBatch<'_>; 1] = [(array.name(), own.into())];
        let batch = CallBatch::new(needs, &named)?;
        batch.check(Batch::Grouped, &named)?;
        array.for_each_of(&batch, usize::from(is_b));
    }
    Ok([(Extent::BATCH, groups as u64)])
}
