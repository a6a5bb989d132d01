//! What was done to the element that a fault is about, and which of it is the access at fault: nothing where the fault is in no
//! access of lanes to memory.

use crate::ownership::moves::elements_of;
use gemm_dsl::ir::{Kernel, Space};
use gemm_runtime::fault::{EarlierAccess, Fault, FaultKind, Position};
use gemm_runtime::watch::{AccessEvent, Event, EventKind, Kind, Pattern, Trace};

/// A thread's number in its block.
pub(super) fn number(kernel: &Kernel, thread: (u32, u32)) -> u32 {
    thread.0 + kernel.geometry.block.0 * thread.1
}

/// What was done to an element, in the order in which it was seen.
pub(super) struct ElementHistory<'t> {
    /// The accesses.
    pub(super) touches: Vec<ElementAccess<'t>>,
    /// Which of them is at fault.
    pub(super) own: usize,
    /// The one that nothing orders with that, if the fault names one that was seen.
    pub(super) unordered: Option<usize>,
}

/// An access that touches the element.
pub(super) struct ElementAccess<'t> {
    pub(super) event: &'t Event,
    pub(super) kind: Kind,
    /// The threads that do, by their numbers in the block.
    threads: Vec<u32>,
    /// The one that is told of.
    pub(super) thread: u32,
    /// How its lanes access the buffer; none of an access that was not made.
    pub(super) pattern: Option<&'t Pattern>,
}

/// What a fault says of the element that it is about, and of the access.
struct FaultElement {
    buffer: usize,
    /// The element, by its place in the buffer; none of one that is before it.
    element: Option<u64>,
    /// Whether the access writes.
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

/// Whether a fault is about an element of a buffer.
pub(super) fn is_of_element(kernel: &Kernel, fault: &Fault) -> bool {
    FaultElement::new(kernel, fault).is_some()
}

/// The element of the access that is at fault, and whether that writes, where the access was made.
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

/// The access that a fault says is not ordered with its own.
fn earlier(kind: &FaultKind) -> Option<&EarlierAccess> {
    match kind {
        FaultKind::Race { earlier, .. } | FaultKind::CopyNotAwaited { earlier, .. } => {
            Some(earlier)
        }
        _ => None,
    }
}

impl<'t> ElementHistory<'t> {
    /// What was seen of the element; nothing where the access at fault was not.
    pub(super) fn new(kernel: &Kernel, trace: &'t Trace, fault: &Fault) -> Option<Self> {
        let (about, thread) = (FaultElement::new(kernel, fault)?, number(kernel, fault.thread));
        let made =
            trace.accesses().filter_map(|access| ElementAccess::new(kernel, &about, &access));
        let mut touches: Vec<ElementAccess<'t>> = made.collect();
        if let Some(refused) = &fault.refused {
            // Behind it nothing was done.
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
    /// An access, if some lane of it touches the element.
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
