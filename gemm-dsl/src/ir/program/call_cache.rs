//! Cache of the calls of a program.

use super::KernelId;
use super::bind::ProgramValues;
use crate::ir::Elem;
use crate::ir::contract::{ArrayAxis, ArrayPlace, BoundArray, Call};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, PoisonError};

/// Number of problems in a cache.
const PROBLEMS: usize = 4;

/// Alignment of the base addresses to which contracts refer, in bytes.
const ALIGNMENT: u64 = 256;

/// Checked call of each launch of a run, with its kernel.
pub(super) type Calls = Arc<[(KernelId, Call)]>;

/// Calls for the latest problems of a program. A run of one of these problems checks no contract
/// again.
///
/// Problems are equal if a contract cannot distinguish them: the values are equal, and so are the
/// element type, length and axes of each array, and the alignment of its address. A problem with a
/// list of arrays is not cached.
#[derive(Debug, Default)]
pub struct CallCache {
    latest: Mutex<Latest>,
}

#[derive(Debug, Default)]
struct Latest {
    problems: SmallVec<[CachedProblem; PROBLEMS]>,
    /// Problem that is replaced next if all places are taken.
    oldest: usize,
}

#[derive(Debug)]
struct CachedProblem {
    values: ProgramValues,
    arrays: SmallVec<[CachedArray; 4]>,
    calls: Calls,
}

/// Properties of an array that contracts read.
#[derive(Debug)]
struct CachedArray {
    elem: Elem,
    len: u64,
    /// Address modulo [`ALIGNMENT`].
    offset: u64,
    axes: Option<SmallVec<[ArrayAxis; 3]>>,
}

impl CallCache {
    /// Returns the calls of an equal problem. The arrays are the inputs and outputs of the program,
    /// in its order.
    pub(super) fn get<'a>(
        &self,
        values: &ProgramValues,
        arrays: impl Iterator<Item = BoundArray<'a>> + Clone,
    ) -> Option<Calls> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let mut problems = latest.problems.iter();
        let equal = problems.find(|problem| problem.is(values, arrays.clone()))?;
        Some(Arc::clone(&equal.calls))
    }

    /// Adds the calls of a problem, in place of the oldest.
    pub(super) fn insert<'a>(
        &self,
        values: &ProgramValues,
        arrays: impl Iterator<Item = BoundArray<'a>>,
        calls: &Calls,
    ) {
        let Some(arrays) = arrays.map(|array| CachedArray::new(&array)).collect() else { return };
        let problem = CachedProblem { values: values.clone(), arrays, calls: Arc::clone(calls) };
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let Latest { problems, oldest } = &mut *latest;
        match problems.len() < PROBLEMS {
            true => problems.push(problem),
            false => {
                problems[*oldest] = problem;
                *oldest = (*oldest + 1) % PROBLEMS;
            }
        }
    }
}

impl CachedProblem {
    fn is<'a>(
        &self,
        values: &ProgramValues,
        mut arrays: impl Iterator<Item = BoundArray<'a>>,
    ) -> bool {
        self.values == *values
            && self.arrays.iter().all(|own| arrays.next().is_some_and(|array| own.is(&array)))
    }
}

impl CachedArray {
    /// Properties of a single array, or `None` for a list.
    fn new(array: &BoundArray<'_>) -> Option<Self> {
        let ArrayPlace::One(region) = array.place else { return None };
        let (len, offset) = (region.len, region.address % ALIGNMENT);
        Some(Self { elem: array.elem, len, offset, axes: array.axes.map(SmallVec::from_slice) })
    }

    fn is(&self, array: &BoundArray<'_>) -> bool {
        let ArrayPlace::One(region) = array.place else { return false };
        self.elem == array.elem
            && self.len == region.len
            && self.offset == region.address % ALIGNMENT
            && self.axes.as_deref() == array.axes
    }
}
