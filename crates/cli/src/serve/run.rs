//! Starts everything, waits for signals, stops everything.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use fibula_feeds::net::{Happened, Hub, Report, speaking};
use fibula_feeds::{Board, Checkpoints, Clock, FeedError, LiveFeed, Positions, SystemClock};
use fibula_fib::FibOptions;
use fibula_rib::{Event, Limits, Live, LiveOptions, Pacing, Preference, Rib};
use fibula_server::{Server, ServerOptions, TlsFiles};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tracing::{debug, error, info, warn};

use super::config::{Checkpoint, Config, Http};
use super::{Args, sources};
use crate::failure::{Failure, Outcome};
use crate::secret::first_line;

/// Serves until a signal ends it.
pub fn run(args: &Args, config: Config) -> Result<Outcome, Failure> {
    let server_options = server_options(&config)?;
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])
        .map_err(|error| Failure::io("cannot wait for signals", &error))?;
    let (rib, positions) = table(&config)?;
    let adopted = speaking(&rib);
    let live = Arc::new(start(&config, rib)?);
    let board = Arc::new(Board::default());
    let mut hub = Hub::new(Arc::clone(&board), report)
        .map_err(|error| Failure::io("cannot run the feeds", &error))?;
    for source in sources::all(&config, |name| positions.get(name).map(str::to_owned))? {
        hub.add(source).map_err(Failure::new)?;
    }
    let server = Server::start(Arc::clone(&live), board, server_options).map_err(Failure::new)?;
    let handle = hub.handle();
    // The feeds' thread ends the wait for signals if it ends first.
    let (waker, (ended, end)) = (signals.handle(), mpsc::channel());
    let feed = {
        let (live, config) = (Arc::clone(&live), config.clone());
        let run = move || {
            let fed = feed(hub, &live, &config, &positions, &adopted);
            let _ = ended.send(fed);
            waker.close();
        };
        thread::Builder::new()
            .name("fibula-feeds".to_owned())
            .spawn(run)
            .map_err(|error| Failure::io("no thread for the feeds", &error))?
    };
    ready();
    for signal in signals.forever() {
        if signal != SIGHUP {
            info!("ends: signal {signal}");
            break;
        }
        reload(args, &config, &handle);
    }
    handle.stop();
    server.stop();
    let _ = feed.join();
    // The system takes memory back at once; a table of a million routes, freed piece by piece, takes tenths of a second.
    std::mem::forget(live);
    match end.recv() {
        Ok(Ok(checkpoints)) => {
            info!(checkpoints, "ended");
            Ok(Outcome::Done)
        }
        Ok(Err(failed)) => Err(failed.into()),
        Err(_) => Err(Failure::new("the feeds' thread panicked")),
    }
}

/// The table of the checkpoint, or an empty one, and how far its folders have come.
pub fn table(config: &Config) -> Result<(Rib, Positions), Failure> {
    let limits = Limits { peer_paths: config.limits.peer_routes, paths: config.limits.routes };
    check_checkpoint(config)?;
    let file = config.checkpoint.as_ref().map(|checkpoint| &*checkpoint.file);
    let (mut rib, positions) = match file.filter(|file| file.exists()) {
        Some(file) => restored(file)?,
        None => (Rib::default(), Positions::default()),
    };
    rib.set_limits(limits);
    if let Some(first) = config.sources().first() {
        // A checkpoint has this one as its table, and keeps it.
        rib.name_global(&first.table);
    }
    Ok((rib, positions))
}

/// Whether a checkpoint can be where it is to be: better now than when the first one is due.
pub fn check_checkpoint(config: &Config) -> Result<(), Failure> {
    let Some(Checkpoint { file, .. }) = &config.checkpoint else { return Ok(()) };
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            let (file, folder) = (file.display(), folder.display());
            let what = Failure::new(format_args!("checkpoint {file}: there is no folder {folder}"));
            Err(what.hint("make it, or name another file"))
        }
        _ => Ok(()),
    }
}

fn restored(file: &Path) -> Result<(Rib, Positions), Failure> {
    let began = Instant::now();
    let restored = Rib::open(file, Preference::default()).map_err(|error| {
        Failure::from(error).hint("move the file away to begin with an empty table")
    })?;
    let paths = restored.rib.peers().len();
    let (file, time) = (file.display(), began.elapsed());
    info!(%file, peers = paths, "continues from {file}, read in {time:.1?}");
    Ok((restored.rib, Positions::read(&restored.position)))
}

pub fn start(config: &Config, rib: Rib) -> Result<Live, Failure> {
    let options = LiveOptions {
        pacing: Pacing { bucket: config.tables.bucket.0, ..Pacing::default() },
        history: config.tables.history,
        tables: config.limits.tables,
        ..LiveOptions::default()
    };
    let engines = FibOptions::default().engines(config.tables.engine.iter().map(String::as_str));
    let mut vrfs: Vec<_> = rib.vrfs().collect();
    if !vrfs.contains(&0) {
        vrfs.insert(0, 0);
    }
    vrfs.truncate(config.limits.tables);
    let events = |event: Event| match event {
        Event::Engine { .. } => debug!("{event}"),
        Event::Difference { .. } | Event::Failed { .. } => error!("{event}"),
        _ => warn!("{event}"),
    };
    Ok(Live::start(rib, &vrfs, engines, options, events)?)
}

/// Runs the feeds until they are stopped; says how many checkpoints were written.
pub fn feed(
    mut hub: Hub,
    live: &Live,
    config: &Config,
    positions: &Positions,
    adopted: &[(u32, fibula_rib::Peer)],
) -> Result<u64, FeedError> {
    let clock = SystemClock::default();
    let checkpoints = config.checkpoint.as_ref().map(|checkpoint| {
        let position = positions.to_string();
        let failed = |event: fibula_feeds::Event| warn!("{event}");
        Checkpoints::new(&checkpoint.file, checkpoint.every.0, position, clock.now(), failed)
    });
    let mut to =
        LiveFeed::with_clock(live, clock).with_checkpoints(checkpoints).at(positions.clone());
    hub.adopt(adopted, &mut to)?;
    hub.run(&mut to)?;
    to.finish()
}

/// One line an event.
pub fn report(report: Report) {
    let source = &*report.source;
    match &report.what {
        Happened::Listening { address } => info!(source, %address, "{report}"),
        Happened::Connected
        | Happened::Closed { .. }
        | Happened::Taken { .. }
        | Happened::Ended => info!(source, "{report}"),
        Happened::Said(fibula_feeds::Event::Established { .. }) => info!(source, "{report}"),
        Happened::Said(fibula_feeds::Event::Swept { .. }) => debug!(source, "{report}"),
        _ => warn!(source, "{report}"),
    }
}

/// Reads the configuration again. If something is wrong with it, or cannot be had, nothing changes.
fn reload(args: &Args, began: &Config, handle: &fibula_feeds::net::Handle) {
    let config = args.config();
    let sources =
        config.and_then(|config| Ok((sources::all(&config, |_| None)?, config.restarts(began))));
    let (sources, restarts) = match sources {
        Ok(read) => read,
        Err(failure) => return error!("the configuration is as it was: {failure}"),
    };
    match handle.reload(sources) {
        Ok(refused) if refused.is_empty() => info!("configured again"),
        Ok(refused) => {
            for refused in refused {
                error!("the configuration is as it was: {refused}");
            }
            return;
        }
        Err(ended) => return error!("the configuration is as it was: {ended}"),
    }
    if !restarts.is_empty() {
        warn!("changed, and used after a restart alone: {}", restarts.join(", "));
    }
}

/// How the server behaves, the files that it needs read.
pub fn server_options(config: &Config) -> Result<ServerOptions, Failure> {
    let http = config.http.clone().unwrap_or_default();
    let Http { listen, tls_certificate, tls_key, token_file, hosts, threads, lag, .. } = http;
    let mut options = ServerOptions::default();
    options.listen = vec![listen.into_inner()];
    options.tls =
        tls_certificate.zip(tls_key).map(|(certificates, key)| TlsFiles { certificates, key });
    options.token = token_file.as_deref().map(|file| first_line("token-file", file)).transpose()?;
    options.hosts = hosts;
    options.threads = threads;
    options.longest_lag = lag.0;
    options.limits.connections = http.connections;
    options.limits.body_bytes = http.body_bytes;
    Ok(options)
}

/// Tells systemd that the server answers, if systemd asked for it (sd_notify(3)).
#[cfg(target_os = "linux")]
pub fn ready() {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&name),
    };
    let sent =
        UnixDatagram::unbound().and_then(|socket| socket.send_to_addr(b"READY=1", &address?));
    if let Err(error) = sent {
        warn!("cannot tell systemd that the server answers: {error}");
    }
}

#[cfg(not(target_os = "linux"))]
pub fn ready() {}
