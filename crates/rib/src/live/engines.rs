//! Which tables have engines: those with routes, up to a limit that the sessions share.
//!
//! A named table gets engines with its first route, or when the program asks for it by [`Live::vrf`]. If
//! [`LiveOptions::tables`](super::LiveOptions::tables) tables have some, a session that has at least two tables fewer
//! than the session with the most gets those of that session's newest table. A table is of the session from which its
//! first route is. Engines that readers hold or that the program asked for are not taken.
//!
//! Locks are taken in this order: the RIB, [`Live::tables`], [`Live::shares`]. Compilers need the RIB, so an ended
//! pipeline is dropped, which waits for its compiler, after the RIB was unlocked.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use fibula_core::{Addr, Prefix, Vrf};
use hashbrown::HashMap;

use super::Live;
use super::pipeline::{Pipeline, With};
use crate::Rib;
use crate::status::{Event, LiveError, lock_std};
use crate::sync::Arc;

/// The tables without engines.
#[derive(Default)]
pub(super) struct Shares {
    /// Number of times that a table got or lost its engines.
    changes: u64,
    /// The tables that were refused engines, and the number of changes then: until the next one, the answer is the
    /// same.
    refused: HashMap<Vrf, u64>,
    /// The tables with engines that had no routes when [`Live::tidy`] looked, and their changes until then.
    empty: HashMap<Vrf, u64>,
}

/// A table whose engines ended.
pub(super) type Ended = (Arc<Pipeline<u32>>, Arc<Pipeline<u128>>);

/// A table with engines, for the choice of the one that loses them.
struct Holder {
    vrf: Vrf,
    owner: String,
    /// Whether its engines may be taken.
    is_free: bool,
}

impl Live {
    /// Starts the engines of these tables, which have changed and have none, as far as the limit allows. Returns the
    /// tables that lost theirs.
    pub(super) fn start_engines(&self, rib: &Rib, vrfs: &[Vrf]) -> Vec<Ended> {
        vrfs.iter().filter_map(|&vrf| self.start_table(rib, vrf)).collect()
    }

    /// Starts the engines of a table. Returns the table that lost its own.
    pub(super) fn start_table(&self, rib: &Rib, vrf: Vrf) -> Option<Ended> {
        let name = rib.vrf_name(vrf)?;
        if self.is_followed(vrf) {
            return None;
        }
        let (mut ended, mut refused) = (None, None);
        {
            let mut shares = lock_std(&self.shares);
            let changes = shares.changes;
            if shares.refused.get(&vrf) == Some(&changes) {
                return None;
            }
            let owner = owner(rib, vrf);
            let holders = self.holders();
            let count = holders.len();
            if count >= self.options.tables {
                match loser(&holders, &owner) {
                    Some(loser) => {
                        ended = self.end(loser, &mut shares);
                        shares.refused.insert(loser, 0); // it is reported here
                    }
                    None => {
                        refused = Some(format!("{count} tables are followed, and no more may be"))
                    }
                }
            }
            if refused.is_none() {
                refused = self.follow(vrf, rib).err().map(|error| error.to_string());
                shares.changes += 1;
            }
            match &refused {
                None => drop(shares.refused.remove(&vrf)),
                Some(_) => {
                    let changes = shares.changes;
                    let was_refused = shares.refused.insert(vrf, changes).is_some();
                    refused = refused.filter(|_| !was_refused); // it is reported once
                }
            }
        }
        if let Some((lost, _)) = &ended {
            let name = rib.vrf_name(lost.vrf).map_or_else(String::new, ToString::to_string);
            let most = &lost.owner;
            let reason =
                format!("{most} had the most tables with engines, and another needed some");
            (self.events)(Event::NotFollowed { name, reason });
        }
        if let Some(reason) = refused {
            (self.events)(Event::NotFollowed { name: name.to_string(), reason });
        }
        ended
    }

    /// Compiles the VRF's tables from the locked RIB, and follows them from then on.
    pub(super) fn follow(&self, vrf: Vrf, rib: &Rib) -> Result<(), LiveError> {
        let owner = owner(rib, vrf);
        let with = With {
            rib: &self.rib,
            vrf,
            owner: &owner,
            options: &self.options,
            events: &self.events,
        };
        let v4 = Pipeline::<u32>::start(rib, Arc::clone(&self.engines.v4), &with)?;
        let v6 = Pipeline::<u128>::start(rib, Arc::clone(&self.engines.v6), &with)?;
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        tables.v4.push(Arc::new(v4));
        tables.v6.push(Arc::new(v6));
        Ok(())
    }

    pub(super) fn is_followed(&self, vrf: Vrf) -> bool {
        self.tables().v4.iter().any(|table| table.vrf == vrf)
    }

    /// The tables with engines, the newest last.
    fn holders(&self) -> Vec<Holder> {
        let tables = self.tables();
        let both = tables.v4.iter().zip(&tables.v6);
        both.map(|(v4, v6)| Holder {
            vrf: v4.vrf,
            owner: v4.owner.clone(),
            is_free: is_free(v4, v6),
        })
        .collect()
    }

    /// Ends the engines of a table, unless a reader came for them.
    fn end(&self, vrf: Vrf, shares: &mut Shares) -> Option<Ended> {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        let at = tables.v4.iter().position(|table| table.vrf == vrf)?;
        if !is_free(&tables.v4[at], &tables.v6[at]) {
            return None;
        }
        shares.changes += 1;
        shares.empty.remove(&vrf);
        Some((tables.v4.remove(at), tables.v6.remove(at)))
    }

    /// Ends the engines of tables that had no routes at the last call and have had none since. VRF 0, tables that
    /// readers hold and tables that [`Live::vrf`] named keep theirs. Returns whether the next call may end some; call
    /// it every few seconds until then. A table that gets a route again gets engines again.
    pub fn tidy(&self) -> bool {
        let rib = self.lock_rib();
        let empty: HashMap<Vrf, u64> = {
            let tables = self.tables();
            let both = tables.v4.iter().zip(&tables.v6);
            let is_empty = |vrf| rib.len::<u32>(vrf) + rib.len::<u128>(vrf) == 0;
            let empty = both.filter(|(v4, v6)| is_free(v4, v6) && is_empty(v4.vrf));
            let changes = |(v4, v6): (&Arc<Pipeline<u32>>, &Arc<Pipeline<u128>>)| {
                (v4.vrf, v4.counters.changes.get() + v6.counters.changes.get())
            };
            empty.map(changes).collect()
        };
        let mut shares = lock_std(&self.shares);
        let before = std::mem::replace(&mut shares.empty, empty.clone());
        let over = empty.into_iter().filter(|(vrf, changes)| before.get(vrf) == Some(changes));
        let ended: Vec<_> = over.filter_map(|(vrf, _)| self.end(vrf, &mut shares)).collect();
        let is_tidy = shares.empty.is_empty();
        drop((shares, rib));
        drop(ended); // waits for their compilers, which may wait for the RIB
        !is_tidy
    }
}

impl Live {
    /// The VRFs without routes and engines: those that [`Live::forget_vrf`] gives up.
    pub fn empty_vrfs(&self) -> Vec<Vrf> {
        let rib = self.lock_rib();
        let mut empty = rib.empty_vrfs();
        let followed = self.followed();
        empty.retain(|vrf| !followed.contains(vrf));
        empty
    }

    /// Gives a VRF up, see [`Rib::forget_vrf`]. Returns false, and does nothing, if it has routes or engines.
    pub fn forget_vrf(&self, vrf: Vrf) -> bool {
        let mut rib = self.lock_rib();
        let is_over = !self.is_followed(vrf) && rib.forget_vrf(vrf);
        if is_over {
            lock_std(&self.shares).refused.remove(&vrf);
            self.given_up.fetch_add(1, Ordering::Release);
        }
        is_over
    }

    /// Number of VRFs that were given up; see [`Listener::given_up`](crate::Listener::given_up).
    pub fn given_up(&self) -> u64 {
        self.given_up.load(Ordering::Acquire)
    }
}

/// The session from which a table's first route is; empty without one.
fn owner(rib: &Rib, vrf: Vrf) -> String {
    fn first<A: Addr>(rib: &Rib, vrf: Vrf) -> Option<u32> {
        let prefix = *rib.part::<A>(vrf, Prefix::ALL, 1).first()?;
        Some(rib.exact(vrf, prefix)?.peer)
    }
    let peer = first::<u32>(rib, vrf).or_else(|| first::<u128>(rib, vrf));
    let peer = peer.and_then(|peer| rib.peers().get(peer));
    peer.and_then(|peer| peer.session()).unwrap_or_default().to_owned()
}

/// Whether the engines of a table may be taken: neither the program nor a reader needs them.
fn is_free(v4: &Arc<Pipeline<u32>>, v6: &Arc<Pipeline<u128>>) -> bool {
    fn is_unread<A: Addr>(table: &Arc<Pipeline<A>>) -> bool {
        // The pipeline and its compiler have the publisher, too.
        Arc::strong_count(table) == 1 && Arc::strong_count(&table.publisher) <= 2
    }
    v4.vrf != 0 && !v4.is_kept.load(Ordering::Relaxed) && is_unread(v4) && is_unread(v6)
}

/// The table that loses its engines to a table of the session, if the session with the most has at least two more.
fn loser(holders: &[Holder], session: &str) -> Option<Vrf> {
    let mut counts = HashMap::<&str, usize>::new();
    for holder in holders.iter().filter(|holder| holder.is_free) {
        *counts.entry(&holder.owner).or_default() += 1;
    }
    let own = counts.get(session).copied().unwrap_or(0);
    let (most, count) = counts.into_iter().max_by_key(|&(name, count)| (count, name))?;
    let newest = holders.iter().rev().find(|holder| holder.is_free && holder.owner == most);
    newest.filter(|_| count >= own + 2).map(|holder| holder.vrf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_table_of_the_largest_session_loses() {
        let holder = |(at, owner): (usize, &str)| {
            let is_free = !owner.starts_with('!');
            Holder { vrf: at as Vrf, owner: owner.trim_start_matches('!').into(), is_free }
        };
        let loser = |owners: &[&str], session| {
            let holders: Vec<_> = owners.iter().copied().enumerate().map(holder).collect();
            loser(&holders, session)
        };
        assert_eq!(loser(&["a", "a", "b", "a", "c"], "b"), Some(3));
        assert_eq!(loser(&["a", "a", "b", "a", "c"], "d"), Some(3));
        assert_eq!(loser(&["a", "a", "b", "c"], "d"), Some(1));
        // Nothing would be gained: the two would take turns.
        assert_eq!(loser(&["a", "a", "b", "c"], "b"), None);
        assert_eq!(loser(&["a", "b"], "d"), None);
        assert_eq!(loser(&["a", "a", "a"], "a"), None);
        // Those that readers hold are neither counted nor taken.
        assert_eq!(loser(&["a", "a", "!a", "!a"], "b"), Some(1));
        assert_eq!(loser(&["!a", "!a", "!a"], "b"), None);
        assert_eq!(loser(&[], "b"), None);
    }
}
