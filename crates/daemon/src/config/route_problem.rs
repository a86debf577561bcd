//! The problems of a router's configuration.

use std::fmt;

/// Conflicts in the configuration of a router.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouteProblem {
    /// The text is not a shape of threads.
    Shape(String),
    /// There is no port.
    NoPort,
    /// There is neither a source nor a table.
    NoTable,
    /// There are sources and a table that does not change.
    TableAndSources,
    /// There are next hops of values, and no table with these values.
    NextHopsWithoutTable,
    /// Programs in the kernel do not support rules.
    RulesOfXdp,
    /// A VRF is named, and the table does not change.
    VrfOfTable,
    /// No source feeds the table of this VRF.
    UnknownVrf {
        /// The VRF.
        vrf: String,
        /// The tables of the sources.
        tables: Vec<String>,
    },
    /// There are several tables, and none is named.
    SeveralTables(Vec<String>),
    /// The only source is BMP, whose routes are in tables of views.
    NoView(String),
    /// The size of a burst is out of range.
    Burst(usize),
    /// The size of a slot is out of range.
    SlotBytes(u32),
    /// The number of slots is out of range.
    Slots(u32),
    /// There are fewer cores than threads.
    FewCores {
        /// The number of threads.
        threads: usize,
        /// The number of cores.
        cores: usize,
    },
    /// The system does not have these cores.
    Cores(String),
    /// There are arguments of DPDK, and no port of DPDK.
    NoDpdk,
    /// There are more ports than a router can have.
    ManyPorts,
    /// The program was built without DPDK.
    WithoutDpdk(String),
}

impl RouteProblem {
    /// What to do about it.
    pub(super) fn hint(&self) -> Option<String> {
        let text = match self {
            Self::NoPort => {
                "name one or more: --port afxdp:eth1, xdp:eth1, afpacket:eth1, tap:name, dpdk:DEVICE, \
                 pcap:in.pcap:out.pcap, memory"
            }
            Self::NoTable => "name a source: --fpm, --kernel, --table FILE, or --config FILE",
            Self::TableAndSources => "take either",
            Self::RulesOfXdp => "use afxdp: in place of xdp:",
            Self::VrfOfTable => "leave vrf out, or take a source in place of --table",
            Self::UnknownVrf { tables, .. } => {
                return Some(format!(
                    "tables are called as their sources ({}), with a routing instance behind: {}/100",
                    tables.join(", "),
                    tables.first().map_or("fpm", String::as_str)
                ));
            }
            Self::SeveralTables(tables) => {
                let first = tables.first().map_or("fpm", String::as_str);
                return Some(format!("name it in the file: router = {{ vrf = \"{first}\" }}"));
            }
            Self::NoView(table) => {
                return Some(format!("name it: router = {{ vrf = \"{table}/post-policy\" }}"));
            }
            Self::WithoutDpdk(_) => {
                "install libdpdk-dev, pkg-config and libclang-dev, and build it with \
                 `cargo build --release -p fibula-cli --features dpdk`"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }
}

impl fmt::Display for RouteProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape(text) => write!(
                f,
                "{text:?} is not a shape: fused, fused:2, or threads that receive, look up and send: 1-2-1"
            ),
            Self::NoPort => f.write_str("there is no port to forward packets by"),
            Self::NoTable => f.write_str("there is nothing to forward packets by"),
            Self::TableAndSources => f.write_str(
                "--table is a table that does not change, beside sources of one that does",
            ),
            Self::NextHopsWithoutTable => f.write_str(
                "--next-hops gives the next hops of the values of --table, which is missing",
            ),
            Self::RulesOfXdp => {
                f.write_str("--rules: the program in the kernel of an xdp port does not know rules")
            }
            Self::VrfOfTable => {
                f.write_str("vrf names a table of a source, and --table is not one")
            }
            Self::UnknownVrf { vrf, .. } => {
                write!(f, "no source feeds the table of vrf {vrf:?}")
            }
            Self::SeveralTables(tables) => write!(
                f,
                "the sources feed several tables ({}), and none is named to forward by",
                tables.join(", ")
            ),
            Self::NoView(table) => write!(
                f,
                "BMP feeds a table for each view, such as {table}/pre-policy, and none is named to forward by"
            ),
            Self::Burst(burst) => write!(f, "--burst {burst}: a burst has 1 to 256 packets"),
            Self::SlotBytes(bytes) => {
                write!(f, "pipeline: slot-bytes is a power of two from 512 to 65536, not {bytes}")
            }
            Self::Slots(slots) => {
                write!(f, "pipeline: slots is from 256 to 4194304, not {slots}")
            }
            Self::FewCores { threads, cores } => write!(
                f,
                "cores: {threads} threads have {cores} cores: name one for each, or none at all"
            ),
            Self::Cores(what) => write!(f, "cores: {what}"),
            Self::NoDpdk => f.write_str("--eal is for ports of DPDK, and there is none"),
            Self::ManyPorts => f.write_str("a router has at most 255 ports"),
            Self::WithoutDpdk(device) => {
                write!(f, "--port dpdk:{device}: this fibula was built without DPDK")
            }
        }
    }
}
