//! Launches of the selected kernels, on arrays on the simulator or on a GPU.

use super::input::{Tile, TileElement};
use super::problem::ReductionProblem;
use crate::gpu::{Gpu, elements};
use cudarc::driver::{CudaSlice, CudaView};
use gemm_dsl::ir::Elem;
use gemm_dsl::spec::newer_word;
use gemm_dsl::tables::shipped::tuned;
use gemm_runtime::bounds::Vector;
use gemm_runtime::generic::Kernel;
use gemm_runtime::half::{bf16, f16};
use gemm_runtime::spec::{DataType, Over, ReduceSpec};
use gemm_runtime::{Buffer, ByName, Device, Element, Error, LaunchReport, MatrixRef, Segments};

/// Kernel of a problem. The shipped table selects it, unless the problem has spec keys.
#[derive(Clone, Debug)]
pub struct KernelChoice {
    /// Condition of the selected rule. `None` for the last rule, and if no table was used.
    pub condition: Option<String>,
    pub spec: ReduceSpec,
    kernel: Kernel<ReduceSpec, ByName>,
}

impl KernelChoice {
    /// Selects the kernel of a problem as `ReduceTable::tuned` does, unless the problem has spec
    /// keys.
    ///
    /// # Errors
    /// Returns [`Error::Spec`] if the spec is invalid.
    pub fn new(problem: &ReductionProblem) -> Result<Self, Error> {
        let spec = problem.spec()?;
        if problem.how.is_some() {
            return Self::from_spec(spec);
        }
        let table = tuned(&spec)?;
        let (outer, len, inner) = problem.size();
        let size = (outer as u64, len as u64, inner as u64);
        let row = table.choose(&size).map_err(|wrong| Error::Internal(wrong.to_string()))?;
        let row = &table.rules()[row];
        let condition = row.when.as_ref().map(ToString::to_string);
        Ok(Self { condition, ..Self::from_spec(row.spec.clone())? })
    }

    /// Creates the choice of a given spec, without a table.
    ///
    /// # Errors
    /// Returns [`Error::Spec`] if the spec is invalid.
    pub fn from_spec(spec: ReduceSpec) -> Result<Self, Error> {
        let kernel = Kernel::<ReduceSpec, ByName>::new(spec.clone())?;
        Ok(Self { condition: None, spec, kernel })
    }
}

/// Input arrays of a reduction, on a GPU or still on the host.
#[derive(Debug)]
pub struct Inputs {
    /// Period of each array's elements.
    pub tiles: Vec<Tile>,
    len: usize,
    on_gpu: Option<Vec<CudaSlice<u8>>>,
}

impl Inputs {
    /// Creates `count` arrays of `len` elements.
    ///
    /// # Errors
    /// Returns the errors of [`Tile::on_gpu`].
    pub fn new(
        gpu: Option<Gpu<'_>>,
        element: DataType,
        len: usize,
        count: usize,
        seed: u64,
    ) -> Result<Self, Error> {
        let tile = |n| Tile::new(element, seed.wrapping_mul(4).wrapping_add(n), len);
        let tiles: Vec<Tile> = (0..count as u64).map(tile).collect();
        let on_gpu = match gpu {
            None => None,
            Some(gpu) => {
                let arrays = tiles.iter().map(|tile| tile.on_gpu(gpu, len));
                Some(arrays.collect::<Result<_, _>>()?)
            }
        };
        Ok(Self { tiles, len, on_gpu })
    }

    /// Returns true if these arrays are the inputs of a problem.
    pub fn suit(&self, problem: &ReductionProblem) -> bool {
        let elements = self.tiles.first().map(Tile::element);
        let enough = self.tiles.len() >= problem.inputs();
        elements == Some(problem.element) && self.len == problem.len() && enough
    }
}

/// Returns the bits of a result before the launch. They are a NaN that no kernel computes, or
/// neither 0 nor 1 for a boolean.
pub fn poison(elem: Elem) -> u64 {
    match elem {
        Elem::F64 | Elem::I64 | Elem::U64 => 0x7ff8_dead_7fc0_dead,
        Elem::F16 => 0x7ead,
        Elem::Bf16 => 0x7fea,
        // Neither of the two boolean values.
        Elem::U8 => 0xad,
        _ => 0x7fc0_dead,
    }
}

macro_rules! outputs {
    ($($name:ident: $element:ty),*) => {
        /// Output array of a reduction.
        #[derive(Debug)]
        enum Output {
            $($name(Buffer<$element>)),*
        }

        impl Output {
            fn poisoned(device: &Device, elem: Elem, len: usize) -> Result<Self, Error> {
                let bytes = poison(elem).to_le_bytes();
                Ok(match elem {
                    $(Elem::$name => {
                        Self::$name(device.upload_of(&vec![<$element>::of_bytes(&bytes); len])?)
                    })*
                    other => return Err(Error::Internal(format!("no result is of type {other}"))),
                })
            }

            fn bits(&self, device: &Device) -> Result<Vec<u64>, Error> {
                match self {
                    $(Self::$name(buffer) => {
                        Ok(device.download(buffer)?.into_iter().map(TileElement::bits).collect())
                    })*
                }
            }
        }

        /// Adds an output to the call of a kernel.
        macro_rules! with_output {
            ($call:expr, $of:expr, $array:expr) => {
                match $array {
                    $(Output::$name(buffer) => $call.output($of, buffer)),*
                }
            };
        }
    };
}
outputs!(
    F32: f32, F64: f64, F16: f16, Bf16: bf16, U8: u8, I32: i32, U32: u32, I64: i64, U64: u64
);

/// Segment offsets, in the kernel's index type.
#[derive(Debug)]
enum Ends {
    U32(Segments),
    U64(Segments<u64>),
}

impl Ends {
    fn new(device: &Device, spec: &ReduceSpec, offsets: &[u32]) -> Result<Self, Error> {
        if spec.index.elem() != Elem::U64 {
            return Ok(Self::U32(Segments::new(device, offsets)?));
        }
        let offsets: Vec<u64> = offsets.iter().map(|offset| u64::from(*offset)).collect();
        Ok(Self::U64(Segments::new(device, &offsets)?))
    }

    fn len(&self) -> usize {
        match self {
            Self::U32(segments) => segments.len(),
            Self::U64(segments) => segments.len(),
        }
    }
}

/// Reduction on a device, which can be launched repeatedly.
#[derive(Debug)]
pub struct ReductionLaunch<'l> {
    device: &'l Device,
    chosen: &'l KernelChoice,
    /// Extents of the arrays as (outer, length, inner). For segments, the length is the total
    /// number of elements.
    size: (usize, usize, usize),
    segments: Option<Ends>,
    outputs: Vec<(&'static str, Output)>,
}

impl<'l> ReductionLaunch<'l> {
    /// Prepares a reduction of arrays of this size, with poisoned outputs and the given segment
    /// offsets.
    ///
    /// # Errors
    /// Returns the errors of [`Device::upload_of`] and of [`Segments::new`].
    pub fn new(
        device: &'l Device,
        chosen: &'l KernelChoice,
        size: (usize, usize, usize),
        offsets: Option<&[u32]>,
    ) -> Result<Self, Error> {
        let segments = offsets.map(|offsets| Ends::new(device, &chosen.spec, offsets));
        let segments = segments.transpose()?;
        let (outer, _, inner) = size;
        let results = segments.as_ref().map_or(outer * inner, Ends::len);
        let results = results * chosen.spec.topk.map_or(1, |k| k as usize);
        let mut outputs = Vec::new();
        for (name, elem) in chosen.spec.results() {
            outputs.push((name, Output::poisoned(device, elem, results)?));
        }
        Ok(Self { device, chosen, size, segments, outputs })
    }

    /// Launches the reduction once. On a GPU the call returns before the work is done.
    ///
    /// # Errors
    /// Returns the errors of the runtime.
    pub fn run(&mut self, inputs: &Inputs) -> Result<LaunchReport, Error> {
        match self.chosen.spec.element {
            DataType::F32 => self.run_of::<f32>(inputs),
            DataType::F64 => self.run_of::<f64>(inputs),
            DataType::F16 => self.run_of::<f16>(inputs),
            DataType::Bf16 => self.run_of::<bf16>(inputs),
            DataType::I8 => self.run_of::<i8>(inputs),
            DataType::U8 => self.run_of::<u8>(inputs),
            DataType::I32 => self.run_of::<i32>(inputs),
            DataType::U32 => self.run_of::<u32>(inputs),
            DataType::I64 => self.run_of::<i64>(inputs),
            DataType::U64 => self.run_of::<u64>(inputs),
            element => newer_word(element),
        }
    }

    /// Returns the bits of all results, for each output.
    ///
    /// # Errors
    /// Returns the errors of [`Device::download`].
    pub fn results(&self) -> Result<Vec<Vec<u64>>, Error> {
        self.outputs.iter().map(|(_, output)| output.bits(self.device)).collect()
    }

    fn run_of<T: TileElement>(&mut self, inputs: &Inputs) -> Result<LaunchReport, Error> {
        match &inputs.on_gpu {
            Some(arrays) => {
                let views: Vec<CudaView<'_, T>> = arrays
                    .iter()
                    .map(|array| elements(array, inputs.len))
                    .collect::<Result<_, _>>()?;
                self.fold(&views)
            }
            None => {
                let arrays = inputs.tiles.iter().map(|tile| tile.elements::<T>(inputs.len));
                let buffers = arrays.map(|array| self.device.upload_of(&array));
                let buffers: Vec<Buffer<T>> = buffers.collect::<Result<_, _>>()?;
                self.fold(&buffers)
            }
        }
    }

    fn fold<T: Element, V: Vector<Element = T>>(
        &mut self,
        arrays: &[V],
    ) -> Result<LaunchReport, Error> {
        let Self { device, chosen, segments, outputs, .. } = self;
        let (outer, len, inner) = self.size;
        let view = |array| match chosen.spec.over {
            Over::All | Over::Segments => MatrixRef::new(array, 1, len),
            Over::Rows => MatrixRef::new(array, outer, len),
            Over::Columns => MatrixRef::new(array, len, inner),
            Over::Middle => MatrixRef::batch(array, outer, len, inner),
            over => newer_word(over),
        };
        let views: Vec<MatrixRef<'_, T>> = arrays.iter().map(view).collect::<Result<_, _>>()?;
        let mut call = chosen.kernel.call(device);
        for (name, view) in chosen.spec.inputs().into_iter().zip(&views) {
            call = call.input(name, view);
        }
        for (name, elem) in chosen.spec.numbers() {
            call = match elem {
                Elem::F32 => call.number(name, 0.5_f32),
                Elem::F64 => call.number(name, 0.5_f64),
                Elem::I32 => call.number(name, 1_i32),
                Elem::U32 => call.number(name, 1_u32),
                Elem::I64 => call.number(name, 1_i64),
                other => return Err(Error::Internal(format!("no number is of type {other}"))),
            };
        }
        for (name, output) in outputs {
            call = with_output!(call, name, output);
        }
        call = match segments {
            None => call,
            Some(Ends::U32(segments)) => call.segments(segments),
            Some(Ends::U64(segments)) => call.segments(segments),
        };
        call.launch()
    }
}

#[cfg(test)]
mod tests {
    use super::super::problem::{Along, Fold, Kind};
    use super::super::shapes;
    use super::*;
    use gemm_runtime::ReduceTable;
    use gemm_runtime::spec::Op;

    #[test]
    fn launches_use_the_rules_of_the_shipped_tables() {
        let problems = Kind::ALL.map(|kind| shapes::problems(kind, false)).concat();
        let mut lines = Vec::new();
        for problem in problems.iter().filter(|problem| problem.fold == Fold::Sum) {
            let spec = problem.spec().expect("a line");
            if problem.element != DataType::F32 {
                continue;
            }
            let table = ReduceTable::<f32>::tuned(&spec).expect("a table");
            let (outer, len, inner) = problem.size();
            let choice = table.choice((outer as u64, len as u64, inner as u64)).expect("in range");
            let chosen = KernelChoice::new(problem).expect("a kernel");
            assert_eq!(
                (chosen.spec.to_string(), chosen.condition),
                (choice.spec, choice.condition)
            );
            lines.push(chosen.spec.to_string());
        }
        lines.sort();
        lines.dedup();
        assert!(lines.len() > 8, "{lines:?}");
    }

    /// Every operator reduces arrays of every type that it supports, and writes its result.
    #[test]
    fn every_operator_is_launched() {
        let device = Device::simulator();
        let mut launched = 0;
        for (op, element) in
            Op::ALL.iter().flat_map(|op| DataType::ALL.iter().map(move |of| (op, *of)))
        {
            let spec = format!("op: {op}, type: {element}, over: rows");
            let Ok(parsed) = spec.parse() else { continue };
            let chosen = KernelChoice::from_spec(parsed).expect(&spec);
            let inputs = Inputs::new(None, element, 35, chosen.spec.inputs().len(), 1);
            let mut launch = ReductionLaunch::new(&device, &chosen, (5, 7, 1), None).expect(&spec);
            launch.run(&inputs.expect("arrays")).expect(&spec);
            let results = launch.results().expect("results");
            for (bits, (name, elem)) in results.iter().zip(chosen.spec.results()) {
                assert!(bits.len() == 5 && !bits.contains(&poison(elem)), "{spec}: {name}");
                assert!(elem != Elem::U8 || bits.iter().all(|bit| *bit < 2), "{spec}: {bits:?}");
            }
            launched += 1;
        }
        assert!(launched > 80, "{launched}");
    }

    #[test]
    fn outputs_are_poisoned() {
        let device = Device::simulator();
        let (along, fold, element) = (Along::Axis(1), Fold::MeanVar, DataType::F32);
        let problem = ReductionProblem { shape: vec![3, 4], along, fold, element, how: None };
        let chosen = KernelChoice::new(&problem).expect("a kernel");
        let launch = ReductionLaunch::new(&device, &chosen, problem.size(), None).expect("outputs");
        assert_eq!(launch.results().expect("two outputs"), vec![vec![poison(Elem::F32); 3]; 2]);
    }
}
