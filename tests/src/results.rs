//! Epilogues with several values. Each value has the bits that a kernel with this value alone
//! stores, in any layout, and only the matrices of the values are written.

use crate::operands::given;
use gemm_dsl::expr::{EPILOGUE, random};
use gemm_dsl::spec::{Along, Batch, Epilogue, SgemmSpec};
use gemm_oracle::beside::Beside;
use gemm_oracle::product::Size;
use gemm_oracle::random::{Random, values};
use gemm_runtime::{Buffer, ByName, Device, MatrixMut, MatrixRef, Sgemm};

/// Bits of a NaN that no arithmetic produces.
const POISON: u32 = 0x7fc0_dead;

/// Matrices of an output, one for each GEMM, surrounded by poison.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// Extents of the matrix, of which k is not one.
    size: Size,
    /// Number of GEMMs of a batch; `None` for a single GEMM.
    count: Option<usize>,
    pub(crate) before: usize,
    pub(crate) pitch: usize,
    pub(crate) distance: usize,
}

impl Place {
    pub(crate) fn new(size: Size, count: Option<usize>, pitched: bool, draw: &mut Random) -> Self {
        let mut next = |most: u64| (draw.bits() % most) as usize;
        let pitch = size.n + if pitched { next(6) } else { 0 };
        let (before, between) = (next(6), next(6));
        Self { size, count, before, pitch, distance: size.m * pitch + between }
    }

    /// Poisoned memory. `content` has the elements of each matrix.
    pub(crate) fn upload(&self, device: &Device, content: Option<&[f32]>) -> Buffer {
        let count = self.count.unwrap_or(1);
        let mut memory = vec![f32::from_bits(POISON); self.before + count * self.distance + 8];
        for (at, nth) in self.elements() {
            if let Some(content) = content {
                memory[at] = content[nth];
            }
        }
        device.upload(&memory).expect("room")
    }

    /// Position of each element in the memory, and its index in its matrix.
    fn elements(&self) -> Vec<(usize, usize)> {
        let Size { m, n, .. } = self.size;
        let of_one = (0..m * n).map(|nth| (nth / n * self.pitch + nth % n, nth));
        let all = (0..self.count.unwrap_or(1)).flat_map(|product| {
            let first = self.before + product * self.distance;
            of_one.clone().map(move |(at, nth)| (first + at, nth))
        });
        all.collect()
    }

    /// Elements of all matrices, or an error if memory around them was written.
    pub(crate) fn read(&self, memory: &[f32], name: &str) -> Result<Vec<f32>, String> {
        let mut around = memory.to_vec();
        let elements = self.elements().into_iter();
        let elements = elements.map(|(at, _)| std::mem::replace(&mut around[at], f32::NAN));
        let elements: Vec<f32> = elements.collect();
        let inside: Vec<usize> = self.elements().into_iter().map(|(at, _)| at).collect();
        for (at, value) in around.iter().enumerate() {
            if value.to_bits() != POISON && inside.binary_search(&at).is_err() {
                return Err(format!("{value} was written at {at}, beside {name}"));
            }
        }
        Ok(elements)
    }
}

/// Values of a tuple, each as the text of an expression, with the text before them.
struct Tuple {
    head: String,
    values: Vec<String>,
}

impl Tuple {
    /// Values that a drawn closure and its parameters give.
    fn new(draw: &mut Random) -> Self {
        let depth = (draw.bits() % 3) as u32;
        let closure = random::with_operands(&EPILOGUE, draw.bits(), depth, 3);
        let params: Vec<String> = closure.params().iter().map(ToString::to_string).collect();
        let lets = closure.body().lets.iter().map(|definition| format!("{definition} "));
        let head = format!("|{}| {{ {}", params.join(", "), lets.collect::<String>());
        let (first, acc) = (closure.body().value.to_string(), &closure.params()[0].name);
        let last = &closure.params()[closure.params().len() - 1].name;
        let values =
            [first.clone(), format!("0.5 * {acc}"), last.clone(), format!("({first}) + {acc}")];
        let count = 2 + draw.bits() as usize % 3;
        Self { head, values: values.into_iter().take(count).collect() }
    }

    fn whole(&self) -> Epilogue {
        self.parsed(&format!("({})", self.values.join(", ")))
    }

    /// The n-th value alone. The text also names all parameters.
    fn alone(&self, nth: usize) -> Epilogue {
        let [first, value] = [&self.values[0], &self.values[nth]];
        self.parsed(&format!("if 1.0 < 0.0 {{ {first} }} else {{ {value} }}"))
    }

    fn parsed(&self, value: &str) -> Epilogue {
        let text = format!("{}{value} }}", self.head);
        text.parse().unwrap_or_else(|error| panic!("`{text}`: {error}"))
    }
}

/// Operands of a GEMM in memory.
pub(crate) struct Launch<'l> {
    pub(crate) device: &'l Device,
    pub(crate) size: Size,
    pub(crate) count: Option<usize>,
    pub(crate) a: Buffer,
    pub(crate) b: Buffer,
    pub(crate) beside: Beside,
}

impl Launch<'_> {
    /// Memory of C and of all other outputs after a launch.
    pub(crate) fn run(&self, spec: &SgemmSpec, places: &[Place]) -> Result<Vec<Vec<f32>>, String> {
        let Self { device, size: Size { m, n, k }, count, .. } = *self;
        let text = |error: gemm_runtime::Error| format!("`{spec}`: {error}");
        let kernel = Sgemm::<ByName>::new(spec.clone()).map_err(text)?;
        let mut memory: Vec<Buffer> = Vec::new();
        for (nth, place) in places.iter().enumerate() {
            let content = self.beside.c.as_deref().filter(|_| nth == 0);
            memory.push(place.upload(device, content));
        }
        let upload = |values: &[f32]| device.upload(values).expect("room");
        let read: Vec<Buffer> = self.beside.operands.iter().map(|(_, v)| upload(v)).collect();
        let matrices = self.beside.operands.iter().zip(&read).map(|((operand, _), buffer)| {
            let is_matrix = operand.along == Along::Mn;
            is_matrix.then(|| MatrixRef::new(buffer, m, n).expect("as many"))
        });
        let matrices: Vec<_> = matrices.collect();
        let view = |buffer, rows, cols| match count {
            Some(count) => MatrixRef::batch(buffer, count, rows, cols),
            None => MatrixRef::new(buffer, rows, cols),
        };
        let (rows_a, cols_a) = if spec.layout.transposes_a() { (k, m) } else { (m, k) };
        let (rows_b, cols_b) = if spec.layout.transposes_b() { (n, k) } else { (k, n) };
        let a = view(&self.a, rows_a, cols_a).expect("as many");
        let b = MatrixRef::new(&self.b, rows_b, cols_b).expect("as many");
        let a = if spec.layout.transposes_a() { a.t() } else { a };
        let b = if spec.layout.transposes_b() { b.t() } else { b };
        {
            let mut slices = Vec::new();
            for (buffer, place) in memory.iter_mut().zip(places) {
                slices.push(buffer.slice_mut(place.before..).expect("inside"));
            }
            let outputs = slices.iter_mut().zip(places).map(|(slice, place)| match count {
                Some(count) => {
                    let (apart, n) = ((count, place.distance), place.size.n);
                    MatrixMut::batch_apart(slice, apart, m, n, place.pitch).expect("as many")
                }
                None => MatrixMut::pitched(slice, m, place.size.n, place.pitch).expect("as many"),
            });
            let mut outputs: Vec<MatrixMut<'_>> = outputs.collect();
            let (c, others) = outputs.split_first_mut().expect("C is one");
            let mut call = given((&kernel, device), &self.beside, (&read[..], &matrices[..]));
            for (nth, other) in others.iter_mut().enumerate() {
                call = call.operand(&format!("c{}", nth + 2), other);
            }
            call.launch(&a, &b, c).map_err(text)?;
        }
        Ok(memory.iter().map(|memory| device.download(memory).expect("ours")).collect())
    }
}

/// Launches a spec with a drawn tuple, and with each of its values alone.
///
/// # Errors
/// Returns the first element that differs, or the error of a launch.
pub fn run(
    device: &Device,
    spec: &SgemmSpec,
    size: Size,
    count: Option<usize>,
    seed: u64,
) -> Result<(), String> {
    let mut draw = Random::new(seed);
    let tuple = Tuple::new(&mut draw);
    let spec = match count {
        Some(_) => spec.clone().batch(Batch::Strided),
        None => spec.clone(),
    };
    let whole = spec.clone().epilogue(tuple.whole());
    if whole.plan().is_err() {
        return Ok(()); // The operands need more registers than the thread tile leaves.
    }
    let Size { m, n, k } = size;
    let mut upload = |len| device.upload(&values(draw.bits(), len)).expect("room");
    let (a, b) = (upload(count.unwrap_or(1) * m * k), upload(k * n));
    let factor = || 0.5;
    let beside = Beside::new(&whole, size, factor, |len| values(draw.bits(), len));
    let launch = Launch { device, size, count, a, b, beside };
    let places = tuple.values.iter().map(|_| Place::new(size, count, spec.pitched, &mut draw));
    let places: Vec<Place> = places.collect();
    let found = launch.run(&whole, &places)?;
    for (nth, (place, memory)) in places.iter().zip(&found).enumerate() {
        let name = format!("value {}", nth + 1);
        let alone = spec.clone().epilogue(tuple.alone(nth));
        let expected = launch.run(&alone, &[*place])?;
        let [expected, found] = [&expected[0], memory].map(|memory| place.read(memory, &name));
        let (expected, found) = (expected?, found?);
        let same = |(f, e): (&f32, &f32)| f.to_bits() == e.to_bits() || f.is_nan() && e.is_nan();
        if let Some(at) = found.iter().zip(&expected).position(|pair| !same(pair)) {
            let (found, expected) = (found[at], expected[at]);
            return Err(format!("`{whole}`: element {at} of {name} is {found}, not {expected}"));
        }
    }
    Ok(())
}
