//! Peers and sources.

use std::iter::{from_fn, once_with};
use std::sync::Arc;

use fibula_rib::Peer;

use crate::api;
use crate::convert;
use crate::http::answer::{Answer, JSON, in_parts};
use crate::http::params::Params;
use crate::http::parts::{elements, text};
use crate::http::time::rfc3339;
use crate::site::Site;

/// Maximum number of peers, and of counters of peers and tables, that are read under one lock of the RIB.
const PART: usize = 256;
const COUNTERS: usize = 1 << 16;

pub(crate) fn peers(site: &Arc<Site>, _: &Params) -> Answer {
    let of_sources = Arc::clone(site);
    let sources = once_with(move || of_sources.sources());
    let peers = text("{\"peers\":[").chain(elements(all(Arc::clone(site))));
    let sources = text("],\"sources\":[").chain(elements(sources)).chain(text("]}"));
    Ok(in_parts(JSON, 0, peers.chain(sources)))
}

/// All peers by number, in parts.
pub(crate) fn all(site: Arc<Site>) -> impl Iterator<Item = Vec<api::PeerStatus>> {
    let mut next = 0;
    from_fn(move || {
        let part = part(&site, next);
        next = part.last()?.peer.id + 1;
        Some(part)
    })
}

fn part(site: &Site, from: u32) -> Vec<api::PeerStatus> {
    let peers: Vec<(u32, Peer, [api::RouteCounts; 2], bool)> = site.live.with_rib(|rib| {
        let most = (COUNTERS / (2 * rib.vrfs().count()).max(1)).clamp(1, PART);
        let counted = rib.peers().range(from..).take(most).map(|(number, peer)| {
            let routes = api::RouteCounts {
                ipv4: rib.paths_of::<u32>(number) as u64,
                ipv6: rib.paths_of::<u128>(number) as u64,
            };
            let best = api::RouteCounts {
                ipv4: rib.best_paths_of::<u32>(number) as u64,
                ipv6: rib.best_paths_of::<u128>(number) as u64,
            };
            (number, peer.clone(), [routes, best], rib.is_resyncing(number))
        });
        counted.collect()
    });
    let lost = site.lost();
    let status =
        |(number, peer, counts, is_resyncing): (u32, Peer, [api::RouteCounts; 2], bool)| {
            let [routes, best] = counts;
            let has_routes = routes.ipv4 + routes.ipv6 > 0;
            let session = peer.source.as_deref().filter(|_| has_routes);
            let lost = session.and_then(|name| lost.iter().find(|session| session.is_of(name)));
            let state = match is_resyncing {
                _ if lost.is_some() => "lost",
                true => "resync",
                false if has_routes => "up",
                false => "down",
            };
            let until = lost.and_then(|session| session.until).map(rfc3339);
            api::PeerStatus {
                peer: convert::peer(number, &peer),
                routes,
                best,
                state: state.to_owned(),
                until,
            }
        };
    peers.into_iter().map(status).collect()
}
