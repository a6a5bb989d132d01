//! The registers in ledgers agree with the pinned compiler release.

use gemm_bench::family::Family;
use gemm_book::resources;
use gemm_dsl::plan::{ReducePlan, SgemmPlan};
use gemm_dsl::{Plan as _, cuda, stages};
use gemm_needs::{Need, PINNED_NVRTC};
use gemm_runtime::compile::Arch;
use gemm_tests::nvrtc;
use libtest_mimic::{Failed, Trial};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Compute capability of an H200.
const ARCH: u32 = 90;
/// One of this many specs is compiled again. When the file is updated, all specs are compiled.
const SAMPLE: usize = 8;

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("registers::rows_match_the_specs", rows_match_the_specs),
        Need::PinnedNvrtc.trial("registers::as_compiled", as_compiled),
    ]
}

/// Specs of both ladders, with each key left out in turn, without duplicates.
fn lines() -> Vec<(Family, String)> {
    let of = |family, line: String| {
        resources::lines(family, &line).into_iter().map(move |line| (family, line))
    };
    let sums = stages::reduce().into_iter().map(|stage| (Family::Reduce, stage.spec.to_string()));
    let products = stages::sgemm().into_iter().map(|stage| (Family::Sgemm, stage.spec.to_string()));
    let mut lines: Vec<(Family, String)> = Vec::new();
    for line in sums.chain(products).flat_map(|(family, line)| of(family, line)) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

fn file() -> PathBuf {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    top.unwrap_or(Path::new(".")).join("snapshots/book/registers.csv")
}

/// Start of a row of the file.
fn named((family, line): &(Family, String)) -> String {
    format!("{},\"{line}\",", family.macro_name())
}

/// The file has exactly one row for each spec, in order.
fn rows_match_the_specs() -> Result<(), Failed> {
    let text = fs::read_to_string(file())?;
    let rows: Vec<&str> = text.lines().skip(2).collect();
    let lines = lines();
    for (at, line) in lines.iter().enumerate() {
        let found = rows.get(at).copied().unwrap_or_default();
        if !found.starts_with(&named(line)) || resources::of_line(line.0, &line.1).is_none() {
            return Err(format!(
                "row {at} is not {line:?}, but `{found}`: `cargo bless-registers`"
            )
            .into());
        }
    }
    if rows.len() > lines.len() {
        Err("there are rows without a spec: `cargo bless-registers`".into())
    } else {
        Ok(())
    }
}

/// Row of a spec, for its preferred kernel. Preparation kernels and fallbacks have no row.
fn row(line: &(Family, String)) -> Result<String, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{line:?}: {error}");
    let program = match line.0 {
        Family::Reduce => line.1.parse::<ReducePlan>().and_then(|plan| plan.program()),
        Family::Sgemm => line.1.parse::<SgemmPlan>().and_then(|plan| plan.program()),
    };
    let program = program.map_err(|error| failed(&error))?;
    let kernel = program.variants().next().ok_or_else(|| failed(&"no kernel"))?;
    let arch = match kernel.contract().is_specific {
        true => Arch::sm(kernel.min_arch()).specific(),
        false => Arch::sm(ARCH),
    };
    let compiled = nvrtc::log(&kernel.name, &cuda::source(kernel), arch);
    let of = compiled.and_then(|compiled| compiled.resources()).map_err(|error| failed(&error))?;
    let dynamic = if kernel.shared_is_dynamic() { kernel.shared_bytes() } else { 0 };
    let shared = u64::from(of.shared_bytes) + dynamic;
    let (registers, stores, loads) = (of.registers, of.spill_stores, of.spill_loads);
    Ok(named(line) + &format!("{arch},{registers},{stores},{loads},{shared}"))
}

/// Rows of a sample of the specs agree with the compiler; `cargo bless-registers` updates all rows.
fn as_compiled() -> Result<(), Failed> {
    let lines = lines();
    if env::var("INSTA_UPDATE").is_ok_and(|how| how == "always") {
        let rows: Vec<String> = lines.par_iter().map(row).collect::<Result<_, _>>()?;
        let head = format!(
            "# NVRTC {PINNED_NVRTC} for an H200, without a GPU; the preferred kernel of each \
             line; written by `cargo \
             bless-registers`\nfamily,line,arch,registers,spill_stores,spill_loads,shared_bytes\n"
        );
        fs::write(file(), head + &rows.join("\n") + "\n")?;
        return Ok(());
    }
    let text = fs::read_to_string(file())?;
    let sample: Vec<_> = lines.iter().step_by(SAMPLE).collect();
    let differing = sample.par_iter().map(|line| Ok((row(line)?, named(line))));
    for (row, named) in differing.collect::<Result<Vec<_>, String>>()? {
        if !text.lines().any(|known| known == row) {
            let known = text.lines().find(|known| known.starts_with(&named)).unwrap_or_default();
            return Err(format!("compiled: {row}\nin the file: {known}").into());
        }
    }
    Ok(())
}
