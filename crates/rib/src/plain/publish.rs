//! Publishes the changes of a table: with the routes moved, or with a few of them aside.

use std::time::Instant;

use fibula_core::{Addr, AnyEngine, Prefix, Route, Routes};

use super::{MANY, Plain, PlainError, PlainGeneration};
use crate::compiler::{Made, UpdateMethod};
use crate::sync::Arc;

/// As many changes of a publication are kept aside,
const FEW: usize = 16;
/// and as many in all: then the routes are moved for all of them.
const RECENT: usize = 1024;
/// Routes that are copied for a patch. To move the routes takes less than to copy more.
const PART: usize = 4096;

impl<A: Addr> Plain<A> {
    /// Keeps a few changes beside the routes, if the engine can follow them there. Whether it did.
    fn keep_aside(&mut self) -> bool {
        let few = 1..=FEW;
        let recent = self.recent.len() + self.pending.len();
        let is_good = few.contains(&self.pending.len())
            && recent <= RECENT
            && recent < self.tables.routes.len()
            && self.unpublished.is_empty()
            && !(self.is_whole || self.is_rechosen || self.numbers.is_untidy());
        if !is_good {
            return false;
        }
        let changes = self.changes();
        self.unpublished.extend(changes.iter().map(|change| change.prefix));
        for &Route { prefix, hop } in &changes {
            self.recent.insert(prefix, hop);
            self.recent_hops = self.recent_hops.max(hop.index().map_or(0, |hop| hop + 1));
        }
        self.is_rechosen |= self.tables.choice.review(&self.tables.routes, changes.len());
        true
    }

    /// Makes all changes so far visible to readers.
    ///
    /// # Errors
    /// [`PlainError::NoEngine`] if no engine takes the routes.
    pub fn publish(&mut self) -> Result<(), PlainError> {
        let started = Instant::now();
        let is_aside = self.keep_aside();
        if !is_aside {
            self.settle();
        }
        if self.unpublished.is_empty() && !self.is_whole {
            self.oldest = None;
            return Ok(());
        }
        let engine = match is_aside.then(|| self.patched(true)).flatten() {
            Some(made) => {
                self.counters.aside += 1;
                Some(made)
            }
            None => {
                self.settle();
                if self.tables.routes.is_empty() { None } else { Some(self.made()?) }
            }
        };
        let is_empty = engine.is_none();
        self.counters.making += started.elapsed();
        self.counters.generations += 1;
        self.number += 1;
        let slots = Arc::clone(self.numbers.slots());
        let old = self.publisher.publish(PlainGeneration { number: self.number, engine, slots });
        self.retired.put(old, std::mem::take(&mut self.unpublished));
        if self.is_whole || is_empty {
            // It differs in prefixes that are not known, or has nothing to patch.
            drop(self.retired.take_spare());
        }
        (self.is_whole, self.is_rechosen, self.oldest) = (false, false, None);
        Ok(())
    }

    fn made(&mut self) -> Result<Made<A>, PlainError> {
        if let Some(made) = self.patched(false) {
            return Ok(made);
        }
        // The spare engine is dropped first, so that there is one less while the next one is made.
        drop(self.retired.take_spare());
        let (made, refused) = self.tables.build();
        let Some(made) = made else {
            self.counters.failures += 1;
            // The spare one is gone, and what the current one lacks is still known.
            return Err(PlainError::NoEngine(refused));
        };
        self.counters.builds += 1;
        self.patched = 0;
        Ok(made)
    }

    /// The spare engine, or a copy of the current one, brought up to date, with the changes aside if some are; `None`
    /// if a build is cheaper, another engine is to take over, or so many prefixes were patched that the table has
    /// become larger than a new one.
    fn patched(&mut self, is_aside: bool) -> Option<Made<A>> {
        if self.is_whole || self.is_rechosen || self.patched > MANY.max(self.tables.routes.len()) {
            return None;
        }
        self.unpublished.sort_unstable();
        self.unpublished.dedup();
        let current = self.publisher.load();
        let (engine, name) = current.engine.as_ref()?;
        let spare = self.retired.spare();
        let spare = spare.filter(|(spare, _)| spare.engine_name() == Some(*name));
        let behind = spare.map(|(_, behind)| behind.len());
        let changed = self.unpublished.len();
        let mut way = self.tables.costs.way(changed, behind, true);
        if way == UpdateMethod::Copy {
            // Before the copy, which takes longer, and of the copy, which may be divided into other blocks.
            if is_aside {
                self.part(&**engine, &self.unpublished)?;
            }
            if let Some(copy) = self.tables.copy(&**engine) {
                let part = self.part_if(is_aside, &*copy, &self.unpublished)?;
                let patched = self.tables.patch(copy, part.as_ref(), &self.unpublished)?;
                self.patched += changed;
                self.counters.copies += 1;
                return Some((patched, *name));
            }
            way = self.tables.costs.way(changed, behind, false);
        }
        if way != UpdateMethod::Spare {
            return None;
        }
        let (spare, behind) = self.retired.spare()?;
        let mut at = behind.to_vec();
        at.extend_from_slice(&self.unpublished);
        at.sort_unstable();
        at.dedup();
        let part = self.part_if(is_aside, &*spare.engine.as_ref()?.0, &at)?;
        let (spare, _) = self.retired.take_spare()?;
        let patched = self.tables.patch(spare.engine?.0, part.as_ref(), &at)?;
        self.patched += at.len();
        self.counters.patches += 1;
        Some((patched, *name))
    }

    /// The part for changes aside, or `Some(None)` if there are none aside.
    fn part_if(
        &self,
        is_aside: bool,
        engine: &dyn AnyEngine<A>,
        at: &[Prefix<A>],
    ) -> Option<Option<Routes<A>>> {
        if is_aside { self.part(engine, at).map(Some) } else { Some(None) }
    }

    /// The routes that the engine reads for these changed prefixes, with the changes aside; `None` if they may be too
    /// many.
    fn part(&self, engine: &dyn AnyEngine<A>, at: &[Prefix<A>]) -> Option<Routes<A>> {
        let blocks = at.iter().map(|&prefix| engine.reach(prefix));
        let mut blocks = blocks.collect::<Option<Vec<_>>>()?;
        blocks.sort_unstable();
        blocks.dedup_by(|next, kept| kept.covers(*next));
        let (mut routes, mut aside) = (Vec::new(), Vec::new());
        for block in blocks {
            let within = self.tables.routes.within(block);
            if routes.len() + within.len() > PART {
                return None;
            }
            routes.extend(self.tables.routes.covering(block));
            routes.extend_from_slice(within);
            let around = (0..block.len()).filter_map(|len| Prefix::masked(block.addr(), len).ok());
            let around = around.filter_map(|prefix| Some((prefix, *self.recent.get(&prefix)?)));
            let inside = self.recent.range(block..).map(|(&prefix, &hop)| (prefix, hop));
            let inside = inside.take_while(|(prefix, _)| block.covers(*prefix));
            aside.extend(around.chain(inside).map(|(prefix, hop)| Route { prefix, hop }));
        }
        aside.sort_unstable_by_key(|route| route.prefix);
        aside.dedup_by_key(|route| route.prefix); // what covers several blocks
        let mut part = Routes::from_unsorted(routes);
        part.apply(&aside);
        Some(part.part_of(self.tables.routes.hop_count().max(self.recent_hops)))
    }
}
