//! A router, as a value: packets in, longest-prefix match, packets out.
//!
//! Ports, threads and forwarding are `router`'s, sources are those of a server ([`Serve`](crate::Serve)), answers
//! over HTTP are `server`'s. The next hops of a table that does not change are read by [`next_hops`].

mod dpdk;
mod fast;
pub mod figures;
mod keeper;
pub mod next_hops;
mod next_hops_problem;
mod ports;
mod rules;
mod run;
mod tables;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fibula_fib::{Fib, FibOptions};
use fibula_router::Pool;

use crate::config::RouteConfig;
use crate::{DaemonError, DaemonHandle, Notice};

pub use figures::RouteFigures;
pub use next_hops_problem::NextHopsProblem;
pub use rules::{RuleFigures, RulesProblem, read as read_rules};
use run::{Prepared, Shared};

/// The options of a router.
pub struct RouteOptions {
    config: RouteConfig,
    fib: FibOptions,
    table: Option<Fib>,
    wait: Option<Duration>,
}

impl RouteOptions {
    /// A router with this configuration, which was [checked](RouteConfig::checked).
    pub fn new(config: RouteConfig) -> Self {
        Self { config, fib: FibOptions::default(), table: None, wait: None }
    }

    /// The options of its tables. The configuration has the names of the engines.
    #[must_use]
    pub fn tables(self, fib: FibOptions) -> Self {
        Self { fib, ..self }
    }

    /// Forwards by this table, which the caller opened, in place of the one that the configuration names.
    #[must_use]
    pub fn by_table(self, table: Fib) -> Self {
        Self { table: Some(table), ..self }
    }

    /// Takes no packet before the sources have sent their whole tables, but waits at most so long.
    #[must_use]
    pub fn waiting(self, longest: Duration) -> Self {
        Self { wait: Some(longest), ..self }
    }
}

/// A router that runs. Dropping it stops it.
pub struct Route {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    /// Nothing is sent: the channel closes when the thread ends.
    ended: Receiver<()>,
    thread: Option<JoinHandle<Result<RouteEnd, DaemonError>>>,
}

/// The end of a router.
#[derive(Debug)]
pub struct RouteEnd {
    /// Everything that was counted.
    pub figures: RouteFigures,
    /// How long it forwarded packets.
    pub time: Duration,
    /// Why it ended early, or why its input is not whole.
    pub failure: Option<DaemonError>,
}

/// The stack of the thread that opens everything: that of a program's first thread.
const STACK: usize = 8 << 20;

impl Route {
    /// Opens the ports and the table, and starts to forward.
    ///
    /// # Errors
    /// If the configuration or a file that it names is wrong, a port cannot be opened, an address cannot be listened
    /// on, no engine can hold the table, or the system has no threads.
    pub fn start(options: RouteOptions) -> Result<Self, DaemonError> {
        let (tell, started) = mpsc::channel();
        let (alive, ended) = mpsc::channel::<()>();
        let run = move || {
            let _alive = alive;
            // The pool outlives the ports and the pipeline, which hold its packets.
            let pool = match dpdk::start(&options.config) {
                Ok(front) => pool(&options.config, front),
                Err(error) => return Err(error),
            };
            let prepared = Prepared::open(options, &pool)?;
            // `start` waits for it.
            let _ = tell.send((Arc::clone(&prepared.shared), prepared.addresses()));
            prepared.run()
        };
        let thread = thread::Builder::new().name("fibula-route".to_owned()).stack_size(STACK);
        let thread = thread
            .spawn(run)
            .map_err(|error| DaemonError::System { what: "no thread for the router", error })?;
        match started.recv() {
            Ok((shared, addresses)) => Ok(Self { shared, addresses, ended, thread: Some(thread) }),
            Err(_) => Err(joined(thread).err().unwrap_or(DaemonError::Ended)),
        }
    }

    /// Checks the requirements of [`Route::start`] on this build and this machine.
    ///
    /// # Errors
    /// If there are xdp ports, and this program was built without the programs for the kernel.
    pub fn check(config: &RouteConfig) -> Result<(), DaemonError> {
        fast::check(config)
    }

    /// The addresses where it answers over HTTP, with the ports that the system chose for port 0.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Everything that was counted so far.
    pub fn figures(&self) -> RouteFigures {
        self.shared.figures()
    }

    /// Notifies the router from another thread. [`Notice::Reload`] reads the rules again.
    pub fn handle(&self) -> DaemonHandle {
        let shared = Arc::clone(&self.shared);
        DaemonHandle::new(move |notice| shared.obey(notice))
    }

    /// Notifies the router.
    pub fn notify(&self, notice: Notice) {
        self.shared.obey(notice);
    }

    /// Waits until the router is [stopped](Notice::Stop), all its ports have ended, or its feeds end.
    ///
    /// # Errors
    /// If its threads cannot run.
    pub fn wait(mut self) -> Result<RouteEnd, DaemonError> {
        match self.thread.take() {
            Some(thread) => joined(thread),
            None => Err(DaemonError::Ended),
        }
    }

    /// The same, and stops the router after so long.
    ///
    /// # Errors
    /// As [`Route::wait`].
    pub fn wait_at_most(self, longest: Duration) -> Result<RouteEnd, DaemonError> {
        if self.ended.recv_timeout(longest) == Err(RecvTimeoutError::Timeout) {
            self.notify(Notice::Stop);
        }
        self.wait()
    }

    /// Stops the router, and waits for its end.
    ///
    /// # Errors
    /// As [`Route::wait`].
    pub fn stop(self) -> Result<RouteEnd, DaemonError> {
        self.notify(Notice::Stop);
        self.wait()
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.shared.obey(Notice::Stop);
            let _ = thread.join();
        }
    }
}

fn joined(thread: JoinHandle<Result<RouteEnd, DaemonError>>) -> Result<RouteEnd, DaemonError> {
    thread.join().unwrap_or(Err(DaemonError::Panicked { thread: "the router's thread" }))
}

fn pool(config: &RouteConfig, front: u32) -> Pool {
    Pool::with_front(config.pipeline.slots, config.slot_bytes(), front)
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}
