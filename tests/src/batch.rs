//! Batches of GEMMs. Each GEMM has the bits of the kernel without `batch`, in any layout, and only
//! the results are written.

use crate::bits;
use crate::operands::launch;
use gemm_dsl::spec::{Along, Batch, Bounds, EpilogueArg, SgemmSpec, SplitK, newer_word};
use gemm_oracle::beside::Beside;
use gemm_oracle::product::Size;
use gemm_oracle::random;
use gemm_oracle::random::Random;
use gemm_runtime::{
    Buffer, BufferView, ByName, Device, MatrixList, MatrixListMut, MatrixMut, MatrixRef, Sgemm,
};

/// Bits of a NaN that no arithmetic produces.
const POISON: u32 = 0x7fc0_dead;

/// Placement of an operand's matrices: padding between matrices and after each line, or one matrix
/// for all GEMMs.
#[derive(Clone, Copy, Debug)]
pub struct Lies {
    /// True if all GEMMs share one matrix; never for C.
    pub shared: bool,
    /// Elements between two matrices. In a list of C, each matrix has its own allocation, and this
    /// is the number of elements before it.
    pub between: usize,
    /// Elements after each line. Only `pitched` kernels support padding.
    pub padding: usize,
    /// True if matrices along the last of several axes lie side by side, in the same lines. Only
    /// `pitched` kernels support it.
    pub beside: bool,
    /// True if the first axis varies fastest in memory.
    pub turned: bool,
    /// One of several axes along which matrices repeat; never for C.
    pub repeats: Option<usize>,
}

/// Axes of a batch, with the number of matrices along each.
pub type Axes<'a> = &'a [usize];

/// Matrices of equal extents, surrounded by poison.
struct Many {
    buffer: Buffer,
    /// Elements of the buffer.
    memory: Vec<f32>,
    lies: Lies,
    /// Extent and stride of each axis; empty for a single matrix.
    axes: Vec<(usize, usize)>,
    /// Start of each matrix.
    starts: Vec<usize>,
    lines: usize,
    line: usize,
    pitch: usize,
    by_column: bool,
}

impl Many {
    fn new(
        device: &Device,
        values: Vec<Vec<f32>>,
        lies: Lies,
        (lines, line): (usize, usize),
        by_column: bool,
        axes: Axes<'_>,
    ) -> Self {
        let axes = if lies.shared { &[][..] } else { axes };
        let (pitch, axes) = placed(lies, (lines, line), axes);
        let starts = starts(&axes);
        let mut memory = Vec::new();
        for (start, values) in starts.iter().zip(&values) {
            let end = start + lines * pitch + 4;
            memory.resize(memory.len().max(end), f32::from_bits(POISON));
            for row in 0..lines {
                memory[start + row * pitch..][..line]
                    .copy_from_slice(&values[row * line..][..line]);
            }
        }
        let buffer = device.upload(&memory).expect("room");
        Self { buffer, memory, lies, axes, starts, lines, line, pitch, by_column }
    }

    fn view(&self) -> MatrixRef<'_> {
        let Self { lines, line, pitch, .. } = *self;
        let view = match self.axes[..] {
            [] => MatrixRef::pitched(&self.buffer, lines, line, pitch),
            [apart] => MatrixRef::batch_apart(&self.buffer, apart, lines, line, pitch),
            [one, two] => MatrixRef::batch_axes(&self.buffer, [one, two], lines, line, pitch),
            [one, two, three, ..] => {
                MatrixRef::batch_axes(&self.buffer, [one, two, three], lines, line, pitch)
            }
        };
        let view = view.expect("it holds them");
        if self.by_column { view.t() } else { view }
    }

    /// View for writing of such matrices in another buffer.
    fn view_mut<'b>(&self, buffer: &'b mut Buffer) -> MatrixMut<'b> {
        let Self { lines, line, pitch, .. } = *self;
        let view = match self.axes[..] {
            [] => MatrixMut::pitched(buffer, lines, line, pitch),
            [apart] => MatrixMut::batch_apart(buffer, apart, lines, line, pitch),
            [one, two] => MatrixMut::batch_axes(buffer, [one, two], lines, line, pitch),
            [one, two, three, ..] => {
                MatrixMut::batch_axes(buffer, [one, two, three], lines, line, pitch)
            }
        };
        view.expect("it holds them")
    }

    /// Slices from the first element of a GEMM's matrix to the end of its last line, in reverse
    /// order of the GEMMs.
    fn slices(&self, count: usize) -> Vec<BufferView<'_>> {
        let Self { lies, lines, pitch, .. } = *self;
        let len = lines * pitch;
        let last = self.starts.len().saturating_sub(1);
        let slices = (0..count).map(|product| {
            let start = self.starts[if lies.shared { 0 } else { last - product }];
            self.buffer.slice(start..start + len).expect("it holds them")
        });
        slices.collect()
    }

    fn each<'b>(&self, slices: &'b [BufferView<'_>]) -> Vec<MatrixRef<'b>> {
        let Self { lines, line, pitch, .. } = *self;
        let view = |slice| {
            let view = MatrixRef::pitched(slice, lines, line, pitch);
            let view = view.expect("it holds it");
            if self.by_column { view.t() } else { view }
        };
        slices.iter().map(view).collect()
    }

    /// The same matrices in reverse order.
    fn reversed(mut self) -> Self {
        self.starts.reverse();
        self
    }

    /// Elements of a GEMM's matrix, line after line.
    fn of(&self, product: usize) -> Vec<f32> {
        let start = self.starts[if self.lies.shared { 0 } else { product }];
        let lines = (0..self.lines).map(|line| start + line * self.pitch);
        lines.flat_map(|start| &self.memory[start..][..self.line]).copied().collect()
    }

    /// Elements of all matrices.
    fn each_of(&self, count: usize) -> Vec<Vec<f32>> {
        (0..count).map(|product| self.of(product)).collect()
    }

    /// View of a single matrix in a separate array.
    fn alone<'b>(&self, lines: &'b Buffer) -> MatrixRef<'b> {
        let view = MatrixRef::new(lines, self.lines, self.line).expect("as many");
        if self.by_column { view.t() } else { view }
    }
}

/// Row stride of matrices, and the extent and stride of each axis of their batch.
fn placed(
    lies: Lies,
    (lines, line): (usize, usize),
    axes: Axes<'_>,
) -> (usize, Vec<(usize, usize)>) {
    let mut strides = vec![0; axes.len()];
    // The matrices of the last axis may lie side by side, as the heads of attention.
    let is_beside = lies.beside && axes.len() > 1;
    let (pitch, rest) = match axes.split_last() {
        Some((extent, rest)) if is_beside => {
            strides[rest.len()] = line;
            (extent * line + lies.padding, rest.len())
        }
        _ => (line + lies.padding, axes.len()),
    };
    let mut distance = lines * pitch + lies.between;
    let outward: Vec<usize> =
        if lies.turned { (0..rest).collect() } else { (0..rest).rev().collect() };
    for axis in outward {
        let is_repeated = axes.len() > 1 && lies.repeats == Some(axis);
        strides[axis] = if is_repeated { 0 } else { distance };
        distance = if is_repeated { distance } else { axes[axis] * distance + lies.between };
    }
    (pitch, axes.iter().copied().zip(strides).collect())
}

/// Starts of the matrices of a batch, the last axis fastest.
fn starts(axes: &[(usize, usize)]) -> Vec<usize> {
    let mut all = vec![0];
    for &(extent, stride) in axes {
        all = all.into_iter().flat_map(|at| (0..extent).map(move |n| at + n * stride)).collect();
    }
    all
}

/// Spec for a batch. The number of GEMMs per block is a drawn number from 1 to 5, or less if these
/// do not fit.
fn batched(spec: &SgemmSpec, batch: Batch, count: usize, draw: u64) -> SgemmSpec {
    let batched = spec.clone().batch(batch);
    let several =
        (1..=1 + (draw % 5) as u32).rev().map(|products| batched.clone().products(products));
    let takes = |spec: &SgemmSpec| {
        let whole = count.is_multiple_of(spec.products as usize);
        spec.plan().is_ok() && (spec.bounds == Bounds::Guarded || whole)
    };
    several.into_iter().find(takes).unwrap_or(batched)
}

/// C of each GEMM in its own allocation, surrounded by poison.
struct Apart {
    buffers: Vec<Buffer>,
    before: usize,
    size: (usize, usize),
    pitch: usize,
}

impl Apart {
    fn new(device: &Device, values: &[Vec<f32>], lies: Lies, (m, n): (usize, usize)) -> Self {
        let (before, pitch) = (lies.between, n + lies.padding);
        let buffers = values.iter().map(|values| {
            let mut all = vec![f32::from_bits(POISON); before + m * pitch + 4];
            for row in 0..m {
                all[before + row * pitch..][..n].copy_from_slice(&values[row * n..][..n]);
            }
            device.upload(&all).expect("room")
        });
        Self { buffers: buffers.collect(), before, size: (m, n), pitch }
    }

    fn download(&self, device: &Device) -> Vec<Vec<f32>> {
        let all = self.buffers.iter().map(|buffer| device.download(buffer).expect("ours"));
        all.collect()
    }

    /// Elements from the first to the last.
    fn span(&self) -> usize {
        let (m, n) = self.size;
        if m * n == 0 { 0 } else { (m - 1) * self.pitch + n }
    }
}

/// Memory after a launch: the contents of all allocations, and for each GEMM the allocation and
/// start of its C.
type Written = (Vec<Vec<f32>>, Vec<(usize, usize)>);

/// Spec in which the number of blocks per sum is fixed, so that sums do not depend on the batch
/// size.
fn of_its_own(spec: &SgemmSpec) -> SgemmSpec {
    let ranges = match spec.split_k {
        SplitK::Auto => SplitK::Partitions(3),
        given => given,
    };
    spec.clone().split_k(ranges).stream_k(false)
}

/// Operand with elements of its own for each GEMM of a batch, surrounded by poison.
struct Own {
    memory: Buffer,
    values: Vec<Vec<f32>>,
    /// Elements before the first one.
    before: usize,
    /// Length and distance of the rows of a matrix; `None` for a vector.
    lines: Option<(usize, usize)>,
}

impl Own {
    fn new(device: &Device, along: Along, (count, len): (usize, usize), seed: u64) -> Self {
        let mut random = Random::new(seed);
        let before = random.bits() as usize % 5;
        let pitch = if along.is_matrix() { len + random.bits() as usize % 5 } else { 1 };
        let values: Vec<_> = (0..count).map(|_| random::values(random.bits(), len)).collect();
        let mut memory = vec![f32::from_bits(POISON); before + count * pitch + 4];
        for (product, values) in values.iter().enumerate() {
            memory[before + product * pitch..][..len].copy_from_slice(values);
        }
        let memory = device.upload(&memory).expect("room");
        Self { memory, values, before, lines: along.is_matrix().then_some((len, pitch)) }
    }
}

/// Spec for a batch in which drawn vectors and numbers of the epilogue have the index `batch`, too.
fn with_own_operands(spec: &SgemmSpec, draw: u64) -> SgemmSpec {
    let Some(epilogue) = &spec.epilogue else { return spec.clone() };
    let closure = epilogue.closure();
    let params = closure.params().iter().enumerate().map(|(nth, param)| {
        let mut param = param.clone();
        if nth > 0 && param.index.len() < 2 && draw >> nth & 1 == 1 {
            param.index.insert(0, "batch".to_owned());
        }
        param.to_string()
    });
    let params: Vec<String> = params.collect();
    let text = format!("|{}| {}", params.join(", "), closure.body());
    let own = spec.clone().epilogue(text.parse().expect("other indices alone"));
    // A scalar needs no register, but a number for each GEMM does.
    if own.plan().is_ok() { own } else { spec.clone() }
}

/// Launches a spec on a batch, and each GEMM separately without `batch`.
///
/// # Errors
/// Returns the first element of C that differs, or the error of a launch.
pub fn run(
    device: &Device,
    (spec, batch): (&SgemmSpec, Batch),
    size: Size,
    axes: Axes<'_>,
    lies: [Lies; 4],
    seed: u64,
) -> Result<(), String> {
    let Size { m, n, k } = size;
    let count = axes.iter().product();
    let spec = &of_its_own(spec);
    let batched = batched(spec, batch, count, seed);
    let mut seeds = Random::new(seed);
    let mut many = |lies: Lies, lines, line, by_column| {
        let values = 0..if lies.shared { 1 } else { count };
        let values = values.map(|_| random::values(seeds.bits(), lines * line)).collect();
        Many::new(device, values, lies, (lines, line), by_column, axes)
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
    let lies_c = Lies { shared: false, repeats: None, ..lies[2] };
    let c_before = many(lies_c, m, n, false);
    let operands = spec.operands();
    let residual = |operand: &EpilogueArg| operand.along == Along::Mn;
    let residuals: Vec<Option<Many>> =
        operands.iter().map(|o| residual(o).then(|| many(lies[3], m, n, false))).collect();
    let beside = Beside::new(spec, size, || 0.5, |len| random::values(seeds.bits(), len));
    let vectors: Vec<Buffer> =
        beside.operands.iter().map(|(_, values)| device.upload(values).expect("room")).collect();

    // Some operands have elements of their own for each GEMM of the batch.
    let batched = with_own_operands(&batched, seeds.bits());
    let of_batch = batched.operands().into_iter().zip(&beside.operands);
    let of_batch = of_batch.map(|(operand, (_, values))| (operand, values.clone()));
    let of_batch = &Beside { operands: of_batch.collect(), c: beside.c.clone() };
    let own = of_batch.operands.iter().map(|(operand, values)| {
        let along = operand.along;
        let bits = seeds.bits();
        along.is_of_batch().then(|| Own::new(device, along, (count, values.len()), bits))
    });
    let own: Vec<Option<Own>> = own.collect();
    let given = vectors.iter().zip(&own).map(|(vector, own)| match own {
        Some(own) => own.memory.slice(own.before..).expect("inside"),
        None => vector.slice(..).expect("all"),
    });
    let given: Vec<BufferView<'_>> = given.collect();

    let kernel = Sgemm::<ByName>::new(batched).map_err(|error| error.to_string())?;
    let views = residuals.iter().zip(&own).zip(&given).map(|((many, own), given)| match own {
        Some(own) => own.lines.map(|(len, pitch)| {
            MatrixRef::pitched(given, count, len, pitch).expect("it holds them")
        }),
        None => many.as_ref().map(Many::view),
    });
    let views: Vec<_> = views.collect();
    let pitch = if batch == Batch::Pointers { n + lies_c.padding } else { c_before.pitch };
    let beside_these = (&given[..], &views[..]);
    let (before, (after, starts), a, b): (_, Written, _, _) = match batch {
        Batch::Strided | Batch::Strided2 | Batch::Strided3 => {
            let before = c_before.memory.clone();
            let mut c = device.upload(&before).expect("room");
            let (both, mut view) = ((&a.view(), &b.view()), c_before.view_mut(&mut c));
            let outcome = launch((&kernel, device), of_batch, beside_these, both, &mut view);
            outcome.map_err(|error| error.to_string())?;
            let starts = c_before.starts.iter().map(|start| (0, *start)).collect();
            (vec![before], (vec![device.download(&c).expect("ours")], starts), a, b)
        }
        Batch::Pointers => {
            let mut c = Apart::new(device, &c_before.each_of(count), lies_c, (m, n));
            let (before, span, first) = (c.download(device), c.span(), c.before);
            let mut slices: Vec<_> = (c.buffers.iter_mut())
                .map(|buffer| buffer.slice_mut(first..first + span).expect("inside"))
                .collect();
            let views = slices.iter_mut().map(|slice| MatrixMut::pitched(slice, m, n, pitch));
            let mut views: Vec<_> = views.map(|view| view.expect("it holds it")).collect();
            let outcome = {
                let (in_a, in_b) = (a.slices(count), b.slices(count));
                let (each_a, each_b) = (a.each(&in_a), b.each(&in_b));
                let lists = (MatrixList::new(device, &each_a), MatrixList::new(device, &each_b));
                let (list_a, list_b) = (lists.0.expect("alike"), lists.1.expect("alike"));
                let mut list = MatrixListMut::new(device, &mut views).expect("apart");
                let both = (&list_a, &list_b);
                launch((&kernel, device), of_batch, beside_these, both, &mut list)
                // The lists are dropped here, possibly while the launch is in flight.
            };
            outcome.map_err(|error| error.to_string())?;
            let starts = (0..count).map(|product| (product, first)).collect();
            (before, (c.download(device), starts), a.reversed(), b.reversed())
        }
        batch => newer_word(batch),
    };

    let kernel = Sgemm::<ByName>::new(spec.clone()).map_err(|error| error.to_string())?;
    let mut expected = before;
    for (product, (of, start)) in starts.into_iter().enumerate() {
        let upload = |values: &[f32]| device.upload(values).expect("room");
        let (one_a, one_b) = (upload(&a.of(product)), upload(&b.of(product)));
        let mut one_c = upload(&c_before.of(product));
        let packed =
            residuals.iter().map(|many| many.as_ref().map(|many| upload(&many.of(product))));
        let packed: Vec<Option<Buffer>> = packed.collect();
        let alone = packed.iter().zip(&residuals);
        let alone = alone.map(|(buffer, many)| Some(many.as_ref()?.alone(buffer.as_ref()?)));
        let views: Vec<_> = alone.collect();
        let both = (&a.alone(&one_a), &b.alone(&one_b));
        let mut view = MatrixMut::new(&mut one_c, m, n).expect("as many");
        let mut one = beside.clone();
        for ((_, values), own) in one.operands.iter_mut().zip(&own) {
            if let Some(own) = own {
                values.clone_from(&own.values[product]);
            }
        }
        let vectors = one.operands.iter().map(|(_, values)| upload(values));
        let vectors: Vec<Buffer> = vectors.collect();
        let launched = launch((&kernel, device), &one, (&vectors[..], &views[..]), both, &mut view);
        launched.map_err(|error| format!("the single product: {error}"))?;
        for (row, values) in device.download(&one_c).expect("ours").chunks(n.max(1)).enumerate() {
            expected[of][start + row * pitch..][..n].copy_from_slice(values);
        }
    }
    for (of, (after, expected)) in after.iter().zip(&expected).enumerate() {
        let pairs = bits(after).into_iter().zip(bits(expected));
        if let Some(at) = { pairs }.position(|(found, expected)| found != expected) {
            let (found, expected) = (after[at], expected[at]);
            return Err(format!("element {at} of allocation {of} is {found}, not {expected}"));
        }
    }
    Ok(())
}
