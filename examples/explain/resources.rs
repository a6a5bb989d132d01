//! Registers, spills and occupancy, by architecture.

use gemm_dsl::{cuda, ir::VerifiedKernel};
use gemm_examples::cli::Failure;
use gemm_examples::occupancy::{ALL, Block, Multiprocessor};
use gemm_examples::show;
use gemm_runtime::Error;
use gemm_runtime::compile::{self, Arch, Options, Resources};
use rayon::prelude::*;

/// A table of what the kernel occupies, or what must be installed to know.
///
/// # Errors
/// [`Failure::Usage`] for an architecture whose limits are not known.
pub fn of(kernel: &VerifiedKernel, archs: &[u32]) -> Result<String, Failure> {
    let wanted = wanted(archs)?;
    let source = cuda::source(kernel);
    let compiled: Vec<_> =
        wanted.par_iter().map(|sm| (sm, resources(kernel, &source, sm.arch))).collect();
    let mut table = show::table(&[
        "arch",
        ">registers",
        ">spilled\nbytes",
        ">blocks\non an SM",
        ">warps\non an SM",
        ">occupancy",
        "limited by",
    ]);
    for (sm, found) in compiled {
        let name = Arch::sm(sm.arch).to_string();
        match found {
            Ok(found) => table.add_row(row(name, kernel, sm, found)),
            Err(missing @ Error::NvrtcMissing { .. }) => return Ok(format!("  {missing}")),
            Err(other) => table.add_row([name, first_line(&other)]),
        };
    }
    Ok(table.trim_fmt())
}

fn row(
    name: String,
    kernel: &VerifiedKernel,
    sm: &Multiprocessor,
    found: Resources,
) -> Vec<String> {
    let threads = kernel.geometry.threads();
    let block = Block { threads, registers: found.registers, shared_bytes: kernel.shared_bytes() };
    let occupancy = sm.occupancy(block);
    vec![
        name,
        found.registers.to_string(),
        (found.spill_stores + found.spill_loads).to_string(),
        occupancy.blocks.to_string(),
        (occupancy.blocks * threads.div_ceil(32)).to_string(),
        show::percent(occupancy.share),
        occupancy.limit.to_string(),
    ]
}

fn wanted(archs: &[u32]) -> Result<Vec<Multiprocessor>, Failure> {
    if archs.is_empty() {
        return Ok(ALL.to_vec());
    }
    let find = |arch: &u32| {
        let known = ALL.iter().find(|sm| sm.arch == *arch).copied();
        known.ok_or_else(|| {
            let all: Vec<String> = ALL.iter().map(|sm| sm.arch.to_string()).collect();
            Failure::Usage(format!("--arch {arch}: known are {}", all.join(", ")))
        })
    };
    archs.iter().map(find).collect()
}

fn resources(kernel: &VerifiedKernel, source: &str, arch: u32) -> Result<Resources, Error> {
    let needed = kernel.min_arch();
    if needed > arch {
        return Err(Error::Architecture {
            kernel: kernel.name.clone(),
            needed,
            has: Arch::sm(arch).to_string(),
            device: "it".to_owned(),
        });
    }
    compile::compile(&kernel.name, source, Arch::sm(arch), &Options::default())?.resources()
}

fn first_line(error: &Error) -> String {
    match error {
        Error::Architecture { needed, .. } => format!("needs sm_{needed}"),
        other => other.to_string().lines().next().unwrap_or_default().to_owned(),
    }
}
