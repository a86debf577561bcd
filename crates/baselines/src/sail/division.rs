use fibula_core::Routes;

use super::code;

/// Entries of a chunk: the children of a node eight levels up.
pub(super) const CHUNK: usize = 256;

/// The children of a node, eight levels down.
pub(super) type Chunk<T> = [T; CHUNK];

/// No chunk: the node is a leaf.
const LEAF: u32 = u32::MAX;

/// Which nodes of the levels 16 and 24 are divided, and the chunks that their children lie in, one or
/// the other in address order. A table alone has the shape that its own intervals cut; several tables
/// overlaid have one shape, in which a node is divided if any of them divides it.
pub(super) struct Division {
    c16: Vec<u32>,
    c24: Vec<u32>,
    /// Chunks of level 32.
    chunks32: usize,
}

impl Division {
    /// The shape of these tables overlaid.
    pub(super) fn of(fibs: &[&Routes<u32>]) -> Self {
        let mut c16 = vec![LEAF; 1 << 16];
        let mut nodes24 = Vec::new();
        // A node is divided where an interval begins inside it.
        for range in fibs.iter().flat_map(|fib| fib.ranges()) {
            if range.first & 0xffff != 0 {
                c16[(range.first >> 16) as usize] = 0;
            }
            if range.first & 0xff != 0 {
                nodes24.push(range.first >> 8);
            }
        }
        let chunks24 = number(&mut c16);
        let mut c24 = vec![LEAF; chunks24 * CHUNK];
        for node in nodes24 {
            c24[c16[(node >> 8) as usize] as usize * CHUNK + byte(node)] = 0;
        }
        let chunks32 = number(&mut c24);
        Self { c16, c24, chunks32 }
    }

    /// Chunks of level 24.
    pub(super) fn chunks24(&self) -> usize {
        self.c24.len() / CHUNK
    }

    /// Chunks of level 32.
    pub(super) fn chunks32(&self) -> usize {
        self.chunks32
    }

    /// For each node of level 16 the chunk of its children.
    pub(super) fn c16(&self) -> impl Iterator<Item = Option<usize>> {
        self.c16.iter().map(|&chunk| some(chunk))
    }

    /// For each place of the chunks of level 24 the chunk of its children.
    pub(super) fn c24(&self) -> impl Iterator<Item = Option<usize>> {
        self.c24.iter().map(|&chunk| some(chunk))
    }

    /// The table pushed to the leaves of the shape.
    pub(super) fn paint(&self, routes: &Routes<u32>) -> Codes {
        let mut codes = Codes {
            n16: vec![0; self.c16.len()],
            n24: vec![0; self.c24.len()],
            n32: vec![0; self.chunks32 * CHUNK],
        };
        for range in routes.ranges() {
            let code = code(range.hop);
            for node in range.first >> 16..=range.last >> 16 {
                match some(self.c16[node as usize]) {
                    None => codes.n16[node as usize] = code,
                    Some(chunk) => {
                        let first = range.first.max(node << 16);
                        let last = range.last.min(node << 16 | 0xffff);
                        self.paint_chunk(chunk, first, last, code, &mut codes);
                    }
                }
            }
        }
        codes
    }

    /// Paints addresses that lie in one /16.
    fn paint_chunk(&self, chunk: usize, first: u32, last: u32, code: u32, codes: &mut Codes) {
        for node in first >> 8..=last >> 8 {
            let place = chunk * CHUNK + byte(node);
            match some(self.c24[place]) {
                None => codes.n24[place] = code,
                Some(below) => {
                    let from = byte(first.max(node << 8));
                    let to = byte(last.min(node << 8 | 0xff));
                    codes.n32[below * CHUNK..][from..=to].fill(code);
                }
            }
        }
    }
}

/// The codes of a table at the leaves of a [`Division`]; 0 at its divided nodes.
pub(super) struct Codes {
    pub(super) n16: Vec<u32>,
    pub(super) n24: Vec<u32>,
    pub(super) n32: Vec<u32>,
}

/// Numbers the divided nodes in order and gives back how many they are.
fn number(nodes: &mut [u32]) -> usize {
    let divided = nodes.iter_mut().filter(|node| **node != LEAF);
    divided.zip(0..).map(|(node, chunk)| *node = chunk).count()
}

fn some(chunk: u32) -> Option<usize> {
    (chunk != LEAF).then_some(chunk as usize)
}

/// The last byte: a place in a chunk.
#[inline(always)]
pub(super) fn byte(addr: u32) -> usize {
    (addr & 0xff) as usize
}
