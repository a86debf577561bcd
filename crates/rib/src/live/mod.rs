//! A table that changes while it is read: RIB, log, compiler and readers put together.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

use fibula_core::{Addr, AnyPrefix, Kind, PerFamily, Update, Vrf};

use crate::audit::Auditor;
use crate::choice::EngineSource;
use crate::compiler::{Compiler, Shared, Tables, first};
use crate::log::Log;
use crate::publisher::{Generation, Publisher};
use crate::status::{Counters, Event, Events, LiveError, lock_std};
use crate::sync::Arc;
use crate::{Audit, Change, Changes, Checkpoint, Pacing, Peer, Reader, Rib, TableError};

/// How a [`Live`] table behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveOptions {
    /// When changes are published.
    pub pacing: Pacing,
    /// What is checked meanwhile.
    pub audit: Audit,
}

/// A RIB, and for each family of each VRF that is forwarded a table that follows it.
///
/// One thread feeds, any number read; a compiler for each table runs in between. Dropped, it publishes
/// what is left and ends its threads.
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
///     v4: vec![Maker::new("nothing", |_| Ok(Box::new(Nothing)))],
///     v6: vec![Maker::new("nothing", |_| Ok(Box::new(Nothing)))],
/// };
/// let options = LiveOptions::default();
/// let live = Live::start(Rib::default(), &[0], engines, options, |event| eprintln!("{event}"))?;
/// let mut reader = live.reader::<u32>(0).unwrap();
/// let peer = live.peer(Peer { address: None, asn: 64500 });
/// let attributes = BgpAttributes { origin_as: Some(64501), ..Default::default() };
/// let change = Change::Announce(Attributes::Bgp(&attributes));
/// live.apply(&Update { peer, ..Update::new("192.0.2.0/24".parse()?, change) })?;
/// live.flush()?;
/// assert_eq!(reader.pin().sequence(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Live {
    rib: Arc<Mutex<Rib>>,
    tables: PerFamily<Pipelines>,
}

/// One table for each VRF that is followed.
struct Pipelines;

impl Kind for Pipelines {
    type Of<A: Addr> = Vec<Pipeline<A>>;
}

/// What stands between the RIB and the readers of one table.
struct Pipeline<A: Addr> {
    vrf: Vrf,
    log: Arc<Log<A>>,
    publisher: Arc<Publisher<A>>,
    counters: Arc<Counters>,
    compiler: Option<JoinHandle<()>>,
}

impl<A: Addr> Pipeline<A> {
    fn start(
        rib: &Arc<Mutex<Rib>>,
        vrf: Vrf,
        engines: Arc<dyn EngineSource<A>>,
        options: &LiveOptions,
        events: &Events,
    ) -> Result<Self, LiveError> {
        let (mut tables, sequence) = {
            let rib = lock_std(rib);
            (Tables::of_rib(engines, &rib, vrf), rib.sequence())
        };
        let (generation, refused) = first(&mut tables, sequence)
            .map_err(|refused| LiveError::NoEngine { vrf, family: A::FAMILY, refused })?;
        if !refused.is_empty() {
            events(Event::Engine { now: generation.name, refused });
        }
        let log = Arc::new(Log::new(options.pacing, sequence));
        let publisher = Arc::new(Publisher::new(generation));
        let counters = Arc::new(Counters::default());
        let shared = Shared {
            vrf,
            rib: Arc::clone(rib),
            log: Arc::clone(&log),
            publisher: Arc::clone(&publisher),
            counters: Arc::clone(&counters),
            events: Arc::clone(events),
        };
        let compiler = Compiler::new(shared, tables, Auditor::new(options.audit));
        let of_compiler = Arc::clone(&log);
        let run = move || {
            // A caller's function may panic: that of events, that of a source of engines.
            if catch_unwind(AssertUnwindSafe(|| compiler.run())).is_err() {
                of_compiler.stop();
            }
        };
        let compiler = thread::Builder::new()
            .name(format!("fibula-{}-{vrf}", A::FAMILY))
            .spawn(run)
            .map_err(LiveError::Thread)?;
        Ok(Self { vrf, log, publisher, counters, compiler: Some(compiler) })
    }
}

impl<A: Addr> Pipeline<A> {
    fn stopped(&self) -> TableError {
        TableError::Stopped { vrf: self.vrf, family: A::FAMILY }
    }

    fn flush(&self) -> Result<(), TableError> {
        if self.log.flush() { Ok(()) } else { Err(self.stopped()) }
    }
}

impl<A: Addr> Drop for Pipeline<A> {
    fn drop(&mut self) {
        self.log.close();
        if let Some(compiler) = self.compiler.take() {
            // It ends by itself; if it panicked, there is nothing left to be said.
            let _ = compiler.join();
        }
    }
}

/// Between the RIB, whose changes they are, and the logs.
struct ToLogs<'a> {
    tables: &'a PerFamily<Pipelines>,
    /// The place of the changes in the feed.
    sequence: u64,
}

impl Changes for ToLogs<'_> {
    fn changed<A: Addr>(&mut self, vrf: Vrf, change: Change<A>) {
        if let Some(table) = self.tables.get::<A>().iter().find(|table| table.vrf == vrf) {
            table.counters.changes.add(1);
            table.log.push(change, self.sequence);
        }
    }
}

impl Live {
    /// Compiles the VRFs' tables of the RIB, by what `engines` has for them, and begins to follow it.
    /// `events` hears what an operator should know; it is called by the compilers and must not block for
    /// long.
    ///
    /// # Errors
    /// [`LiveError::NoEngine`] if none takes a table.
    pub fn start(
        rib: Rib,
        vrfs: &[Vrf],
        engines: impl EngineSource<u32> + EngineSource<u128> + 'static,
        options: LiveOptions,
        events: impl Fn(Event) + Send + Sync + 'static,
    ) -> Result<Self, LiveError> {
        let rib = Arc::new(Mutex::new(rib));
        let events: Events = Arc::new(events);
        let engines = Arc::new(engines);
        let mut tables = PerFamily::<Pipelines>::default();
        for &vrf in vrfs {
            let (v4, v6) = (Arc::clone(&engines), Arc::clone(&engines));
            tables.v4.push(Pipeline::<u32>::start(&rib, vrf, v4, &options, &events)?);
            tables.v6.push(Pipeline::<u128>::start(&rib, vrf, v6, &options, &events)?);
        }
        Ok(Self { rib, tables })
    }

    /// Takes an update. Waits while the compilers are behind, see [`Pacing`]. To be called by one thread:
    /// two that speak of the same prefix have no order.
    ///
    /// # Errors
    /// As [`Rib::apply`]; [`TableError::Stopped`] if the table's compiler panicked.
    pub fn apply(&self, update: &Update<'_>) -> Result<(), TableError> {
        match update.prefix {
            AnyPrefix::V4(_) => self.wait_for_room::<u32>(update.vrf)?,
            AnyPrefix::V6(_) => self.wait_for_room::<u128>(update.vrf)?,
        }
        let (mut rib, mut logs) = self.locked();
        rib.apply(update, &mut logs)
    }

    /// The session with the peer ended; see [`Rib::peer_down`].
    pub fn peer_down(&self, peer: u32) {
        let (mut rib, mut logs) = self.locked();
        rib.peer_down(peer, &mut logs);
    }

    /// The peer starts over; see [`Rib::mark_stale`]. Readers keep what there is.
    pub fn mark_stale(&self, peer: u32) {
        lock_std(&self.rib).mark_stale(peer);
    }

    /// The peer has said everything again; see [`Rib::sweep`].
    pub fn sweep(&self, peer: u32) {
        let (mut rib, mut logs) = self.locked();
        rib.sweep(peer, &mut logs);
    }

    /// The RIB, and the logs for what the next event of the feed changes.
    fn locked(&self) -> (MutexGuard<'_, Rib>, ToLogs<'_>) {
        let rib = lock_std(&self.rib);
        let sequence = rib.sequence() + 1;
        (rib, ToLogs { tables: &self.tables, sequence })
    }

    fn pipeline<A: Addr>(&self, vrf: Vrf) -> Option<&Pipeline<A>> {
        self.tables.get::<A>().iter().find(|table| table.vrf == vrf)
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
        lock_std(&self.rib).peer(peer)
    }

    /// The places of a source's columns among the values; see [`Rib::value_places`].
    pub fn value_places(&self, columns: &[&str]) -> Vec<usize> {
        lock_std(&self.rib).value_places(columns)
    }

    /// The RIB, held still.
    pub fn with_rib<T>(&self, look: impl FnOnce(&Rib) -> T) -> T {
        look(&lock_std(&self.rib))
    }

    /// The RIB as it is, to be written to a file. The feed waits while it is copied, not while it is
    /// written; `position` is the feed's own word for where it is.
    pub fn checkpoint(&self, position: &str) -> Checkpoint {
        lock_std(&self.rib).checkpoint(position)
    }

    /// A reader of the VRF's table; `None` if the VRF is not followed. Clone it for each thread.
    pub fn reader<A: Addr>(&self, vrf: Vrf) -> Option<Reader<A>> {
        Some(Reader::new(&self.pipeline::<A>(vrf)?.publisher))
    }

    /// What happened to the VRF's table.
    pub fn counters<A: Addr>(&self, vrf: Vrf) -> Option<&Counters> {
        Some(&*self.pipeline::<A>(vrf)?.counters)
    }

    /// The newest generation of the VRF's table. To keep it long is to rest on it, see [`Reader`].
    pub fn current<A: Addr>(&self, vrf: Vrf) -> Option<Arc<Generation<A>>> {
        Some(self.pipeline::<A>(vrf)?.publisher.current())
    }

    /// Waits until everything that was applied before is visible, or could not be made so.
    ///
    /// # Errors
    /// [`TableError::Stopped`] if a compiler panicked: readers keep the last table that it published.
    pub fn flush(&self) -> Result<(), TableError> {
        self.tables.v4.iter().try_for_each(Pipeline::flush)?;
        self.tables.v6.iter().try_for_each(Pipeline::flush)
    }
}
