//! Command line of `ladder`, and the resulting job of each ladder.

use crate::cli::{DeviceChoice, Failure, count};
use crate::plot;
use clap::{Parser, ValueEnum};
use gemm_dsl::stages::Stage;
use gemm_oracle::product::Size;
use gemm_runtime::SgemmSpec;
use gemm_runtime::spec::{Block, Op};
use std::path::PathBuf;

/// Run, check and compare the stages of the ladders of reductions and matrix multiplications.
#[derive(Debug, Parser)]
#[command(name = "ladder")]
pub struct LadderOptions {
    /// Ladder to run. By default both run, and --n, --block and --op apply to the reductions
    pub ladder: Option<LadderChoice>,
    /// Device that runs the kernels
    #[arg(long, value_enum, default_value_t)]
    pub device: DeviceChoice,
    /// Length of the reduced array, or columns of B and C; accepts 2^20+7
    #[arg(long, value_parser = count, allow_negative_numbers = true)]
    pub n: Option<usize>,
    /// Rows of A and C
    #[arg(long, value_parser = count, allow_negative_numbers = true)]
    pub m: Option<usize>,
    /// Columns of A, rows of B
    #[arg(long, value_parser = count, allow_negative_numbers = true)]
    pub k: Option<usize>,
    /// Numbers of the stages; all by default
    #[arg(long, value_delimiter = ',', conflicts_with = "source")]
    pub stage: Vec<u32>,
    /// Square GEMMs of these sizes
    #[arg(
        long,
        value_delimiter = ',',
        value_parser = count,
        allow_negative_numbers = true,
        conflicts_with_all = ["m", "k"]
    )]
    pub size: Vec<usize>,
    /// Number of GEMMs in a batch, each of the given size. Every stage runs with `batch: strided`,
    /// against cublasSgemmStridedBatched. In large batches only some GEMMs are checked, including
    /// the first and the last
    #[arg(long, value_parser = count, allow_negative_numbers = true)]
    pub batch: Option<usize>,
    /// Threads in a block of a reduction. For GEMMs, block widths such as 16,32, for the stages
    /// that support several
    #[arg(long, value_delimiter = ',')]
    pub block: Vec<u32>,
    /// Operator of the reductions: sum, prod, max or min
    #[arg(long)]
    pub op: Option<Op>,
    /// Array to reduce, or the two matrices to multiply, as float32 .npy files
    #[arg(long, num_args = 1..=2, value_name = "NPY")]
    pub input: Vec<PathBuf>,
    /// Print one JSON object per line instead of tables. null means that a value does not apply;
    /// numbers that JSON cannot represent are "inf", "-inf" and "nan"
    #[arg(long, conflicts_with = "source")]
    pub json: bool,
    /// Print the CUDA C of a stage, by number or name, and run nothing
    #[arg(long, value_name = "STAGE")]
    pub source: Option<String>,
    /// Plot the result into .svg or .png files, separated by commas: `--plot a.svg,a.png`
    #[arg(long, value_name = "FILE", value_delimiter = ',', conflicts_with = "source")]
    pub plot: Vec<PathBuf>,
    /// Write the book into this folder: for each stage, a page that explains its kernel's speed
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = [
            "source", "json", "plot", "ladder", "device", "stage", "n", "m", "k", "size", "batch",
            "block", "op", "input", "seed",
        ]
    )]
    pub html: Option<PathBuf>,
    /// Seed of the random operands; random by default
    #[arg(long)]
    pub seed: Option<u64>,
}

/// Ladder, as named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LadderChoice {
    /// Reductions of an array to one value
    Reduce,
    /// Matrix multiplications
    Sgemm,
}

/// Jobs of the two ladders. At least one is `Some`.
#[derive(Debug)]
pub struct Jobs {
    pub reduce: Option<ReduceJob>,
    pub sgemm: Option<SgemmJob>,
}

/// Job of the reduction ladder.
#[derive(Debug, Default)]
pub struct ReduceJob {
    /// Numbers of the stages; empty for all.
    pub stages: Vec<u32>,
    pub op: Op,
    /// Threads in a block. If `None`, each stage has its own number.
    pub block: Option<u32>,
    pub input: ReduceInput,
    pub plots: Vec<PathBuf>,
}

#[derive(Debug, Default)]
pub enum ReduceInput {
    /// Random, of a length that suits the device.
    #[default]
    Default,
    /// Random array of this length.
    Random(usize),
    /// NumPy file of a vector.
    File(PathBuf),
}

/// Job of the GEMM ladder.
#[derive(Debug, Default)]
pub struct SgemmJob {
    /// Numbers of the stages. If empty, all stages.
    pub stages: Vec<u32>,
    /// Block widths for the stages that support several. If empty, each stage has its own width.
    pub blocks: Vec<u32>,
    /// Number of GEMMs in a batch; `None` for single GEMMs.
    pub batch: Option<usize>,
    pub input: SgemmInput,
    pub plots: Vec<PathBuf>,
}

#[derive(Debug, Default)]
pub enum SgemmInput {
    /// Random, of sizes that suit the device.
    #[default]
    Default,
    /// Random matrices for each of these sizes.
    Random(Vec<Size>),
    /// NumPy files of A and B.
    Files(PathBuf, PathBuf),
}

impl LadderOptions {
    /// Returns the job of each ladder from the options.
    ///
    /// # Errors
    /// Returns [`Failure::Usage`] for options that conflict.
    pub fn jobs(&self) -> Result<Jobs, Failure> {
        // If no ladder is named, `--n` applies to the GEMM if other extents of the GEMM are given.
        let product_extents = self.m.is_some() || self.k.is_some();
        let reduce = match self.ladder {
            Some(LadderChoice::Sgemm) => None,
            named => {
                if named.is_some() {
                    refuse(product_extents, "--m and --k", "sgemm")?;
                    refuse(!self.size.is_empty(), "--size", "sgemm")?;
                    refuse(self.input.len() > 1, "a second --input", "sgemm")?;
                    refuse(self.batch.is_some(), "--batch", "sgemm")?;
                }
                let n = self.n.filter(|_| named.is_some() || !product_extents);
                Some(self.reduce_job(n)?)
            }
        };
        let sgemm = match self.ladder {
            Some(LadderChoice::Reduce) => None,
            named => {
                if named.is_some() {
                    refuse(self.op.is_some(), "--op", "reduce")?;
                }
                Some(self.sgemm_job(named.is_some())?)
            }
        };
        Ok(Jobs { reduce, sgemm })
    }

    /// Returns the files of a ladder's plots, after checking that each can be written.
    fn plots(&self, ladder: &str) -> Result<Vec<PathBuf>, Failure> {
        let both = self.ladder.is_none();
        let own = |path: &PathBuf| {
            let path = if both { plot::suffixed(path, ladder) } else { path.clone() };
            plot::check_path(&path)?;
            Ok(path)
        };
        self.plot.iter().map(own).collect()
    }

    fn reduce_job(&self, n: Option<usize>) -> Result<ReduceJob, Failure> {
        let block = match self.block[..] {
            [] => None,
            [block] => Some(block),
            _ => return usage("reductions take one --block"),
        };
        let input = match (&self.input[..], n) {
            ([path], None) => ReduceInput::File(path.clone()),
            ([_], Some(_)) => {
                return usage("--n and --input: the file determines the length. Leave out --n");
            }
            (_, Some(n)) => ReduceInput::Random(n),
            (_, None) => ReduceInput::Default,
        };
        Ok(ReduceJob {
            stages: self.stage.clone(),
            op: self.op.unwrap_or_default(),
            block,
            input,
            plots: self.plots("reduce")?,
        })
    }

    fn sgemm_job(&self, named: bool) -> Result<SgemmJob, Failure> {
        let extents = [self.m, self.n, self.k];
        let any = if named {
            extents.iter().any(Option::is_some)
        } else {
            extents[0].or(extents[2]).is_some()
        };
        let products = named || self.input.len() == 2;
        if products && !self.input.is_empty() && (any || !self.size.is_empty()) {
            return usage("--input and a size: the files determine the sizes. Leave out the size");
        }
        if products && !self.input.is_empty() && self.batch.is_some() {
            return usage("--input and --batch: the files contain one GEMM. Leave out --batch");
        }
        if self.batch == Some(0) {
            return usage("--batch 0: there is nothing to multiply. Give at least 1");
        }
        let sizes = match extents {
            _ if !self.size.is_empty() && named && any => {
                return usage("--size and --n: give only one of them");
            }
            _ if !self.size.is_empty() => self.size.iter().map(|&n| Size::square(n)).collect(),
            [Some(m), Some(n), Some(k)] => vec![Size { m, n, k }],
            _ if any => return usage("a GEMM requires all of --m, --n and --k, or --size"),
            _ => Vec::new(),
        };
        if let Some(Size { m, n, k }) = sizes.iter().find(|size| size.m == 0 || size.n == 0) {
            return usage(format!(
                "a GEMM of {m} x {n} x {k} has no elements. Give at least 1 row and 1 column"
            ));
        }
        let input = match &self.input[..] {
            [_] if named => return usage("a GEMM requires two files: --input a.npy b.npy"),
            [a, b] => SgemmInput::Files(a.clone(), b.clone()),
            _ if sizes.is_empty() => SgemmInput::Default,
            _ => SgemmInput::Random(sizes),
        };
        let blocks = if named { self.block.clone() } else { Vec::new() };
        for &width in &blocks {
            SgemmSpec::default().block(Block::new(width, width)).plan()?;
        }
        let (stages, plots) = (self.stage.clone(), self.plots("sgemm")?);
        Ok(SgemmJob { stages, blocks, batch: self.batch, input, plots })
    }
}

/// Keeps the stages with the given numbers, or all if none is given.
///
/// # Errors
/// Returns [`Failure::Usage`] if none of the stages has such a number.
pub fn select<S>(stages: &mut Vec<Stage<S>>, numbers: &[u32]) -> Result<(), Failure> {
    if numbers.is_empty() {
        return Ok(());
    }
    let last = stages.last().map_or(0, |stage| stage.index);
    stages.retain(|stage| numbers.contains(&stage.index));
    if stages.is_empty() {
        let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
        let numbers = numbers.join(",");
        return usage(format!(
            "--stage {numbers}: this ladder has no such stage. Give up to {last}"
        ));
    }
    Ok(())
}

fn usage<T>(message: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Usage(message.into()))
}

fn refuse(given: bool, what: &str, ladder: &str) -> Result<(), Failure> {
    if given { usage(format!("{what}: only for `ladder {ladder}`")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn jobs(line: &str) -> Result<Jobs, String> {
        let words = std::iter::once("ladder").chain(line.split_whitespace());
        let options = LadderOptions::try_parse_from(words).map_err(|e| e.to_string())?;
        options.jobs().map_err(|e| e.to_string())
    }

    fn error(line: &str) -> String {
        jobs(line).expect_err(line)
    }

    #[test]
    fn without_a_ladder_both_run() {
        let jobs = jobs("").expect("both");
        assert!(matches!(jobs.reduce, Some(ReduceJob { input: ReduceInput::Default, .. })));
        assert!(matches!(jobs.sgemm, Some(SgemmJob { input: SgemmInput::Default, .. })));
    }

    #[test]
    fn without_a_ladder_n_goes_with_its_companions() {
        let reductions = jobs("--n 100 --block 64 --op max --plot p.svg,p.png").expect("sound");
        let job = reductions.reduce.expect("a reduction");
        assert!(matches!(job.input, ReduceInput::Random(100)));
        assert_eq!((job.block, job.op), (Some(64), Op::Max));
        assert_eq!(job.plots, [Path::new("p-reduce.svg"), Path::new("p-reduce.png")]);
        assert!(matches!(reductions.sgemm.map(|j| j.input), Some(SgemmInput::Default)));

        let products = jobs("--m 1 --n 2 --k 3").expect("sound");
        assert!(matches!(products.reduce.map(|j| j.input), Some(ReduceInput::Default)));
        let Some(SgemmInput::Random(sizes)) = products.sgemm.map(|job| job.input) else {
            panic!("random matrices");
        };
        assert_eq!(sizes, [Size { m: 1, n: 2, k: 3 }]);
    }

    #[test]
    fn products_take_sizes_and_blocks() {
        let job = jobs("sgemm --size 16,32 --block 16,32").expect("sound").sgemm.expect("a job");
        let SgemmInput::Random(sizes) = job.input else { panic!("random matrices") };
        assert_eq!(sizes, [Size::square(16), Size::square(32)]);
        assert_eq!((&job.blocks[..], job.batch), (&[16, 32][..], None));
        let job = jobs("--size 16 --batch 2^12").expect("sound").sgemm.expect("a job");
        assert_eq!(job.batch, Some(4096));
    }

    #[test]
    fn stages_are_selected_by_number() {
        let job = jobs("sgemm --stage 22,5").expect("sound").sgemm.expect("a job");
        let mut stages = gemm_dsl::stages::sgemm();
        select(&mut stages, &job.stages).expect("two stages");
        assert_eq!(stages.iter().map(|stage| stage.index).collect::<Vec<_>>(), [5, 22]);
        let mut stages = gemm_dsl::stages::reduce();
        let error = select(&mut stages, &job.stages[..1]).expect_err("no stage 22").to_string();
        assert!(
            error.contains("--stage 22: this ladder has no such stage. Give up to 10"),
            "{error}"
        );
        assert_eq!(jobs("--stage 5").expect("sound").reduce.expect("a job").stages, [5]);
    }

    #[test]
    fn conflicting_options_are_rejected() {
        assert!(error("reduce --m 3").contains("ladder sgemm"));
        assert!(error("sgemm --op max").contains("ladder reduce"));
        assert!(error("sgemm --m 3").contains("all of"));
        assert!(error("sgemm --input a.npy").contains("two files"));
        assert!(error("sgemm --size 8 --input a.npy b.npy").contains("determine the sizes"));
        assert!(error("sgemm --m 3 --input a.npy b.npy").contains("determine the sizes"));
        assert!(error("--m 1 --n 2 --k 3 --input a.npy b.npy").contains("determine the sizes"));
        assert!(error("--input a.npy b.npy --m 5").contains("determine the sizes"));
        assert!(error("sgemm --block 16,48").contains("`block: 48x48` is 48"));
        assert!(error("sgemm --source 17 --plot p.svg").contains("cannot be used with"));
        assert!(error("sgemm --source 17 --json").contains("cannot be used with"));
        assert!(error("reduce --n 8 --input a.npy").contains("determines the length"));
        assert!(error("reduce --block 64,128").contains("one --block"));
        assert!(error("reduce --plot p.svg,p.pdf").contains(".svg or .png"));
        assert!(error("reduce --plot nowhere/p.svg").contains("no directory nowhere"));
        // The book always has all stages, at fixed shapes, on the simulator, so no other option
        // applies.
        let options = <LadderOptions as clap::CommandFactory>::command();
        let others = options.get_arguments().filter_map(|argument| argument.get_long());
        let others: Vec<&str> = others.filter(|other| !["html", "help"].contains(other)).collect();
        assert!(others.len() > 10, "{others:?}");
        for other in others {
            let value = match other {
                "json" => "",
                "device" => "simulator",
                "op" => "max",
                _ => "5",
            };
            let error = error(&format!("--html book --{other} {value}"));
            assert!(error.contains("cannot be used with"), "{other}: {error}");
        }
        assert!(error("reduce --html book").contains("cannot be used with"));
        for line in ["sgemm --size 8,0", "sgemm --m 0 --n 2 --k 3", "--m 2 --n 0 --k 3"] {
            assert!(error(line).contains("has no elements. Give at least 1"), "{line}");
        }
        assert!(jobs("sgemm --m 2 --n 3 --k 0").is_ok(), "sums of nothing are 0");
        assert!(error("reduce --op mean").contains("`mean`"));
        assert!(error("reduce --batch 3").contains("ladder sgemm"));
        assert!(error("sgemm --batch 0").contains("nothing to multiply. Give at least 1"));
        assert!(error("sgemm --batch 2 --input a.npy b.npy").contains("one GEMM"));
        for line in ["--n -1", "sgemm --size 8,-1"] {
            assert!(error(line).contains("`-1` is negative"), "{}", error(line));
        }
    }
}
