//! A record as a picture: a bar for each contestant and kind of traffic.

use std::error::Error;

use fibula_testkit::measure::Stamp;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::record::Record;

/// Okabe and Ito's colours, which people with any colour vision can tell apart, in an order of different brightness.
pub const COLOURS: [RGBColor; 9] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
    RGBColor(110, 110, 110),
    BLACK,
    RGBColor(240, 228, 66),
];

const WIDTH: u32 = 900;
/// Pixels of a bar, of the space between contestants, above and below the bars.
const BAR: u32 = 13;
const SPACE: u32 = 12;
const ABOVE: u32 = 92;
const BELOW: u32 = 56;
/// Pixels for names.
const NAMES: u32 = 200;

/// The picture as SVG.
pub fn svg(record: &Record) -> Result<String, String> {
    let mut text = String::new();
    draw(record, &mut text).map_err(|error| error.to_string())?;
    // A viewer's dark background must not show through, and the last line ends.
    text.push('\n');
    Ok(text)
}

/// The rates of a contestant, by traffic: `None` is a wrong answer.
struct Bars<'a> {
    name: &'a str,
    rates: Vec<Option<[f64; 3]>>,
}

fn draw(record: &Record, text: &mut String) -> Result<(), Box<dyn Error>> {
    let mut kinds: Vec<&str> = Vec::new();
    let mut all: Vec<Bars<'_>> = Vec::new();
    for row in &record.rows {
        if !kinds.contains(&&*row.traffic) {
            kinds.push(&row.traffic);
        }
    }
    for row in &record.rows {
        if all.iter().any(|bars| bars.name == row.contestant) {
            continue;
        }
        let of = |kind: &&str| {
            let is_it = |other: &&crate::record::Row| {
                other.contestant == row.contestant && other.traffic == *kind
            };
            let rate = record.rows.iter().find(is_it)?.rate.as_ref()?;
            Some([rate.mlps, rate.min, rate.max])
        };
        all.push(Bars { name: &row.contestant, rates: kinds.iter().map(of).collect() });
    }
    let mean = |bars: &Bars<'_>| bars.rates.iter().flatten().map(|rate| rate[0]).sum::<f64>();
    all.sort_by(|a, b| mean(b).total_cmp(&mean(a)));
    let group = kinds.len().max(1) as u32 * BAR + SPACE;
    let height = ABOVE + BELOW + all.len() as u32 * group;
    let root = SVGBackend::with_string(text, (WIDTH, height)).into_drawing_area();
    root.fill(&WHITE)?;
    let font = |size: u32| ("sans-serif", size).into_font().color(&BLACK);
    let Stamp { processor, date, .. } = &record.stamp;
    root.draw(&Text::new(record.title.clone(), (14, 12), font(17)))?;
    let circumstances = format!(
        "{}, IP{}, {} prefixes; {} thread{}; {processor}; {date}",
        record.table,
        record.family,
        fibula_core::grouped(record.prefixes as u64),
        record.threads,
        if record.threads == 1 { "" } else { "s" },
    );
    root.draw(&Text::new(circumstances, (14, 38), font(12)))?;
    for (at, kind) in kinds.iter().enumerate() {
        let x = NAMES as i32 + at as i32 * 90;
        let colour = COLOURS[at % COLOURS.len()].filled();
        root.draw(&Rectangle::new([(x, 62), (x + 12, 74)], colour))?;
        root.draw(&Text::new((*kind).to_owned(), (x + 18, 62), font(13)))?;
    }
    let most = all.iter().flat_map(|bars| bars.rates.iter().flatten()).map(|rate| rate[2]);
    let most = most.fold(1.0, f64::max) * 1.12;
    let mut chart = ChartBuilder::on(&root)
        .margin_top(ABOVE)
        .margin_right(24)
        .set_label_area_size(LabelAreaPosition::Left, NAMES)
        .set_label_area_size(LabelAreaPosition::Bottom, BELOW)
        .build_cartesian_2d(0.0..most, 0.0..(all.len() as f64 * f64::from(group)))?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_labels(0)
        .x_labels(10)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .x_desc("million lookups a second (bar: median of the rounds, line: slowest to fastest)")
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(222, 222, 222))
        .axis_desc_style(font(13))
        .label_style(font(12))
        .draw()?;
    let top = all.len() as f64 * f64::from(group);
    for (at, bars) in all.iter().enumerate() {
        let from = top - at as f64 * f64::from(group) - f64::from(SPACE) / 2.0;
        let middle = from - f64::from(group - SPACE) / 2.0;
        let (x, y) = chart.backend_coord(&(0.0, middle));
        let right = font(13).pos(Pos::new(HPos::Right, VPos::Center));
        root.draw(&Text::new(bars.name.to_owned(), (x - 8, y), right))?;
        for (kind, rate) in bars.rates.iter().enumerate() {
            let high = from - kind as f64 * f64::from(BAR);
            let low = high - f64::from(BAR - 2);
            let (mid, colour) = ((high + low) / 2.0, COLOURS[kind % COLOURS.len()]);
            let Some([median, min, max]) = *rate else {
                let at = chart.backend_coord(&(0.0, mid));
                let left = font(11).pos(Pos::new(HPos::Left, VPos::Center));
                root.draw(&Text::new("wrong, not timed", (at.0 + 4, at.1), left))?;
                continue;
            };
            let bar = Rectangle::new([(0.0, low), (median, high)], colour.filled());
            let spread = PathElement::new([(min, mid), (max, mid)], BLACK.stroke_width(1));
            chart.draw_series([bar])?;
            chart.draw_series([spread])?;
            let at = chart.backend_coord(&(max, mid));
            let left = font(11).pos(Pos::new(HPos::Left, VPos::Center));
            let number = match median {
                ..10.0 => format!("{median:.2}"),
                _ => format!("{median:.0}"),
            };
            root.draw(&Text::new(number, (at.0 + 4, at.1), left))?;
        }
    }
    root.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    #[test]
    fn every_contestant_has_its_bar() {
        let mut record = record(&[("slow", &[2.0, 4.0]), ("quick", &[90.0, 110.0])]);
        let picture = svg(&record).unwrap();
        for text in ["slow", "quick", "3.00", "100", "million lookups a second", "RND"] {
            assert!(picture.contains(&format!("\n{text}")), "{text}: {picture}");
        }
        let place = |name: &str| picture.find(&format!("\n{name}\n")).unwrap();
        assert!(place("quick") < place("slow"), "the fastest one comes first");
        record.rows[0].rate = None;
        assert!(svg(&record).unwrap().contains("wrong, not timed"));
    }
}
