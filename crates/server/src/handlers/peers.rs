//! Peers and sources.

use std::sync::Arc;

use crate::api;
use crate::convert;
use crate::http::answer::{Answer, json};
use crate::http::params::Params;
use crate::site::Site;

pub(crate) fn peers(site: &Arc<Site>, _: &Params) -> Answer {
    json(&api::Peers { peers: all(site), sources: site.sources() })
}

/// All peers.
pub(crate) fn all(site: &Site) -> Vec<api::PeerStatus> {
    let (peers, resyncing) = site.live.with_rib(|rib| {
        let counted = (0..).zip(rib.peers()).map(|(number, peer)| {
            let ipv4 = rib.paths_of::<u32>(number) as u64;
            let ipv6 = rib.paths_of::<u128>(number) as u64;
            (number, peer.clone(), api::RouteCounts { ipv4, ipv6 })
        });
        (counted.collect::<Vec<_>>(), rib.resyncing())
    });
    let status = |(number, peer, routes): (u32, fibula_rib::Peer, api::RouteCounts)| {
        let state = match resyncing.binary_search(&number) {
            Ok(_) => "resync",
            Err(_) if routes.ipv4 + routes.ipv6 > 0 => "up",
            Err(_) => "down",
        };
        api::PeerStatus { peer: convert::peer(number, &peer), routes, state: state.to_owned() }
    };
    peers.into_iter().map(status).collect()
}
