//! The configuration of a router.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use fibula_router::pipeline::check_cores;
use serde::Deserialize;
use toml::Spanned;

use super::text::{self, Text};
use super::{
    Bgp, Checkpoint, ConfigError, ConfiguredSource, Http, Kernel, Limits, Mrt, PortConfig,
    PortKind, Problem, Ris, RouteProblem, ServeConfig, SourceConfig, Stream, Tables,
};

/// The whole file. The keys of sources and tables are those of [`ServeConfig`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    http: Option<Http>,
    checkpoint: Option<Checkpoint>,
    #[serde(default)]
    tables: Tables,
    #[serde(default)]
    limits: Limits,
    #[serde(default)]
    fpm: Vec<Stream>,
    #[serde(default)]
    bmp: Vec<Stream>,
    #[serde(default)]
    bgp: Vec<Bgp>,
    #[serde(default)]
    kernel: Vec<Kernel>,
    #[serde(default)]
    ris: Vec<Ris>,
    #[serde(default)]
    mrt: Vec<Mrt>,
    #[serde(default)]
    router: RouterConfig,
    #[serde(default)]
    pipeline: PipelineConfig,
    #[serde(default)]
    port: Vec<Spanned<PortConfig>>,
}

/// The tables, next hops and rules by which packets are forwarded.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct RouterConfig {
    /// The live table that packets are forwarded by: that of the first source if none is named.
    pub vrf: Option<String>,
    /// In place of a live table: a table that does not change.
    pub table: Vec<String>,
    /// The next hops of its values.
    pub next_hops: Option<PathBuf>,
    /// Rules that drop and mark packets, or choose their tables.
    pub rules: Option<PathBuf>,
}

/// Threads and memory.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct PipelineConfig {
    /// The threads.
    pub shape: Threads,
    /// The cores of the threads, in order.
    pub cores: Option<Vec<usize>>,
    /// Packets that are worked on at once.
    pub burst: usize,
    /// Packets that there may be at once.
    pub slots: u32,
    /// Bytes of a packet's slot; chosen by the ports if not given.
    pub slot_bytes: Option<u32>,
    /// Whether ICMP errors are sent.
    pub icmp: bool,
    /// ICMP errors a second that each port sends.
    pub icmp_rate: u32,
    /// Arguments of DPDK's environment.
    pub eal: Option<String>,
    /// What happens to the offloads of interfaces with XDP sockets.
    pub offloads: Offloading,
}

impl Default for PipelineConfig {
    fn default() -> Self {
        Self {
            shape: Threads::Fused(1),
            cores: None,
            burst: 64,
            slots: 32_768,
            slot_bytes: None,
            icmp: true,
            icmp_rate: 1000,
            eal: None,
            offloads: Offloading::Keep,
        }
    }
}

/// What happens to offloads that XDP sockets do not cope with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Offloading {
    /// They stay.
    #[default]
    Keep,
    /// They are off while the router runs.
    Off,
}

/// The threads of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// Threads that each receive, look up and send.
    Fused(usize),
    /// Threads that receive, that look up, and that send.
    Stages(usize, usize, usize),
}

impl Threads {
    /// How many threads there are.
    pub fn threads(self) -> usize {
        match self {
            Self::Fused(threads) => threads,
            Self::Stages(receive, lookup, transmit) => receive + lookup + transmit,
        }
    }
}

impl FromStr for Threads {
    type Err = Problem;

    /// `fused`, `fused:2`, `1-2-1`.
    fn from_str(text: &str) -> Result<Self, Problem> {
        let bad = || Problem::Route(RouteProblem::Shape(text.to_owned()));
        let number = |text: &str| match text.parse() {
            Ok(number) if (1..=64).contains(&number) => Ok(number),
            _ => Err(bad()),
        };
        if let Some(rest) = text.strip_prefix("fused") {
            return match rest.strip_prefix(':') {
                Some(threads) => number(threads).map(Self::Fused),
                None if rest.is_empty() => Ok(Self::Fused(1)),
                None => Err(bad()),
            };
        }
        let mut stages = text.splitn(3, '-').map(number);
        let mut next = || stages.next().unwrap_or_else(|| Err(bad()));
        Ok(Self::Stages(next()?, next()?, next()?))
    }
}

impl<'de> Deserialize<'de> for Threads {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The configuration of a router: sources and answers as a server has them, and ports.
#[derive(Clone, Debug, Default)]
pub struct RouteConfig {
    /// Sources, tables and answers.
    pub feeds: ServeConfig,
    /// The tables, next hops and rules by which packets are forwarded.
    pub router: RouterConfig,
    /// Threads and memory.
    pub pipeline: PipelineConfig,
    /// The ports, in order.
    pub ports: Vec<PortConfig>,
}

impl RouteConfig {
    /// Reads the file.
    ///
    /// # Errors
    /// The problem, with the file and the line. Settings that programs may add are checked by
    /// [`RouteConfig::checked`].
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        Self::parse(&text::read(path)?, &path.display().to_string())
    }

    /// The configuration in the text of a file with this name.
    ///
    /// # Errors
    /// As [`RouteConfig::read`].
    pub fn parse(text: &str, name: &str) -> Result<Self, ConfigError> {
        let text = Text { text, name, page: "docs/router.md" };
        let file: File = text.parse()?;
        let File { http, checkpoint, tables, limits, fpm, bmp, bgp, kernel, ris, mrt, .. } = file;
        let feeds = ServeConfig {
            http,
            checkpoint,
            tables,
            limits,
            fpm,
            bmp,
            bgp,
            kernel,
            ris,
            mrt,
            ..ServeConfig::default()
        };
        for port in &file.port {
            let checked = port.get_ref().check();
            checked.map_err(|problem| text.error(Some(port.span()), Problem::Port(problem)))?;
        }
        Ok(Self {
            feeds: feeds.checked_in(&text)?,
            router: file.router,
            pipeline: file.pipeline,
            ports: file.port.into_iter().map(Spanned::into_inner).collect(),
        })
    }

    /// Checks the whole configuration, with the settings that a program added to the file.
    ///
    /// # Errors
    /// The problem.
    pub fn checked(mut self) -> Result<Self, ConfigError> {
        let engines = &mut self.feeds.tables.engine;
        if *engines == ["auto"] && self.ports.iter().any(is_xdp) {
            // The engine that the programs in the kernel can use, even if another one suits long routes better.
            *engines = ["runmap", "wideleaf", "auto"].map(str::to_owned).into();
        }
        self.feeds = self.feeds.checked()?;
        self.check_tables().map_err(Problem::Route)?;
        self.check_pipeline().map_err(Problem::Route)?;
        self.check_ports()?;
        Ok(self)
    }

    /// Checks that there is one kind of table, with its settings.
    fn check_tables(&self) -> Result<(), RouteProblem> {
        let RouterConfig { table, next_hops, rules, .. } = &self.router;
        let (has_feed, has_table) = (!self.feeds.sources().is_empty(), !table.is_empty());
        match () {
            () if self.ports.is_empty() => Err(RouteProblem::NoPort),
            () if !has_feed && !has_table => Err(RouteProblem::NoTable),
            () if has_feed && has_table => Err(RouteProblem::TableAndSources),
            () if next_hops.is_some() && !has_table => Err(RouteProblem::NextHopsWithoutTable),
            () if rules.is_some() && self.ports.iter().any(is_xdp) => Err(RouteProblem::RulesOfXdp),
            () if has_table && self.vrfs().next().is_some() => Err(RouteProblem::VrfOfTable),
            () => self.check_vrfs().and_then(|()| self.check_main()),
        }
    }

    /// The tables that are named.
    fn vrfs(&self) -> impl Iterator<Item = &str> {
        let of_ports = self.ports.iter().filter_map(|port| port.vrf.as_deref());
        self.router.vrf.as_deref().into_iter().chain(of_ports)
    }

    /// The table by which packets are forwarded that came in by this port: the port's own, the router's, or the only
    /// one of the sources. `None` if the table does not change.
    pub fn table_of(&self, port: &PortConfig) -> Option<String> {
        port.vrf.clone().or_else(|| self.main_table())
    }

    /// The table of the ports that name none.
    pub(crate) fn main_table(&self) -> Option<String> {
        self.router.vrf.clone().or_else(|| match &self.tables()[..] {
            [only] => Some(only.clone()),
            _ => None,
        })
    }

    /// The tables of the sources.
    fn tables(&self) -> Vec<String> {
        let mut tables: Vec<_> = self.feeds.sources().into_iter().map(|of| of.table).collect();
        tables.sort_unstable();
        tables.dedup();
        tables
    }

    /// Refuses sources that could be meant one or the other: which table forwards must not depend on their order.
    fn check_main(&self) -> Result<(), RouteProblem> {
        let is_needed =
            self.router.vrf.is_none() && self.ports.iter().any(|port| port.vrf.is_none());
        let is_bmp = |of: &ConfiguredSource| matches!(of.config, SourceConfig::Bmp(_));
        match self.tables() {
            _ if !is_needed || !self.router.table.is_empty() => Ok(()),
            tables if tables.len() > 1 => Err(RouteProblem::SeveralTables(tables)),
            // A BMP source feeds only tables of views, such as bmp/pre-policy.
            tables if self.feeds.sources().iter().all(is_bmp) => {
                Err(RouteProblem::NoView(tables.concat()))
            }
            _ => Ok(()),
        }
    }

    /// Whether a source feeds the table of this VRF.
    pub(crate) fn is_fed(&self, vrf: &str) -> bool {
        let table = vrf.split('/').next().unwrap_or(vrf);
        self.feeds.sources().iter().any(|source| source.table == table)
    }

    /// Refuses a table that no source feeds: packets would be forwarded by an empty one.
    fn check_vrfs(&self) -> Result<(), RouteProblem> {
        let sources = self.feeds.sources();
        let Some(vrf) = self.vrfs().find(|vrf| !self.is_fed(vrf)) else { return Ok(()) };
        let mut tables: Vec<String> = sources.into_iter().map(|source| source.table).collect();
        tables.dedup();
        Err(RouteProblem::UnknownVrf { vrf: vrf.to_owned(), tables })
    }

    /// The arguments of DPDK's devices.
    pub(crate) fn dpdk(&self) -> impl Iterator<Item = &str> {
        self.ports.iter().filter_map(|port| match &port.port {
            PortKind::Dpdk(device) => Some(device.as_str()),
            _ => None,
        })
    }

    /// Bytes of a slot. For an XDP socket, DPDK and the kernel both keep room in front of a packet.
    pub(crate) fn slot_bytes(&self) -> u32 {
        let is_long = self.dpdk().any(|device| device.starts_with("net_af_xdp"));
        self.pipeline.slot_bytes.unwrap_or(if is_long { 4096 } else { 2048 })
    }

    fn check_pipeline(&self) -> Result<(), RouteProblem> {
        let PipelineConfig { burst, slots, shape, ref cores, .. } = self.pipeline;
        let slot_bytes = self.slot_bytes();
        if !(1..=256).contains(&burst) {
            return Err(RouteProblem::Burst(burst));
        }
        if !slot_bytes.is_power_of_two() || !(512..=65_536).contains(&slot_bytes) {
            return Err(RouteProblem::SlotBytes(slot_bytes));
        }
        if !(256..=1 << 22).contains(&slots) {
            return Err(RouteProblem::Slots(slots));
        }
        if let Some(cores) = cores {
            let threads = shape.threads();
            if cores.len() < threads {
                return Err(RouteProblem::FewCores { threads, cores: cores.len() });
            }
            check_cores(cores).map_err(RouteProblem::Cores)?;
        }
        match self.pipeline.eal.is_some() && self.dpdk().next().is_none() {
            true => Err(RouteProblem::NoDpdk),
            false => Ok(()),
        }
    }

    fn check_ports(&self) -> Result<(), Problem> {
        if self.ports.len() > 255 {
            return Err(Problem::Route(RouteProblem::ManyPorts));
        }
        for (at, port) in self.ports.iter().enumerate() {
            for other in &self.ports[..at] {
                other.check_beside(port).map_err(Problem::Port)?;
            }
        }
        Ok(())
    }
}

pub(crate) fn is_xdp(port: &PortConfig) -> bool {
    matches!(port.port, PortKind::Xdp(_))
}

#[cfg(test)]
mod tests {
    use fibula_router::control::PortLink;

    use super::*;

    #[test]
    fn shapes_are_read() {
        for (text, shape) in [
            ("fused", Some(Threads::Fused(1))),
            ("fused:4", Some(Threads::Fused(4))),
            ("1-2-1", Some(Threads::Stages(1, 2, 1))),
            ("fused:0", None),
            ("fused2", None),
            ("1-2", None),
            ("1-2-1-1", None),
            ("", None),
        ] {
            assert_eq!(text.parse::<Threads>().ok(), shape, "{text}");
        }
    }

    #[test]
    fn a_file_has_all_that_flags_have() {
        let core = fibula_router::pipeline::groups()[0][0];
        let text = r#"
http = { listen = "127.0.0.1:9999" }
[[fpm]]
listen = "127.0.0.1:2620"
[router]
vrf = "fpm/100"
[pipeline]
shape = "1-1-1"
cores = [CORE, CORE, CORE]
burst = 32
[[port]]
port = "afxdp:eth1"
[[port]]
port = "pcap:in.pcap:out.pcap"
interface = 3
addresses = ["192.0.2.1/24", "2001:db8::1/64"]
neighbours = { "192.0.2.9" = "02:00:00:00:00:09" }
times = true
"#;
        let text = text.replace("CORE", &core.to_string());
        let config = RouteConfig::parse(&text, "f").and_then(RouteConfig::checked).unwrap();
        assert_eq!(config.feeds.sources().len(), 1);
        assert_eq!(config.router.vrf.as_deref(), Some("fpm/100"));
        assert_eq!(config.pipeline.shape, Threads::Stages(1, 1, 1));
        assert_eq!(
            (config.ports.len(), config.ports[1].messages(&PortLink::default()).len()),
            (2, 4)
        );
    }

    #[test]
    fn what_is_wrong_has_its_line() {
        for (text, what) in [
            ("[[port]]\nport = \"x\"", "f: line 2, \"x\" is not a kind of port"),
            (
                "\n[[port]]\nport = \"memory\"\ntimes = true",
                "f: line 2, memory: times is for a capture",
            ),
            ("[pipeline]\nshape = \"2\"", "f: line 2, \"2\" is not a shape"),
            ("[pipeline]\nspeed = 1", "f: line 2, unknown field `speed`"),
            (
                "[[fpm]]\nlisten = \"127.0.0.1:1\"\nname = \"a/b\"",
                "f: line 3, \"a/b\" cannot be a name",
            ),
        ] {
            let error = RouteConfig::parse(text, "f").unwrap_err().to_string();
            assert!(error.starts_with(what), "{error}");
        }
    }
}
