//! Results of stages as JSON, one object per line.

use gemm_runtime::LaunchReport;
use gemm_runtime::sim::Counters;
use serde::{Serialize, Serializer};
use std::io::{self, Write};

/// Result of a stage.
///
/// `null` means that a value does not apply or was not measured. The strings `"inf"`, `"-inf"` and
/// `"nan"` are numbers that JSON cannot represent. A number that a kernel computed in `f32` is
/// widened to `f64`.
#[derive(Clone, Debug, Serialize)]
pub struct StageRow {
    /// Name of the ladder: `reduce` or `sgemm`.
    pub ladder: &'static str,
    /// Number of the stage in the catalogue.
    pub index: u32,
    /// Name of the stage in the catalogue.
    pub stage: &'static str,
    /// Spec without keys that have default values.
    pub spec: String,
    /// `simulator`, or the GPU's name.
    pub device: String,
    /// Length of a reduction's input, or columns of a GEMM.
    pub n: usize,
    /// Result of a reduction, or the element of a GEMM with the largest error.
    #[serde(serialize_with = "number")]
    pub result: Option<f64>,
    /// Expected value of `result`, computed in `f64`.
    #[serde(serialize_with = "number")]
    pub reference: Option<f64>,
    /// Relative error. For a sum it is relative to Σ|x|, for a GEMM it equals `max_err`.
    #[serde(serialize_with = "number")]
    pub rel_err: Option<f64>,
    /// True if the error is within rounding; `null` for a stage that this device cannot run.
    pub ok: Option<bool>,
    /// Median time of a launch on a GPU, in milliseconds.
    pub time_ms: Option<f64>,
    /// Bytes of the operands, each counted once, divided by the time, in 10^9 bytes/s.
    pub gb_s: Option<f64>,
    /// Registers of a thread in each kernel launch; empty on the simulator.
    pub registers: Vec<u32>,
    /// Counts of the simulator; `null` on a GPU.
    pub counters: Option<CounterRow>,
    /// Fields that only a GEMM has.
    #[serde(flatten)]
    pub product: Option<ProductRow>,
}

/// Fields of a [`StageRow`] that only a GEMM has.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ProductRow {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// Number of GEMMs in a batch; `null` without a batch.
    pub batch: Option<usize>,
    /// 2·m·n·k for all GEMMs of a batch, divided by the time, in 10^9 operations per second.
    pub gflops: Option<f64>,
    /// Time of cuBLAS divided by the time of the stage. Both run in turns.
    pub vs_cublas: Option<f64>,
    /// Time in milliseconds of the same spec without its epilogue, in the same run. `null` for a
    /// stage without an epilogue.
    pub plain_ms: Option<f64>,
    /// Overhead of the epilogue, in percent of `plain_ms`.
    pub over_plain_percent: Option<f64>,
    /// Time in milliseconds of cuBLAS plus a separate epilogue kernel, in the same run.
    pub separate_ms: Option<f64>,
    /// Largest error of an element, relative to the same element of |A|·|B|.
    #[serde(serialize_with = "number")]
    pub max_err: Option<f64>,
}

/// Returns the registers of a thread in each kernel launch.
pub fn registers(launched: &LaunchReport) -> Vec<u32> {
    launched.steps().filter_map(|step| Some(step.resources()?.registers)).collect()
}

/// Counters that explain the speed of a stage. Barriers are counted for one block, everything else
/// for the grid.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CounterRow {
    pub block_barriers: u64,
    pub warp_barriers: u64,
    pub divergent_branches: u64,
    pub shared_bank_conflicts: u64,
    pub shared_wavefronts: u64,
    pub global_sectors: u64,
    pub global_requests: u64,
    pub instructions: u64,
    pub fmas: u64,
    pub shared_loads: u64,
    pub global_bytes: u64,
    pub shared_bytes: u64,
}

impl From<&Counters> for CounterRow {
    fn from(counters: &Counters) -> Self {
        Self {
            block_barriers: counters.block_barriers,
            warp_barriers: counters.warp_barriers,
            divergent_branches: counters.divergent_branches,
            shared_bank_conflicts: counters.shared_bank_conflicts,
            shared_wavefronts: counters.shared_wavefronts,
            global_sectors: counters.global_sectors,
            global_requests: counters.global_requests,
            instructions: counters.instructions,
            fmas: counters.fmas,
            shared_loads: counters.shared_loads,
            global_bytes: counters.global_bytes(),
            shared_bytes: counters.shared_bytes(),
        }
    }
}

/// Serializes a number. A number that is not finite becomes a string.
fn number<S: Serializer>(value: &Option<f64>, out: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(x) if x.is_nan() => out.serialize_str("nan"),
        Some(x) if x.is_infinite() => out.serialize_str(if *x > 0.0 { "inf" } else { "-inf" }),
        value => value.serialize(out),
    }
}

/// Writes an object as one line and flushes.
///
/// # Errors
/// Returns the errors of the writer.
pub fn write_line(out: &mut impl Write, row: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, row)?;
    writeln!(out)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> StageRow {
        StageRow {
            ladder: "reduce",
            index: 3,
            stage: "items",
            spec: "items: 2".to_owned(),
            device: "simulator".to_owned(),
            n: 10,
            result: Some(f64::from(0.1_f32)),
            reference: Some(0.1),
            rel_err: Some(f64::INFINITY),
            ok: Some(false),
            time_ms: None,
            gb_s: None,
            registers: Vec::new(),
            counters: Some(CounterRow::from(&Counters::default())),
            product: None,
        }
    }

    fn line(row: &StageRow) -> String {
        let mut out = Vec::new();
        write_line(&mut out, row).expect("a vector takes everything");
        String::from_utf8(out).expect("JSON is text")
    }

    #[test]
    fn a_reduction_is_one_object_in_one_line() {
        let line = line(&row());
        assert!(
            line.starts_with(r#"{"ladder":"reduce","index":3,"stage":"items","spec":"items: 2""#)
        );
        assert!(line.contains(r#""result":0.10000000149011612,"reference":0.1,"rel_err":"inf""#));
        assert!(line.contains(r#""time_ms":null"#) && line.contains(r#""block_barriers":0"#));
        assert_eq!(line.matches('\n').count(), 1);
        assert!(!line.contains("gflops"));
    }

    #[test]
    fn what_json_has_no_number_for_is_named() {
        let row = StageRow { result: Some(f64::NAN), reference: Some(f64::NEG_INFINITY), ..row() };
        let line = line(&row);
        assert!(line.contains(r#""result":"nan","reference":"-inf","#), "{line}");
    }

    #[test]
    fn a_product_has_its_extents_beside() {
        let product = ProductRow {
            m: 4,
            k: 5,
            batch: Some(6),
            gflops: None,
            vs_cublas: Some(1.5),
            plain_ms: Some(0.5),
            over_plain_percent: Some(2.0),
            separate_ms: None,
            max_err: Some(0.0),
        };
        let line = line(&StageRow { product: Some(product), ..row() });
        let value: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!((value["m"].as_u64(), value["n"].as_u64()), (Some(4), Some(10)));
        assert_eq!(value["batch"].as_u64(), Some(6));
        assert_eq!(value["vs_cublas"].as_f64(), Some(1.5));
        assert_eq!(value["over_plain_percent"].as_f64(), Some(2.0));
        assert!(value["separate_ms"].is_null());
    }
}
