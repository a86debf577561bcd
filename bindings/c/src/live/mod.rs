//! Tables that change while they are read.
//!
//! ```text
//!   fibula_live (VRF 0) ─┬─ Table ─ Mutex<State>: a Plain of each family     readers: no lock
//!                        ├─ VRFs by number, each a fibula_live with a Table
//!                        └─ Queue ─ one thread, if changes are collected: publishes tables when they are due
//! ```
//!
//! See ADR 29. A call locks its table alone. Locks are taken in this order: VRFs, a table, the queue.

mod change;
mod file;
mod options;
mod queue;
mod read;
mod reader;
mod status;
mod table;

use std::collections::BTreeMap;
use std::mem;
use std::ptr;
use std::sync::{Arc, Mutex, Weak};
use std::thread::{self, JoinHandle};

use crate::error::{Outcome, guarded};
use crate::fork::Process;
use crate::free;
pub use options::Options;
use options::Settings;
use queue::Queue;
pub use status::Memory;
use table::Table;

/// `fibula_live` of the header: a table, and if it is the first one of its VRFs also all others.
pub struct Live {
    number: u32,
    table: Arc<Table>,
    settings: Arc<Settings>,
    queue: Option<Arc<Queue>>,
    process: Process,
    place: Place,
}

/// The tables of the VRFs but 0.
type Vrfs = Mutex<BTreeMap<u32, Box<Live>>>;

enum Place {
    First { vrfs: Arc<Vrfs>, thread: Option<JoinHandle<()>> },
    Vrf(Weak<Vrfs>),
}

/// C calls from any thread.
const _: fn() = || {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Live>();
};

impl Live {
    fn new(settings: Settings) -> Outcome<Self> {
        let queue = (!settings.collect.is_zero()).then(Arc::<Queue>::default);
        let start = |queue: &Arc<Queue>| {
            let queue = Arc::clone(queue);
            thread::Builder::new().name("fibula".to_owned()).spawn(move || queue.run())
        };
        let thread = queue.as_ref().map(start).transpose()?;
        Ok(Self {
            number: 0,
            table: Arc::new(Table::new(&settings)),
            settings: Arc::new(settings),
            queue,
            process: Process::this(),
            place: Place::First { vrfs: Arc::default(), thread },
        })
    }

    /// The table of a VRF.
    fn vrf(&self, number: u32) -> Outcome<*const Self> {
        self.process.check()?;
        if number == self.number {
            return Ok(self);
        }
        let Place::First { vrfs, .. } = &self.place else {
            return Err("a VRF has no VRFs: call fibula_live_vrf with the first table".into());
        };
        let mut all = vrfs.lock().map_err(|_| "an earlier panic has damaged the list of VRFs")?;
        let made = all.entry(number).or_insert_with(|| {
            Box::new(Self {
                number,
                table: Arc::new(Table::new(&self.settings)),
                settings: Arc::clone(&self.settings),
                queue: self.queue.clone(),
                process: self.process,
                place: Place::Vrf(Arc::downgrade(vrfs)),
            })
        });
        Ok(&raw const **made)
    }

    /// Whether nothing of it was locked when the process forked.
    fn is_unlocked(&self) -> bool {
        let is_whole = self.table.is_unlocked();
        match &self.place {
            Place::First { vrfs, .. } => {
                let all = vrfs.try_lock();
                is_whole && all.is_ok_and(|all| all.values().all(|vrf| vrf.is_unlocked()))
            }
            Place::Vrf(_) => is_whole,
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let Place::First { thread, .. } = &mut self.place else { return };
        match (thread.take(), &self.queue) {
            // A child of fork() has no such thread to wait for.
            (Some(thread), _) if !self.process.is_this() => mem::forget(thread),
            (Some(thread), Some(queue)) => {
                queue.close();
                let _ = thread.join(); // it catches panics
            }
            _ => {}
        }
    }
}

/// A table without routes.
#[unsafe(no_mangle)]
pub extern "C" fn fibula_live_new(collect_ms: u32) -> *mut Live {
    guarded(ptr::null_mut(), || {
        Ok(Box::into_raw(Box::new(Live::new(Settings::collecting(collect_ms))?)))
    })
}

/// A table without routes.
///
/// # Safety
/// As the header says of `fibula_live_with`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_with(options: *const Options) -> *mut Live {
    guarded(ptr::null_mut(), || {
        // SAFETY: options of the size that they name.
        let settings = unsafe { Settings::of(options) }?;
        Ok(Box::into_raw(Box::new(Live::new(settings)?)))
    })
}

/// The table of a VRF.
///
/// # Safety
/// As the header says of `fibula_live_vrf`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_vrf(live: *mut Live, number: u32) -> *mut Live {
    guarded(ptr::null_mut(), || {
        // SAFETY: a table.
        let live = unsafe { &*live };
        // All that C can do with a table takes a shared reference, but for `fibula_live_free`.
        Ok(live.vrf(number)?.cast_mut())
    })
}

/// Frees a table.
///
/// # Safety
/// As the header says of `fibula_live_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_free(live: *mut Live) {
    // SAFETY: a table, or NULL.
    let Some(table) = (unsafe { live.as_ref() }) else { return };
    // What another thread had locked when the process forked may be half changed: it is not touched.
    if !table.process.is_this() && !table.is_unlocked() {
        return;
    }
    match &table.place {
        // SAFETY: it is of `fibula_live_new`, and C gives it up.
        Place::First { .. } => unsafe { free(live) },
        Place::Vrf(vrfs) => {
            let Some(vrfs) = vrfs.upgrade() else { return };
            let number = table.number;
            // In a child the list may be locked, for good.
            let vrf = match table.process.is_this() {
                true => vrfs.lock().ok().and_then(|mut all| all.remove(&number)),
                false => vrfs.try_lock().ok().and_then(|mut all| all.remove(&number)),
            };
            drop(vrf);
        }
    }
}
