//! Command line of the program `grid`.

use super::arena;
use crate::cli::{Failure, count, writable};
use crate::plot;
use crate::shapes::{self, DEPTHS, GemmShape, SIDES};
use crate::table_source::{read, rows_of};
use clap::Parser;
use gemm_dsl::spec::{Accuracy, GemmLayout};
use gemm_oracle::product::Size;
use gemm_runtime::SgemmTable;
use std::path::PathBuf;

/// Measure GEMMs of all shapes on a GPU, as `sgemm` computes them, against cuBLAS. Every result is
/// checked against f64.
#[derive(Debug, Parser)]
#[command(name = "grid")]
pub struct GridOptions {
    #[command(flatten)]
    shapes: Shapes,
    /// Measure N random sizes instead of the grid, with extents log-uniform from 1 to 8192 and a
    /// random layout
    #[arg(long, value_name = "N", conflicts_with_all = ["m", "n", "k", "only"])]
    random: Option<usize>,
    /// Use the kernels of a table that `tune --table` wrote, instead of `sgemm`
    #[arg(long, value_name = "FILE.rs")]
    table: Option<PathBuf>,
    /// Accuracy class of `sgemm`: `bound` and `norm` allow tensor cores to emulate f32
    #[arg(long, default_value = "ieee", value_parser = accuracy, conflicts_with = "table")]
    pub accuracy: Accuracy,
    /// Write the results to a file, as one JSON object
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Plot the ratios to cuBLAS into .svg or .png files, separated by commas
    #[arg(long, value_name = "FILE", value_delimiter = ',', conflicts_with = "random")]
    pub plot: Vec<PathBuf>,
    /// Seed of the random elements and sizes; random by default
    #[arg(long)]
    pub seed: Option<u64>,
}

/// Selection of GEMMs by extents and layouts.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Shapes {
    /// Rows of C, instead of the grid's
    #[arg(long, value_delimiter = ',', value_parser = extent, conflicts_with = "only")]
    m: Vec<usize>,
    /// Columns of C, instead of the grid's
    #[arg(long, value_delimiter = ',', value_parser = extent, conflicts_with = "only")]
    n: Vec<usize>,
    /// Extents K, instead of the grid's
    #[arg(long, value_delimiter = ',', value_parser = extent, conflicts_with = "only")]
    k: Vec<usize>,
    /// Layouts to measure. Default: all four if m and n are at least 64, otherwise nn
    #[arg(long, value_delimiter = ',', value_parser = layout)]
    layout: Vec<GemmLayout>,
    /// Sizes to measure instead of the grid, such as 4096x4x512
    #[arg(long, value_delimiter = ',', value_parser = size, value_name = "MxNxK")]
    only: Vec<Size>,
}

/// Parses an extent of at least 1.
fn extent(text: &str) -> Result<usize, String> {
    match count(text)? {
        0 => Err("there is nothing to measure. Give at least 1".to_owned()),
        extent => Ok(extent),
    }
}

/// Parses an accuracy class.
///
/// # Errors
/// Returns a message that lists the classes.
pub fn accuracy(text: &str) -> Result<Accuracy, String> {
    text.parse().map_err(|_| {
        let words: Vec<&str> = Accuracy::ALL.iter().map(|class| class.word()).collect();
        format!("`{text}` is not an accuracy class. The classes are {}", words.join(", "))
    })
}

fn layout(text: &str) -> Result<GemmLayout, String> {
    text.parse().map_err(|_| {
        let words: Vec<&str> = GemmLayout::ALL.iter().map(|layout| layout.word()).collect();
        format!("`{text}` is not a layout. The layouts are {}", words.join(", "))
    })
}

/// Reads a size such as `4096x4x512`.
///
/// # Errors
/// Returns a message if the text is not a size.
pub fn size(text: &str) -> Result<Size, String> {
    let extents: Vec<usize> = text.split('x').map(extent).collect::<Result<_, _>>()?;
    match extents[..] {
        [m, n, k] => Ok(Size { m, n, k }),
        _ => Err(format!("`{text}` is not a size. Give m, n and k as in 4096x4x512")),
    }
}

impl Shapes {
    pub fn all(&self) -> Vec<GemmShape> {
        if !self.only.is_empty() {
            let sizes = self.only.iter();
            let of =
                |size: &Size| shapes::products([&[size.m], &[size.n]], &[size.k], &self.layout);
            return sizes.flat_map(of).collect();
        }
        fn axis<'s>(given: &'s [usize], grid: &'s [usize]) -> &'s [usize] {
            if given.is_empty() { grid } else { given }
        }
        let sides = [axis(&self.m, &SIDES), axis(&self.n, &SIDES)];
        shapes::products(sides, axis(&self.k, &DEPTHS), &self.layout)
    }

    /// Returns true if any of these options is given.
    pub fn is_given(&self) -> bool {
        let extents = [&self.m, &self.n, &self.k];
        let axes = extents.iter().any(|extents| !extents.is_empty());
        axes || !self.layout.is_empty() || !self.only.is_empty()
    }

    /// Returns the requested layouts; empty for all.
    pub fn layouts(&self) -> &[GemmLayout] {
        &self.layout
    }
}

impl GridOptions {
    /// Reads the table that replaces [`sgemm`](gemm_runtime::sgemm), if one is given.
    ///
    /// # Errors
    /// Returns [`Failure::Usage`] if the table cannot be read, or if its epilogue has operands.
    pub fn table(&self) -> Result<Option<SgemmTable>, Failure> {
        let Some(path) = &self.table else { return Ok(None) };
        let named =
            |reason: String| Failure::Usage(format!("--table {}: {reason}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| named(error.to_string()))?;
        let table = read(rows_of(&text)).map_err(named)?;
        SgemmTable::new(&table).map(Some).map_err(|error| named(error.to_string()))
    }

    /// Checks all options and returns the selected GEMMs.
    ///
    /// # Errors
    /// Returns [`Failure::Usage`], [`Failure::Plot`] and [`Failure::Output`].
    pub fn shapes(&self, seed: u64) -> Result<Vec<GemmShape>, Failure> {
        let shapes = match self.random {
            None => self.shapes.all(),
            Some(0) => {
                let nothing = "--random 0: there is nothing to measure. Give at least 1";
                return Err(Failure::Usage(nothing.to_owned()));
            }
            Some(count) => shapes::random(seed, count, self.shapes.layouts()),
        };
        arena::elements(&shapes)?;
        for path in &self.plot {
            plot::check_path(path)?;
            writable(path)?;
        }
        if let Some(path) = &self.json {
            writable(path)?;
        }
        Ok(shapes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(line: &str) -> Result<Vec<String>, String> {
        let words = std::iter::once("grid").chain(line.split_whitespace());
        let options = GridOptions::try_parse_from(words).map_err(|error| error.to_string())?;
        let shapes = options.shapes(3).map_err(|error| error.to_string())?;
        Ok(shapes.iter().map(GemmShape::to_string).collect())
    }

    #[test]
    fn axes_and_layouts_are_chosen() {
        assert_eq!(shapes("").map(|shapes| shapes.len()), Ok(196 + 192));
        assert_eq!(shapes("--layout nn").map(|shapes| shapes.len()), Ok(196));
        let some = shapes("--m 1,64 --n 2^6 --k 512").expect("shapes");
        assert_eq!(some[0], "1x64x512 nn");
        assert_eq!(some[1..], ["nn", "nt", "tn", "tt"].map(|l| format!("64x64x512 {l}")));
        let one = shapes("--only 4096x4x32768,5x6x7 --layout tn").expect("shapes");
        assert_eq!(one, ["4096x4x32768 tn", "5x6x7 tn"]);
        assert_eq!(shapes("--random 9").map(|shapes| shapes.len()), Ok(9));
        let drawn = shapes("--random 9 --layout tt").expect("shapes");
        assert!(drawn.iter().all(|shape| shape.ends_with(" tt")), "{drawn:?}");
    }

    #[test]
    fn a_table_may_be_measured() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("table.rs");
        let table = |text: &str| {
            std::fs::write(&path, text).expect("written");
            let words = ["grid".to_owned(), "--table".to_owned(), path.display().to_string()];
            let options = GridOptions::try_parse_from(words).expect("options");
            options.table().map_err(|error| error.to_string())
        };
        let rows = "m <= 8 => tile: 8x8x8;\nelse => tile: 16x16x8";
        for text in
            [rows.to_owned(), format!("const A: SgemmTable = sgemm_table! {{ {rows}; }};\n")]
        {
            let table = table(&text).expect(&text).expect("a table");
            assert_eq!(table.text(), rows);
        }
        let no_else = table("m <= 8 => tile: 8x8x8").expect_err("no else");
        assert!(no_else.contains("--table") && no_else.contains("else"), "{no_else}");
        assert!(table("else => scaled").expect_err("operands").contains("--table"));
    }

    #[test]
    fn invalid_shapes_are_rejected() {
        for (line, reason) in [
            ("--m 0", "nothing to measure"),
            ("--random 0", "nothing to measure"),
            ("--only 4x5", "`4x5` is not a size"),
            ("--only 4x0x5", "nothing to measure"),
            (
                "--accuracy best",
                "`best` is not an accuracy class. The classes are ieee, bound, norm",
            ),
            ("--accuracy bound --table a.rs", "cannot be used with"),
            ("--layout nx", "`nx` is not a layout. The layouts are nn, nt, tn, tt"),
            ("--random 3 --m 4", "cannot be used with"),
            ("--only 3x3x3 --k 4", "cannot be used with"),
            ("--random 3 --plot a.svg", "cannot be used with"),
            ("--m 2^40 --n 2^40", "do not fit into the memory of this machine"),
            ("--plot a.pdf", ".svg or .png"),
            ("--json nowhere/a.json", "nowhere/a.json"),
        ] {
            let error = shapes(line).expect_err(line);
            assert!(error.contains(reason), "{line}: {error}");
        }
    }
}
