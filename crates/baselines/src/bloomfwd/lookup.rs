use fibula_core::Hop;

use super::bucket::{Address, Code, Keyed, Slot};
use super::tables::Tables;
use fibula_engines::common::hop;

/// The prefix of so many bits of an address, as a key.
#[inline(always)]
pub(super) fn key<A: Address, K: Slot>(addr: A, len: u8) -> K {
    K::of(addr.and(A::netmask(len)))
}

impl<A: Address, C: Code> Tables<A, C> {
    /// The paper's algorithm 2: from the longest prefixes to the shorter, a hash table only where the
    /// filter before it lets the key pass.
    pub(super) fn lookup(&self, addr: A) -> Hop {
        let long = if self.passes(addr) { self.find_long(addr) } else { None };
        let code = long.or_else(|| {
            let mut levels = self
                .levels
                .iter()
                .map(|level| self.find(level, key::<A, <A as Keyed>::Key>(addr, level.len)));
            levels.find(|code| *code != C::NONE)
        });
        hop(code.unwrap_or_else(|| self.direct[place(addr, self.direct_bits)]).into())
    }

    /// Whether the gate lets the address pass: it may have a prefix longer than keys are.
    fn passes(&self, addr: A) -> bool {
        self.gate.as_ref().is_some_and(|gate| {
            let start = key::<A, u64>(addr, gate.len);
            gate.bits(&self.filters, self.hashes.filter).contains(start)
        })
    }

    /// The code of the longest prefix that is longer than keys are.
    pub(super) fn find_long(&self, addr: A) -> Option<C> {
        let mut levels =
            self.long.iter().map(|level| self.find(level, key::<A, u128>(addr, level.len)));
        levels.find(|code| *code != C::NONE)
    }
}

/// The address's place in a direct lookup array of so many bits.
#[inline(always)]
pub(super) fn place<A: Address>(addr: A, direct_bits: u8) -> usize {
    // A shift by all bits is none; 64 of them leave room for it.
    let first = (addr.to_u128() >> (A::BITS - 32)) as u64;
    (first >> (32 - direct_bits)) as usize
}
