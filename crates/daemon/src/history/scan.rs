//! Reading all tables, some routes at a time, and comparing them with what was recorded last.

use std::collections::HashSet;
use std::sync::Arc;

use fibula_core::{Addr, Prefix, Vrf};
use fibula_history::{FoundRoute, HistoryFolder, Resync, RouteKey};
use fibula_rib::Pod;

use super::record::{Interruption, Recorder, now};

/// Routes that are read under one lock of the RIB.
const SCANNED: usize = 1024;
/// The most prefixes that may change meanwhile.
const CHANGED: usize = 1 << 20;

/// A comparison that goes on.
struct Scan<'f> {
    folder: &'f mut HistoryFolder,
    resync: Resync,
    /// The prefixes that have changed since it began. Their changes are written.
    changed: HashSet<RouteKey>,
}

impl Recorder {
    /// Reads all tables, and writes what differs from what was recorded last. Returns the time from which on everything
    /// is recorded.
    pub(super) fn scan(&mut self, folder: &mut HistoryFolder) -> Result<u64, Interruption> {
        folder.tend(now())?;
        // Changes that happen meanwhile are written as they come.
        self.next = self.live.history().next();
        let resync = folder.resync()?;
        let mut scan = Scan { folder, resync, changed: HashSet::new() };
        let mut tables: Vec<(Arc<str>, Vrf)> = self.live.with_rib(|rib| {
            let vrfs: Vec<Vrf> = rib.vrfs().collect();
            vrfs.iter().for_each(|&vrf| self.names.learn_table(rib, vrf));
            vrfs.into_iter().map(|vrf| (self.names.table(vrf), vrf)).collect()
        });
        tables.sort();
        for (table, vrf) in tables {
            self.scan_family::<u32>(&mut scan, &table, vrf)?;
            self.scan_family::<u128>(&mut scan, &table, vrf)?;
        }
        // Routes of tables that are not there any more.
        self.compare(&mut scan, None, Vec::new(), now())?;
        let from = now();
        self.read(scan.folder, None)?;
        Ok(from)
    }

    fn scan_family<A: Addr + Pod>(
        &mut self,
        scan: &mut Scan<'_>,
        table: &Arc<str>,
        vrf: Vrf,
    ) -> Result<(), Interruption> {
        let key = |prefix: Prefix<A>| RouteKey { table: Arc::clone(table), prefix: A::any(prefix) };
        let mut after = None;
        loop {
            let (found, last, time) = self.live.with_rib(|rib| {
                let part = rib.part(vrf, after.unwrap_or(Prefix::<A>::ALL), SCANNED);
                let last = part.last().copied().filter(|_| part.len() == SCANNED);
                let new = part.into_iter().filter(|&prefix| Some(prefix) != after);
                let found = new.filter_map(|prefix| {
                    let path = rib.exact(vrf, prefix)?;
                    self.names.learn_peer(rib, path.peer);
                    let peer = self.names.peer(path.peer);
                    Some(FoundRoute { key: key(prefix), peer, best: path.attributes })
                });
                (found.collect(), last, now())
            });
            // The last prefix of the family if there are no more.
            let upto = key(last.unwrap_or(Prefix::host(A::MAX)));
            self.compare(scan, Some(&upto), found, time)?;
            match last {
                Some(last) => after = Some(last),
                None => return Ok(()),
            }
        }
    }

    /// Writes the changes until now, and then what differs and has not changed.
    fn compare(
        &mut self,
        scan: &mut Scan<'_>,
        upto: Option<&RouteKey>,
        found: Vec<FoundRoute>,
        time: u64,
    ) -> Result<(), Interruption> {
        if self.shared.is_stopped() {
            return Err(Interruption::Stopped);
        }
        let Scan { folder, resync, changed } = scan;
        self.read(folder, Some(&mut *changed))?;
        if changed.len() > CHANGED {
            return Err(Interruption::Lost);
        }
        let differences = resync.compare(upto, found, time, |key| changed.contains(key))?;
        folder.write(&differences)?;
        folder.tend(now())?;
        Ok(())
    }
}
