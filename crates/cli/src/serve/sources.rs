//! From the configuration to what a hub runs.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;

use fibula_core::{AnyPrefix, Prefix};
use fibula_feeds::net::{Endpoint, Folder, Listen, Retry, Source as Fed, Speaker, Who};
use fibula_feeds::{Protocol, Session, SessionOptions, bgp, kernel};
use fibula_ingest::bgp::BgpOptions;
use fibula_ingest::{Decoder, bmp::BmpDecoder, fpm::FpmDecoder, mrt::MrtDecoder, ris::RisDecoder};
use fibula_rib::Peer;

use super::config::{Bgp, Config, Mrt, Ris, Source, Stream, What};
use crate::failure::Failure;

/// How long a file of a folder may stand still before it is whole.
const SETTLE: std::time::Duration = std::time::Duration::from_secs(10);

/// The sources, in the words of the hub. `after` says behind which file a folder goes on.
pub fn all(config: &Config, after: impl Fn(&str) -> Option<String>) -> Result<Vec<Fed>, Failure> {
    let options = BgpOptions { as_path: true, communities: config.tables.communities };
    let make = |source: Source| {
        let settings = format!("{source:?} {options:?}");
        let Source { name, table, what } = source;
        let kind = what.kind();
        let endpoint = match what {
            What::Fpm(stream) => {
                listen(&stream, config, &table, settings, || Box::new(FpmDecoder::default()))
            }
            What::Bmp(stream) => listen(&stream, config, &table, settings, move || {
                Box::new(BmpDecoder::new(options))
            }),
            What::Bgp(bgp) => collector(&bgp, &table, options)?,
            What::Kernel(of) => Endpoint::Device {
                what: "netlink".to_owned(),
                open: kernel::open(of.buffer),
                speaker: kernel_speaker(&table, settings),
                retry: Retry::default(),
            },
            What::Ris(ris) => lines(ris, &table, settings, options),
            What::Mrt(Mrt { folder, .. }) => Endpoint::Folder(Folder {
                path: folder,
                after: after(&name),
                settle: SETTLE,
                settings,
                decoder: Arc::new(move || Box::new(MrtDecoder::new(options)) as Box<dyn Decoder>),
                peer: Peer { source: Some(name.as_str().into()), ..Peer::default() },
                table: table.clone(),
            }),
        };
        Ok(Fed { name, kind, table, endpoint })
    };
    config.sources().into_iter().map(make).collect()
}
