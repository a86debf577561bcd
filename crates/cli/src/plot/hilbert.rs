//! A map of the address space on a Hilbert curve. The server's page draws the same one (`hilbert.js`).

use std::fmt::Write as _;

use fibula_core::{Addr, Prefix, Routes};
use fibula_fib::Blocks;
use plotters::prelude::*;

use super::svg::{Area, DIM, Drawn, STEPS, between, font, picture, shortened};
use super::{Show, routes};
use crate::table::Loaded;

/// Cells in a row.
const SIDE: usize = 256;
/// Pixels of a cell.
const CELL: usize = 3;
/// Cells in a row of a square of the grid: an octet's addresses, a /8, are 16 x 16 cells.
const SQUARE: usize = 16;
/// Cells under the text of a square: columns and rows.
const LABEL: (usize, usize) = (9, 4);
/// Where the map begins.
const LEFT: i32 = 16;
const TOP: i32 = 76;
const WIDTH: u32 = LEFT as u32 + (SIDE * CELL) as u32 + 170;
const HEIGHT: u32 = TOP as u32 + (SIDE * CELL) as u32 + 16;

/// The map of IPv4.
pub fn v4(loaded: &Loaded, show: Show) -> Drawn<String> {
    draw(loaded, &loaded.table.v4, Prefix::ALL, show)
}

/// The map of IPv6's global addresses.
pub fn v6(loaded: &Loaded, show: Show) -> Drawn<String> {
    let global: Prefix<u128> = "2000::/3".parse()?;
    draw(loaded, &loaded.table.v6, global, show)
}

/// What the colours of a map say: the names of the steps, and each cell's, 0 for none.
struct Levels {
    title: [&'static str; 2],
    names: [&'static str; STEPS.len()],
    cells: Vec<u8>,
}

impl Levels {
    fn of<A: Addr>(blocks: Blocks<A>, routes: &Routes<A>, show: Show) -> Self {
        match show {
            Show::Covered => Self {
                title: ["addresses of a cell", "that have a route"],
                names: [
                    "up to 5 %",
                    "to 20 %",
                    "to 40 %",
                    "to 60 %",
                    "to 80 %",
                    "less than all",
                    "all",
                ],
                cells: blocks
                    .coverage(routes.iter().map(|route| route.prefix))
                    .into_iter()
                    .map(|share| match share {
                        0 => 0,
                        1..=13 => 1,
                        14..=51 => 2,
                        52..=102 => 3,
                        103..=153 => 4,
                        154..=204 => 5,
                        205..=254 => 6,
                        255 => 7,
                    })
                    .collect(),
            },
            Show::Hops => Self {
                title: ["different values of", "a cell's addresses"],
                names: ["1", "2", "3 - 4", "5 - 8", "9 - 16", "17 - 64", "65 and more"],
                cells: blocks
                    .hops(routes)
                    .into_iter()
                    .map(|hops| match hops {
                        0 => 0,
                        1 => 1,
                        2 => 2,
                        3..=4 => 3,
                        5..=8 => 4,
                        9..=16 => 5,
                        17..=64 => 6,
                        _ => 7,
                    })
                    .collect(),
            },
        }
    }
}

fn draw<A: Addr>(loaded: &Loaded, all: &Routes<A>, within: Prefix<A>, show: Show) -> Drawn<String> {
    let blocks = Blocks::new(within, (SIDE * SIDE).ilog2() as u8);
    let levels = Levels::of(blocks, all, show);
    let below = picture((WIDTH, HEIGHT), |root| {
        root.fill(&WHITE)?;
        let title = format!("IP{} in {}", A::FAMILY, shortened(&loaded.name, 80));
        root.draw(&Text::new(title, (LEFT, 14), font(18)))?;
        let squares = SIDE / SQUARE;
        let square = blocks.prefix(0).len() - (SQUARE * SQUARE).ilog2() as u8;
        let about = format!(
            "{}; {within} on a Hilbert curve, {squares} x {squares} squares of a /{square}, cells of a /{}",
            routes(all.len()),
            blocks.prefix(0).len()
        );
        root.draw(&Text::new(about, (LEFT, 44), font(13).color(&DIM)))?;
        legend(root, &levels)
    })?;
    let above = picture((WIDTH, HEIGHT), |root| grid(root, blocks, &levels))?;
    between(&below, &cells(&levels.cells), &above).ok_or_else(|| "no picture was made".into())
}

fn legend(root: &Area<'_>, levels: &Levels) -> Drawn<()> {
    let left = LEFT + (SIDE * CELL) as i32 + 16;
    for (line, text) in (0..).zip(levels.title) {
        root.draw(&Text::new(text, (left, TOP + line * 17), font(13)))?;
    }
    let none = ("none", WHITE);
    let entries = [none].into_iter().chain(levels.names.into_iter().zip(STEPS));
    for (row, (name, colour)) in (0..).zip(entries) {
        let y = TOP + 46 + row * 22;
        root.draw(&Rectangle::new([(left, y), (left + 16, y + 14)], colour.filled()))?;
        root.draw(&Rectangle::new([(left, y), (left + 16, y + 14)], DIM.stroke_width(1)))?;
        root.draw(&Text::new(name, (left + 24, y), font(13)))?;
    }
    Ok(())
}

/// The squares, and the beginning of each one's addresses.
fn grid<A: Addr>(root: &Area<'_>, blocks: Blocks<A>, levels: &Levels) -> Drawn<()> {
    let size = (SIDE * CELL) as i32;
    let line = BLACK.mix(0.25).stroke_width(1);
    for at in (0..=SIDE / SQUARE).map(|at| (at * SQUARE * CELL) as i32) {
        let (x, y) = (LEFT + at, TOP + at);
        root.draw(&PathElement::new([(x, TOP), (x, TOP + size)], line))?;
        root.draw(&PathElement::new([(LEFT, y), (LEFT + size, y)], line))?;
    }
    let cells = SQUARE * SQUARE;
    for square in 0..blocks.count() / cells {
        let first = square * cells;
        let (x, y) = place(first);
        let (x, y) = (x / SQUARE * SQUARE * CELL, y / SQUARE * SQUARE * CELL);
        // The text is seen on what lies under it: the first cells of the square's first rows.
        let is_under = |cell: &usize| {
            let (x, y) = place(*cell);
            x % SQUARE < LABEL.0 && y % SQUARE < LABEL.1
        };
        let dark = (first..first + cells).filter(is_under).filter(|cell| levels.cells[*cell] > 3);
        let is_dark = dark.count() > LABEL.0 * LABEL.1 / 2;
        let colour = if is_dark { WHITE } else { BLACK };
        let at = (LEFT + x as i32 + 3, TOP + y as i32 + 3);
        root.draw(&Text::new(label(blocks.prefix(first)), at, font(10).color(&colour)))?;
    }
    Ok(())
}

/// What all addresses of a square begin with: an octet of IPv4, the first group of IPv6.
fn label<A: Addr>(square: Prefix<A>) -> String {
    let bits = square.first().to_u128();
    match A::BITS {
        32 => (bits >> 24).to_string(),
        _ => format!("{:x}", bits >> 112),
    }
}

/// The cells as one path for each colour: neighbours in a row with the same colour are one line.
fn cells(levels: &[u8]) -> String {
    let mut rows = [[0_u8; SIDE]; SIDE];
    for (number, &level) in levels.iter().enumerate() {
        let (x, y) = place(number);
        rows[y][x] = level;
    }
    let mut text = format!(
        "<g transform=\"translate({LEFT} {TOP}) scale({CELL})\" fill=\"none\" stroke-width=\"1\" \
         shape-rendering=\"crispEdges\">\n"
    );
    for (level, RGBColor(red, green, blue)) in (1..).zip(STEPS) {
        let mut path = String::new();
        for (y, row) in rows.iter().enumerate() {
            let mut x = 0;
            for run in row.chunk_by(|a, b| a == b) {
                if run[0] == level {
                    write!(path, "M{x} {y}.5h{}", run.len()).expect("a string takes all");
                }
                x += run.len();
            }
        }
        if !path.is_empty() {
            text += &format!("<path stroke=\"#{red:02X}{green:02X}{blue:02X}\" d=\"{path}\"/>\n");
        }
    }
    text + "</g>\n"
}

/// Where the cell of a number lies. The first one is at the top left, the last one at the top right.
fn place(number: usize) -> (usize, usize) {
    let (mut x, mut y, mut rest) = (0, 0, number);
    let mut side = 1;
    while side < SIDE {
        let right = 1 & (rest >> 1);
        let down = 1 & (rest ^ right);
        if down == 0 {
            (x, y) = if right == 1 { (side - 1 - y, side - 1 - x) } else { (y, x) };
        }
        (x, y) = (x + side * right, y + side * down);
        (side, rest) = (side * 2, rest >> 2);
    }
    (x, y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_on_the_curve_are_neighbours_on_the_map() {
        assert_eq!((place(0), place(SIDE * SIDE - 1)), ((0, 0), (SIDE - 1, 0)));
        let mut is_used = vec![false; SIDE * SIDE];
        for number in 0..SIDE * SIDE {
            let (x, y) = place(number);
            assert!(!std::mem::replace(&mut is_used[y * SIDE + x], true), "{number}");
            if number > 0 {
                let (before, above) = place(number - 1);
                assert_eq!(x.abs_diff(before) + y.abs_diff(above), 1, "{number}");
            }
        }
    }

    #[test]
    fn equal_cells_of_a_row_are_one_line() {
        let mut levels = vec![0; SIDE * SIDE];
        levels[..SIDE * SIDE / 4].fill(7);
        let text = cells(&levels);
        assert_eq!(text.matches("<path").count(), 1);
        assert_eq!(text.matches("h128").count(), 128, "a quarter is a square");
        assert!(text.contains("#440154\" d=\"M0 0.5h128M0 1.5h128"), "{text}");
    }
}
