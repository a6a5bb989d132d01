//! Compilation of an archive.

use crate::contents::Contents;
use crate::error::Error;
use gemm_dsl::artifact::Artifact;
use gemm_dsl::ir::VerifiedProgram;
use gemm_dsl::ir::program::LaunchProgram;
use gemm_dsl::plan::{MapPlan, ReducePlan, ScanPlan, SgemmPlan};
use gemm_dsl::spec::{Arith, SgemmSpec, Spec as _};
use gemm_dsl::{Family, Plan, SpecErrors};
use gemm_runtime::compile::Arch;
use gemm_runtime::internal::{NVRTC, Unit, for_archive, in_parallel, write_archive};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{env, fs};

/// Archive in memory.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Built {
    /// Bytes of the archive.
    pub bytes: Vec<u8>,
    /// Number of kernels, of all architectures.
    pub kernels: usize,
    /// Kernels that were left out for an architecture that lacks their instructions, and macro
    /// calls whose specs are not known.
    pub notes: Vec<String>,
}

/// Program to compile, with its macro call for messages.
struct Program {
    call: String,
    artifact: Artifact,
}

/// Compiles an archive in a build script and writes it to `OUT_DIR`, where
/// `gemm_runtime::include_archive!(name)` finds it.
///
/// `archs` names the architectures of the GPUs, such as `sm_80`. A GPU takes only the code of its
/// own architecture. `sm_90a` stands for the same GPUs as `sm_90`: the instructions that a kernel
/// uses determine for which of the two it is compiled. A kernel that needs a newer architecture is
/// left out for the older ones, with a warning.
///
/// Cargo runs the script again if a path of [`Contents::macros_in`] changes, or a variable that
/// determines the NVRTC.
///
/// # Errors
/// * [`Error::Name`] if `name` is not the name of a file.
/// * [`Error::NoOutDir`] outside of a build script.
/// * [`Error::File`] if the archive cannot be written.
/// * The errors of [`build`].
pub fn embed(name: &str, archs: &[&str], contents: &Contents) -> Result<(), Error> {
    let is_in_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || !name.chars().all(is_in_name) {
        return Err(Error::Name { name: name.to_owned() });
    }
    let dir = env::var_os("OUT_DIR").ok_or(Error::NoOutDir)?;
    println!("cargo::rerun-if-changed=build.rs");
    for path in &contents.read {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    for variable in NVRTC.variables() {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let built = build(archs, contents)?;
    for note in &built.notes {
        println!("cargo::warning={}", note.replace('\n', " "));
    }
    let path = Path::new(&dir).join(format!("{name}.gemm"));
    fs::write(&path, built.bytes).map_err(|error| Error::File { path, error })
}

/// Compiles an archive. [`embed`] describes the architectures.
///
/// The kernels are compiled by as many threads as there are processors.
///
/// # Errors
/// * [`Error::NoArch`] and [`Error::Arch`] for the architectures.
/// * [`Error::OtherArch`] for a kernel that runs on none of the architectures.
/// * [`Error::Calls`] for calls of `sgemm` without kernels.
/// * [`Error::Compile`] for the first kernel that cannot be compiled, or if NVRTC is not found. An
///   archive without kernels needs no NVRTC.
pub fn build(archs: &[&str], contents: &Contents) -> Result<Built, Error> {
    let archs = archs.iter().map(|text| arch(text)).collect::<Result<BTreeSet<_>, _>>()?;
    if archs.is_empty() {
        return Err(Error::NoArch);
    }
    let unknown = contents.unknown.iter().map(|call| {
        format!("{call}: the archive does not contain this kernel, because its spec contains `$`")
    });
    let mut notes: Vec<String> = unknown.collect();
    let named = named(contents)?;
    let mut jobs: BTreeMap<(Arch, &str), (&Program, Unit<'_>)> = BTreeMap::new();
    for program in &named {
        let runs_on = archs.iter().filter(|arch| has_instructions(program, **arch));
        let runs_on: Vec<Arch> = runs_on.copied().collect();
        if runs_on.is_empty() {
            return Err(Error::OtherArch { call: program.call.clone(), needed: needed(program) });
        }
        for arch in &archs {
            match runs_on.contains(arch) {
                true => jobs.extend(units(program, *arch)),
                false => notes.push(format!("{} is left out for {arch}", program.call)),
            }
        }
    }
    let shipped = archs.iter().map(|arch| Ok((*arch, shipped(contents, *arch)?)));
    let shipped = shipped.collect::<Result<Vec<_>, Error>>()?;
    for (arch, programs) in &shipped {
        for program in programs.iter().filter(|program| has_instructions(program, *arch)) {
            jobs.extend(units(program, *arch));
        }
    }
    let jobs: Vec<_> = jobs.into_values().collect();
    let compiled = in_parallel(&jobs, |(program, unit)| {
        for_archive(*unit, program.call.clone()).map_err(|error| Error::Compile {
            call: program.call.clone(),
            arch: unit.arch.to_string(),
            error: Box::new(error),
        })
    });
    let entries = compiled.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(Built { kernels: entries.len(), bytes: write_archive(entries), notes })
}

/// Architecture of a GPU, without the suffix `a`.
fn arch(text: &str) -> Result<Arch, Error> {
    let number = text.trim().strip_prefix("sm_").map(|rest| rest.strip_suffix('a').unwrap_or(rest));
    let number = number.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let number = number.and_then(|digits| digits.parse().ok()).filter(|number| *number < 1000);
    number.map(Arch::sm).ok_or_else(|| Error::Arch { text: text.to_owned() })
}

/// Programs of the specs, which do not depend on the architecture.
fn named(contents: &Contents) -> Result<Vec<Program>, Error> {
    let mut programs = gemms(&contents.gemms, contents.with_splits)?;
    for line in &contents.reductions {
        programs.push(parsed::<ReducePlan>("reduce_kernel", line)?);
    }
    for line in &contents.scans {
        programs.push(parsed::<ScanPlan>("scan_kernel", line)?);
    }
    for line in &contents.maps {
        let plan = line.parse::<MapPlan>();
        let name = plan.as_ref().map_or("map_kernel", |plan| plan.spec().macro_name());
        programs.push(program(format!("{name}!({line})"), plan.and_then(|plan| plan.artifact()))?);
    }
    Ok(programs)
}

/// Program of a spec.
fn parsed<P: Plan>(name: &str, line: &str) -> Result<Program, Error> {
    program(format!("{name}!({line})"), line.parse::<P>().and_then(|plan| plan.artifact()))
}

/// Programs of the calls of `sgemm` on an architecture.
fn shipped(contents: &Contents, arch: Arch) -> Result<Vec<Program>, Error> {
    let mut lines = BTreeSet::new();
    for calls in &contents.calls {
        let found = calls.lines(arch.number());
        lines.extend(
            found
                .map_err(|error| Error::Calls { arch: arch.to_string(), error: Box::new(error) })?,
        );
    }
    gemms(&lines, contents.with_splits)
}

fn gemms(lines: &BTreeSet<String>, with_splits: bool) -> Result<Vec<Program>, Error> {
    let (mut programs, mut split) = (Vec::new(), BTreeSet::new());
    for line in lines {
        let plan: Result<SgemmPlan, SpecErrors> = line.parse();
        let name = plan.as_ref().map_or(SgemmSpec::MACRO, |plan| plan.types().macro_name());
        let add = |made| program(format!("{name}!({line})"), made);
        programs.push(add(plan.as_ref().map_err(Clone::clone).and_then(Plan::artifact))?);
        let Some(plan) = plan.ok().filter(|_| with_splits) else { continue };
        for splits in [[true, false], [false, true], [true, true]] {
            if let Some(made) = plan.program_with_splits(splits).transpose() {
                programs.push(add(made.map(|made| plan.artifact_of(&made)))?);
                split.insert(plan.spec().arith.to_string());
            }
        }
    }
    for arith in Arith::ALL.iter().filter(|arith| split.contains(&arith.to_string())) {
        for by_column in [false, true] {
            let call = format!("splits of B, arith: {arith}, by column: {by_column}");
            let made = SgemmSpec::splits_of_b(*arith, by_column);
            let artifact = made.map(|made| unnamed(&call, &made));
            programs.push(program(call, artifact)?);
        }
    }
    Ok(programs)
}

/// Artifact of a program without a spec of its own.
fn unnamed(name: &str, program: &VerifiedProgram) -> Artifact {
    Artifact::new(name.to_owned(), SgemmSpec::default().interface(), program)
}

fn program(call: String, artifact: Result<Artifact, SpecErrors>) -> Result<Program, Error> {
    match artifact {
        Ok(artifact) => Ok(Program { call, artifact }),
        Err(faults) => Err(Error::Spec { call, faults }),
    }
}

/// Returns true if the GPUs of an architecture have the instructions of all kernels of a program.
fn has_instructions(program: &Program, arch: Arch) -> bool {
    let contracts = &program.artifact.program.contracts;
    contracts.iter().all(|contract| contract.is_optional || contract.runs_on(arch.number()))
}

/// Architecture that a program needs.
fn needed(program: &Program) -> String {
    let contracts = program.artifact.program.contracts.iter();
    let contracts = contracts.filter(|contract| !contract.is_optional);
    let most = contracts.max_by_key(|contract| (contract.is_specific, contract.min_arch));
    most.map_or(String::new(), |contract| match contract.is_specific {
        true => format!("sm_{}", contract.min_arch),
        false => format!("sm_{} or later", contract.min_arch),
    })
}

/// Kernels of a program for an architecture, by architecture and source.
fn units(
    program: &Program,
    arch: Arch,
) -> impl Iterator<Item = ((Arch, &str), (&Program, Unit<'_>))> {
    let Artifact { program: LaunchProgram { contracts, .. }, sources, .. } = &program.artifact;
    let kernels = contracts.iter().zip(sources.iter());
    let kernels = kernels.filter(move |(contract, _)| contract.runs_on(arch.number()));
    kernels.map(move |(contract, source)| {
        let unit = Unit::new(contract, source, arch);
        ((unit.arch, unit.source), (program, unit))
    })
}
