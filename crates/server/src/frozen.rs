//! Copies of tables for answers that read many routes. A copy is made on demand, and shared while it is new enough.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fibula_core::Vrf;
use fibula_fib::{Fib, FibOptions};
use fibula_rib::Live;
use fibula_rpki::{AS_PATH, ORIGIN, Relations, VrpGeneration, add_columns, add_path_column};

use crate::table::TableName;

/// A table at one moment.
pub(crate) struct Frozen {
    pub(crate) table: String,
    pub(crate) fib: Fib,
    /// Number of the feeds' updates that it includes.
    pub(crate) sequence: u64,
    /// The number of the VRPs and ASPAs by which its routes were validated, 0 without.
    pub(crate) vrps: u64,
    taken: Instant,
    /// How long the RIB was locked, and how long making the table took in total.
    cost: Duration,
}

/// A table younger than this is used again.
const YOUNG: Duration = Duration::from_secs(1);
/// Maximum number of copies that are kept for further requests, so that requests for many tables fill no memory.
const KEPT: usize = 8;
/// Making tables takes at most this fraction of a thread's time.
const SHARE: u32 = 5;

impl Frozen {
    fn make(
        live: &Live,
        vrf: Vrf,
        rpki: Option<(&VrpGeneration, &Relations)>,
    ) -> Result<Self, String> {
        let (taken, begin) = (Instant::now(), Instant::now());
        let (table, copy) = live.with_rib(|rib| (TableName::of(rib, vrf), rib.freeze(vrf)));
        let (sequence, locked) = (copy.sequence(), begin.elapsed());
        let mut made = copy.table().map_err(|error| error.to_string())?;
        // Tables that are not of BGP have no origins and no paths.
        if let Some((VrpGeneration { vrps, aspas, .. }, relations)) = rpki {
            if let Some(vrps) = vrps.as_ref().filter(|_| made.columns.find(ORIGIN).is_some()) {
                made = add_columns(&made, vrps, ORIGIN).map_err(|error| error.to_string())?;
            }
            if !aspas.is_empty() && made.columns.find(AS_PATH).is_some() {
                made =
                    add_path_column(made, aspas, relations).map_err(|error| error.to_string())?;
            }
        }
        let fib = Fib::of_table(made, &FibOptions::default()).map_err(|error| error.to_string())?;
        let (cost, table) = (begin.elapsed(), table.to_string());
        tracing::debug!(table, routes = fib.len(), ?locked, ?cost, "table copied for bulk answers");
        let vrps = rpki.map_or(0, |(generation, _)| generation.number);
        Ok(Self { table, fib, sequence, vrps, taken, cost })
    }

    /// The age of the table.
    pub(crate) fn age(&self) -> Duration {
        self.taken.elapsed()
    }

    fn is_young(&self) -> bool {
        self.age() < YOUNG.max(self.cost * SHARE)
    }
}

/// The tables that were used recently.
#[derive(Default)]
pub(crate) struct FrozenTables {
    /// One slot for each table, the last used one last. The first thread that finds it old makes a new copy; other
    /// threads wait for it.
    slots: Mutex<Vec<(Vrf, Slot)>>,
}

type Slot = Arc<Mutex<Option<Arc<Frozen>>>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked has left a complete table, or none.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FrozenTables {
    /// A current or recent copy of the table. Blocks while a new copy is compiled.
    pub(crate) fn get(
        &self,
        live: &Live,
        vrf: Vrf,
        rpki: Option<(&VrpGeneration, &Relations)>,
    ) -> Result<Arc<Frozen>, String> {
        let slot = {
            let mut slots = lock(&self.slots);
            let slot = match slots.iter().position(|(known, _)| *known == vrf) {
                Some(at) => slots.remove(at).1,
                None => Slot::default(),
            };
            slots.push((vrf, Arc::clone(&slot)));
            // Requests that use the dropped copy have it still.
            if slots.len() > KEPT {
                slots.remove(0);
            }
            slot
        };
        let mut slot = lock(&slot);
        if let Some(frozen) = &*slot
            && (frozen.is_young()
                || (live.with_rib(|rib| rib.sequence()) == frozen.sequence
                    && rpki.map_or(0, |(generation, _)| generation.number) == frozen.vrps))
        {
            return Ok(Arc::clone(frozen));
        }
        // The old copy is dropped first if nobody else uses it, so that two copies are not in memory at once.
        *slot = None;
        let frozen = Arc::new(Frozen::make(live, vrf, rpki)?);
        *slot = Some(Arc::clone(&frozen));
        Ok(frozen)
    }

    /// Drops the copies that no request used in this time.
    pub(crate) fn forget(&self, unused: Duration) {
        let mut slots = lock(&self.slots);
        slots.retain(|(_, slot)| match slot.try_lock() {
            Ok(slot) => slot.as_ref().is_some_and(|frozen| frozen.age() < unused),
            Err(_) => true, // in use just now
        });
    }
}
