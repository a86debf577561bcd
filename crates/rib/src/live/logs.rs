//! Passes the changes of the RIB to the logs of the followed tables.

use std::sync::RwLockReadGuard;

use fibula_core::{Addr, AnyPrefix, FamilyType, PerFamily, Update, Vrf};

use super::Pipelines;
use super::pipeline::Pipeline;
use crate::log::Writer;
use crate::{Change, Changes, History};

/// The tables that are followed, locked for some events of the feed.
pub(super) type Followed<'a> = RwLockReadGuard<'a, PerFamily<Pipelines>>;

/// Passes the RIB's changes to the logs. The log of a changed table stays locked until another VRF changes, or until
/// this is dropped.
pub(super) struct ToLogs<'a> {
    tables: &'a PerFamily<Pipelines>,
    history: &'a History,
    open: PerFamily<Open<'a>>,
    /// The position of the changes in the feed.
    pub(super) sequence: u64,
    /// Whether the changes are of a session's end.
    pub(super) is_of_end: bool,
    /// The tables without engines that got a route.
    without: Vec<Vrf>,
}

/// The log that is locked, and its table.
struct Open<'a>(std::marker::PhantomData<&'a ()>);

impl<'a> FamilyType for Open<'a> {
    type Of<A: Addr> = Option<(&'a Pipeline<A>, Writer<'a, A>)>;
}

impl<'a> ToLogs<'a> {
    pub(super) fn new(tables: &'a Followed<'_>, history: &'a History, sequence: u64) -> Self {
        Self {
            tables,
            history,
            open: PerFamily { v4: None, v6: None },
            sequence,
            is_of_end: false,
            without: Vec::new(),
        }
    }

    /// Unlocks the logs. The tables without engines that got a route.
    pub(super) fn into_without(self) -> Vec<Vrf> {
        self.without
    }

    fn table<A: Addr>(&self, vrf: Vrf) -> Option<&'a Pipeline<A>> {
        let tables: &'a PerFamily<Pipelines> = self.tables;
        tables.get::<A>().iter().find(|table| table.vrf == vrf).map(|table| &**table)
    }

    /// Whether the update's table has no room for its changes.
    pub(super) fn is_full(&self, update: &Update<'_>) -> bool {
        let vrf = update.vrf;
        match update.prefix {
            AnyPrefix::V4(_) => self.table::<u32>(vrf).is_some_and(|table| table.log.is_full()),
            AnyPrefix::V6(_) => self.table::<u128>(vrf).is_some_and(|table| table.log.is_full()),
        }
    }

    /// The log of the VRF's table, locked.
    fn writer<A: Addr>(&mut self, vrf: Vrf) -> Option<&mut (&'a Pipeline<A>, Writer<'a, A>)> {
        let is_open = self.open.get::<A>().as_ref().is_some_and(|(table, _)| table.vrf == vrf);
        if !is_open {
            let table = self.table::<A>(vrf);
            let open = self.open.get_mut::<A>();
            *open = None; // one log of a family is locked at a time
            *open = table.map(|table| (table, table.log.writer()));
        }
        self.open.get_mut::<A>().as_mut()
    }
}

impl Changes for ToLogs<'_> {
    fn changed<A: Addr>(&mut self, vrf: Vrf, change: Change<A>) {
        self.history.push(vrf, &change, self.is_of_end);
        let sequence = self.sequence;
        if let Some((table, log)) = self.writer::<A>(vrf) {
            table.counters.changes.add(1);
            log.push(change, sequence);
        } else if change.best.is_some() && self.without.last() != Some(&vrf) {
            self.without.push(vrf);
        }
    }
}
