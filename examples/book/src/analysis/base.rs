//! Comparison of a kernel with its base.

use super::{CHANGED, Subject};
use crate::access::{self, Access};
use crate::comparison::{self, AccessComparison};
use crate::observation::{Observation, SampleShape, Spec, entries};
use crate::occupancy::{self, Registers};
use crate::{diff, views};
use gemm_bench::cli::Failure;
use gemm_dsl::cuda;

/// Base with which a kernel is compared.
pub(super) struct Base<'a> {
    pub(super) title: &'a str,
    /// Spec as the user wrote it.
    pub(super) line: &'a str,
    pub(super) spec: Spec,
}

/// Kernel that is compared with a [`Base`].
pub(super) struct Own<'a> {
    pub(super) spec: &'a Spec,
    pub(super) looked: &'a Observation,
    pub(super) text: &'a str,
    pub(super) accesses: &'a [Access],
}

impl<'a> Base<'a> {
    /// Returns the base of a subject, if it has one.
    ///
    /// # Errors
    /// Returns faults of the base's spec.
    pub(super) fn new(subject: &'a Subject) -> Result<Option<Self>, Failure> {
        let Some((title, line)) = &subject.base else { return Ok(None) };
        Ok(Some(Self { title, line, spec: Spec::parse(subject.family, line)? }))
    }

    /// Compares the specs, sources, counters, and accesses to the same arrays of both kernels at a
    /// shape.
    ///
    /// # Errors
    /// Returns the error of the base's launch.
    pub(super) fn compare(
        &self,
        at: SampleShape,
        own: &Own<'_>,
        registers: &[Registers],
    ) -> Result<(diff::KernelDiff, Vec<AccessComparison>), Failure> {
        let Self { title, line, spec: other } = self;
        let theirs = other.look(at).map_err(|failure| {
            Failure::Usage(format!("the spec to compare with, `{line}`: {failure}"))
        })?;
        let cuda::Listing { text, lines, .. } = cuda::listing(&theirs.kernel);
        let (hunks, more) = diff::first_hunks(&text, own.text, CHANGED);
        let accesses = access::all(&theirs.kernel, &lines, &theirs.trace);
        let change = diff::KernelDiff {
            base: (*title).to_owned(),
            line: (*line).to_owned(),
            keys: diff::keys(&entries(&other.line())?, &entries(&own.spec.line())?),
            counters: diff::counters(
                &theirs.counts()?.times(other.launches(at)),
                &own.looked.counts()?.times(own.spec.launches(at)),
            ),
            launches: [other, own.spec].map(|spec| spec.launches(at)),
            hunks,
            more,
            is_same_kernel: views::text(&text, &theirs.kernel.name)
                == views::text(own.text, &own.looked.kernel.name),
            shared_bytes: theirs.kernel.shared_bytes(),
            residents: occupancy::all(&theirs.kernel, registers),
        };
        Ok((change, comparison::compare(&accesses, own.accesses)))
    }
}
