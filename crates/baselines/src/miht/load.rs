use fibula_core::{LoadError, TableSource};
use fibula_simd::Table;

use super::index::{HEIGHT_MAX, Index, Line, NO_KEY, NO_TRIE, key_lines, separators, tries};
use super::pool::Pool;
use super::trie::{TrieAddr, Tries, hop, len};
use super::{Config, D_NODES, I_NODES, K_RANGE, M_RANGE, Miht, SHAPE};
use fibula_engines::common::table;

/// Stored tables, checked by going through the tree and all tries. Each node must be met once at most,
/// so a small file cannot keep us busy for long; those that are not met are free.
pub(super) fn load<A: TrieAddr>(
    source: &dyn TableSource,
    hop_count: u32,
    config: &Config,
) -> Result<Miht<A>, LoadError> {
    let shape: Table<u32> = table(source, SHAPE)?;
    let &[k, m, height, root, keyless] = &shape[..] else {
        return Err(LoadError::new(SHAPE, "is not of five words"));
    };
    if !K_RANGE.contains(&k) || !M_RANGE.contains(&m) || !(1..=HEIGHT_MAX).contains(&height) {
        return Err(LoadError::new(SHAPE, "k, m or the height is out of range"));
    }
    let lines: Table<Line> = table(source, I_NODES)?;
    let nodes: Table<A::Node> = table(source, D_NODES)?;
    let (places, size) = (u32::MAX as usize, 2 * key_lines(m));
    if !lines.len().is_multiple_of(size) || lines.len() > places || lines.is_empty() {
        return Err(LoadError::new(I_NODES, "is not made of whole nodes"));
    }
    if nodes.is_empty() || nodes.len() > places {
        return Err(LoadError::new(D_NODES, "has no first node"));
    }
    let mut index = Index { m, height, root, lines: Pool::stored(lines, size) };
    let mut seen = Seen::new(index.lines.len(), size);
    let entries = check_index(&index, k, &mut seen)?;
    seen.never().for_each(|place| index.lines.give(place));
    let mut tries = Tries { nodes: Pool::stored(nodes, 1) };
    let mut seen = Seen::new(tries.nodes.len(), 1);
    check_tries(&tries, k, keyless, &entries, hop_count, &mut seen)?;
    seen.never().for_each(|place| tries.nodes.give(place));
    Ok(Miht::new(k, index, keyless, tries, config.isa.level(), config.batch))
}

/// Places seen, of nodes of so many elements.
struct Seen {
    size: usize,
    seen: Vec<bool>,
}

impl Seen {
    fn new(elements: usize, size: usize) -> Self {
        Self { size, seen: vec![false; elements / size] }
    }

    /// Whether a node is there and is met for the first time.
    fn meet(&mut self, place: u32) -> bool {
        let place = place as usize;
        let there = place.is_multiple_of(self.size);
        let Some(seen) = self.seen.get_mut(place / self.size).filter(|_| there) else {
            return false;
        };
        !std::mem::replace(seen, true)
    }

    /// The places that were not met.
    fn never(&self) -> impl Iterator<Item = u32> {
        let unseen = self.seen.iter().enumerate().filter(|&(_, &seen)| !seen);
        unseen.map(|(i, _)| (i * self.size) as u32)
    }
}

/// The keys with their tries.
fn check_index(index: &Index, k: u32, seen: &mut Seen) -> Result<Vec<(u32, u32)>, LoadError> {
    let error = |reason| Err(LoadError::new(I_NODES, reason));
    let most = index.m as usize - 1;
    // The nodes of a level, and between which keys theirs lie: above the one, up to the other.
    let mut level = vec![(index.root, None, u32::MAX >> (32 - k))];
    for height in (1..=index.height).rev() {
        let mut below = Vec::new();
        for (place, low, high) in level {
            if !seen.meet(place) {
                return error("a node is out of place");
            }
            let (keys, pointers) = index.node(place);
            let external = height == 1;
            let count = if external { tries(pointers) } else { separators(keys) };
            let (own, rest) = keys.split_at(count.min(keys.len()));
            let ascends = own.is_sorted_by(|a, b| a < b);
            let within = own.first().is_none_or(|&key| low.is_none_or(|low| low < key))
                && own.last().is_none_or(|&key| key < high || external && key == high);
            if count > most || !ascends || !within || rest.iter().any(|&key| key != NO_KEY) {
                return error("the keys of a node are out of order");
            }
            if pointers[count + usize::from(!external)..].iter().any(|&pointer| pointer != 0) {
                return error("a node has more pointers than keys");
            }
            if external {
                below.extend(own.iter().zip(pointers).map(|(&key, &trie)| (trie, Some(key), key)));
            } else if count == 0 {
                return error("an internal node has one child");
            } else {
                let lows = [low].into_iter().chain(own.iter().map(|&key| Some(key)));
                let highs = own.iter().copied().chain([high]);
                below.extend(pointers.iter().zip(lows).zip(highs).map(|((&p, l), h)| (p, l, h)));
            }
        }
        level = below;
    }
    Ok(level.into_iter().map(|(trie, _, key)| (key, trie)).collect())
}

fn check_tries<A: TrieAddr>(
    tries: &Tries<A>,
    k: u32,
    keyless: u32,
    entries: &[(u32, u32)],
    hop_count: u32,
    seen: &mut Seen,
) -> Result<(), LoadError> {
    let error = |reason| Err(LoadError::new(D_NODES, reason));
    // The first place means none.
    seen.meet(NO_TRIE);
    // Nodes with their level, the bits that lead to them, and the lengths that they may have.
    let mut todo = Vec::new();
    if keyless != NO_TRIE {
        todo.push((keyless, 0, A::MIN, k as u8 - 1));
    }
    let path = |key: u32| A::from_u128(u128::from(key) << (u32::from(A::BITS) - k));
    todo.extend(entries.iter().map(|&(key, trie)| (trie, k as u8, path(key), A::BITS)));
    while let Some((place, level, path, most)) = todo.pop() {
        if !seen.meet(place) {
            return error("a node is out of place");
        }
        let node = &tries.nodes[place as usize];
        let (addr, info) = (A::addr(node), A::info(node));
        if hop(info).to_bits() >= hop_count {
            return error("a hop is out of range");
        }
        let len = len(info);
        if !(level..=most).contains(&len) || addr.and(A::netmask(len)) != addr {
            return error("a prefix is too long, or shorter than the way to it");
        }
        if addr.common_prefix_len(path) < level {
            return error("a prefix lies on another's way");
        }
        // Below a longest one; one that must stay limits nothing.
        let most = if len > level { len } else { most };
        for (side, child) in A::children(node).into_iter().enumerate() {
            if child == 0 {
                continue;
            }
            if level == A::BITS {
                return error("a host has a child");
            }
            let bit = A::netmask(level + 1).xor(A::netmask(level));
            let path = addr.and(A::netmask(level));
            let path = if side == 1 { path.or(bit) } else { path };
            todo.push((child, level + 1, path, most));
        }
    }
    Ok(())
}
