//! Opens everything that a router needs, runs the pipeline, and stops the rest in order.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use fibula_feeds::{Board, Positions, SourceState};
use fibula_fib::FibOptions;
use fibula_rib::{Live, LiveOptions, Rib};
use fibula_router::control::Control;
use fibula_router::pipeline::{Event, PipelineError, PipelineHandle, Stage};
use fibula_router::port::xdp::{FastPath, Publisher};
use fibula_router::{Pipeline, Pool};
use fibula_server::{MetricsText, MoreMetrics, Obstacle, Server};
use tracing::{error, info, warn};

use super::keeper::{Keeper, Parts, PortStates, Waker};
use super::ports::XdpPorts;
use super::rules::Book;
use super::tables::Tables;
use super::{RouteEnd, RouteFigures, RouteOptions, fast, ports};
use crate::config::RouteConfig;
use crate::feeds::{self, Feeds};
use crate::serve::server_options;
use crate::{DaemonError, Notice};

/// The parts of a running router that others use.
pub(super) struct Shared {
    pipeline: PipelineHandle,
    control: Arc<Control>,
    fast: Option<Arc<FastPath>>,
    /// Set before packets are forwarded, if there are rules.
    book: OnceLock<Book>,
}

impl Shared {
    pub(super) fn figures(&self) -> RouteFigures {
        RouteFigures {
            packets: self.pipeline.counters(),
            control: self.control.figures(),
            fast: fast::counts(self.fast.as_ref()),
            rules: self.book.get().map(Book::counted),
        }
    }

    pub(super) fn obey(&self, notice: Notice) {
        match notice {
            Notice::Stop => self.pipeline.stop(),
            // Without rules there is nothing to read again.
            Notice::Reload => self.book.get().into_iter().for_each(Book::reload),
        }
    }
}

/// What the keeper of the ports needs.
struct Kept<'p> {
    config: RouteConfig,
    pool: &'p Pool,
    interfaces: Vec<u32>,
    xdp: Arc<XdpPorts>,
    states: Arc<PortStates>,
    waker: Waker,
    wakes: Receiver<()>,
}

/// A router that is about to forward.
pub(super) struct Prepared<'p> {
    pub(super) shared: Arc<Shared>,
    pipeline: Pipeline<'p>,
    stages: Vec<Box<dyn Stage>>,
    server: Option<Server>,
    feeds: Option<Feeds>,
    publisher: Option<Publisher>,
    kept: Kept<'p>,
    /// The data that the stages read.
    _tables: Tables,
}

impl<'p> Prepared<'p> {
    /// Opens ports and tables, and starts everything but the pipeline.
    pub(super) fn open(mut options: RouteOptions, pool: &'p Pool) -> Result<Self, DaemonError> {
        let fast = fast::open(&options.config)?;
        let (ports, xdp) = ports::open(
            &options.config.ports,
            pool,
            fast.as_ref(),
            options.config.pipeline.offloads,
        )?;
        let (xdp, (waker, wakes)) = (Arc::new(xdp), Waker::new());
        let states = Arc::new(PortStates::new(ports.iter().map(|port| port.name.clone())));
        let control =
            Arc::new(ports::control(&options.config, &ports, Arc::clone(&xdp), waker.clone())?);
        let interfaces: Vec<u32> = ports.iter().map(|port| port.interface).collect();
        let tables = Tables::open(&mut options, interfaces.len())?;
        let RouteOptions { config, wait, .. } = options;
        let attached = ports::attach(&config, ports)?;
        let pipeline = Pipeline::new(pool, attached, ports::options(&config))?;
        for (worker, core) in pipeline.workers() {
            let core = core.map_or("any core".to_owned(), |core| format!("core {core}"));
            info!("{worker}: {core}");
        }
        let book = OnceLock::new();
        let shared = Shared { pipeline: pipeline.handle(), control, fast, book };
        let shared = Arc::new(shared);
        let board = Arc::new(Board::default());
        let server = server(&config, &tables, &board, &shared, &states)?;
        let feeds = match &tables {
            Tables::Live(live, positions) => {
                Some(feed(&config, live, positions.clone(), &board, shared.pipeline.clone())?)
            }
            Tables::Static(..) => None,
        };
        if let (Some(longest), Some(live)) = (wait, tables.live()) {
            wait_for(&board, &live, longest)?;
        }
        let (stages, book) = tables.stages(&config, &shared.control, pipeline.lookups())?;
        if let Some(book) = book {
            shared.book.get_or_init(|| book);
        }
        let publish = |fast| fast::publish(&config, &shared.control, &tables, fast);
        let publisher = shared.fast.as_ref().map(publish).transpose()?;
        let kept = Kept { config, pool, interfaces, xdp, states, waker, wakes };
        Ok(Self { shared, pipeline, stages, server, feeds, publisher, kept, _tables: tables })
    }

    /// The addresses of the server.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.server.as_ref().map_or(Vec::new(), |server| server.addresses().to_vec())
    }

    /// Forwards until it is stopped, or nothing will ever come in again.
    pub(super) fn run(self) -> Result<RouteEnd, DaemonError> {
        let Self { shared, pipeline, stages, server, feeds, publisher, kept, _tables } = self;
        let Kept { config, pool, interfaces, xdp, states, waker, wakes } = kept;
        let resolver = shared.control.resolver();
        let want = |waiting: fibula_router::forward::Waiting| {
            resolver.want(waiting.port, waiting.next_hop);
        };
        let cut = OnceLock::new();
        let began = Instant::now();
        let parts = Parts {
            config: &config,
            pool,
            control: &shared.control,
            renewer: pipeline.renewer(),
            pipeline: pipeline.handle(),
            fast: shared.fast.clone(),
            xdp,
            states,
        };
        let sockets = Arc::clone(&parts.xdp);
        let is_over = AtomicBool::new(false);
        let ran = thread::scope(|scope| {
            let (keeper, is_over) = (Keeper::new(parts, &interfaces), &is_over);
            let keep = move || keeper.run(&wakes, || is_over.load(Ordering::Relaxed));
            let spawned =
                thread::Builder::new().name("fibula-ports".to_owned()).spawn_scoped(scope, keep);
            if let Err(error) = spawned {
                return Err(PipelineError::System(error));
            }
            let ran = pipeline.run(stages, &want, &|event| {
                if let Event::Over { port, error: Some(error), .. } = &event {
                    let _ = cut.set((port.clone(), error.to_string()));
                }
                match event {
                    // The interface is gone: the keeper reports it.
                    Event::Failed { error, .. } if error.kind() == ErrorKind::NotConnected => {
                        waker.wake();
                    }
                    event => log(event),
                }
            });
            is_over.store(true, Ordering::Relaxed);
            waker.wake();
            ran
        });
        sockets.close();
        let time = began.elapsed();
        let fed = feeds.map_or(Ok(0), Feeds::stop);
        if let Some(server) = server {
            server.stop();
        }
        drop(publisher);
        let figures = RouteFigures { packets: ran?, ..shared.figures() };
        let cut = cut.into_inner().map(|(port, error)| DaemonError::Capture { port, error });
        Ok(RouteEnd { figures, time, failure: fed.err().or(cut) })
    }
}

/// The server, if the configuration has one, with metrics of packets.
fn server(
    config: &RouteConfig,
    tables: &Tables,
    board: &Arc<Board>,
    shared: &Arc<Shared>,
    states: &Arc<PortStates>,
) -> Result<Option<Server>, DaemonError> {
    if config.feeds.http.is_none() {
        return Ok(None);
    }
    let mut options = server_options(&config.feeds)?;
    let counted = Arc::clone(shared);
    let more = move |text: &mut MetricsText| counted.figures().metrics(text);
    options.metrics = Some(MoreMetrics(Arc::new(more)));
    let states = Arc::clone(states);
    options.obstacle = Some(Obstacle(Arc::new(move || states.obstacle())));
    let live = match tables.live() {
        Some(live) => live,
        None => Arc::new(nothing()?),
    };
    Ok(Some(Server::start(live, Arc::clone(board), options)?))
}

/// A table without routes, for the server of a router whose table does not change.
fn nothing() -> Result<Live, DaemonError> {
    let options = LiveOptions::default();
    Ok(Live::start(Rib::default(), &[0], FibOptions::default(), options, |_| {})?)
}

/// Starts the feeds. Without them the table grows old: at their end the router ends rather than forward by it.
fn feed(
    config: &RouteConfig,
    live: &Arc<Live>,
    positions: Positions,
    board: &Arc<Board>,
    pipeline: PipelineHandle,
) -> Result<Feeds, DaemonError> {
    let opened = feeds::open(&config.feeds, board, positions)?;
    opened.start(&config.feeds, live, move || pipeline.stop())
}

/// Waits until the sources have sent everything and readers see it.
fn wait_for(board: &Board, live: &Live, longest: Duration) -> Result<(), DaemonError> {
    let began = Instant::now();
    loop {
        let all = board.all();
        if !all.is_empty() && all.iter().all(|source| source.state == SourceState::Up) {
            live.flush()?;
            return Ok(());
        }
        if began.elapsed() >= longest {
            let what = "the sources did not send their whole tables in time: packets are forwarded by the routes so far";
            warn!("{what}");
            return Ok(());
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// One line an event.
fn log(event: Event) {
    match event {
        Event::Failed { port, error } => warn!("{port} failed and will be tried again: {error}"),
        Event::Recovered { port } => info!("{port} works again"),
        Event::Over { port, queue, error: None } => {
            info!("{port}: queue {queue} receives no more packets");
        }
        Event::Over { port, queue, error: Some(error) } => {
            error!("{port}: queue {queue} receives no more packets: {error}");
        }
        Event::NotPinned { worker, core } => warn!("cannot pin {worker} to core {core}"),
    }
}
