use std::hint::select_unpredictable;

use fibula_core::Hop;
use fibula_simd::{Simd, prefetch_read};

use super::record::{Codes, Unit};
use super::word::{BASE, BITS_AT, BYTE, RECORD};
use super::{LEVELS, ROOT_BITS, Tables, key, root};

/// Addresses of a block.
const TOGETHER: usize = 128;
/// How many bytes ahead addresses are prefetched.
const AHEAD: usize = 4096;

impl<C: Codes> Tables<C> {
    /// Looks up all addresses by plain loads, stage by stage, except in deep blocks; returns whether there are codes of
    /// deep blocks. This form is for machines without vectors. No branch depends on an address.
    #[inline(always)]
    pub(super) fn plain<S: Simd>(&self, simd: S, addrs: &[u128], hops: &mut [Hop]) -> bool {
        let mut any_deep = false;
        for (addrs, hops) in addrs.chunks(TOGETHER).zip(hops.chunks_mut(TOGETHER)) {
            any_deep |= self.plain_block(simd, addrs, hops);
        }
        any_deep
    }

    #[inline(always)]
    fn plain_block<S: Simd>(&self, simd: S, addrs: &[u128], hops: &mut [Hop]) -> bool {
        // Words from this one on are codes of deep blocks, records and tables.
        let answered = C::TOP + 1 - self.windows_used as u32;
        let root_words = self.words.first_chunk::<{ 1 << ROOT_BITS }>().expect("the root");
        let (mut at, mut len) = ([0u8; TOGETHER], 0);
        for (i, (addr, hop)) in addrs.iter().zip(hops.iter_mut()).enumerate() {
            if i % 4 == 0 {
                prefetch_read(addrs, i + AHEAD / size_of::<u128>());
            }
            let word = root_words[root(*addr)];
            *hop = Hop::from_bits(word.wrapping_sub(1));
            at[len % TOGETHER] = i as u8;
            len += usize::from(word >= answered);
        }
        let at = &at[..len];
        let (mut keys, mut words) = ([0; TOGETHER], [0; TOGETHER]);
        for ((key_of, word), &i) in keys.iter_mut().zip(&mut words).zip(at) {
            let addr = addrs[usize::from(i)];
            (*key_of, *word) = (key(addr), root_words[root(addr)]);
        }
        self.plain_codes(simd, &mut keys[..len], &mut words[..len]);
        let mut any_deep = false;
        for (&code, &i) in words.iter().zip(at) {
            hops[usize::from(i)] = Hop::from_bits(code.wrapping_sub(1));
            any_deep |= code >= answered;
        }
        any_deep
    }

    /// Replaces words by the codes to which they lead. The keys' bits are those that follow the ones that led to the
    /// words.
    #[inline(always)]
    pub(super) fn plain_codes<S: Simd>(&self, simd: S, keys: &mut [u32], words: &mut [u32]) {
        for _ in 0..LEVELS {
            for (key, word) in keys.iter_mut().zip(words.iter_mut()) {
                // All ones for a table.
                let table = (word.cast_signed() >> 31).cast_unsigned();
                let down = *word >> BITS_AT;
                let place = (*word & BASE).wrapping_add(*key >> (down & 31)) & table;
                let read = self.words[place as usize];
                *key <<= (32 - down) & 31 & table;
                *word = select_unpredictable(table == 0, *word, read);
            }
        }
        let codes: &[C::Code] = bytemuck::cast_slice(&self.units);
        for (&mut key, word) in keys.iter_mut().zip(words) {
            // To avoid a branch, a constant searches a record without keys.
            let record = (*word).max(RECORD);
            let (byte, keys) = ((record >> 3 & BYTE) as usize, (record & 31) as usize);
            let unit = &self.units[byte / size_of::<C::Unit>()];
            let first = byte % size_of::<C::Unit>() / 2;
            let rank = unit.rank(simd, first, keys, (key >> 16) as u16);
            let code = codes[C::codes_at(byte, keys) + rank as usize].into();
            *word = select_unpredictable(*word < RECORD, *word, code);
        }
    }
}
