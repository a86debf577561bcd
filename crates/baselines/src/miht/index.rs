//! The B+ tree: i-nodes, from keys to priority tries.

use super::pool::Pool;

/// A cache line of keys or of pointers.
pub(super) type Line = [u32; 16];

/// The padding after a node's keys. It is the largest key, so a search does not need the number of keys.
pub(super) const NO_KEY: u32 = u32::MAX;
/// No priority trie.
pub(super) const NO_TRIE: u32 = 0;
/// More levels than 2^32 keys need in nodes of order 3.
pub(super) const HEIGHT_MAX: u32 = 40;

/// Lines of keys of a node of order m; there are as many of pointers.
pub(super) const fn key_lines(m: u32) -> usize {
    m.div_ceil(16) as usize
}

/// The tree; see the drawing in the [module](super).
#[derive(Clone)]
pub(super) struct Index {
    pub(super) m: u32,
    /// Levels, at least one: the last is that of the external nodes.
    pub(super) height: u32,
    /// The root's first line.
    pub(super) root: u32,
    pub(super) lines: Pool<Line>,
}

/// The contents of a node, unpacked for changes. An internal node has a pointer more than keys: between neighbouring
/// children a key that is at least the left one's largest and below the right one's smallest. An external node has one
/// for each key.
#[derive(Default)]
struct Entries {
    keys: Vec<u32>,
    pointers: Vec<u32>,
}

impl Index {
    /// The tree over these keys, ascending, with their tries. Nodes are as full as they can be evenly.
    pub(super) fn build(m: u32, entries: &[(u32, u32)]) -> Self {
        let mut lines = Pool::with_room(0, 2 * key_lines(m));
        // The children of the level above, each with its largest key.
        let mut level: Vec<(u32, u32)> = Vec::new();
        for part in evenly(entries, m as usize - 1) {
            let (keys, pointers) = part.iter().copied().unzip();
            let place = add(&mut lines, &Entries { keys, pointers });
            level.push((part.last().map_or(0, |&(key, _)| key), place));
        }
        let mut height = 1;
        while level.len() > 1 {
            let mut above = Vec::new();
            for part in evenly(&level, m as usize) {
                let (mut keys, pointers): (Vec<_>, Vec<_>) = part.iter().copied().unzip();
                let largest = keys.pop().expect("no part is empty");
                above.push((largest, add(&mut lines, &Entries { keys, pointers })));
            }
            level = above;
            height += 1;
        }
        lines.fit();
        Self { m, height, root: level[0].1, lines }
    }

    /// The key's trie, [`NO_TRIE`] if it has none.
    pub(super) fn find(&self, key: u32) -> u32 {
        let mut place = self.root;
        for _ in 1..self.height {
            let (keys, pointers) = self.node(place);
            place = pointers[rank(keys, key)];
        }
        let (keys, pointers) = self.node(place);
        let at = rank(keys, key);
        // If the search is for the largest key and the tree does not have it, the padding is found, which has no trie.
        if keys[at] == key { pointers[at] } else { NO_TRIE }
    }

    /// The keys and the pointers of a node, with their padding.
    pub(super) fn node(&self, place: u32) -> (&[u32], &[u32]) {
        let lines = key_lines(self.m);
        let node = &self.lines[place as usize..][..2 * lines];
        let (keys, pointers) = node.split_at(lines);
        (keys.as_flattened(), pointers.as_flattened())
    }

    /// Adds a key that has no trie yet.
    pub(super) fn insert(&mut self, key: u32, trie: u32) {
        let (path, place) = self.path(key);
        let mut node = self.external(place);
        let at = rank(&node.keys, key);
        node.keys.insert(at, key);
        node.pointers.insert(at, trie);
        // The entry to insert into the node's parent: a key, and the node after it.
        let mut split = None;
        if node.keys.len() < self.m as usize {
            self.write(place, &node);
        } else {
            let half = node.keys.len().div_ceil(2);
            let right = Entries {
                keys: node.keys.split_off(half),
                pointers: node.pointers.split_off(half),
            };
            self.write(place, &node);
            split = Some((node.keys[half - 1], add(&mut self.lines, &right)));
        }
        for &(place, child) in path.iter().rev() {
            let Some((key, new)) = split.take() else { return };
            let mut node = self.internal(place);
            node.keys.insert(child, key);
            node.pointers.insert(child + 1, new);
            if node.pointers.len() > self.m as usize {
                let half = node.pointers.len() / 2;
                let pointers = node.pointers.split_off(half);
                let right = Entries { keys: node.keys.split_off(half), pointers };
                let middle = node.keys.pop().expect("half of them are two at least");
                split = Some((middle, add(&mut self.lines, &right)));
            }
            self.write(place, &node);
        }
        if let Some((key, new)) = split {
            let root = Entries { keys: vec![key], pointers: vec![self.root, new] };
            self.root = add(&mut self.lines, &root);
            self.height += 1;
        }
    }

    /// Removes a key that has a trie. Nodes that become less than half full take from a sibling, or
    /// merge with it.
    pub(super) fn remove(&mut self, key: u32) {
        let (path, place) = self.path(key);
        let mut node = self.external(place);
        let at = rank(&node.keys, key);
        node.keys.remove(at);
        node.pointers.remove(at);
        self.write(place, &node);
        let m = self.m as usize;
        let mut is_short = node.keys.len() < m / 2;
        let mut external = true;
        for &(parent, child) in path.iter().rev() {
            if !is_short {
                return;
            }
            let left = self.join(parent, child.saturating_sub(1), external);
            is_short = left < m.div_ceil(2);
            external = false;
        }
        let root = self.node(self.root).1[0];
        if !external && self.internal(self.root).pointers.len() == 1 {
            self.lines.give(self.root);
            self.root = root;
            self.height -= 1;
        }
    }

    /// Makes one node, or two of equal size, of the children `at` and `at + 1`; returns how many
    /// children the parent has then.
    fn join(&mut self, parent: u32, at: usize, external: bool) -> usize {
        let mut above = self.internal(parent);
        let (left, right) = (above.pointers[at], above.pointers[at + 1]);
        let read = if external { Self::external } else { Self::internal };
        let (mut all, more) = (read(self, left), read(self, right));
        if !external {
            all.keys.push(above.keys[at]);
        }
        all.keys.extend(more.keys);
        all.pointers.extend(more.pointers);
        let most = if external { self.m as usize - 1 } else { self.m as usize };
        if all.pointers.len() <= most {
            self.write(left, &all);
            self.lines.give(right);
            above.keys.remove(at);
            above.pointers.remove(at + 1);
        } else {
            let half = all.pointers.len() / 2;
            let pointers = all.pointers.split_off(half);
            let more = Entries { keys: all.keys.split_off(half), pointers };
            above.keys[at] = all.keys[half - 1];
            if !external {
                all.keys.pop();
            }
            self.write(left, &all);
            self.write(right, &more);
        }
        self.write(parent, &above);
        above.pointers.len()
    }

    /// The internal nodes on the way to the key, each with the place of the child that was taken, and
    /// the external node.
    fn path(&self, key: u32) -> (Vec<(u32, usize)>, u32) {
        let mut path = Vec::with_capacity(self.height as usize);
        let mut place = self.root;
        for _ in 1..self.height {
            let (keys, pointers) = self.node(place);
            let child = rank(keys, key);
            path.push((place, child));
            place = pointers[child];
        }
        (path, place)
    }

    fn internal(&self, place: u32) -> Entries {
        let (keys, pointers) = self.node(place);
        let count = separators(keys);
        Entries { keys: keys[..count].to_vec(), pointers: pointers[..=count].to_vec() }
    }

    fn external(&self, place: u32) -> Entries {
        let (keys, pointers) = self.node(place);
        let count = tries(pointers);
        Entries { keys: keys[..count].to_vec(), pointers: pointers[..count].to_vec() }
    }

    fn write(&mut self, place: u32, entries: &Entries) {
        write(&mut self.lines, place, entries);
    }
}

/// How many of the keys, which ascend, are below the key.
pub(super) fn rank(keys: &[u32], key: u32) -> usize {
    keys.partition_point(|&other| other < key)
}

/// How many keys an internal node has: none is the largest of all, as one behind it is larger.
pub(super) fn separators(keys: &[u32]) -> usize {
    rank(keys, NO_KEY)
}

/// How many keys an external node has.
pub(super) fn tries(pointers: &[u32]) -> usize {
    pointers.iter().position(|&trie| trie == NO_TRIE).unwrap_or(pointers.len())
}

fn add(lines: &mut Pool<Line>, entries: &Entries) -> u32 {
    let place = lines.take();
    write(lines, place, entries);
    place
}

fn write(lines: &mut Pool<Line>, place: u32, entries: &Entries) {
    let size = lines.node_size();
    let node = &mut lines.to_mut()[place as usize..][..size];
    let (keys, pointers) = node.as_flattened_mut().split_at_mut(8 * size);
    keys.fill(NO_KEY);
    keys[..entries.keys.len()].copy_from_slice(&entries.keys);
    pointers.fill(0);
    pointers[..entries.pointers.len()].copy_from_slice(&entries.pointers);
}

/// The fewest parts of at most so many, of equal size but for one; one empty part if there is nothing.
fn evenly<T>(all: &[T], most: usize) -> impl Iterator<Item = &[T]> {
    let parts = all.len().div_ceil(most).max(1);
    (0..parts).map(move |i| &all[all.len() * i / parts..all.len() * (i + 1) / parts])
}
