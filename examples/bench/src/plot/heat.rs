//! Heat maps of ratios, several in one plot.

use super::{Drawn, FONT, INK, Picture};
use plotters::backend::DrawingBackend;
use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::element::{Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, RGBColor, TextStyle};

/// Several heat maps of ratios, side by side. A ratio of 1 is white, larger ratios are blue,
/// smaller ones red. The colour is saturated at 2 and at 1/2.
#[derive(Clone, Debug, PartialEq)]
pub struct Heat {
    pub title: String,
    /// Labels of the rows and of the columns.
    pub labels: [String; 2],
    pub panels: Vec<Panel>,
    /// Number of maps side by side.
    pub across: usize,
}

/// Heat map with its labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    pub title: String,
    /// Labels of the rows, from top to bottom.
    pub rows: Vec<String>,
    /// Labels of the columns, from left to right.
    pub cols: Vec<String>,
    /// Ratio for each row and column, if it was measured.
    pub values: Vec<Vec<Option<f64>>>,
}

/// Size of a cell in pixels.
const CELL: (i32, i32) = (40, 20);
/// Margins in pixels to the left of the cells of a map, above them, below them, and around the
/// maps.
const LEFT: i32 = 62;
const ABOVE: i32 = 26;
const BELOW: i32 = 34;
const MARGIN: i32 = 14;
const TITLE: i32 = 40;
const LEAST_WIDTH: i32 = 480;

impl Panel {
    fn size(&self) -> (i32, i32) {
        let cells = |labels: &[String]| i32::try_from(labels.len()).unwrap_or(i32::MAX / 64);
        (LEFT + CELL.0 * cells(&self.cols) + MARGIN, ABOVE + CELL.1 * cells(&self.rows) + BELOW)
    }
}

impl Heat {
    /// Width of the widest map, with its margins.
    fn width(&self) -> i32 {
        self.panels.iter().map(|panel| panel.size().0).max().unwrap_or(LEFT)
    }

    /// Top of each line of maps, and the bottom of the last line.
    fn tops(&self) -> Vec<i32> {
        let mut tops = vec![TITLE];
        for line in self.panels.chunks(self.across()) {
            let height = line.iter().map(|panel| panel.size().1).max().unwrap_or(0);
            tops.push(tops.last().copied().unwrap_or(TITLE) + height);
        }
        tops
    }

    fn across(&self) -> usize {
        self.across.clamp(1, self.panels.len().max(1))
    }
}

impl Picture for Heat {
    fn size(&self) -> (u32, u32) {
        let across = u32::try_from(self.across()).unwrap_or(1);
        let width = self.width().unsigned_abs().saturating_mul(across) + 2 * MARGIN.unsigned_abs();
        let height = self.tops().last().copied().unwrap_or(TITLE) + MARGIN;
        (width.max(LEAST_WIDTH.unsigned_abs()), height.unsigned_abs())
    }

    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Drawn
    where
        B::ErrorType: 'static,
    {
        let text = |size: i32, h, v| -> TextStyle<'_> {
            (FONT, size).into_font().color(&INK).pos(Pos::new(h, v))
        };
        let title = text(20, HPos::Left, VPos::Center);
        area.draw(&Text::new(self.title.clone(), (2 * MARGIN, TITLE / 2), title))?;
        let (width, tops) = (self.width(), self.tops());
        let place = |index: usize| i32::try_from(index).unwrap_or(0);
        for (number, panel) in self.panels.iter().enumerate() {
            let (row, col) = (number / self.across(), number % self.across());
            let corner = (MARGIN + LEFT + width * place(col), ABOVE + tops[row]);
            let at = |row: usize, col: usize| {
                (corner.0 + CELL.0 * place(col), corner.1 + CELL.1 * place(row))
            };
            let over = text(14, HPos::Left, VPos::Center);
            area.draw(&Text::new(panel.title.clone(), (corner.0, corner.1 - ABOVE / 2), over))?;
            for (index, label) in panel.rows.iter().enumerate() {
                let (x, y) = at(index, 0);
                let style = text(12, HPos::Right, VPos::Center);
                area.draw(&Text::new(label.clone(), (x - 6, y + CELL.1 / 2), style))?;
            }
            for (index, label) in panel.cols.iter().enumerate() {
                let (x, y) = at(panel.rows.len(), index);
                let style = text(12, HPos::Center, VPos::Top);
                area.draw(&Text::new(label.clone(), (x + CELL.0 / 2, y + 5), style))?;
            }
            let [of_rows, of_cols] = &self.labels;
            let (x, y) = at(panel.rows.len(), 0);
            let style = text(12, HPos::Right, VPos::Top);
            area.draw(&Text::new(of_rows.clone(), (x - 6, y + 5), style))?;
            let (x, y) = at(panel.rows.len(), panel.cols.len());
            let style = text(12, HPos::Left, VPos::Top);
            area.draw(&Text::new(of_cols.clone(), (x + 3, y + 5), style))?;
            for (row, values) in panel.values.iter().enumerate() {
                for (col, value) in values.iter().enumerate() {
                    let Some(value) = value else { continue };
                    let (x, y) = at(row, col);
                    let corners = [(x + 1, y + 1), (x + CELL.0 - 1, y + CELL.1 - 1)];
                    area.draw(&Rectangle::new(corners, color(*value).filled()))?;
                    let middle = (x + CELL.0 / 2, y + CELL.1 / 2);
                    let style = text(12, HPos::Center, VPos::Center);
                    area.draw(&Text::new(format!("{value:.2}"), middle, style))?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the colour of a ratio: white at 1, red below and blue above.
fn color(ratio: f64) -> RGBColor {
    const RED: (f64, f64, f64) = (225.0, 90.0, 75.0);
    const BLUE: (f64, f64, f64) = (95.0, 160.0, 225.0);
    // NaN is also white.
    let far = ratio.log2().clamp(-1.0, 1.0);
    let far = if far.is_nan() { 0.0 } else { far };
    let to = if far < 0.0 { RED } else { BLUE };
    let mix = |to: f64| (255.0 + (to - 255.0) * far.abs()) as u8;
    RGBColor(mix(to.0), mix(to.1), mix(to.2))
}

#[cfg(test)]
mod tests {
    use super::color;
    use plotters::style::RGBColor;

    #[test]
    fn one_is_white_and_a_factor_of_two_is_all_that_shows() {
        assert_eq!(color(1.0), RGBColor(255, 255, 255));
        assert_eq!((color(2.0), color(0.5)), (color(9.0), color(0.01)));
        let RGBColor(red, _, blue) = color(0.8);
        assert!(red > blue);
        let RGBColor(red, _, blue) = color(1.3);
        assert!(blue > red);
        assert_eq!(color(f64::NAN), RGBColor(255, 255, 255));
    }
}
