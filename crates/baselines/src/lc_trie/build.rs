use std::marker::PhantomData;

use fibula_core::{Addr, BuildError, Prefix, Routes};
use fibula_simd::Table;

use super::base::{self, Entry};
use super::{Config, LcTrie, NAME, NONE, Node};
use crate::common::bits;

/// Compiles the routes: both vectors in one pass over them, then the trie from the root.
pub(super) fn build<A: Addr, N: Node>(
    routes: &Routes<A>,
    config: Config,
) -> Result<LcTrie<A, N>, BuildError> {
    let (entries, prefixes) = vectors(routes);
    limit::<N>("base entries", entries.len())?;
    let mut builder = Builder { config, entries, prefixes, trie: vec![WideNode::new(0, 0, 0)] };
    if !builder.entries.is_empty() {
        builder.node(0, 0..builder.entries.len(), 0)?;
    }
    limit::<N>("trie nodes", builder.trie.len())?;
    let narrow = |node: WideNode| {
        let (branch, skip, address) = node.parts();
        N::new(branch, skip, address)
    };
    let trie: Vec<N> = builder.trie.into_iter().map(narrow).collect();
    let mut words = Vec::with_capacity(builder.entries.len() * base::width::<A>());
    for &entry in &builder.entries {
        base::push(&mut words, entry);
    }
    Ok(LcTrie {
        trie: Table::from_vec(trie),
        base: Table::from_vec(words),
        prefixes: Table::from_vec(builder.prefixes),
        family: PhantomData,
    })
}

fn limit<N: Node>(what: &'static str, needed: usize) -> Result<(), BuildError> {
    let (limit, needed) = (1 << N::ADDRESS_BITS, needed as u64);
    if needed > limit {
        return Err(BuildError::Limit { engine: NAME, what, limit, needed });
    }
    Ok(())
}

/// The base vector, and the prefix vector.
fn vectors<A: Addr>(routes: &Routes<A>) -> (Vec<Entry<A>>, Vec<[u32; 3]>) {
    let (mut entries, mut prefixes) = (Vec::new(), Vec::new());
    // The routes that cover the current one, with their places in the prefix vector.
    let mut open: Vec<(Prefix<A>, u32)> = Vec::new();
    let routes = routes.as_slice();
    for (i, route) in routes.iter().enumerate() {
        let prefix = route.prefix;
        while open.last().is_some_and(|(around, _)| !around.covers(prefix)) {
            open.pop();
        }
        let around = open.last().map_or(NONE, |(_, place)| *place);
        let (len, code) = (prefix.len().into(), route.hop.to_bits() + 1);
        // Routes within a route directly follow it in sorted order.
        if routes.get(i + 1).is_some_and(|next| prefix.covers(next.prefix)) {
            open.push((prefix, prefixes.len() as u32));
            prefixes.push([len, around, code]);
        } else {
            entries.push(Entry { key: prefix.addr(), len, around, code });
        }
    }
    (entries, prefixes)
}

/// Nodes during a build. They are wide, so that the error for a narrow trie can tell how many nodes are
/// needed.
type WideNode = u64;

struct Builder<A> {
    config: Config,
    entries: Vec<Entry<A>>,
    prefixes: Vec<[u32; 3]>,
    trie: Vec<WideNode>,
}

impl<A: Addr> Builder<A> {
    /// Writes the node of these entries, which agree in their first `at` bits.
    fn node(
        &mut self,
        number: usize,
        range: std::ops::Range<usize>,
        at: u32,
    ) -> Result<(), BuildError> {
        if range.len() == 1 {
            self.trie[number] = WideNode::new(0, 0, range.start);
            return Ok(());
        }
        let (skip, branch) = if number == 0 {
            (0, self.config.root)
        } else {
            let (first, last) = (self.entries[range.start], self.entries[range.end - 1]);
            let skip = u32::from(first.key.common_prefix_len(last.key)) - at;
            (skip, self.branch(range.clone(), at + skip))
        };
        let (first, at) = (self.trie.len(), at + skip);
        limit::<WideNode>("trie nodes", first + (1 << branch))?;
        self.trie.resize(first + (1 << branch), WideNode::new(0, 0, 0));
        self.trie[number] = WideNode::new(branch, skip, first);
        let mut from = range.start;
        for slot in 0..1 << branch {
            let of_slot = |entry: &Entry<A>| bits(entry.key, at, branch) == slot;
            let count = self.entries[from..range.end].iter().take_while(|e| of_slot(e)).count();
            if count == 0 {
                let leaf = self.neighbour(range.clone(), from, at + branch, slot, branch);
                self.trie[first + slot] = WideNode::new(0, 0, leaf);
            } else {
                self.node(first + slot, from..from + count, at + branch)?;
                from += count;
            }
        }
        Ok(())
    }

    /// The most bits for which enough children have routes; at least one, and exactly one for two entries.
    fn branch(&self, range: std::ops::Range<usize>, at: u32) -> u32 {
        let mut branch = 1;
        if range.len() == 2 {
            return branch;
        }
        while branch < 24 && at + branch < A::BITS.into() {
            let needed = self.config.fill * f64::from(1u32 << (branch + 1));
            if (range.len() as f64) < needed {
                break;
            }
            let slot = |entry: &Entry<A>| bits(entry.key, at, branch + 1);
            let full = self.entries[range.clone()].chunk_by(|a, b| slot(a) == slot(b)).count();
            if (full as f64) < needed {
                break;
            }
            branch += 1;
        }
        branch
    }

    /// For a slot without entries, the entry of the range that shares the longest route with it. `next` is the first
    /// entry after the slot, whose bits end at bit `end`.
    fn neighbour(
        &self,
        range: std::ops::Range<usize>,
        next: usize,
        end: u32,
        slot: usize,
        branch: u32,
    ) -> usize {
        let common = self.entries[range.start].key.and(A::netmask((end - branch) as u8));
        let block = common.or(A::from_u128((slot as u128) << (u32::from(A::BITS) - end)));
        let shared = |&place: &usize| {
            let entry = self.entries[place];
            let common = u32::from(entry.key.common_prefix_len(block));
            if common >= entry.len {
                return Some(entry.len);
            }
            let mut around = entry.around;
            while around != NONE {
                let [len, next, _] = self.prefixes[around as usize];
                if common >= len {
                    return Some(len);
                }
                around = next;
            }
            None
        };
        let before = next.checked_sub(1).filter(|before| range.contains(before));
        let behind = Some(next).filter(|next| range.contains(next));
        let places = before.into_iter().chain(behind);
        places.max_by_key(shared).expect("the range is not empty")
    }
}
