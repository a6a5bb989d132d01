//! Resources of a stage's kernels as reported by the pinned compiler, on three architectures. The
//! sources determine them, so a report contains the hash of its sources. A thinned run compares all
//! hashes, and compiles every eighth stage for one of the architectures.

use crate::{compare, folder};
use gemm_dsl::ir::Variant;
use gemm_dsl::stages::pinned::PinnedSpec;
use gemm_needs::{Need, PINNED_NVRTC};
use gemm_runtime::Error;
use gemm_runtime::compile::{Arch, Resources};
use gemm_tests::nvrtc;
use libtest_mimic::{Failed, Trial};
use std::fmt::Write;

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

/// A thinned run compiles one of this many stages.
const SAMPLE: usize = 8;

/// Tests of the stage with this number.
pub fn trials(number: usize, stage: &PinnedSpec) -> [Trial; 2] {
    let PinnedSpec { folder, stem, .. } = stage.clone();
    let (for_snapshot, for_spills) = (stage.clone(), stage.clone());
    let is_compiled = gemm_cases::is_in_turn(number, SAMPLE, gemm_cases::fixed_seed() as usize);
    let need = if is_compiled { vec![Need::PinnedNvrtc] } else { Vec::new() };
    let snapshot = Need::trial_of(need, format!("resources::{folder}::{stem}"), move || {
        let (stage, name) = (for_snapshot, format!("{stem}.resources"));
        match (gemm_cases::is_thinned(), is_compiled) {
            (false, _) => compare(stage.folder, &name, &report(&stage)?),
            (true, true) => compare_gate(&stage, &report(&stage)?)?,
            (true, false) => has_hash(&pinned(&stage)?, &stage)?,
        }
        Ok(())
    });
    let spills =
        Trial::test(format!("no_spills::{folder}::{}", stage.stem), move || no_spills(&for_spills));
    [snapshot, spills]
}

fn report(stage: &PinnedSpec) -> Result<String, Failed> {
    Ok(table(&hash(stage), &compile_all(stage)?)?)
}

/// Line with the hash of the sources. With the compiler and its options, they determine the
/// resources.
fn hash(stage: &PinnedSpec) -> String {
    let sources = stage.kernels.iter().zip(stage.sources());
    let parts = sources.map(|(kernel, (_, source))| nvrtc::hash(&[&kernel.name, &source]));
    let parts: Vec<String> = parts.collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    format!("SHA-256 of the sources: {}", nvrtc::hash(&parts))
}

fn has_hash(pinned: &str, stage: &PinnedSpec) -> Result<(), Failed> {
    let hash = hash(stage);
    match pinned.lines().any(|line| line == hash) {
        true => Ok(()),
        false => Err(format!("the report is of another source; `cargo bless`. Now {hash}").into()),
    }
}

/// Snapshot without its header.
fn pinned(stage: &PinnedSpec) -> Result<String, Failed> {
    let file = folder().join(stage.folder).join(format!("{}.resources.snap", stage.stem));
    let snapshot = std::fs::read_to_string(&file)?;
    let (_, pinned) = snapshot.split_once("\n---\n").ok_or("a snapshot has a header")?;
    Ok(pinned.to_owned())
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
fn compare_gate(stage: &PinnedSpec, table: &str) -> Result<(), Failed> {
    let pinned = pinned(stage)?;
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
    Err(format!("review with `cargo bless`\npinned:\n{pinned}\nfound:\n{found}").into())
}

fn table(hash: &str, rows: &[Row]) -> Result<String, std::fmt::Error> {
    let mut text = format!(
        "NVRTC {PINNED_NVRTC}; spills, stack, static and dynamic shared memory in bytes\nkernel: a \
         variant of the main kernel (- if it has only one), or another kernel of the \
         program\n{hash}\n"
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

/// The pinned rows have no spills.
fn no_spills(stage: &PinnedSpec) -> Result<(), Failed> {
    let (mut text, mut rows) = (String::new(), 0);
    for row in pinned(stage)?.lines() {
        let columns: Vec<&str> = row.split_whitespace().collect();
        let [kernel, arch, registers, stores, loads, ..] = columns[..] else { continue };
        if registers.parse::<u32>().is_err() {
            continue;
        }
        rows += 1;
        let spills = (stores, loads) != ("0", "0");
        let on_old = (&*stage.stem, arch) == SPILLS && kernel == "vector";
        let expected = on_old || (&*stage.stem, kernel) == TIGHT;
        if spills != expected {
            let expected = if expected { "spills" } else { "no spills" };
            writeln!(text, "expected {expected}: {row}")?;
        }
    }
    match (text.is_empty(), rows) {
        (true, 0) => Err("the report has no rows".into()),
        (true, _) => Ok(()),
        (false, _) => Err(text.into()),
    }
}
