//! Engines' tables as the programs take them: their bytes as they are, and behind them the groups of the hops.

use fibula_core::{Addr, TableRef};

use super::arena::Parts;
use crate::forward::Side;

/// A family's table in a form for lookups in the kernel.
pub(super) trait InKernel: Addr {
    /// The engine that has a program there.
    const ENGINE: &'static str;

    /// Its table; `None` if the program does not know the form of its tables.
    fn parts<'a>(tables: &[TableRef<'a>], groups: &[u32]) -> Option<Parts<'a>>;
}

/// The table of a family, if its engine is the one that has a program in the kernel.
pub(super) fn parts<'a, A: InKernel>(side: &Side<'a, A>) -> Option<Parts<'a>> {
    let (scheme, tables) = side.engine.persist()?;
    if scheme != A::ENGINE { None } else { A::parts(&tables, side.groups) }
}

fn table<'a>(tables: &[TableRef<'a>], name: &str) -> Option<&'a [u8]> {
    tables.iter().find(|table| table.name == name).map(|table| table.bytes)
}

/// The table with codes, by its names for each width, and the binary logarithm of a code's bytes.
fn coded<'a>(tables: &[TableRef<'a>], names: [&str; 3]) -> Option<(&'a [u8], u32)> {
    names.into_iter().zip(0..).find_map(|(name, shift)| Some((table(tables, name)?, shift)))
}

/// All bits of a code.
fn mask(shift: u32) -> u32 {
    u32::MAX >> (32 - (8 << shift))
}

impl InKernel for u32 {
    const ENGINE: &'static str = "runmap";

    fn parts<'a>(tables: &[TableRef<'a>], groups: &[u32]) -> Option<Parts<'a>> {
        let (records, shift) = coded(tables, ["runs8", "runs16", "runs32"])?;
        let mut parts = Parts::default();
        parts.push(records);
        let at = parts.push_words(groups.iter().copied());
        parts.layout[..4].copy_from_slice(&[shift, mask(shift), at, groups.len() as u32]);
        Some(parts)
    }
}

/// The largest code of a record with codes of 32 bits: words have no room for more (`word.rs` of the engine).
const WIDE_TOP: u32 = (1 << 30) - 1;
/// Bytes of a deep block's window.
const WINDOW: usize = 32;

impl InKernel for u128 {
    const ENGINE: &'static str = "wideleaf";

    fn parts<'a>(tables: &[TableRef<'a>], groups: &[u32]) -> Option<Parts<'a>> {
        // The keys of a record lie in half a line or in a line; the program reads a line.
        let (records, shift) = coded(tables, ["records8", "records16", "records32"])
            .or_else(|| coded(tables, ["lines8", "lines16", "lines32"]))?;
        let windows = table(tables, "windows")?;
        let mut parts = Parts::default();
        parts.push(table(tables, "words")?);
        let records = parts.push(records);
        let blocks = (windows.len() / WINDOW) as u32;
        let windows = parts.push(windows);
        let at = parts.push_words(groups.iter().copied());
        let top = mask(shift).min(WIDE_TOP);
        let layout = [shift, mask(shift), top, records, windows, blocks, at, groups.len() as u32];
        parts.layout[..8].copy_from_slice(&layout);
        Some(parts)
    }
}
