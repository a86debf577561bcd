//! The fast path for objects with the same members as the previous line, as on most lines.
//!
//! The text between the values is compared as a whole, and the positions of quotes and digits give the ends of values:
//!
//! ```text
//!   {"time":1700000000,"src_ip":"210.56.75.48","bytes":541694}
//!   ~~~~~~~~          ~~~~~~~~~~              ~~~~~~~~~      ~     compared with the previous line
//! ```
//!
//! If the keys are the same and in the same order, the values belong to the same columns. All other objects are left to
//! [`plain`](super::plain).

use fibula_simd::{byte_marks, digit_marks, unprintable_marks};

use super::find::Found;
use super::plain::{Plain, place_of};

/// The maximum length of the text between two values.
const LONGEST: usize = 32;

/// The number of consecutive misses from which on only every 64th line is learned.
const PATIENCE: u32 = 8;

/// The text between the values of a line.
#[derive(Clone, Debug, Default)]
pub(super) struct LineTemplate {
    members: Vec<Member>,
    /// The marks of a line: one entry for each 64 bytes, and an empty one at the end.
    marks: Vec<Marks>,
    /// The number of consecutive lines that did not match the learned line.
    misses: u32,
}

/// The text before a value: the end of the previous member, the key and the colon.
#[derive(Clone, Debug)]
struct Member {
    text: [u64; LONGEST / 8],
    /// The bytes of `text` that are compared.
    mask: [u64; LONGEST / 8],
    len: usize,
    /// The column of the value, if it has one.
    slot: Option<usize>,
    /// Whether the value may contain a column, if it is an object.
    is_path: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    quotes: u64,
    digits: u64,
}

/// The text as little-endian words.
#[inline(always)]
fn words(text: &[u8; LONGEST]) -> [u64; LONGEST / 8] {
    let (words, _) = text.as_chunks::<8>();
    std::array::from_fn(|at| u64::from_le_bytes(words[at]))
}

impl Member {
    fn new(text: &[u8], slot: Option<usize>, is_path: bool) -> Option<Self> {
        let (mut padded, mut mask) = ([0; LONGEST], [0; LONGEST]);
        padded.get_mut(..text.len())?.copy_from_slice(text);
        mask[..text.len()].fill(0xff);
        Some(Self { text: words(&padded), mask: words(&mask), len: text.len(), slot, is_path })
    }

    #[inline(always)]
    fn begins(&self, text: &[u8; LONGEST]) -> bool {
        let text = words(text).into_iter().zip(self.text);
        let differ = text.zip(self.mask).fold(0, |all, ((a, b), mask)| all | (a ^ b) & mask);
        differ == 0
    }
}

impl LineTemplate {
    /// Finds the columns of the object `data[..len]`, if it matches the learned line; otherwise returns `false`. Bytes
    /// after the object may be read, but do not affect the result. `found` must have been cleared.
    #[inline]
    pub(super) fn find(&mut self, data: &[u8], len: usize, found: &mut [Found]) -> bool {
        let is_like = !self.members.is_empty() && self.mark(data, len) && {
            self.values(data, len, found).is_some()
        };
        self.misses = if is_like { 0 } else { self.misses.saturating_add(1) };
        is_like
    }

    /// Whether to learn the current line, which did not match the learned one.
    pub(super) fn learns(&self) -> bool {
        self.misses < PATIENCE || self.misses.is_multiple_of(64)
    }

    /// Forgets the line that was learned.
    pub(super) fn forget(&mut self) {
        self.members.clear();
    }

    /// Learns the next member by the text before its value. Returns `false` if the text is too long.
    pub(super) fn learn(&mut self, text: &[u8], slot: Option<usize>, is_path: bool) -> bool {
        let member = Member::new(text, slot, is_path);
        let is_short = member.is_some();
        self.members.extend(member);
        is_short
    }

    /// Marks quotes and digits. Returns whether the text is plain.
    #[inline(always)]
    fn mark(&mut self, data: &[u8], len: usize) -> bool {
        self.marks.clear();
        let (mut odd, mut base) = (0, 0);
        while base < len {
            let rest = &data[base..];
            let mut padded = [b' '; 64];
            let text = rest.first_chunk::<64>().unwrap_or_else(|| {
                padded[..rest.len()].copy_from_slice(rest);
                &padded
            });
            let here = unprintable_marks(text) | byte_marks(text, b'\\');
            odd |= here & (u64::MAX >> (64 - (len - base).min(64)));
            let (quotes, digits) = (byte_marks(text, b'"'), digit_marks(text));
            self.marks.push(Marks { quotes, digits });
            base += 64;
        }
        self.marks.push(Marks::default());
        odd == 0
    }

    /// The marks of the 64 bytes that begin at `at`.
    #[inline(always)]
    fn window(&self, at: usize, kind: impl Fn(&Marks) -> u64) -> Option<u64> {
        let [here, next] = self.marks.get(at / 64..)?.first_chunk::<2>()?;
        let place = at % 64;
        Some(kind(here) >> place | kind(next) << 1 << (63 - place))
    }

    /// The position of the first quote at or after `at`.
    #[inline(always)]
    fn quote(&self, mut at: usize) -> Option<usize> {
        loop {
            let quotes = self.window(at, |marks| marks.quotes)?;
            if quotes != 0 {
                return Some(at + quotes.trailing_zeros() as usize);
            }
            at += 64;
        }
    }

    #[inline(always)]
    fn values(&self, data: &[u8], len: usize, found: &mut [Found]) -> Option<()> {
        let text = &data[..len];
        let mut at = 0;
        for member in &self.members {
            if !member.begins(data.get(at..)?.first_chunk()?) {
                return None;
            }
            at += member.len;
            let first = *text.get(at)?;
            if first == b'"' {
                let close = self.quote(at + 1)?;
                if let Some(slot) = member.slot {
                    found[slot].set(place_of(data, at + 1, close));
                }
                at = close + 1;
                continue;
            }
            // Columns without a string, and objects that may contain a column, are left to `plain`.
            if member.slot.is_some() || first == b'{' && member.is_path {
                return None;
            }
            let digits = self.window(at, |marks| marks.digits)?.trailing_ones() as usize;
            let is_natural = matches!(text.get(at + digits), Some(b',' | b'}'));
            if digits > 0 && is_natural && (first != b'0' || digits == 1) {
                at += digits;
                continue;
            }
            let mut plain = Plain::begin(text, at)?;
            plain.value(1)?;
            at = plain.at();
        }
        (at + 1 == len && data[at] == b'}').then_some(())
    }
}
