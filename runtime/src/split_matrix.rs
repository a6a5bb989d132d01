//! Matrices whose splits are computed once for many GEMMs.

use crate::backend::Backend;
use crate::buffer::Buffer;
use crate::device::{Device, On, dispatch};
use crate::error::{Error, Result};
use crate::launch::{BoundArray, launch};
use crate::operand::{self, Input, LocatedOperand, Shared, sealed, write};
use crate::program::CachedProgram;
use crate::shape::Shape;
use crate::splits::{SplitBuffers, SplitElements, with_elements};
use crate::view::{AsMatrix, AsMatrixOf, MatrixOf, MatrixRef};
use gemm_dsl::ir::contract::ArrayAxis;
use gemm_dsl::ir::program::{PackedLayout, ProgramValues};
use gemm_dsl::ir::{Elem, Extent, Operand};
use gemm_dsl::lower::{ROW_MAX, SPLITS, UNREPRESENTABLE};
use gemm_dsl::spec::{Arith, Factor};
use std::sync::Arc;

/// Matrix with precomputed splits, which kernels with `mma: wgmma` multiply.
///
/// A launch with plain matrices splits them anew each time. Pass a `SplitMatrix` as B, or its
/// [transpose](Self::t) as A. It borrows the matrix, which therefore cannot change.
///
/// Every `mma: wgmma` kernel without `batch` and with the same `arith` uses the splits. Other
/// kernels, and epilogues that take the matrix as an operand, read the matrix itself. If the splits
/// cannot represent all numbers of the matrix, every launch reads the matrix itself. A result has
/// the same bits with and without splits.
///
/// ```
/// use gemm_runtime::spec::Arith;
/// use gemm_runtime::{Device, MatrixMut, MatrixRef, SgemmKernel, sgemm_kernel};
///
/// const GEMM: SgemmKernel = sgemm_kernel!(tile: 64x64x32, arith: bf16x6, mma: wgmma);
///
/// let device = Device::simulator();
/// let (a, weights) = (device.upload(&[1.0; 6])?, device.upload(&[2.0; 12])?);
/// let weights = device.prepare(Arith::Bf16x6, &MatrixRef::new(&weights, 3, 4)?)?;
/// let mut c = device.alloc(8)?;
/// let a = MatrixRef::new(&a, 2, 3)?;
/// GEMM.call(&device).launch(&a, &weights, &mut MatrixMut::new(&mut c, 2, 4)?)?;
/// assert_eq!(device.download(&c)?, [6.0; 8]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[derive(Debug)]
pub struct SplitMatrix<'b> {
    matrix: MatrixRef<'b>,
    arith: Arith,
    /// `None` if the splits cannot represent every number, so that no launch uses them.
    splits: Option<Arc<SplitBuffers>>,
    /// Factor for which the splits were computed.
    factor: Factor,
}

impl Device {
    /// Computes the splits of a matrix that is B in GEMMs with this `arith`.
    ///
    /// If `arith` emulates `f32`, the call waits on a GPU until the splits are computed and
    /// checked. If the splits cannot represent every number, they are dropped.
    ///
    /// # Errors
    /// * [`Error::Spec`](crate::Error::Spec) for [`Arith::F32`], which has no splits.
    /// * The errors of a launch with this matrix, such as [`Error::Unmet`](crate::Error::Unmet) for
    ///   a batch or a list.
    /// * [`Error::OutOfMemory`](crate::Error::OutOfMemory) if the device has too little memory.
    pub fn prepare<'b>(&self, arith: Arith, matrix: &MatrixRef<'b>) -> Result<SplitMatrix<'b>> {
        self.begin_splits(arith, matrix, None)?.done(self)
    }

    /// Starts [`prepare`](Self::prepare), reusing the memory of `spare` splits of the same
    /// arithmetic and extents.
    #[doc(hidden)]
    pub fn begin_splits<'b>(
        &self,
        arith: Arith,
        matrix: &MatrixRef<'b>,
        spare: Option<Arc<SplitBuffers>>,
    ) -> Result<PendingSplit<'b>> {
        let matrix = *matrix;
        let Shape { rows: terms, cols: lines, .. } = matrix.shape();
        let program = self.programs().splits_of_b(arith, matrix.shape().is_column_major())?;
        let extents = [(Extent::N, lines as u64), (Extent::K, terms as u64)];
        let values = program.program().bind(&extents, &[])?;
        let SplitLayout { elem, axes, len } = SplitLayout::new(&program, &values)?;
        let is_alike = |spare: &SplitBuffers| {
            (spare.arith, &spare.axes, spare.lines) == (arith, &axes, lines as u64)
        };
        // The padding between columns is zero: new memory is zeroed, and no kernel writes the
        // padding of spare splits.
        let numbers = match spare.and_then(Arc::into_inner).filter(is_alike) {
            Some(spare) => spare.numbers,
            None => SplitElements::alloc(self, elem, len)?,
        };
        let mut splits = SplitBuffers {
            arith,
            numbers,
            greatest: arith.is_scaled().then(|| self.alloc_of(lines)).transpose()?,
            axes,
            lines: lines as u64,
        };
        let mut lost = arith.is_emulation().then(|| self.alloc_of(1)).transpose()?;
        dispatch!(self, on => {
            let b = operand::read(on, &matrix, "matrix")?;
            let input = BoundArray::matrix("matrix", b.place.clone(), matrix.shape());
            let all = with_elements!(&mut splits.numbers, all => write(on, all, NAME)?);
            let bound = BoundArray::array(NAME, all.place.clone(), &splits.axes);
            let mut arrays = vec![(Operand::Input(1), input), (SPLITS[Factor::B.index()], bound)];
            let lost = lost.as_mut().map(|word| write(on, word, "unrepresentable")).transpose()?;
            if let Some(word) = &lost {
                let word = BoundArray::vector("unrepresentable", word.place.clone(), 1);
                arrays.push((UNREPRESENTABLE, word));
            }
            let greatest = splits.greatest.as_mut();
            let greatest = greatest.map(|all| write(on, all, "maxima")).transpose()?;
            if let Some(all) = &greatest {
                let all = BoundArray::vector("maxima", all.place.clone(), lines as u64);
                arrays.push((ROW_MAX[Factor::B.index()], all));
            }
            launch(on, &program, &values, &arrays)?;
        });
        Ok(PendingSplit { matrix, splits, lost })
    }
}

/// Layout of the splits of a B.
struct SplitLayout {
    elem: Elem,
    axes: Vec<ArrayAxis>,
    len: usize,
}

impl SplitLayout {
    /// Layout that the splitting program declares for its output.
    fn new(program: &CachedProgram, values: &ProgramValues) -> Result<Self> {
        let output = &program.program().outputs[0];
        let PackedLayout { axes, len } = values.packed(&output.dims)?;
        let len = usize::try_from(len).map_err(|_| Error::TooLarge {
            what: format!("`{}` would have {len} elements", output.name),
            limit: usize::MAX as u64,
            remedy: "Check the extents",
        })?;
        Ok(Self { elem: output.elem, axes: axes.into_vec(), len })
    }
}

/// Splits whose computation has been launched.
pub struct PendingSplit<'b> {
    matrix: MatrixRef<'b>,
    splits: SplitBuffers,
    /// Flag that is not 0 if the splits cannot represent every number.
    lost: Option<Buffer<u32>>,
}

impl<'b> PendingSplit<'b> {
    /// Returns the splits. If `arith` emulates `f32`, waits for them and checks that they represent
    /// every number.
    pub fn done(self, device: &Device) -> Result<SplitMatrix<'b>> {
        let Self { matrix, splits, lost } = self;
        let is_whole = match &lost {
            Some(word) => device.download(word)? == [0],
            None => true,
        };
        let arith = splits.arith;
        let splits = is_whole.then(|| Arc::new(splits));
        Ok(SplitMatrix { matrix, arith, splits, factor: Factor::B })
    }
}

impl SplitMatrix<'_> {
    /// Returns the transpose with the same splits: the columns of B are the rows of Bᵀ. Pass it as
    /// A. The transpose of the result can be B again.
    ///
    /// ```
    /// use gemm_runtime::spec::Arith;
    /// use gemm_runtime::{Device, MatrixMut, MatrixRef, SgemmKernel, sgemm_kernel};
    ///
    /// const GEMM: SgemmKernel = sgemm_kernel!(tile: 64x64x32, arith: bf16x6, mma: wgmma);
    ///
    /// let device = Device::simulator();
    /// let (weights, x) = (device.upload(&[2.0; 12])?, device.upload(&[1.0; 3])?);
    /// let weights = MatrixRef::new(&weights, 4, 3)?;
    /// let prepared = device.prepare(Arith::Bf16x6, &weights.t())?;
    /// let mut y = device.alloc(4)?;
    /// let out = &mut MatrixMut::new(&mut y, 4, 1)?;
    /// GEMM.call(&device).launch(&prepared.t(), &MatrixRef::new(&x, 3, 1)?, out)?;
    /// assert_eq!(device.download(&y)?, [6.0; 4]);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    pub fn t(&self) -> SplitMatrix<'_> {
        let (arith, splits) = (self.arith, self.splits.clone());
        let factor = match self.factor {
            Factor::A => Factor::B,
            Factor::B => Factor::A,
        };
        SplitMatrix { matrix: self.matrix.t(), arith, splits, factor }
    }

    /// Splits, for reuse of their memory.
    #[doc(hidden)]
    pub fn into_splits(self) -> Option<Arc<SplitBuffers>> {
        self.splits
    }

    /// Returns the arithmetic of the splits.
    pub fn arith(&self) -> Arith {
        self.arith
    }

    /// Returns true if the splits represent every number of the matrix, so that launches use them.
    pub fn is_whole(&self) -> bool {
        self.splits.is_some()
    }
}

/// Name of the splits in messages.
const NAME: &str = "splits";

impl SplitBuffers {
    /// Arrays of the splits, located on a device.
    pub(crate) fn read<'a, B: Backend>(
        &'a self,
        on: On<'a, B>,
    ) -> Result<Vec<LocatedOperand<'a, B>>> {
        let numbers = with_elements!(&self.numbers, all => operand::read(on, all, NAME)?);
        let greatest = self.greatest.as_ref().map(|all| operand::read(on, all, NAME));
        [Ok(numbers)].into_iter().chain(greatest).collect()
    }

    /// Arrays of a launch in which the matrix is A (0) or B (1), in the order of
    /// [`read`](Self::read): the splits, then the greatest magnitudes if columns are scaled.
    pub(crate) fn bind<'n, B: Backend>(
        &self,
        factor: Factor,
        read: &[LocatedOperand<'n, B>],
    ) -> Vec<(Operand, BoundArray<'n, B>)> {
        let bound = read.iter().enumerate().map(|(nth, found)| match (nth, found.place.clone()) {
            (0, place) => (SPLITS[factor.index()], BoundArray::array(NAME, place, &self.axes)),
            (_, place) => (ROW_MAX[factor.index()], BoundArray::vector(NAME, place, self.lines)),
        });
        bound.collect()
    }
}

impl sealed::Input<f32> for SplitMatrix<'_> {
    fn input(&self) -> (Shared<'_, f32>, Option<Shape>) {
        self.matrix.input()
    }

    fn splits(&self, factor: Factor) -> Option<&SplitBuffers> {
        self.splits.as_deref().filter(|_| factor == self.factor)
    }
}

impl Input for SplitMatrix<'_> {
    type Element = f32;
}

impl MatrixOf<f32> for SplitMatrix<'_> {}
impl AsMatrixOf<f32> for SplitMatrix<'_> {}

impl AsMatrix for SplitMatrix<'_> {
    fn as_matrix(&self) -> MatrixRef<'_> {
        self.matrix.as_matrix()
    }
}
