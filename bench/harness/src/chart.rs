//! A figure of a paper as a picture: its points beside ours, as lines or as bars. `bench/papers/pictures.py` makes the
//! description from a record.

use std::error::Error;

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use serde::Deserialize;

use crate::plot::COLOURS;
use crate::scale::{Scale, number};

/// What is drawn.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chart {
    /// The figure, and what it shows.
    title: String,
    /// Lines below the title: machine, date, commit.
    notes: Vec<String>,
    kind: Kind,
    x: Axis,
    y: Axis,
    series: Vec<Series>,
    /// Ranges that a paper gives for all of its figure.
    #[serde(default)]
    bands: Vec<Band>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Lines,
    Bars,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Axis {
    /// Quantity and unit.
    label: String,
    #[serde(default)]
    is_log: bool,
    /// Names of the places 0, 1, 2, ... of an axis that has no numbers; else empty.
    #[serde(default)]
    names: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Series {
    name: String,
    /// Of the paper: drawn hollow and dashed.
    #[serde(default)]
    is_theirs: bool,
    /// Series with the same number have the same colour and marker.
    colour: usize,
    points: Vec<Point>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Point {
    x: f64,
    /// `None` where only a range is known.
    y: Option<f64>,
    /// The slowest and the fastest round, or a paper's range.
    range: Option<[f64; 2]>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Band {
    name: String,
    colour: usize,
    range: [f64; 2],
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Done = Result<(), Box<dyn Error>>;

const WIDTH: i32 = 940;
const HEIGHT: i32 = 460;
const LEFT: i32 = 78;
const BOTTOM: i32 = 56;
/// Pixels of a row of names, and of a letter.
const ROW: i32 = 13;
const LETTER: i32 = 7;
const GRID: RGBColor = RGBColor(222, 222, 222);

/// The picture as SVG.
pub fn svg(chart: &Chart) -> Result<String, String> {
    check(chart)?;
    let mut text = String::new();
    draw(chart, &mut text).map_err(|error| error.to_string())?;
    text.push('\n');
    Ok(text)
}

fn values(chart: &Chart) -> impl Iterator<Item = f64> {
    let points = chart.series.iter().flat_map(|series| &series.points);
    let of_points =
        points.flat_map(|point| point.y.into_iter().chain(point.range.into_iter().flatten()));
    of_points.chain(chart.bands.iter().flat_map(|band| band.range))
}

fn check(chart: &Chart) -> Result<(), String> {
    if chart.series.iter().all(|series| series.points.is_empty()) {
        return Err(format!("{}: no points to draw", chart.title));
    }
    let xs = chart.series.iter().flat_map(|series| series.points.iter().map(|point| point.x));
    for (axis, found) in [(&chart.x, xs.collect()), (&chart.y, values(chart).collect::<Vec<f64>>())]
    {
        if let Some(value) =
            found.iter().find(|value| !value.is_finite() || axis.is_log && **value <= 0.0)
        {
            return Err(format!(
                "{}: {value} has no place on the axis of {}",
                chart.title, axis.label
            ));
        }
        let names = axis.names.len() as f64;
        if let Some(value) =
            found.iter().find(|value| names > 0.0 && !(0.0..names).contains(*value))
        {
            return Err(format!(
                "{}: no name for the place {value} of {}",
                chart.title, axis.label
            ));
        }
    }
    Ok(())
}

/// Where things are, in pixels.
struct Frame {
    x: Scale,
    y: Scale,
    left: i32,
    right: i32,
    top: i32,
    bottom: i32,
    /// Rows of names below the axis.
    rows: i32,
}

impl Frame {
    fn new(chart: &Chart) -> Self {
        let xs = chart.series.iter().flat_map(|series| series.points.iter().map(|point| point.x));
        let x = match chart.x.names.len() {
            0 => Scale::around(xs, chart.x.is_log, 0.04),
            names => Scale::new(-0.5, names as f64 - 0.5, false),
        };
        let y = match chart.y.is_log {
            true => Scale::around(values(chart), true, 0.08),
            false => Scale::new(0.0, values(chart).fold(0.0, f64::max) * 1.08, false),
        };
        let names = chart
            .series
            .iter()
            .map(|series| &series.name)
            .chain(chart.bands.iter().map(|band| &band.name));
        let longest = names.map(|name| name.chars().count()).max().unwrap_or(0) as i32;
        let top = 40 + 18 * chart.notes.len() as i32;
        let right = WIDTH - 54 - (longest * 29 / 4).min(360);
        // Long names take turns in rows.
        let longest = chart.x.names.iter().map(|name| name.chars().count() as i32 * LETTER).max();
        let room = (right - LEFT) / (chart.x.names.len() as i32).max(1);
        let rows = (longest.unwrap_or(0) / room.max(1) + 1).min(4);
        let bottom = HEIGHT - BOTTOM - ROW * (rows - 1).max(0);
        Self { x, y, left: LEFT, right, top, bottom, rows }
    }

    fn x(&self, value: f64) -> i32 {
        self.left + (self.x.share(value) * f64::from(self.right - self.left)).round() as i32
    }

    fn y(&self, value: f64) -> i32 {
        self.bottom - (self.y.share(value) * f64::from(self.bottom - self.top)).round() as i32
    }
}

/// A font of so many pixels: plotters takes the height of a line, 1.24 times as much.
fn font(size: u32, across: HPos, down: VPos) -> TextStyle<'static> {
    ("sans-serif", f64::from(size) * 1.24).into_font().color(&BLACK).pos(Pos::new(across, down))
}

fn draw(chart: &Chart, text: &mut String) -> Done {
    let root = SVGBackend::with_string(text, (WIDTH as u32, HEIGHT as u32)).into_drawing_area();
    // A viewer's dark background must not show through.
    root.fill(&WHITE)?;
    let size = if chart.title.chars().count() > 100 { 12 } else { 16 };
    root.draw(&Text::new(chart.title.clone(), (14, 10), font(size, HPos::Left, VPos::Top)))?;
    for (at, note) in chart.notes.iter().enumerate() {
        let place = (14, 33 + 17 * at as i32);
        root.draw(&Text::new(note.clone(), place, font(11, HPos::Left, VPos::Top)))?;
    }
    let frame = Frame::new(chart);
    axes(chart, &frame, &root)?;
    for band in &chart.bands {
        let [low, high] = band.range.map(|value| frame.y(value));
        let colour = colour(band.colour);
        let place = [(frame.left, high), (frame.right, low.max(high + 2))];
        root.draw(&Rectangle::new(place, colour.mix(0.2).filled()))?;
        for y in [low, high] {
            root.draw(&PathElement::new(
                [(frame.left, y), (frame.right, y)],
                colour.stroke_width(1),
            ))?;
        }
    }
    match chart.kind {
        Kind::Lines => lines(chart, &frame, &root)?,
        Kind::Bars => bars(chart, &frame, &root)?,
    }
    legend(chart, &frame, &root)?;
    root.present()?;
    Ok(())
}

fn axes(chart: &Chart, frame: &Frame, root: &Area<'_>) -> Done {
    for value in frame.y.ticks(8) {
        let y = frame.y(value);
        root.draw(&PathElement::new([(frame.left, y), (frame.right, y)], GRID))?;
        root.draw(&Text::new(
            number(value),
            (frame.left - 7, y),
            font(12, HPos::Right, VPos::Center),
        ))?;
    }
    let below = font(12, HPos::Center, VPos::Top);
    if chart.x.names.is_empty() {
        let mut given: Vec<f64> = chart
            .series
            .iter()
            .flat_map(|series| series.points.iter().map(|point| point.x))
            .collect();
        given.sort_by(f64::total_cmp);
        given.dedup();
        // The measured places themselves, unless they are many.
        let ticks = if given.len() <= 16 { given } else { frame.x.ticks(10) };
        let mut last = i32::MIN;
        for value in ticks {
            let x = frame.x(value);
            root.draw(&PathElement::new([(x, frame.top), (x, frame.bottom)], GRID))?;
            if last == i32::MIN || x - last >= 30 {
                root.draw(&Text::new(number(value), (x, frame.bottom + 7), below.clone()))?;
                last = x;
            }
        }
    } else {
        let room = (frame.right - frame.left) / chart.x.names.len() as i32;
        for (at, name) in chart.x.names.iter().enumerate() {
            let row = ROW * (at as i32 % frame.rows);
            let size = if room < 20 { 10 } else { 12 };
            let place = (frame.x(at as f64), frame.bottom + 6 + row);
            root.draw(&Text::new(name.clone(), place, font(size, HPos::Center, VPos::Top)))?;
        }
    }
    let axis = [(frame.left, frame.top), (frame.left, frame.bottom), (frame.right, frame.bottom)];
    root.draw(&PathElement::new(axis, BLACK))?;
    let middle = ((frame.left + frame.right) / 2, HEIGHT - 10);
    root.draw(&Text::new(chart.x.label.clone(), middle, font(13, HPos::Center, VPos::Bottom)))?;
    let turned =
        ("sans-serif", 13.0 * 1.24).into_font().transform(FontTransform::Rotate270).color(&BLACK);
    let style = turned.pos(Pos::new(HPos::Center, VPos::Top));
    root.draw(&Text::new(chart.y.label.clone(), (12, (frame.top + frame.bottom) / 2), style))?;
    Ok(())
}

fn lines(chart: &Chart, frame: &Frame, root: &Area<'_>) -> Done {
    for series in &chart.series {
        let style = colour(series.colour).stroke_width(2);
        let known =
            series.points.iter().filter_map(|point| Some((frame.x(point.x), frame.y(point.y?))));
        let path: Vec<(i32, i32)> = known.collect();
        match (path.len() > 1, series.is_theirs) {
            (false, _) => {}
            (true, true) => root.draw(&DashedPathElement::new(path.clone(), 5, 4, style))?,
            (true, false) => root.draw(&PathElement::new(path.clone(), style))?,
        }
        for point in &series.points {
            whisker(root, frame.x(point.x), point, frame, series)?;
        }
        for place in path {
            marker(root, place, series.colour, series.is_theirs)?;
        }
    }
    Ok(())
}

fn bars(chart: &Chart, frame: &Frame, root: &Area<'_>) -> Done {
    let many = chart.series.iter().map(|series| series.points.len()).sum::<usize>() > 26;
    let count = chart.series.len() as f64;
    for (at, series) in chart.series.iter().enumerate() {
        for point in &series.points {
            let from = point.x - 0.4 + 0.8 * at as f64 / count;
            let (left, right) =
                (frame.x(from), (frame.x(from + 0.8 / count) - 1).max(frame.x(from) + 1));
            let middle = (left + right) / 2;
            if let Some(y) = point.y {
                let place = [(left, frame.y(y)), (right, frame.bottom)];
                if series.is_theirs {
                    root.draw(&Rectangle::new(place, colour(series.colour).mix(0.2).filled()))?;
                    root.draw(&Rectangle::new(place, colour(series.colour).stroke_width(2)))?;
                } else {
                    root.draw(&Rectangle::new(place, colour(series.colour).filled()))?;
                }
                if !many {
                    let top = point.range.map_or(y, |range| range[1].max(y));
                    let place = (middle, frame.y(top) - 2);
                    root.draw(&Text::new(number(y), place, font(10, HPos::Center, VPos::Bottom)))?;
                }
            }
            whisker(root, middle, point, frame, series)?;
        }
    }
    Ok(())
}

/// The range of a point: thin and black around a measured one, thick and coloured where only a range is known.
fn whisker(root: &Area<'_>, x: i32, point: &Point, frame: &Frame, series: &Series) -> Done {
    let Some(range) = point.range else { return Ok(()) };
    // An interval may reach below zero, where the axis begins.
    let [low, high] = range.map(|value| frame.y(value).min(frame.bottom));
    let (style, half) = match point.y {
        None => (colour(series.colour).stroke_width(3), 7),
        Some(_) => (BLACK.stroke_width(1), 2),
    };
    for line in [
        [(x, low), (x, high)],
        [(x - half, low), (x + half, low)],
        [(x - half, high), (x + half, high)],
    ] {
        root.draw(&PathElement::new(line, style))?;
    }
    Ok(())
}

fn colour(at: usize) -> RGBColor {
    COLOURS[at % COLOURS.len()]
}

/// A marker: a shape for each colour, so that nobody needs the colours.
fn marker(root: &Area<'_>, (x, y): (i32, i32), at: usize, is_hollow: bool) -> Done {
    let shape: &[(i32, i32)] = match at % COLOURS.len() {
        0 => &[(-4, -2), (-2, -4), (2, -4), (4, -2), (4, 2), (2, 4), (-2, 4), (-4, 2)],
        1 => &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
        2 => &[(0, -5), (5, 4), (-5, 4)],
        3 => &[(0, -6), (5, 0), (0, 6), (-5, 0)],
        4 => &[(0, 5), (5, -4), (-5, -4)],
        5 => &[(-5, -2), (5, -2), (5, 2), (-5, 2)],
        6 => &[(-2, -5), (2, -5), (2, 5), (-2, 5)],
        7 => &[(-5, 0), (-1, -1), (0, -5), (1, -1), (5, 0), (1, 1), (0, 5), (-1, 1)],
        _ => &[(-5, -5), (0, -2), (5, -5), (2, 0), (5, 5), (0, 2), (-5, 5), (-2, 0)],
    };
    let mut shape: Vec<(i32, i32)> = shape.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
    let fill = if is_hollow { WHITE.filled() } else { colour(at).filled() };
    root.draw(&Polygon::new(shape.clone(), fill))?;
    shape.push(shape[0]);
    root.draw(&PathElement::new(shape, colour(at).stroke_width(2)))?;
    Ok(())
}

fn legend(chart: &Chart, frame: &Frame, root: &Area<'_>) -> Done {
    let x = frame.right + 12;
    let mut y = frame.top + 8;
    let beside = font(12, HPos::Left, VPos::Center);
    for series in &chart.series {
        let place = [(x, y - 5), (x + 22, y + 5)];
        let is_range = series.points.iter().all(|point| point.y.is_none());
        match (chart.kind, series.is_theirs) {
            _ if is_range => {
                let style = colour(series.colour).stroke_width(3);
                for line in [[(x + 11, y - 6), (x + 11, y + 6)], [(x + 4, y - 6), (x + 18, y - 6)]]
                {
                    root.draw(&PathElement::new(line, style))?;
                }
                root.draw(&PathElement::new([(x + 4, y + 6), (x + 18, y + 6)], style))?;
            }
            (Kind::Bars, true) => {
                root.draw(&Rectangle::new(place, colour(series.colour).mix(0.2).filled()))?;
                root.draw(&Rectangle::new(place, colour(series.colour).stroke_width(2)))?;
            }
            (Kind::Bars, false) => {
                root.draw(&Rectangle::new(place, colour(series.colour).filled()))?
            }
            (Kind::Lines, is_theirs) => {
                let (line, style) =
                    (vec![(x, y), (x + 22, y)], colour(series.colour).stroke_width(2));
                match is_theirs {
                    true => root.draw(&DashedPathElement::new(line, 5, 4, style))?,
                    false => root.draw(&PathElement::new(line, style))?,
                }
                marker(root, (x + 11, y), series.colour, is_theirs)?;
            }
        }
        root.draw(&Text::new(series.name.clone(), (x + 30, y), beside.clone()))?;
        y += 19;
    }
    for band in &chart.bands {
        root.draw(&Rectangle::new(
            [(x, y - 5), (x + 22, y + 5)],
            colour(band.colour).mix(0.2).filled(),
        ))?;
        root.draw(&Text::new(band.name.clone(), (x + 30, y), beside.clone()))?;
        y += 19;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(text: &str) -> Chart {
        serde_json::from_str(text).unwrap()
    }

    const LINES: &str = r#"{"title": "DXR figure 6", "notes": ["a machine"], "kind": "lines",
        "x": {"label": "threads"}, "y": {"label": "Mlps", "is_log": true},
        "series": [
            {"name": "ours", "colour": 0, "points": [{"x": 1, "y": 100, "range": [90, 120]}, {"x": 2, "y": 190}]},
            {"name": "the paper", "colour": 0, "is_theirs": true, "points": [{"x": 8, "y": 718}]}],
        "bands": [{"name": "a range", "colour": 1, "range": [10, 20]}]}"#;

    #[test]
    fn lines_have_a_legend_and_ticks_where_there_are_points() {
        let picture = svg(&chart(LINES)).unwrap();
        for text in [
            "DXR figure 6",
            "a machine",
            "threads",
            "Mlps",
            "ours",
            "the paper",
            "a range",
            "8",
            "100",
        ] {
            assert!(picture.contains(&format!("\n{text}\n")), "{text}: {picture}");
        }
        // 3 is no measured number of threads.
        assert!(!picture.contains("\n3\n"), "{picture}");
    }

    #[test]
    fn bars_have_names_and_numbers() {
        let text = r#"{"title": "t", "notes": [], "kind": "bars", "x": {"label": "engine", "names": ["a", "b"]},
            "y": {"label": "MB"}, "series": [{"name": "s", "colour": 7, "points": [{"x": 0, "y": 12.5},
            {"x": 1, "range": [3, 7]}]}]}"#;
        let picture = svg(&chart(text)).unwrap();
        for text in ["a", "b", "12.5", "engine", "MB"] {
            assert!(picture.contains(&format!("\n{text}\n")), "{text}: {picture}");
        }
    }

    #[test]
    fn points_without_a_place_are_errors() {
        let zero = LINES.replace("\"y\": 190", "\"y\": 0");
        assert_eq!(
            svg(&chart(&zero)).unwrap_err(),
            "DXR figure 6: 0 has no place on the axis of Mlps"
        );
        let none = r#"{"title": "t", "notes": [], "kind": "lines", "x": {"label": "x"}, "y": {"label": "y"},
            "series": [{"name": "s", "colour": 0, "points": []}]}"#;
        assert_eq!(svg(&chart(none)).unwrap_err(), "t: no points to draw");
        let named = r#"{"title": "t", "notes": [], "kind": "bars", "x": {"label": "x", "names": ["a"]},
            "y": {"label": "y"}, "series": [{"name": "s", "colour": 0, "points": [{"x": 1, "y": 2}]}]}"#;
        assert_eq!(svg(&chart(named)).unwrap_err(), "t: no name for the place 1 of x");
    }
}
