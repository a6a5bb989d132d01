//! Matrices whose splits are made once, for many products.

use crate::backend::Backend;
use crate::buffer::Buffer;
use crate::device::{Device, On, dispatch};
use crate::error::{Error, Result};
use crate::launch::{BoundArray, launch};
use crate::operand::{self, Input, LocatedOperand, Shared, sealed, write};
use crate::program::CachedProgram;
use crate::shape::Shape;
use crate::splits::{SplitBuffers, SplitElements, with_elements};
use crate::view::{AsMatrix, MatrixOf, MatrixRef};
use gemm_dsl::ir::contract::ArrayAxis;
use gemm_dsl::ir::program::{PackedLayout, ProgramValues};
use gemm_dsl::ir::{Elem, Extent, Operand};
use gemm_dsl::lower::{ROW_MAX, SPLITS, UNREPRESENTABLE};
use gemm_dsl::spec::{Arith, Factor};
use std::sync::Arc;

/// A matrix with its splits: what tensor cores multiply under `mma: wgmma` in place of its numbers, which every launch
/// makes otherwise. It is given to launches as B, or its [transpose](Self::t) as A, and borrows the matrix, which stays as
/// it is as long.
///
/// A product whose kernel is of the same arithmetic takes the splits; it need not be the same kernel. Others, those of
/// batches among them, and those of a matrix that has numbers which its splits do not hold, read the matrix, as an epilogue
/// does whose operand it is. The bits of results are the same either way.
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
    /// None where they do not hold all numbers, so that nobody would take them.
    splits: Option<Arc<SplitBuffers>>,
    /// In which products they are its splits: those in which it is this factor.
    factor: Factor,
}

impl Device {
    /// Makes the splits of a matrix for products in an arithmetic, in which it is B. On a GPU the call waits for them where
    /// the arithmetic stands for `f32`, to learn whether they hold all numbers; where they do not, none are kept.
    ///
    /// # Errors
    /// * [`Error::Spec`](crate::Error::Spec) for `arith: f32`, which has no splits.
    /// * Those of a launch with this matrix; [`Error::Unmet`](crate::Error::Unmet) is among them for a batch, or a list.
    /// * [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub fn prepare<'b>(&self, arith: Arith, matrix: &MatrixRef<'b>) -> Result<SplitMatrix<'b>> {
        self.begin_splits(arith, matrix, None)?.done(self)
    }

    /// Begins the same, in the memory of splits that nobody needs any more, where it is of the same extents.
    #[doc(hidden)]
    pub fn begin_splits<'b>(
        &self,
        arith: Arith,
        matrix: &MatrixRef<'b>,
        spare: Option<Arc<SplitBuffers>>,
    ) -> Result<PendingSplit<'b>> {
        let matrix = MatrixRef { elements: matrix.elements.copy(), shape: matrix.shape };
        let Shape { rows: terms, cols: lines, .. } = matrix.shape();
        let program = self.programs().splits_of_b(arith, matrix.shape().lies_in_columns())?;
        let extents = [(Extent::N, lines as u64), (Extent::K, terms as u64)];
        let values = program.program.bind(&extents, &[])?;
        let SplitLayout { elem, axes, len } = SplitLayout::new(&program, &values)?;
        let is_alike = |spare: &SplitBuffers| {
            (spare.arith, &spare.axes, spare.lines) == (arith, &axes, lines as u64)
        };
        // What lies between lines stays the zeros that it was.
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
            let lost = lost.as_mut().map(|word| write(on, word, "lost")).transpose()?;
            if let Some(word) = &lost {
                let word = BoundArray::vector("lost", word.place.clone(), 1);
                arrays.push((UNREPRESENTABLE, word));
            }
            let greatest = splits.greatest.as_mut();
            let greatest = greatest.map(|all| write(on, all, "greatest")).transpose()?;
            if let Some(all) = &greatest {
                let all = BoundArray::vector("greatest", all.place.clone(), lines as u64);
                arrays.push((ROW_MAX[Factor::B.index()], all));
            }
            launch(on, &program, &values, &arrays)?;
        });
        Ok(PendingSplit { matrix, splits, lost })
    }
}

/// The layout of the splits of a B.
struct SplitLayout {
    elem: Elem,
    axes: Vec<ArrayAxis>,
    len: usize,
}

impl SplitLayout {
    /// The layout that the program which makes them says.
    fn new(program: &CachedProgram, values: &ProgramValues) -> Result<Self> {
        let output = &program.program.outputs[0];
        let PackedLayout { axes, len } = program.program.packed(&output.dims, values)?;
        let len = usize::try_from(len).map_err(|_| Error::TooLarge {
            what: format!("`{}` would have {len} elements", output.name),
            limit: usize::MAX as u64,
            remedy: "Check the extents",
        })?;
        Ok(Self { elem: output.elem, axes, len })
    }
}

/// Splits that are being made.
pub struct PendingSplit<'b> {
    matrix: MatrixRef<'b>,
    splits: SplitBuffers,
    /// Not 0 where they do not hold all numbers.
    lost: Option<Buffer<u32>>,
}

impl<'b> PendingSplit<'b> {
    /// Waits for them, where it is to be known whether they hold all numbers.
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
    /// The transpose, with the same splits: columns of a B are rows of an A. Launches take it as A, and its own transpose
    /// as B again.
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

    /// Its splits, for the memory that they take.
    #[doc(hidden)]
    pub fn into_splits(self) -> Option<Arc<SplitBuffers>> {
        self.splits
    }

    /// What its splits are for.
    pub fn arith(&self) -> Arith {
        self.arith
    }

    /// Whether its splits hold all of its numbers, so that products take them.
    pub fn is_whole(&self) -> bool {
        self.splits.is_some()
    }
}

/// What messages call them, as the text of kernels does.
const NAME: &str = "planes";

impl SplitBuffers {
    /// What a launch on a device needs of them.
    pub(crate) fn read<'a, B: Backend>(
        &'a self,
        on: On<'a, B>,
    ) -> Result<Vec<LocatedOperand<'a, B>>> {
        let numbers = with_elements!(&self.numbers, all => operand::read(on, all, NAME)?);
        let greatest = self.greatest.as_ref().map(|all| operand::read(on, all, NAME));
        [Ok(numbers)].into_iter().chain(greatest).collect()
    }

    /// The arrays of a launch in which the matrix is this factor, as [`read`](Self::read) has
    /// them: the splits, then, where lines are scaled, the greatest magnitudes.
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

impl AsMatrix for SplitMatrix<'_> {
    fn as_matrix(&self) -> MatrixRef<'_> {
        self.matrix.as_matrix()
    }
}
