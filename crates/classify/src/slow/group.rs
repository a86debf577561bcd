//! Groups of tuples whose rules differ only in protocol and transport fields.
//!
//! Rules for the same pair of subnets often differ only in protocol and ports, and their tuples only in the length of
//! the ports. One lookup in the table of their group shows which of these tuples have rules for the packet's
//! addresses, without adding bits of a port to the megaflow.

use std::collections::HashMap;

use fibula_simd::Simd;

use super::buckets::{Buckets, kept};
use super::words::{Words, mix};
use crate::{Field, Flow, Mask};

/// The most tuples of a group: each has a bit in a word of 32.
pub(super) const MEMBERS: usize = 32;

/// Tuples whose masks differ only in the protocol and the transport header.
#[derive(Clone, Debug)]
pub(super) struct Group {
    words: Words,
    /// For each hash of a key, the tuples that have a rule with this hash. Keys with equal hashes are not
    /// distinguished, which only adds bits to megaflows.
    tuples: Buckets,
    /// A bit for each tuple of the group.
    members: u32,
    /// How many rules of a tuple have each hash; only changes of the rules use this.
    rules: HashMap<(u32, u8), u32>,
}

/// The words that contain the protocol and the transport header.
const TRANSPORT: [usize; 2] = [Field::SrcPort.place().0, Field::TcpFlags.place().0];

/// The part of a tuple's mask on the protocol and the transport header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inside([u64; TRANSPORT.len()]);

impl Inside {
    pub(super) fn of(mask: &Mask) -> Self {
        let outside = outside_transport(mask);
        Self(TRANSPORT.map(|word| mask.words()[word] & !outside.words()[word]))
    }

    /// The hash of a packet's key in a tuple, computed from the hash of its key in the group.
    #[inline(always)]
    pub(super) fn hash(&self, of_group: u64, flow: &Flow) -> u64 {
        let [first, second] = self.0;
        let [at, behind] = TRANSPORT;
        mix(of_group ^ (flow.words()[behind] & second).rotate_left(32), flow.words()[at] & first)
    }
}

/// The bits of a mask without the protocol and the transport header.
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
            tuples: Buckets::default(),
            members: 0,
            rules: HashMap::default(),
        }
    }

    /// The words of its mask.
    #[inline]
    pub(super) fn words(&self) -> &Words {
        &self.words
    }

    /// Moves the parts of many groups that searches read into few pages.
    pub(super) fn pack(groups: &mut [Self]) {
        Buckets::pack(groups.iter_mut().map(|group| &mut group.tuples));
    }

    pub(super) fn bytes(&self) -> usize {
        self.tuples.bytes() + self.rules.capacity() * 17
    }

    /// Adds a tuple, if there is room.
    pub(super) fn join(&mut self) -> Option<u8> {
        let member = self.members.trailing_ones();
        ((member as usize) < MEMBERS).then(|| {
            self.members |= 1 << member;
            member as u8
        })
    }

    /// Removes a tuple without rules.
    pub(super) fn leave(&mut self, member: u8) {
        self.members &= !(1 << member);
    }

    /// Hashes the packet, and prefetches the line of its key.
    #[inline(always)]
    pub(super) fn ask(&self, flow: &Flow) -> u64 {
        let hash = self.words.hash(flow);
        self.tuples.ask(kept(hash));
        hash
    }

    /// The tuples that may have a rule for the packet with this hash; the others have none.
    #[inline(always)]
    pub(super) fn tuples<S: Simd>(&self, simd: S, hash: u64) -> u32 {
        self.tuples.get(simd, kept(hash))
    }

    /// Adds a rule of a tuple.
    pub(super) fn insert(&mut self, flow: &Flow, member: u8) {
        let hash = kept(self.words.hash(flow));
        let rules = self.rules.entry((hash, member)).or_default();
        *rules += 1;
        if *rules > 1 {
            return;
        }
        match self.tuples.find(hash, |_| true) {
            Some(place) => self.tuples.set(place, self.tuples.number(place) | 1 << member),
            None => self.tuples.insert(hash, 1 << member),
        }
    }

    /// Removes a rule of a tuple.
    pub(super) fn remove(&mut self, flow: &Flow, member: u8) {
        let hash = kept(self.words.hash(flow));
        let Some(rules) = self.rules.get_mut(&(hash, member)) else { return };
        *rules -= 1;
        if *rules > 0 {
            return;
        }
        self.rules.remove(&(hash, member));
        let Some(place) = self.tuples.find(hash, |_| true) else { return };
        match self.tuples.number(place) & !(1 << member) {
            0 => self.tuples.remove(place),
            left => self.tuples.set(place, left),
        }
    }
}
