//! The command line, and the spaces that are known by name.

use crate::cli::{DeviceChoice, Failure, count, seconds, some};
use crate::data;
use crate::family::Family;
use crate::products::Products;
use crate::tune::space::Space;
use crate::tune::table::options::TableOptions;
use clap::{Parser, ValueEnum};
use gemm_oracle::product::Size;
use gemm_perf::{DEVICES, DeviceModel};

/// Search the space of specs for the fastest.
#[derive(Debug, Parser)]
#[command(name = "tune")]
pub struct TuneOptions {
    /// What is searched
    #[arg(long, value_enum, default_value_t = Family::Sgemm)]
    pub family: Family,
    /// A space that is known by name
    #[arg(long, value_enum, default_value_t = Preset::Large, conflicts_with = "space")]
    preset: Preset,
    /// A space: a line of the DSL with alternatives, as in "stages: 3 | 4, raster: none | 8"; several of
    /// these options, or the first key once more behind a `|`, are several lines
    #[arg(long)]
    space: Vec<String>,
    /// Sizes m = n = k of products, of a batch those of each, or lengths of arrays; 2^20+7 is understood
    #[arg(long, value_delimiter = ',', value_parser = count, allow_negative_numbers = true)]
    size: Vec<usize>,
    /// Search for batches of so many products: lines get `batch: strided`, and are compared with
    /// cublasSgemmStridedBatched. Each finalist's results are checked, of large batches those of some
    /// products, the first and the last among them
    #[arg(long, value_parser = count, allow_negative_numbers = true)]
    batch: Option<usize>,
    /// How long the search may take, in seconds
    #[arg(long, default_value_t = 300, value_parser = seconds, allow_negative_numbers = true)]
    pub seconds: u64,
    /// How many specs are timed at leisure, for each size
    #[arg(long, default_value_t = 10)]
    pub finalists: usize,
    /// No search: so many specs, drawn at random, are timed at leisure, as far as the time is enough. What a model
    /// is held against is a sample of the space, not the best of it
    #[arg(long, value_parser = count, allow_negative_numbers = true, conflicts_with = "model_of")]
    pub sample: Option<usize>,
    /// One JSON object a line instead of a table; a ratio is null where cuBLAS is not installed
    #[arg(long)]
    pub json: bool,
    /// Where specs are timed; with the simulator nothing is, and the space is ranked by the model of time
    #[arg(long, value_enum, default_value_t)]
    pub device: DeviceChoice,
    /// The device that the model of time is asked for: a search on a GPU starts from its ranking, which then has a tenth of
    /// the time
    #[arg(long = "for", value_parser = model_of)]
    pub model_of: Option<&'static DeviceModel>,
    /// The model ranks at most so many classes of specs that it can tell apart; without it as many as the time is enough for.
    /// With it a ranking is the same on every machine that has the time
    #[arg(long, value_parser = some, requires = "model_of")]
    pub classes: Option<usize>,
    /// The seed of operands and order
    #[arg(long)]
    pub seed: Option<u64>,
    /// What makes a table.
    #[command(flatten)]
    pub table: TableOptions,
}

/// A device that the model of time knows.
///
/// # Errors
/// Says which it knows.
pub fn model_of(name: &str) -> Result<&'static DeviceModel, String> {
    DeviceModel::named(name).ok_or_else(|| {
        let known: Vec<&str> = DEVICES.iter().map(|device| device.name).collect();
        format!("`{name}` has no model of time. Known are {}", known.join(", "))
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Preset {
    /// Products from 2048 on, arrays beyond the cache.
    Large,
    /// Products up to 2048, of which a large tile would leave multiprocessors idle.
    Small,
}

/// Around the best kernels known for large products.
const LARGE: &[&str] = &[
    "tile: 128x256x16 | 128x256x8 | 128x256x24 | 128x256x32 | 256x128x16 | 256x128x8 | 128x128x16 | 128x128x8,
     thread: 8x16 | 16x8 | 8x8, warp: 64x64 | 32x128 | 128x32 | 64x32 | 32x64,
     float4, fragment: split, transpose, pad_a: 4, stages: 3 | 4 | 5,
     spread: 1 | 2 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 12 | 14 | 16 | 20 | 24 | 30,
     raster: 8 | 4 | 16, order: column_serpentine | row | column | row_serpentine,
     blocks_per_sm: 1 | 2",
];

/// Small tiles: more blocks than multiprocessors.
const SMALL: &[&str] = &[
    "tile: 64x64x8 | 64x64x16 | 64x64x32 | 128x64x8 | 128x64x16 | 64x128x8 | 64x128x16 | 128x64x32
         | 64x128x32 | 64x32x32 | 32x64x32 | 128x128x8 | 128x128x16 | 96x64x16 | 64x96x16,
     thread: 4x4 | 8x4 | 4x8 | 8x8 | 16x4 | 8x16,
     warp: none | 32x32 | 64x32 | 32x64 | 16x32 | 32x16 | 64x16 | 16x64 | 64x64,
     float4, fragment: split, transpose, pad_a: none | 4 | 8,
     double_buffer | stages: 2 | 3 | 4 | 5 | 6, spread: none | 2 | 4 | 6 | 8 | 12 | 16,
     raster: none | 8, order: row | column_serpentine | row_serpentine | column,
     blocks_per_sm: 1 | 2 | 3 | 4, none | pitched",
];

const REDUCTIONS: &[&str] =
    &["block: 64 | 128 | 256 | 512 | 1024, items: 1 | 2 | 3 | 4 | 6 | 8 | 12 | 16 | 24 | 32 | 64,
     float4 | none, shuffle | unroll_last_warp | none"];

impl TuneOptions {
    /// The space to search.
    ///
    /// # Errors
    /// [`Failure::Usage`] for a line that is none, and for the name of a preset.
    pub fn space(&self) -> Result<Space, Failure> {
        let preset = match (self.family, self.preset) {
            (Family::Reduce, _) => REDUCTIONS,
            (Family::Sgemm, Preset::Large) => LARGE,
            (Family::Sgemm, Preset::Small) => SMALL,
        };
        let lines: Vec<&str> = match &self.space[..] {
            [] => preset.to_vec(),
            given => given.iter().map(String::as_str).collect(),
        };
        if let Some(line) =
            self.space.iter().find(|line| Preset::from_str(line.trim(), true).is_ok())
        {
            let name = line.trim().to_lowercase();
            return Err(Failure::Usage(format!(
                "--space {line}: no line of keys, but the name of a space. Did you mean --preset {name}?"
            )));
        }
        Space::parse(&lines).map_err(Failure::Usage)
    }

    /// The sizes to search at.
    fn sizes(&self) -> Result<Vec<usize>, Failure> {
        if self.size.contains(&0) {
            let nothing = "--size 0: there is nothing to time. Give at least 1".to_owned();
            return Err(Failure::Usage(nothing));
        }
        Ok(match (&self.size[..], self.family, self.preset) {
            ([], Family::Reduce, _) => vec![1 << 28],
            ([], Family::Sgemm, Preset::Large) => vec![4096],
            ([], Family::Sgemm, Preset::Small) => vec![1024, 1111, 2048],
            (given, ..) => given.to_vec(),
        })
    }
}

/// What specs are timed on.
#[derive(Debug, PartialEq, Eq)]
pub enum TuneProblem {
    /// Products.
    Products(Vec<Products>),
    /// Reductions of arrays of these lengths.
    Arrays(Vec<usize>),
}

impl TuneOptions {
    /// What to search at.
    ///
    /// # Errors
    /// [`Failure::Usage`] for sizes at which there is nothing to time, or that this machine cannot hold,
    /// and for a batch of reductions.
    pub fn problem(&self) -> Result<TuneProblem, Failure> {
        let (sizes, batch) = (self.sizes()?, self.batch()?);
        match self.family {
            Family::Sgemm => {
                let products = |n| {
                    let products = Products { size: Size::square(n), batch };
                    products.elements().map(|_| products)
                };
                let products: Result<_, _> = sizes.into_iter().map(products).collect();
                products.map(TuneProblem::Products)
            }
            Family::Reduce => {
                let lengths: Result<_, _> = sizes.iter().map(|&n| data::elements(&[n])).collect();
                lengths.map(TuneProblem::Arrays)
            }
        }
    }

    /// How many products a batch has, if batches are searched for.
    fn batch(&self) -> Result<Option<usize>, Failure> {
        let refused = match (self.batch, self.family) {
            (Some(0), _) => "--batch 0: there is nothing to time. Give at least 1",
            (Some(_), Family::Reduce) => "--batch: an option of products. Leave it out",
            _ => return Ok(self.batch),
        };
        Err(Failure::Usage(refused.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gemm_runtime::{ReduceSpec, SgemmSpec};

    #[test]
    fn every_preset_has_sound_specs() {
        for lines in [LARGE, SMALL] {
            let space = Space::parse(lines).expect("a space");
            let point = space.random(&mut fastrand::Rng::with_seed(1));
            assert_eq!(space.neighbours(&point).iter().filter(|p| **p == point).count(), 0);
            let mut random = fastrand::Rng::with_seed(2);
            let sound = (0..400)
                .filter(|_| space.line(&space.random(&mut random)).parse::<SgemmSpec>().is_ok());
            assert!(sound.count() > 10);
        }
        let space = Space::parse(REDUCTIONS).expect("a space");
        let mut random = fastrand::Rng::with_seed(3);
        let line = space.line(&space.random(&mut random));
        assert!(line.parse::<ReduceSpec>().is_ok(), "{line}");
    }

    #[test]
    fn a_batch_has_products_that_fit() {
        let problem = |line: &str| {
            let words = std::iter::once("tune").chain(line.split_whitespace());
            let options = TuneOptions::try_parse_from(words).map_err(|error| error.to_string())?;
            options.problem().map_err(|error| error.to_string())
        };
        let batch = |n| Products { size: Size::square(n), batch: Some(4096) };
        let batches = TuneProblem::Products(vec![batch(16), batch(8)]);
        assert_eq!(problem("--size 16,8 --batch 2^12"), Ok(batches));
        let single = TuneProblem::Products(vec![Products::single(Size::square(9))]);
        assert_eq!(problem("--size 9"), Ok(single));
        assert_eq!(problem("--family reduce --size 9"), Ok(TuneProblem::Arrays(vec![9])));
        for (line, reason) in [
            ("--batch 0", "--batch 0: there is nothing to time"),
            ("--batch -1", "`-1` is negative"),
            ("--batch 2^70", "`2^70` is too large"),
            ("--size 2^20 --batch 2^30", "1073741824 x 1048576 x 1048576 elements do not fit"),
            ("--size 2^40", "1099511627776 x 1099511627776 elements do not fit"),
            ("--family reduce --batch 3", "an option of products"),
        ] {
            let error = problem(line).expect_err(line);
            assert!(error.contains(reason), "{line}: {error}");
        }
    }

    #[test]
    fn the_name_of_a_preset_is_no_space() {
        for (name, meant) in [("small", "small"), (" Large", "large")] {
            let words = ["tune", "--space", name];
            let options = TuneOptions::try_parse_from(words).expect("options");
            let error = options.space().expect_err(name).to_string();
            assert!(error.contains(&format!("Did you mean --preset {meant}?")), "{error}");
        }
    }

    #[test]
    fn seconds_are_a_whole_number() {
        let error = |text: &str| match TuneOptions::try_parse_from(["tune", "--seconds", text]) {
            Err(error) => error.to_string(),
            Ok(options) => panic!("{text} was taken for {}", options.seconds),
        };
        for text in ["-1", "1.5", "soon", "", "NaN", "inf", "1e300", "18446744073709551616"] {
            let expected = format!("`{text}` is no whole number of seconds. Give one such as 300");
            assert!(error(text).contains(&expected), "{}", error(text));
        }
    }

    #[test]
    fn the_catalogues_fastest_is_in_the_space_of_large_products() {
        let mut stages = gemm_dsl::stages::sgemm().into_iter();
        let fastest = stages.find(|stage| stage.name == "fastest").expect("a stage").spec;
        let space = Space::parse(LARGE).expect("a space");
        assert!(space.all().any(|point| space.line(&point).parse() == Ok(fastest.clone())));
    }
}
