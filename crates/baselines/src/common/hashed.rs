use std::marker::PhantomData;

use bytemuck::Pod;
use fibula_core::Addr;
use fibula_filter::fmix64;
use fibula_simd::{Table, prefetch_read};

/// Hash tables of prefixes, one for each length, in one array of words.
///
/// The number of slots of a table is a power of two, at least twice the number of keys when it is built, and at least
/// [`SLOTS_MIN`], so that a few more keys need no build; collisions are resolved by linear probing. A slot has the
/// words of the key, the most significant first, a word for the code, and a word for the engine's note, in which the
/// bit [`USED`] marks a slot with a key.
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

/// The minimum number of slots of a table.
const SLOTS_MIN: u64 = 16;

/// In the last word of a slot: the slot has a key.
const USED: u32 = 1 << 31;

#[inline(always)]
const fn key_words<A: Addr>() -> usize {
    A::BITS as usize / 32
}

/// Words of a slot.
#[inline(always)]
const fn slot_words<A: Addr>() -> usize {
    key_words::<A>() + 2
}

impl Hashed {
    /// Builds a table of each list of keys, which must be different within a list, and returns the tables' places in
    /// the same order. Returns `None` if the number of slots exceeds 32 bits.
    pub(crate) fn new<A: Addr>(tables: &[Vec<Item<A>>]) -> Option<(Self, Vec<Part>)> {
        let slots =
            |items: &Vec<Item<A>>| (2 * items.len() as u64).next_power_of_two().max(SLOTS_MIN);
        let all: u64 = tables.iter().map(slots).sum();
        u32::try_from(all).ok()?;
        let mut words = vec![0; all as usize * slot_words::<A>()];
        let (mut parts, mut first) = (Vec::new(), 0);
        for items in tables {
            let part = Part { first, mask: (slots(items) - 1) as u32 };
            for &Item { key, code, note } in items {
                let slot =
                    free_slot(&words, part, key).expect("at most half of the slots are taken");
                write(&mut words, part, slot, Item { key, code, note });
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
        let mut slot = part.first_slot(key);
        // At least a quarter of the slots are free, but a loaded table may have none free.
        for _ in 0..=part.mask {
            touch();
            let read = self.compare(part, slot, key);
            if !read.is_used {
                return None;
            }
            if read.is_key {
                return Some((read.code, read.note));
            }
            slot = part.slot_after(slot);
        }
        None
    }

    /// Compares a slot with a key, without branches.
    #[inline(always)]
    pub(crate) fn compare<A: Addr>(&self, part: Part, slot: u32, key: A) -> Compared {
        let words = &self.words[place::<A>(part, slot)..][..slot_words::<A>()];
        let (stored, rest) = words.split_at(key_words::<A>());
        let stored = stored.iter().fold(0, |key, &word| key << 32 | u128::from(word));
        let (code, note) = (rest[0], rest[1]);
        let is_key = A::from_u128(stored) == key;
        Compared { is_used: note & USED != 0, is_key, code, note: note & !USED }
    }

    /// Prefetches a slot, which may cross the end of a cache line.
    #[inline(always)]
    pub(crate) fn prefetch<A: Addr>(&self, part: Part, slot: u32) {
        let at = place::<A>(part, slot);
        prefetch_read(&self.words, at);
        prefetch_read(&self.words, at + slot_words::<A>() - 1);
    }

    /// The tables, to be changed.
    pub(crate) fn to_mut<A: Addr>(&mut self) -> SlotsMut<'_, A> {
        SlotsMut { words: self.words.to_mut(), family: PhantomData }
    }

    /// The keys of a table, with their codes and notes.
    pub(crate) fn items<A: Addr>(&self, part: Part) -> impl Iterator<Item = Item<A>> {
        let used = (0..=part.mask).filter(move |&slot| is_used::<A>(&self.words, part, slot));
        used.map(move |slot| {
            let key = read_key::<A>(&self.words, part, slot);
            let rest = &self.words[place::<A>(part, slot) + key_words::<A>()..];
            Item { key, code: rest[0], note: rest[1] & !USED }
        })
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

impl Part {
    /// The slot at which the search for a key begins.
    #[inline(always)]
    pub(crate) fn first_slot<A: Addr>(self, key: A) -> u32 {
        hash(key) & self.mask
    }

    /// All slots in the order of a search that begins at this one.
    fn slots_from(self, first: u32) -> impl Iterator<Item = u32> {
        (0..=self.mask).map(move |i| first.wrapping_add(i) & self.mask)
    }

    /// The slot after this one; after the last comes the first.
    #[inline(always)]
    pub(crate) fn slot_after(self, slot: u32) -> u32 {
        (slot + 1) & self.mask
    }
}

/// A slot, compared with a key. Without a key in the slot, the rest means nothing.
pub(crate) struct Compared {
    /// Whether the slot has a key.
    pub(crate) is_used: bool,
    /// Whether it is this one.
    pub(crate) is_key: bool,
    pub(crate) code: u32,
    pub(crate) note: u32,
}

/// The tables while they change.
pub(crate) struct SlotsMut<'a, A> {
    words: &'a mut [u32],
    family: PhantomData<A>,
}

impl<A: Addr> SlotsMut<'_, A> {
    /// The slot of the key.
    pub(crate) fn find(&self, part: Part, key: A) -> Option<u32> {
        let mut slots = part.slots_from(part.first_slot(key));
        slots
            .find(|&slot| {
                !is_used::<A>(self.words, part, slot)
                    || read_key::<A>(self.words, part, slot) == key
            })
            .filter(|&slot| is_used::<A>(self.words, part, slot))
    }

    /// The code and the note of a slot with a key.
    pub(crate) fn get(&self, part: Part, slot: u32) -> (u32, u32) {
        let rest = &self.words[place::<A>(part, slot) + key_words::<A>()..];
        (rest[0], rest[1] & !USED)
    }

    /// Gives a slot with a key another code and note.
    pub(crate) fn set(&mut self, part: Part, slot: u32, (code, note): (u32, u32)) {
        let rest = &mut self.words[place::<A>(part, slot) + key_words::<A>()..];
        rest[..2].copy_from_slice(&[code, note | USED]);
    }

    /// Adds a key that the table does not have. `None` if more than three quarters of the slots would be taken.
    pub(crate) fn insert(&mut self, part: Part, keys: u32, item: Item<A>) -> Option<()> {
        let room = (u64::from(part.mask) + 1) * 3 / 4;
        if u64::from(keys) >= room {
            return None;
        }
        let slot = free_slot(self.words, part, item.key)?;
        write(self.words, part, slot, item);
        Some(())
    }

    /// Frees a slot. Keys behind it that a search would no longer find move up.
    pub(crate) fn remove(&mut self, part: Part, slot: u32) {
        let mut free = slot;
        for slot in part.slots_from(part.slot_after(slot)) {
            if slot == free || !is_used::<A>(self.words, part, slot) {
                break;
            }
            // From where its search begins, the key is as far as the free slot or farther.
            let first = part.first_slot(read_key::<A>(self.words, part, slot));
            let far = |from: u32| slot.wrapping_sub(from) & part.mask;
            if far(first) >= far(free) {
                let from = place::<A>(part, slot);
                self.words.copy_within(from..from + slot_words::<A>(), place::<A>(part, free));
                free = slot;
            }
        }
        self.words[place::<A>(part, free)..][..slot_words::<A>()].fill(0);
    }
}

#[inline(always)]
fn is_used<A: Addr>(words: &[u32], part: Part, slot: u32) -> bool {
    words[place::<A>(part, slot) + key_words::<A>() + 1] & USED != 0
}

/// The first free slot for a key.
fn free_slot<A: Addr>(words: &[u32], part: Part, key: A) -> Option<u32> {
    let mut slots = part.slots_from(part.first_slot(key));
    slots.find(|&slot| !is_used::<A>(words, part, slot))
}

fn read_key<A: Addr>(words: &[u32], part: Part, slot: u32) -> A {
    let words = &words[place::<A>(part, slot)..][..key_words::<A>()];
    A::from_u128(words.iter().fold(0, |key, &word| key << 32 | u128::from(word)))
}

fn write<A: Addr>(words: &mut [u32], part: Part, slot: u32, item: Item<A>) {
    let words = &mut words[place::<A>(part, slot)..][..slot_words::<A>()];
    let key = item.key.to_u128();
    for (i, word) in words[..key_words::<A>()].iter_mut().rev().enumerate() {
        *word = (key >> (32 * i)) as u32;
    }
    words[key_words::<A>()..].copy_from_slice(&[item.code, item.note | USED]);
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
