//! Distribution of a reduction's elements and partial results over ranks.

use super::error::impossible;
use super::{Block, Distribution};
use crate::partition::{Partition, partition};
use crate::{Error, Result};
use gemm_dsl::ir::Elem;
use gemm_dsl::spec::ReduceSpec;
use std::ops::Range;

/// Cached reduction request, with its plan.
pub(crate) struct CachedReduction {
    line: String,
    distributions: Vec<Distribution>,
    extents: Option<[usize; 3]>,
    pub(crate) spec: ReduceSpec,
    /// Text on which all ranks must agree.
    pub(crate) text: String,
    /// Plan, once all ranks have agreed.
    pub(crate) cut: Option<ReductionPlan>,
    /// True if this rank has loaded everything it launches for the reduction.
    pub(crate) is_loaded: bool,
}

/// Distribution of a reduction over ranks.
pub(crate) struct ReductionPlan {
    pub(crate) partition: Partition,
    /// Partials that each rank computes, and partials that it needs. `None` if every rank has all
    /// elements of its results.
    pub(crate) partials: Option<PartialsPlan>,
}

pub(crate) struct PartialsPlan {
    pub(crate) elems: Vec<Elem>,
    pub(crate) has: Vec<Block>,
    pub(crate) needed: Vec<Block>,
}

impl CachedReduction {
    pub(crate) fn is(
        &self,
        line: &str,
        distributions: &[&Distribution],
        extents: Option<[usize; 3]>,
    ) -> bool {
        (self.line.as_str(), self.extents) == (line, extents)
            && self.distributions.iter().eq(distributions.iter().copied())
    }

    pub(crate) fn parse(
        line: &str,
        distributions: &[&Distribution],
        extents: Option<[usize; 3]>,
    ) -> Result<Self> {
        let said: Vec<String> = distributions.iter().map(ToString::to_string).collect();
        let of = extents.map(|[outer, middle, inner]| format!(", of {outer}x{middle}x{inner}"));
        Ok(Self {
            line: line.to_owned(),
            distributions: distributions.iter().copied().cloned().collect(),
            extents,
            spec: line.parse()?,
            text: format!("`{line}` of {}{}", said.join(", "), of.unwrap_or_default()),
            cut: None,
            is_loaded: false,
        })
    }

    /// Returns the plan, once all ranks have agreed on the request.
    pub(crate) fn agreed(&mut self, ranks: usize) -> Result<&ReductionPlan> {
        if let Some(cut) = self.cut.take() {
            return Ok(self.cut.insert(cut));
        }
        let Self { line, distributions, extents, spec, .. } = &*self;
        let Some((distribution, others)) = distributions.split_first() else {
            return Err(Error::internal("a reduction has an input".to_owned()));
        };
        if let Some(other) = others.iter().find(|other| *other != distribution) {
            return Err(impossible(
                format!("inputs distributed as {distribution} and as {other}"),
                "all inputs of a reduction need the same distribution",
            ));
        }
        let partition = partition(spec, distribution, *extents, ranks)?;
        let mut partials = None;
        if !partition.are_whole() {
            partition.check(line, spec)?;
            let runs = |range: &Range<usize>| {
                let run = |at: usize| spec.runs(at as u64).unwrap_or_default() as usize;
                run(range.start)..run(range.end)
            };
            let all_runs = runs(&(0..partition.total));
            let has = partition.of_ranks.iter().map(|of| of.partials(spec.over, runs(&of.folded)));
            let needed = partition.of_ranks.iter().map(|of| match of.is_idle() {
                true => Block::new(0..0, 0..0),
                false => of.partials(spec.over, all_runs.clone()),
            });
            let (has, needed) = (has.collect(), needed.collect());
            partials = Some(PartialsPlan { elems: elems(spec)?, has, needed });
        }
        Ok(self.cut.insert(ReductionPlan { partition, partials }))
    }
}

/// Element types of a spec's partials, by component.
fn elems(spec: &ReduceSpec) -> Result<Vec<Elem>> {
    Ok(spec.plan()?.partials()?.into_iter().map(|(_, elem)| elem).collect())
}
