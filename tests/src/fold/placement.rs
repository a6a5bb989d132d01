//! Placement of a launch's arrays in memory. The start may be unaligned, and rows may be padded.
//! Views have the exact length, and all other memory is poison.

use super::{Case, Shape, closures};
use gemm_dsl::ir::contract::ArrayAxis;
use gemm_dsl::ir::{Elem, Extent};
use gemm_oracle::random::Random;

/// Maximum number of inputs of a reduction.
const MOST_INPUTS: usize = 4;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Elements between a 16-byte aligned address and the array. Array `n` has `n · shift` more.
    pub offset: usize,
    /// Increase of the offset from one array to the next.
    pub shift: usize,
    /// Padding elements of each input after each row and, if there are several matrices, after each
    /// matrix. Only `pitched` kernels support padding.
    pub padding: [[usize; 2]; MOST_INPUTS],
}

impl Placement {
    pub const PACKED: Placement = Placement::padded([0, 0]);

    /// Aligned placement with the same padding in each input.
    pub const fn padded(padding: [usize; 2]) -> Self {
        Self { offset: 0, shift: 0, padding: [padding; MOST_INPUTS] }
    }

    pub fn random(random: &mut Random) -> Self {
        let mut below = |n: u64| (random.bits() % n) as usize;
        // The numbers are often whole vectors of any type, so that both access variants run.
        let step = [1, 16][below(2)];
        let (offset, shift) = (below(5) * step, below(2) * step);
        // If not all strides are whole vectors, most are, so that often only one stride is not.
        let whole = below(2) == 0;
        let mut some = |most: u64| below(most) * if whole || below(4) > 0 { 16 } else { 1 };
        Self { offset, shift, padding: [(); MOST_INPUTS].map(|()| [some(4), some(3)]) }
    }
}

/// Array in its memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    pub elem: Elem,
    /// Bits of all elements of the memory.
    pub memory: Vec<u64>,
    /// Index of the first element of the array.
    pub start: usize,
    /// Elements from the first to the last.
    pub len: usize,
    pub axes: Vec<ArrayAxis>,
}

/// Elements after an array.
const BEHIND: usize = 5;

impl Image {
    pub(super) fn new(elem: Elem, extents: &[usize], start: usize, padding: &[usize]) -> Self {
        let (mut axes, mut stride) = (Vec::new(), 1);
        for (nth, extent) in extents.iter().rev().enumerate() {
            axes.insert(0, ArrayAxis { extent: *extent as u64, stride: stride as u64 });
            stride = stride * extent + padding.get(nth).copied().unwrap_or(0);
        }
        let reach = axes.iter().map(|axis| axis.extent.saturating_sub(1) * axis.stride);
        let len = if extents.contains(&0) { 0 } else { reach.sum::<u64>() as usize + 1 };
        let memory = vec![poison(elem); start + len + BEHIND];
        Self { elem, memory, start, len, axes }
    }

    /// Position of each element in the memory, in packed order.
    fn places(&self) -> Vec<usize> {
        let mut places = vec![self.start];
        for axis in &self.axes {
            let along = |place: &usize| {
                let place = *place;
                (0..axis.extent).map(move |n| place + (n * axis.stride) as usize)
            };
            places = places.iter().flat_map(along).collect();
        }
        places
    }

    /// Fills the array with these elements.
    pub(super) fn filled(mut self, bits: &[u64]) -> Self {
        for (place, bits) in self.places().into_iter().zip(bits) {
            self.memory[place] = *bits;
        }
        self
    }

    /// Bits of the elements in packed order.
    ///
    /// # Errors
    /// Returns the position and value of a write outside of the array.
    pub fn elements(&self) -> Result<Vec<u64>, String> {
        let places = self.places();
        let mut inside = vec![false; self.memory.len()];
        places.iter().for_each(|place| inside[*place] = true);
        let poison = poison(self.elem);
        for (at, bits) in self.memory.iter().enumerate() {
            if !inside[at] && *bits != poison {
                return Err(format!(
                    "{bits:#x} is written {at} elements after the start, outside of the results"
                ));
            }
        }
        Ok(places.into_iter().map(|place| self.memory[place]).collect())
    }
}

/// Bits of poison: a NaN that no arithmetic produces, or for integers a large recognisable number.
pub fn poison(elem: Elem) -> u64 {
    match elem {
        Elem::F64 => 0x7ff8_dead_dead_dead,
        Elem::F32 | Elem::Tf32 => 0x7fc0_dead,
        Elem::F16 => 0x7ead,
        Elem::Bf16 => 0x7fed,
        elem => 0x7eee_eeee_eeee_eeee & (u64::MAX >> (64 - 8 * elem.size())),
    }
}

/// Arrays of a launch, and its extents.
#[derive(Clone, Debug)]
pub struct Images {
    /// Inputs, followed by the offsets of segments.
    pub inputs: Vec<Image>,
    pub outputs: Vec<Image>,
    pub extents: Vec<(Extent, u64)>,
    /// Name and bits of each number.
    pub numbers: Vec<(String, u64)>,
}

impl Images {
    pub(super) fn new(case: &Case, placement: &Placement) -> Self {
        let (spec, shape) = (&case.spec, &case.shape);
        let start = |nth: usize| placement.offset + nth * placement.shift;
        let padding = |nth: usize| if spec.pitched { &placement.padding[nth][..] } else { &[] };
        let extents = shape.elements(spec.over);
        let inputs = case.inputs.iter().enumerate();
        let mut inputs: Vec<Image> = inputs
            .map(|(n, bits)| Image::new(case.elem(), &extents, start(n), padding(n)).filled(bits))
            .collect();
        if let Shape::Segments(offsets) = shape {
            let (elem, nth) = (spec.index.elem(), inputs.len());
            inputs.push(Image::new(elem, &[offsets.len()], start(nth), &[]).filled(offsets));
        }
        let extents = case.results();
        let outputs = spec.results().into_iter().enumerate();
        let outputs =
            outputs.map(|(n, (_, elem))| Image::new(elem, &extents, start(n + 1), &[])).collect();
        let all = [Extent::OUTER, Extent::LENGTH, Extent::INNER, Extent::SEGMENTS];
        let extents = all.map(|extent| (extent, shape.extent(extent))).to_vec();
        let number = |(name, elem): (&str, Elem)| (name.to_owned(), closures::number(elem));
        let numbers = spec.numbers().into_iter().map(number).collect();
        Self { inputs, outputs, extents, numbers }
    }

    pub fn extent(&self, extent: Extent) -> u64 {
        let found = self.extents.iter().find(|(of, _)| *of == extent);
        found.map_or_else(|| panic!("the extent {extent} is unknown"), |(_, value)| *value)
    }

    /// Bits of each output.
    ///
    /// # Errors
    /// Returns an error if memory outside of an output was written.
    pub fn results(&self) -> Result<Vec<Vec<u64>>, String> {
        self.outputs.iter().map(Image::elements).collect()
    }
}
