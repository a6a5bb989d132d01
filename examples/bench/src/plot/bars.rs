//! Horizontal bar charts with an optional upper limit.

use super::{Drawn, FONT, GRID, INK, Picture, axis_end, shade, stroke};
use crate::change::number;
use plotters::backend::DrawingBackend;
use plotters::chart::ChartBuilder;
use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::element::{PathElement, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, TextStyle};

/// Bar chart of one quantity for several items.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    pub title: String,
    pub x_label: String,
    /// Names and values of the items, from top to bottom.
    pub bars: Vec<(String, f64)>,
    /// Name and value of an upper limit.
    pub ceiling: Option<(String, f64)>,
}

impl Picture for Bars {
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Drawn
    where
        B::ErrorType: 'static,
    {
        let ceiling = self.ceiling.as_ref().map(|(_, value)| *value);
        let values = self.bars.iter().map(|(_, value)| *value).chain(ceiling);
        let end = axis_end(values.fold(0.0, f64::max));
        let count = self.bars.len();
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, (FONT, 20).into_font().color(&INK))
            .margin(12)
            .margin_right(40)
            .x_label_area_size(44)
            .y_label_area_size(190)
            .build_cartesian_2d(0.0..end, 0.0..count.max(1) as f64)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .light_line_style(plotters::style::TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(INK)
            .x_label_formatter(&|x| format!("{x}"))
            .x_desc(&self.x_label)
            .label_style((FONT, 13).into_font().color(&INK))
            .draw()?;
        let style = |h| -> TextStyle<'_> {
            (FONT, 14).into_font().color(&INK).pos(Pos::new(h, VPos::Center))
        };
        for (number_of, (name, value)) in self.bars.iter().enumerate() {
            let middle = (count - number_of) as f64 - 0.5;
            let corners = [(0.0, middle - 0.32), (*value, middle + 0.32)];
            let color = shade(number_of, count);
            chart.draw_series([Rectangle::new(corners, color.filled())])?;
            let (left, y) = chart.backend_coord(&(0.0, middle));
            area.draw(&Text::new(name.clone(), (left - 8, y), style(HPos::Right)))?;
            let (right, y) = chart.backend_coord(&(*value, middle));
            area.draw(&Text::new(number(*value), (right + 6, y), style(HPos::Left)))?;
        }
        if let Some((name, value)) = &self.ceiling {
            let ends = vec![(*value, 0.0), (*value, count.max(1) as f64)];
            chart.draw_series([PathElement::new(ends, stroke(INK, 2))])?;
            let (x, y) = chart.backend_coord(&(*value, count.max(1) as f64));
            area.draw(&Text::new(name.clone(), (x - 6, y + 10), style(HPos::Right)))?;
        }
        Ok(())
    }
}
