use super::{Code, Plan, Tables};
use crate::image::{Form, Image, Walk};
use crate::launch::{Source, source};

static SOURCE: Source = source!("wideleaf");

/// By the width of codes.
pub(super) static FORMS: [Form; 3] = [
    Form { kernel: "wideleaf8", source: &SOURCE, walk: Walk::V6(code::<u8>) },
    Form { kernel: "wideleaf16", source: &SOURCE, walk: Walk::V6(code::<u16>) },
    Form { kernel: "wideleaf32", source: &SOURCE, walk: Walk::V6(code::<u32>) },
];

/// Bytes of a window: its first address, a word, a shift, and 8 bytes unused.
const WINDOW: usize = 32;

/// Parts: the words of root and tables, the records, the windows of deep blocks. Number: the windows.
pub(super) fn plan(tables: Tables<'_>) -> Option<Plan<'_>> {
    // Records in lines and in halves of lines differ for vector comparisons only.
    let names = ["records8", "records16", "records32", "lines8", "lines16", "lines32"];
    let (form, records) = tables.one_of(&names)?;
    let (words, windows) = (tables.get("words")?, tables.get("windows")?);
    let parts = vec![words.into(), records.into(), windows.into()];
    let words = vec![(windows.len() / WINDOW) as u32];
    Some(Plan { form: &FORMS[form % FORMS.len()], parts, words })
}

/// The root word of the first 16 bits, then words of tables by the bits of the key that follow, until one is a constant
/// code, or a record in which 16 bits of the key are searched. The largest codes are those of deep blocks, whose
/// windows give the address another key and word.
fn code<C: Code>(image: &Image, addr: u128) -> u32 {
    let top = if size_of::<C>() == 4 { (1 << 30) - 1 } else { (1 << (8 * size_of::<C>())) - 1 };
    let mut word: u32 = image.get(0, (addr >> 112) as usize);
    let mut key = (addr >> 80) as u32;
    loop {
        while word >> 31 == 1 {
            let bits = 32 - (word >> 27);
            let base = (word & ((1 << 27) - 1)) as usize;
            word = image.get(0, base + (key >> (32 - bits)) as usize);
            key <<= bits;
        }
        let code = if word >> 30 == 1 {
            let (byte, keys) = ((word >> 3 & ((1 << 27) - 4)) as usize, (word & 31) as usize);
            let key = (key >> 16) as u16;
            let rank = (0..keys).filter(|i| image.read::<u16>(1, byte + 2 * i) < key).count();
            let codes = (byte + 2 * keys).div_ceil(size_of::<C>());
            image.get::<C>(1, codes + rank).into()
        } else {
            word
        };
        let block = u32::wrapping_sub(top, code);
        if block >= image.word(0) {
            return code;
        }
        (word, key) = window(image, block as usize, addr);
    }
}

/// The word of a deep block, and the key of the address: the first 32 of the bits that distinguish the addresses of the
/// window. An address before the window has the key of its first one, one behind it that of its last one.
fn window(image: &Image, block: usize, addr: u128) -> (u32, u32) {
    let first: u128 = image.read(2, block * WINDOW);
    let word: u32 = image.read(2, block * WINDOW + 16);
    let shift: u32 = image.read(2, block * WINDOW + 20);
    let key = match addr.checked_sub(first) {
        None => 0,
        Some(place) if place >> (112 - shift) > 0 => u32::MAX,
        Some(place) => (place << (shift + 16) >> 96) as u32,
    };
    (word, key)
}
