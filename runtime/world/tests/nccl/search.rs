//! Search for the NCCL library, and errors if none is found.

use crate::ensure;
use crate::stub::{self, Stub};
use gemm_world::__private::nccl::{Library, OLDEST, multicast_is_off};
use gemm_world::WorldError;
use libtest_mimic::Failed;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Variable with the question for a child process.
pub const CHILD: &str = "GEMM_TEST_NCCL_CHILD";

/// Answers a question about the environment.
pub fn child(question: &OsStr) -> ExitCode {
    match (question.to_str(), Library::load()) {
        (Some("multicast"), _) => println!("{}", multicast_is_off()),
        (Some("direct"), Ok(library)) => println!("{}", library.reaches_into_buffers()),
        (_, Ok(library)) => println!("{} {}", library.version(), library.path().display()),
        (_, Err(error)) => println!("{error}"),
    }
    ExitCode::SUCCESS
}

/// Returns the answer of a process with only this environment.
fn ask(question: &str, environment: &[(&str, &OsStr)]) -> Result<String, Failed> {
    let mut command = Command::new(std::env::current_exe()?);
    let child = command.env_clear().envs(environment.iter().copied()).env(CHILD, question);
    let child = child.output()?;
    ensure(child.status.success(), || format!("the process failed: {child:?}"))?;
    Ok(String::from_utf8(child.stdout)?.trim_end().to_owned())
}

pub fn missing() -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let message = ask("load", &[("GEMM_NCCL_PATH", dir.path().as_os_str())])?;
    let shown = format!("GEMM_NCCL_PATH={}: no NCCL library there", dir.path().display());
    for part in ["pip install nvidia-nccl-cu13", "libnccl2", "set GEMM_NCCL_PATH", &shown] {
        ensure(message.contains(part), || format!("no {part:?} in:\n{message}"))?;
    }
    ensure(message.lines().count() == 2, || format!("other places than that one:\n{message}"))
}

/// Returns the searched places.
fn searched(path: &Path) -> Result<Vec<String>, Failed> {
    match Library::at(path) {
        Err(WorldError::NcclMissing { searched }) => Ok(searched),
        other => Err(format!("{}: {other:?}", path.display()).into()),
    }
}

pub fn no_library() -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("libnccl.so.2");
    fs::write(&file, b"no library")?;
    for path in [dir.path(), &file] {
        let searched = searched(path)?;
        let shown = file.display().to_string();
        ensure(searched.len() == 1 && searched[0].contains(&shown), || format!("{searched:?}"))?;
    }
    // A directory in place of the library, and a missing path.
    fs::remove_file(&file)?;
    fs::create_dir(&file)?;
    for path in [dir.path(), &file, &dir.path().join("nowhere")] {
        let searched = searched(path)?;
        ensure(searched.len() == 1, || format!("{searched:?}"))?;
    }
    // A library other than NCCL.
    let libraries = ["/lib64/libm.so.6", "/lib/x86_64-linux-gnu/libm.so.6", "/usr/lib/libm.so.6"];
    if let Some(other) = libraries.into_iter().map(Path::new).find(|path| path.exists()) {
        let searched = searched(other)?;
        let part = "it has no ncclGetVersion, so it is not NCCL";
        ensure(searched[0].contains(part), || format!("no {part:?} in {searched:?}"))?;
    }
    Ok(())
}

pub fn multicast() -> Result<(), Failed> {
    let values =
        [("0", true), (" 0 ", true), ("1", false), ("", false), ("no", false), ("2", false)];
    for (value, is_off) in values {
        let answer = ask("multicast", &[("NCCL_NVLS_ENABLE", OsStr::new(value))])?;
        ensure(answer == is_off.to_string(), || format!("{value:?}: {answer}"))?;
    }
    ensure(ask("multicast", &[])? == "false", || "off where nothing is said".to_owned())
}

/// Creates a directory with the library.
fn laid_out(root: &Path, below: &str) -> Result<PathBuf, Failed> {
    let dir = root.join(below);
    fs::create_dir_all(&dir)?;
    let file = dir.join("libnccl.so.2");
    fs::write(&file, stub::bytes()?)?;
    Ok(file.canonicalize()?)
}

pub fn order() -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let root = dir.path();
    let bin = root.join("bin");
    fs::create_dir(&bin)?;
    let site = root.join("packages");
    fs::write(bin.join("python3"), format!("#!/bin/sh\necho\necho '{}'\n", site.display()))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(bin.join("python3"), fs::Permissions::from_mode(0o755))?;
    }
    // Each place with the variable that names it. The last four are used if the loader finds none.
    let mut places = vec![
        ("GEMM_NCCL_PATH", root.join("own"), laid_out(root, "own")?),
        ("LD_LIBRARY_PATH", root.join("loader"), laid_out(root, "loader")?),
    ];
    if ask("load", &[])?.starts_with("NCCL, which") {
        let wheel = "nvidia/nccl/lib";
        let venv = laid_out(root, &format!("venv/lib/python3.13/site-packages/{wheel}"))?;
        places.push(("VIRTUAL_ENV", root.join("venv"), venv));
        places.push(("PATH", bin, laid_out(&site, wheel)?));
        places.push(("CUDA_PATH", root.join("cuda"), laid_out(root, "cuda/lib64")?));
        places.push(("CUDA_HOME", root.join("home"), laid_out(root, "home/lib")?));
    }
    for from in 0..places.len() {
        let named = places[from..].iter().map(|(name, path, _)| (*name, path.as_os_str()));
        let answer = ask("load", &named.collect::<Vec<_>>())?;
        let expected = format!("22809 {}", places[from].2.display());
        ensure(answer == expected, || format!("{answer} is not {expected}"))?;
    }
    Ok(())
}

pub fn old() -> Result<(), Failed> {
    // 2.7.8 in the old numbering.
    for version in [0, 2708, 21_805, OLDEST - 1] {
        let stand = Stub::new()?;
        stand.set("version", version.into())?;
        let error = Library::at(stand.dir()).expect_err("too old");
        let path = stand.path().canonicalize()?.display().to_string();
        let expected = WorldError::NcclOld { path, has: version, need: OLDEST };
        ensure(error == expected, || format!("{error:?}"))?;
        // A newer library in the same directory is found next.
        fs::copy(stand.path(), stand.dir().join("libnccl.so"))?;
        let found = Library::at(stand.dir())?;
        ensure(found.path().ends_with("libnccl.so"), || format!("{found:?}"))?;
    }
    for version in [OLDEST, 23_007, 40_000] {
        let stand = Stub::new()?;
        stand.set("version", version.into())?;
        ensure(stand.nccl()?.version() == version, || format!("{version}"))?;
    }
    for (setting, value) in [("version", -1), ("ncclGetVersion", 3)] {
        let stand = Stub::new()?;
        stand.set(setting, value)?;
        let searched = searched(stand.dir())?;
        let is_said = searched[0].contains("ncclGetVersion returned");
        ensure(is_said, || format!("{searched:?}"))?;
    }
    Ok(())
}

/// Functions that the library must have.
pub const FUNCTIONS: [&str; 17] = [
    "ncclGetVersion",
    "ncclGetUniqueId",
    "ncclGetErrorString",
    "ncclGetLastError",
    "ncclCommInitRankConfig",
    "ncclCommGetAsyncError",
    "ncclCommFinalize",
    "ncclCommDestroy",
    "ncclCommAbort",
    "ncclCommCount",
    "ncclCommUserRank",
    "ncclGroupStart",
    "ncclGroupEnd",
    "ncclSend",
    "ncclRecv",
    "ncclMemAlloc",
    "ncclMemFree",
];

/// Removes a function by renaming it in the symbol table.
pub fn without_a_function() -> Result<(), Failed> {
    for function in FUNCTIONS {
        let mut bytes = stub::bytes()?.to_vec();
        let name = format!("\0{function}\0");
        let places: Vec<usize> = (0..bytes.len() - name.len())
            .filter(|at| bytes[*at..].starts_with(name.as_bytes()))
            .collect();
        ensure(!places.is_empty(), || format!("the library has no {function}"))?;
        for at in places {
            bytes[at + 1] = b'x';
        }
        let dir = tempfile::tempdir()?;
        fs::write(dir.path().join("libnccl.so.2"), bytes)?;
        let searched = searched(dir.path())?;
        let part = format!("it has no {function}, so it is not NCCL");
        ensure(searched.len() == 1 && searched[0].contains(&part), || format!("{searched:?}"))?;
    }
    Ok(())
}

pub fn direct() -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    laid_out(dir.path(), ".")?;
    let answers = [
        ("22304", None, "true"),
        ("22304", Some("0"), "true"),
        ("22304", Some("1"), "false"),
        ("22400", None, "false"),
        ("22400", Some("1"), "false"),
    ];
    for (version, disabled, expected) in answers {
        let mut environment = vec![
            ("GEMM_NCCL_PATH", dir.path().as_os_str()),
            ("FAKE_NCCL_VERSION", OsStr::new(version)),
        ];
        environment.extend(disabled.map(|value| ("NCCL_P2P_DIRECT_DISABLE", OsStr::new(value))));
        let answer = ask("direct", &environment)?;
        ensure(answer == expected, || format!("{version}, {disabled:?}: {answer}"))?;
    }
    Ok(())
}

/// NCCL of this machine, or the reason for its absence.
pub fn real() -> Result<std::sync::Arc<Library>, String> {
    let first = |message: String| message.split(". ").next().unwrap_or_default().to_owned();
    Library::load().map_err(|error| first(error.to_string()))
}

/// This test uses no device, so it needs neither a GPU nor a setting for multicast.
pub fn real_loads() -> Result<(), Failed> {
    let library = real()?;
    ensure(library.version() >= OLDEST, || format!("{library:?}"))?;
    ensure(library.path().is_file(), || format!("{library:?}"))
}
