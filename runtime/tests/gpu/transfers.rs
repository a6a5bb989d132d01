//! Writes, reads, copies and fills of random views, compared with the same operations on a vector
//! of the host. Every operation compares all elements of the buffers, also those beside the views.
//! The simulator runs the same functions as a GPU.

use gemm_runtime::half::bf16;
use gemm_runtime::{Buffer, Device, Element, Error, MatrixMut, MatrixRef};

/// Number of elements of each buffer, more than any view needs.
const LEN: usize = 600;

/// Result of a check; the message says what differs.
pub type Checked = Result<(), Box<dyn std::error::Error>>;

/// View of elements of a buffer.
#[derive(Clone, Copy, Debug)]
struct View {
    start: usize,
    /// Number of matrices. The view is a vector, a matrix or a batch.
    form: Form,
    distance: usize,
    rows: usize,
    cols: usize,
    pitch: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The `rows * cols` elements from `start` on.
    Vector,
    Matrix,
    /// Transpose of a matrix of `cols` rows and `rows` columns.
    Transpose,
    Batch(usize),
}

impl View {
    /// View of this form with `rows` rows and `cols` columns, at a random place.
    fn random(rng: &mut fastrand::Rng, form: Form, rows: usize, cols: usize) -> Self {
        let count = if let Form::Batch(count) = form { count } else { 1 };
        let (stored_rows, width) =
            if form == Form::Transpose { (cols, rows) } else { (rows, cols) };
        let gap = if rng.bool() { 0 } else { rng.usize(1..4) };
        let (pitch, distance) = match rng.bool() {
            // Interleaved matrices, such as the heads of a tensor.
            true if count > 1 => (count * width + gap, width),
            _ => (width + gap, stored_rows * (width + gap) + rng.usize(0..2)),
        };
        Self { start: rng.usize(0..20), form, distance, rows, cols, pitch }
    }

    fn count(&self) -> usize {
        if let Form::Batch(count) = self.form { count } else { 1 }
    }

    fn len(&self) -> usize {
        self.count() * self.rows * self.cols
    }

    /// Places of the elements in the buffer, matrix by matrix and row by row.
    fn places(&self) -> Vec<usize> {
        let Self { start, form, distance, rows, cols, pitch } = *self;
        let mut places = Vec::new();
        for n in 0..self.count() {
            for (row, col) in (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col))) {
                places.push(match form {
                    Form::Vector => start + row * cols + col,
                    Form::Matrix => start + row * pitch + col,
                    Form::Transpose => start + col * pitch + row,
                    Form::Batch(_) => start + n * distance + row * pitch + col,
                });
            }
        }
        places
    }
}

/// Evaluates an expression for a view of a buffer, for reading.
macro_rules! with_view {
    ($buffer:expr, $view:expr, $name:ident => $body:expr) => {{
        let View { start, form, distance, rows, cols, pitch } = $view;
        let all = $buffer.slice(start..)?;
        match form {
            Form::Vector => {
                let $name = all.slice(..rows * cols)?;
                $body
            }
            Form::Matrix => {
                let $name = MatrixRef::pitched(&all, rows, cols, pitch)?;
                $body
            }
            Form::Transpose => {
                let $name = MatrixRef::pitched(&all, cols, rows, pitch)?.t();
                $body
            }
            Form::Batch(count) => {
                let $name = MatrixRef::batch_apart(&all, (count, distance), rows, cols, pitch)?;
                $body
            }
        }
    }};
}

/// Evaluates an expression for a view of a buffer, for writing.
macro_rules! with_view_mut {
    ($buffer:expr, $view:expr, $name:ident => $body:expr) => {{
        let View { start, form, distance, rows, cols, pitch } = $view;
        let mut all = $buffer.slice_mut(start..)?;
        match form {
            Form::Vector => {
                let mut $name = all.slice_mut(..rows * cols)?;
                $body
            }
            Form::Matrix => {
                let mut $name = MatrixMut::pitched(&mut all, rows, cols, pitch)?;
                $body
            }
            Form::Transpose => {
                let mut stored = MatrixMut::pitched(&mut all, cols, rows, pitch)?;
                let mut $name = stored.t();
                $body
            }
            Form::Batch(count) => {
                let mut $name =
                    MatrixMut::batch_apart(&mut all, (count, distance), rows, cols, pitch)?;
                $body
            }
        }
    }};
}

/// Buffer, and the elements that it must have.
struct Modelled<T: Element> {
    buffer: Buffer<T>,
    expected: Vec<T>,
}

impl<T: Element> Modelled<T> {
    fn new(device: &Device, rng: &mut fastrand::Rng) -> Result<Self, Error> {
        let expected = random(rng, LEN);
        Ok(Self { buffer: device.upload_of(&expected)?, expected })
    }

    fn check(&self, device: &Device, what: &str) -> Checked {
        same(&device.download(&self.buffer)?, &self.expected, what)
    }
}

/// Elements of random bits, many of them NaNs.
fn random<T: Element>(rng: &mut fastrand::Rng, len: usize) -> Vec<T> {
    let mut bits = || if rng.u8(0..4) == 0 { u64::MAX - rng.u64(0..99) } else { rng.u64(..) };
    (0..len).map(|_| T::from_bits(bits())).collect()
}

fn same<T: Element>(got: &[T], expected: &[T], what: &str) -> Checked {
    let bits = |elements: &[T]| -> Vec<u64> { elements.iter().map(|e| e.into_bits()).collect() };
    let (got, expected) = (bits(got), bits(expected));
    if got == expected {
        return Ok(());
    }
    let first = got.iter().zip(&expected).position(|(a, b)| a != b);
    Err(format!("{} after {what}: element {first:?} differs", T::ELEM).into())
}

/// Random operations on two buffers of the device.
pub fn random_views(device: &Device) -> Checked {
    of_type::<f32>(device, 1)?;
    of_type::<f64>(device, 2)?;
    of_type::<bf16>(device, 3)?;
    of_type::<u8>(device, 4)?;
    of_type::<i64>(device, 5)
}

fn of_type<T: Element>(device: &Device, seed: u64) -> Checked {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut target = Modelled::<T>::new(device, &mut rng)?;
    let mut source = Modelled::<T>::new(device, &mut rng)?;
    for _ in 0..150 {
        let (rows, cols) = (rng.usize(0..6), rng.usize(0..7));
        let forms = [Form::Vector, Form::Matrix, Form::Transpose, Form::Batch(rng.usize(0..4))];
        let form = forms[rng.usize(0..4)];
        let view = View::random(&mut rng, form, rows, cols);
        step(device, &mut rng, &mut target, &source, view)?;
        std::mem::swap(&mut target, &mut source);
    }
    source.check(device, "all operations")
}

/// One random operation on a view of `target`.
fn step<T: Element>(
    device: &Device,
    rng: &mut fastrand::Rng,
    target: &mut Modelled<T>,
    source: &Modelled<T>,
    view: View,
) -> Checked {
    let (places, buffer) = (view.places(), &mut target.buffer);
    let written: Vec<T> = match rng.u8(0..4) {
        0 => {
            let elements = random(rng, view.len());
            with_view_mut!(buffer, view, to => to.write(&elements))?;
            elements
        }
        1 => {
            // Equal and unequal halves of 8 bytes.
            let half = u64::from(rng.u32(..));
            let value = T::from_bits(if rng.bool() { half << 32 | half } else { rng.u64(..) });
            with_view_mut!(buffer, view, to => to.fill(value))?;
            vec![value; view.len()]
        }
        2 => {
            let form = match (view.form, rng.u8(0..3)) {
                (batch @ Form::Batch(_), _) => batch,
                (Form::Vector, 0) | (_, 1) => Form::Matrix,
                (_, 2) => Form::Transpose,
                _ => Form::Vector,
            };
            let mut from = View::random(rng, form, view.rows, view.cols);
            if rng.u8(0..4) == 0 {
                // All matrices of the source are the same.
                from.distance = 0;
            }
            with_view_mut!(buffer, view, to => {
                with_view!(source.buffer, from, of => to.copy_from(&of))
            })?;
            from.places().into_iter().map(|at| source.expected[at]).collect()
        }
        _ => {
            let expected: Vec<T> = places.iter().map(|&at| target.expected[at]).collect();
            let mut got = random(rng, view.len());
            with_view!(target.buffer, view, of => of.read_into(&mut got))?;
            same(&got, &expected, &format!("a read of {view:?}"))?;
            let got = with_view!(target.buffer, view, of => device.download(&of))?;
            same(&got, &expected, &format!("a download of {view:?}"))?;
            expected
        }
    };
    for (&at, &element) in places.iter().zip(&written) {
        target.expected[at] = element;
    }
    target.check(device, &format!("{view:?}"))
}

/// Halves of buffers, of views and of matrices have no common element and together all of them.
pub fn halves(device: &Device) -> Checked {
    let mut rng = fastrand::Rng::with_seed(6);
    for _ in 0..60 {
        let mut array = Modelled::<u32>::new(device, &mut rng)?;
        let (start, end) = (rng.usize(0..300), rng.usize(300..=LEN));
        let mid = rng.usize(0..=end - start);
        let ends = {
            let mut view = array.buffer.slice_mut(start..end)?;
            let (mut first, mut second) = view.split_at_mut(mid)?;
            first.fill(1)?;
            second.fill(2)?;
            let len = first.len().min(second.len());
            second.slice_mut(..len)?.copy_from(&first.slice(..len)?)?;
            start + mid + len
        };
        array.expected[start..start + mid].fill(1);
        array.expected[start + mid..end].fill(2);
        array.expected[start + mid..ends].fill(1);
        array.check(device, &format!("halves of {start}..{end} at {mid}"))?;

        let view = View::random(&mut rng, Form::Matrix, 5, 7);
        let (by_rows, is_transposed) = (rng.bool(), rng.bool());
        let at = rng.usize(0..=if by_rows { 5 } else { 7 });
        let mut all = array.buffer.slice_mut(view.start..)?;
        let mut matrix = MatrixMut::pitched(&mut all, 5, 7, view.pitch)?;
        // The rows of the transpose are the columns of the matrix.
        let mut matrix = if is_transposed { matrix.t() } else { matrix };
        let (mut first, mut second) = match by_rows == is_transposed {
            true => matrix.split_at_col_mut(at)?,
            false => matrix.split_at_row_mut(at)?,
        };
        first.fill(3)?;
        second.fill(4)?;
        for (nth, place) in view.places().into_iter().enumerate() {
            let along = if by_rows { nth / 7 } else { nth % 7 };
            array.expected[place] = if along < at { 3 } else { 4 };
        }
        array.check(device, &format!("rows: {by_rows}, transposed: {is_transposed}, {at}"))?;
    }
    Ok(())
}

/// A loop of a write, a copy, a launch and a read allocates no device memory after its first round.
pub fn no_allocation(device: &Device) -> Checked {
    use gemm_runtime::{ReduceKernel, reduce_kernel};
    const SUMS: ReduceKernel = reduce_kernel!(over: rows, block: 64, pitched);
    let elements: Vec<f32> = (0..7 * 300).map(|i| (i % 13) as f32).collect();
    let expected: Vec<f32> = elements.chunks(300).map(|row| row.iter().sum()).collect();
    let (mut x, mut y) = (device.alloc_matrix_padded(7, 300)?, device.alloc_matrix(7, 300)?);
    let (mut sums, mut got) = (device.alloc(7)?, [0.0; 7]);
    let mut allocations = None;
    for round in 0..4 {
        x.write(&elements)?;
        y.copy_from(&x)?;
        sums.fill(f32::NAN)?;
        SUMS.launch(device, &y, &mut sums)?;
        sums.read_into(&mut got)?;
        same(&got, &expected, "a launch")?;
        let now = device.allocations();
        if *allocations.get_or_insert(now) != now {
            return Err(format!("round {round} allocated").into());
        }
    }
    Ok(())
}

/// Asynchronous transfers of random views move the elements that synchronous ones do.
pub fn asynchronous(device: &Device) -> Checked {
    let mut rng = fastrand::Rng::with_seed(9);
    let mut array = Modelled::<f64>::new(device, &mut rng)?;
    for _ in 0..100 {
        let (rows, cols) = (rng.usize(0..6), rng.usize(0..7));
        let forms = [Form::Vector, Form::Matrix, Form::Transpose, Form::Batch(rng.usize(0..4))];
        let form = forms[rng.usize(0..4)];
        let view = View::random(&mut rng, form, rows, cols);
        let mut elements = device.pinned(view.len())?;
        same(&elements, &vec![0.0; view.len()], "an allocation")?;
        elements.copy_from_slice(&random(&mut rng, view.len()));
        let written = elements.to_vec();
        let buffer = &mut array.buffer;
        let transfer = with_view_mut!(buffer, view, to => device.write_async(&mut to, elements))?;
        same(&transfer.wait()?, &written, "a transfer")?;
        for (&at, &element) in view.places().iter().zip(&written) {
            array.expected[at] = element;
        }
        let elements = device.pinned(view.len())?;
        let transfer = with_view!(array.buffer, view, of => device.read_async(&of, elements))?;
        // Later work does not change what is read.
        array.buffer.fill(f64::NAN)?;
        same(&transfer.wait()?, &written, &format!("a transfer of {view:?}"))?;
        array.buffer.write(&array.expected)?;
    }
    let mut elements = device.pinned(3)?;
    elements.fill(1.5);
    let (buffer, transfer) = device.upload_async(elements)?;
    drop(transfer);
    same(&device.download(&buffer)?, &[1.5; 3], "an upload")?;
    let before = device.record()?;
    device.wait_for(&before)?;
    before.wait()?;
    if before.is_done()? { Ok(()) } else { Err("the event is not done".into()) }
}

/// Random work of three streams on few buffers. Each call sees the elements that earlier calls have
/// written, on any stream. Buffers are dropped while streams use them.
pub fn streams(device: &Device) -> Checked {
    const LEN: usize = 1 << 12;
    let mut rng = fastrand::Rng::with_seed(10);
    let second = device.on_new_stream()?;
    let devices = [device.clone(), second.on_new_stream()?, second];
    let alloc = |device: &Device, value: u64| device.upload_of(&[value; LEN]);
    let mut buffers = Vec::new();
    for value in 0..4 {
        buffers.push((alloc(&devices[value as usize % 3], value)?, [value; 2]));
    }
    for step in 0..400_u64 {
        let device = &devices[rng.usize(0..3)];
        let (to, from) = (rng.usize(0..4), rng.usize(0..4));
        match rng.u8(0..6) {
            0 => {
                device.fill(&mut buffers[to].0, step)?;
                buffers[to].1 = [step; 2];
            }
            1 => {
                // The halves are written by two streams, without an order between them.
                let other = &devices[rng.usize(0..3)];
                let (mut first, mut second) = buffers[to].0.split_at_mut(LEN / 2)?;
                device.fill(&mut first, step)?;
                other.fill(&mut second, step + 1)?;
                buffers[to].1 = [step, step + 1];
            }
            2 | 3 if to != from => {
                let [target, source] = buffers.get_disjoint_mut([to, from])?;
                device.copy(&source.0, &mut target.0)?;
                target.1 = source.1;
            }
            4 => {
                let new = match rng.bool() {
                    true => (alloc(device, step)?, [step; 2]),
                    false => (device.alloc_of(LEN)?, [0; 2]),
                };
                drop(std::mem::replace(&mut buffers[to], new));
            }
            _ => {
                let (buffer, [first, second]) = &buffers[to];
                let transfer = device.read_async(buffer, device.pinned(LEN)?)?;
                let got = transfer.wait()?;
                let expected = [[*first; LEN / 2], [*second; LEN / 2]].concat();
                same(&got, &expected, &format!("step {step}"))?;
            }
        }
    }
    // Buffers outlive the devices that created them.
    drop(devices);
    for (buffer, [first, second]) in &buffers {
        let expected = [[*first; LEN / 2], [*second; LEN / 2]].concat();
        let mut got = vec![0; LEN];
        buffer.read_into(&mut got)?;
        same(&got, &expected, "all steps")?;
    }
    Ok(())
}
