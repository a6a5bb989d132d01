//! Command line of the program `rows`.

use super::peers::PeersChoice;
use super::problem::{Along, Fold, Kind, ReductionProblem, shape_text};
use super::shapes;
use crate::cli::{DeviceChoice, Failure, count, writable};
use crate::plot;
use clap::Parser;
use std::path::PathBuf;

/// Measure reductions of whole arrays, rows and columns, and segments, against PyTorch and CUB.
/// Every result is checked against f64. Without a GPU, small shapes run on the simulator, and no
/// times are printed.
#[derive(Debug, Parser)]
#[command(name = "rows")]
pub struct RowsOptions {
    /// Device that runs the kernels
    #[arg(long, value_enum, default_value_t)]
    pub device: DeviceChoice,
    /// Measure only these tables
    #[arg(long, value_enum, value_delimiter = ',', value_name = "TABLE")]
    pub only: Vec<Kind>,
    /// Measure only arrays of these shapes, such as 4096x4096 or 2^20x128
    #[arg(long, value_delimiter = ',', value_parser = shape)]
    pub shape: Vec<ProblemExtents>,
    /// Measure only reductions along these axes
    #[arg(long, value_delimiter = ',')]
    pub axis: Vec<usize>,
    /// Measure only these operations
    #[arg(long, value_enum, value_delimiter = ',')]
    pub op: Vec<Fold>,
    /// Spec keys of the kernel, such as "group: 32, items: 8, shuffle", instead of the table's
    /// choice. If repeated, each problem is measured once for each set of keys
    #[arg(long, value_name = "KEYS")]
    pub how: Vec<String>,
    /// Peers to measure; by default all that are installed. PyTorch runs in `python3`, CUB is
    /// compiled with `nvcc`
    #[arg(long, value_enum)]
    pub peers: Option<PeersChoice>,
    /// Write the results to a file, as one JSON object
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Plot the times into .svg or .png files, separated by commas. If there are several tables,
    /// each gets its own file, such as `a-rows.svg` for `a.svg`
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    pub plot: Vec<PathBuf>,
    /// Seed of the random elements; random by default
    #[arg(long)]
    pub seed: Option<u64>,
}

/// Extents, as written on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProblemExtents(Vec<usize>);

fn shape(text: &str) -> Result<ProblemExtents, String> {
    text.split('x').map(count).collect::<Result<_, _>>().map(ProblemExtents)
}

/// Table with its problems, in the order of the output.
pub type ProblemTable = (Kind, Vec<ReductionProblem>);

impl RowsOptions {
    /// Checks all options and returns the selected problems, for the simulator or a GPU.
    ///
    /// # Errors
    /// Returns [`Failure::Usage`], [`Failure::Plot`] and [`Failure::Output`].
    pub fn tables(&self, simulator: bool) -> Result<Vec<ProblemTable>, Failure> {
        let kinds =
            Kind::ALL.into_iter().filter(|kind| self.only.is_empty() || self.only.contains(kind));
        let all: Vec<ProblemTable> =
            kinds.map(|kind| (kind, shapes::problems(kind, simulator))).collect();
        let wanted = |problem: &ReductionProblem| {
            let shape = self.shape.is_empty() || self.shape.iter().any(|s| s.0 == problem.shape);
            let axis = self.axis.is_empty()
                || self.axis.iter().any(|axis| problem.along == Along::Axis(*axis));
            shape && axis && (self.op.is_empty() || self.op.contains(&problem.fold))
        };
        let mut tables = Vec::new();
        for (kind, problems) in &all {
            let problems: Vec<ReductionProblem> =
                problems.iter().filter(|p| wanted(p)).cloned().collect();
            if !problems.is_empty() {
                tables.push((*kind, self.computed(problems)?));
            }
        }
        if tables.is_empty() {
            return Err(Failure::Usage(nothing(&all, simulator)));
        }
        if simulator && self.peers.is_some_and(|peers| peers != PeersChoice::None) {
            return usage(
                "--peers: nothing is timed on the simulator. Use a GPU, or leave out --peers",
            );
        }
        if simulator && !self.plot.is_empty() {
            return usage(
                "--plot: a plot shows times, and nothing is timed on the simulator. Use a GPU",
            );
        }
        for (kind, _) in &tables {
            for path in self.plots(*kind, tables.len()) {
                plot::check_path(&path)?;
                writable(&path)?;
            }
        }
        if let Some(path) = &self.json {
            writable(path)?;
        }
        Ok(tables)
    }

    /// Combines each problem with each given set of spec keys.
    fn computed(&self, problems: Vec<ReductionProblem>) -> Result<Vec<ReductionProblem>, Failure> {
        if self.how.is_empty() {
            return Ok(problems);
        }
        let mut all = Vec::new();
        for problem in &problems {
            for how in &self.how {
                let problem = ReductionProblem { how: Some(how.clone()), ..problem.clone() };
                let plan = problem.spec().and_then(|spec| spec.plan());
                plan.map_err(|errors| Failure::Usage(format!("--how: of {problem}\n{errors}")))?;
                all.push(problem);
            }
        }
        Ok(all)
    }

    /// Returns the plot files of a table, if there are `tables` tables.
    pub fn plots(&self, kind: Kind, tables: usize) -> Vec<PathBuf> {
        let own = |path: &PathBuf| match tables {
            1 => path.clone(),
            _ => plot::suffixed(path, kind.name()),
        };
        self.plot.iter().map(own).collect()
    }
}

fn usage<T>(message: &str) -> Result<T, Failure> {
    Err(Failure::Usage(message.to_owned()))
}

/// Returns the message for an empty selection, which lists the available shapes and operations.
fn nothing(all: &[ProblemTable], simulator: bool) -> String {
    let mut shapes: Vec<String> = Vec::new();
    let mut folds: Vec<&str> = Vec::new();
    for problem in all.iter().flat_map(|(_, problems)| problems) {
        let (shape, fold) = (shape_text(&problem.shape), problem.fold.name());
        if !shapes.contains(&shape) {
            shapes.push(shape);
        }
        if !folds.contains(&fold) {
            folds.push(fold);
        }
    }
    let on = if simulator { " on the simulator" } else { "" };
    format!(
        "--only, --shape, --axis and --op leave nothing to measure{on}. Available are --shape {} \
         and --op {}, but not every combination",
        shapes.join(","),
        folds.join(",")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn tables(line: &str) -> Result<Vec<ProblemTable>, String> {
        let words = std::iter::once("rows").chain(line.split_whitespace());
        let options = RowsOptions::try_parse_from(words).map_err(|error| error.to_string())?;
        options.tables(false).map_err(|error| error.to_string())
    }

    fn error(line: &str) -> String {
        tables(line).expect_err(line)
    }

    #[test]
    fn filters_choose_what_is_measured() {
        let all = tables("").expect("all");
        assert_eq!(all.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), Kind::ALL);
        let rows = tables("--only rows --shape 2^20x128,4096x2^12 --op sum,dot").expect("rows");
        let [(Kind::Rows, problems)] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!(problems.len(), 2 * 2 * 2);
        let along = tables("--axis 0 --op sum").expect("an axis");
        let [(Kind::Rows, problems)] = &along[..] else { panic!("{along:?}") };
        assert!(problems.len() > 2 && problems.iter().all(|p| p.along == Along::Axis(0)));
        let compensated = tables("--op compensated").expect("whole arrays");
        assert!(matches!(compensated[..], [(Kind::Whole, _)]));
    }

    #[test]
    fn unknown_values_are_rejected_with_the_valid_ones() {
        let message = error("--only rows --shape 3x3");
        assert!(
            message.contains("128x4096x4095,2^20x128") && message.contains("logsumexp"),
            "{message}"
        );
        assert!(error("--shape 3y3").contains("`3y3` is not a whole number"));
        assert!(error("--shape=-3x3").contains("negative"));
        assert!(error("--op mean").contains("mean_var"));
        assert!(error("--only columns").contains("segments"));
        assert!(error("--plot a.pdf").contains(".svg or .png"));
        assert!(error("--json nowhere/a.json").contains("nowhere/a.json"));
    }

    #[test]
    fn a_way_that_is_said_is_that_of_each_problem_or_refused_at_its_key() {
        let options =
            ["rows", "--only", "segments", "--how", "group: 32, items: 8", "--how", "group: 256"];
        let options = RowsOptions::try_parse_from(options).expect("options");
        let tables = options.tables(false).expect("tables");
        let [(Kind::Segments, problems)] = &tables[..] else { panic!("{tables:?}") };
        assert_eq!(problems.len(), 2 * 12);
        assert_ne!(problems[0].spec(), problems[1].spec());
        for wrong in ["op: max", "group: 3", "over: rows"] {
            let options =
                RowsOptions::try_parse_from(["rows", "--only", "segments", "--how", wrong]);
            let error = options.expect("options").tables(false).expect_err(wrong).to_string();
            let key = wrong.split(':').next().expect("a key");
            assert!(error.contains("--how") && error.contains(key), "{error}");
        }
    }

    #[test]
    fn several_tables_have_pictures_of_their_own() {
        let options =
            RowsOptions::try_parse_from(["rows", "--plot", "a.svg,b.png"]).expect("options");
        assert_eq!(options.plots(Kind::Rows, 1), [Path::new("a.svg"), Path::new("b.png")]);
        assert_eq!(
            options.plots(Kind::Rows, 3),
            [Path::new("a-rows.svg"), Path::new("b-rows.png")]
        );
    }
}
