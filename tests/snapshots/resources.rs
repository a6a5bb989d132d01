//! Resources of a stage's kernels as reported by the pinned compiler, on three architectures. By
//! default the tests compile for only one of these, because the source, which determines the
//! resources, is also pinned.

use crate::{compare, folder};
use gemm_dsl::ir::Variant;
use gemm_dsl::stages::pinned::PinnedSpec;
use gemm_runtime::Error;
use gemm_runtime::compile::{Arch, Resources};
use gemm_tests::needs::{Need, PINNED_NVRTC};
use gemm_tests::nvrtc;
use libtest_mimic::{Failed, Trial};
use std::fmt::Write;
use std::sync::{Arc, OnceLock};

const ARCHITECTURES: [u32; 3] = [80, 90, 100];

/// Architecture that is tested by default.
const OF_GATE: u32 = 90;

/// Resources of one kernel on one architecture.
struct Row {
    /// Variant of the main kernel, or another kernel of the program.
    kernel: &'static str,
    arch: Arch,
    resources: Resources,
    /// Bytes of dynamic shared memory that a launch requests.
    dynamic_shared: u64,
}

/// Rows of a stage, which the first test that needs them computes.
type Report = Arc<OnceLock<Result<Vec<Row>, String>>>;

pub fn trials(stage: &PinnedSpec) -> [Trial; 2] {
    let PinnedSpec { folder, stem, .. } = stage.clone();
    let report = Report::default();
    let (for_snapshot, for_spills) = ((report.clone(), stage.clone()), (report, stage.clone()));
    let snapshot = Need::PinnedNvrtc.trial(format!("resources::{folder}::{stem}"), move || {
        let (report, stage) = for_snapshot;
        let table = table(rows(&report, &stage)?)?;
        let name = format!("{}.resources", stage.stem);
        match gemm_cases::is_thinned() {
            true => compare_gate(&stage, &name, &table),
            false => {
                compare(stage.folder, &name, &table);
                Ok(())
            }
        }
    });
    let spills = Need::PinnedNvrtc.trial(format!("no_spills::{folder}::{stem}"), move || {
        let (report, stage) = for_spills;
        no_spills(&stage, rows(&report, &stage)?)
    });
    [snapshot, spills]
}

fn rows<'r>(report: &'r Report, stage: &PinnedSpec) -> Result<&'r [Row], Failed> {
    let compile = || compile_all(stage).map_err(|error| error.to_string());
    match report.get_or_init(compile) {
        Ok(rows) => Ok(rows),
        Err(error) => Err(error.into()),
    }
}

fn compile_all(stage: &PinnedSpec) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for (kernel, (suffix, source)) in stage.kernels.iter().zip(stage.sources()) {
        let contract = kernel.contract();
        let architectures = match contract.is_specific {
            true => vec![Arch::sm(contract.min_arch).specific()],
            false if gemm_cases::is_thinned() => vec![Arch::sm(OF_GATE)],
            false => {
                let needed = ARCHITECTURES.into_iter().filter(|arch| *arch >= contract.min_arch);
                needed.map(Arch::sm).collect()
            }
        };
        for arch in architectures {
            let compiled = nvrtc::log(&kernel.name, &source, arch)?;
            let dynamic = kernel.shared_is_dynamic();
            rows.push(Row {
                kernel: match (kernel.variant, suffix) {
                    (Variant::Vector, "") => "vector",
                    (_, "") => "-",
                    (_, suffix) => suffix.trim_start_matches('.'),
                },
                arch,
                resources: compiled.resources()?,
                dynamic_shared: if dynamic { kernel.shared_bytes() } else { 0 },
            });
        }
    }
    Ok(rows)
}

/// Compares a table for one architecture with the rows for this architecture in the snapshot.
fn compare_gate(stage: &PinnedSpec, name: &str, table: &str) -> Result<(), Failed> {
    let snapshot =
        std::fs::read_to_string(folder().join(stage.folder).join(format!("{name}.snap")))?;
    let (_, pinned) = snapshot.split_once("\n---\n").ok_or("a snapshot has a header")?;
    let others = ARCHITECTURES.iter().filter(|arch| **arch != OF_GATE);
    let others: Vec<String> = others.map(|arch| Arch::sm(*arch).to_string()).collect();
    let arch = |line: &str| line.split_whitespace().nth(1).map(str::to_owned);
    let is_tested = |line: &&str| arch(line).is_none_or(|arch| !others.contains(&arch));
    let pinned: Vec<&str> = pinned.lines().filter(is_tested).collect();
    let found: Vec<&str> = table.lines().collect();
    if pinned == found {
        return Ok(());
    }
    let (pinned, found) = (pinned.join("\n"), found.join("\n"));
    Err(format!("{name}: review with `cargo bless`\npinned:\n{pinned}\nfound:\n{found}").into())
}

fn table(rows: &[Row]) -> Result<String, std::fmt::Error> {
    let mut text = format!(
        "NVRTC {PINNED_NVRTC}; spills, stack, static and dynamic shared memory in bytes\nkernel: a \
         variant of the main kernel (- if it has only one), or another kernel of the program\n"
    );
    writeln!(
        text,
        "{:7} {:7} {:>9} {:>12} {:>11} {:>5} {:>6} {:>7} {:>8}",
        "kernel",
        "arch",
        "registers",
        "spill stores",
        "spill loads",
        "stack",
        "static",
        "dynamic",
        "barriers"
    )?;
    for Row { kernel, arch, resources: r, dynamic_shared } in rows {
        let arch = arch.to_string();
        writeln!(
            text,
            "{kernel:7} {arch:7} {:9} {:12} {:11} {:5} {:6} {dynamic_shared:7} {:8}",
            r.registers, r.spill_stores, r.spill_loads, r.stack, r.shared_bytes, r.barriers
        )?;
    }
    Ok(text)
}

/// Stage and architecture that spill a few bytes: with 255 registers, one value of the vector
/// variant is stored and loaded three times. The stage is measured on sm_90, where it does not
/// spill.
const SPILLS: (&str, &str) = ("45_mma_converted_bf16x6", "sm_80");

/// Spec and kernel that spill a few bytes on all architectures: two blocks of a cluster share an
/// SM, which leaves 64 registers to a thread.
const TIGHT: (&str, &str) = ("softmax", "cluster");

fn no_spills(stage: &PinnedSpec, rows: &[Row]) -> Result<(), Failed> {
    let mut text = String::new();
    for Row { kernel, arch, resources, .. } in rows {
        let spills = resources.spill_stores + resources.spill_loads > 0;
        let on_old = (&*stage.stem, &*arch.to_string()) == SPILLS && *kernel == "vector";
        let expected = on_old || (&*stage.stem, *kernel) == TIGHT;
        if spills != expected {
            let expected = if expected { "spills" } else { "no spills" };
            writeln!(text, "{} {kernel} on {arch}, expected {expected}: {resources}", stage.stem)?;
        }
    }
    if text.is_empty() { Ok(()) } else { Err(text.into()) }
}
