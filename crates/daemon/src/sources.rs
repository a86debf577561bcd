//! Turns a configuration into sources of a hub.

use std::sync::Arc;
use std::time::Duration;

use fibula_core::AnyPrefix;
use fibula_feeds::bgp::{BgpSession, Neighbour as Session4};
#[cfg(target_os = "linux")]
use fibula_feeds::kernel::KernelOptions;
use fibula_feeds::net::{
    Endpoint, FeedSource, Folder, Listen, ProtocolFactory, Retry, SessionContext,
};
use fibula_feeds::{Protocol, Session, SessionOptions};
use fibula_ingest::bgp::BgpOptions;
use fibula_ingest::{Decoder, bmp::BmpDecoder, fpm::FpmDecoder, mrt::MrtDecoder, ris::RisDecoder};
use fibula_rib::Peer;

use crate::config::{
    Bgp, ConfigError, ConfiguredSource, Kernel, Mrt, Neighbour, Problem, Ris, ServeConfig,
    SourceConfig, SourceProblem, Stream,
};
use crate::secret::first_line;

/// How long a file of a folder must not grow before it counts as complete.
const SETTLE: Duration = Duration::from_secs(10);

/// The sources, as the hub needs them. `after` gives the file after which a folder continues.
pub fn all(
    config: &ServeConfig,
    after: impl Fn(&str) -> Option<String>,
) -> Result<Vec<FeedSource>, ConfigError> {
    let bgp = BgpOptions {
        as_path: true,
        communities: config.tables.communities,
        ..BgpOptions::default()
    };
    let make = |source: ConfiguredSource| {
        let given =
            Given { settings: format!("{source:?} {bgp:?}"), table: source.table.clone(), bgp };
        let ConfiguredSource { name, table, config: of } = source;
        let kind = of.kind();
        let endpoint = match of {
            SourceConfig::Fpm(stream) => {
                given.listen(stream, config, || Box::new(FpmDecoder::default()))
            }
            SourceConfig::Bmp(stream) => {
                let ignored: Arc<[AnyPrefix]> = stream.ignore_peers.as_slice().into();
                let decoder = move || BmpDecoder::new(bgp).without(Arc::clone(&ignored));
                given.listen(stream, config, move || Box::new(decoder()))
            }
            SourceConfig::Bgp(of) => given.collector(&name, &of, config)?,
            SourceConfig::Kernel(of) => given.kernel(&name, &of)?,
            SourceConfig::Ris(of) => given.lines(of),
            SourceConfig::Mrt(Mrt { folder, .. }) => Endpoint::Folder(Folder {
                path: folder,
                after: after(&name),
                settle: SETTLE,
                settings: given.settings,
                decoder: Arc::new(move || Box::new(MrtDecoder::new(bgp))),
                peer: Peer { source: Some(name.as_str().into()), ..Peer::default() },
                table: table.clone(),
            }),
        };
        Ok(FeedSource { name, kind, table, endpoint })
    };
    config.sources().into_iter().map(make).collect()
}

/// The settings that all sources have.
struct Given {
    /// Everything that is configured of it.
    settings: String,
    table: String,
    bgp: BgpOptions,
}

impl Given {
    /// Connections in which only the other end sends.
    fn listen(
        self,
        stream: Stream,
        config: &ServeConfig,
        decoder: impl Fn() -> Box<dyn Decoder> + Clone + Send + Sync + 'static,
    ) -> Endpoint {
        let Stream { listen, allow, hold, quiet, .. } = stream;
        let options = SessionOptions { hold: hold.0, quiet: quiet.0, ..SessionOptions::default() };
        let speaker = self.speaker(options, decoder);
        let from: Vec<AnyPrefix> = match &allow[..] {
            [] => vec![
                AnyPrefix::V4(fibula_core::Prefix::ALL),
                AnyPrefix::V6(fibula_core::Prefix::ALL),
            ],
            some => some.iter().map(|&address| AnyPrefix::host(address)).collect(),
        };
        Endpoint::Listen(Listen {
            address: listen,
            speakers: from.into_iter().map(|prefix| (prefix, speaker.clone())).collect(),
            limit: config.limits.connections,
            keys: Vec::new(),
        })
    }

    fn speaker(
        self,
        options: SessionOptions,
        decoder: impl Fn() -> Box<dyn Decoder> + Clone + Send + Sync + 'static,
    ) -> ProtocolFactory {
        let Self { settings, table, .. } = self;
        let protocol = move |who: SessionContext| {
            let peer = Peer { source: Some(who.name), ..Peer::new(who.remote, 0) };
            let options = SessionOptions { peer, table: table.clone(), ..options.clone() };
            let session = Session::new(decoder.clone(), options).with_events(who.events);
            Box::new(session) as Box<dyn Protocol>
        };
        ProtocolFactory { settings, protocol: Arc::new(protocol) }
    }

    /// BGP sessions of neighbours, each with its own settings.
    fn collector(
        self,
        name: &str,
        of: &Bgp,
        config: &ServeConfig,
    ) -> Result<Endpoint, ConfigError> {
        let mut speakers = Vec::new();
        let mut keys = Vec::new();
        for neighbour in &of.neighbour {
            let host = AnyPrefix::host(neighbour.address);
            let mut password = None;
            if let Some(file) = &neighbour.password_file {
                let key = first_line("password-file", file)?;
                keys.push((host, key.clone().into_bytes()));
                password = Some(key);
            }
            let session = self.neighbour(of, neighbour);
            session.check().map_err(|what| {
                let problem = SourceProblem::Session(what.to_string());
                Problem::Source { name: name.to_owned(), problem }
            })?;
            // A password that changes is another session.
            let settings = format!("{session:?} {password:?}");
            let protocol = move |who: SessionContext| {
                let session = Session4 { source: Some(who.name), ..session.clone() };
                Box::new(BgpSession::new(session).with_events(who.events)) as Box<dyn Protocol>
            };
            speakers.push((host, ProtocolFactory { settings, protocol: Arc::new(protocol) }));
        }
        Ok(Endpoint::Listen(Listen {
            address: of.listen,
            speakers,
            limit: config.limits.connections,
            keys,
        }))
    }

    fn neighbour(&self, of: &Bgp, neighbour: &Neighbour) -> Session4 {
        let Neighbour { address, remote_as, add_path, max_routes, hold, .. } = *neighbour;
        Session4 {
            asn: remote_as,
            hold_time: u16::try_from(of.hold_time.0.as_secs()).unwrap_or(u16::MAX),
            add_path,
            attributes: self.bgp,
            table: self.table.clone(),
            most_routes: max_routes,
            hold: hold.0,
            ..Session4::new(address, of.local_as, of.router_id)
        }
    }

    /// The kernel's tables.
    #[cfg(target_os = "linux")]
    #[expect(clippy::unnecessary_wraps, reason = "other systems have none")]
    fn kernel(self, _: &str, of: &Kernel) -> Result<Endpoint, ConfigError> {
        let mut options = KernelOptions { table: self.table, ..KernelOptions::default() };
        options.room = of.buffer.unwrap_or(options.room);
        Ok(fibula_feeds::kernel::endpoint(options))
    }

    #[cfg(not(target_os = "linux"))]
    fn kernel(self, name: &str, _: &Kernel) -> Result<Endpoint, ConfigError> {
        Err(Problem::Source { name: name.to_owned(), problem: SourceProblem::NotHere }.into())
    }

    /// RIS Live's lines, from a pipe or a server.
    fn lines(self, of: Ris) -> Endpoint {
        let bgp = self.bgp;
        let options = SessionOptions { hold: of.hold.0, ..SessionOptions::default() };
        let speaker = self.speaker(options, move || Box::new(RisDecoder::new(bgp)));
        match of {
            Ris { connect: Some(address), .. } => {
                Endpoint::Connect { address, speaker, retry: Retry::default() }
            }
            Ris { path, .. } => {
                Endpoint::Path { path: path.unwrap_or_else(|| "-".into()), speaker }
            }
        }
    }
}
