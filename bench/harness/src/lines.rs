//! Pictures of several points: a line for each contestant, in a panel for each kind of traffic.

use std::error::Error;

use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;

use crate::plot::COLOURS;

/// A picture.
pub struct Picture {
    /// Its heading.
    pub title: String,
    /// What was measured where, below it.
    pub circumstances: String,
    /// What is on the horizontal axis.
    pub across: &'static str,
    /// Whether that axis is logarithmic.
    pub is_log: bool,
    /// The panels.
    pub panels: Vec<Panel>,
}

/// A panel.
pub struct Panel {
    /// Its heading.
    pub title: String,
    /// What is on the vertical axis, which is logarithmic.
    pub up: &'static str,
    /// The lines, of the same contestants in all panels.
    pub lines: Vec<Line>,
}

/// A contestant's points: where it is, the median, and the ends of its spread.
pub struct Line {
    /// The contestant.
    pub name: String,
    /// Position, and median, lowest and highest value.
    pub points: Vec<(f64, [f64; 3])>,
}

const WIDTH: u32 = 900;
const TOP: u32 = 66;
const PANEL: u32 = 300;
/// Height of a row of the legend, and its columns.
const ROW: u32 = 20;
const COLUMNS: usize = 4;

type Drawn<T> = Result<T, Box<dyn Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

impl Picture {
    /// The picture as SVG.
    pub fn svg(&self) -> Result<String, String> {
        let mut text = String::new();
        self.draw(&mut text).map_err(|error| error.to_string())?;
        Ok(text)
    }

    fn draw(&self, text: &mut String) -> Drawn<()> {
        let names: Vec<&str> = self
            .panels
            .first()
            .map(|panel| panel.lines.iter().map(|line| &*line.name).collect())
            .unwrap_or_default();
        let columns = self.panels.len().clamp(1, 2);
        let rows = self.panels.len().max(1).div_ceil(2);
        let legend = names.len().div_ceil(COLUMNS) as u32 * ROW + 14;
        let height = TOP + PANEL * rows as u32 + legend;
        let root = SVGBackend::with_string(text, (WIDTH, height)).into_drawing_area();
        root.fill(&WHITE)?;
        root.draw(&Text::new(self.title.clone(), (14, 12), font(17)))?;
        root.draw(&Text::new(self.circumstances.clone(), (14, 38), font(12)))?;
        let (_, rest) = root.split_vertically(TOP);
        let (panels, below) = rest.split_vertically(PANEL * rows as u32);
        for (panel, area) in self.panels.iter().zip(panels.split_evenly((rows, columns))) {
            self.panel(&area, panel)?;
        }
        for (at, name) in names.iter().enumerate() {
            let x = 24 + (at % COLUMNS) as i32 * (WIDTH as i32 / COLUMNS as i32);
            let y = 10 + (at / COLUMNS) as i32 * ROW as i32;
            let colour = COLOURS[at % COLOURS.len()];
            below.draw(&PathElement::new([(x, y), (x + 28, y)], colour.stroke_width(2)))?;
            mark(&below, (x + 14, y), at)?;
            below.draw(&Text::new((*name).to_owned(), (x + 36, y - 7), font(13)))?;
        }
        root.present()?;
        Ok(())
    }

    fn panel(&self, area: &Area<'_>, panel: &Panel) -> Drawn<()> {
        let points = || panel.lines.iter().flat_map(|line| &line.points);
        let ends = |of: fn(&(f64, [f64; 3])) -> [f64; 2]| {
            let all = points().flat_map(of);
            all.fold((f64::MAX, 0.0_f64), |(low, high), one| (low.min(one), high.max(one)))
        };
        let ((left, right), (low, high)) = (ends(|(x, _)| [*x, *x]), ends(|(_, y)| [y[1], y[2]]));
        if low > high {
            area.draw(&Text::new(
                format!("{}: nothing was timed", panel.title),
                (20, 10),
                font(14),
            ))?;
            return Ok(());
        }
        let mut builder = ChartBuilder::on(area);
        builder
            .caption(&panel.title, font(14))
            .margin_left(8)
            .margin_right(18)
            .x_label_area_size(42)
            .y_label_area_size(64);
        let up = (low / 1.4..high * 1.4).log_scale();
        // plotters has another type for each kind of axis.
        if self.is_log {
            let mut chart =
                builder.build_cartesian_2d((left / 1.2..right * 1.2).log_scale(), up)?;
            self.axes(&mut chart, panel, MARKS)?;
            lines(area, &mut chart, panel)
        } else {
            let mut chart = builder.build_cartesian_2d(left - 0.3..right + 0.3, up)?;
            // Nothing is between whole numbers.
            self.axes(&mut chart, panel, MARKS.min((right - left) as usize + 1))?;
            lines(area, &mut chart, panel)
        }
    }

    fn axes<X, Y>(&self, chart: &mut Chart<'_, '_, X, Y>, panel: &Panel, marks: usize) -> Drawn<()>
    where
        X: Ranged<ValueType = f64> + ValueFormatter<f64>,
        Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        chart
            .configure_mesh()
            .x_desc(self.across)
            .x_labels(marks)
            .y_desc(panel.up)
            .x_label_formatter(&|x| short(*x))
            .y_label_formatter(&|y| short(*y))
            .light_line_style(TRANSPARENT)
            .bold_line_style(RGBColor(222, 222, 222))
            .axis_desc_style(font(12))
            .label_style(font(11))
            .draw()?;
        Ok(())
    }
}

/// Most marks of the horizontal axis.
const MARKS: usize = 10;

type Chart<'a, 'b, X, Y> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, Y>>;

fn lines<X, Y>(area: &Area<'_>, chart: &mut Chart<'_, '_, X, Y>, panel: &Panel) -> Drawn<()>
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    for (at, line) in panel.lines.iter().enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        let medians = line.points.iter().map(|&(x, [median, ..])| (x, median));
        let path: Vec<(f64, f64)> = medians.clone().collect();
        chart.draw_series([PathElement::new(path, colour.stroke_width(2))])?;
        let spreads = line.points.iter().map(|&(x, [_, low, high])| {
            PathElement::new([(x, low), (x, high)], colour.stroke_width(1))
        });
        chart.draw_series(spreads)?;
        let (left, top) = area.get_base_pixel();
        for point in medians {
            let (x, y) = chart.backend_coord(&point);
            mark(area, (x - left, y - top), at)?;
        }
    }
    Ok(())
}

/// The mark of a line: circles, then squares, then triangles.
fn mark(area: &Area<'_>, (x, y): (i32, i32), line: usize) -> Drawn<()> {
    let style = COLOURS[line % COLOURS.len()].filled();
    match line / COLOURS.len() {
        0 => area.draw(&Circle::new((x, y), 4, style))?,
        1 => area.draw(&Rectangle::new([(x - 4, y - 4), (x + 4, y + 4)], style))?,
        _ => area.draw(&TriangleMarker::new((x, y), 6, style))?,
    }
    Ok(())
}

/// A number of an axis: `0.5`, `20`, `100k`, `2M`.
fn short(number: f64) -> String {
    let (number, unit) = match number {
        1e6.. => (number / 1e6, "M"),
        1e3.. => (number / 1e3, "k"),
        _ => (number, ""),
    };
    let text = if number < 1.0 { format!("{number:.2}") } else { format!("{number:.1}") };
    let text = if text.contains('.') { text.trim_end_matches('0') } else { &text };
    format!("{}{unit}", text.trim_end_matches('.'))
}

fn font(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&BLACK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_axes() {
        let texts = [0.25, 1.0, 20.0, 1500.0, 100_000.0, 2e6].map(short);
        assert_eq!(texts, ["0.25", "1", "20", "1.5k", "100k", "2M"]);
    }

    #[test]
    fn every_contestant_has_its_line() {
        let line = |name: &str, height: f64| Line {
            name: name.to_owned(),
            points: [1e4, 1e5, 1e6].map(|x| (x, [height, height / 2.0, height * 2.0])).to_vec(),
        };
        let panel = |title: &str, lines| Panel { title: title.to_owned(), up: "Mlps", lines };
        let mut picture = Picture {
            title: "Sizes".to_owned(),
            circumstances: "a machine".to_owned(),
            across: "prefixes",
            is_log: true,
            panels: vec![
                panel("RND", vec![line("quick", 200.0), line("slow", 2.0)]),
                panel(
                    "PFX",
                    vec![line("quick", 100.0), Line { name: "slow".into(), points: vec![] }],
                ),
                panel("ZIPF", vec![]),
            ],
        };
        let svg = picture.svg().unwrap();
        for text in ["Sizes", "a machine", "quick", "slow", "RND", "PFX", "prefixes", "Mlps"] {
            assert!(svg.contains(&format!("\n{text}\n")), "{text}: {svg}");
        }
        assert!(svg.contains("ZIPF: nothing was timed"), "{svg}");
        // Three points of three lines, and the marks of the legend.
        assert_eq!(svg.matches("<circle").count(), 3 * 3 + 2);
        picture.is_log = false;
        assert!(picture.svg().is_ok());
    }
}
