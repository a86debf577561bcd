use bytemuck::Pod;
use fibula_core::Addr;
use fibula_filter::fmix64;
use fibula_simd::Table;

/// Hash tables of prefixes, one for each length, in one array of words.
///
/// The number of slots of a table is a power of two, at least twice the number of keys; collisions are resolved by
/// linear probing. A slot has the words of the key, the most significant first, a word for the code, and a word
/// for the engine's note, in which the bit [`USED`] marks a slot with a key.
#[derive(Clone)]
pub(crate) struct Hashed {
    pub(crate) words: Table<u32>,
}

/// One of the tables: its first slot, and its number of slots less one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) first: u32,
    pub(crate) mask: u32,
}

/// A key of a table with its code and its note.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item<A> {
    pub(crate) key: A,
    pub(crate) code: u32,
    /// The engine's note; the bit [`USED`] must be clear.
    pub(crate) note: u32,
}

/// In the last word of a slot: the slot has a key.
const USED: u32 = 1 << 31;

const fn key_words<A: Addr>() -> usize {
    A::BITS as usize / 32
}

/// Words of a slot.
const fn slot_words<A: Addr>() -> usize {
    key_words::<A>() + 2
}

impl Hashed {
    /// Builds a table of each list of keys, which must be different within a list, and returns the tables' places in
    /// the same order. Returns `None` if the number of slots exceeds 32 bits.
    pub(crate) fn new<A: Addr>(tables: &[Vec<Item<A>>]) -> Option<(Self, Vec<Part>)> {
        let slots = |items: &Vec<Item<A>>| (2 * items.len() as u64).next_power_of_two();
        let all: u64 = tables.iter().map(slots).sum();
        u32::try_from(all).ok()?;
        let mut words = vec![0; all as usize * slot_words::<A>()];
        let (mut parts, mut first) = (Vec::new(), 0);
        for items in tables {
            let part = Part { first, mask: (slots(items) - 1) as u32 };
            for &Item { key, code, note } in items {
                let mut slot = hash(key) & part.mask;
                while words[place::<A>(part, slot) + key_words::<A>() + 1] & USED != 0 {
                    slot = (slot + 1) & part.mask;
                }
                let at = place::<A>(part, slot);
                let key = key.to_u128();
                for (i, word) in words[at..][..key_words::<A>()].iter_mut().rev().enumerate() {
                    *word = (key >> (32 * i)) as u32;
                }
                words[at + key_words::<A>()..][..2].copy_from_slice(&[code, note | USED]);
            }
            first += part.mask + 1;
            parts.push(part);
        }
        Some((Self { words: Table::from_vec(words) }, parts))
    }

    /// Returns the key's code and note; calls `touch` for each slot that is read.
    #[inline(always)]
    pub(crate) fn find<A: Addr>(
        &self,
        part: Part,
        key: A,
        mut touch: impl FnMut(),
    ) -> Option<(u32, u32)> {
        let mut slot = hash(key) & part.mask;
        // At least half of the slots are free, but a loaded table may have none free.
        for _ in 0..=part.mask {
            let words = &self.words[place::<A>(part, slot)..][..slot_words::<A>()];
            touch();
            let (stored, rest) = words.split_at(key_words::<A>());
            if rest[1] & USED == 0 {
                return None;
            }
            let stored = stored.iter().fold(0, |key, &word| key << 32 | u128::from(word));
            if A::from_u128(stored) == key {
                return Some((rest[0], rest[1] & !USED));
            }
            slot = (slot + 1) & part.mask;
        }
        None
    }

    /// The number of slots with a key.
    pub(crate) fn used<A: Addr>(&self) -> usize {
        let note = |slot: &[u32]| slot[key_words::<A>() + 1];
        self.words.chunks_exact(slot_words::<A>()).filter(|slot| note(slot) & USED != 0).count()
    }

    /// Whether the parts follow each other and contain all slots, the size of each is a power of two, and all codes
    /// are valid.
    pub(crate) fn is_sound<A: Addr>(&self, parts: &[Part], hop_count: u32) -> bool {
        let mut end = 0u64;
        let in_order = parts.iter().all(|part| {
            let starts = u64::from(part.first) == end;
            end += u64::from(part.mask) + 1;
            starts && (u64::from(part.mask) + 1).is_power_of_two()
        });
        let code = |slot: &[u32]| slot[key_words::<A>()];
        in_order
            && end * slot_words::<A>() as u64 == self.words.len() as u64
            && self.words.chunks_exact(slot_words::<A>()).all(|slot| code(slot) <= hop_count)
    }
}

/// The first word of a slot.
#[inline(always)]
fn place<A: Addr>(part: Part, slot: u32) -> usize {
    (part.first as usize + slot as usize) * slot_words::<A>()
}

#[inline(always)]
fn hash<A: Addr>(key: A) -> u32 {
    let key = key.to_u128();
    let low = (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (fmix64((key >> 64) as u64 ^ low) >> 32) as u32
}

/// The parts in the stored rows: two words of each row, from word `at` on.
pub(crate) fn parts<const W: usize>(rows: &[[u32; W]], at: usize) -> Vec<Part>
where
    [u32; W]: Pod,
{
    rows.iter().map(|row| Part { first: row[at], mask: row[at + 1] }).collect()
}
