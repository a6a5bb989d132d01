//! Plots of measurements, as SVG or PNG.

mod bars;
mod heat;
mod lines;

pub use bars::Bars;
pub use heat::{Heat, Panel};
pub use lines::{Lines, Series};

use plotters::backend::{BitMapBackend, DrawingBackend, SVGBackend};
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::style::{Color, FontStyle, RGBColor, ShapeStyle, WHITE, register_font};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Reason why a plot could not be drawn.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlotError {
    /// The file's name ends neither in `.svg` nor in `.png`.
    #[error("--plot {path}: the name must end in .svg or .png")]
    Format { path: String },
    /// The directory of the file does not exist.
    #[error("--plot {path}: there is no directory {directory}")]
    Directory { path: String, directory: String },
    /// The backend could not draw or write the file.
    #[error("cannot draw {path}: {reason}")]
    Draw {
        path: String,
        /// Reason given by the backend.
        reason: String,
    },
}

/// Path of one of several plots: `plot.svg` becomes `plot-rows.svg`.
pub(crate) fn suffixed(path: &Path, name: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-{name}.{extension}"))
}

/// Default size of a plot in pixels.
const SIZE: (u32, u32) = (960, 600);
const FONT: &str = "sans-serif";
const INK: RGBColor = RGBColor(40, 40, 40);
const GRID: RGBColor = RGBColor(225, 225, 225);

/// Result of drawing, with the error type of any backend.
type Drawn = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Plot that any backend can draw.
pub trait Picture {
    /// Returns the size in pixels.
    fn size(&self) -> (u32, u32) {
        SIZE
    }

    /// Draws the plot into an area of its size.
    ///
    /// # Errors
    /// Returns the errors of the backend.
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Drawn
    where
        B::ErrorType: 'static;
}

#[derive(Clone, Copy)]
enum Format {
    Svg,
    Png,
}

fn format(path: &Path) -> Result<Format, PlotError> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some(e) if e.eq_ignore_ascii_case("svg") => Ok(Format::Svg),
        Some(e) if e.eq_ignore_ascii_case("png") => Ok(Format::Png),
        _ => Err(PlotError::Format { path: path.display().to_string() }),
    }
}

/// Checks the format and the directory of a plot's file. Called before a measurement, whose results
/// would otherwise be lost.
///
/// # Errors
/// Returns any error of [`PlotError`].
pub fn check_path(path: &Path) -> Result<(), PlotError> {
    format(path)?;
    if path.is_dir() {
        let reason = "it is a directory".to_owned();
        return Err(PlotError::Draw { path: path.display().to_string(), reason });
    }
    match path.parent() {
        Some(directory) if directory != Path::new("") && !directory.is_dir() => {
            Err(PlotError::Directory {
                path: path.display().to_string(),
                directory: directory.display().to_string(),
            })
        }
        _ => Ok(()),
    }
}

/// Draws a plot into a file, in the format of its name.
///
/// # Errors
/// Returns any error of [`PlotError`].
pub fn save(picture: &impl Picture, path: &Path) -> Result<(), PlotError> {
    let failed = |reason: String| PlotError::Draw { path: path.display().to_string(), reason };
    // The font is embedded in the program, so that labels have the same width on every machine.
    let font = epaint_default_fonts::UBUNTU_LIGHT;
    register_font(FONT, FontStyle::Normal, font)
        .map_err(|_| failed("its font cannot be read".to_owned()))?;
    let drawn = match format(path)? {
        Format::Svg => {
            let mut text = String::new();
            draw_on(picture, SVGBackend::with_string(&mut text, picture.size()))
                .and_then(|()| Ok(std::fs::write(path, text)?))
        }
        Format::Png => draw_on(picture, BitMapBackend::new(path, picture.size())),
    };
    drawn.map_err(|error| failed(error.to_string()))
}

fn draw_on<B: DrawingBackend>(picture: &impl Picture, backend: B) -> Drawn
where
    B::ErrorType: 'static,
{
    let area = backend.into_drawing_area();
    area.fill(&WHITE)?;
    picture.draw(&area)?;
    area.present()?;
    Ok(())
}

/// Returns the colour of item `i` of `n`, from light blue to deep red, so that the last items are
/// the most visible.
fn shade(i: usize, n: usize) -> RGBColor {
    const STOPS: [(f64, f64, f64); 4] =
        [(158.0, 188.0, 218.0), (65.0, 120.0, 175.0), (230.0, 140.0, 40.0), (190.0, 25.0, 40.0)];
    let at = i as f64 / n.saturating_sub(1).max(1) as f64 * (STOPS.len() - 1) as f64;
    let low = (at as usize).min(STOPS.len() - 2);
    let (from, to, t) = (STOPS[low], STOPS[low + 1], at - low as f64);
    let mix = |a: f64, b: f64| (a + (b - a) * t) as u8;
    RGBColor(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

fn stroke(color: RGBColor, width: u32) -> ShapeStyle {
    color.stroke_width(width)
}

/// Returns a round number above a value, for the end of an axis.
fn axis_end(value: f64) -> f64 {
    if !(value.is_finite() && value > 0.0) {
        return 1.0;
    }
    let unit = 10_f64.powf(value.log10().floor()) / 2.0;
    (value * 1.05 / unit).ceil() * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_says_the_format() {
        assert!(check_path(Path::new("b.svg")).is_ok());
        let directory = tempfile::tempdir().expect("a directory");
        assert!(check_path(&directory.path().join("b.svg")).is_ok());
        let lost = check_path(&directory.path().join("a/b.svg")).expect_err("no directory");
        assert!(lost.to_string().contains("there is no directory"));
        let taken = directory.path().join("taken.svg");
        std::fs::create_dir(&taken).expect("a directory");
        let taken = check_path(&taken).expect_err("no file");
        assert!(taken.to_string().contains("it is a directory"));
        assert!(check_path(Path::new("b.PNG")).is_ok());
        for path in ["plot.pdf", "plot", ""] {
            let error = check_path(Path::new(path)).expect_err("no known format");
            assert!(error.to_string().contains(".svg or .png"));
        }
    }

    #[test]
    fn an_axis_ends_above_its_values() {
        for value in [0.003, 1.0, 9.9, 47.0, 51_234.0] {
            let end = axis_end(value);
            assert!(end > value && end < 2.0 * value, "{value}: {end}");
        }
        assert_eq!(axis_end(0.0), 1.0);
    }

    #[test]
    fn pictures_are_drawn_in_both_formats() {
        let lines = Lines {
            title: "GEMMs".to_owned(),
            x_label: "m = n = k".to_owned(),
            y_label: "GFLOP/s".to_owned(),
            x: vec!["512".to_owned(), "1024".to_owned()],
            series: vec![
                Series { name: "naive".to_owned(), values: vec![Some(1.0), None], emphasis: false },
                Series { name: "cuBLAS".to_owned(), values: vec![Some(8.0); 2], emphasis: true },
            ],
        };
        let bars = Bars {
            title: "Reductions".to_owned(),
            x_label: "GB/s".to_owned(),
            bars: vec![("items".to_owned(), 3.0), ("shuffle".to_owned(), 4.0)],
            ceiling: Some(("read bandwidth".to_owned(), 4.5)),
        };
        let panel = |title: &str, values| Panel {
            title: title.to_owned(),
            rows: vec!["16".to_owned(), "64".to_owned()],
            cols: vec!["4096".to_owned()],
            values,
        };
        let panels = vec![
            panel("k = 64", vec![vec![Some(0.87)], vec![None]]),
            panel("k = 512", vec![vec![Some(f64::NAN)], vec![Some(3.5)]]),
        ];
        let heat = Heat {
            title: "Ratios".to_owned(),
            labels: ["m", "n"].map(str::to_owned),
            panels,
            across: 4,
        };
        let dir = tempfile::tempdir().expect("a temporary directory");
        let read = |path: &Path| std::fs::read(path).expect("a picture");
        for (name, start) in [("plot.svg", &b"<svg"[..]), ("plot.png", &b"\x89PNG"[..])] {
            let path = dir.path().join(name);
            save(&lines, &path).expect("a picture of lines");
            assert!(read(&path).starts_with(start));
            save(&heat, &path).expect("a picture of maps");
            assert!(read(&path).starts_with(start));
            if name.ends_with("svg") {
                let text = String::from_utf8(read(&path)).expect("SVG is text");
                assert!(text.contains("k = 512") && text.contains("0.87") && text.contains("3.50"));
            }
            save(&bars, &path).expect("a picture of bars");
            assert!(read(&path).starts_with(start));
        }
        let text = String::from_utf8(read(&dir.path().join("plot.svg"))).expect("SVG is text");
        assert!(text.contains("shuffle") && text.contains("read bandwidth"));
    }
}
