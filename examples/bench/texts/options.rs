//! Command line of the program `texts`.

use clap::{Args, Parser};
use gemm_bench::cli::some;
use gemm_bench::texts::cases::Sizes;
use gemm_bench::texts::changes::ChangedSpec;
use gemm_bench::texts::folder::key;
use std::path::PathBuf;

/// Write the texts (generated CUDA sources) of the pinned kernels, or compare them with the texts
/// of another build
#[derive(Debug, Parser)]
#[command(name = "texts")]
pub enum TextsOptions {
    /// Write the text of every pinned kernel into a folder
    Dump {
        /// Folder of the files
        folder: PathBuf,
    },
    /// Time the texts that differ between two builds. Both run in turns in one process
    Compare(CompareOptions),
}

#[derive(Debug, Args)]
pub struct CompareOptions {
    /// Texts of the old build: a folder of `texts dump`, or `snapshots` of a commit
    pub old: PathBuf,
    /// Texts of the new build. Default: the texts of this program
    pub new: Option<PathBuf>,
    /// Only list the texts that differ; time nothing
    #[arg(long)]
    pub list: bool,
    /// Specs to compare, by the start of their names: `sgemm/22`, `reduce`
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Extents m = n = k of the GEMMs
    #[arg(long, value_delimiter = ',', value_parser = some, default_values = ["1024", "4096"])]
    pub size: Vec<usize>,
    /// Lengths of the reduced arrays
    #[arg(long, value_delimiter = ',', value_parser = some, default_values = ["2^20", "2^28"])]
    pub length: Vec<usize>,
    /// Rounds of a measurement. If the new text is slower, the measurement is repeated with four
    /// times as many rounds
    #[arg(long, value_parser = some, default_value = "40")]
    pub rounds: usize,
    /// Minimum slowdown that is reported, in percent
    #[arg(long, default_value_t = 0.5)]
    pub least: f64,
    /// Print one JSON object per line instead of a table
    #[arg(long)]
    pub json: bool,
}

impl CompareOptions {
    /// True if the options select a spec.
    pub fn includes(&self, changed: &ChangedSpec<'_>) -> bool {
        let name = key(changed.spec, "");
        self.only.is_empty() || self.only.iter().any(|start| name.starts_with(&**start))
    }

    /// Returns the sizes, rounded down to whole vectors of four elements.
    pub fn sizes(&self) -> Sizes {
        let whole = |sizes: &[usize]| sizes.iter().map(|size| (size / 4 * 4).max(4)).collect();
        Sizes { sides: whole(&self.size), lengths: whole(&self.length) }
    }
}
