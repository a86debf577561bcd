use super::{Code, Plan, Tables};
use crate::image::{Form, Image, Walk};
use crate::launch::{Source, source};

static SOURCE: Source = source!("dir24_8");

/// By the width of entries.
pub(super) static FORMS: [Form; 2] = [
    Form { kernel: "dir24_8_16", source: &SOURCE, walk: Walk::V4(code::<u16>) },
    Form { kernel: "dir24_8_32", source: &SOURCE, walk: Walk::V4(code::<u32>) },
];

/// Parts: an entry for each /24, and the chunks of 256 entries.
pub(super) fn plan(tables: Tables<'_>) -> Option<Plan<'_>> {
    let (width, tbl24) = tables.one_of(&["tbl24", "tbl24-wide"])?;
    let (_, tbl_long) = tables.one_of(&["tbllong", "tbllong-wide"])?;
    let parts = vec![tbl24.into(), tbl_long.into()];
    Some(Plan { form: &FORMS[width], parts, words: Vec::new() })
}

/// The entry of the /24 is a code, or, with its top bit set, the number of a chunk.
fn code<C: Code>(image: &Image, addr: u32) -> u32 {
    let is_chunk = 1 << (8 * size_of::<C>() - 1);
    let entry: u32 = image.get::<C>(0, (addr >> 8) as usize).into();
    if entry & is_chunk == 0 {
        return entry;
    }
    let chunk = (entry & (is_chunk - 1)) as usize;
    image.get::<C>(1, chunk << 8 | (addr & 0xff) as usize).into()
}
