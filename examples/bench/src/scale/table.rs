//! Results of `scale`, as a table, JSON and a plot.

use super::options::ScaleOptions;
use super::sums::{self, PredictedTimes};
use crate::cli::Failure;
use crate::plot::{Lines, Series, save};
use crate::report::write_line;
use crate::table::{Table, number, percent, text, time};
use gemm_world::{ClusterModel, Distribution, Distributions, Rank, Schedule};
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};

/// Returns the distributions of a GEMM's matrices: A by rows, B and C by columns.
pub fn layouts(n: usize, ranks: usize, weak: bool) -> Distributions {
    let cols = if weak { n.saturating_mul(ranks) } else { n };
    Distributions {
        a: Distribution::rows(n, n),
        b: Distribution::cols(n, cols),
        c: Distribution::cols(n, cols),
    }
}

/// Measured or predicted result, for one size and number of ranks.
#[derive(Clone, Debug, Serialize)]
pub struct ScaleRow {
    /// Kind of the measurement: `product` or `sum`.
    what: &'static str,
    /// Device. For a prediction, the name says that it was not measured.
    device: String,
    ranks: usize,
    shape: String,
    /// Label of the extent that does not depend on the number of ranks, such as `product of 8192`.
    size: String,
    /// Milliseconds on one device that has all data, for one rank's part of a GEMM or for the sum
    /// of the whole array.
    alone_ms: Option<f64>,
    /// Milliseconds on all ranks together.
    ms: Option<f64>,
    /// Speed of each rank divided by the speed of the single device.
    efficiency: Option<f64>,
    /// Machine for which the time and the efficiency below are predicted.
    predicted_of: &'static str,
    predicted_ms: Option<f64>,
    predicted: Option<f64>,
    /// Share of the gather's cost that overlapping saves, if parts of A arrive during the GEMM.
    hidden: Option<f64>,
    /// True if the result has the same bits as on one device; `None` for a prediction.
    is_right: Option<bool>,
}

/// Measured times in milliseconds, medians over the rounds.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredTimes {
    /// Time on one device, the baseline.
    pub alone: f64,
    /// Time on all ranks together, with the chosen strategy.
    pub shared: f64,
    /// Time on all ranks, with a complete gather before the GEMM.
    pub in_turn: Option<f64>,
}

/// Minimum share of the gather's cost in the total time for which a hidden share is reported.
const SEEN: f64 = 0.005;

impl MeasuredTimes {
    /// Returns the share of the gather's cost that overlapping saves. It is negative if overlapping
    /// takes longer.
    fn hidden(&self) -> Option<f64> {
        let in_turn = self.in_turn?;
        let cost = in_turn - self.alone;
        (cost > SEEN * in_turn).then(|| (in_turn - self.shared) / cost)
    }
}

struct RowSubject {
    what: &'static str,
    size: String,
    shape: String,
    /// Number of devices that share the work of the single device.
    shares: f64,
}

impl ScaleRow {
    /// Creates the row of a measured GEMM with `terms` as its extent K.
    pub fn product(
        rank: &Rank,
        c: &Distribution,
        terms: usize,
        measured: MeasuredTimes,
        predicted: PredictedTimes,
        is_right: bool,
    ) -> Self {
        let shape = format!("{}x{}x{terms}", c.rows, c.cols);
        let of = RowSubject { what: "GEMM", size: format!("GEMM of {terms}"), shape, shares: 1.0 };
        Self::measured(of, rank, measured, predicted, is_right)
    }

    /// Creates the row of a measured sum of `len` elements.
    pub fn sum(
        rank: &Rank,
        len: usize,
        measured: MeasuredTimes,
        predicted: PredictedTimes,
        is_right: bool,
    ) -> Self {
        let (size, shares) = (format!("sum of {len}"), rank.ranks() as f64);
        let of = RowSubject { what: "sum", size, shape: len.to_string(), shares };
        Self::measured(of, rank, measured, predicted, is_right)
    }

    fn measured(
        RowSubject { what, size, shape, shares }: RowSubject,
        rank: &Rank,
        measured: MeasuredTimes,
        predicted: PredictedTimes,
        is_right: bool,
    ) -> Self {
        let device = rank.device();
        // The time of a simulation says nothing about GPUs.
        let is_timed = !device.is_simulator();
        let of = |value: f64| is_timed.then_some(value);
        Self {
            what,
            device: device.name().to_owned(),
            ranks: rank.ranks(),
            shape,
            size,
            alone_ms: of(measured.alone),
            ms: of(measured.shared),
            efficiency: of(measured.alone / (shares * measured.shared)),
            predicted_of: rank.machine().name,
            predicted_ms: Some(predicted.time * 1e3),
            predicted: Some(predicted.efficiency),
            hidden: measured.hidden().filter(|_| is_timed),
            is_right: Some(is_right),
        }
    }

    /// Creates the row of a prediction from the seconds on one device and on all devices.
    fn predicted(
        of: RowSubject,
        machine: &ClusterModel,
        ranks: usize,
        alone: f64,
        predicted: PredictedTimes,
    ) -> Self {
        Self {
            what: of.what,
            device: format!("{}, not measured", machine.name),
            ranks,
            shape: of.shape,
            size: of.size,
            alone_ms: Some(alone * 1e3),
            ms: None,
            efficiency: None,
            predicted_of: machine.name,
            predicted_ms: Some(predicted.time * 1e3),
            predicted: Some(predicted.efficiency),
            hidden: None,
            is_right: None,
        }
    }

    /// Returns false if a result is wrong.
    pub fn is_right(&self) -> bool {
        self.is_right != Some(false)
    }
}

/// Predicts all GEMMs and sums on a number of ranks.
///
/// # Errors
/// Returns [`Failure::Usage`] if something cannot be predicted.
pub fn predicted(options: &ScaleOptions, ranks: usize) -> Result<Vec<ScaleRow>, Failure> {
    let machine = options.machine(ranks)?;
    let computing = machine.computing(&options.product_spec()?);
    let mut rows = Vec::new();
    for n in options.sizes()? {
        let layouts = layouts(n, ranks, options.weak);
        let shape = format!("{}x{}x{n}", layouts.c.rows, layouts.c.cols);
        let chosen = Schedule::cheapest(layouts, ranks, &computing, None);
        let chosen = chosen
            .map_err(|fault| Failure::Usage(format!("--size {n} --predict {ranks}: {fault}")))?;
        let said = writeln!(io::stderr(), "{chosen}");
        said.map_err(Failure::Output)?;
        let estimate = &chosen.estimate;
        let of = RowSubject { what: "GEMM", size: format!("GEMM of {n}"), shape, shares: 1.0 };
        let predicted = PredictedTimes { time: estimate.time, efficiency: estimate.efficiency() };
        rows.push(ScaleRow::predicted(of, &computing, ranks, estimate.local, predicted));
    }
    let spec = options.sum_spec()?;
    for len in options.sums()? {
        let times = sums::predicted(&spec, len, ranks, &machine);
        let shares = ranks as f64;
        let of = RowSubject {
            what: "sum",
            size: format!("sum of {len}"),
            shape: len.to_string(),
            shares,
        };
        rows.push(ScaleRow::predicted(of, &machine, ranks, times.one, times.on(ranks)));
    }
    Ok(rows)
}

/// Lays out the rows as a table.
fn table(rows: &[ScaleRow]) -> Table {
    let mut table = Table::new([
        text("device"),
        text("what"),
        number("ranks"),
        text("shape"),
        number("alone"),
        number("together"),
        number("predicted"),
        number("efficiency"),
        number("predicted"),
        number("hidden"),
        text("bits"),
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
            ms(row.predicted_ms),
            share(row.efficiency),
            share(row.predicted),
            share(row.hidden),
            match row.is_right {
                None => "",
                Some(true) => "same",
                Some(false) => "OTHER",
            }
            .to_owned(),
        ]);
    }
    table
}

/// Names the machines for which times are predicted. They may differ from the measured machine.
fn machines(rows: &[ScaleRow]) -> String {
    let mut names: Vec<&str> = rows.iter().map(|row| row.predicted_of).collect();
    names.dedup();
    format!("Predicted: {}", names.join("; "))
}

/// Prints the rows, and writes the requested JSON and plot.
///
/// # Errors
/// Returns [`Failure::Output`] and [`Failure::Plot`].
pub fn print(options: &ScaleOptions, rows: &[ScaleRow]) -> Result<(), Failure> {
    if rows.is_empty() {
        // Only rank 0 prints.
        return Ok(());
    }
    writeln!(io::stdout(), "{}\n{}", table(rows).text(), machines(rows))?;
    if let Some(path) = &options.json {
        let written = File::create(path)
            .and_then(|mut file| rows.iter().try_for_each(|row| write_line(&mut file, row)));
        written.map_err(|error| crate::cli::named(path, &error))?;
    }
    if let Some(path) = &options.plot {
        save(&picture(options, rows), path)?;
    }
    Ok(())
}

/// Plots the efficiency over the ranks, with a line for each size and a separate line for its
/// prediction.
fn picture(options: &ScaleOptions, rows: &[ScaleRow]) -> Lines {
    let mut ranks: Vec<usize> = rows.iter().map(|row| row.ranks).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let mut names: Vec<&str> = rows.iter().map(|row| row.size.as_str()).collect();
    names.dedup();
    names.sort_unstable();
    names.dedup();
    let line = |name: &str, kind: &str, value: &dyn Fn(&ScaleRow) -> Option<f64>| {
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
        y_label: "time of one rank over time of all".to_owned(),
        x: ranks.iter().map(usize::to_string).collect(),
        series: series.flatten().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use gemm_world::World;

    fn of_world(line: &str) -> Vec<ScaleRow> {
        let options = ScaleOptions::try_parse_from(line.split_whitespace()).expect(line);
        let mut rows = Vec::new();
        for ranks in &options.predict {
            rows.extend(predicted(&options, *ranks).expect(line));
        }
        rows
    }

    #[test]
    fn predictions_have_no_measured_fields() {
        let rows = of_world("scale --predict 1,4,16 --size 8192 --sum 2^32 --carry nccl");
        assert_eq!(rows.len(), 6);
        for row in &rows {
            assert!(row.is_right());
            let json = serde_json::to_value(row).expect("JSON");
            for key in ["is_right", "ms", "efficiency", "hidden"] {
                assert!(json[key].is_null(), "{key}: {json}");
            }
            assert!(
                json["device"].as_str().is_some_and(|name| name.ends_with(", not measured")),
                "{json}"
            );
            let efficiency = json["predicted"].as_f64().expect("a number");
            assert!(efficiency > 0.5 && efficiency <= 1.0, "{json}");
            // For a GEMM, the single device computes one part. For a sum, it computes all.
            let ranks = if row.what == "sum" { row.ranks as f64 } else { 1.0 };
            let ratio = json["alone_ms"].as_f64().expect("a number")
                / json["predicted_ms"].as_f64().expect("a number");
            assert!((ratio / ranks - efficiency).abs() < 1e-9, "{json}");
        }
        let text = table(&rows).text();
        assert!(!text.contains("same") && !text.contains("OTHER"), "{text}");
    }

    #[test]
    fn the_hidden_share_is_relative_to_the_gather() {
        let of = |alone, shared, in_turn| MeasuredTimes { alone, shared, in_turn }.hidden();
        assert_eq!(of(8.0, 8.5, Some(10.0)), Some(0.75));
        assert_eq!(of(8.0, 8.0, Some(10.0)), Some(1.0));
        assert_eq!(of(8.0, 11.0, Some(10.0)), Some(-0.5));
        // If the gather costs nothing, there is no hidden share.
        assert_eq!(of(8.0, 8.0, Some(8.0)), None);
        assert_eq!(of(8.0, 8.0, Some(7.9)), None);
        assert_eq!(of(8.0, 8.0, None), None);
    }

    #[test]
    fn simulated_devices_have_bits_and_no_times() {
        let rows = World::simulated(2).expect("a world").run(|rank| {
            let measured = MeasuredTimes { alone: 4.0, shared: 2.5, in_turn: Some(9.0) };
            let predicted = PredictedTimes { time: 2e-3, efficiency: 0.9 };
            let c = Distribution::cols(4, 6);
            let right = rank.number() == 0;
            Ok([
                ScaleRow::product(rank, &c, 5, measured, predicted, right),
                ScaleRow::sum(rank, 7, measured, predicted, right),
            ])
        });
        let rows = rows.expect("rows");
        for row in rows.iter().flatten() {
            assert_eq!(
                (row.alone_ms, row.ms, row.efficiency, row.hidden),
                (None, None, None, None)
            );
            assert_eq!((row.predicted_ms, row.predicted), (Some(2.0), Some(0.9)));
        }
        assert!(rows[0].iter().all(ScaleRow::is_right) && !rows[1].iter().any(ScaleRow::is_right));
        let lines: Vec<String> = table(&rows.concat())
            .text()
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            lines[0],
            "device what ranks shape alone together predicted efficiency predicted hidden bits"
        );
        assert_eq!(lines[2], "the simulator GEMM 2 4x6x5 2.000 ms 90.0 % same");
        assert_eq!(lines[3], "the simulator sum 2 7 2.000 ms 90.0 % same");
        assert_eq!(lines[4], "the simulator GEMM 2 4x6x5 2.000 ms 90.0 % OTHER");
        assert_eq!(machines(&rows.concat()), "Predicted: H200, NCCL");
    }
}
