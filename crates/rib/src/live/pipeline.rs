//! The log, the compiler and the publisher of one table.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::thread::{self, JoinHandle};

use fibula_core::{Addr, Vrf};

use super::LiveOptions;
use crate::audit::Auditor;
use crate::choice::EngineSource;
use crate::compiler::{Compiler, Shared, Tables, first};
use crate::log::Log;
use crate::publisher::Publisher;
use crate::status::{Counters, Event, Events, LiveError};
use crate::sync::Arc;
use crate::{Rib, TableError};

/// The settings for the tables of a VRF.
#[derive(Clone, Copy)]
pub(super) struct With<'a> {
    pub(super) rib: &'a Arc<Mutex<Rib>>,
    pub(super) vrf: Vrf,
    pub(super) owner: &'a str,
    pub(super) options: &'a LiveOptions,
    pub(super) events: &'a Events,
}

/// Log, compiler and publisher of one family of a VRF.
pub(super) struct Pipeline<A: Addr> {
    pub(super) vrf: Vrf,
    /// The session from which its first route is.
    pub(super) owner: String,
    /// Whether the program asked for its engines.
    pub(super) is_kept: AtomicBool,
    pub(super) log: Arc<Log<A>>,
    pub(super) publisher: Arc<Publisher<A>>,
    pub(super) counters: Arc<Counters>,
    compiler: Option<JoinHandle<()>>,
}

impl<A: Addr> Pipeline<A> {
    /// Compiles the table from the RIB, which stays locked meanwhile.
    pub(super) fn start(
        rib: &Rib,
        engines: Arc<dyn EngineSource<A>>,
        with: &With<'_>,
    ) -> Result<Self, LiveError> {
        let &With { vrf, owner, options, events, .. } = with;
        let (mut tables, sequence) = (Tables::of_rib(engines, rib, vrf), rib.sequence());
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
            rib: Arc::clone(with.rib),
            log: Arc::clone(&log),
            publisher: Arc::clone(&publisher),
            counters: Arc::clone(&counters),
            events: Arc::clone(events),
        };
        let compiler = Compiler::new(shared, tables, Auditor::new(options.audit));
        let of_compiler = Arc::clone(&log);
        let run = move || {
            // A function of the caller may panic: the one for events, or the engine source.
            if catch_unwind(AssertUnwindSafe(|| compiler.run())).is_err() {
                of_compiler.stop();
            }
        };
        let compiler = thread::Builder::new()
            .name(format!("fibula-{}-{vrf}", A::FAMILY))
            .spawn(run)
            .map_err(LiveError::Thread)?;
        Ok(Self {
            vrf,
            owner: owner.to_owned(),
            is_kept: AtomicBool::new(false),
            log,
            publisher,
            counters,
            compiler: Some(compiler),
        })
    }
}

impl<A: Addr> Pipeline<A> {
    pub(super) fn stopped(&self) -> TableError {
        TableError::Stopped { vrf: self.vrf, family: A::FAMILY }
    }

    /// Waits until all changes are published.
    pub(super) fn flush(&self) -> Result<(), TableError> {
        if self.log.flush() { Ok(()) } else { Err(self.stopped()) }
    }
}

impl<A: Addr> Drop for Pipeline<A> {
    fn drop(&mut self) {
        self.log.close();
        if let Some(compiler) = self.compiler.take() {
            // The thread ends by itself, and a panic was reported already.
            let _ = compiler.join();
        }
    }
}
