//! Writes the tables of an engine as the memories of a lookup pipeline in hardware.
//!
//! The bytes are those of [`Persist::tables`](fibula_core::Persist::tables), so hardware and software look up in the
//! tables of the same build. [`Memories::of`] divides them into the memories that a pipeline has, each with words of
//! its own width:
//!
//! | engine | on the chip | off the chip |
//! |---|---|---|
//! | `sail-l` | `BC16`, `B24` | `N16`, `N24`, `C24`, `N32` |
//! | `sail-b`, `sail-u` | `B` of each level | `N`, `C24`, `N32` |
//! | `planb` | `level0`, `level1` .., `values` | `long_starts`, `long_lasts`, `long_codes` (IPv6) |
//! | `dxr` | `lookup`, `ranges` | |
//! | `runmap` | `root`, `records`, `values` | `networks`, `network_codes` |
//!
//! An image is written as text for Verilog's `$readmemh`: a word a line in hexadecimal, `@address` where words of zero
//! were left out. A memory is all zeros before it is loaded.

mod image;
mod schemes;
mod updates;

use std::fmt::Write as _;

use fibula_core::{Family, TableRef};

use crate::ExportError;

pub use image::MemoryImage;
pub use updates::UpdateStep;

/// The memories of a pipeline, filled with the tables of an engine.
pub struct Memories<'a> {
    /// The engine's scheme.
    pub scheme: &'static str,
    /// The family of its addresses.
    pub family: Family,
    /// Numbers that the pipeline is built with, by name.
    pub parameters: Vec<(&'static str, u64)>,
    /// The memories in the order in which a lookup reads them.
    pub images: Vec<MemoryImage<'a>>,
}

impl<'a> Memories<'a> {
    /// The memories for these stored tables of an engine.
    ///
    /// # Errors
    /// [`ExportError::Scheme`] if the scheme, or this form of its tables, has no pipeline.
    pub fn of(
        scheme: &'static str,
        family: Family,
        tables: &[TableRef<'a>],
    ) -> Result<Self, ExportError> {
        schemes::memories(scheme, family, tables)
    }

    /// The description of the memories as JSON: `hops` is the number of hops, so the largest code.
    pub fn map(&self, hops: u32) -> String {
        let mut out = String::new();
        let family = match self.family {
            Family::V4 => "v4",
            Family::V6 => "v6",
        };
        let scheme = self.scheme;
        let _ = write!(out, "{{\n  \"scheme\": \"{scheme}\",\n  \"family\": \"{family}\",\n");
        let _ = write!(out, "  \"hops\": {hops},\n  \"parameters\": {{");
        for (i, (name, value)) in self.parameters.iter().enumerate() {
            let _ = write!(out, "{}\"{name}\": {value}", if i == 0 { "" } else { ", " });
        }
        out.push_str("},\n  \"memories\": [\n");
        for (i, image) in self.images.iter().enumerate() {
            let MemoryImage { name, width, depth, on_chip, .. } = image;
            let end = if i + 1 == self.images.len() { "" } else { "," };
            let _ = writeln!(
                out,
                "    {{\"name\": \"{name}\", \"file\": \"{name}.hex\", \"width\": {width}, \"depth\": {depth}, \
                 \"on_chip\": {on_chip}}}{end}"
            );
        }
        out.push_str("  ]\n}\n");
        out
    }
}
