//! A table that changes while it is read: a RIB, a log, a compiler and readers.

mod engines;
mod logs;
mod pipeline;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use fibula_core::{Addr, AnyPrefix, FamilyType, PerFamily, Update, Vrf};

use crate::choice::EngineSource;
use crate::publisher::Generation;
use crate::status::{Counters, Event, Events, LiveError, lock_std};
use crate::sync::Arc;
use crate::{Audit, Checkpoint, FeedEvent, History, Pacing, Peer, Reader, Rib, TableError};
use engines::Shares;
use logs::{Followed, ToLogs};
use pipeline::Pipeline;

/// Options of a [`Live`] table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveOptions {
    /// The pace at which changes are published.
    pub pacing: Pacing,
    /// The checks of the engines during use.
    pub audit: Audit,
    /// Number of changes of best routes that [`Live::history`] keeps.
    pub history: usize,
    /// Maximum number of VRFs with engines. Each needs two threads, which sleep while nothing changes. Further VRFs are
    /// only in the RIB; sessions share the number ([`Live::name_vrf`]).
    pub tables: usize,
}

impl Default for LiveOptions {
    /// No history, and 64 tables.
    fn default() -> Self {
        let (pacing, audit) = (Pacing::default(), Audit::default());
        Self { pacing, audit, history: 0, tables: 64 }
    }
}

/// A RIB with compiled tables that follow it, one for each family of each followed VRF.
///
/// One thread applies updates, and any number read. Each table has a compiler thread. When a `Live` is dropped, it
/// publishes the remaining changes and ends its threads.
///
/// ```
/// use fibula_core::{Attributes, BgpAttributes, Change, Update};
/// use fibula_rib::{Live, LiveOptions, Maker, Makers, Peer, Rib};
/// # use fibula_core::*;
/// # struct Nothing;
/// # impl<A: Addr> Lookup<A> for Nothing {
/// #     fn lookup(&self, _: A) -> Hop { Hop::NONE }
/// #     fn lookup_batch(&self, _: &[A], _: &mut [Hop]) {}
/// #     fn memory(&self) -> Memory { Memory::default() }
/// # }
/// # impl<A: Addr> Follow<A> for Nothing {}
///
/// // An engine that answers nothing; `fibula_fib::FibOptions` has real ones.
/// let engines = PerFamily::<Makers> {
///     v4: vec![Maker::new("nothing", |_| Ok(unstored(Nothing)))],
///     v6: vec![Maker::new("nothing", |_| Ok(unstored(Nothing)))],
/// };
/// let options = LiveOptions::default();
/// let live = Live::start(Rib::default(), &[0], engines, options, |event| eprintln!("{event}"))?;
/// let mut reader = live.reader::<u32>(0).unwrap();
/// let peer = live.peer(Peer::new(None, 64500));
/// let attributes = BgpAttributes { origin_as: Some(64501), ..Default::default() };
/// let change = Change::Announce(Attributes::Bgp(&attributes));
/// live.apply(&Update { peer, ..Update::new("192.0.2.0/24".parse()?, change) })?;
/// live.flush()?;
/// assert_eq!(reader.pin().sequence(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Live {
    rib: Arc<Mutex<Rib>>,
    tables: RwLock<PerFamily<Pipelines>>,
    shares: Mutex<Shares>,
    /// Number of VRFs that were given up.
    given_up: AtomicU64,
    history: History,
    engines: PerFamily<Engines>,
    options: LiveOptions,
    events: Events,
}

/// The source of a family's engines.
struct Engines;

impl FamilyType for Engines {
    type Of<A: Addr> = Arc<dyn EngineSource<A>>;
}

/// One table for each VRF that is followed.
struct Pipelines;

impl FamilyType for Pipelines {
    type Of<A: Addr> = Vec<Arc<Pipeline<A>>>;
}

impl Live {
    /// Starts to follow the RIB: compiles the tables of its VRFs with the engines of `engines`. `events` is called
    /// with information for the operator. It must neither block for long nor call this table.
    ///
    /// # Errors
    /// [`LiveError::NoEngine`] if every engine refuses a table.
    pub fn start(
        rib: Rib,
        vrfs: &[Vrf],
        engines: impl EngineSource<u32> + EngineSource<u128> + 'static,
        options: LiveOptions,
        events: impl Fn(Event) + Send + Sync + 'static,
    ) -> Result<Self, LiveError> {
        let engines = Arc::new(engines);
        let live = Self {
            rib: Arc::new(Mutex::new(rib)),
            tables: RwLock::default(),
            shares: Mutex::default(),
            given_up: AtomicU64::new(0),
            history: History::new(options.history),
            engines: PerFamily { v4: Arc::<_>::clone(&engines) as _, v6: engines as _ },
            options,
            events: Arc::new(events),
        };
        vrfs.iter().try_for_each(|&vrf| live.follow(vrf, &live.lock_rib()))?;
        Ok(live)
    }

    fn tables(&self) -> Followed<'_> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_rib(&self) -> MutexGuard<'_, Rib> {
        lock_std(&self.rib)
    }

    /// The number of the VRF with this name, see [`Rib::vrf`]. It gets engines with its first route. If
    /// [`LiveOptions::tables`] VRFs have some already, it gets those of another one if the session with the most VRFs
    /// has at least two more than the session of that route; else an [`Event::NotFollowed`] reports that it is only in
    /// the RIB.
    pub fn name_vrf(&self, name: &str) -> Vrf {
        self.lock_rib().vrf(name)
    }

    /// Like [`Live::name_vrf`], but the VRF gets engines now and keeps them: for readers that come before its routes.
    pub fn vrf(&self, name: &str) -> Vrf {
        let mut rib = self.lock_rib();
        let vrf = rib.vrf(name);
        let ended = self.start_table(&rib, vrf);
        if let Some(table) = self.tables().v4.iter().find(|table| table.vrf == vrf) {
            table.is_kept.store(true, Ordering::Relaxed);
        }
        drop(rib);
        drop(ended);
        vrf
    }

    /// The followed VRFs, in the order in which they were started.
    pub fn followed(&self) -> Vec<Vrf> {
        self.tables().v4.iter().map(|table| table.vrf).collect()
    }

    /// The last changes of best routes, [`LiveOptions::history`] of them.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Applies an update. Waits while the compilers are behind, see [`Pacing`]. Only one thread may call this: the
    /// order of updates of the same prefix from two threads would be undefined.
    ///
    /// # Errors
    /// The errors of [`Rib::apply`]; [`TableError::Stopped`] if the table's compiler panicked.
    pub fn apply(&self, update: &Update<'_>) -> Result<(), TableError> {
        loop {
            let is_applied = self.change(self.lock_rib(), |rib, logs| {
                if logs.is_full(update) {
                    return Ok(false);
                }
                logs.sequence = rib.sequence() + 1;
                rib.apply(update, logs).map(|()| true)
            })?;
            if is_applied {
                return Ok(());
            }
            // The compiler needs the RIB to make room.
            match update.prefix {
                AnyPrefix::V4(_) => self.wait_for_room::<u32>(update.vrf)?,
                AnyPrefix::V6(_) => self.wait_for_room::<u128>(update.vrf)?,
            }
        }
    }

    /// Changes the locked RIB and the logs. Tables that get routes and have no engines get some.
    fn change<T>(
        &self,
        mut rib: MutexGuard<'_, Rib>,
        change: impl FnOnce(&mut Rib, &mut ToLogs<'_>) -> Result<T, TableError>,
    ) -> Result<T, TableError> {
        let tables = self.tables();
        let mut logs = ToLogs::new(&tables, &self.history, 0);
        let changed = change(&mut rib, &mut logs);
        let without = logs.into_without();
        drop(tables);
        if !without.is_empty() {
            let ended = self.start_engines(&rib, &without);
            drop(rib);
            drop(ended); // waits for their compilers, which may wait for the RIB
        }
        changed
    }

    /// Applies the next event of the feed. Updates wait while the compilers are behind, as [`Live::apply`] does.
    ///
    /// # Errors
    /// The errors of [`Live::apply`].
    pub fn event(&self, event: FeedEvent<'_>) -> Result<(), TableError> {
        if let FeedEvent::Update(update) = event {
            return self.apply(update);
        }
        self.change(self.lock_rib(), |rib, logs| {
            logs.sequence = rib.sequence() + 1;
            logs.is_of_end = matches!(event, FeedEvent::Down(_) | FeedEvent::DownAll(_));
            rib.apply_event(event, logs)
        })
    }

    fn pipeline<A: Addr>(&self, vrf: Vrf) -> Option<Arc<Pipeline<A>>> {
        self.tables().get::<A>().iter().find(|table| table.vrf == vrf).cloned()
    }

    /// Waits, without the RIB's lock, until the log of the table has room.
    fn wait_for_room<A: Addr>(&self, vrf: Vrf) -> Result<(), TableError> {
        match self.pipeline::<A>(vrf) {
            Some(table) if !table.log.wait_for_room() => Err(table.stopped()),
            _ => Ok(()),
        }
    }

    /// The number of this peer; see [`Rib::peer`].
    pub fn peer(&self, peer: Peer) -> u32 {
        self.lock_rib().peer(peer)
    }

    /// Gives a peer up; see [`Rib::forget_peer`].
    pub fn forget_peer(&self, peer: u32) -> bool {
        self.lock_rib().forget_peer(peer)
    }

    /// The positions of a source's columns among the values; see [`Rib::value_places`].
    pub fn value_places(&self, columns: &[&str]) -> Vec<usize> {
        self.lock_rib().value_places(columns)
    }

    /// The locked RIB, which cannot change meanwhile.
    pub fn with_rib<T>(&self, look: impl FnOnce(&Rib) -> T) -> T {
        look(&self.lock_rib())
    }

    /// Makes a checkpoint of the RIB. The feed does not wait while it is copied and written. `position` is the feed's
    /// own description of its position.
    pub fn checkpoint(&self, position: &str) -> Checkpoint {
        self.lock_rib().checkpoint(position)
    }

    /// A reader of the VRF's table; `None` if the VRF is not followed. Clone it for each thread.
    pub fn reader<A: Addr>(&self, vrf: Vrf) -> Option<Reader<A>> {
        Some(Reader::new(&self.pipeline::<A>(vrf)?.publisher))
    }

    /// The counters of the VRF's table.
    pub fn counters<A: Addr>(&self, vrf: Vrf) -> Option<Arc<Counters>> {
        Some(Arc::clone(&self.pipeline::<A>(vrf)?.counters))
    }

    /// The age of the oldest change that readers of the VRF's table do not see yet; zero if there is none.
    pub fn lag<A: Addr>(&self, vrf: Vrf) -> Option<Duration> {
        Some(self.pipeline::<A>(vrf)?.log.lag())
    }

    /// The newest generation of the VRF's table. Do not keep it for long: it counts as held by a reader, see
    /// [`Reader`].
    pub fn current<A: Addr>(&self, vrf: Vrf) -> Option<Arc<Generation<A>>> {
        Some(self.pipeline::<A>(vrf)?.publisher.load())
    }

    /// Waits until all earlier updates are visible to readers, or their compilation has failed.
    ///
    /// # Errors
    /// [`TableError::Stopped`] if a compiler panicked. Readers keep the last published table.
    pub fn flush(&self) -> Result<(), TableError> {
        let (v4, v6) = {
            let tables = self.tables();
            (tables.v4.clone(), tables.v6.clone())
        };
        v4.iter().try_for_each(|table| table.flush())?;
        v6.iter().try_for_each(|table| table.flush())
    }
}
