//! The collector of flows.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use fibula_collect::{CollectOptions, FlowFormat, FlowOutput, FlowPartition, FlowPlace, Talkers};
use fibula_core::AnyPrefix;
use serde::{Deserialize, Deserializer, de};

use super::{Problem, ServeConfig, Time, time};

/// Receives exports of flows, and writes them with the values of one of the tables.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FlowsConfig {
    /// The addresses to receive at.
    pub listen: Vec<SocketAddr>,
    /// The networks whose exporters are heard; if empty, all.
    #[serde(default, deserialize_with = "super::text::prefixes")]
    pub allow: Vec<AnyPrefix>,
    /// The table in which flows are looked up; the main one, or the only one, by default.
    pub table: Option<String>,
    /// The tables in which flows of VRFs are looked up, by the name or the number that exporters have for the VRF.
    #[serde(default)]
    pub vrfs: BTreeMap<String, String>,
    /// Tables of files whose values win over those of the tables above; the first one's most.
    #[serde(default)]
    pub own: Vec<String>,
    /// The values to add; by default the prefix and all values of the tables.
    #[serde(default)]
    pub add: Vec<String>,
    /// How often the table is copied for flows if it has changed.
    #[serde(default = "refresh")]
    pub refresh: Time,
    /// The folder of the files.
    pub output: PathBuf,
    /// The format of the files.
    #[serde(default, deserialize_with = "from_text")]
    pub format: FlowFormat,
    /// A file ends at each multiple of this time since 1970.
    #[serde(default = "rotate")]
    pub rotate: Time,
    /// A file ends when it has about this number of bytes.
    #[serde(default = "rotate_bytes")]
    pub rotate_bytes: u64,
    /// Folders by time.
    #[serde(default, deserialize_with = "from_text")]
    pub partition: FlowPartition,
    /// The file that keeps templates over a restart.
    pub templates: Option<PathBuf>,
    /// Sockets at each address.
    #[serde(default = "sockets")]
    pub sockets: u8,
    /// The columns whose values with most bytes are counted.
    #[serde(default = "top")]
    pub top: Vec<String>,
}

fn from_text<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(from: D) -> Result<T, D::Error> {
    String::deserialize(from)?.parse().map_err(de::Error::custom)
}

fn refresh() -> Time {
    time("10s")
}
fn rotate() -> Time {
    time("5m")
}
fn rotate_bytes() -> u64 {
    256 << 20
}
fn sockets() -> u8 {
    1
}
fn top() -> Vec<String> {
    let names = ["origin_as", "prefix", "next_hop"];
    let ends = names.into_iter().flat_map(|name| ["src", "dst"].map(|end| format!("{end}_{name}")));
    ends.chain(["exporter".to_owned()]).collect()
}

impl FlowsConfig {
    /// Whether flows are looked up in several tables, each of which adds what it has.
    pub(crate) fn has_several_tables(&self) -> bool {
        !self.vrfs.is_empty() || !self.own.is_empty()
    }

    /// The options of the collector.
    pub(crate) fn options(&self) -> CollectOptions {
        let mut output = FlowOutput::new(FlowPlace::Folder(self.output.clone()), self.format);
        (output.rotate, output.rotate_bytes) = (self.rotate.0, self.rotate_bytes);
        output.partition = self.partition;
        let mut options = CollectOptions::new(self.listen.clone(), output);
        options.allowed.clone_from(&self.allow);
        options.sockets = self.sockets.into();
        options.templates.clone_from(&self.templates);
        options
    }
}

impl ServeConfig {
    /// Refuses a collector that would hear nothing, or never rest.
    pub(super) fn check_flows(&self) -> Result<(), Problem> {
        let Some(flows) = &self.flows else { return Ok(()) };
        if flows.listen.is_empty() {
            return Err(Problem::NoFlows);
        }
        let keys = [
            ("flows.refresh", flows.refresh.0.is_zero()),
            ("flows.rotate", flows.rotate.0.is_zero()),
            ("flows.rotate-bytes", flows.rotate_bytes == 0),
            ("flows.sockets", flows.sockets == 0),
        ];
        if flows.top.len() > Talkers::COLUMNS {
            return Err(Problem::TooManyTops(flows.top.len()));
        }
        match keys.into_iter().find(|(_, is_zero)| *is_zero) {
            Some((key, _)) => Err(Problem::Zero { key }),
            None => Ok(()),
        }
    }
}
