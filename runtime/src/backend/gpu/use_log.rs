//! Order of the work of several streams on one buffer.
//!
//! As long as a device has one stream, nothing is recorded. From the first
//! [`Device::on_new_stream`](crate::Device::on_new_stream) on, every use of a buffer records an
//! event. A use waits for the recorded uses of other streams: a read for writes, a write for reads
//! and writes.

use super::Gpu;
use crate::backend::driver::failed;
use crate::error::Result;
use cudarc::driver::{CudaEvent, CudaStream, DriverError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Kind of a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The work reads the buffer.
    Read,
    /// The work writes the buffer, and may read it.
    Write,
}

/// Recorded uses of a buffer.
#[derive(Debug, Default)]
pub struct UseLog(Mutex<Uses>);

#[derive(Debug, Default)]
struct Uses {
    /// Number of uses so far.
    count: u64,
    recorded: Vec<Recorded>,
}

/// Last use of one kind on one stream. Its event is recorded again by the next.
#[derive(Debug)]
struct Recorded {
    stream: Arc<CudaStream>,
    access: Access,
    event: CudaEvent,
    /// Number of the use, from 1 on, or 0 if a later write was ordered after it.
    number: u64,
}

impl UseLog {
    fn lock(&self) -> MutexGuard<'_, Uses> {
        // A panic leaves no partial record.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a stream wait for the uses of other streams that conflict with a new use. Returns the
    /// number of uses so far.
    fn wait(&self, stream: &CudaStream, access: Access) -> Result<u64, DriverError> {
        let uses = self.lock();
        let conflicts = uses.recorded.iter().filter(|other| {
            let is_pending = other.number > 0 && other.stream.cu_stream() != stream.cu_stream();
            is_pending && (access == Access::Write || other.access == Access::Write)
        });
        for other in conflicts {
            stream.wait(&other.event)?;
        }
        Ok(uses.count)
    }

    /// Records a use after it was put on a stream. A write takes the place of the first `seen`
    /// uses, for which it waits.
    fn record(
        &self,
        stream: &Arc<CudaStream>,
        access: Access,
        seen: u64,
    ) -> Result<(), DriverError> {
        let uses = &mut *self.lock();
        uses.count += 1;
        if access == Access::Write {
            uses.recorded
                .iter_mut()
                .filter(|other| other.number <= seen)
                .for_each(|o| o.number = 0);
        }
        let is_same = |other: &&mut Recorded| {
            other.access == access && other.stream.cu_stream() == stream.cu_stream()
        };
        if let Some(recorded) = uses.recorded.iter_mut().find(is_same) {
            recorded.number = uses.count;
            return recorded.event.record(stream);
        }
        let (event, stream) = (stream.record_event(None)?, Arc::clone(stream));
        uses.recorded.push(Recorded { stream, access, event, number: uses.count });
        Ok(())
    }

    /// Makes the stream of an allocation wait for all uses, before the memory is freed.
    pub(super) fn wait_for_all(&self, stream: &CudaStream) -> Result<(), DriverError> {
        self.wait(stream, Access::Write).map(drop)
    }
}

/// Use of buffers on a device's stream. Its drop, after the launch, records the use.
pub struct BufferUse<'a> {
    gpu: &'a Gpu,
    logs: &'a [Arc<UseLog>],
    access: Access,
    /// Number of uses of each buffer before this one, if they are recorded.
    seen: Vec<u64>,
}

impl Gpu {
    /// Orders a use of buffers after the uses of other streams.
    ///
    /// Neither waits nor records are allowed while the stream is captured.
    pub(super) fn begin_use<'a>(
        &'a self,
        logs: &'a [Arc<UseLog>],
        access: Access,
    ) -> Result<BufferUse<'a>> {
        let mut seen = Vec::new();
        if self.group.has_several() && !self.is_capturing()? {
            for log in logs {
                let waited = log.wait(&self.stream, access);
                seen.push(waited.map_err(failed("waiting for the use of a buffer"))?);
            }
        }
        Ok(BufferUse { gpu: self, logs, access, seen })
    }
}

impl Drop for BufferUse<'_> {
    fn drop(&mut self) {
        // Another thread may have created the second stream since the use began. If it has not, it
        // will order the new stream after this use.
        if !self.gpu.group.has_several() || self.gpu.is_capturing().unwrap_or(true) {
            return;
        }
        let seen = self.seen.iter().copied().chain(std::iter::repeat(0));
        for (log, seen) in self.logs.iter().zip(seen) {
            // The next call of the context reports a failure, as with cudarc's own guards.
            self.gpu.context.record_err(log.record(&self.gpu.stream, self.access, seen));
        }
    }
}
