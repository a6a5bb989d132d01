//! Spans of launches, of the choice of a rule, and of compilations.

use gemm_runtime::compile::{self, Arch, Options};
use gemm_runtime::{
    Device, Error, MatrixRef, ReduceKernel, SgemmTable, reduce_kernel, sgemm, sgemm_table,
};
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::with_default;
use tracing::{Event, Metadata, Subscriber};

const SUM: ReduceKernel = reduce_kernel!(op: sum, block: 64);
const GEMMS: SgemmTable = sgemm_table! { m <= 8 => tile: 8x8x8; else => tile: 16x16x8 };

/// Names and fields of spans and events, in order.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>, Arc<AtomicU64>);

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push_str(&format!(" {}={value:?}", field.name()));
    }
}

impl Recorder {
    fn push(&self, line: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    /// Lines that `work` records.
    fn of(work: impl FnOnce() -> Result<(), Error>) -> Result<Vec<String>, Error> {
        let recorder = Self::default();
        with_default(recorder.clone(), work)?;
        let lines = recorder.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(lines)
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "gemm_runtime"
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut fields = Fields(attributes.metadata().name().to_owned());
        attributes.record(&mut fields);
        self.push(fields.0);
        Id::from_u64(1 + self.1.fetch_add(1, Ordering::Relaxed))
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields("event".to_owned());
        event.record(&mut fields);
        self.push(fields.0);
    }

    fn exit(&self, _: &Id) {
        self.push("end".to_owned());
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
}

#[test]
fn launches_and_choices_are_spans() -> Result<(), Error> {
    let device = Device::simulator();
    let (x, mut y) = (device.upload(&[1.0; 4])?, device.alloc(1)?);
    let launched = Recorder::of(|| SUM.launch(&device, &x, &mut y).map(drop))?;
    assert_eq!(launched, ["launch spec=block: 64", "end"]);

    let (a, mut c) = (MatrixRef::new(&x, 2, 2)?, device.alloc_matrix(2, 2)?);
    let chosen = Recorder::of(|| GEMMS.call(&device).launch(&a, &a, &mut c).map(drop))?;
    let spec = "tile: 8x8x8";
    let event = format!("event message=chosen spec={spec}");
    assert_eq!(chosen, ["choose", &event, "end", &format!("launch spec={spec}"), "end"]);

    let spec = sgemm(&a, &a, &mut c).spec(&device)?;
    let chosen = Recorder::of(|| sgemm(&a, &a, &mut c).run(&device).map(drop))?;
    let event = format!("event message=chosen spec={spec}");
    assert_eq!(chosen, ["choose", &event, "end", &format!("launch spec={spec}"), "end"]);
    Ok(())
}

#[test]
fn compilations_are_spans() -> Result<(), Error> {
    let is_required = std::env::var_os("GEMM_REQUIRE_NVRTC").is_some_and(|value| value == "1");
    if compile::nvrtc_version().is_err() && !is_required {
        return Ok(());
    }
    let compiled = Recorder::of(|| {
        compile::compile("sum", SUM.source(), Arch::sm(90), &Options::default()).map(drop)
    })?;
    assert_eq!(compiled, ["compile kernel=sum arch=sm_90", "end"]);
    Ok(())
}
