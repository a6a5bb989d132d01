//! Operands of a GEMM besides A and B, on a device.

use crate::data;
use crate::products::{Matrices, Products, turned};
use gemm_dsl::plan::SgemmPlan;
use gemm_dsl::spec::{Along, Batch, EpilogueArg, SgemmSpec};
use gemm_oracle::beside::Beside as OnHost;
use gemm_oracle::epilogue::stored;
use gemm_oracle::product::{Size, Verdict};
use gemm_runtime::bounds::{AsMatrixMutOf, AsMatrixOf};
use gemm_runtime::compile::Resources;
use gemm_runtime::{
    Buffer, ByName, Device, Error, LaunchReport, MatrixList, MatrixListMut, MatrixRef, Sgemm,
};

/// Alpha and beta of a scaled GEMM: C = alpha·A·B + beta·C.
pub const FACTORS: [f32; 2] = [1.25, 0.5];

/// First seed of the operands. Each operand has its own seed.
const SEED: u64 = 1 << 40;

/// Limits of the check: elements of C whose epilogue is recomputed, and checked GEMMs of a batch.
const CHECKED: usize = 1 << 16;
const CHECKED_PRODUCTS: usize = 8;

/// Epilogue operands of a spec, on the host and on a device. Each GEMM of a batch has its own
/// matrices.
pub struct EpilogueArgs {
    spec: SgemmSpec,
    products: Products,
    /// Operands of all GEMMs. The matrices of a batch are contiguous.
    on_host: OnHost,
    arrays: Vec<EpilogueArray>,
    /// Matrices for the values after the first.
    outputs: Vec<(EpilogueArg, Matrices)>,
    /// Vectors for results of rows.
    of_rows: Vec<(EpilogueArg, Buffer)>,
}

enum EpilogueArray {
    Number(f32),
    Vector(Buffer),
    Matrix(Matrices),
}

/// Operand in the form that a launch requires.
enum ArgView<'a> {
    Number(f32),
    Vector(&'a Buffer),
    Matrix(MatrixRef<'a>),
}

impl EpilogueArray {
    fn given(&self) -> Result<ArgView<'_>, Error> {
        Ok(match self {
            Self::Number(number) => ArgView::Number(*number),
            Self::Vector(vector) => ArgView::Vector(vector),
            Self::Matrix(matrices) => ArgView::Matrix(matrices.view()?),
        })
    }
}

impl EpilogueArgs {
    /// Draws random operands and uploads them.
    ///
    /// # Errors
    /// Returns the errors of uploads.
    pub fn new(device: &Device, spec: &SgemmSpec, products: Products) -> Result<Self, Error> {
        let Products { size, batch } = products;
        let (mut seed, mut factors) = (SEED, FACTORS.into_iter().cycle());
        let mut values = |len| {
            seed += 1;
            data::uniform(seed, len, -1.0, 1.0)
        };
        let factor = || factors.next().unwrap_or(1.0);
        let mut on_host = OnHost::new(spec, size, factor, &mut values);
        let count = products.count();
        let of_each = on_host
            .operands
            .iter_mut()
            .filter(|(operand, _)| operand.along == Along::Mn || operand.along.is_of_batch());
        for of_one in of_each.map(|(_, values)| values).chain(&mut on_host.c) {
            of_one.extend(values((count - 1) * of_one.len()));
        }
        let array = |(operand, values): &(EpilogueArg, Vec<f32>)| {
            Ok::<_, Error>(match operand.along {
                Along::Nothing => EpilogueArray::Number(values[0]),
                Along::N | Along::M | Along::Batch => EpilogueArray::Vector(device.upload(values)?),
                Along::BatchN | Along::BatchM => {
                    let line = values.len() / count;
                    EpilogueArray::Matrix(Matrices::new(device, values, None, count, line, false)?)
                }
                Along::Mn | Along::Pairs => EpilogueArray::Matrix(Matrices::new(
                    device,
                    values,
                    batch,
                    size.m,
                    size.n,
                    spec.pitched,
                )?),
            })
        };
        let arrays = on_host.operands.iter().map(array).collect::<Result<Vec<_>, _>>()?;
        let unwritten = vec![f32::NAN; count * size.m * size.n];
        let (of_rows, outputs): (Vec<_>, Vec<_>) = spec
            .operands()
            .into_iter()
            .filter(EpilogueArg::is_output)
            .partition(EpilogueArg::is_row_result);
        let of_rows = of_rows.into_iter().map(|output| {
            let room = device.upload(&vec![f32::NAN; count * size.m])?;
            Ok::<_, Error>((output, room))
        });
        let of_rows = of_rows.collect::<Result<Vec<_>, _>>()?;
        let outputs = outputs.into_iter().map(|output| {
            let n = if output.along == Along::Pairs { size.n / 2 } else { size.n };
            let unwritten = &unwritten[..count * size.m * n];
            let room = Matrices::new(device, unwritten, batch, size.m, n, spec.pitched)?;
            Ok::<_, Error>((output, room))
        });
        let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
        Ok(Self { spec: spec.clone(), products, on_host, arrays, outputs, of_rows })
    }

    pub fn spec(&self) -> &SgemmSpec {
        &self.spec
    }

    /// Returns the operands of all GEMMs, on the host.
    pub fn on_host(&self) -> &OnHost {
        &self.on_host
    }

    /// Returns the contents of C before a launch. All elements are NaN if the kernel does not read
    /// C.
    pub fn c_before(&self) -> Vec<f32> {
        let Size { m, n, .. } = self.products.size;
        let unread = || vec![f32::NAN; self.products.count() * m * n];
        self.on_host.c.clone().unwrap_or_else(unread)
    }

    /// Launches a kernel of the spec.
    ///
    /// # Errors
    /// Returns the errors of the launch.
    pub fn launch(
        &mut self,
        kernel: &Sgemm<ByName>,
        device: &Device,
        a: &impl AsMatrixOf<f32>,
        b: &impl AsMatrixOf<f32>,
        c: &mut impl AsMatrixMutOf<f32>,
    ) -> Result<LaunchReport, Error> {
        let given: Result<Vec<ArgView<'_>>, Error> =
            self.arrays.iter().map(EpilogueArray::given).collect();
        let given = given?;
        let mut outputs = Vec::new();
        for (output, matrices) in &mut self.outputs {
            outputs.push((&*output, matrices.view_mut()?));
        }
        let mut call = kernel.call(device);
        for ((operand, _), given) in self.on_host.operands.iter().zip(&given) {
            call = match given {
                ArgView::Number(number) => call.operand(&operand.name, *number),
                ArgView::Vector(vector) => call.operand(&operand.name, *vector),
                ArgView::Matrix(view) => call.operand(&operand.name, view),
            };
        }
        for (output, view) in &mut outputs {
            call = call.operand(&output.name, view);
        }
        for (output, vector) in &mut self.of_rows {
            call = call.operand(&output.name, vector);
        }
        call.launch(a, b, c)
    }

    /// Adds errors of the stored values to the verdict on the accumulators. Stored values must
    /// match bit for bit.
    ///
    /// # Errors
    /// Returns the errors of the simulator, which recomputes the epilogue.
    pub fn judge(&self, sums: &[f32], c: &[f32], verdict: Verdict) -> Result<Verdict, Error> {
        let size = self.products.size;
        let (each, products) = (size.m * size.n, self.products.spread(CHECKED_PRODUCTS));
        let step = (products.len() * each).div_ceil(CHECKED).max(1);
        for product in products {
            let first = product * each;
            let sums = sums.get(first..first + each).unwrap_or_default();
            let some: Vec<(usize, f32)> = sums.iter().copied().enumerate().step_by(step).collect();
            let expected = stored(&self.spec, &some, size, &self.item(product));
            let expected = expected.map_err(|error| Error::Internal(error.to_string()))?;
            let found = |index: usize| c.get(first + index).copied();
            let differs = |((index, _), expected): &(&(usize, f32), &f32)| {
                found(*index).map(f32::to_bits) != Some(expected.to_bits())
            };
            if let Some((&(index, _), &expected)) = some.iter().zip(&expected).find(differs) {
                return Ok(Verdict {
                    index: first + index,
                    result: found(index).unwrap_or(f32::NAN).into(),
                    reference: expected.into(),
                    ok: false,
                    ..verdict
                });
            }
        }
        Ok(verdict)
    }

    /// Epilogue operands of one GEMM of the batch.
    fn item(&self, product: usize) -> OnHost {
        let each = self.products.size.m * self.products.size.n;
        let one = |matrices: &[f32]| matrices[product * each..(product + 1) * each].to_vec();
        let operands = self.on_host.operands.iter().map(|(operand, values)| {
            let values = if operand.along == Along::Mn { one(values) } else { values.clone() };
            (operand.clone(), values)
        });
        OnHost { operands: operands.collect(), c: self.on_host.c.as_deref().map(one) }
    }
}

/// Returns the smallest batch that a plan accepts: one GEMM, or all GEMMs of a block if blocks must
/// be complete.
pub fn few(plan: &SgemmPlan, size: Size) -> Products {
    let products = plan.products() as usize;
    let batch = Some(products).filter(|of| *of > 1 && !plan.guarded());
    Products { size, batch }
}

/// Launches a spec once on A and B in the layout of the spec, with the [smallest](few) number of
/// GEMMs.
///
/// # Errors
/// Returns the errors of uploads and of the launch.
pub fn launch_once(
    device: &Device,
    spec: &SgemmSpec,
    a: &[f32],
    b: &[f32],
    size: Size,
) -> Result<LaunchReport, Error> {
    launch_products(device, spec, a, b, few(&spec.plan()?, size))
}

/// Launches a spec once on several GEMMs of the same A and B. A strided batch gets copies of the
/// matrices, a pointer batch gets lists of pointers.
///
/// # Errors
/// Returns the errors of uploads and of the launch.
pub fn launch_products(
    device: &Device,
    spec: &SgemmSpec,
    a: &[f32],
    b: &[f32],
    products: Products,
) -> Result<LaunchReport, Error> {
    let (size @ Size { m, n, k }, count) = (products.size, products.count());
    let by_column = [spec.layout.transposes_a(), spec.layout.transposes_b()];
    let lines = |rows, cols, by_column| if by_column { (cols, rows) } else { (rows, cols) };
    let is_list = spec.batch == Some(Batch::Pointers);
    let batch = products.batch.filter(|_| !is_list);
    let placed = |elements: &[f32], (rows, cols)| {
        Matrices::new(device, elements, batch, rows, cols, spec.pitched)
    };
    let of_all = |elements: &[f32]| elements.repeat(batch.unwrap_or(1));
    let a = placed(&of_all(a), lines(m, k, by_column[0]))?;
    let b = placed(&of_all(b), lines(k, n, by_column[1]))?;
    let (a, b) = (turned(a.view()?, by_column[0]), turned(b.view()?, by_column[1]));
    let kernel = Sgemm::new(spec.clone())?;
    let mut beside = EpilogueArgs::new(device, spec, Products { size, batch })?;
    if !is_list {
        let mut c = placed(&beside.c_before(), (m, n))?;
        return beside.launch(&kernel, device, &a, &b, &mut c.view_mut()?);
    }
    let each = (0..count).map(|_| placed(&beside.c_before(), (m, n)));
    let mut each = each.collect::<Result<Vec<Matrices>, _>>()?;
    let views = each.iter_mut().map(Matrices::view_mut);
    let mut views = views.collect::<Result<Vec<_>, _>>()?;
    let mut c = MatrixListMut::new(device, &mut views)?;
    let list = |matrix| MatrixList::new(device, std::iter::repeat_n(matrix, count));
    beside.launch(&kernel, device, &list(&a)?, &list(&b)?, &mut c)
}

/// Returns the extents of a small GEMM that selects the same kernel variant as the given size.
///
/// Extents of 0 and 1, and the 16-byte alignment of rows, are preserved.
///
/// # Errors
/// Returns the errors of the plan.
pub fn as_small(spec: &SgemmSpec, of: Size) -> Result<Size, Error> {
    let (rows, cols) = spec.plan()?.block_tile();
    let depth = spec.tile.map_or(1, |tile| tile.k);
    let small = |extent: usize, tile: u32| match extent {
        0 | 1 => extent,
        _ => (tile as usize).next_multiple_of(4) + usize::from(!extent.is_multiple_of(4)),
    };
    Ok(Size { m: small(of.m, rows), n: small(of.n, cols), k: small(of.k, depth) })
}

/// Compiles, loads and launches a spec on a small GEMM. Returns the resources of the compiled
/// kernel.
///
/// # Errors
/// Returns the errors of uploads and of the launch.
pub fn first_launch(device: &Device, spec: &SgemmSpec, size: Size) -> Result<Resources, Error> {
    let Size { m, n, k } = size;
    let (a, b) = (vec![0.0; m * k], vec![0.0; k * n]);
    let launched = launch_once(device, spec, &a, &b, size)?;
    let missing = || Error::Internal("loaded machine code has no resources".to_owned());
    launched.resources().ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the variant that a launch on zeros selects.
    fn variant(spec: &SgemmSpec, size: Size) -> gemm_runtime::Variant {
        let device = Device::simulator();
        let (a, b) = (vec![0.0; size.m * size.k], vec![0.0; size.k * size.n]);
        launch_once(&device, spec, &a, &b, size).expect("it runs").variant()
    }

    #[test]
    fn a_small_product_takes_the_kernel_of_a_large_one() {
        let staged = "tile: 16x16x8, thread: 4x4, float4, transpose, stages: 2";
        for layout in ["nn", "nt", "tn", "tt"] {
            for line in ["tile: 16x16x8, thread: 4x4, float4", staged] {
                let line = match layout {
                    "tn" => line.replace("transpose, ", ""),
                    _ => line.to_owned(),
                };
                let spec: SgemmSpec = format!("{line}, layout: {layout}").parse().expect("sound");
                for of in [(64, 64, 64), (1, 64, 63), (62, 1, 64), (63, 64, 64), (64, 63, 1)] {
                    let of = Size::new(of.0, of.1, of.2);
                    let small = as_small(&spec, of).expect("a plan");
                    assert!(small.m <= 17 && small.n <= 17 && small.k <= 9, "{small}");
                    assert_eq!(variant(&spec, small), variant(&spec, of), "{spec} at {of}");
                }
            }
        }
    }
}
