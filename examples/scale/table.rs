//! What was found, for people and for programs.

use crate::options::Options;
use gemm_examples::cli::Failure;
use gemm_examples::plot::{Lines, Series, save};
use gemm_examples::report::write_line;
use gemm_examples::show::{Table, number, percent, text, time};
use gemm_runtime::world::{Layout, Layouts, Rank, Schedule, WorldError};
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};

/// How the matrices of a product are dealt out: A by rows, B and C by columns.
pub fn layouts(n: usize, ranks: usize, weak: bool) -> Layouts {
    let cols = if weak { n * ranks } else { n };
    Layouts { a: Layout::rows(n, n), b: Layout::cols(n, cols), c: Layout::cols(n, cols) }
}

/// What was measured, or predicted.
#[derive(Debug, Serialize)]
pub struct Row {
    /// `product` or `sum`.
    what: &'static str,
    /// The device; what was predicted says so.
    device: String,
    ranks: usize,
    shape: String,
    /// What is the same on any number of ranks.
    size: String,
    /// Milliseconds of the part of a rank, which it computes alone, with all that it needs.
    alone_ms: Option<f64>,
    /// Milliseconds on all ranks.
    ms: Option<f64>,
    /// The one over the other.
    efficiency: Option<f64>,
    /// What was predicted of that.
    predicted: Option<f64>,
    /// Whether the bits are those of one device, or, of a sum, it is near to that of the parts.
    is_right: bool,
}

impl Row {
    pub fn product(
        rank: &Rank,
        c: &Layout,
        terms: usize,
        [alone, ms]: [f64; 2],
        predicted: f64,
        is_right: bool,
    ) -> Self {
        let shape = format!("{}x{}x{terms}", c.rows, c.cols);
        let size = format!("product of {terms}");
        Self::of(("product", size), rank, shape, [alone, ms], Some(predicted), is_right)
    }

    pub fn sum(rank: &Rank, len: usize, times: [f64; 2], is_right: bool) -> Self {
        Self::of(("sum", format!("sum of {len}")), rank, len.to_string(), times, None, is_right)
    }

    fn of(
        (what, size): (&'static str, String),
        rank: &Rank,
        shape: String,
        [alone, ms]: [f64; 2],
        predicted: Option<f64>,
        is_right: bool,
    ) -> Self {
        let device = rank.device();
        // How long a simulation takes says nothing of GPUs.
        let is_timed = !device.is_simulator();
        let of = |value: f64| is_timed.then_some(value);
        Self {
            what,
            device: device.name().to_owned(),
            ranks: rank.ranks(),
            shape,
            size,
            alone_ms: of(alone),
            ms: of(ms),
            efficiency: of(alone / ms),
            predicted,
            is_right,
        }
    }

    pub fn is_right(&self) -> bool {
        self.is_right
    }
}

/// What is predicted of a product on so many ranks, which nobody has measured here.
pub fn predicted(options: &Options, ranks: usize, n: usize) -> Result<Row, Failure> {
    let machine = options.machine(ranks);
    let layouts = layouts(n, ranks, options.weak);
    let shape = format!("{}x{}x{n}", layouts.c.rows, layouts.c.cols);
    let chosen = Schedule::cheapest(layouts, ranks, &machine, None);
    let chosen = chosen.map_err(|fault| gemm_runtime::Error::World(WorldError::from(fault)))?;
    eprintln!("{chosen}");
    let estimate = &chosen.estimate;
    Ok(Row {
        what: "product",
        device: format!("{}, not measured", machine.name),
        ranks,
        shape,
        size: format!("product of {n}"),
        alone_ms: Some(estimate.time * estimate.efficiency() * 1e3),
        ms: Some(estimate.time * 1e3),
        efficiency: None,
        predicted: Some(estimate.efficiency()),
        is_right: true,
    })
}

/// Prints the rows, writes them and draws them, as is asked for.
pub fn print(options: &Options, rows: &[Row]) -> Result<(), Failure> {
    if rows.is_empty() {
        // Rank 0 speaks for all.
        return Ok(());
    }
    let mut table = Table::new([
        text("device"),
        text("what"),
        number("ranks"),
        text("shape"),
        number("alone ms"),
        number("ms"),
        number("efficiency"),
        number("predicted"),
        text("result"),
    ]);
    for row in rows {
        let share = |value: Option<f64>| value.map(percent).unwrap_or_default();
        let ms = |value: Option<f64>| value.map(time).unwrap_or_default();
        table.add([
            row.device.clone(),
            row.what.to_owned(),
            row.ranks.to_string(),
            row.shape.clone(),
            ms(row.alone_ms),
            ms(row.ms),
            share(row.efficiency),
            share(row.predicted),
            match (row.is_right, row.what) {
                (false, _) => "OTHER",
                (true, "sum") => "near",
                (true, _) => "same",
            }
            .to_owned(),
        ]);
    }
    writeln!(io::stdout(), "{}", table.text())?;
    if let Some(path) = &options.json {
        let mut file = File::create(path)?;
        rows.iter().try_for_each(|row| write_line(&mut file, row))?;
    }
    if let Some(path) = &options.plot {
        save(&picture(options, rows), path)?;
    }
    Ok(())
}

/// The efficiency over the ranks, a line for each size; that of nobody's measurement is told apart.
fn picture(options: &Options, rows: &[Row]) -> Lines {
    let mut ranks: Vec<usize> = rows.iter().map(|row| row.ranks).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let mut names: Vec<&str> = rows.iter().map(|row| row.size.as_str()).collect();
    names.dedup();
    names.sort_unstable();
    names.dedup();
    let line = |name: &str, kind: &str, value: &dyn Fn(&Row) -> Option<f64>| {
        let of = |ranks: &usize| rows.iter().find(|row| row.ranks == *ranks && row.size == name);
        let values: Vec<Option<f64>> = ranks.iter().map(|ranks| value(of(ranks)?)).collect();
        let some = values.iter().any(Option::is_some);
        some.then(|| Series { name: format!("{name}, {kind}"), values, emphasis: false })
    };
    let series = names.iter().flat_map(|name| {
        [
            line(name, "measured", &|row| row.efficiency),
            line(name, "predicted", &|row| row.predicted),
        ]
    });
    Lines {
        title: if options.weak { "Weak scaling" } else { "Strong scaling" }.to_owned(),
        x_label: "ranks".to_owned(),
        y_label: "time alone over time together".to_owned(),
        x: ranks.iter().map(usize::to_string).collect(),
        series: series.flatten().collect(),
    }
}
