//! `gemm-archive`: writes and lists archives of machine code.

use clap::{Args, Parser, Subcommand, ValueEnum};
use gemm_build::{Contents, Error, SgemmCalls, build, entries};
use gemm_runtime::Archive;
use gemm_runtime::spec::{Accuracy, Batch, Epilogue, GemmLayout};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fmt, fs};

/// Compiles kernels of gemm-runtime into archives of machine code, for programs without NVRTC
///
/// Exit code: 0 for success, 2 for a faulty option or spec, or if the work could not be done.
#[derive(Parser)]
#[command(name = "gemm-archive", version)]
struct Command {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Compile kernels and write them to an archive. Needs NVRTC, but no GPU
    Build(Box<Build>),
    /// Print the architecture, NVRTC version, size and spec of each kernel of an archive
    List {
        /// Archive
        file: PathBuf,
    },
}

#[derive(Args)]
struct Build {
    /// Architectures of the GPUs, such as sm_80,sm_90
    #[arg(long, required = true, value_delimiter = ',', value_name = "ARCH")]
    arch: Vec<String>,
    /// Archive to write
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// Rust source, folder of Rust sources, or list of macro calls such as
    /// `sgemm_kernel!(tile: 64x64x8)`, one per line; may be repeated
    #[arg(long, value_name = "PATH")]
    specs: Vec<PathBuf>,
    /// Kernels of the shipped tables
    #[arg(long, value_enum)]
    table: Option<Table>,
    /// Shapes of the calls of `sgemm`, such as 4096x4096x512; all rules if left out
    #[arg(long, requires = "table", requires = "sms", value_delimiter = ',', value_name = "MxNxK")]
    shapes: Vec<String>,
    /// Number of SMs of the GPUs, which the conditions of the tables test
    #[arg(long, requires = "shapes")]
    sms: Option<u32>,
    /// Layouts of A and B in calls of `sgemm`: nn, nt, tn, tt; all if left out
    #[arg(long, requires = "table", value_delimiter = ',')]
    layouts: Vec<String>,
    /// Calls of `sgemm` with padded matrices, in place of packed ones
    #[arg(long, requires = "table")]
    padded: bool,
    /// Calls of `sgemm` with alpha or beta
    #[arg(long, requires = "table")]
    scaled: bool,
    /// Calls of `sgemm` for batches: strided, strided2, strided3, pointers or grouped
    #[arg(long, requires = "table")]
    batch: Option<String>,
    /// Accuracy class of the calls of `sgemm`: ieee, bound or norm
    #[arg(long, requires = "table")]
    accuracy: Option<String>,
    /// Epilogue of the calls of `sgemm`, such as `|acc, bias[n]| relu(acc + bias)`
    #[arg(long, requires = "table", value_name = "EXPRESSION")]
    epilogue: Option<String>,
    /// Kernels that prepare and use split operands, for GEMMs with `mma: wgmma`
    #[arg(long)]
    splits: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Table {
    /// Table of `sgemm`
    Sgemm,
}

/// Reason why the command could not do its work.
enum Failure {
    Archive(Error),
    Runtime(gemm_runtime::Error),
    /// Value of an option, with the fault.
    Option(&'static str, String),
    File(PathBuf, io::Error),
    Output(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Archive(error) => error.fmt(f),
            Self::Runtime(error) => error.fmt(f),
            Self::Option(option, fault) => write!(f, "--{option}: {fault}"),
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Output(error) => write!(f, "cannot write: {error}"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Archive(error)
    }
}

fn main() -> ExitCode {
    let done = match Command::parse().task {
        Task::Build(options) => write_archive(&options),
        Task::List { file } => list(&file),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Output(error)) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            _ = writeln!(io::stderr(), "error: {failure}");
            ExitCode::from(2)
        }
    }
}

fn write_archive(options: &Build) -> Result<(), Failure> {
    let mut contents = Contents::new();
    for path in &options.specs {
        contents = contents.macros_in(path)?;
    }
    if options.table.is_some() {
        contents = contents.sgemm(calls(options)?);
    }
    if options.splits {
        contents = contents.with_splits();
    }
    let archs: Vec<&str> = options.arch.iter().map(String::as_str).collect();
    let built = build(&archs, &contents)?;
    for note in &built.notes {
        _ = writeln!(io::stderr(), "note: {note}");
    }
    let (file, size) = (&options.output, built.bytes.len());
    fs::write(file, &built.bytes).map_err(|error| Failure::File(file.clone(), error))?;
    let shown = file.display();
    let kernels = built.kernels;
    writeln!(io::stdout(), "{shown}: {kernels} kernels, {size} bytes").map_err(Failure::Output)
}

/// Calls of `sgemm` that the options select.
fn calls(options: &Build) -> Result<SgemmCalls, Failure> {
    let mut calls = match options.sms {
        None => SgemmCalls::all(),
        Some(sms) => {
            let shapes = options.shapes.iter().map(|text| shape(text));
            SgemmCalls::for_shapes(sms, shapes.collect::<Result<Vec<_>, _>>()?)
        }
    };
    let layouts = options.layouts.iter().map(|text| word::<GemmLayout>("layouts", text));
    let layouts = layouts.collect::<Result<Vec<_>, _>>()?;
    calls = calls.layouts(if layouts.is_empty() { GemmLayout::ALL } else { &layouts });
    if options.padded {
        calls = calls.padded();
    }
    if options.scaled {
        calls = calls.scaled();
    }
    if let Some(text) = &options.batch {
        calls = calls.batch(word::<Batch>("batch", text)?);
    }
    if let Some(text) = &options.accuracy {
        calls = calls.accuracy(word::<Accuracy>("accuracy", text)?);
    }
    if let Some(text) = &options.epilogue {
        calls = calls.epilogue(word::<Epilogue>("epilogue", text)?);
    }
    Ok(calls)
}

/// Parses the value of an option.
fn word<T: std::str::FromStr<Err: fmt::Display>>(
    option: &'static str,
    text: &str,
) -> Result<T, Failure> {
    text.parse().map_err(|fault: T::Err| Failure::Option(option, fault.to_string()))
}

fn shape(text: &str) -> Result<(usize, usize, usize), Failure> {
    let extents: Result<Vec<usize>, _> = text.split('x').map(str::parse).collect();
    match extents.as_deref() {
        Ok([m, n, k]) => Ok((*m, *n, *k)),
        _ => {
            let fault = format!("`{text}` is not a shape: write m, n and k as in 4096x4096x512");
            Err(Failure::Option("shapes", fault))
        }
    }
}

fn list(file: &Path) -> Result<(), Failure> {
    let bytes = fs::read(file).map_err(|error| Failure::File(file.to_owned(), error))?;
    let name = file.display().to_string();
    let archive = Archive::new(name.leak(), bytes.leak());
    let mut entries = entries(archive).map_err(Failure::Runtime)?;
    entries.sort_by(|one, other| (&one.arch, &one.name).cmp(&(&other.arch, &other.name)));
    let mut out = io::stdout().lock();
    for entry in entries {
        let (major, minor, build) = entry.compiler;
        writeln!(
            out,
            "{:<8} NVRTC {major}.{minor}.{build}  {:>8} bytes  {}",
            entry.arch, entry.size, entry.name
        )
        .map_err(Failure::Output)?;
    }
    Ok(())
}
