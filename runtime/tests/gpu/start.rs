//! First launches in processes of their own: the disk cache. (What they cost is measured by the
//! example `launch_overhead`.)

use super::{Outcome, ensure};
use gemm_runtime::{Device, Error, ReduceKernel, ReduceSpec};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::SystemTime;

/// Set in a process that launches one kernel.
const CHILD: &str = "GEMM_TEST_GPU_CHILD";

/// Runs the launching process's part, if this is one.
pub(super) fn child() -> Option<ExitCode> {
    std::env::var_os(CHILD)?;
    let launch = || -> Result<f32, Error> {
        <ReduceKernel>::new("shuffle".parse::<ReduceSpec>()?)?.run(&Device::cuda(0)?, &[1.0; 100])
    };
    Some(match launch() {
        Ok(100.0) => ExitCode::SUCCESS,
        other => {
            eprintln!("{other:?}");
            ExitCode::FAILURE
        }
    })
}

pub(super) fn warm_start() -> Outcome {
    let cache = tempfile::tempdir()?;
    let launch = || -> Outcome {
        let child = Command::new(std::env::current_exe()?)
            .env(CHILD, "1")
            .env("GEMM_CACHE_DIR", cache.path())
            .output()?;
        ensure(child.status.success(), || format!("{child:?}"))
    };
    launch()?;
    let entries: Vec<_> = cache.path().read_dir()?.flatten().map(|e| e.path()).collect();
    let [entry] = &entries[..] else { return Err(format!("{entries:?}").into()) };
    let compiled = fs::read(entry)?;

    // What is compiled is written: an entry as old as before was read.
    age(entry)?;
    launch()?;
    ensure(is_aged(entry)?, || "a whole entry was compiled anew".to_owned())?;

    fs::write(entry, &compiled[..compiled.len() / 2])?;
    age(entry)?;
    launch()?;
    ensure(!is_aged(entry)?, || "a damaged entry was not replaced".to_owned())?;
    ensure(fs::read(entry)? == compiled, || "the new entry is another one".to_owned())
}

/// Makes a file look as if it had been written long ago.
fn age(path: &Path) -> std::io::Result<()> {
    File::options().write(true).open(path)?.set_modified(SystemTime::UNIX_EPOCH)
}

fn is_aged(path: &Path) -> std::io::Result<bool> {
    Ok(path.metadata()?.modified()? == SystemTime::UNIX_EPOCH)
}
