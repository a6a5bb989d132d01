//! Reductions of sharded arrays on the simulator. A program reduces each shard. A last program
//! reduces the partial results of all runs, in the order of run numbers.

use super::placement::{Image, Images, Placement};
use super::simulate::simulate;
use super::{Case, Shape};
use gemm_dsl::ir::{Elem, Extent, Variant, VerifiedProgram};
use gemm_dsl::spec::ReduceSpec;
use gemm_oracle::random::Random;
use std::ops::Range;

/// Outcome of a case that was reduced shard by shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folded {
    /// Bits of the partial results of all runs. If a partial result has several parts, each part
    /// has its own array.
    pub partials: Vec<Vec<u64>>,
    /// Bits of each output.
    pub results: Vec<Vec<u64>>,
    /// Access variants of the shards.
    pub variants: Vec<Variant>,
}

/// Programs of a spec with `run`.
#[derive(Debug)]
pub struct Shards<'s> {
    spec: &'s ReduceSpec,
    shard: VerifiedProgram,
    last: VerifiedProgram,
    parts: Vec<(String, Elem)>,
}

impl<'s> Shards<'s> {
    /// Programs of a spec.
    ///
    /// # Errors
    /// Returns the errors of an invalid spec.
    pub fn new(spec: &'s ReduceSpec) -> Result<Self, String> {
        let text = |faults: gemm_dsl::SpecErrors| format!("`{spec}`: {faults}");
        let plan = spec.plan().map_err(text)?;
        let (shard, last) = (plan.program_of_shard(), plan.program_of_partials());
        let parts = plan.partials().map_err(text)?;
        Ok(Self { spec, shard: shard.map_err(text)?, last: last.map_err(text)?, parts })
    }

    /// Reduces a case that is cut into these ranges. `placement` returns the placement of the
    /// arrays of each launch.
    ///
    /// # Errors
    /// Returns a description of a failure, which includes writes outside of the outputs and writes
    /// to inputs.
    pub fn fold(
        &self,
        case: &Case,
        cut: &[Range<usize>],
        mut placement: impl FnMut() -> Placement,
    ) -> Result<Folded, String> {
        let Shape::Tensor { outer, len, inner } = case.shape else {
            return Err("segments are not cut".to_owned());
        };
        let (mut left, mut variants) = (Vec::new(), Vec::new());
        for range in cut {
            let placed = placement();
            let piece = case.piece(range);
            let mut images = piece.images(&placed);
            let runs = self.runs(range.len());
            let extents = self.of_partials(&case.shape, runs);
            let start = |nth: usize| placed.offset + nth * placed.shift;
            let outputs = self.parts.iter().enumerate();
            let outputs =
                outputs.map(|(n, (_, elem))| Image::new(*elem, &extents, start(n + 1), &[]));
            images.outputs = outputs.collect();
            images.extents.push((Extent::FIRST, range.start as u64));
            images.extents.push((Extent::TOTAL, len as u64));
            variants.extend(run(&self.shard, &mut images, &format!("{range:?} of {len}"))?);
            left.push((runs, images.results()?));
        }
        let partials: Vec<Vec<u64>> = (0..self.parts.len())
            .map(|part| {
                let of_outer = |nth: usize| {
                    left.iter().flat_map(move |(runs, parts)| {
                        let per_outer = runs * if self.has_inner() { inner } else { 1 };
                        &parts[part][nth * per_outer..(nth + 1) * per_outer]
                    })
                };
                let count = if self.has_outer() { outer } else { 1 };
                (0..count).flat_map(of_outer).copied().collect()
            })
            .collect();
        let results = self.results(case, &partials, &placement())?;
        Ok(Folded { partials, results, variants })
    }

    /// Results computed from the partial results of all runs.
    fn results(
        &self,
        case: &Case,
        partials: &[Vec<u64>],
        placed: &Placement,
    ) -> Result<Vec<Vec<u64>>, String> {
        let Shape::Tensor { len, .. } = case.shape else { unreachable!("segments are not cut") };
        let extents = self.of_partials(&case.shape, self.runs(len));
        let mut images = case.images(placed);
        let inputs = self.parts.iter().zip(partials).enumerate().map(|(n, ((_, elem), bits))| {
            let start = placed.offset + n * placed.shift;
            Image::new(*elem, &extents, start, &[]).filled(bits)
        });
        images.inputs = inputs.collect();
        run(&self.last, &mut images, "of partials")?;
        images.results()
    }

    fn runs(&self, len: usize) -> usize {
        let runs = self.spec.runs(len as u64);
        runs.unwrap_or_else(|| unreachable!("it has shards")) as usize
    }

    fn has_outer(&self) -> bool {
        self.last.extents.contains(&Extent::OUTER)
    }

    fn has_inner(&self) -> bool {
        self.last.extents.contains(&Extent::INNER)
    }

    /// Extents of an array of partial results.
    fn of_partials(&self, shape: &Shape, runs: usize) -> Vec<usize> {
        let of = |has: bool, extent| has.then(|| shape.extent(extent) as usize);
        let outer = of(self.has_outer(), Extent::OUTER);
        outer.into_iter().chain([runs]).chain(of(self.has_inner(), Extent::INNER)).collect()
    }
}

/// Launches a program. It is an error if the launch changes its inputs.
fn run(program: &VerifiedProgram, images: &mut Images, what: &str) -> Result<Vec<Variant>, String> {
    let before = images.inputs.clone();
    let steps = simulate(program, images).map_err(|error| format!("{what}: {error}"))?;
    if images.inputs != before {
        return Err(format!("{what}: an input is written"));
    }
    Ok(steps.into_iter().map(|step| step.variant).collect())
}

/// Cuts `len` elements between runs into `shards` ranges, some of which are empty.
pub fn cut(len: usize, run: usize, shards: usize, random: &mut Random) -> Vec<Range<usize>> {
    let runs = len.div_ceil(run) as u64;
    let mut ends: Vec<usize> = (1..shards)
        .map(|_| ((random.bits() % (runs + 1)) as usize * run).min(len))
        .chain([len])
        .collect();
    ends.sort_unstable();
    let begins = std::iter::once(0).chain(ends.iter().copied());
    begins.zip(ends.iter().copied()).map(|(begin, end)| begin..end).collect()
}
