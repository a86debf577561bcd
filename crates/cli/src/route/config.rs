//! What `fibula route` is to do: the file, in TOML, and what the flags add to it.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use fibula_router::pipeline::check_cores;
use serde::Deserialize;
use toml::Spanned;

use super::kind::Kind;
use super::port::PortConfig;
use crate::failure::Failure;
use crate::serve::config::{
    Bgp, Checkpoint, Config as Feeds, Http, Kernel, Limits, Mrt, Ris, Stream, Tables, Text, read,
};

/// The whole file. What feeds tables is as in that of `fibula serve`.
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

/// What is forwarded by.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct RouterConfig {
    /// The live table that packets are forwarded by: that of the first source if none is named.
    pub vrf: Option<String>,
    /// In place of a live table: a table that does not change.
    pub table: Vec<String>,
    /// What its values mean.
    pub next_hops: Option<PathBuf>,
    /// Rules that drop and mark packets, or choose their tables.
    pub rules: Option<PathBuf>,
}

/// Threads and memory.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct PipelineConfig {
    /// The threads.
    pub shape: Shape,
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
}

impl Default for PipelineConfig {
    fn default() -> Self {
        Self {
            shape: Shape::Fused(1),
            cores: None,
            burst: 64,
            slots: 32_768,
            slot_bytes: None,
            icmp: true,
            icmp_rate: 1000,
            eal: None,
        }
    }
}

/// Which threads there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// So many that each receive, look up and send.
    Fused(usize),
    /// So many that receive, look up, and send.
    Stages(usize, usize, usize),
}

impl Shape {
    fn threads(self) -> usize {
        match self {
            Self::Fused(threads) => threads,
            Self::Stages(receive, lookup, transmit) => receive + lookup + transmit,
        }
    }
}

impl FromStr for Shape {
    type Err = String;

    /// `fused`, `fused:2`, `1-2-1`.
    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            format!(
                "{text:?} is not a shape: fused, fused:2, or threads that receive, look up and send: 1-2-1"
            )
        };
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

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The configuration, whole and checked.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub feeds: Feeds,
    pub router: RouterConfig,
    pub pipeline: PipelineConfig,
    pub ports: Vec<PortConfig>,
}

impl Config {
    /// Reads the file.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let text = read(path)?;
        Self::parse(&text, &path.display().to_string())
    }

    fn parse(text: &str, name: &str) -> Result<Self, Failure> {
        let text = Text { text, name, page: "docs/router.md" };
        let file: File = text.parse()?;
        let File { http, checkpoint, tables, limits, fpm, bmp, bgp, kernel, ris, mrt, .. } = file;
        let feeds = Feeds { http, checkpoint, tables, limits, fpm, bmp, bgp, kernel, ris, mrt };
        for port in &file.port {
            port.get_ref().check().map_err(|what| text.failure(Some(port.span()), &what))?;
        }
        Ok(Self {
            feeds: feeds.checked_in(&text)?,
            router: file.router,
            pipeline: file.pipeline,
            ports: file.port.into_iter().map(Spanned::into_inner).collect(),
        })
    }

    /// What the whole has to satisfy, flags included.
    pub fn checked(mut self) -> Result<Self, Failure> {
        let engines = &mut self.feeds.tables.engine;
        if *engines == ["auto"] && self.ports.iter().any(|port| matches!(port.port, Kind::Xdp(_))) {
            // What programs in the kernel can look up, whatever serves long routes best.
            *engines = ["runmap", "wideleaf", "auto"].map(str::to_owned).into();
        }
        self.feeds = self.feeds.checked()?;
        let (has_feed, has_table) =
            (!self.feeds.sources().is_empty(), !self.router.table.is_empty());
        let failure = match () {
            () if self.ports.is_empty() => {
                Failure::new("there is no port to forward packets by").hint(
                    "name one or more: --port afxdp:eth1, xdp:eth1, afpacket:eth1, tap:name, dpdk:DEVICE, pcap:in.pcap:out.pcap, memory",
                )
            }
            () if !has_feed && !has_table => Failure::new("there is nothing to forward packets by")
                .hint("name a source: --fpm, --kernel, --table FILE, or --config FILE"),
            () if has_feed && has_table => {
                Failure::new("--table is a table that does not change, beside sources of one that does")
                    .hint("take either")
            }
            () if self.router.next_hops.is_some() && !has_table => {
                Failure::new("--next-hops gives the next hops of the values of --table, which is missing")
            }
            () if self.router.rules.is_some()
                && self.ports.iter().any(|port| matches!(port.port, Kind::Xdp(_))) =>
            {
                Failure::new("--rules: the program in the kernel of an xdp port does not know rules")
                    .hint("use afxdp: in place of xdp:")
            }
            () if has_table && self.vrfs().next().is_some() => {
                Failure::new("vrf names a table of a source, and --table is not one")
                    .hint("leave vrf out, or take a source in place of --table")
            }
            () => match self.unknown_vrf() {
                Some(failure) => failure,
                None => return self.checked_pipeline(),
            },
        };
        Err(failure)
    }

    /// The tables that are named.
    fn vrfs(&self) -> impl Iterator<Item = &str> {
        let of_ports = self.ports.iter().filter_map(|port| port.vrf.as_deref());
        self.router.vrf.as_deref().into_iter().chain(of_ports)
    }

    /// Whether a source feeds the table of this VRF.
    pub fn is_fed(&self, vrf: &str) -> bool {
        let table = vrf.split('/').next().unwrap_or(vrf);
        self.feeds.sources().iter().any(|source| source.table == table)
    }

    /// A table that no source feeds: packets would be forwarded by an empty one.
    fn unknown_vrf(&self) -> Option<Failure> {
        let sources = self.feeds.sources();
        let vrf = self.vrfs().find(|vrf| !self.is_fed(vrf))?;
        let mut tables: Vec<&str> = sources.iter().map(|source| &*source.table).collect();
        tables.dedup();
        let what = Failure::new(format_args!("no source feeds the table of vrf {vrf:?}"));
        Some(what.hint(format_args!(
            "tables are called as their sources ({}), with a routing instance behind: {}/100",
            tables.join(", "),
            tables.first().unwrap_or(&"fpm")
        )))
    }

    /// The arguments of DPDK's devices.
    pub fn dpdk(&self) -> impl Iterator<Item = &str> {
        self.ports.iter().filter_map(|port| match &port.port {
            Kind::Dpdk(device) => Some(device.as_str()),
            _ => None,
        })
    }

    /// Bytes of a slot. For an XDP socket, DPDK and the kernel both keep room in front of a packet.
    pub fn slot_bytes(&self) -> u32 {
        let is_long = self.dpdk().any(|device| device.starts_with("net_af_xdp"));
        self.pipeline.slot_bytes.unwrap_or(if is_long { 4096 } else { 2048 })
    }

    fn checked_pipeline(self) -> Result<Self, Failure> {
        let PipelineConfig { burst, slots, shape, ref cores, .. } = self.pipeline;
        let slot_bytes = self.slot_bytes();
        if !(1..=256).contains(&burst) {
            return Err(Failure::new(format_args!(
                "--burst {burst}: a burst has 1 to 256 packets"
            )));
        }
        if !slot_bytes.is_power_of_two() || !(512..=65_536).contains(&slot_bytes) {
            return Err(Failure::new(format_args!(
                "pipeline: slot-bytes is a power of two from 512 to 65536, not {slot_bytes}"
            )));
        }
        if !(256..=1 << 22).contains(&slots) {
            return Err(Failure::new(format_args!(
                "pipeline: slots is from 256 to 4194304, not {slots}"
            )));
        }
        if let Some(cores) = cores {
            let threads = shape.threads();
            if cores.len() < threads {
                return Err(Failure::new(format_args!(
                    "cores: {threads} threads have {} cores: name one for each, or none at all",
                    cores.len()
                )));
            }
            check_cores(cores).map_err(|what| Failure::new(format_args!("cores: {what}")))?;
        }
        if self.pipeline.eal.is_some() && self.dpdk().next().is_none() {
            return Err(Failure::new("--eal is for ports of DPDK, and there is none"));
        }
        if self.ports.len() > 255 {
            return Err(Failure::new("a router has at most 255 ports"));
        }
        let mut pairs =
            self.ports.iter().enumerate().flat_map(|(at, port)| {
                self.ports[..at].iter().filter_map(|other| other.collide(port))
            });
        match pairs.next() {
            Some(what) => Err(Failure::new(what)),
            None => Ok(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use fibula_router::control::PortLink;

    use super::*;

    #[test]
    fn shapes_are_read() {
        for (text, shape) in [
            ("fused", Some(Shape::Fused(1))),
            ("fused:4", Some(Shape::Fused(4))),
            ("1-2-1", Some(Shape::Stages(1, 2, 1))),
            ("fused:0", None),
            ("fused2", None),
            ("1-2", None),
            ("1-2-1-1", None),
            ("", None),
        ] {
            assert_eq!(text.parse().ok(), shape, "{text}");
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
        let config = Config::parse(&text, "f").and_then(Config::checked).unwrap();
        assert_eq!(config.feeds.sources().len(), 1);
        assert_eq!(config.router.vrf.as_deref(), Some("fpm/100"));
        assert_eq!(config.pipeline.shape, Shape::Stages(1, 1, 1));
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
            let error = Config::parse(text, "f").unwrap_err().to_string();
            assert!(error.starts_with(what), "{error}");
        }
    }
}
