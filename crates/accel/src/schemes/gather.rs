//! No scheme: reads at random places of a working set, the most that tables of its size let a device look up. The rate
//! of a device's memory and caches is measured with it.

use super::Plan;
use crate::image::{Form, Image, Walk};
use crate::launch::{Source, source};

static SOURCE: Source = source!("gather");

pub(super) static FORMS: [Form; 1] =
    [Form { kernel: "gather", source: &SOURCE, walk: Walk::V4(sum) }];

/// Reads of a key, which do not wait for each other.
pub(crate) const READS: u32 = 16;

/// The working set: words that say where they are, a power of two of them, at least 2 and at most 2^30.
pub(crate) fn plan(words: &[u32]) -> Plan<'_> {
    debug_assert!(words.len().is_power_of_two() && words.len() > 1);
    let shift = 32 - words.len().ilog2();
    Plan { form: &FORMS[0], parts: vec![bytemuck::cast_slice(words).into()], words: vec![shift] }
}

/// The sum of words at places that the top bits of products choose (Fibonacci hashing).
fn sum(image: &Image, key: u32) -> u32 {
    let place = |read: u32| {
        let key = (key ^ key >> 15).wrapping_add(read.wrapping_mul(0x85eb_ca6b));
        key.wrapping_mul(0x9e37_79b1) >> image.word(0)
    };
    (0..READS).fold(0, |sum: u32, read| sum.wrapping_add(image.get(0, place(read) as usize)))
}
