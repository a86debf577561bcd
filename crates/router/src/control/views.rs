//! The view of a worker: its own pinned generations, the groups of their hops, and the newest paths.
//!
//! A hop is the number of an attribute set of its generation and may be that of another set in the next, so the groups
//! of a view are those of the generation that it pins. A new generation is adopted together with its groups, once the
//! published paths have all of them; until then the worker continues with its old generation, and so never has a hop
//! without a meaning. This takes as long as the control thread needs to make paths, if next hops are new, and no time
//! otherwise. An idle worker with old tables would block new ones, so the pipeline renews its view every few
//! milliseconds, even without bursts. Of a new generation only those chunks of its attribute table are read that differ
//! from those of the previous one.

use std::sync::Arc as Shared;

use fibula_core::{Addr, NextHop, NextHops};
use fibula_fib::{Fib, Pod};
use fibula_rib::{AttributeChunk, AttributeSet, Generation, Reader};

use super::catalogue::{Catalogue, NOWHERE, Token};
use super::published::{Current, Published};
use crate::Paths;
use crate::egress::GroupId;
use crate::forward::{Side, View};
use crate::pipeline::Views;
#[cfg(target_os = "linux")]
use crate::port::xdp::{Stamp, Stamped};
use crate::sync::Arc;

/// The state that control and workers share.
pub(super) struct Meeting {
    pub(super) catalogue: Catalogue,
    pub(super) published: Published,
}

/// The tables of a VRF of a [`Live`](fibula_rib::Live) table, as they change.
pub struct LiveViews {
    v4: Follower<u32>,
    v6: Follower<u128>,
    meeting: Arc<Meeting>,
    current: Arc<Current>,
}

impl LiveViews {
    pub(super) fn new(v4: Reader<u32>, v6: Reader<u128>, meeting: Arc<Meeting>) -> Self {
        let current = meeting.published.load();
        Self { v4: Follower::new(v4), v6: Follower::new(v6), meeting, current }
    }

    /// Brings everything up to date as far as it is known. Whether there is anything to forward by.
    pub(super) fn renew(&mut self) -> bool {
        let Self { v4, v6, meeting, current } = self;
        meeting.published.renew(current);
        v4.follow(&meeting.catalogue, current.knows);
        v6.follow(&meeting.catalogue, current.knows);
        v4.reader.held().is_some() && v6.reader.held().is_some()
    }
}

impl Views for LiveViews {
    #[inline]
    fn view(&mut self) -> View<'_> {
        self.renew();
        View { v4: self.v4.side(), v6: self.v6.side(), egress: &self.current.paths }
    }
}

/// While routes are not renewed, the tokens of what is held keep the numbers of its groups in all newer paths.
#[cfg(target_os = "linux")]
impl Stamped for LiveViews {
    fn renew(&mut self, with_routes: bool) {
        match with_routes {
            true => drop(LiveViews::renew(self)),
            false => self.meeting.published.renew(&mut self.current),
        }
    }

    fn held(&self) -> Option<(Stamp, View<'_>)> {
        let (v4, v6) = (self.v4.reader.held()?.number(), self.v6.reader.held()?.number());
        let view = View { v4: self.v4.side(), v6: self.v6.side(), egress: &self.current.paths };
        Some((Stamp { v4, v6, egress: self.current.number }, view))
    }
}

/// One family.
struct Follower<A: Addr> {
    reader: Reader<A>,
    chunks: Vec<Chunk>,
    groups: Vec<GroupId>,
    next: Option<Next<A>>,
}

/// A chunk of the attribute table that was looked at. It is held, so no other chunk can be where it is.
struct Chunk {
    sets: Shared<AttributeChunk>,
    tokens: Vec<Option<Arc<Token>>>,
}

/// A generation that is adopted as soon as the paths have its groups.
struct Next<A: Addr> {
    reader: Reader<A>,
    changed: Vec<(usize, Chunk)>,
    needs: u64,
}

impl<A: Addr> Follower<A> {
    fn new(reader: Reader<A>) -> Self {
        Self { reader, chunks: Vec::new(), groups: Vec::new(), next: None }
    }

    #[inline]
    fn follow(&mut self, catalogue: &Catalogue, knows: u64) {
        if self.next.is_some() || !self.reader.is_newest() {
            self.advance(catalogue, knows);
        }
    }

    #[cold]
    fn advance(&mut self, catalogue: &Catalogue, knows: u64) {
        let next = match self.next.take() {
            Some(next) => next,
            None => self.look_ahead(catalogue),
        };
        if next.needs > knows {
            self.next = Some(next);
        } else {
            self.adopt(next);
        }
    }

    fn look_ahead(&self, catalogue: &Catalogue) -> Next<A> {
        let mut reader = self.reader.clone();
        let changed = changed(reader.pin(), &self.chunks, catalogue);
        let tokens = changed.iter().flat_map(|(_, chunk)| chunk.tokens.iter().flatten());
        let needs = tokens.map(|token| token.since).max().unwrap_or(0);
        Next { reader, changed, needs }
    }

    fn adopt(&mut self, next: Next<A>) {
        // The old generation is given back here.
        self.reader = next.reader;
        for (at, chunk) in next.changed {
            let group = |token: &Option<Arc<Token>>| token.as_ref().map_or(NOWHERE, |t| t.group);
            let groups = chunk.tokens.iter().map(group);
            let begin = at * chunk.tokens.len();
            if at == self.chunks.len() {
                self.groups.extend(groups);
                self.chunks.push(chunk);
            } else {
                self.groups[begin..].iter_mut().zip(groups).for_each(|(to, group)| *to = group);
                self.chunks[at] = chunk;
            }
        }
    }

    fn side(&self) -> Side<'_, A> {
        let generation = self.reader.held().expect("LiveViews are given out with generations");
        Side { engine: generation.engine(), groups: &self.groups }
    }
}

/// The chunks of a generation that are not those, in order, with tokens for their sets. Tokens of sets that stay in
/// their place are kept.
fn changed<A: Addr>(
    generation: &Generation<A>,
    known: &[Chunk],
    catalogue: &Catalogue,
) -> Vec<(usize, Chunk)> {
    let mut changed = Vec::new();
    for (at, sets) in generation.attribute_table().chunks().iter().enumerate() {
        let old = known.get(at);
        if old.is_some_and(|old| Shared::ptr_eq(&old.sets, sets)) {
            continue;
        }
        let kept = |slot: usize| {
            let old = old?;
            let (before, now) = (old.sets[slot].as_ref()?, sets[slot].as_ref()?);
            before.is(now).then(|| old.tokens[slot].clone())
        };
        let kept: Vec<_> = (0..sets.len()).map(kept).collect();
        let mut asked = sets
            .iter()
            .zip(&kept)
            .filter(|(_, kept)| kept.is_none())
            .map(|(set, _)| set.as_ref().map(next_hops).unwrap_or_default());
        let mut new = catalogue.tokens(&mut asked).into_iter();
        let tokens = kept.into_iter().map(|kept| kept.unwrap_or_else(|| new.next().flatten()));
        changed.push((at, Chunk { sets: Shared::clone(sets), tokens: tokens.collect() }));
    }
    changed
}

/// The next hops of a set: those of a forwarding table, or BGP's one.
fn next_hops(set: &AttributeSet) -> NextHops {
    set.next_hops().unwrap_or_else(|| {
        let gateway = set.bgp().and_then(|bgp| bgp.next_hop);
        NextHops { hops: gateway.map(NextHop::via).into_iter().collect(), ..NextHops::default() }
    })
}

/// A table that does not change, with the group of each of its hops.
pub struct StaticViews {
    fib: Fib,
    groups: Shared<[GroupId]>,
    paths: PathSource,
}

/// Where the paths come from.
enum PathSource {
    Fixed(Shared<Paths>),
    /// From a control. The tokens keep the groups' numbers.
    Changing {
        meeting: Arc<Meeting>,
        current: Arc<Current>,
        _tokens: Shared<[Option<Arc<Token>>]>,
    },
}

impl StaticViews {
    /// Makes a view of the table's routes over fixed paths: `groups[hop]` is the group of each hop.
    pub fn new(fib: Fib, groups: impl Into<Shared<[GroupId]>>, paths: Shared<Paths>) -> Self {
        Self { fib, groups: groups.into(), paths: PathSource::Fixed(paths) }
    }

    /// The table's routes over next hops, by hop, whose links and neighbours change.
    pub(super) fn changing(
        fib: Fib,
        next_hops: impl IntoIterator<Item = NextHops>,
        meeting: Arc<Meeting>,
    ) -> Self {
        let tokens = meeting.catalogue.tokens(&mut next_hops.into_iter());
        let group = |token: &Option<Arc<Token>>| token.as_ref().map_or(NOWHERE, |t| t.group);
        let groups = tokens.iter().map(group).collect();
        let current = meeting.published.load();
        let paths = PathSource::Changing { meeting, current, _tokens: tokens.into() };
        Self { fib, groups, paths }
    }

    /// Whether the paths know all groups.
    pub(super) fn renew(&mut self) -> bool {
        let PathSource::Changing { meeting, current, _tokens } = &mut self.paths else {
            return true;
        };
        meeting.published.renew(current);
        _tokens.iter().flatten().all(|token| token.since <= current.knows)
    }
}

impl Clone for StaticViews {
    fn clone(&self) -> Self {
        let paths = match &self.paths {
            PathSource::Fixed(paths) => PathSource::Fixed(Shared::clone(paths)),
            PathSource::Changing { meeting, current, _tokens } => PathSource::Changing {
                meeting: Arc::clone(meeting),
                current: Arc::clone(current),
                _tokens: Shared::clone(_tokens),
            },
        };
        Self { fib: self.fib.clone(), groups: Shared::clone(&self.groups), paths }
    }
}

impl Views for StaticViews {
    #[inline]
    fn view(&mut self) -> View<'_> {
        let egress = match &mut self.paths {
            PathSource::Fixed(paths) => &**paths,
            PathSource::Changing { meeting, current, .. } => {
                meeting.published.renew(current);
                &current.paths
            }
        };
        View { v4: side(&self.fib, &self.groups), v6: side(&self.fib, &self.groups), egress }
    }
}

#[cfg(target_os = "linux")]
impl Stamped for StaticViews {
    fn renew(&mut self, _: bool) {
        StaticViews::renew(self);
    }

    fn held(&self) -> Option<(Stamp, View<'_>)> {
        let (paths, egress) = match &self.paths {
            PathSource::Fixed(paths) => (&**paths, 0),
            PathSource::Changing { current, .. } => (&current.paths, current.number),
        };
        let (v4, v6) = (side(&self.fib, &self.groups), side(&self.fib, &self.groups));
        Some((Stamp { v4: 0, v6: 0, egress }, View { v4, v6, egress: paths }))
    }
}

fn side<'a, A: Addr + Pod>(fib: &'a Fib, groups: &'a [GroupId]) -> Side<'a, A> {
    Side { engine: fib.family::<A>().engine(), groups }
}
