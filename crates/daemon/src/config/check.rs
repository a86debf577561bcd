//! Checks of a configuration.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use toml::Spanned;

use super::text::{self, Text};
use super::{
    Bgp, ConfigError, ConfiguredSource, Http, Problem, Ris, Rpki, ServeConfig, SourceConfig,
    SourceProblem,
};

/// A problem, and where it is in the file, if it is there.
pub(super) struct Fault {
    at: Option<Range<usize>>,
    problem: Box<Problem>,
}

impl Fault {
    /// A problem at these bytes of the text.
    pub(super) fn at(at: Range<usize>, problem: Problem) -> Self {
        Self { at: Some(at), problem: problem.into() }
    }

    pub(super) fn problem(self) -> Problem {
        *self.problem
    }
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        Self { at: None, problem: problem.into() }
    }
}

impl ServeConfig {
    /// Reads the file.
    ///
    /// # Errors
    /// The problem, with the file and the line.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        Self::parse(&text::read(path)?, &path.display().to_string())
    }

    /// The configuration in the text of a file with this name.
    ///
    /// # Errors
    /// As [`ServeConfig::read`].
    pub fn parse(text: &str, name: &str) -> Result<Self, ConfigError> {
        let text = Text { text, name, page: "docs/serve.md" };
        text.parse::<Self>()?.checked_in(&text)
    }

    /// Checks the whole, for errors with the lines of the file that it was read from.
    pub(super) fn checked_in(self, text: &Text<'_>) -> Result<Self, ConfigError> {
        match self.check() {
            Ok(()) => Ok(self),
            Err(Fault { at, problem }) => Err(text.error(at, *problem)),
        }
    }

    /// Checks the whole configuration, with the settings that a program added to the file.
    ///
    /// # Errors
    /// The problem.
    pub fn checked(self) -> Result<Self, ConfigError> {
        match self.check() {
            Ok(()) => Ok(self),
            Err(Fault { problem, .. }) => Err((*problem).into()),
        }
    }

    /// The sources, in the order of the kinds and of the file.
    pub fn sources(&self) -> Vec<ConfiguredSource> {
        self.spanned().into_iter().map(|(source, _)| source).collect()
    }

    fn spanned(&self) -> Vec<(ConfiguredSource, Option<Range<usize>>)> {
        let mut all = Vec::new();
        macro_rules! add {
            ($($list:ident $kind:ident),*) => {$(
                for one in &self.$list {
                    let mut one = one.clone();
                    let span = one.name.as_ref().map(Spanned::span);
                    let name = one.name.take().map(Spanned::into_inner);
                    let name = name.unwrap_or_else(|| stringify!($list).to_owned());
                    let table = one.table.take().unwrap_or_else(|| name.clone());
                    all.push((ConfiguredSource { name, table, config: SourceConfig::$kind(one) }, span));
                }
            )*};
        }
        add!(fpm Fpm, bmp Bmp, bgp Bgp, kernel Kernel, ris Ris, mrt Mrt);
        all
    }

    /// The keys whose values differ from those of a server that runs, and that take effect only after a restart.
    #[cfg(unix)]
    pub(crate) fn restarts(&self, running: &Self) -> Vec<&'static str> {
        let http = |config: &Self| config.http.clone().unwrap_or_default();
        let (new, old) = (&self.tables, &running.tables);
        let (limits, before) = (&self.limits, &running.limits);
        let differ = [
            ("http", http(self) != http(running)),
            ("checkpoint", self.checkpoint != running.checkpoint),
            ("rpki", self.rpki != running.rpki),
            ("alarm", self.alarm != running.alarm),
            ("webhook", self.webhook != running.webhook),
            ("history", self.history != running.history),
            #[cfg(target_os = "linux")]
            ("flows", self.flows != running.flows),
            ("tables.engine", new.engine != old.engine),
            ("tables.bucket", new.bucket != old.bucket),
            ("tables.history", new.history != old.history),
            ("limits.peer-routes", limits.peer_routes != before.peer_routes),
            ("limits.routes", limits.routes != before.routes),
            ("limits.peers", limits.peers != before.peers),
            ("limits.tables", limits.tables != before.tables),
        ];
        differ.into_iter().filter_map(|(key, differs)| differs.then_some(key)).collect()
    }

    fn check(&self) -> Result<(), Fault> {
        let (mut names, mut addresses) = (HashSet::new(), HashMap::new());
        for (source, at) in self.spanned() {
            let checked = check_source(&source, &mut names, &mut addresses);
            checked.map_err(|problem| Fault { at, problem: problem.into() })?;
        }
        if let Some(http) = &self.http {
            check_http(http, &addresses)?;
        }
        if let Some(rpki) = &self.rpki {
            check_rpki(rpki)?;
        }
        self.check_alarms()?;
        #[cfg(target_os = "linux")]
        self.check_flows()?;
        self.check_zeros()?;
        match self.tables.engine.is_empty() {
            true => Err(Problem::NoEngine.into()),
            false => Ok(()),
        }
    }
}

impl ServeConfig {
    /// The longest time for which a source keeps the routes of a lost connection.
    pub(crate) fn longest_hold(&self) -> Duration {
        let streams = self.fpm.iter().chain(&self.bmp).map(|stream| stream.hold);
        let neighbours = self.bgp.iter().flat_map(|bgp| &bgp.neighbour).map(|of| of.hold);
        let all = streams.chain(neighbours).chain(self.ris.iter().map(|ris| ris.hold));
        all.max().unwrap_or_else(super::hold).0
    }

    /// Refuses the zeros that would refuse everybody, or never rest.
    fn check_zeros(&self) -> Result<(), Problem> {
        let limits = &self.limits;
        let mut keys = vec![
            ("limits.connections", limits.connections == 0),
            ("limits.routes", limits.routes == 0),
            ("limits.peer-routes", limits.peer_routes == 0),
            ("limits.peers", limits.peers == 0),
        ];
        if let Some(http) = &self.http {
            keys.push(("http.threads", http.threads == 0));
            keys.push(("http.connections", http.connections == 0));
            keys.push(("http.body-bytes", http.body_bytes == 0));
            keys.push(("http.lag", http.lag.0.is_zero()));
        }
        if let Some(checkpoint) = &self.checkpoint {
            keys.push(("checkpoint.every", checkpoint.every.0.is_zero()));
        }
        if let Some(Rpki { expire: Some(expire), .. }) = &self.rpki {
            keys.push(("rpki.expire", expire.0.is_zero()));
        }
        if let Some(webhook) = &self.webhook {
            keys.push(("webhook.timeout", webhook.timeout.0.is_zero()));
            keys.push(("webhook.attempts", webhook.attempts == 0));
            keys.push(("webhook.queue", webhook.queue == 0));
        }
        if let Some(history) = &self.history {
            keys.push(("history.keep", history.keep.0.is_zero()));
            keys.push(("history.bytes", history.bytes == 0));
            // What is written to files is read from there.
            keys.push(("tables.history", self.tables.history == 0));
        }
        for neighbour in self.bgp.iter().flat_map(|bgp| &bgp.neighbour) {
            keys.push(("bgp.neighbour.max-routes", neighbour.max_routes == Some(0)));
            keys.push(("bgp.neighbour.remote-as", neighbour.remote_as == Some(0)));
        }
        keys.push(("kernel.buffer", self.kernel.iter().any(|kernel| kernel.buffer == Some(0))));
        match keys.into_iter().find(|(_, is_zero)| *is_zero) {
            Some((key, _)) => Err(Problem::Zero { key }),
            None => Ok(()),
        }
    }
}

fn check_http(http: &Http, addresses: &HashMap<SocketAddr, String>) -> Result<(), Fault> {
    if let Some(name) = addresses.get(&http.address()) {
        // It is not in the file if it is the default, or a flag's.
        let at = Some(http.listen.span()).filter(|at| !at.is_empty());
        let (one, other, address) = (name.clone(), "http".to_owned(), http.address());
        let problem = Problem::SameAddress { one, other, address };
        return Err(Fault { at, problem: problem.into() });
    }
    match http.tls_certificate.is_some() != http.tls_key.is_some() {
        true => Err(Problem::HalfOfTls.into()),
        false => Ok(()),
    }
}

/// Checks that each cache has a port: what cannot be connected to would be tried for ever.
fn check_rpki(rpki: &Rpki) -> Result<(), Fault> {
    let caches = rpki.caches.get_ref();
    let bad = match &caches[..] {
        [] => Some(String::new()),
        caches => caches.iter().find(|cache| !has_port(cache)).cloned(),
    };
    let at = Some(rpki.caches.span()).filter(|at| !at.is_empty());
    bad.map_or(Ok(()), |cache| Err(Fault { at, problem: Problem::Cache { cache }.into() }))
}

/// Whether it is a host and a port: `validator.example:3323`, `192.0.2.1:3323`, `[2001:db8::1]:3323`.
fn has_port(endpoint: &str) -> bool {
    let Some((host, port)) = endpoint.rsplit_once(':') else { return false };
    let is_bare_v6 = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
    let is_name = !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || c.is_control());
    is_name && !is_bare_v6 && port.parse::<u16>().is_ok_and(|port| port > 0)
}

/// Checks a source against those before it.
fn check_source(
    source: &ConfiguredSource,
    names: &mut HashSet<String>,
    addresses: &mut HashMap<SocketAddr, String>,
) -> Result<(), Problem> {
    let ConfiguredSource { name, table, config } = source;
    let bad = |name: &str, what| Err(Problem::Name { name: name.to_owned(), what });
    for text in [name, table] {
        if text.is_empty() || text.contains(|c: char| c.is_control() || c == '/') {
            return bad(text, "it is empty, or has / or control characters");
        }
    }
    if name.contains(char::is_whitespace) {
        return bad(name, "it has white space in it");
    }
    if !names.insert(name.clone()) {
        return Err(Problem::SameName(name.clone()));
    }
    if let Some(address) = config.listens().filter(|address| address.port() != 0)
        && let Some(other) = addresses.insert(address, name.clone())
    {
        return Err(Problem::SameAddress { one: name.clone(), other, address });
    }
    check_settings(config).map_err(|problem| Problem::Source { name: name.clone(), problem })
}

/// Checks a single source.
fn check_settings(config: &SourceConfig) -> Result<(), SourceProblem> {
    match config {
        SourceConfig::Ris(Ris { path, connect, .. }) if path.is_some() == connect.is_some() => {
            Err(SourceProblem::PathOrAddress)
        }
        SourceConfig::Fpm(stream) if !stream.ignore_peers.is_empty() => Err(SourceProblem::NoPeers),
        SourceConfig::Bgp(bgp) => check_bgp(bgp),
        _ => Ok(()),
    }
}

fn check_bgp(bgp: &Bgp) -> Result<(), SourceProblem> {
    let hold_time = bgp.hold_time.0;
    if (1..3000).contains(&hold_time.as_millis()) || hold_time.as_secs() > 65_535 {
        return Err(SourceProblem::HoldTime);
    }
    if bgp.local_as == 0 || bgp.router_id.is_unspecified() {
        return Err(SourceProblem::NoIdentity);
    }
    if bgp.neighbour.is_empty() {
        return Err(SourceProblem::NoNeighbour);
    }
    let mut known = HashSet::new();
    match bgp.neighbour.iter().find(|neighbour| !known.insert(neighbour.address)) {
        Some(twice) => Err(SourceProblem::SameNeighbour(twice.address)),
        None => Ok(()),
    }
}

#[cfg(unix)]
impl super::Checkpoint {
    /// Checks that the file's folder exists: better now than when the first checkpoint is due.
    pub(crate) fn check_folder(&self) -> Result<(), Problem> {
        match self.file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
                Err(Problem::NoFolder { file: self.file.clone(), folder: folder.to_owned() })
            }
            _ => Ok(()),
        }
    }
}
