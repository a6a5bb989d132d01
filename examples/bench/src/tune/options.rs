//! Command line of `tune`, and the named search spaces.

use crate::cli::{DeviceChoice, Failure, count, seconds, some};
use crate::data;
use crate::family::Family;
use crate::products::Products;
use crate::tune::space::Space;
use crate::tune::table::options::TableOptions;
use clap::{Parser, ValueEnum};
use gemm_oracle::product::Size;
use gemm_perf::{DEVICES, DeviceModel};

/// Search a space of specs for the fastest.
#[derive(Debug, Parser)]
#[command(name = "tune")]
pub struct TuneOptions {
    /// Kernel family to search
    #[arg(long, value_enum, default_value_t = Family::Sgemm)]
    pub family: Family,
    /// Named search space, instead of --space
    #[arg(long, value_enum, default_value_t = Preset::Large, conflicts_with = "space")]
    preset: Preset,
    /// Search space: a spec with alternatives, as in "stages: 3 | 4, raster: none | 8". For a union
    /// of several specs, repeat the option, or repeat the first key after a `|`
    #[arg(long)]
    space: Vec<String>,
    /// Sizes m = n = k of GEMMs (each GEMM of a batch), or lengths of arrays; accepts 2^20+7
    #[arg(long, value_delimiter = ',', value_parser = count, allow_negative_numbers = true)]
    size: Vec<usize>,
    /// Search for batches of this many GEMMs. Specs get `batch: strided` and are compared with
    /// cublasSgemmStridedBatched. The results of each finalist are checked. In large batches,
    /// only some GEMMs are checked, including the first and the last
    #[arg(long, value_parser = count, allow_negative_numbers = true)]
    batch: Option<usize>,
    /// Time limit of the search, in seconds
    #[arg(long, default_value_t = 300, value_parser = seconds, allow_negative_numbers = true)]
    pub seconds: u64,
    /// Number of specs timed thoroughly, for each size
    #[arg(long, default_value_t = 10)]
    pub finalists: usize,
    /// Instead of searching, time this many random specs, or as many as the time limit allows. The
    /// result is an unbiased sample of the space, to validate a model
    #[arg(long, value_parser = count, allow_negative_numbers = true, conflicts_with = "model_of")]
    pub sample: Option<usize>,
    /// Print one JSON object per line instead of a table; a ratio is null if cuBLAS is not
    /// installed
    #[arg(long)]
    pub json: bool,
    /// Device that times the specs. On the simulator nothing is timed, and the time model ranks the
    /// space
    #[arg(long, value_enum, default_value_t)]
    pub device: DeviceChoice,
    /// Device of the time model. With this option, a search on a GPU starts from a ranking by the
    /// model, which takes up to 30 % of the time limit
    #[arg(long = "for", value_parser = model_of)]
    pub model_of: Option<&'static DeviceModel>,
    /// Maximum number of spec classes that the model ranks. Default: as many as the time limit
    /// allows. With this option, the ranking is the same on every machine that reaches the number
    #[arg(long, value_parser = some, requires = "model_of")]
    pub classes: Option<usize>,
    /// Seed of the operands and of the order
    #[arg(long)]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub table: TableOptions,
}

/// Parses the name of a device with a time model.
///
/// # Errors
/// Returns a message that lists the known devices.
pub fn model_of(name: &str) -> Result<&'static DeviceModel, String> {
    DeviceModel::named(name).ok_or_else(|| {
        let known: Vec<&str> = DEVICES.iter().map(|device| device.name).collect();
        format!("`{name}` has no time model. Known are {}", known.join(", "))
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Preset {
    /// GEMMs of at least 2048, arrays larger than the cache
    Large,
    /// GEMMs up to 2048, for which large tiles would leave SMs idle
    Small,
}

/// Neighbourhood of the best known kernels for large GEMMs.
const LARGE: &[&str] = &["tile: 128x256x16 | 128x256x8 | 128x256x24 | 128x256x32 | 256x128x16
         | 256x128x8 | 128x128x16 | 128x128x8,
     thread: 8x16 | 16x8 | 8x8, warp: 64x64 | 32x128 | 128x32 | 64x32 | 32x64,
     float4, fragment: split, transpose, pad_a: 4, stages: 3 | 4 | 5,
     spread: 1 | 2 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 12 | 14 | 16 | 20 | 24 | 30,
     raster: 8 | 4 | 16, order: column_serpentine | row | column | row_serpentine,
     blocks_per_sm: none | 2, none | stage_c"];

/// Small tiles, for more blocks than SMs.
const SMALL: &[&str] = &[
    "tile: 64x64x8 | 64x64x16 | 64x64x32 | 128x64x8 | 128x64x16 | 64x128x8 | 64x128x16 | 128x64x32
         | 64x128x32 | 64x32x32 | 32x64x32 | 128x128x8 | 128x128x16 | 96x64x16 | 64x96x16,
     thread: 4x4 | 8x4 | 4x8 | 8x8 | 16x4 | 8x16,
     warp: none | 32x32 | 64x32 | 32x64 | 16x32 | 32x16 | 64x16 | 16x64 | 64x64,
     float4, fragment: split, transpose, pad_a: none | 4 | 8,
     double_buffer | stages: 2 | 3 | 4 | 5 | 6, spread: none | 2 | 4 | 6 | 8 | 12 | 16,
     raster: none | 8, order: row | column_serpentine | row_serpentine | column,
     blocks_per_sm: none | 2 | 3 | 4, none | pitched",
];

const REDUCTIONS: &[&str] =
    &["block: 64 | 128 | 256 | 512 | 1024, items: 1 | 2 | 3 | 4 | 6 | 8 | 12 | 16 | 24 | 32 | 64,
     float4 | none, shuffle | unroll_last_warp | none"];

impl TuneOptions {
    /// Parses the search space.
    ///
    /// # Errors
    /// Returns [`Failure::Usage`] for an invalid spec, and for the name of a preset.
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
                "--space {line}: this is the name of a space, not a spec. Did you mean --preset \
                 {name}?"
            )));
        }
        Space::parse(&lines).map_err(Failure::Usage)
    }

    /// Returns the sizes for which to search.
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

/// Problems on which specs are timed.
#[derive(Debug, PartialEq, Eq)]
pub enum TuneProblem {
    Products(Vec<Products>),
    /// Reductions of arrays of these lengths.
    Arrays(Vec<usize>),
}

impl TuneOptions {
    /// Returns the problems for which to search.
    ///
    /// # Errors
    /// Returns [`Failure::Usage`] if a size is 0 or exceeds this machine's memory, and for a batch
    /// of reductions.
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

    /// Returns the number of GEMMs in a batch, if batches are searched for.
    fn batch(&self) -> Result<Option<usize>, Failure> {
        let refused = match (self.batch, self.family) {
            (Some(0), _) => "--batch 0: there is nothing to time. Give at least 1",
            (Some(_), Family::Reduce) => "--batch: an option of GEMMs. Leave out --batch",
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
            ("--family reduce --batch 3", "an option of GEMMs"),
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
            let expected =
                format!("`{text}` is not a whole number of seconds. Give one such as 300");
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
