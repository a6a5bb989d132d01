//! Random elementwise kernels with their exact results, on arrays in poisoned memory.
//!
//! A result is a sum of terms, one for each operand, in the order of the operands. Each term has a
//! weight of its own, so that a wrong element, row or column changes the sum. The expected sums are
//! computed here, in the arithmetic of the expression.

mod memory;
mod rows;

use gemm_dsl::ir::{Elem, Variant};
use gemm_dsl::spec::{Along, MapSpec};
use gemm_oracle::fold::Number;
use gemm_oracle::random::Random;
use gemm_runtime::generic::{Kernel, MapCall};
use gemm_runtime::{ByName, Device, Error, InPlace};
use memory::{Image, memory};

/// Element types of operands and results.
const ELEMS: [Elem; 9] = [
    Elem::F32,
    Elem::F64,
    Elem::F16,
    Elem::Bf16,
    Elem::I8,
    Elem::U8,
    Elem::I32,
    Elem::U32,
    Elem::I64,
];

/// Layout of a matrix in its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Elements before the first.
    pub start: usize,
    /// Elements after each row, or after each column if the matrix is column-major.
    pub padding: usize,
    pub by_column: bool,
}

/// Array of a case: an operand or a result.
#[derive(Clone, Debug)]
pub struct Array {
    pub name: String,
    pub along: Along,
    pub elem: Elem,
    /// Bits of the elements, row by row. Of a result, the bits that are expected.
    pub bits: Vec<u64>,
    pub layout: Layout,
}

/// Elementwise kernel with its operands and the expected results.
#[derive(Clone, Debug)]
pub struct Case {
    pub spec: MapSpec,
    pub rows: usize,
    pub cols: usize,
    /// True if matrices are passed as vectors.
    pub as_vectors: bool,
    pub operands: Vec<Array>,
    pub results: Vec<Array>,
    /// Index of the operand that is the same array as the first result.
    pub in_place: Option<usize>,
}

/// Weight of an operand's term in a result.
fn weight(operand: usize, result: usize) -> i64 {
    3 * operand as i64 + 7 * result as i64 + 2
}

/// Factor of all weights of integer results, so that 32 bits wrap.
const LARGE: i64 = 3_000_001;

/// Arithmetic of an expression.
#[derive(Clone, Copy)]
struct Arithmetic {
    is_f64: bool,
}

impl Arithmetic {
    fn name(self) -> &'static str {
        if self.is_f64 { "f64" } else { "f32" }
    }

    fn elem(self) -> Elem {
        if self.is_f64 { Elem::F64 } else { Elem::F32 }
    }

    fn rounded(self, x: f64) -> f64 {
        if self.is_f64 { x } else { f64::from(x as f32) }
    }

    /// Text of an operand in the floating-point type of the expression.
    fn converted(self, array: &Array) -> String {
        match array.elem {
            Elem::F32 | Elem::F16 | Elem::Bf16 if !self.is_f64 => array.name.clone(),
            Elem::F64 => array.name.clone(),
            _ => format!("{}({})", self.name(), array.name),
        }
    }

    /// Text of a result of floating-point type.
    fn float(self, operands: &[Array], nth: usize, place: bool, elem: Elem) -> String {
        let mut text = match place {
            true => format!("{}(3 * row + 1000 * col)", self.name()),
            false => "0.25".to_owned(),
        };
        for (n, array) in operands.iter().enumerate() {
            text += &format!(" + {}.0 * {}", weight(n, nth), self.converted(array));
        }
        if self.is_f64 && elem != Elem::F64 { format!("f32({text})") } else { text }
    }

    /// Value of such a result.
    fn float_value(self, values: &[Number], nth: usize, first: f64) -> f64 {
        values.iter().enumerate().fold(first, |sum, (n, value)| {
            let value = value.cast(self.elem()).float();
            let term = self.rounded(weight(n, nth) as f64 * value);
            self.rounded(sum + term)
        })
    }
}

/// Text of a result of integer type.
fn integer(operands: &[Array], nth: usize, place: bool) -> String {
    let mut text = if place { "3 * row + 1000 * col".to_owned() } else { "5".to_owned() };
    for (n, array) in operands.iter().enumerate() {
        let factor = weight(n, nth) * LARGE;
        text += &match array.elem.is_float() {
            true => format!(" + (if {} > {} {{ {factor} }} else {{ 1 }})", array.name, half(array)),
            false => format!(" + {factor} * clamp({}, -1000, 1000)", array.name),
        };
    }
    text
}

/// One half, as a literal that has the type of an operand.
fn half(array: &Array) -> &'static str {
    if array.elem == Elem::F64 { "f64(1) / f64(2)" } else { "f32(1) / f32(2)" }
}

fn integer_value(values: &[Number], nth: usize, first: i128) -> i128 {
    values.iter().enumerate().fold(first, |sum, (n, value)| {
        let factor = i128::from(weight(n, nth) * LARGE);
        sum + match *value {
            Number::Float(x) if x > 0.5 => factor,
            Number::Float(_) => 1,
            Number::Int(value) => factor * value.clamp(-1000, 1000),
        }
    })
}

/// Random bits of an element: small numbers, and sometimes a special value.
fn element(random: &mut Random, elem: Elem) -> u64 {
    let bits = random.bits();
    match (elem.is_float(), bits % 16) {
        (true, 0) => {
            let special =
                [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e-44, 3e38, 1e-310, 65504.0];
            Number::Float(special[(bits >> 8) as usize % special.len()]).bits(elem)
        }
        (true, _) => Number::Float(((bits >> 8) % 2048) as f64 / 256.0 - 4.0).bits(elem),
        (false, 0) => (bits >> 4) & (u64::MAX >> (64 - 8 * elem.size())),
        (false, _) => Number::Int(i128::from(bits >> 8) % 256 - 128).bits(elem),
    }
}

impl Case {
    /// Draws a case. Half of the cases have only `[m, n]` operands and numbers, so that their
    /// kernels do not depend on rows and columns.
    pub fn random(random: &mut Random) -> Self {
        let mut below = |n: usize| (random.bits() % n as u64) as usize;
        let sizes = [0, 1, 2, 3, 5, 8, 13, 16, 31, 32, 37, 64, 97, 128, 131];
        let (rows, cols) = (sizes[below(sizes.len())], sizes[below(sizes.len())]);
        let as_vectors = below(6) == 0;
        let rows = if as_vectors { 1 } else { rows };
        let is_flat = below(2) == 0;
        let is_plain = below(2) == 0;
        let whole = below(3) > 0;
        let by_column = below(5) == 0;
        let layout = |below: &mut dyn FnMut(usize) -> usize| Layout {
            start: if whole { 16 * below(3) } else { below(5) },
            padding: if is_plain { 0 } else { [0, 0, 16, 32, 3][below(5)] },
            by_column: if is_plain { by_column } else { below(4) == 0 },
        };
        let count = 1 + below(4);
        let mut operands = Vec::new();
        for n in 0..count {
            let along = match (is_flat, below(6)) {
                (true, 0..5) | (false, 0..3) => Along::Mn,
                (true, _) | (false, 3) => Along::Nothing,
                (false, 4) => Along::N,
                (false, _) => Along::M,
            };
            let elem = match (along, ELEMS[below(ELEMS.len())]) {
                (Along::Nothing, Elem::F16 | Elem::Bf16) => Elem::F32,
                (Along::Nothing, Elem::I8 | Elem::U8) => Elem::I32,
                (_, elem) => elem,
            };
            let (name, layout) = (format!("x{n}"), layout(&mut below));
            operands.push(Array { name, along, elem, bits: Vec::new(), layout });
        }
        let results = [1, 1, 2, 3, 4][below(5)];
        let mut results: Vec<Array> = (0..results)
            .map(|n| {
                let name = if results == 1 { "output".into() } else { format!("output_{n}") };
                let elem = ELEMS[below(ELEMS.len())];
                Array { name, along: Along::Mn, elem, bits: Vec::new(), layout: layout(&mut below) }
            })
            .collect();
        let place = !is_flat && below(2) == 0;
        let in_place = (below(3) == 0)
            .then(|| operands.iter().position(|operand| operand.along == Along::Mn))
            .flatten();
        if let Some(n) = in_place {
            (results[0].elem, results[0].layout) = (operands[n].elem, operands[n].layout);
        }
        let keys = ["", "", ", block: 32", ", block: 96, items: 1", ", items: 2", ", block: 1024"];
        let keys = keys[below(keys.len())];
        for operand in &mut operands {
            let len = match operand.along {
                Along::Nothing => 1,
                Along::N => cols,
                Along::M => rows,
                Along::Mn => rows * cols,
                of_batch => no_batch(of_batch),
            };
            operand.bits = (0..len).map(|_| element(random, operand.elem)).collect();
        }
        let mut elems = operands.iter().chain(&results).map(|array| array.elem);
        let arithmetic = Arithmetic { is_f64: elems.any(|elem| elem == Elem::F64) };
        let params = operands.iter().map(|x| format!("{}{}: {}", x.name, x.along, x.elem));
        let params: Vec<String> = params.collect();
        let types: Vec<String> = results.iter().map(|result| result.elem.to_string()).collect();
        let values = results.iter().enumerate().map(|(nth, result)| match result.elem.is_float() {
            true => arithmetic.float(&operands, nth, place, result.elem),
            false => integer(&operands, nth, place),
        });
        let values: Vec<String> = values.collect();
        let (params, types, values) = (params.join(", "), types.join(", "), values.join(", "));
        let line = format!("|{params}| -> ({types}) ({values})");
        let spec = format!("{line}{keys}").parse::<MapSpec>();
        // A thread cannot hold several items of many wide operands.
        let spec = spec.or_else(|error| match keys.contains("items") {
            true => line.parse(),
            false => Err(error),
        });
        let spec = spec.unwrap_or_else(|error| panic!("{line}: {error}"));
        for (nth, result) in results.iter_mut().enumerate() {
            let at = |i: usize| (i / cols.max(1), i % cols.max(1));
            let value = |i: usize| {
                let (row, col) = at(i);
                let of = |array: &Array| {
                    let index = match array.along {
                        Along::Nothing => 0,
                        Along::N => col,
                        Along::M => row,
                        Along::Mn => i,
                        of_batch => no_batch(of_batch),
                    };
                    Number::of_bits(array.elem, array.bits[index])
                };
                let values: Vec<Number> = operands.iter().map(of).collect();
                let first = 3 * row + 1000 * col;
                match result.elem.is_float() {
                    true => {
                        let first = if place { first as f64 } else { 0.25 };
                        Number::Float(arithmetic.float_value(&values, nth, first))
                    }
                    false => {
                        let first = if place { first as i128 } else { 5 };
                        Number::Int(integer_value(&values, nth, first))
                    }
                }
            };
            result.bits = (0..rows * cols).map(|i| value(i).bits(result.elem)).collect();
        }
        Self { spec, rows, cols, as_vectors, operands, results, in_place }
    }

    fn image(&self, array: &Array) -> Image {
        let Layout { start, padding, by_column } = array.layout;
        let (rows, cols) = match array.along {
            Along::Nothing | Along::N | Along::M => (1, array.bits.len()),
            Along::Mn => (self.rows, self.cols),
            of_batch => no_batch(of_batch),
        };
        let is_matrix = array.along == Along::Mn && !self.as_vectors;
        let by_column = by_column && is_matrix;
        let (lines, line) = if by_column { (cols, rows) } else { (rows, cols) };
        let pitch = line + if is_matrix { padding } else { 0 };
        let len = if rows * cols == 0 { 0 } else { (lines - 1) * pitch + line };
        Image { start, len, rows, cols, pitch, by_column, is_matrix }
    }

    /// Launches the kernel on a device. Returns the bits of the results and the variants of the
    /// kernels that ran.
    ///
    /// # Errors
    /// Returns the error of the launch, or the place of a write outside of the results.
    pub fn run(&self, device: &Device) -> Result<(Vec<Vec<u64>>, Vec<Variant>), String> {
        self.launch(device).map_err(|error| error.to_string())?
    }

    #[expect(clippy::type_complexity, reason = "two kinds of failure")]
    fn launch(
        &self,
        device: &Device,
    ) -> Result<Result<(Vec<Vec<u64>>, Vec<Variant>), String>, Error> {
        let kernel = Kernel::<MapSpec, ByName>::new(self.spec.clone())?;
        let mut memories = Vec::new();
        for array in &self.operands {
            let bits = self.image(array).filled(array.elem, Some(&array.bits));
            memories.push(memory(device, array.elem, &bits)?);
        }
        let mut outputs = Vec::new();
        for (n, array) in self.results.iter().enumerate() {
            let before = self.in_place.filter(|_| n == 0);
            let before = before.map(|operand| &self.operands[operand].bits[..]);
            let bits = self.image(array).filled(array.elem, before);
            outputs.push(memory(device, array.elem, &bits)?);
        }
        let mut parts = Vec::new();
        for (memory, array) in memories.iter().zip(&self.operands) {
            parts.push(memory.part(self.image(array))?);
        }
        let mut views = Vec::new();
        for part in &parts {
            views.push(part.view()?);
        }
        let mut written = Vec::new();
        for (memory, array) in outputs.iter_mut().zip(&self.results) {
            written.push(memory.part_mut(self.image(array))?);
        }
        let mut matrices = Vec::new();
        for part in &mut written {
            matrices.push(part.view_mut()?);
        }
        let mut targets: Vec<_> = matrices.iter_mut().map(|matrix| matrix.target()).collect();
        let mut call = kernel.call(device);
        // Operands and results are given in reverse order, because only their names matter.
        for (n, (array, view)) in self.operands.iter().zip(&views).enumerate().rev() {
            call = match (array.along, self.in_place == Some(n)) {
                (Along::Nothing, _) => number(call, array),
                (_, true) => call.operand(&array.name, InPlace::first()),
                (_, false) => view.give(&array.name, call),
            };
        }
        for (array, target) in self.results.iter().zip(&mut targets).rev() {
            call = target.give(&array.name, call);
        }
        let report = call.launch()?;
        drop(targets);
        drop(matrices);
        drop(written);
        let mut results = Vec::new();
        for (memory, array) in outputs.iter().zip(&self.results) {
            match self.image(array).elements(array.elem, &memory.bits(device)?) {
                Ok(bits) => results.push(bits),
                Err(fault) => return Ok(Err(fault)),
            }
        }
        Ok(Ok((results, report.steps().map(|step| step.variant()).collect())))
    }

    /// Checks results against the expected bits. The payload of a NaN is not compared.
    ///
    /// # Errors
    /// Returns the first difference.
    pub fn judge(&self, found: &[Vec<u64>]) -> Result<(), String> {
        for (result, found) in self.results.iter().zip(found) {
            for (i, (found, expected)) in found.iter().zip(&result.bits).enumerate() {
                let [is, should] = [*found, *expected].map(|b| Number::of_bits(result.elem, b));
                let nan = |number: Number| number.float().is_nan();
                if found != expected && !(nan(is) && nan(should)) {
                    return Err(format!(
                        "`{}` of {}x{}: {} {i} is {is:?}, not {should:?}",
                        self.spec, self.rows, self.cols, result.name
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Passes a number by name.
fn number<'c>(call: MapCall<'c>, array: &Array) -> MapCall<'c> {
    let bits = array.bits[0];
    match array.elem {
        Elem::F32 => call.operand(&array.name, f32::from_bits(bits as u32)),
        Elem::F64 => call.operand(&array.name, f64::from_bits(bits)),
        Elem::I32 => call.operand(&array.name, bits as i32),
        Elem::U32 => call.operand(&array.name, bits as u32),
        _ => call.operand(&array.name, bits as i64),
    }
}

fn no_batch(along: Along) -> ! {
    unreachable!("no elementwise kernel has an operand `[{}]`", along.index().join(", "))
}
