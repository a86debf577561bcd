//! BMP of FRR with four peers: when a connection counts as complete.

use std::collections::BTreeSet;
use std::time::Duration;

use fibula_feeds::{Protocol, Session, SessionOptions};
use fibula_ingest::bgp::BgpOptions;
use fibula_ingest::bmp::BmpDecoder;
use fibula_rib::Rib;

use crate::common;

/// FRR sends all routes of one peer, its End-of-RIB, and then all routes of the next peer. The first peer's end is not
/// the end of the table.
#[test]
fn a_connection_is_complete_when_all_its_peers_are() {
    let ms = Duration::from_millis;
    let options = SessionOptions { table: "bmp".to_owned(), ..Default::default() };
    let quiet = options.quiet;
    let decoder = || Box::new(BmpDecoder::new(BgpOptions::default())) as _;
    let (mut session, mut rib) = (Session::new(decoder, options), Rib::default());
    let stream = common::recorded("bmp/frr-1.bmp.xz");
    session.connected(ms(0), &mut rib, &mut Vec::new()).unwrap();
    let mut now = ms(0);
    for piece in stream.chunks(1000) {
        now += ms(10);
        session.bytes(now, piece, &mut rib, &mut Vec::new()).unwrap();
        session.tick(now, &mut rib, &mut Vec::new()).unwrap();
        assert!(
            !session.is_complete(),
            "with {} peers, {} routes",
            rib.peers().len(),
            routes(&rib)
        );
    }
    session.tick(now + quiet, &mut rib, &mut Vec::new()).unwrap();
    assert!(session.is_complete());
    let addresses: BTreeSet<_> = rib.peers().iter().filter_map(|(_, peer)| peer.address).collect();
    assert_eq!(addresses.len(), 4, "{addresses:?}");
    assert!(routes(&rib) > 800, "{}", routes(&rib));
    // FRR's IPv4 routes over IPv6 next hops.
    let noted = session.figures().noted;
    assert!(noted["routes without a next hop, kept as they are"] > 0, "{noted:?}");
}

fn routes(rib: &Rib) -> usize {
    rib.vrfs().map(|vrf| rib.len::<u32>(vrf) + rib.len::<u128>(vrf)).sum()
}
