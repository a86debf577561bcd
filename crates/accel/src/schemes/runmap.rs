use super::{Code, Plan, Tables};
use crate::image::{Form, Image, Walk};
use crate::launch::{Source, source};

static SOURCE: Source = source!("runmap");

/// By the width of codes.
pub(super) static FORMS: [Form; 3] = [
    Form { kernel: "runmap8", source: &SOURCE, walk: Walk::V4(code::<u8>) },
    Form { kernel: "runmap16", source: &SOURCE, walk: Walk::V4(code::<u16>) },
    Form { kernel: "runmap32", source: &SOURCE, walk: Walk::V4(code::<u32>) },
];

/// One part: the root of 2^18 words, followed by the records.
pub(super) fn plan(tables: Tables<'_>) -> Option<Plan<'_>> {
    let (width, records) = tables.one_of(&["runs8", "runs16", "runs32"])?;
    Some(Plan { form: &FORMS[width], parts: vec![records.into()], words: Vec::new() })
}

/// The root word of the /18 is the place of its record: a bitmap of the /24s that end a run, then the runs' codes, the
/// last run's first. The 64 largest codes are escapes, to the record of a /24 whose place is stored before the bitmap.
fn code<C: Code>(image: &Image, addr: u32) -> u32 {
    let escape = (u32::MAX >> (32 - 8 * size_of::<C>())) - 63;
    let at = image.get::<u32>(0, (addr >> 14) as usize) as usize;
    let ends: u64 = image.read(0, at);
    let count = (ends >> (addr >> 8 & 63)).count_ones() as usize;
    let code: u32 = image.read::<C>(0, at + 8 + (count - 1) * size_of::<C>()).into();
    if code < escape {
        return code;
    }
    // The record of a /24: four words of bitmap, for each the number of ends in the words behind it, and codes of 32
    // bits.
    let place = image.read::<u32>(0, at - 4 * (code - escape + 1) as usize) as usize;
    let word = (addr >> 6 & 3) as usize;
    let ends: u64 = image.read(0, place + 8 * word);
    let behind: u8 = image.read(0, place + 32 + word);
    let count = (ends >> (addr & 63)).count_ones() as usize + usize::from(behind);
    image.read(0, place + 36 + 4 * (count - 1))
}
