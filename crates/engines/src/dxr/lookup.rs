use fibula_core::Hop;

use super::format::{Chunk, Entry, WideEntry, hop};
use super::{Compact, Form, Wide};

/// The paper's lookup: the first k bits of the address (all but `shift`) choose an entry of the lookup table; the entry
/// is the answer, or names the chunk of the range table to search with the remaining bits. `step` is called for each
/// step of the search.
#[inline]
pub(super) fn compact(tables: &Compact, shift: u32, addr: u32, step: impl FnMut()) -> Hop {
    let entry = Entry(tables.lookup[(addr >> shift) as usize]);
    if let Some(hop) = entry.direct() {
        return hop;
    }
    let chunk = Chunk::new(entry, tables.grain);
    let key = chunk.key(addr & ((1 << shift) - 1));
    let at = search(chunk.size, |i| chunk.entry(&tables.ranges, i) <= key, step);
    hop(chunk.code(chunk.entry(&tables.ranges, at)))
}

/// All addresses, one after the other, searching with branches.
pub(super) fn branching(form: &Form, shift: u32, addrs: &[u32], hops: &mut [Hop]) {
    let local = |addr: u32| addr & ((1 << shift) - 1);
    match form {
        Form::Compact(tables) => addrs.iter().zip(hops).for_each(|(&addr, answer)| {
            let entry = Entry(tables.lookup[(addr >> shift) as usize]);
            *answer = entry.direct().unwrap_or_else(|| {
                let chunk = Chunk::new(entry, tables.grain);
                let key = chunk.key(local(addr));
                let at = search_branching(chunk.size, |i| chunk.entry(&tables.ranges, i) <= key);
                hop(chunk.code(chunk.entry(&tables.ranges, at)))
            });
        }),
        Form::Wide(tables) => addrs.iter().zip(hops).for_each(|(&addr, answer)| {
            let entry = WideEntry(tables.lookup[(addr >> shift) as usize]);
            *answer = entry.direct().unwrap_or_else(|| {
                let begin = entry.position() as usize;
                let starts_before = |i| u32::from(tables.starts[begin + i]) <= local(addr);
                hop(tables.codes[begin + search_branching(entry.size() as usize, starts_before)])
            });
        }),
    }
}

/// The same over the wide tables.
#[inline]
pub(super) fn wide(tables: &Wide, shift: u32, addr: u32, step: impl FnMut()) -> Hop {
    let entry = WideEntry(tables.lookup[(addr >> shift) as usize]);
    if let Some(hop) = entry.direct() {
        return hop;
    }
    let begin = entry.position() as usize;
    let local = (addr & ((1 << shift) - 1)) as u16;
    let at = search(entry.size() as usize, |i| tables.starts[begin + i] <= local, step);
    hop(tables.codes[begin + at])
}

/// The last of `size` ranges that starts at or before the key, by binary search; the first one does.
#[inline]
fn search(size: usize, starts_before: impl Fn(usize) -> bool, mut step: impl FnMut()) -> usize {
    let (mut low, mut high) = (0, size);
    while high - low > 1 {
        step();
        let middle = low + (high - low) / 2;
        if starts_before(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// As [`search`], with a branch for each comparison: it ends at once where a range starts at or before
/// the key and the next one does not.
#[inline]
fn search_branching(size: usize, starts_before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, size);
    loop {
        let middle = low + (high - low) / 2;
        if !starts_before(middle) {
            high = middle;
        } else if middle + 1 < size && starts_before(middle + 1) {
            low = middle + 1;
        } else {
            return middle;
        }
    }
}
