//! Matrices whose planes are made once, for many products.

use crate::backend::Backend;
use crate::buffer::Buffer;
use crate::device::{Device, On, dispatch};
use crate::error::Result;
use crate::launch::{Bound, launch};
use crate::memory::Keeps;
use crate::operand::{self, Input, Resolved, Shared, sealed, write};
use crate::planes::{Numbers, Planes, with_numbers};
use crate::shape::Shape;
use crate::view::{AsMatrix, MatrixOf, MatrixRef};
use gemm_dsl::spec::Arith;
use std::sync::Arc;

/// A matrix with its planes: what tensor cores multiply under `mma: wgmma` in place of its numbers, which every launch
/// makes otherwise. It is given to launches as B, or its [transpose](Self::t) as A, and borrows the matrix, which stays as
/// it is as long.
///
/// A product whose kernel is of the same arithmetic takes the planes; it need not be the same kernel. Others, those of
/// batches among them, and those of a matrix that has numbers which its planes do not hold, read the matrix, as an epilogue
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
pub struct PreparedMatrix<'b> {
    matrix: MatrixRef<'b>,
    arith: Arith,
    /// None where they do not hold all numbers, so that nobody would take them.
    planes: Option<Arc<Planes>>,
    /// In which products they are its planes: those in which it is A, 0, or B, 1.
    side: usize,
}

impl Device {
    /// Makes the planes of a matrix for products in an arithmetic, in which it is B. On a GPU the call waits for them where
    /// the arithmetic stands for `f32`, to learn whether they hold all numbers; where they do not, none are kept.
    ///
    /// # Errors
    /// * [`Error::Spec`](crate::Error::Spec) for `arith: f32`, which has no planes.
    /// * Those of a launch with this matrix; [`Error::Unmet`](crate::Error::Unmet) is among them for a batch, or a list.
    /// * [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub fn prepare<'b>(&self, arith: Arith, matrix: &MatrixRef<'b>) -> Result<PreparedMatrix<'b>> {
        self.begin_planes(arith, matrix, None)?.done(self)
    }

    /// Begins the same, in the memory of planes that nobody needs any more, where it is of the same extents.
    #[doc(hidden)]
    pub fn begin_planes<'b>(
        &self,
        arith: Arith,
        matrix: &MatrixRef<'b>,
        spare: Option<Arc<Planes>>,
    ) -> Result<Preparing<'b>> {
        let matrix = MatrixRef { elements: matrix.elements.copy(), shape: matrix.shape };
        let Shape { rows: terms, cols: lines, .. } = matrix.shape();
        let program = self.programs().splits_of_b(arith, matrix.shape().lies_in_columns())?;
        let problem = [lines as u64, terms as u64];
        let (elem, axes, len) = program.first_output(&problem)?;
        let is_alike = |spare: &Planes| {
            (spare.arith, &spare.axes, spare.lines) == (arith, &axes, lines as u64)
        };
        // What lies between lines stays the zeros that it was.
        let numbers = match spare.and_then(Arc::into_inner).filter(is_alike) {
            Some(spare) => spare.numbers,
            None => Numbers::alloc(self, elem, len)?,
        };
        let mut planes = Planes {
            arith,
            numbers,
            greatest: arith.is_scaled().then(|| self.alloc_of(lines)).transpose()?,
            axes,
            lines: lines as u64,
        };
        let mut lost = arith.is_emulation().then(|| self.alloc_of(1)).transpose()?;
        dispatch!(self, on => {
            let b = operand::read(on, &matrix, "matrix")?;
            let input = Bound::matrix("matrix", b.place.clone(), matrix.shape());
            let numbers = with_numbers!(&mut planes.numbers, all => write(on, all, "planes")?);
            let mut outputs = vec![Bound::array("planes", numbers.place.clone(), &planes.axes)];
            let lost = lost.as_mut().map(|word| write(on, word, "lost")).transpose()?;
            outputs.extend(lost.as_ref().map(|word| Bound::vector("lost", word.place.clone(), 1)));
            let greatest = planes.greatest.as_mut();
            let greatest = greatest.map(|all| write(on, all, "greatest")).transpose()?;
            let greatest = greatest.as_ref().map(|all| all.place.clone());
            outputs.extend(greatest.map(|all| Bound::vector("greatest", all, lines as u64)));
            launch(on, &program, &[input], &outputs, &problem)?;
        });
        Ok(Preparing { matrix, planes, lost })
    }
}

/// Planes that are being made.
pub struct Preparing<'b> {
    matrix: MatrixRef<'b>,
    planes: Planes,
    /// Not 0 where they do not hold all numbers.
    lost: Option<Buffer<u32>>,
}

impl<'b> Preparing<'b> {
    /// Waits for them, where it is to be known whether they hold all numbers.
    pub fn done(self, device: &Device) -> Result<PreparedMatrix<'b>> {
        let Self { matrix, planes, lost } = self;
        let is_whole = match &lost {
            Some(word) => device.download(word)? == [0],
            None => true,
        };
        let arith = planes.arith;
        let planes = is_whole.then(|| Arc::new(planes));
        Ok(PreparedMatrix { matrix, arith, planes, side: 1 })
    }
}

impl PreparedMatrix<'_> {
    /// The transpose, with the same planes: columns of a B are rows of an A. Launches take it as A, and its own transpose
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
    pub fn t(&self) -> PreparedMatrix<'_> {
        let (arith, planes) = (self.arith, self.planes.clone());
        PreparedMatrix { matrix: self.matrix.t(), arith, planes, side: 1 - self.side }
    }

    /// Its planes, for the memory that they take.
    #[doc(hidden)]
    pub fn into_planes(self) -> Option<Arc<Planes>> {
        self.planes
    }

    /// What its planes are for.
    pub fn arith(&self) -> Arith {
        self.arith
    }

    /// Whether its planes hold all of its numbers, so that products take them.
    pub fn is_whole(&self) -> bool {
        self.planes.is_some()
    }
}

/// What messages call them.
const NAME: &str = "planes";

impl Planes {
    /// What a launch on a device needs of them.
    pub(crate) fn read<'a, B: Keeps>(&'a self, on: On<'a, B>) -> Result<Vec<Resolved<'a, B>>> {
        let numbers = with_numbers!(&self.numbers, all => operand::read(on, all, NAME)?);
        let greatest = self.greatest.as_ref().map(|all| operand::read(on, all, NAME));
        [Ok(numbers)].into_iter().chain(greatest).collect()
    }

    /// What of them is bound: the planes, 0, or the greatest magnitudes, 1, in the order of [`read`](Self::read), if there
    /// are such.
    pub(crate) fn bind<'n, B: Backend>(
        &self,
        read: &'n [Resolved<'_, B>],
        nth: usize,
    ) -> Option<Bound<'n, B>> {
        let place = read.get(nth)?.place.clone();
        Some(match nth {
            0 => Bound::array(NAME, place, &self.axes),
            _ => Bound::vector(NAME, place, self.lines),
        })
    }
}

impl sealed::Input<f32> for PreparedMatrix<'_> {
    fn input(&self) -> (Shared<'_, f32>, Option<Shape>) {
        self.matrix.input()
    }

    fn planes(&self, side: usize) -> Option<&Planes> {
        self.planes.as_deref().filter(|_| side == self.side)
    }
}

impl Input for PreparedMatrix<'_> {
    type Element = f32;
}

impl MatrixOf<f32> for PreparedMatrix<'_> {}

impl AsMatrix for PreparedMatrix<'_> {
    fn as_matrix(&self) -> MatrixRef<'_> {
        self.matrix.as_matrix()
    }
}
