//! What the rules of several tuples have in all fields but the protocol and the transport's.
//!
//! Rules for the same pair of subnets often differ in protocol and ports alone, and their tuples in the length of the ports. One
//! look into the table of their group says which of these tuples have rules for the packet's addresses; it costs no bit of a port.

use std::collections::HashMap;

use fibula_simd::prefetch_read;

use super::words::Words;
use crate::{Field, Flow, Mask};

/// Tuples at most in a group: each has a bit.
const MEMBERS: u32 = 64;

/// Tuples whose masks are equal but for the protocol and the transport header.
#[derive(Clone, Debug)]
pub(super) struct Group {
    words: Words,
    /// The hash of each key, 0 in empty slots. Keys with one hash are one here: that costs bits of megaflows, no more.
    hashes: Vec<u32>,
    /// The tuples that have a rule with the hash.
    bits: Vec<u64>,
    used: usize,
    /// The tuples that it has.
    members: u64,
    /// How many rules of a tuple have each hash: only changes look at it.
    rules: HashMap<(u32, u8), u32>,
}

/// The bits of a mask but for the protocol and the transport header.
pub(super) fn outside_transport(mask: &Mask) -> Mask {
    let of_transport = |field: &Field| {
        matches!(
            field,
            Field::Protocol
                | Field::SrcPort
                | Field::DstPort
                | Field::TcpFlags
                | Field::IcmpType
                | Field::IcmpCode
                | Field::Transport
        )
    };
    let fields = Field::ALL.into_iter().filter(|field| !of_transport(field));
    fields.fold(Mask::EMPTY, |all, field| all | Mask::bits(field, mask.get(field)))
}

impl Group {
    pub(super) fn new(mask: Mask) -> Self {
        Self {
            words: Words::of(&mask),
            hashes: vec![0; 4],
            bits: vec![0; 4],
            used: 0,
            members: 0,
            rules: HashMap::default(),
        }
    }

    /// The words of its mask.
    #[inline]
    pub(super) fn words(&self) -> &Words {
        &self.words
    }

    pub(super) fn bytes(&self) -> usize {
        self.hashes.capacity() * 12 + self.rules.capacity() * 17
    }

    /// Takes a tuple in, if there is room.
    pub(super) fn join(&mut self) -> Option<u8> {
        let member = self.members.trailing_ones();
        (member < MEMBERS).then(|| {
            self.members |= 1 << member;
            member as u8
        })
    }

    /// A tuple without rules goes.
    pub(super) fn leave(&mut self, member: u8) {
        self.members &= !(1 << member);
    }

    /// Never 0.
    #[inline]
    fn hash(&self, flow: &Flow) -> u32 {
        (self.words.hash(flow) >> 32) as u32 | 1 << 31
    }

    /// The slot of a hash, or the empty one that it would go to.
    #[inline]
    fn slot(&self, hash: u32) -> usize {
        let last = self.hashes.len() - 1;
        let mut at = hash as usize & last;
        while self.hashes[at] != hash && self.hashes[at] != 0 {
            at = (at + 1) & last;
        }
        at
    }

    /// Hashes the packet, and asks for the line of its slot.
    #[inline]
    pub(super) fn ask(&self, flow: &Flow) -> u32 {
        let hash = self.hash(flow);
        prefetch_read(&self.hashes, hash as usize & (self.hashes.len() - 1));
        hash
    }

    /// Asks for what the slot says of the hash. Most groups do not have it: their hashes are many in a line, and near.
    #[inline]
    pub(super) fn fetch(&self, hash: u32) {
        let slot = hash as usize & (self.hashes.len() - 1);
        if self.hashes[slot] == hash {
            prefetch_read(&self.bits, slot);
        }
    }

    /// The tuples that may have a rule for the packet with this hash; the others have none.
    #[inline]
    pub(super) fn tuples(&self, hash: u32) -> u64 {
        let slot = self.slot(hash);
        if self.hashes[slot] == 0 { 0 } else { self.bits[slot] }
    }

    /// A rule more of a tuple.
    pub(super) fn insert(&mut self, flow: &Flow, member: u8) {
        let hash = self.hash(flow);
        let rules = self.rules.entry((hash, member)).or_default();
        *rules += 1;
        if *rules > 1 {
            return;
        }
        let slot = self.slot(hash);
        if self.hashes[slot] == 0 {
            self.hashes[slot] = hash;
            self.used += 1;
        }
        self.bits[slot] |= 1 << member;
        if self.used * 2 > self.hashes.len() {
            self.grow();
        }
    }

    /// A rule of a tuple less. A slot without bits stays until the table is made anew.
    pub(super) fn remove(&mut self, flow: &Flow, member: u8) {
        let hash = self.hash(flow);
        let Some(rules) = self.rules.get_mut(&(hash, member)) else { return };
        *rules -= 1;
        if *rules == 0 {
            self.rules.remove(&(hash, member));
            let slot = self.slot(hash);
            self.bits[slot] &= !(1 << member);
        }
    }

    fn grow(&mut self) {
        let old = std::mem::take(&mut self.hashes);
        let bits = std::mem::take(&mut self.bits);
        self.used = bits.iter().filter(|bits| **bits != 0).count();
        let slots = (self.used * 4).next_power_of_two().max(4);
        self.hashes = vec![0; slots];
        self.bits = vec![0; slots];
        for (hash, bits) in old.into_iter().zip(bits).filter(|(_, bits)| *bits != 0) {
            let slot = self.slot(hash);
            self.hashes[slot] = hash;
            self.bits[slot] = bits;
        }
    }
}
