//! A server that follows routing daemons and answers over HTTP, as a value.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use fibula_feeds::Board;
use fibula_fib::FibOptions;
use fibula_rib::Live;
use fibula_server::{
    ActiveAlarms, AsNames, FlowTops, MetricsText, MoreMetrics, Server, ServerOptions, TlsFiles,
};
use tracing::{error, info, warn};

use crate::alarms::{AlarmDesk, Webhook};
use crate::config::{ConfigError, Http, Problem, ServeConfig, text_of};
use crate::feeds::{self, Feeds};
#[cfg(target_os = "linux")]
use crate::flows::{CurrentFlows, LiveFlows, OwnFiles};
use crate::history::RouteRecorder;
use crate::secret::first_line;
use crate::validator::{self, Validator};
use crate::{DaemonError, DaemonHandle, Notice, live, sources};

/// Maximum number of bytes of a file with names of ASes.
const LONGEST_NAMES: u64 = 64 << 20;

/// Reads the configuration again.
type Reread = dyn Fn() -> Result<ServeConfig, ConfigError> + Send + Sync;

/// The options of a server.
pub struct ServeOptions {
    config: ServeConfig,
    fib: FibOptions,
    reread: Option<Box<Reread>>,
}

impl ServeOptions {
    /// A server with this configuration.
    pub fn new(config: ServeConfig) -> Self {
        Self { config, fib: FibOptions::default(), reread: None }
    }

    /// The options of its tables. The configuration has the names of the engines.
    #[must_use]
    pub fn tables(self, fib: FibOptions) -> Self {
        Self { fib, ..self }
    }

    /// Calls `reread` for the configuration at [`Notice::Reload`]. Without it, such notices are ignored.
    #[must_use]
    pub fn rereading(
        self,
        reread: impl Fn() -> Result<ServeConfig, ConfigError> + Send + Sync + 'static,
    ) -> Self {
        Self { reread: Some(Box::new(reread)), ..self }
    }
}

/// A server that runs. Dropping it stops it.
pub struct Serve {
    shared: Arc<Shared>,
    feeds: Feeds,
    server: Server,
    live: Arc<Live>,
    board: Arc<Board>,
    ended: Receiver<()>,
    _alarms: Option<AlarmDesk>,
    _validator: Option<Validator>,
    _history: Option<RouteRecorder>,
    /// Dropped last: it writes what was received.
    #[cfg(target_os = "linux")]
    _flows: Option<LiveFlows>,
}

/// The state that notices use.
struct Shared {
    /// The configuration of the start.
    config: ServeConfig,
    reread: Option<Box<Reread>>,
    feeds: fibula_feeds::net::HubHandle,
    end: Mutex<Sender<()>>,
}

/// The end of a server.
pub struct ServeEnd {
    /// How many checkpoints were written.
    pub checkpoints: u64,
    /// The table. A process that ends can forget it: to free a million routes piece by piece takes tenths of a second.
    pub live: Arc<Live>,
}

/// The result of a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reloaded {
    /// The keys that changed and take effect only after a restart.
    pub restarts: Vec<&'static str>,
}

impl Serve {
    /// Opens the table and the sources, and starts to follow and to answer.
    ///
    /// # Errors
    /// If the configuration or a file that it names is wrong, an address cannot be listened on, no engine can hold the
    /// table of the checkpoint, or the system has no threads.
    pub fn start(options: ServeOptions) -> Result<Self, DaemonError> {
        let ServeOptions { config, fib, reread } = options;
        let mut server = server_options(&config)?;
        server.vrps = config.rpki.as_ref().map(|_| Arc::default());
        let vrps = server.vrps.clone();
        let relations = Arc::clone(&server.relations);
        let rules = config.alarm_rules()?;
        let webhook = config.webhook.as_ref().map(Webhook::new).transpose()?;
        let alarms = (!rules.is_empty()).then(|| AlarmDesk::shared(rules, webhook.is_some()));
        if let Some(alarms) = &alarms {
            let (counted, listed) = (Arc::clone(alarms), Arc::clone(alarms));
            add_metrics(&mut server, move |text| counted.metrics(text));
            server.alarms = Some(ActiveAlarms(Arc::new(move || listed.active())));
        }
        let history = config.history.as_ref().map(|_| Arc::<crate::history::Shared>::default());
        if let Some(history) = &history {
            let counted = Arc::clone(history);
            add_metrics(&mut server, move |text| counted.metrics(text));
            server.history = Some(history.on_disk());
            server.obstacle = Some(history.obstacle());
        }
        #[cfg(target_os = "linux")]
        let current = config.flows.as_ref().map(CurrentFlows::new);
        #[cfg(target_os = "linux")]
        if let Some(current) = &current {
            let (counted, top) = (current.clone(), current.clone());
            add_metrics(&mut server, move |text| counted.metrics(text));
            let answer = move |by: Option<&str>, minutes, limit| top.top(by, minutes, limit);
            server.flows = current.has_top().then(|| FlowTops(Arc::new(answer)));
        }
        let (live, positions) = live::start(&config, &fib)?;
        let (live, board) = (Arc::new(live), Arc::new(Board::default()));
        let feeds = feeds::open(&config, &board, positions)?;
        let server = Server::start(Arc::clone(&live), Arc::clone(&board), server)?;
        let validator = match (&config.rpki, &vrps) {
            (Some(rpki), Some(vrps)) => Some(Validator::start(rpki, vrps, &live)?),
            _ => None,
        };
        // Before the first change, so that none is missed.
        let recorded = history.zip(config.history.as_ref());
        let start = |(shared, config)| RouteRecorder::start(shared, config, &live);
        let history = recorded.map(start).transpose()?;
        let rpki = vrps.map(|vrps| (vrps, relations));
        let start = |shared| AlarmDesk::start(shared, &live, &board, rpki, webhook);
        let alarms = alarms.map(start).transpose()?;
        #[cfg(target_os = "linux")]
        let flows = match (&config.flows, current) {
            (Some(flows), Some(current)) => {
                Some(LiveFlows::start(flows, current, server.copies())?)
            }
            _ => None,
        };
        let (end, ended) = mpsc::channel();
        let fed = end.clone();
        let feeds = feeds.start(&config, &live, move || {
            // Nobody waits if the value was dropped.
            let _ = fed.send(());
        })?;
        let (end, handle) = (Mutex::new(end), feeds.handle());
        let shared = Arc::new(Shared { config, reread, feeds: handle, end });
        Ok(Self {
            shared,
            feeds,
            server,
            live,
            board,
            ended,
            _alarms: alarms,
            _validator: validator,
            _history: history,
            #[cfg(target_os = "linux")]
            _flows: flows,
        })
    }

    /// Checks the files that a configuration names and [`Serve::start`] reads: secrets, certificates, relations, names,
    /// own tables for flows, the checkpoint's folder.
    ///
    /// # Errors
    /// As [`Serve::start`].
    pub fn check(config: &ServeConfig) -> Result<(), DaemonError> {
        sources::all(config, |_| None)?;
        config.alarm_rules()?;
        config.webhook.as_ref().map(Webhook::new).transpose()?;
        if let Some(checkpoint) = &config.checkpoint {
            checkpoint.check_folder()?;
        }
        if let Some(tls) = server_options(config)?.tls {
            tls.check()?;
        }
        #[cfg(target_os = "linux")]
        if let Some(flows) = &config.flows {
            OwnFiles::read(flows)?;
        }
        Ok(())
    }

    /// The addresses where it answers, with the ports that the system chose for port 0.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.server.addresses()
    }

    /// The live table.
    pub fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// The states of the sources.
    pub fn board(&self) -> &Arc<Board> {
        &self.board
    }

    /// Notifies the server from another thread.
    pub fn handle(&self) -> DaemonHandle {
        let shared = Arc::clone(&self.shared);
        DaemonHandle::new(move |notice| shared.obey(notice))
    }

    /// Notifies the server.
    pub fn notify(&self, notice: Notice) {
        self.shared.obey(notice);
    }

    /// Replaces the sources by those of this configuration. Sources whose settings are unchanged continue with their
    /// connections.
    ///
    /// # Errors
    /// If a source cannot be run, or the feeds have ended. Then nothing changes.
    pub fn reload(&self, config: &ServeConfig) -> Result<Reloaded, DaemonError> {
        self.shared.reload(config)
    }

    /// Waits until the server is [stopped](Notice::Stop) or its feeds end, and ends it.
    ///
    /// # Errors
    /// If the feeds ended with an error, or the last checkpoint cannot be written.
    pub fn wait(self) -> Result<ServeEnd, DaemonError> {
        // It cannot fail: the shared part has a sender.
        let _ = self.ended.recv();
        self.shared.feeds.stop();
        self.server.stop();
        let checkpoints = self.feeds.stop()?;
        info!(checkpoints, "ended");
        Ok(ServeEnd { checkpoints, live: self.live })
    }

    /// Stops the server, and waits for its end.
    ///
    /// # Errors
    /// As [`Serve::wait`].
    pub fn stop(self) -> Result<ServeEnd, DaemonError> {
        self.notify(Notice::Stop);
        self.wait()
    }
}

impl Shared {
    fn obey(&self, notice: Notice) {
        match (notice, &self.reread) {
            (Notice::Stop, _) => {
                // It may have ended already.
                let _ = self.end.lock().unwrap_or_else(PoisonError::into_inner).send(());
            }
            (Notice::Reload, None) => {}
            (Notice::Reload, Some(reread)) => {
                let reloaded = reread().map_err(DaemonError::from);
                match reloaded.and_then(|config| self.reload(&config)) {
                    Ok(Reloaded { restarts }) => {
                        info!("reloaded the configuration");
                        if !restarts.is_empty() {
                            let keys = restarts.join(", ");
                            warn!("changed, but used only after a restart: {keys}");
                        }
                    }
                    Err(DaemonError::Refused(all)) => {
                        all.iter().for_each(|one| error!("the configuration is unchanged: {one}"));
                    }
                    Err(failed) => error!("the configuration is unchanged: {failed}"),
                }
            }
        }
    }

    fn reload(&self, config: &ServeConfig) -> Result<Reloaded, DaemonError> {
        let sources = sources::all(config, |_| None)?;
        let restarts = config.restarts(&self.config);
        match self.feeds.reload(sources) {
            Ok(refused) if refused.is_empty() => Ok(Reloaded { restarts }),
            Ok(refused) => Err(DaemonError::Refused(refused)),
            Err(_) => Err(DaemonError::Ended),
        }
    }
}

impl fmt::Debug for Serve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serve").field("addresses", &self.addresses()).finish_non_exhaustive()
    }
}

impl fmt::Debug for ServeEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServeEnd").field("checkpoints", &self.checkpoints).finish_non_exhaustive()
    }
}

/// Adds metrics behind those that were added before.
fn add_metrics(
    server: &mut ServerOptions,
    more: impl Fn(&mut MetricsText) + Send + Sync + 'static,
) {
    let before = server.metrics.take();
    server.metrics = Some(MoreMetrics(Arc::new(move |text| {
        if let Some(MoreMetrics(before)) = &before {
            before(text);
        }
        more(text);
    })));
}

/// The options of the server, with the files that they need read.
pub(crate) fn server_options(config: &ServeConfig) -> Result<ServerOptions, ConfigError> {
    let http = config.http.clone().unwrap_or_default();
    let Http {
        listen, tls_certificate, tls_key, token_file, hosts, threads, lag, as_names, ..
    } = http;
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
    options.as_names = as_names.as_deref().map(names_of).transpose()?;
    if let Some(rpki) = &config.rpki {
        options.relations = Arc::new(validator::relations(rpki)?);
    }
    Ok(options)
}

/// The names of ASes in a file.
fn names_of(file: &Path) -> Result<Arc<AsNames>, ConfigError> {
    let names = text_of(file, LONGEST_NAMES)
        .map_err(|error| Problem::Unreadable { setting: "as-names", error })
        .and_then(|text| AsNames::parse(&text).map_err(Problem::AsNames));
    names.map(Arc::new).map_err(|problem| ConfigError::from(problem).in_file(file))
}
