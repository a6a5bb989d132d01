//! Matrices of a GEMM on the device, in the layouts that kernels and cuBLAS require.

use crate::epilogue::{EpilogueArgs, FACTORS};
use crate::gpu::{Gpu, GpuReference, Product, failed};
use crate::products::{Matrices, Products, turned};
use cudarc::driver::{CudaSlice, CudaView};
use gemm_dsl::spec::{Arith, GemmLayout, SgemmSpec};
use gemm_oracle::beside::plain;
use gemm_oracle::product::{Size, Truth, Verdict, transposed};
use gemm_runtime::{Buffer, ByName, Device, Error, LaunchReport, MatrixRef, Sgemm};
use std::borrow::Cow;
use std::ops::Range;

/// A and B of a GEMM or of a batch, and the reference results.
pub struct Operands<'h> {
    products: Products,
    a: Source<'h>,
    b: Source<'h>,
    /// A·B in `f64` for the checked GEMMs, contiguous.
    truth: Truth,
    /// Indices of the checked GEMMs in the batch.
    checked: Vec<usize>,
    /// Result of cuBLAS; `None` on the simulator.
    pub blas_c: Option<CudaSlice<f32>>,
}

/// Row-major matrix on the host, or the matrices of a batch, and the packed copies that were
/// uploaded so far.
struct Source<'h> {
    elements: &'h [f32],
    batch: Option<usize>,
    rows: usize,
    cols: usize,
    by_row: Option<DeviceArray>,
    by_column: Option<DeviceArray>,
}

/// Elements on a device. On a GPU, cuBLAS can also use them.
pub(crate) enum DeviceArray {
    Simulated(Buffer),
    Gpu(CudaSlice<f32>),
}

impl DeviceArray {
    /// Uploads elements. On a GPU, all devices of its context may use them.
    pub(crate) fn new(device: &Device, elements: &[f32]) -> Result<Self, Error> {
        let Some(gpu) = Gpu::new(device) else {
            return Ok(Self::Simulated(device.upload(elements)?));
        };
        let slice = match elements {
            [] => gpu.stream.alloc_zeros(1),
            elements => gpu.stream.clone_htod(elements),
        };
        Ok(Self::Gpu(slice.map_err(failed("copying an operand to the GPU"))?))
    }

    /// Views the first elements as packed, row-major matrices.
    pub(crate) fn view(
        &self,
        batch: Option<usize>,
        rows: usize,
        cols: usize,
    ) -> Result<MatrixRef<'_>, Error> {
        match (self, batch) {
            (Self::Simulated(buffer), None) => MatrixRef::new(buffer, rows, cols),
            (Self::Simulated(buffer), Some(n)) => MatrixRef::batch(buffer, n, rows, cols),
            (Self::Gpu(slice), None) => MatrixRef::new(slice, rows, cols),
            (Self::Gpu(slice), Some(n)) => MatrixRef::batch(slice, n, rows, cols),
        }
    }
}

impl<'h> Source<'h> {
    fn new(elements: &'h [f32], batch: Option<usize>, rows: usize, cols: usize) -> Self {
        Self { elements, batch, rows, cols, by_row: None, by_column: None }
    }

    /// Range of the elements of one GEMM's matrix.
    fn elements(&self, product: usize) -> Range<usize> {
        let each = self.rows * self.cols;
        product * each..(product + 1) * each
    }

    /// Elements in row-major or column-major order.
    fn stored(&self, by_column: bool) -> Cow<'h, [f32]> {
        match by_column {
            false => Cow::Borrowed(self.elements),
            true => {
                let each = self.elements.chunks_exact((self.rows * self.cols).max(1));
                let each = each.flat_map(|matrix| transposed(matrix, self.rows, self.cols));
                Cow::Owned(each.collect())
            }
        }
    }

    /// Number of lines, and number of elements in a line. Lines are rows, or columns if `by_column`
    /// is true.
    fn lines(&self, by_column: bool) -> (usize, usize) {
        if by_column { (self.cols, self.rows) } else { (self.rows, self.cols) }
    }

    /// Uploads a packed copy in one layout, unless it is on the device already.
    fn bring(&mut self, device: &Device, by_column: bool) -> Result<(), Error> {
        if self.form(by_column).is_none() {
            let array = Some(DeviceArray::new(device, &self.stored(by_column))?);
            if by_column { self.by_column = array } else { self.by_row = array }
        }
        Ok(())
    }

    fn form(&self, by_column: bool) -> Option<&DeviceArray> {
        if by_column { self.by_column.as_ref() } else { self.by_row.as_ref() }
    }

    /// Packed copy in a layout, which [`bring`](Self::bring) has uploaded.
    fn brought(&self, by_column: bool) -> Result<&DeviceArray, Error> {
        let none = || Error::Internal("an operand is missing in the requested layout".to_owned());
        self.form(by_column).ok_or_else(none)
    }

    /// Prepares the matrix for a kernel, packed or with padded rows.
    fn placed(
        &self,
        device: &Device,
        by_column: bool,
        pitched: bool,
    ) -> Result<KernelMatrix<'_>, Error> {
        let (lines, line) = self.lines(by_column);
        if pitched {
            let stored = self.stored(by_column);
            let matrices = Matrices::new(device, &stored, self.batch, lines, line, true)?;
            return Ok(KernelMatrix::Pitched(matrices, by_column));
        }
        let view = self.brought(by_column)?.view(self.batch, lines, line)?;
        Ok(KernelMatrix::Packed(turned(view, by_column)))
    }
}

/// A, B and C in the layouts that one kernel requires.
pub struct Launchable<'o> {
    a: KernelMatrix<'o>,
    b: KernelMatrix<'o>,
    c: Matrices,
    beside: EpilogueArgs,
}

/// Matrix that a kernel reads.
enum KernelMatrix<'o> {
    /// Lines without padding between them.
    Packed(MatrixRef<'o>),
    /// Lines padded to 16 bytes. Lines are columns if the flag is true.
    Pitched(Matrices, bool),
}

impl KernelMatrix<'_> {
    fn view(&self) -> Result<MatrixRef<'_>, Error> {
        match self {
            // Two transpositions return the same view with a shorter lifetime.
            Self::Packed(view) => Ok(view.t().t()),
            Self::Pitched(lines, by_column) => Ok(turned(lines.view()?, *by_column)),
        }
    }
}

impl<'h> Operands<'h> {
    /// Uploads the matrices and computes the reference in `f64`.
    ///
    /// # Errors
    /// Returns the errors of uploads and of the reference.
    pub fn new(
        device: &Device,
        a: &'h [f32],
        b: &'h [f32],
        products: Products,
    ) -> Result<Self, Error> {
        let Size { m, n, k } = products.size;
        let mut left = Source::new(a, products.batch, m, k);
        let mut right = Source::new(b, products.batch, k, n);
        left.bring(device, false)?;
        right.bring(device, false)?;
        let blas_c = match Gpu::new(device) {
            None => None,
            Some(gpu) => {
                let c = gpu.stream.alloc_zeros((products.count() * m * n).max(1));
                Some(c.map_err(failed("allocating a result"))?)
            }
        };
        let checked = products.checked();
        let truth = truth(device, &left, &right, products.size, &checked)?;
        Ok(Self { products, a: left, b: right, truth, checked, blas_c })
    }

    pub fn products(&self) -> Products {
        self.products
    }

    /// Compares the results of an arithmetic with the reference, for the GEMMs of
    /// [`Products::checked`].
    pub fn judge(&self, c: &[f32], arith: Arith) -> Verdict {
        if self.checked.len() == self.products.count() {
            return self.truth.judge_in(c, arith);
        }
        let each = self.products.size.m * self.products.size.n;
        let of = |product: &usize| c.get(product * each..(product + 1) * each).unwrap_or_default();
        let some: Vec<&[f32]> = self.checked.iter().map(of).collect();
        self.truth.judge_in(&some.concat(), arith)
    }

    /// Uploads the operands in the layout of a spec.
    ///
    /// # Errors
    /// Returns the errors of uploads.
    pub fn bring(&mut self, device: &Device, spec: &SgemmSpec) -> Result<(), Error> {
        self.a.bring(device, spec.layout.transposes_a())?;
        self.b.bring(device, spec.layout.transposes_b())
    }

    /// Prepares the operands for a kernel. [`bring`](Self::bring) must have been called for its
    /// spec.
    ///
    /// # Errors
    /// Returns the errors of allocations.
    pub fn launchable(&self, device: &Device, spec: &SgemmSpec) -> Result<Launchable<'_>, Error> {
        let Products { size: Size { m, n, .. }, batch } = self.products;
        let a = self.a.placed(device, spec.layout.transposes_a(), spec.pitched)?;
        let b = self.b.placed(device, spec.layout.transposes_b(), spec.pitched)?;
        let beside = EpilogueArgs::new(device, spec, self.products)?;
        let c = Matrices::new(device, &beside.c_before(), batch, m, n, spec.pitched)?;
        Ok(Launchable { a, b, c, beside })
    }

    /// Returns A and B for cuBLAS, or `None` on the simulator. [`bring`](Self::bring) must have
    /// been called for the layout.
    pub fn slices(&self, layout: GemmLayout) -> Option<(&CudaSlice<f32>, &CudaSlice<f32>)> {
        let a = self.a.form(layout.transposes_a());
        match (a, self.b.form(layout.transposes_b())) {
            (Some(DeviceArray::Gpu(a)), Some(DeviceArray::Gpu(b))) => Some((a, b)),
            _ => None,
        }
    }

    /// Returns the cuBLAS GEMM that corresponds to a spec, with the same layout and scaling, or
    /// `None` on the simulator.
    pub fn product<'o>(
        &'o self,
        spec: &SgemmSpec,
        c: Option<&'o mut CudaSlice<f32>>,
    ) -> Option<Product<'o>> {
        let layout = spec.layout;
        let (a, b) = self.slices(layout)?;
        let factors = if spec.scaled { FACTORS } else { [1.0, 0.0] };
        Some(Product { a, b, c: c?, layout, factors, products: self.products })
    }

    /// Launches a kernel and checks its result.
    ///
    /// Before the launch, the result is filled with NaN, unless the kernel reads it. Accumulators
    /// are compared with `f64`. Stored values must match bit for bit.
    ///
    /// # Errors
    /// Returns the errors of the launch and of copies.
    pub fn check(
        &self,
        launchable: &mut Launchable<'_>,
        kernel: &Sgemm<ByName>,
        device: &Device,
    ) -> Result<(Verdict, LaunchReport), Error> {
        launchable.fill(device)?;
        let launched = launchable.launch(kernel, device)?;
        let c = device.download(&launchable.c.view()?)?;
        let arith = launchable.beside.spec().arith;
        let Some(plain) = plain(launchable.beside.spec()) else {
            return Ok((self.judge(&c, arith), launched));
        };
        let mut sums = self.launchable(device, &plain)?;
        sums.fill(device)?;
        sums.launch(&Sgemm::new(plain)?, device)?;
        let sums = device.download(&sums.c.view()?)?;
        Ok((launchable.beside.judge(&sums, &c, self.judge(&sums, arith))?, launched))
    }
}

/// Computes the checked GEMMs in `f64`. Their results are contiguous.
fn truth(
    device: &Device,
    a: &Source<'_>,
    b: &Source<'_>,
    size: Size,
    checked: &[usize],
) -> Result<Truth, Error> {
    let reference = Gpu::new(device).map(GpuReference::new);
    let mut all = Truth { k: size.k, values: Vec::new(), magnitudes: Vec::new() };
    for &product in checked {
        let (of_a, of_b) = (a.elements(product), b.elements(product));
        let (host_a, host_b) = (&a.elements[of_a.clone()], &b.elements[of_b.clone()]);
        let one = match (&reference, a.form(false), b.form(false)) {
            (Some(reference), Some(DeviceArray::Gpu(a)), Some(DeviceArray::Gpu(b))) => {
                let (a, b): (CudaView<'_, f32>, CudaView<'_, f32>) = (a.slice(of_a), b.slice(of_b));
                reference.product(&a, host_a, &b, host_b, size)?
            }
            _ => Truth::on_host(host_a, host_b, size),
        };
        all.values.extend(one.values);
        all.magnitudes.extend(one.magnitudes);
    }
    Ok(all)
}

impl Launchable<'_> {
    pub fn beside(&self) -> &EpilogueArgs {
        &self.beside
    }

    /// Fills the result with NaN, or with the values that the kernel reads. Elements that the
    /// kernel does not write stay NaN.
    fn fill(&mut self, device: &Device) -> Result<(), Error> {
        self.c.fill(device, &self.beside.c_before())
    }

    /// Launches a kernel on the operands.
    ///
    /// # Errors
    /// Returns the errors of the launch.
    pub fn launch(
        &mut self,
        kernel: &Sgemm<ByName>,
        device: &Device,
    ) -> Result<LaunchReport, Error> {
        let (a, b, mut c) = (self.a.view()?, self.b.view()?, self.c.view_mut()?);
        self.beside.launch(kernel, device, &a, &b, &mut c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRODUCTS: Products = Products { size: Size::new(5, 6, 7), batch: Some(12) };

    /// Passes random operands and the stored results of a spec to a test.
    fn multiplied(
        spec: &SgemmSpec,
        test: impl FnOnce(&Device, &mut Operands<'_>, &EpilogueArgs, Vec<f32>),
    ) {
        let device = Device::simulator();
        let [a, b, _] = PRODUCTS.elements().expect("few");
        let (a, b) = (crate::data::uniform(1, a, -1.0, 1.0), crate::data::uniform(2, b, -1.0, 1.0));
        let mut operands = Operands::new(&device, &a, &b, PRODUCTS).expect("room");
        operands.bring(&device, spec).expect("room");
        let mut launchable = operands.launchable(&device, spec).expect("room");
        let kernel = Sgemm::new(spec.clone()).expect("a sound spec");
        let (verdict, _) = operands.check(&mut launchable, &kernel, &device).expect("it runs");
        assert!(verdict.ok, "`{spec}`: {verdict:?}");
        let c = device.download(&launchable.c.view().expect("its own")).expect("its own");
        let beside = EpilogueArgs::new(&device, spec, PRODUCTS).expect("room");
        drop(launchable);
        test(&device, &mut operands, &beside, c);
    }

    #[test]
    fn of_a_sample_each_product_is_compared_with_its_own() {
        let spec = "layout: tt, tile: 8x8x8, thread: 2x2, pitched, batch: strided";
        multiplied(&spec.parse().expect("sound"), |_, operands, _, c| {
            let all = operands.truth.clone();
            operands.checked = vec![0, 7, 11];
            let some = |values: &[f64]| {
                let each = values.chunks(30).enumerate();
                let some = each.filter(|(product, _)| [0, 7, 11].contains(product));
                some.flat_map(|(_, values)| values.to_vec()).collect()
            };
            let (values, magnitudes) = (some(&all.values), some(&all.magnitudes));
            operands.truth = Truth { k: all.k, values, magnitudes };
            assert!(operands.judge(&c, Arith::F32).ok);
            assert!(!operands.judge(&c[..c.len() - 1], Arith::F32).ok, "a product is not there");
            for (product, seen) in [(0, true), (1, false), (7, true), (11, true)] {
                let mut c = c.clone();
                c[product * 30 + 29] += 0.1;
                assert_eq!(operands.judge(&c, Arith::F32).ok, !seen, "{product}");
            }
        });
    }

    #[test]
    fn what_is_stored_beside_a_product_is_judged_by_its_own_matrices() {
        let spec = "tile: 8x8x8, thread: 2x2, batch: strided, scaled, \
                    epilogue: |acc, bias[n], residual[m, n], c[m, n]| acc + bias - residual + c";
        multiplied(&spec.parse().expect("sound"), |device, operands, beside, c| {
            let spec = plain(beside.spec()).expect("an epilogue");
            let mut sums = operands.launchable(device, &spec).expect("room");
            sums.launch(&Sgemm::new(spec).expect("sound"), device).expect("it runs");
            let sums = device.download(&sums.c.view().expect("its own")).expect("its own");
            let judge = |c: &[f32]| {
                beside
                    .judge(&sums, c, operands.judge(&sums, Arith::F32))
                    .expect("the simulator runs")
                    .ok
            };
            assert!(judge(&c));
            for product in PRODUCTS.spread(8) {
                let mut wrong = c.clone();
                wrong[product * 30 + 17] = f32::NAN;
                assert!(!judge(&wrong), "{product}");
            }
            // The results of two GEMMs of the batch are swapped.
            assert!(!judge(&[&c[30..], &c[..30]].concat()));
        });
    }
}
