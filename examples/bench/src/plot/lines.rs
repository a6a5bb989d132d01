//! Line charts over a few sizes. Each line is labelled at its end.

use super::{Drawn, FONT, GRID, INK, Picture, axis_end, shade, stroke};
use plotters::backend::DrawingBackend;
use plotters::chart::ChartBuilder;
use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::element::{Circle, PathElement, Text};
use plotters::series::LineSeries;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, RGBColor, TextStyle};

/// Line chart of several quantities over the same sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines {
    pub title: String,
    /// Name of the x axis.
    pub x_label: String,
    /// Name of the y axis, with the unit of the values.
    pub y_label: String,
    /// Labels of the sizes, evenly spaced.
    pub x: Vec<String>,
    /// Lines in the order of their colours.
    pub series: Vec<Series>,
}

/// Line over the sizes of the chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Label at the end of the line.
    pub name: String,
    /// Value for each size, if it was measured.
    pub values: Vec<Option<f64>>,
    /// Draws the line black and bold, as a reference for the others.
    pub emphasis: bool,
}

/// Height of a label in pixels.
const LABEL: i32 = 14;
/// Width in pixels of the margin for the labels.
const MARGIN: u32 = 210;

impl Lines {
    fn color(&self, number: usize) -> RGBColor {
        let plain = |series: &&Series| !series.emphasis;
        match self.series.get(number) {
            Some(series) if series.emphasis => INK,
            _ => shade(
                self.series.iter().take(number).filter(plain).count(),
                self.series.iter().filter(plain).count(),
            ),
        }
    }

    fn points(&self, series: &Series) -> Vec<(f64, f64)> {
        let values = series.values.iter().enumerate();
        values.filter_map(|(i, value)| Some((i as f64, (*value)?))).collect()
    }
}

impl Picture for Lines {
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Drawn
    where
        B::ErrorType: 'static,
    {
        let values = self.series.iter().flat_map(|series| series.values.iter().flatten());
        let top = axis_end(values.copied().fold(0.0, f64::max));
        let right = self.x.len().saturating_sub(1).max(1) as f64;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, (FONT, 20).into_font().color(&INK))
            .margin(12)
            .margin_right(MARGIN)
            .x_label_area_size(42)
            .y_label_area_size(64)
            .build_cartesian_2d(-0.05 * right..right * 1.02, 0.0..top)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(plotters::style::TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(INK)
            .x_labels(0)
            .y_label_formatter(&|y| format!("{y}"))
            .y_desc(&self.y_label)
            .label_style((FONT, 13).into_font().color(&INK))
            .draw()?;

        let mut ends = Vec::new();
        for (number, series) in self.series.iter().enumerate() {
            let color = self.color(number);
            let width = if series.emphasis { 3 } else { 2 };
            let points = self.points(series);
            chart.draw_series(LineSeries::new(points.iter().copied(), stroke(color, width)))?;
            chart.draw_series(points.iter().map(|&at| Circle::new(at, 3, color.filled())))?;
            if let Some(last) = points.last() {
                ends.push((chart.backend_coord(last), series.name.as_str(), color));
            }
        }
        let text = |color: &RGBColor, size| -> TextStyle<'_> {
            (FONT, size).into_font().color(color).pos(Pos::new(HPos::Left, VPos::Center))
        };
        for (number, size) in self.x.iter().enumerate() {
            let (x, y) = chart.backend_coord(&(number as f64, 0.0));
            let style = text(&INK, 13).pos(Pos::new(HPos::Center, VPos::Top));
            area.draw(&Text::new(size.clone(), (x, y + 6), style))?;
        }
        let (left, bottom) = chart.backend_coord(&(0.0, 0.0));
        let (end, _) = chart.backend_coord(&(right, 0.0));
        let below = text(&INK, 14).pos(Pos::new(HPos::Center, VPos::Top));
        area.draw(&Text::new(self.x_label.clone(), ((left + end) / 2, bottom + 24), below))?;

        ends.sort_by_key(|((_, y), ..)| *y);
        let heights: Vec<i32> = ends.iter().map(|((_, y), ..)| *y).collect();
        for ((point, name, color), y) in ends.iter().zip(spread(&heights, LABEL, bottom)) {
            let start = (end + 26, y);
            area.draw(&PathElement::new(vec![(point.0 + 6, point.1), start], stroke(*color, 1)))?;
            area.draw(&Text::new((*name).to_owned(), (start.0 + 4, y), text(color, 13)))?;
        }
        Ok(())
    }
}

/// Moves ascending heights apart, so that neighbours differ by at least `gap` and none exceeds
/// `lowest`.
fn spread(heights: &[i32], gap: i32, lowest: i32) -> Vec<i32> {
    let mut spread = heights.to_vec();
    for i in 1..spread.len() {
        spread[i] = spread[i].max(spread[i - 1] + gap);
    }
    let mut limit = lowest;
    for height in spread.iter_mut().rev() {
        *height = (*height).min(limit);
        limit = *height - gap;
    }
    spread
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn labels_keep_their_distance_above_the_axis() {
        assert_eq!(spread(&[10, 50, 90], 14, 100), [10, 50, 90]);
        assert_eq!(spread(&[10, 12, 13], 14, 100), [10, 24, 38]);
        assert_eq!(spread(&[95, 98, 99], 14, 100), [72, 86, 100]);
        assert!(spread(&[], 14, 100).is_empty());
    }
}
