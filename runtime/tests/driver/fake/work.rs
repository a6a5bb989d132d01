//! Work of the streams of the fake driver: executed when the host waits for it.

use super::Handle;
use std::alloc::{Layout, dealloc};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Alignment of an allocation, as CUDA has it.
const ALIGNMENT: usize = 256;

/// Memory that was freed while work of a stream referred to it.
pub(super) static FREED_EARLY: AtomicI64 = AtomicI64::new(0);
static WORK: Mutex<Option<Work>> = Mutex::new(None);

/// Work of all streams that has not been executed, and what it refers to.
#[derive(Default)]
pub(super) struct Work {
    pub(super) streams: HashMap<usize, VecDeque<Task>>,
    /// Last record of each event.
    pub(super) events: HashMap<usize, Recorded>,
    /// Number of records so far, and those that were executed.
    pub(super) records: u64,
    pub(super) executed: HashSet<u64>,
    /// Sizes of the allocations of the GPU and of pinned memory, by address.
    pub(super) memory: HashMap<u64, usize>,
    pub(super) pinned: HashMap<u64, usize>,
    /// Functions of fast kernels.
    pub(super) fast: HashSet<usize>,
}

/// Record of an event.
#[derive(Clone, Copy)]
pub(super) struct Recorded {
    pub(super) stream: usize,
    pub(super) number: u64,
    /// Sum of the times of all launches before.
    #[cfg_attr(
        without_elapsed,
        expect(dead_code, reason = "only the time between events needs it")
    )]
    pub(super) clock: i64,
}

pub(super) enum Task {
    Copy(Copy),
    Record(u64),
    Wait(Recorded),
    Free(u64),
}

/// Copy of rows. Addresses and strides are in bytes.
pub(super) struct Copy {
    pub(super) to: u64,
    pub(super) to_pitch: usize,
    pub(super) from: Source,
    pub(super) from_pitch: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

pub(super) enum Source {
    Address(u64),
    /// Elements of the host, read by the call.
    Bytes(Vec<u8>),
}

impl Copy {
    pub(super) fn span(&self, pitch: usize) -> usize {
        if self.height == 0 { 0 } else { (self.height - 1) * pitch + self.width }
    }

    /// Returns true if the copy reads or writes an allocation.
    pub(super) fn touches(&self, at: u64, bytes: usize) -> bool {
        let meets = |first: u64, span: usize| first < at + bytes as u64 && at < first + span as u64;
        let is_read = match self.from {
            Source::Address(from) => meets(from, self.span(self.from_pitch)),
            Source::Bytes(_) => false,
        };
        is_read || meets(self.to, self.span(self.to_pitch))
    }

    pub(super) fn execute(&self) {
        let from = match &self.from {
            Source::Address(from) => *from as *const u8,
            Source::Bytes(bytes) => bytes.as_ptr(),
        };
        for row in 0..self.height {
            // SAFETY: the caller of the driver's function ensures that both sides have the rows.
            unsafe {
                let to = (self.to as *mut u8).add(row * self.to_pitch);
                to.copy_from(from.add(row * self.from_pitch), self.width);
            }
        }
    }
}

impl Work {
    pub(super) fn push(&mut self, stream: Handle, task: Task) {
        self.streams.entry(stream as usize).or_default().push_back(task);
    }

    /// Executes the work of a stream until it is done, or until one of its records is.
    pub(super) fn run(&mut self, stream: usize, until: Option<u64>) {
        while !until.is_some_and(|number| self.executed.contains(&number)) {
            let Some(task) = self.streams.entry(stream).or_default().pop_front() else { return };
            match task {
                Task::Copy(copy) => copy.execute(),
                Task::Record(number) => _ = self.executed.insert(number),
                Task::Wait(recorded) => self.run(recorded.stream, Some(recorded.number)),
                Task::Free(at) => self.free(at),
            }
        }
    }

    pub(super) fn recorded(&self, event: Handle) -> Option<Recorded> {
        self.events.get(&(event as usize)).copied()
    }

    /// Frees an allocation. An allocation that work refers to is leaked and counted.
    pub(super) fn free(&mut self, at: u64) {
        let Some(bytes) = self.memory.remove(&at) else { return };
        if self.is_used(at, bytes) {
            FREED_EARLY.fetch_add(1, Ordering::Relaxed);
        } else if let Some(layout) = layout(bytes) {
            // SAFETY: the address was allocated with this layout.
            unsafe { dealloc(at as *mut u8, layout) };
        }
    }

    pub(super) fn is_used(&self, at: u64, bytes: usize) -> bool {
        let mut tasks = self.streams.values().flatten();
        tasks.any(|task| matches!(task, Task::Copy(copy) if copy.touches(at, bytes)))
    }

    pub(super) fn is_pinned(&self, address: u64) -> bool {
        self.pinned.iter().any(|(&at, &bytes)| (at..at + bytes as u64).contains(&address))
    }

    /// Puts a copy on a stream. Memory of the host that is not pinned is accessed by the call.
    pub(super) fn copy(&mut self, stream: Handle, mut copy: Copy, host: Option<Host>) {
        match (host, &copy.from) {
            (Some(Host::Source), Source::Address(from)) if !self.is_pinned(*from) => {
                let span = copy.span(copy.from_pitch);
                // SAFETY: the caller of the driver's function ensures that the host has the rows.
                let bytes = unsafe { std::slice::from_raw_parts(*from as *const u8, span) };
                copy.from = Source::Bytes(bytes.to_vec());
            }
            (Some(Host::Target), _) if !self.is_pinned(copy.to) => {
                self.run(stream as usize, None);
                return copy.execute();
            }
            _ => {}
        }
        self.push(stream, Task::Copy(copy));
    }
}

/// Side of a copy that is memory of the host.
pub(super) enum Host {
    Source,
    Target,
}

/// Calls a function with the work of all streams.
pub(super) fn with_work<R>(call: impl FnOnce(&mut Work) -> R) -> R {
    call(WORK.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

pub(super) fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(1), ALIGNMENT).ok()
}
