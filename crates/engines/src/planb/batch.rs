use std::array;

use fibula_core::Hop;
use fibula_simd::{Kernel, Simd};

use super::PlanB;
use crate::common::{Long, SearchAddr, SearchKey, Value, Values, hop};

/// Lookups that go down the tree together.
const LANES: usize = 16;

pub(super) fn lookup_batch<A: SearchAddr>(tree: &PlanB<A>, addrs: &[A], hops: &mut [Hop]) {
    match (&tree.values, &tree.long) {
        (Values::Narrow(values), None) => {
            tree.level.run(Batch::<A, u16, false> { tree, values, long: None, addrs, hops });
        }
        (Values::Wide(values), None) => {
            tree.level.run(Batch::<A, u32, false> { tree, values, long: None, addrs, hops });
        }
        (Values::Narrow(values), long) => {
            let long = long.as_ref();
            tree.level.run(Batch::<A, u16, true> { tree, values, long, addrs, hops });
        }
        (Values::Wide(values), long) => {
            let long = long.as_ref();
            tree.level.run(Batch::<A, u32, true> { tree, values, long, addrs, hops });
        }
    }
}

struct Batch<'a, A: SearchAddr, V, const LONG: bool> {
    tree: &'a PlanB<A>,
    values: &'a [V],
    long: Option<&'a Long>,
    addrs: &'a [A],
    hops: &'a mut [Hop],
}

impl<A: SearchAddr, V: Value, const LONG: bool> Kernel for Batch<'_, A, V, LONG> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let (blocks, rest) = self.addrs.as_chunks::<LANES>();
        let (out, out_rest) = self.hops.as_chunks_mut::<LANES>();
        for (addrs, hops) in blocks.iter().zip(out) {
            *hops = block::<A, V, S, LONG>(self.tree, self.values, self.long, simd, addrs);
        }
        if !rest.is_empty() {
            let mut addrs = [A::MIN; LANES];
            addrs[..rest.len()].copy_from_slice(rest);
            out_rest.copy_from_slice(
                &block::<A, V, S, LONG>(self.tree, self.values, self.long, simd, &addrs)
                    [..rest.len()],
            );
        }
    }
}

#[inline(always)]
fn block<A: SearchAddr, V: Value, S: Simd, const LONG: bool>(
    tree: &PlanB<A>,
    values: &[V],
    long: Option<&Long>,
    simd: S,
    addrs: &[A; LANES],
) -> [Hop; LANES] {
    let lanes = A::Key::LANES;
    let keys: [_; LANES] = array::from_fn(|i| addrs[i].high().splat(simd));
    let (&leaves, inner) = tree.shape.bases().split_last().expect("there is always a leaf");
    let mut at = [0usize; LANES];
    for &base in inner {
        let level = tree.keys.as_ptr().cast::<A::Key>().wrapping_add(base * lanes);
        for i in 0..LANES {
            // SAFETY: a search stays among the nodes (invariant of the module).
            let line = unsafe { &*level.wrapping_add(at[i]).cast::<<A::Key as SearchKey>::Line>() };
            at[i] = at[i] * (lanes + 1) + A::Key::rank(simd, line, keys[i]) * lanes;
        }
    }
    let level = tree.keys.as_ptr().cast::<A::Key>().wrapping_add(leaves * lanes);
    let codes: [u32; LANES] = array::from_fn(|i| {
        // SAFETY: a search stays among the nodes (invariant of the module).
        let line = unsafe { &*level.wrapping_add(at[i]).cast::<<A::Key as SearchKey>::Line>() };
        let interval = at[i] + A::Key::rank(simd, line, keys[i]);
        // SAFETY: a search ends at an interval (invariant of the module).
        unsafe { *values.get_unchecked(interval) }.into()
    });
    let mut hops = codes.map(hop);
    if LONG && let Some(long) = long {
        let top = V::TOP;
        let blocks = long.blocks();
        let hit = codes.iter().fold(false, |hit, &code| hit | (((top - code) as usize) < blocks));
        if hit {
            for i in 0..LANES {
                let block = (top - codes[i]) as usize;
                if block < blocks {
                    hops[i] = hop(long.find(block, addrs[i].low()));
                }
            }
        }
    }
    hops
}
