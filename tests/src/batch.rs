//! Batches of products: each has the bits that the kernel without `batch` computes, wherever its matrices
//! lie, and nothing beside them is written.

use crate::operands::launch;
use crate::{
    bits,
    random::{self, Random},
};
use gemm_dsl::spec::{Along, Batch, SgemmOperand, SgemmSpec};
use gemm_reference::beside::Beside;
use gemm_reference::product::Size;
use gemm_runtime::{Buffer, ByName, Device, MatrixMut, MatrixRef, Sgemm};

/// The bits of a NaN that no arithmetic produces.
const POISON: u32 = 0x7fc0_dead;

/// Where the matrices of an operand lie: elements between each and the next, and after each of its lines;
/// or one for all products.
#[derive(Clone, Copy, Debug)]
pub struct Lies {
    /// Whether all products have the same matrix; never of C.
    pub shared: bool,
    /// Elements between one and the next.
    pub between: usize,
    /// Elements after each line; `pitched` kernels only.
    pub padding: usize,
}

/// Matrices of so many lines among poison.
struct Many {
    buffer: Buffer,
    values: Vec<Vec<f32>>,
    lies: Lies,
    lines: usize,
    line: usize,
    by_column: bool,
}

impl Many {
    fn new(
        device: &Device,
        values: Vec<Vec<f32>>,
        lies: Lies,
        (lines, line): (usize, usize),
        by_column: bool,
    ) -> Self {
        let mut all = Vec::new();
        let (pitch, distance) = (line + lies.padding, Self::distance(lies, lines, line));
        for (n, values) in values.iter().enumerate() {
            all.resize(all.len().max(n * distance + lines * pitch + 4), f32::from_bits(POISON));
            for row in 0..lines {
                all[n * distance + row * pitch..][..line]
                    .copy_from_slice(&values[row * line..][..line]);
            }
        }
        let buffer = device.upload(&all).expect("room");
        Self { buffer, values, lies, lines, line, by_column }
    }

    fn distance(lies: Lies, lines: usize, line: usize) -> usize {
        lines * (line + lies.padding) + lies.between
    }

    fn view(&self) -> MatrixRef<'_> {
        let Self { lies, lines, line, .. } = *self;
        let (distance, pitch) = (Self::distance(lies, lines, line), line + lies.padding);
        let view = match lies.shared {
            true => MatrixRef::pitched(&self.buffer, lines, line, pitch),
            false => MatrixRef::batch_apart(
                &self.buffer,
                (self.values.len(), distance),
                lines,
                line,
                pitch,
            ),
        };
        let view = view.expect("it holds them");
        if self.by_column { view.t() } else { view }
    }

    /// The lines of the matrix of a product, one after the other.
    fn of(&self, product: usize) -> &[f32] {
        &self.values[if self.lies.shared { 0 } else { product }]
    }

    /// Such a matrix that is there alone.
    fn alone<'b>(&self, lines: &'b Buffer) -> MatrixRef<'b> {
        let view = MatrixRef::new(lines, self.lines, self.line).expect("as many");
        if self.by_column { view.t() } else { view }
    }
}

/// Launches a spec on a batch, and without `batch` each product by itself.
///
/// # Errors
/// The first element of C that differs, or what a launch failed with.
pub fn run(
    device: &Device,
    spec: &SgemmSpec,
    size: Size,
    count: usize,
    lies: [Lies; 4],
    seed: u64,
) -> Result<(), String> {
    let Size { m, n, k } = size;
    let batched = spec.clone().batch(Batch::Strided);
    let mut seeds = Random::new(seed);
    let mut many = |lies: Lies, lines, line, by_column| {
        let values = 0..if lies.shared { 1 } else { count };
        let values = values.map(|_| random::values(seeds.bits(), lines * line)).collect();
        Many::new(device, values, lies, (lines, line), by_column)
    };
    let layout = spec.layout;
    let a = match layout.transposes_a() {
        true => many(lies[0], k, m, true),
        false => many(lies[0], m, k, false),
    };
    let b = match layout.transposes_b() {
        true => many(lies[1], n, k, true),
        false => many(lies[1], k, n, false),
    };
    let lies_c = Lies { shared: false, ..lies[2] };
    let c_before = many(lies_c, m, n, false);
    let operands = spec.operands();
    let residual = |operand: &SgemmOperand| operand.along == Along::Mn;
    let residuals: Vec<Option<Many>> =
        operands.iter().map(|o| residual(o).then(|| many(lies[3], m, n, false))).collect();
    let beside = Beside::new(spec, size, || 0.5, |len| random::values(seeds.bits(), len));
    let vectors: Vec<Buffer> =
        beside.operands.iter().map(|(_, values)| device.upload(values).expect("room")).collect();

    let kernel = Sgemm::<ByName>::new(batched).map_err(|error| error.to_string())?;
    let views: Vec<_> = residuals.iter().map(|many| many.as_ref().map(Many::view)).collect();
    let before = device.download(&c_before.buffer).expect("ours");
    let mut c = device.upload(&before).expect("room");
    let (distance, pitch) = (Many::distance(lies_c, m, n), n + lies_c.padding);
    let outcome = {
        let view = MatrixMut::batch_apart(&mut c, (count, distance), m, n, pitch);
        let (both, mut view) = ((&a.view(), &b.view()), view.expect("it holds them"));
        launch((&kernel, device), &beside, (&vectors[..], &views[..]), both, &mut view)
    };
    outcome.map_err(|error| error.to_string())?;
    let after = device.download(&c).expect("ours");

    let kernel = Sgemm::<ByName>::new(spec.clone()).map_err(|error| error.to_string())?;
    let mut expected = before;
    for product in 0..count {
        let upload = |values: &[f32]| device.upload(values).expect("room");
        let (one_a, one_b) = (upload(a.of(product)), upload(b.of(product)));
        let mut one_c = upload(&c_before.values[product]);
        let packed =
            residuals.iter().map(|many| many.as_ref().map(|many| upload(many.of(product))));
        let packed: Vec<Option<Buffer>> = packed.collect();
        let alone = packed.iter().zip(&residuals);
        let alone = alone.map(|(buffer, many)| Some(many.as_ref()?.alone(buffer.as_ref()?)));
        let views: Vec<_> = alone.collect();
        let both = (&a.alone(&one_a), &b.alone(&one_b));
        let mut view = MatrixMut::new(&mut one_c, m, n).expect("as many");
        let launched =
            launch((&kernel, device), &beside, (&vectors[..], &views[..]), both, &mut view);
        launched.map_err(|error| format!("the single product: {error}"))?;
        for (row, values) in device.download(&one_c).expect("ours").chunks(n.max(1)).enumerate() {
            expected[product * distance + row * pitch..][..n].copy_from_slice(values);
        }
    }
    match bits(&after).iter().zip(bits(&expected)).position(|(found, expected)| *found != expected)
    {
        None => Ok(()),
        Some(at) => Err(format!("element {at} is {}, not {}", after[at], expected[at])),
    }
}
