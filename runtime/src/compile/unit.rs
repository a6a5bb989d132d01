//! Machine code of kernels: from an archive, the disk cache or the compiler.

use super::nvrtc::{self, Need, Nvrtc};
use super::{Arch, Options};
use crate::archive::{ArchiveEntry, ArchivedCode, OpenArchive};
use crate::cache::{Cache, Entry, Key};
use crate::error::Result;
use gemm_dsl::ir::contract::Contract;
use gemm_dsl::target::release::Release;

/// Kernel for one architecture.
#[derive(Clone, Copy, Debug)]
pub struct Unit<'a> {
    /// Name of the kernel in the source.
    pub name: &'a str,
    /// CUDA C.
    pub source: &'a str,
    /// Architecture to compile for.
    pub arch: Arch,
    /// Oldest release of NVRTC that knows the instructions.
    pub release: Release,
}

impl<'a> Unit<'a> {
    /// Kernel of a program, for a GPU with its instructions.
    pub fn new(contract: &'a Contract, source: &'a str, gpu: Arch) -> Self {
        let arch = if contract.is_specific { gpu.specific() } else { gpu };
        Self { name: &contract.kernel, source, arch, release: contract.min_release }
    }

    fn need(&self) -> Need {
        Need { arch: Some(self.arch), release: self.release }
    }

    /// Key of everything that determines the machine code except the compiler. `circumstance`
    /// distinguishes entries of the disk cache further.
    fn key(&self, flags: &[String], circumstance: Option<&str>) -> Key {
        let (flags, arch) = (flags.join(" "), self.arch.to_string());
        let parts = [self.source, &flags, &arch].into_iter().chain(circumstance);
        Key::new(&parts.collect::<Vec<_>>())
    }
}

/// Origin of machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeOrigin {
    /// Archive of this name.
    Archive {
        /// Name of the archive.
        name: &'static str,
        /// Version of NVRTC that compiled the code: major, minor, build.
        compiler: (u32, u32, u32),
    },
    /// Disk cache.
    DiskCache,
    /// NVRTC, in this process.
    Compiler,
}

/// Returns the machine code from each archive that has it.
pub(crate) fn archived(
    archives: &[OpenArchive],
    unit: Unit<'_>,
) -> impl Iterator<Item = Result<(&'static [u8], CodeOrigin)>> {
    let key = unit.key(&Options::default().flags(unit.arch), None);
    archives.iter().filter_map(move |archive| match archive.get(key) {
        Ok(None) => None,
        Ok(Some(ArchivedCode { archive: name, compiler, cubin })) => {
            Some(Ok((cubin, CodeOrigin::Archive { name, compiler })))
        }
        Err(error) => Some(Err(error)),
    })
}

/// Returns the machine code from the disk cache or from the compiler. `driver` is the version of
/// the driver that will load the code; another driver may reject it.
///
/// NVRTC is loaded only if it must compile.
pub(crate) fn cached(cache: &Cache, unit: Unit<'_>, driver: i32) -> Result<(Vec<u8>, CodeOrigin)> {
    let flags = Options::default().flags(unit.arch);
    let need = unit.need();
    let oldest = nvrtc::loaded(need).map_or((0, 0, 0), |nvrtc| nvrtc.build());
    let mut origin = CodeOrigin::DiskCache;
    let key = unit.key(&flags, Some(&format!("driver {driver}")));
    let entry = cache.get_or_build(key, oldest, || {
        origin = CodeOrigin::Compiler;
        compiled(nvrtc::get(need)?, unit, &flags)
    })?;
    Ok((entry.payload, origin))
}

fn compiled(nvrtc: &Nvrtc, unit: Unit<'_>, flags: &[String]) -> Result<Entry> {
    let compiled = nvrtc.compile(unit.name, unit.source, unit.arch, flags)?;
    Ok(Entry { compiler: nvrtc.build(), payload: compiled.cubin })
}

/// Compiles a kernel for an archive, where `name` describes it. The disk cache keeps the code for
/// later builds with the same NVRTC.
///
/// # Errors
/// Returns the errors of [`compile`](super::compile).
pub fn for_archive(unit: Unit<'_>, name: String) -> Result<ArchiveEntry> {
    let flags = Options::default().flags(unit.arch);
    let nvrtc = nvrtc::get(unit.need())?;
    let (major, minor, build) = nvrtc.build();
    let cached = unit.key(&flags, Some(&format!("archive, NVRTC {major}.{minor}.{build}")));
    let build = || compiled(nvrtc, unit, &flags);
    let entry = Cache::from_env().get_or_build(cached, (0, 0, 0), build)?;
    Ok(ArchiveEntry {
        key: unit.key(&flags, None),
        name,
        arch: unit.arch.to_string(),
        compiler: entry.compiler,
        cubin: entry.payload,
    })
}
