use fibula_core::{Addr, Hop};

use super::node;

/// Walks down as long as the prefixes cover the address, and answers the last hop on the way.
#[inline]
pub(super) fn lookup<A: Addr>(nodes: &[u32], addr: A) -> Hop {
    let (key_words, stride) = (node::key_words::<A>(), node::stride::<A>());
    let mut best = Hop::NONE;
    let mut at = 0;
    loop {
        let (key, rest) = nodes[at * stride..][..stride].split_at(key_words);
        let len = rest[node::LEN] as u8;
        if addr.and(A::netmask(len)) != node::key(key) {
            return best;
        }
        let hop = Hop::from_bits(rest[node::HOP]);
        if !hop.is_none() {
            best = hop;
        }
        // A host route has no children, and `bit` beyond the address is 0: its left child is none.
        at = rest[node::LEFT + usize::from(addr.bit(len))] as usize;
        if at == 0 {
            return best;
        }
    }
}
