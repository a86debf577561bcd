//! The thread that feeds a live table.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use fibula_feeds::net::{Hub, SourceEvent, SourceReport, speaking};
use fibula_feeds::{Board, Checkpoints, Clock, Event, FeedError, LiveFeed, Positions, SystemClock};
use fibula_rib::{Live, Peer};
use tracing::{debug, info, warn};

use crate::config::ServeConfig;
use crate::{DaemonError, sources};

/// The sources of a configuration, opened: listeners listen, and nothing is read yet.
pub struct Opened {
    hub: Hub,
    positions: Positions,
}

/// The feeds, while their thread runs. Dropping it stops them.
pub struct Feeds {
    handle: fibula_feeds::net::HubHandle,
    thread: Option<JoinHandle<Result<u64, FeedError>>>,
}

/// Opens the sources, whose states are on the board.
pub fn open(
    config: &ServeConfig,
    board: &Arc<Board>,
    positions: Positions,
) -> Result<Opened, DaemonError> {
    let mut hub = Hub::new(Arc::clone(board), log)
        .map_err(|error| DaemonError::System { what: "cannot run the feeds", error })?;
    for source in sources::all(config, |name| positions.get(name).map(str::to_owned))? {
        hub.add(source)?;
    }
    Ok(Opened { hub, positions })
}

impl Opened {
    /// Starts the thread, which calls `ended` at its end.
    pub fn start(
        self,
        config: &ServeConfig,
        live: &Arc<Live>,
        ended: impl FnOnce() + Send + 'static,
    ) -> Result<Feeds, DaemonError> {
        let Self { hub, positions } = self;
        let handle = hub.handle();
        let (config, live) = (config.clone(), Arc::clone(live));
        let adopted = live.with_rib(speaking);
        let run = move || {
            let fed = feed(hub, &live, &config, &positions, &adopted);
            ended();
            fed
        };
        let thread = thread::Builder::new().name("fibula-feeds".to_owned()).spawn(run);
        let thread = thread
            .map_err(|error| DaemonError::System { what: "no thread for the feeds", error })?;
        Ok(Feeds { handle, thread: Some(thread) })
    }
}

impl Feeds {
    /// Changes the sources while they run.
    pub fn handle(&self) -> fibula_feeds::net::HubHandle {
        self.handle.clone()
    }

    /// Stops the feeds, and returns the number of checkpoints that were written.
    pub fn stop(mut self) -> Result<u64, DaemonError> {
        self.end()
    }

    fn end(&mut self) -> Result<u64, DaemonError> {
        self.handle.stop();
        match self.thread.take().map(JoinHandle::join) {
            None => Ok(0),
            Some(Ok(fed)) => Ok(fed?),
            Some(Err(_)) => Err(DaemonError::Panicked { thread: "the feeds' thread" }),
        }
    }
}

impl Drop for Feeds {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Runs the feeds until they are stopped, and returns the number of checkpoints that were written.
fn feed(
    mut hub: Hub,
    live: &Live,
    config: &ServeConfig,
    positions: &Positions,
    adopted: &[(u32, Peer)],
) -> Result<u64, FeedError> {
    let clock = SystemClock::default();
    let checkpoints = config.checkpoint.as_ref().map(|checkpoint| {
        let position = positions.to_string();
        let failed = |event: Event| warn!("{event}");
        Checkpoints::new(&checkpoint.file, checkpoint.every.0, position, clock.now(), failed)
    });
    let mut to = LiveFeed::with_clock(live, clock)
        .giving_up_after(config.longest_hold())
        .with_checkpoints(checkpoints)
        .at(positions.clone());
    hub.adopt(adopted, &mut to)?;
    hub.run(&mut to)?;
    to.finish()
}

/// One line an event.
fn log(report: SourceReport) {
    let source = &*report.source;
    match &report.what {
        SourceEvent::Listening { address } => info!(source, %address, "{report}"),
        SourceEvent::Connected
        | SourceEvent::Closed { .. }
        | SourceEvent::Taken { .. }
        | SourceEvent::Ended
        | SourceEvent::Protocol(Event::Established { .. }) => info!(source, "{report}"),
        SourceEvent::Protocol(Event::Swept { .. }) => debug!(source, "{report}"),
        _ => warn!(source, "{report}"),
    }
}
