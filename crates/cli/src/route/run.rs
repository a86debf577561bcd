//! Opens ports, starts control, feeds, server and pipeline, waits, and stops everything.

use std::io::Write as _;
use std::net::Ipv4Addr;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use fibula_feeds::net::{Handle as FeedsHandle, Hub, speaking};
use fibula_feeds::{Board, FeedError, Positions, SourceState};
use fibula_fib::FibOptions;
use fibula_rib::{Live, LiveOptions, Rib};
use fibula_router::control::{Control, ControlOptions, Happened, PortLink};
use fibula_router::pipeline::{Attached, Cores, Event, Handle, Shape as Threads, Snapshot};
use fibula_router::port::afxdp::AfXdp;
use fibula_router::port::host::{self, Host};
use fibula_router::port::xdp::FastPath;
use fibula_router::port::{Port, Queue, afpacket, afxdp, memory, pcap, tap};
use fibula_router::{Pipeline, PipelineOptions, Pool};
use fibula_server::{MetricsText, MoreMetrics, Server};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tracing::{error, info, warn};

use super::Args;
use super::config::{Config, PipelineConfig, Shape};
use super::dpdk;
use super::fast;
use super::kind::{Kind, interface_of};
use super::port::PortConfig;
use super::report::Counted;
use super::rules::Book;
use super::tables::Tables;
use crate::failure::{Failure, Outcome};
use crate::output::stdout;
use crate::serve::{run as serve, sources};

/// Forwards until a signal ends it, or nothing will ever come in again.
pub fn run(args: &Args, config: &Config) -> Result<Outcome, Failure> {
    // Without rules there is nothing to read again.
    let reloads = config.router.rules.as_ref().map(|_| SIGHUP);
    let mut signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(reloads))
        .map_err(|error| Failure::io("cannot wait for signals", &error))?;
    let front = dpdk::start(config)?;
    let pool = Pool::with_front(config.pipeline.slots, config.slot_bytes(), front);
    let fast = fast::open(config)?;
    let (ports, xdp) = open(&config.ports, &pool, fast.as_ref())?;
    let control = Arc::new(control(config, &ports, xdp)?);
    let interfaces: Vec<u32> = ports.iter().map(|port| port.interface).collect();
    let tables = Tables::of(args, config, &interfaces)?;
    let host = host(config);
    let attach = |(port, of): (_, &PortConfig)| {
        let host = match &of.port {
            Kind::Dpdk(device) => to_kernel(device)?,
            _ => host.as_ref().filter(|_| has_host(config, of)).map(Host::queue),
        };
        Ok(Attached { port, host })
    };
    let attached = ports.into_iter().zip(&config.ports).map(attach);
    let attached = attached.collect::<Result<_, Failure>>()?;
    let pipeline = Pipeline::new(&pool, attached, options(config)).map_err(Failure::new)?;
    let handle = pipeline.handle();
    for (worker, core) in pipeline.workers() {
        let core = core.map_or("any core".to_owned(), |core| format!("core {core}"));
        info!("{worker}: {core}");
    }
    let book: Arc<OnceLock<Book>> = Arc::default();
    let counted = {
        let (handle, control, fast) = (handle.clone(), Arc::clone(&control), fast.clone());
        let book = Arc::clone(&book);
        move || Counted {
            rules: book.get().map(Book::counted),
            packets: handle.snapshot(),
            control: control.figures(),
            fast: fast::counts(fast.as_ref()),
        }
    };
    let (board, live) = (Arc::new(Board::default()), tables.live());
    let server = match &config.feeds.http {
        Some(_) => {
            let mut options = serve::server_options(&config.feeds)?;
            let counted = counted.clone();
            let more = move |text: &mut MetricsText| counted().metrics(text);
            options.metrics = Some(MoreMetrics(Arc::new(more)));
            let live = match &live {
                Some(live) => Arc::clone(live),
                None => Arc::new(nothing()?),
            };
            Some(Server::start(live, Arc::clone(&board), options).map_err(Failure::new)?)
        }
        None => None,
    };
    let feeds = match &tables {
        Tables::Live(live, positions) => {
            Some(Feeds::start(config, live, positions, &board, handle.clone())?)
        }
        Tables::Static(..) => None,
    };
    if let (Some(seconds), Some(live)) = (args.wait, &live) {
        wait(&board, live, Duration::from_secs(seconds))?;
    }
    let (stages, made) = tables.stages(config, &control, pipeline.lookups())?;
    if let Some(made) = made {
        book.get_or_init(|| made);
    }
    let publisher =
        fast.as_ref().map(|fast| fast::publish(config, &control, &tables, fast)).transpose()?;
    let (signalled, (ended, end)) = (signals.handle(), mpsc::channel::<()>());
    let cut = OnceLock::new();
    let began = Instant::now();
    let resolver = control.resolver();
    let ran = thread::scope(|scope| {
        let (stop, book) = (handle.clone(), Arc::clone(&book));
        scope.spawn(move || {
            for signal in signals.forever() {
                match book.get() {
                    Some(book) if signal == SIGHUP => book.reload(),
                    _ => {
                        info!("ends: signal {signal}");
                        break;
                    }
                }
            }
            stop.stop();
        });
        if let Some(seconds) = args.seconds {
            let (stop, time) = (handle.clone(), Duration::from_secs_f64(seconds));
            scope.spawn(move || {
                if end.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
                    stop.stop();
                }
            });
        }
        serve::ready();
        let want = |waiting: fibula_router::forward::Waiting| {
            resolver.want(waiting.port, waiting.next_hop);
        };
        let ran = pipeline.run(stages, &want, &|event| {
            if let Event::Over { port, error: Some(error), .. } = &event {
                let _ = cut.set(format!("{port}: {error}"));
            }
            report(event);
        });
        signalled.close();
        drop(ended);
        ran
    });
    let time = began.elapsed();
    let fed = feeds.map_or(Ok(()), Feeds::stop);
    if let Some(server) = server {
        server.stop();
    }
    drop(publisher);
    let packets: Snapshot = ran.map_err(Failure::new)?;
    let mut out = stdout();
    let (fast, rules) = (fast::counts(fast.as_ref()), book.get().map(Book::counted));
    Counted { packets, control: control.figures(), fast, rules }
        .print(&mut out, time, args.json)?;
    out.flush()?;
    fed?;
    match cut.into_inner() {
        Some(cut) => Err(Failure::new(cut)
            .hint("the packets before it were forwarded; those behind it were not read")),
        None => Ok(Outcome::Done),
    }
}

/// Opens the ports, in order.
fn open<'p>(
    configs: &[PortConfig],
    pool: &'p Pool,
    fast: Option<&Arc<FastPath>>,
) -> Result<(Vec<Port<'p>>, Vec<AfXdp>), Failure> {
    let (mut ports, mut xdp) = (Vec::new(), Vec::new());
    let with_sockets =
        configs.iter().filter(|config| matches!(config.port, Kind::AfXdp(_) | Kind::Xdp(_)));
    let sockets = afxdp::AfXdpOptions { ports: with_sockets.count() as u32, ..Default::default() };
    for (number, config) in configs.iter().enumerate() {
        let failed = |error: std::io::Error| {
            let (port, error) = (config.port.to_string(), error.to_string());
            // Most errors begin with the port's name.
            let what = error.strip_prefix(&format!("{port}: ")).unwrap_or(&error);
            Failure::new(format_args!("--port {port}: {what}"))
        };
        let queues = config.queues.unwrap_or(1);
        let mut port = match &config.port {
            Kind::Memory => generated(number, config, pool),
            Kind::Pcap { input, output } => {
                let pace = if config.times { pcap::Pace::Times } else { pcap::Pace::Full };
                let options = pcap::PcapOptions {
                    mac: config.mac(number),
                    mtu: config.mtu(),
                    input: input.clone(),
                    pace,
                    output: output.clone(),
                };
                pcap::open(&number.to_string(), &options).map_err(failed)?
            }
            Kind::AfPacket(name) => {
                let options = afpacket::AfPacketOptions { queues, ..Default::default() };
                afpacket::open(name, pool, &options).map_err(failed)?
            }
            Kind::AfXdp(name) => {
                let (port, attached) = afxdp::open(name, pool, &sockets).map_err(failed)?;
                xdp.push(attached);
                port
            }
            Kind::Xdp(name) => {
                let fast = fast.map(|fast| (fast, number as u16));
                let fast = fast.ok_or_else(|| Failure::new("no fast path"))?;
                let (port, attached) =
                    afxdp::open_fast(name, pool, &sockets, fast).map_err(failed)?;
                xdp.push(attached);
                port
            }
            Kind::Tap(name) => {
                let options = tap::TapOptions { queues, ..Default::default() };
                tap::open(name, pool, &options).map_err(failed)?
            }
            Kind::Dpdk(device) => dpdk::open(device, number, config, pool).map_err(failed)?,
        };
        port.interface = config.interface(number, port.interface);
        ports.push(port);
    }
    Ok((ports, xdp))
}

/// Whether the kernel is to have packets of a port that are for it. It does not see what XDP sockets take. It forwards by its
/// main table: packets of another VRF must not come there.
fn has_host(config: &Config, port: &PortConfig) -> bool {
    let vrf = port.vrf.as_deref().or(config.router.vrf.as_deref());
    matches!(port.port, Kind::AfXdp(_) | Kind::Xdp(_)) && !vrf.is_some_and(|vrf| vrf.contains('/'))
}

/// The way into the kernel, if a port needs one. Without it the router forwards what its ports can.
fn host(config: &Config) -> Option<Host> {
    config.ports.iter().find(|port| has_host(config, port))?;
    match host::open() {
        Ok(host) => {
            info!("{}: packets of routes over interfaces that are not ports", host.name());
            if let Some(obstacle) = host.obstacle() {
                warn!("{obstacle}");
            }
            Some(host)
        }
        Err(error) => {
            warn!("packets of routes over interfaces that are not ports are dropped: {error}");
            None
        }
    }
}

/// What gives a DPDK device's packets for this machine to its kernel, where that sees none of them.
fn to_kernel<'p>(device: &str) -> Result<Option<Queue<'p>>, Failure> {
    if !device.starts_with("net_af_xdp") {
        return Ok(None);
    }
    let queue = afxdp::to_kernel(interface_of(device).unwrap_or_default());
    queue.map(Some).map_err(|error| Failure::new(format_args!("--port dpdk:{device}: {error}")))
}

/// Flows that a memory port generates.
const FLOWS: usize = 65_536;

/// A port that receives packets to random IPv4 addresses, for ever.
fn generated<'p>(number: usize, config: &PortConfig, pool: &'p Pool) -> Port<'p> {
    let mac = config.mac(number);
    let mut state = number as u64 + 1;
    let mut next = || {
        // Of 1.0.0.0 to 223.255.255.255, without 127.0.0.0/8 and what is next to it.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let [a, b, c, d] = ((state >> 32) as u32).to_be_bytes();
        Ipv4Addr::new(if a % 222 + 1 == 127 { 128 } else { a % 222 + 1 }, b, c, d).into()
    };
    let addresses: Vec<_> = (0..FLOWS).map(|_| next()).collect();
    let flows = memory::Flows::udp([2, 0, 0, 0, 0xff, 0], mac, 60, addresses);
    let options = memory::MemoryOptions { mac, queues: 1, flows: Arc::new(flows), packets: None };
    let (mut port, _) = memory::open(&number.to_string(), pool, &options);
    port.mtu = config.mtu().min(port.mtu);
    port
}

fn control(config: &Config, ports: &[Port<'_>], xdp: Vec<AfXdp>) -> Result<Control, Failure> {
    let links: Vec<PortLink> = ports.iter().map(PortLink::from).collect();
    let fixed =
        config.ports.iter().zip(&links).flat_map(|(port, link)| port.messages(link)).collect();
    let kernel = config.ports.iter().any(|port| port.port.is_of_system());
    let options = ControlOptions { kernel, fixed, ..ControlOptions::default() };
    let events = move |event: Happened| match &event {
        Happened::Own(addresses) => {
            for port in &xdp {
                if let Err(error) = port.set_local(addresses) {
                    warn!("the machine's own addresses are not known to a port: {error}");
                }
            }
        }
        Happened::Port { .. } => info!("{event}"),
        _ => warn!("{event}"),
    };
    Control::start(links, options, events).map_err(Failure::new)
}

fn options(config: &Config) -> PipelineOptions {
    let PipelineConfig { shape, burst, cores, .. } = &config.pipeline;
    PipelineOptions {
        shape: match *shape {
            Shape::Fused(threads) => Threads::Fused { threads },
            Shape::Stages(receive, lookup, transmit) => {
                Threads::Staged { receive, lookup, transmit }
            }
        },
        burst: *burst,
        cores: cores.clone().map_or(Cores::Auto, Cores::List),
        ..PipelineOptions::default()
    }
}

/// The thread that feeds a live table.
struct Feeds {
    handle: FeedsHandle,
    thread: thread::JoinHandle<Result<u64, FeedError>>,
}

impl Feeds {
    fn start(
        config: &Config,
        live: &Arc<Live>,
        positions: &Positions,
        board: &Arc<Board>,
        pipeline: Handle,
    ) -> Result<Self, Failure> {
        let mut hub = Hub::new(Arc::clone(board), serve::report)
            .map_err(|error| Failure::io("cannot run the feeds", &error))?;
        let after = |name: &str| positions.get(name).map(str::to_owned);
        for source in sources::all(&config.feeds, after)? {
            hub.add(source).map_err(Failure::new)?;
        }
        let handle = hub.handle();
        let (live, feeds, positions) = (Arc::clone(live), config.feeds.clone(), positions.clone());
        let adopted = live.with_rib(speaking);
        let run = move || {
            let fed = serve::feed(hub, &live, &feeds, &positions, &adopted);
            // Without feeds the table grows old: the router ends rather than forward by it.
            pipeline.stop();
            fed
        };
        let thread = thread::Builder::new()
            .name("fibula-feeds".to_owned())
            .spawn(run)
            .map_err(|error| Failure::io("no thread for the feeds", &error))?;
        Ok(Self { handle, thread })
    }

    fn stop(self) -> Result<(), Failure> {
        self.handle.stop();
        match self.thread.join() {
            Ok(fed) => fed.map(|_| ()).map_err(Failure::from),
            Err(_) => Err(Failure::new("the feeds' thread panicked")),
        }
    }
}

/// Waits until the sources have said everything and readers see it.
fn wait(board: &Board, live: &Live, longest: Duration) -> Result<(), Failure> {
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

/// A table without routes, for a server beside a table that does not change.
fn nothing() -> Result<Live, Failure> {
    let options = LiveOptions::default();
    Ok(Live::start(Rib::default(), &[0], FibOptions::default(), options, |_| {})?)
}

/// One line an event.
fn report(event: Event) {
    match event {
        Event::Failed { port, error } => warn!("{port} fails, and is tried again: {error}"),
        Event::Recovered { port } => info!("{port} works again"),
        Event::Over { port, queue, error: None } => {
            info!("{port}: nothing more comes in by queue {queue}");
        }
        Event::Over { port, queue, error: Some(error) } => {
            error!("{port}: nothing more comes in by queue {queue}: {error}");
        }
        Event::NotPinned { worker, core } => warn!("{worker} cannot run on core {core} alone"),
    }
}
