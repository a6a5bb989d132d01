//! Registers, spills and occupancy on each architecture.

use gemm_bench::table;
use gemm_bench::table::{Table, number, text};
use gemm_book::occupancy::Registers;
use gemm_book::report::UncompiledArch;
use gemm_dsl::target::arch::{ALL, Multiprocessor};
use gemm_dsl::{cuda, ir::VerifiedKernel};
use gemm_perf::occupancy::{Block, Limit, limits, occupancy};
use gemm_runtime::Error;
use gemm_runtime::compile::{self, Arch, Options, Resources};
use rayon::prelude::*;

/// Formats a table of resources and occupancy for the given architectures, or for all known ones if
/// `archs` is empty. Without NVRTC, the returned text says what to install.
pub fn occupancy_table(kernel: &VerifiedKernel, archs: &[u32]) -> String {
    let mut table = Table::new([
        text("arch"),
        number("registers"),
        number("bytes\nspilled"),
        number("blocks\non an SM"),
        number("warps\non an SM"),
        number("occupancy"),
        text("limited by").wrapping(),
    ]);
    for (sm, found) in compiled(kernel, archs) {
        let name = of_kernel(kernel, sm.arch).to_string();
        match found {
            Ok(found) => table.add(row(name, kernel, sm, found)),
            Err(missing @ Error::NvrtcMissing { .. }) => return format!("  {missing}"),
            Err(other) => {
                let unknown = std::iter::repeat_n(String::new(), 5);
                table.add(std::iter::once(name).chain(unknown).chain([first_line(&other)]));
            }
        };
    }
    table.text()
}

/// Returns the compiler's report for each architecture, and a reason for each architecture without
/// a report.
pub fn registers(kernel: &VerifiedKernel, archs: &[u32]) -> (Vec<Registers>, Vec<UncompiledArch>) {
    let (mut known, mut refused) = (Vec::new(), Vec::new());
    for (sm, found) in compiled(kernel, archs) {
        match found {
            Ok(found) => {
                let spilled = u64::from(found.spill_stores) + u64::from(found.spill_loads);
                known.push(Registers { arch: sm.arch, registers: found.registers, spilled });
            }
            Err(Error::NvrtcMissing { .. }) => {
                let why = "NVRTC, the CUDA compiler library, was not found".to_owned();
                return (Vec::new(), vec![UncompiledArch { arch: None, why }]);
            }
            Err(other) => {
                let arch = Some(of_kernel(kernel, sm.arch).to_string());
                refused.push(UncompiledArch { arch, why: first_line(&other) });
            }
        }
    }
    (known, refused)
}

/// Compiles the kernel for the given architectures, or for all known ones if `archs` is empty.
fn compiled(
    kernel: &VerifiedKernel,
    archs: &[u32],
) -> Vec<(&'static Multiprocessor, Result<Resources, Error>)> {
    let wanted = ALL.par_iter().filter(|sm| archs.is_empty() || archs.contains(&sm.arch));
    let source = cuda::source(kernel);
    wanted.map(|sm| (sm, resources(kernel, &source, sm.arch))).collect()
}

fn row(
    name: String,
    kernel: &VerifiedKernel,
    sm: &Multiprocessor,
    found: Resources,
) -> Vec<String> {
    let threads = kernel.geometry.threads();
    let block = Block { threads, registers: found.registers, shared_bytes: kernel.shared_bytes() };
    let occupancy = occupancy(sm, block);
    vec![
        name,
        found.registers.to_string(),
        (found.spill_stores + found.spill_loads).to_string(),
        occupancy.blocks.to_string(),
        (occupancy.blocks * threads.div_ceil(32)).to_string(),
        table::percent(occupancy.share),
        limits(sm, block).iter().map(Limit::to_string).collect::<Vec<_>>().join(" and "),
    ]
}

/// Architecture with warpgroup instructions. Only its `a` variant has them.
const WARPGROUPS: u32 = 90;

/// Parses the name of a known architecture: `90`, `sm_90` or the architecture-specific `sm_90a`.
///
/// # Errors
/// Returns a message that lists the known architectures.
pub fn architecture(text: &str) -> Result<u32, String> {
    let number = text.strip_prefix("sm_").unwrap_or(text);
    let known = ALL.iter().map(|sm| sm.arch);
    let is_it = |arch: &u32| match number.strip_suffix('a') {
        Some(number) => *arch == WARPGROUPS && number == "90",
        None => arch.to_string() == number,
    };
    known.clone().find(is_it).ok_or_else(|| {
        let all: Vec<String> = known.map(|arch| arch.to_string()).collect();
        format!("`{text}` is not a known architecture. Known are {}", all.join(", "))
    })
}

fn resources(kernel: &VerifiedKernel, source: &str, arch: u32) -> Result<Resources, Error> {
    let needed = kernel.min_arch();
    let (name, has) = (kernel.name.clone(), Arch::sm(arch).to_string());
    let device = "it".to_owned();
    if kernel.contract().is_specific && needed != arch {
        return Err(Error::OtherArchitecture { kernel: name, needed, has, device });
    }
    if needed > arch {
        return Err(Error::Architecture { kernel: name, needed, has, device });
    }
    compile::compile(&name, source, of_kernel(kernel, arch), &Options::default())?.resources()
}

/// Target of a kernel on an architecture: the `a` variant if the kernel needs it.
fn of_kernel(kernel: &VerifiedKernel, arch: u32) -> Arch {
    let is_own = kernel.contract().is_specific && kernel.min_arch() == arch;
    if is_own { Arch::sm(arch).specific() } else { Arch::sm(arch) }
}

fn first_line(error: &Error) -> String {
    match error {
        Error::Architecture { needed, .. } => format!("needs sm_{needed}"),
        Error::OtherArchitecture { needed, .. } => format!("needs sm_{needed}a"),
        other => other.to_string().lines().next().unwrap_or_default().to_owned(),
    }
}
