//! Kernels that an archive shall contain.

use crate::error::Error;
use crate::scan::{self, lines, macro_calls};
use gemm_dsl::plan::{MapPlan, ReducePlan, ScanPlan, SgemmPlan};
use gemm_dsl::spec::{MapSpec, ReduceSpec, SgemmSpec};
use gemm_dsl::tables::{KernelTable, TableFamily};
use gemm_dsl::{Plan, SpecErrors};
pub use gemm_runtime::internal::SgemmCalls;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Kernels that an archive shall contain.
///
/// ```
/// use gemm_build::{Contents, SgemmCalls};
///
/// let contents = Contents::new()
///     .reduce_kernel("op: max, over: rows")?
///     .map_kernel("|x[m, n], bias[n]| gelu(x + bias)")?
///     .sgemm_kernel("tile: 64x64x8, thread: 8x8")?
///     .sgemm(SgemmCalls::for_shapes(132, [(512, 512, 512)]));
/// assert!(Contents::new().reduce_kernel("op: maximum").is_err());
/// # Ok::<(), gemm_build::Error>(())
/// ```
///
/// A kernel is put into the archive with all its access variants. The kernels that fold the shards
/// of a reduction, which `gemm-world` launches, are not part of an archive.
#[derive(Clone, Debug, Default)]
#[must_use = "pass it to `embed` or `build`"]
pub struct Contents {
    pub(crate) gemms: BTreeSet<String>,
    pub(crate) reductions: BTreeSet<String>,
    pub(crate) maps: BTreeSet<String>,
    pub(crate) scans: BTreeSet<String>,
    pub(crate) calls: Vec<SgemmCalls>,
    pub(crate) with_splits: bool,
    /// Files and folders that were read.
    pub(crate) read: Vec<PathBuf>,
    /// Macro calls whose specs are not known.
    pub(crate) unknown: Vec<String>,
}

impl Contents {
    /// Contents of an empty archive.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the kernel of a spec of `sgemm_kernel!` or `gemm_kernel!`.
    ///
    /// # Errors
    /// [`Error::Spec`] with all faults of the spec.
    pub fn sgemm_kernel(mut self, spec: &str) -> Result<Self, Error> {
        let plan: SgemmPlan = parsed("sgemm_kernel", spec)?;
        self.gemms.insert(plan.spec().to_string());
        Ok(self)
    }

    /// Adds the kernel of a spec of `gemm_kernel!` or `sgemm_kernel!`.
    ///
    /// # Errors
    /// [`Error::Spec`] with all faults of the spec.
    pub fn gemm_kernel(mut self, spec: &str) -> Result<Self, Error> {
        let plan: SgemmPlan = parsed(SgemmSpec::TYPED, spec)?;
        self.gemms.insert(plan.spec().to_string());
        Ok(self)
    }

    /// Adds the kernel of a spec of `reduce_kernel!`.
    ///
    /// # Errors
    /// [`Error::Spec`] with all faults of the spec.
    pub fn reduce_kernel(mut self, spec: &str) -> Result<Self, Error> {
        let plan: ReducePlan = parsed("reduce_kernel", spec)?;
        self.reductions.insert(plan.spec().to_string());
        Ok(self)
    }

    /// Adds the kernel of a spec of `map_kernel!` or `row_kernel!`.
    ///
    /// # Errors
    /// [`Error::Spec`] with all faults of the spec.
    pub fn map_kernel(mut self, spec: &str) -> Result<Self, Error> {
        let plan: MapPlan = parsed("map_kernel", spec)?;
        self.maps.insert(plan.spec().to_string());
        Ok(self)
    }

    /// Adds the kernel of a spec of `row_kernel!` or `map_kernel!`.
    ///
    /// # Errors
    /// [`Error::Spec`] with all faults of the spec.
    pub fn row_kernel(mut self, spec: &str) -> Result<Self, Error> {
        let plan: MapPlan = parsed(MapSpec::ROWS, spec)?;
        self.maps.insert(plan.spec().to_string());
        Ok(self)
    }

    /// Adds the kernel of a spec of `scan_kernel!`.
    ///
    /// # Errors
    /// [`Error::Spec`] with all faults of the spec.
    pub fn scan_kernel(mut self, spec: &str) -> Result<Self, Error> {
        let plan: ScanPlan = parsed("scan_kernel", spec)?;
        self.scans.insert(plan.spec().to_string());
        Ok(self)
    }

    /// Adds the kernels of all rules of an `sgemm_table!` or `gemm_table!`, for each layout that a
    /// rule admits.
    ///
    /// # Errors
    /// [`Error::Spec`] with all faults of the table.
    pub fn sgemm_table(mut self, rules: &str) -> Result<Self, Error> {
        self.gemms.extend(table::<SgemmSpec>("sgemm_table", rules)?);
        Ok(self)
    }

    /// Adds the kernels of all rules of a `gemm_table!` or `sgemm_table!`, for each layout that a
    /// rule admits.
    ///
    /// # Errors
    /// [`Error::Spec`] with all faults of the table.
    pub fn gemm_table(mut self, rules: &str) -> Result<Self, Error> {
        self.gemms.extend(table::<SgemmSpec>("gemm_table", rules)?);
        Ok(self)
    }

    /// Adds the kernels of all rules of a `reduce_table!`.
    ///
    /// # Errors
    /// [`Error::Spec`] with all faults of the table.
    pub fn reduce_table(mut self, rules: &str) -> Result<Self, Error> {
        self.reductions.extend(table::<ReduceSpec>("reduce_table", rules)?);
        Ok(self)
    }

    /// Adds the kernels of all calls of `sgemm_kernel!`, `gemm_kernel!`, `reduce_kernel!`,
    /// `map_kernel!`, `row_kernel!`, `scan_kernel!`, `sgemm_table!`, `gemm_table!` and
    /// `reduce_table!` in a file, or in all files `*.rs` of a folder and its subfolders.
    ///
    /// The files are split into tokens and not expanded. Calls in code that `cfg` disables count,
    /// calls under another name do not. A call in the body of a `macro_rules!` whose spec contains
    /// `$` has no known spec: [`embed`](crate::embed) prints a warning with the call. Add these
    /// specs one by one.
    ///
    /// # Errors
    /// * [`Error::File`] if the file or the folder cannot be read.
    /// * [`Error::Tokens`] for a file that is not Rust.
    /// * [`Error::NoCalls`] if there are no calls.
    /// * [`Error::Macro`] for a faulty call.
    pub fn macros_in(mut self, path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let mut has_calls = false;
        for file in scan::files(path)? {
            let found = macro_calls(&file)?;
            has_calls |= !found.is_empty();
            self.gemms.extend(found.gemms);
            self.reductions.extend(found.reductions);
            self.maps.extend(found.maps);
            self.scans.extend(found.scans);
            self.unknown.extend(found.unknown);
        }
        if !has_calls {
            return Err(Error::NoCalls { path: path.to_owned() });
        }
        self.read.push(path.to_owned());
        Ok(self)
    }

    /// Adds the kernels of calls of `sgemm`, from the tables that ship with `gemm-runtime`.
    pub fn sgemm(mut self, calls: SgemmCalls) -> Self {
        self.calls.push(calls);
        self
    }

    /// Adds the kernels that prepare and use `SplitMatrix` operands, for all GEMMs with
    /// `mma: wgmma`.
    pub fn with_splits(self) -> Self {
        Self { with_splits: true, ..self }
    }
}

fn parsed<P: Plan>(name: &str, text: &str) -> Result<P, Error> {
    text.parse().map_err(|faults| faulty(name, text, faults))
}

fn table<S: TableFamily>(name: &str, text: &str) -> Result<Vec<String>, Error> {
    let table: Result<KernelTable<S>, SpecErrors> = text.parse();
    Ok(lines(&table.map_err(|faults| faulty(name, text, faults))?).collect())
}

fn faulty(name: &str, text: &str, faults: SpecErrors) -> Error {
    Error::Spec { call: format!("{name}!({text})"), faults }
}
