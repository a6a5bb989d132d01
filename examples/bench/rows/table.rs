//! Tables and plots of the results.

use gemm_bench::plot;
use gemm_bench::plot::{Bars, Lines, PlotError, Series};
use gemm_bench::rows::peers::PeerKind;
use gemm_bench::rows::problem::{Kind, shape_text};
use gemm_bench::rows::report::{ReductionMean, ReductionRow};
use gemm_bench::table::{Table, number, percent, text};
use std::path::Path;

/// Returns the rows of a table. They have times on a GPU, and columns for the peers that started.
pub fn table(
    kind: Kind,
    rows: &[ReductionRow],
    read_rate: Option<f64>,
    peers: &[(PeerKind, String)],
) -> Table {
    let timed = read_rate.is_some();
    // CUB supports whole arrays and segments. PyTorch supports everything but segments.
    let beside: Vec<PeerKind> = peers
        .iter()
        .map(|(who, _)| *who)
        .filter(|who| match who {
            PeerKind::Torch => kind != Kind::Segments,
            PeerKind::Cub => kind != Kind::Rows,
        })
        .collect();
    let along = match kind {
        Kind::Whole => "type",
        Kind::Rows => "axis",
        Kind::Segments => "segments",
    };
    let mut columns = vec![text(""), text("shape"), text(along), text("op")];
    columns.push(text("rule").wrapping().optional(8));
    if timed {
        columns.extend([
            number("time\nµs"),
            number("GB/s\nread"),
            number("GB/s\nmoved").optional(7),
            number("of read\nrate").optional(4),
        ]);
        for who in &beside {
            columns.push(number(&format!("{}\nGB/s", who.name())).optional(6));
            columns.push(number(&format!("over\n{}", who.name())));
        }
    } else {
        columns.push(number("checked").optional(9));
        columns.push(text("spec").optional(10));
    }
    let mut table = Table::new(columns);
    for row in rows {
        let second = match kind {
            Kind::Whole => row.r#type.clone(),
            Kind::Rows | Kind::Segments => row.along.clone(),
        };
        let mark = row.ok.map_or("–", |ok| if ok { "✓" } else { "✗" });
        let shape = shape_text(&row.shape);
        let mut cells = vec![mark.to_owned(), shape, second, row.op.to_owned()];
        let chosen = row.how.as_ref().or(row.condition.as_ref());
        cells.push(chosen.map_or("else", String::as_str).to_owned());
        if timed {
            let shown = |value: Option<f64>, digits: usize| {
                value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
            };
            cells.push(shown(row.time_us, 2));
            cells.push(shown(row.read_gb_s, 0));
            cells.push(shown(row.moved_gb_s, 0));
            cells.push(row.of_reading.map_or_else(|| "–".to_owned(), percent));
            for who in &beside {
                cells.push(shown(row.rate_of(*who), 0));
                cells.push(shown(row.versus(*who), 2));
            }
        } else {
            cells.push(row.checked.to_string());
            cells.push(row.spec.clone());
        }
        table.add(cells);
    }
    table
}

/// Returns a table of the geometric means.
pub fn means(means: &[ReductionMean]) -> Table {
    let mut table = Table::new([
        text("table"),
        text("op"),
        text("beside"),
        number("mean"),
        number("least").optional(1),
        number("of").optional(2),
    ]);
    for mean in means {
        let (ratio, least) = (format!("{:.2}", mean.ratio), format!("{:.2}", mean.least));
        let names = [mean.table, mean.op, mean.peer].map(str::to_owned);
        table.add(names.into_iter().chain([ratio, least, mean.count.to_string()]));
    }
    table
}

/// Plots the first operation of a table over the shapes, with the peers and the rate of a kernel
/// that only reads.
///
/// # Errors
/// Returns the errors of [`plot::save`].
pub fn draw(
    kind: Kind,
    rows: &[ReductionRow],
    device: &str,
    read_rate: Option<f64>,
    path: &Path,
) -> Result<(), PlotError> {
    let op = rows.first().map_or("", |row| row.op);
    let of_op: Vec<&ReductionRow> = rows.iter().filter(|row| row.op == op).collect();
    match kind {
        Kind::Whole => plot::save(&lines(op, &of_op, device, read_rate), path),
        Kind::Rows | Kind::Segments => plot::save(&bars(op, &of_op, device, read_rate), path),
    }
}

/// Plots whole arrays of `f32` over their lengths.
fn lines(op: &str, rows: &[&ReductionRow], device: &str, read_rate: Option<f64>) -> Lines {
    let rows: Vec<&ReductionRow> = rows.iter().copied().filter(|row| row.r#type == "f32").collect();
    let mut series = vec![Series {
        name: "the table's".to_owned(),
        values: rows.iter().map(|row| row.read_gb_s).collect(),
        emphasis: true,
    }];
    for who in PeerKind::ALL {
        let values: Vec<Option<f64>> = rows.iter().map(|row| row.rate_of(who)).collect();
        if values.iter().any(Option::is_some) {
            series.push(Series { name: who.name().to_owned(), values, emphasis: false });
        }
    }
    if let Some(rate) = read_rate {
        let values = vec![Some(rate); rows.len()];
        series.push(Series { name: "reading 1 GB".to_owned(), values, emphasis: false });
    }
    Lines {
        title: format!("{op} of whole arrays on {device}"),
        x_label: "elements".to_owned(),
        y_label: "GB/s".to_owned(),
        x: rows.iter().map(|row| shape_text(&row.shape)).collect(),
        series,
    }
}

/// Plots rows or segments. Each shape has a bar for our kernel, and below it bars for the peers.
fn bars(op: &str, rows: &[&ReductionRow], device: &str, read_rate: Option<f64>) -> Bars {
    let mut bars = Vec::new();
    for row in rows {
        let Some(rate) = row.read_gb_s else { continue };
        let name = match row.table {
            "rows" => format!("{} axis {}", shape_text(&row.shape), row.along),
            _ => row.along.clone(),
        };
        bars.push((name, rate));
        for who in PeerKind::ALL {
            bars.extend(row.rate_of(who).map(|rate| (who.name().to_owned(), rate)));
        }
    }
    Bars {
        title: format!("{op} on {device}"),
        x_label: "GB/s read".to_owned(),
        bars,
        ceiling: read_rate.map(|rate| ("reading only".to_owned(), rate)),
    }
}
