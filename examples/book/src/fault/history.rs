//! History of the element that the faulty access touches. It exists only for faults in memory
//! accesses of lanes.

use crate::ownership::moves::elements_of;
use gemm_dsl::ir::{Kernel, Space};
use gemm_runtime::sim::fault::{EarlierAccess, Fault, FaultKind, Position};
use gemm_runtime::sim::watch::{AccessEvent, Event, EventKind, Kind, Pattern, Trace};

/// Number of a thread in its block.
pub(super) fn number(kernel: &Kernel, thread: (u32, u32)) -> u32 {
    thread.0 + kernel.geometry.block.0 * thread.1
}

/// Accesses to an element in the order of the simulation.
pub(super) struct ElementHistory<'t> {
    pub(super) touches: Vec<ElementAccess<'t>>,
    /// Index of the faulty access.
    pub(super) own: usize,
    /// Index of the access that is not ordered with the faulty one, if it was recorded.
    pub(super) unordered: Option<usize>,
}

/// Access that touches the element.
pub(super) struct ElementAccess<'t> {
    pub(super) event: &'t Event,
    pub(super) kind: Kind,
    /// Threads that touch the element, by their numbers in the block.
    threads: Vec<u32>,
    /// Thread named in the report.
    pub(super) thread: u32,
    /// Access pattern of the warp. `None` if the access was refused.
    pub(super) pattern: Option<&'t Pattern>,
}

/// Element and access of a fault.
struct FaultElement {
    buffer: usize,
    /// Index of the element in the buffer. `None` if it would be negative.
    element: Option<u64>,
    /// True if the access writes.
    writes: bool,
}

impl FaultElement {
    fn new(kernel: &Kernel, fault: &Fault) -> Option<Self> {
        if let Some(refused) = &fault.refused {
            let lane = number(kernel, fault.thread) % 32;
            let reach = refused.lanes.iter().find(|reach| reach.lane == lane)?;
            let element = reach.at.and_then(|at| u64::try_from(at).ok());
            return Some(Self { buffer: refused.buffer, element, writes: refused.kind.writes() });
        }
        let (place, writes) = accessed(&fault.kind)?;
        let buffer = kernel.buffers.iter().position(|buffer| buffer.name == place.buffer)?;
        Some(Self { buffer, element: place.at, writes })
    }
}

/// Returns true if a fault concerns an element of a buffer.
pub(super) fn is_of_element(kernel: &Kernel, fault: &Fault) -> bool {
    FaultElement::new(kernel, fault).is_some()
}

/// Returns the element of an executed faulty access, and true if the access writes.
fn accessed(kind: &FaultKind) -> Option<(&Position, bool)> {
    match kind {
        FaultKind::Race { place, writes, .. } => Some((place, *writes)),
        FaultKind::CopyNotAwaited { place, .. } => Some((place, false)),
        FaultKind::Uninitialised { place } if place.space != Space::Register => {
            Some((place, false))
        }
        _ => None,
    }
}

/// Returns the access that the faulty one is not ordered with.
fn earlier(kind: &FaultKind) -> Option<&EarlierAccess> {
    match kind {
        FaultKind::Race { earlier, .. } | FaultKind::CopyNotAwaited { earlier, .. } => {
            Some(earlier)
        }
        _ => None,
    }
}

impl<'t> ElementHistory<'t> {
    /// Returns the history of the element. `None` if the faulty access was not recorded.
    pub(super) fn new(kernel: &Kernel, trace: &'t Trace, fault: &Fault) -> Option<Self> {
        let (about, thread) = (FaultElement::new(kernel, fault)?, number(kernel, fault.thread));
        let made =
            trace.accesses().filter_map(|access| ElementAccess::new(kernel, &about, &access));
        let mut touches: Vec<ElementAccess<'t>> = made.collect();
        if let Some(refused) = &fault.refused {
            // The refused access is the last event of its warp.
            let is_it =
                |event: &&Event| event.what == EventKind::Refused && event.warp == thread / 32;
            let event = trace.events.iter().rfind(is_it)?;
            let (kind, threads) = (refused.kind, vec![thread]);
            touches.push(ElementAccess { event, kind, threads, thread, pattern: None });
        }
        let is_own = |touch: &ElementAccess<'_>| {
            touch.event.stmt == fault.number
                && touch.threads.contains(&thread)
                && touch.is_made() == fault.refused.is_none()
                && (touch.kind == Kind::Atomic || touch.kind.writes() == about.writes)
        };
        let own = touches.iter().rposition(is_own)?;
        touches[own].thread = thread;
        let unordered = earlier(&fault.kind).filter(|other| other.block == fault.block);
        let unordered = unordered.and_then(|other| {
            let thread = number(kernel, other.thread);
            let is_it = |(at, touch): (usize, &ElementAccess<'_>)| {
                at != own && touch.threads.contains(&thread) && touch.kind.writes() == other.wrote
            };
            let all = touches.iter().enumerate();
            let at = all.rev().find_map(|(at, touch)| is_it((at, touch)).then_some(at))?;
            touches[at].thread = thread;
            Some(at)
        });
        Some(Self { touches, own, unordered })
    }
}

impl<'t> ElementAccess<'t> {
    /// Returns the access if one of its lanes touches the element.
    fn new(kernel: &Kernel, about: &FaultElement, access: &AccessEvent<'t>) -> Option<Self> {
        let pattern = access.pattern;
        let element = about.element.filter(|_| pattern.buffer == about.buffer)?;
        let elements = elements_of(access, kernel.buffers[pattern.buffer].elem.size());
        let touching = elements.into_iter().filter(|(_, at)| *at == element);
        let threads: Vec<u32> = touching.map(|(thread, _)| thread).collect();
        let (event, kind, thread) = (access.event, pattern.kind, *threads.first()?);
        Some(Self { event, kind, threads, thread, pattern: Some(pattern) })
    }

    fn is_made(&self) -> bool {
        self.pattern.is_some()
    }
}
