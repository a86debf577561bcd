use super::{Code, Plan, Tables};
use crate::image::{Form, Image, Walk};
use crate::launch::{Source, source};

static SOURCE: Source = source!("sail_l");

/// By the width of entries.
pub(super) static FORMS: [Form; 2] = [
    Form { kernel: "sail_l_16", source: &SOURCE, walk: Walk::V4(code::<u16>) },
    Form { kernel: "sail_l_32", source: &SOURCE, walk: Walk::V4(code::<u32>) },
];

/// Parts: the arrays of the levels 16, 24 and 32. Numbers: the entry of the first chunk of level 24, how many chunks
/// that level has, and the same two of level 32.
pub(super) fn plan(tables: Tables<'_>) -> Option<Plan<'_>> {
    let [bcn16, bcn24, n32] = [tables.get("BCN16")?, tables.get("BCN24")?, tables.get("N32")?];
    let bytes = bcn16.len() >> 16;
    let form = match bytes {
        2 => &FORMS[0],
        4 => &FORMS[1],
        _ => return None,
    };
    let chunks = |level: &[u8]| (level.len() / (256 * bytes)) as u32;
    // Chunks take the largest entries.
    let first = |chunks: u32| (u32::MAX >> (32 - 8 * bytes)).wrapping_add(1).wrapping_sub(chunks);
    let words = [bcn24, n32].map(chunks).into_iter().flat_map(|n| [first(n), n]).collect();
    Some(Plan { form, parts: vec![bcn16.into(), bcn24.into(), n32.into()], words })
}

/// The entry of each level is a code, or a chunk of the next level.
fn code<C: Code>(image: &Image, addr: u32) -> u32 {
    let mut entry: u32 = image.get::<C>(0, (addr >> 16) as usize).into();
    for (level, byte) in [(1, addr >> 8 & 0xff), (2, addr & 0xff)] {
        let chunk = entry.wrapping_sub(image.word(2 * level - 2));
        if chunk >= image.word(2 * level - 1) {
            break;
        }
        entry = image.get::<C>(level, (chunk as usize) << 8 | byte as usize).into();
    }
    entry
}
