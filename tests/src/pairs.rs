//! Epilogues over pairs of columns. `pair(e, next(e))` stores what `e` stores, in any layout, and a
//! value for each pair is that of one of the two columns.

use crate::results::{Launch, Place};
use gemm_dsl::expr::{EPILOGUE, random};
use gemm_dsl::spec::{Batch, SgemmSpec};
use gemm_oracle::beside::Beside;
use gemm_oracle::product::Size;
use gemm_oracle::random::{Random, values};
use gemm_runtime::Device;

/// Specs with every kind of kernel whose threads have pairs of columns.
pub const SPECS: &[&str] = &[
    "thread: 1x2",
    "block: 8x8, thread: 4x4, float4",
    "block: 4x2, thread: 2x6, lanes: k, slices: 2, pitched",
    "tile: 32x32x8, thread: 4x4, float4, pitched",
    "tile: 32x32x8, thread: 1x8, layout: nt",
    "tile: 32x64x8, thread: 4x8, fragment: split, float4, transpose, double_buffer",
    "tile: 32x32x8, thread: 4x4, float4, stages: 3, warp: 16x32",
    "tile: 32x32x8, thread: 4x2, slices: 2, split_k: 3",
    "tile: 32x32x8, thread: 4x4, float4, stream_k",
    "tile: 32x32x8, thread: 4x4, float4, stage_c",
    "tile: 32x32x8, thread: 4x2, stage_c",
    "tile: 64x64x16, mma: sync, arith: bf16, warp: 32x32, float4",
    "tile: 64x64x16, mma: sync, arith: bf16, warp: 32x32, float4, convert: matrix",
    "tile: 64x64x16, mma: sync, arith: tf32x3, warp: 32x32, stages: 2",
    "tile: 64x64x32, mma: wgmma, arith: bf16x6, float4",
    "tile: 64x64x32, mma: wgmma, arith: bf16",
    "tile: 64x64x32, mma: wgmma, arith: tf32, float4, copy: tma, producer, persistent, pitched",
    "tile: 128x128x32, mma: wgmma, arith: f16x3, split_k: 2",
];

/// Columns of the value for one column that an output stores.
#[derive(Clone, Copy)]
enum Stored {
    /// Both columns in order.
    Both,
    /// Both columns, the odd one first.
    Swapped,
    Even,
    Odd,
}

impl Stored {
    const ALL: [Self; 4] = [Self::Both, Self::Swapped, Self::Even, Self::Odd];

    /// Value of an epilogue, given the value for one column.
    fn text(self, value: &str) -> String {
        match self {
            Self::Both => format!("pair({value}, next({value}))"),
            Self::Swapped => format!("pair(next({value}), {value})"),
            Self::Even => value.to_owned(),
            Self::Odd => format!("next({value})"),
        }
    }

    fn is_half(self) -> bool {
        matches!(self, Self::Even | Self::Odd)
    }

    /// Elements that are stored, given those of all columns.
    fn of(self, all: &[f32]) -> Vec<f32> {
        let pairs = all.chunks(2);
        match self {
            Self::Both => all.to_vec(),
            Self::Swapped => pairs.flat_map(|pair| [pair[1], pair[0]]).collect(),
            Self::Even => pairs.map(|pair| pair[0]).collect(),
            Self::Odd => pairs.map(|pair| pair[1]).collect(),
        }
    }
}

/// Values of an epilogue that are drawn: one to four, of which one reads another column. The
/// previous C has as many columns as the first value.
fn drawn(draw: &mut Random, names_c: bool) -> Vec<Stored> {
    let count = 1 + draw.bits() as usize % 4;
    let mut stored: Vec<Stored> =
        (0..count).map(|_| Stored::ALL[draw.bits() as usize % 4]).collect();
    if names_c && stored[0].is_half() || stored.iter().all(|of| matches!(of, Stored::Even)) {
        stored[0] = Stored::ALL[draw.bits() as usize % 2];
    }
    stored
}

/// Launches a spec with a drawn expression for each column, and with the expression for pairs of
/// columns.
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
    let closure = random::with_operands(&EPILOGUE, draw.bits(), (draw.bits() % 4) as u32, 3);
    let params: Vec<String> = closure.params().iter().map(ToString::to_string).collect();
    let lets = closure.body().lets.iter().map(|definition| format!("{definition} "));
    let head = format!("|{}| {{ {}", params.join(", "), lets.collect::<String>());
    let value = closure.body().value.to_string();
    let names_c = params.iter().any(|param| param == "c[m, n]");
    let stored = drawn(&mut draw, names_c);
    let texts: Vec<String> = stored.iter().map(|of| of.text(&value)).collect();
    let whole = match texts.as_slice() {
        [one] => format!("{head}{one} }}"),
        several => format!("{head}({}) }}", several.join(", ")),
    };
    let parsed = |text: &str| text.parse().map_err(|error| format!("`{text}`: {error}"));
    let spec = match count {
        Some(_) => spec.clone().batch(Batch::Strided),
        None => spec.clone(),
    };
    let spec = if stored[0].is_half() { spec.scaled(false) } else { spec };
    let (pairs, alone) = (parsed(&whole)?, parsed(&format!("{head}{value} }}"))?);
    let (pairs, alone) = (spec.clone().epilogue(pairs), spec.clone().epilogue(alone));
    if pairs.plan().is_err() {
        return Ok(()); // A thread does not have pairs of columns, or no registers for the operands.
    }
    let size = Size { n: size.n.next_multiple_of(2), ..size };
    let Size { m, n, k } = size;
    let mut upload = |len| device.upload(&values(draw.bits(), len)).expect("room");
    let (a, b) = (upload(count.unwrap_or(1) * m * k), upload(k * n));
    let beside = Beside::new(&pairs, size, || 0.5, |len| values(draw.bits(), len));
    let launch = Launch { device, size, count, a, b, beside };
    let mut place = |n| Place::new(Size { n, ..size }, count, spec.pitched, &mut draw);
    let places: Vec<Place> =
        stored.iter().map(|of| place(if of.is_half() { n / 2 } else { n })).collect();
    let whole = place(n);
    let found = launch.run(&pairs, &places)?;
    let expected = whole.read(&launch.run(&alone, &[whole])?[0], "C")?;
    for (nth, ((of, place), memory)) in stored.iter().zip(&places).zip(&found).enumerate() {
        let name = format!("value {}", nth + 1);
        let (expected, found) = (of.of(&expected), place.read(memory, &name)?);
        let same = |(f, e): (&f32, &f32)| f.to_bits() == e.to_bits() || f.is_nan() && e.is_nan();
        if let Some(at) = found.iter().zip(&expected).position(|pair| !same(pair)) {
            let (found, expected) = (found[at], expected[at]);
            return Err(format!("`{pairs}`: element {at} of {name} is {found}, not {expected}"));
        }
    }
    Ok(())
}
