//! What the pictures share: colours, fonts, and layers.

use std::error::Error;

use plotters::coord::Shift;
use plotters::prelude::*;

/// An error of drawing.
pub type Drawn<T> = Result<T, Box<dyn Error>>;

/// The canvas of a picture.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Of Okabe and Ito's colours, which people with any colour vision can tell apart.
pub const BLUE: RGBColor = RGBColor(0, 114, 178);
pub const ORANGE: RGBColor = RGBColor(213, 94, 0);

/// The lines of a grid, and text that is not to stand out.
pub const LINE: RGBColor = RGBColor(222, 222, 222);
pub const DIM: RGBColor = RGBColor(90, 90, 90);

/// Steps of viridis, from little to much: brightness alone tells them apart, so they do without colours, too.
pub const STEPS: [RGBColor; 7] = [
    RGBColor(253, 231, 37),
    RGBColor(144, 215, 67),
    RGBColor(53, 183, 121),
    RGBColor(33, 145, 140),
    RGBColor(49, 104, 142),
    RGBColor(68, 57, 131),
    RGBColor(68, 1, 84),
];

/// A font of this size.
pub fn font(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&BLACK)
}

/// A picture of this size.
pub fn picture(size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Drawn<()>) -> Drawn<String> {
    let mut text = String::new();
    let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
    draw(&root)?;
    root.present()?;
    drop(root);
    Ok(text)
}

/// A name as text of a picture's title: its end, which has the file, if it is long.
pub fn shortened(name: &str, characters: usize) -> String {
    let count = name.chars().count();
    if count <= characters {
        return name.to_owned();
    }
    let end: String = name.chars().skip(count - characters + 1).collect();
    format!("…{end}")
}

/// Puts elements between two pictures of the same size, on the first and under the second.
pub fn between(below: &str, elements: &str, above: &str) -> Option<String> {
    let below = below.trim_end().strip_suffix("</svg>")?;
    let above = &above[above.find('>')? + 1..];
    Some(format!("{below}{elements}{}", above.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_one_picture() {
        let joined = between("<svg a>\n<b/>\n</svg>\n", "<c/>\n", "<svg a>\n<d/>\n</svg>\n");
        assert_eq!(joined.as_deref(), Some("<svg a>\n<b/>\n<c/>\n<d/>\n</svg>\n"));
        assert_eq!(between("no picture", "", ""), None);
    }

    #[test]
    fn a_long_name_keeps_its_end() {
        assert_eq!(shortened("table.fib", 9), "table.fib");
        assert_eq!(shortened("/a/é/table.fib", 10), "…table.fib");
    }
}
