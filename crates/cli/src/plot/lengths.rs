//! A histogram of prefix lengths: a panel for each family.

use fibula_core::{Addr, Family, Routes, grouped};
use fibula_fib::prefix_lengths;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;

use super::routes;
use super::svg::{Area, BLUE, DIM, Drawn, LINE, ORANGE, font, picture, shortened};
use crate::table::Loaded;

const WIDTH: u32 = 900;
const TITLE: u32 = 48;
const PANEL: u32 = 330;

type Chart<'a, 'b, X, Y> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, Y>>;

/// The lengths of one family.
struct Panel {
    family: Family,
    lengths: Vec<u64>,
}

impl Panel {
    fn of<A: Addr>(routes: &Routes<A>) -> Self {
        let lengths = prefix_lengths(routes.iter().map(|route| route.prefix));
        Self { family: A::FAMILY, lengths }
    }

    /// The number of routes, and the lengths that most of them have.
    fn title(&self) -> String {
        let all: u64 = self.lengths.iter().sum();
        let mut order: Vec<(usize, u64)> = self.lengths.iter().copied().enumerate().collect();
        order.retain(|(_, count)| *count > 0);
        order.sort_by_key(|&(length, count)| (std::cmp::Reverse(count), length));
        let share = |&(length, count): &(usize, u64)| {
            format!("/{length} {:.1} %", count as f64 / all as f64 * 100.0)
        };
        let most: Vec<String> = order.iter().take(3).map(share).collect();
        format!("IP{}: {} ({})", self.family, routes(all as usize), most.join(", "))
    }
}

/// Draws the families that the table has, or only one.
pub fn draw(loaded: &Loaded, family: Option<Family>, is_linear: bool) -> Drawn<String> {
    let table = &loaded.table;
    let mut panels = vec![Panel::of(&table.v4), Panel::of(&table.v6)];
    panels.retain(|panel| {
        panel.lengths.iter().any(|count| *count > 0)
            && family.is_none_or(|family| family == panel.family)
    });
    let height = TITLE + PANEL * panels.len().max(1) as u32;
    picture((WIDTH, height), |root| {
        root.fill(&WHITE)?;
        let title = format!("Prefix lengths of {}", shortened(&loaded.name, 80));
        root.draw(&Text::new(title, (14, 14), font(18)))?;
        if panels.is_empty() {
            root.draw(&Text::new("The table has no routes.", (14, 60), font(14)))?;
        }
        let (_, rest) = root.split_vertically(TITLE);
        let areas = rest.split_evenly((panels.len().max(1), 1));
        panels.iter().zip(&areas).try_for_each(|(panel, area)| bars(area, panel, is_linear))
    })
}

fn bars(area: &Area<'_>, panel: &Panel, is_linear: bool) -> Drawn<()> {
    let (bits, colour) = match panel.family {
        Family::V4 => (32_u32, BLUE),
        Family::V6 => (128, ORANGE),
    };
    let most = *panel.lengths.iter().max().unwrap_or(&1) as f64;
    let mut builder = ChartBuilder::on(area);
    builder
        .caption(panel.title(), font(14))
        .margin_left(10)
        .margin_right(24)
        .margin_bottom(6)
        .x_label_area_size(44)
        .y_label_area_size(76);
    let across = -0.6..f64::from(bits) + 0.6;
    // plotters has another type for each kind of axis.
    if is_linear {
        let mut chart = builder.build_cartesian_2d(across, 0.0..most * 1.05)?;
        axes(&mut chart, bits, "routes")?;
        chart.draw_series(columns(panel, 0.0, colour))?;
    } else {
        // A single route is to be seen: the axis begins below it.
        let mut chart = builder.build_cartesian_2d(across, (0.5..most * 1.5).log_scale())?;
        axes(&mut chart, bits, "routes (logarithmic)")?;
        chart.draw_series(columns(panel, 0.5, colour))?;
    }
    Ok(())
}

/// Draws the axes.
fn axes<X, Y>(chart: &mut Chart<'_, '_, X, Y>, bits: u32, counts: &str) -> Drawn<()>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(if bits == 32 { 33 } else { 17 })
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| if *y < 1.0 { String::new() } else { grouped(*y as u64) })
        .x_desc("prefix length in bits")
        .y_desc(counts)
        .light_line_style(TRANSPARENT)
        .bold_line_style(LINE)
        .axis_style(DIM)
        .axis_desc_style(font(13))
        .label_style(font(11))
        .draw()?;
    Ok(())
}

fn columns(
    panel: &Panel,
    bottom: f64,
    colour: RGBColor,
) -> impl Iterator<Item = Rectangle<(f64, f64)>> + '_ {
    let counts = (0_u32..).zip(&panel.lengths).filter(|(_, count)| **count > 0);
    counts.map(move |(length, &count)| {
        let x = f64::from(length);
        Rectangle::new([(x - 0.4, bottom), (x + 0.4, count as f64)], colour.filled())
    })
}
