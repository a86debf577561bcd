//! Changes in place. The tables of a length then have the keys, codes and origins that a build over the same tree would
//! give them.
//!
//! A changed route has its own entry and its markers. Its answer is also that of the markers under it that no other
//! route under it covers. Those belong to the outermost routes under the changed prefix: the markers of a route further
//! inside are either markers of the outermost route around it, too, or covered by that one. So the routes that an
//! outermost one covers are skipped. The answer of an entry changes only with the route that it had, or with the one
//! that it gets, and either is among the changed prefixes, which may be taken in any order.

use fibula_core::{Addr, Hop, Patched, Prefix, Routes};

use super::Hbs;
use super::lookup::{NO_ORIGINS, origins, part, with_origin};
use super::tree::{self, LEN, Node, RANK};
use crate::common::{Item, Part, SlotsMut};

/// No rank.
const NO_RANK: u8 = u8::MAX;

/// What patches need of the tree, and the numbers of keys; made by the first one.
#[derive(Clone)]
pub(super) struct Ranks {
    /// The rank of each length, or [`NO_RANK`].
    of_length: Vec<u8>,
    ranks: Vec<Rank>,
}

#[derive(Clone)]
struct Rank {
    len: u8,
    part: Part,
    /// Keys in the table.
    keys: u32,
    /// The ranks of the markers of routes of this length.
    markers: Vec<u8>,
}

impl Ranks {
    /// `None` if the lengths do not ascend with their ranks, as those of a loaded tree may not.
    fn of<A: Addr>(engine: &Hbs<A>) -> Option<Self> {
        let mut nodes: Vec<Node> = engine.tree.to_vec();
        nodes.sort_unstable_by_key(|node| node[RANK]);
        let ascend = nodes.is_sorted_by(|a, b| a[LEN] < b[LEN]);
        let markers = tree::markers(&engine.tree).filter(|_| ascend)?;
        let mut of_length = vec![NO_RANK; usize::from(A::BITS) + 1];
        let ranks = nodes.iter().zip(markers).enumerate().map(|(rank, (node, markers))| {
            of_length[node[LEN] as usize] = rank as u8;
            let keys = engine.slots.items::<A>(part(node)).count() as u32;
            let markers = markers.into_iter().map(|rank| rank as u8).collect();
            Rank { len: node[LEN] as u8, part: part(node), keys, markers }
        });
        let ranks = ranks.collect();
        Some(Self { of_length, ranks })
    }
}

/// `None` if a build is due: for a length that the tree does not have, or a table without room.
pub(super) fn patch<A: Addr>(
    engine: &mut Hbs<A>,
    routes: &Routes<A>,
    changed: &[Prefix<A>],
) -> Option<Patched> {
    let mut ranks = match engine.ranks.take() {
        Some(ranks) => ranks,
        None => Ranks::of(engine)?,
    };
    let mut patcher = Patcher { routes, ranks: &mut ranks, slots: engine.slots.to_mut() };
    for &prefix in changed {
        if prefix == Prefix::ALL {
            engine.shape[1] = routes.get(prefix).map_or(0, code);
            patcher.inherit(prefix, engine.shape[1])?;
        } else {
            patcher.change(prefix)?;
        }
    }
    engine.ranks = Some(ranks);
    Some(Patched::Applied)
}

struct Patcher<'a, A: Addr> {
    routes: &'a Routes<A>,
    ranks: &'a mut Ranks,
    slots: SlotsMut<'a, A>,
}

impl<A: Addr> Patcher<'_, A> {
    fn change(&mut self, prefix: Prefix<A>) -> Option<()> {
        let hop = self.routes.get(prefix);
        let Some(rank) = self.rank(prefix) else {
            // There was no route of this length at the last build.
            return hop.is_none().then_some(());
        };
        let answer = self.answer(prefix);
        let Rank { part, .. } = self.ranks.ranks[rank];
        match (hop, self.slots.find(part, prefix.addr())) {
            (Some(_), None) => self.insert(rank, prefix.addr(), answer, NO_ORIGINS)?,
            (_, Some(slot)) => {
                let (_, note) = self.slots.get(part, slot);
                if hop.is_some() || has_origins(note) {
                    self.slots.set(part, slot, (answer, note));
                } else {
                    self.remove(rank, slot);
                }
            }
            (None, None) => {}
        }
        for i in 0..self.ranks.ranks[rank].markers.len() {
            let marker = usize::from(self.ranks.ranks[rank].markers[i]);
            if hop.is_some() {
                self.mark(marker, prefix, rank)?;
            } else {
                self.unmark(marker, prefix, rank)?;
            }
        }
        self.inherit(prefix, answer)
    }

    /// The route becomes an origin of the entry that its marker is.
    fn mark(&mut self, marker: usize, prefix: Prefix<A>, rank: usize) -> Option<()> {
        let Rank { part, len, .. } = self.ranks.ranks[marker];
        let at = Prefix::masked(prefix.addr(), len).expect("lengths are those of the family");
        if let Some(slot) = self.slots.find(part, at.addr()) {
            let (code, note) = self.slots.get(part, slot);
            self.slots.set(part, slot, (code, with_origin(note, rank as u32)));
            return Some(());
        }
        self.insert(marker, at.addr(), self.answer(at), with_origin(NO_ORIGINS, rank as u32))
    }

    /// The route is no longer an origin of that entry, which stays for others or as a route.
    fn unmark(&mut self, marker: usize, prefix: Prefix<A>, rank: usize) -> Option<()> {
        let Rank { part, len, .. } = self.ranks.ranks[marker];
        let at = Prefix::masked(prefix.addr(), len).expect("lengths are those of the family");
        let Some(slot) = self.slots.find(part, at.addr()) else { return Some(()) };
        let (code, note) = self.slots.get(part, slot);
        let (low, high) = origins(note);
        // With origins on both sides of it, the range is the same without it.
        if low < rank as u32 && (rank as u32) < high {
            return Some(());
        }
        let mut note = NO_ORIGINS;
        for route in self.routes.within(at) {
            let rank = self.rank(route.prefix)?;
            if self.ranks.ranks[rank].markers.contains(&(marker as u8)) {
                note = with_origin(note, rank as u32);
                if origins(note) == (low, high) {
                    break;
                }
            }
        }
        if has_origins(note) || self.routes.get(at).is_some() {
            self.slots.set(part, slot, (code, note));
        } else {
            self.remove(marker, slot);
        }
        Some(())
    }

    /// Gives the markers under a prefix that no longer route covers its answer.
    fn inherit(&mut self, prefix: Prefix<A>, answer: u32) -> Option<()> {
        let mut inside = self.routes.within(prefix);
        if inside.first().is_some_and(|route| route.prefix == prefix) {
            inside = &inside[1..];
        }
        // Routes are sorted, so markers that are the same follow each other.
        let mut last: Vec<Option<A>> = Vec::new();
        while let Some(route) = inside.first() {
            last.resize(self.ranks.ranks.len(), None);
            let rank = self.rank(route.prefix)?;
            for &marker in &self.ranks.ranks[rank].markers {
                let Rank { part, len, .. } = self.ranks.ranks[usize::from(marker)];
                let key = route.prefix.addr().and(A::netmask(len));
                let last = &mut last[usize::from(marker)];
                if len <= prefix.len() || last.replace(key) == Some(key) {
                    continue;
                }
                // A marker of a route that is itself among the changed ones may not be there yet.
                if let Some(slot) = self.slots.find(part, key) {
                    let (_, note) = self.slots.get(part, slot);
                    self.slots.set(part, slot, (answer, note));
                }
            }
            let covered = inside.iter().take_while(|inner| route.prefix.covers(inner.prefix));
            inside = &inside[covered.count()..];
        }
        Some(())
    }

    fn rank(&self, prefix: Prefix<A>) -> Option<usize> {
        let rank = self.ranks.of_length[usize::from(prefix.len())];
        (rank != NO_RANK).then_some(rank.into())
    }

    /// The code of the longest route that covers the prefix, itself included.
    fn answer(&self, prefix: Prefix<A>) -> u32 {
        let own = self.routes.get(prefix);
        let hop = own.unwrap_or_else(|| self.routes.around(prefix));
        if hop.is_none() { 0 } else { code(hop) }
    }

    fn insert(&mut self, rank: usize, key: A, code: u32, note: u32) -> Option<()> {
        let rank = &mut self.ranks.ranks[rank];
        self.slots.insert(rank.part, rank.keys, Item { key, code, note })?;
        rank.keys += 1;
        Some(())
    }

    fn remove(&mut self, rank: usize, slot: u32) {
        let rank = &mut self.ranks.ranks[rank];
        rank.keys -= 1;
        self.slots.remove(rank.part, slot);
    }
}

fn has_origins(note: u32) -> bool {
    let (low, high) = origins(note);
    low <= high
}

fn code(hop: Hop) -> u32 {
    hop.to_bits() + 1
}
