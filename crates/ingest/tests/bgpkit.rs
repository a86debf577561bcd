//! Agreement with bgpkit-parser, an independent reader of the same formats.

use std::net::IpAddr;
use std::path::Path;

use crate::common::{Bgp, Event, Route, archives, cuts, mrt_files, name, read_bgp};
use bgpkit_parser::BgpkitParser;
use bgpkit_parser::models::{AsPathSegment, BgpElem, ElemType, ExtendedCommunity, MetaCommunity};
use fibula_ingest::decompress;

/// Where the two differ, and why we think that we are right. (The first three are compared with the same
/// routes in other forms, below.)
const DIFFERENT: [(&str, &str); 6] = [
    ("openbgpd_rib_table-mp", "it does not know BGP4MP_ENTRY"),
    ("bird_bgp", "path identifiers in ordinary records"),
    ("bird6_bgp", "path identifiers in ordinary records"),
    ("_3samples", "it gives no routes without a table of peers"),
    ("trailing_bits", "it drops the message whose list of prefixes breaks off"),
    ("made-updates", "it drops the message whose list of prefixes breaks off"),
];

fn ours(bgp: &Bgp, event: &Event, is_table: bool) -> String {
    let peer = &bgp.peers[event.peer as usize];
    let head = line_head(event.time as f64 / 1e6, is_table, peer.address.unwrap(), peer.asn);
    // They leave the path identifiers of tables out; bgpdump's text has them.
    let id = if is_table { 0 } else { event.path_id };
    match &event.route {
        None => format!("{head} W {} {id}", event.prefix),
        Some(route) => format!(
            "{head} A {} {id} {:?} {:?} [{}] {:?} {:?} [{}] [{}]",
            event.prefix,
            route.next_hop,
            route.origin_as,
            route.as_path,
            route.local_pref.unwrap_or(0),
            route.med.unwrap_or(0),
            route.aggregator,
            route.extended_communities,
        ),
    }
}

/// Of a table we give the time of the dump, they the time at which the route was learnt.
fn line_head(time: f64, is_table: bool, peer: IpAddr, asn: u32) -> String {
    let time = if is_table { 0.0 } else { time };
    format!("{time:.6} {peer} {asn}")
}

fn theirs(elem: &BgpElem, is_table: bool) -> String {
    let head = line_head(elem.timestamp, is_table, elem.peer_ip, elem.peer_asn.to_u32());
    let id = if is_table { 0 } else { elem.prefix.path_id.unwrap_or(0) };
    // Bits beyond the length are kept there.
    let prefix = elem.prefix.prefix.trunc();
    if elem.elem_type == ElemType::WITHDRAW {
        return format!("{head} W {prefix} {id}");
    }
    let segments = elem.as_path.as_ref().map_or(&[][..], |path| &path.segments);
    let origin = segments.last().and_then(|segment| match segment {
        AsPathSegment::AsSequence(asns) => asns.last().map(|asn| asn.to_u32()),
        _ => None,
    });
    let path: Vec<String> = segments
        .iter()
        .map(|segment| {
            let join = |asns: &[_], by: &str| {
                asns.iter()
                    .map(|asn: &bgpkit_parser::models::Asn| asn.to_string())
                    .collect::<Vec<_>>()
                    .join(by)
            };
            match segment {
                AsPathSegment::AsSequence(asns) => join(asns, " "),
                AsPathSegment::AsSet(asns) => format!("{{{}}}", join(asns, ",")),
                AsPathSegment::ConfedSequence(asns) => format!("({})", join(asns, " ")),
                AsPathSegment::ConfedSet(asns) => format!("[{}]", join(asns, ",")),
            }
        })
        .collect();
    let aggregator = elem.aggr_asn.zip(elem.aggr_ip).map(|(asn, ip)| format!("{asn} {ip}"));
    let extended: Vec<String> =
        elem.communities.iter().flatten().filter_map(extended_community).collect();
    format!(
        "{head} A {prefix} {id} {:?} {origin:?} [{}] {:?} {:?} [{}] [{}]",
        elem.next_hop,
        path.join(" "),
        elem.local_pref.unwrap_or(0),
        elem.med.unwrap_or(0),
        aggregator.unwrap_or_default(),
        extended.join(" "),
    )
}

/// An extended community as we print it; `None` for one of another kind.
fn extended_community(community: &MetaCommunity) -> Option<String> {
    use ExtendedCommunity::{
        LinkBandwidth, NonTransitiveFourOctetAs, NonTransitiveIpv4Addr, NonTransitiveOpaque,
        NonTransitiveTwoOctetAs, Raw, TransitiveFourOctetAs, TransitiveIpv4Addr, TransitiveOpaque,
        TransitiveTwoOctetAs,
    };
    let MetaCommunity::Extended(community) = community else { return None };
    let name = |code: u8| [(2, "rt"), (3, "soo")].iter().find(|of| of.0 == code).map(|of| of.1);
    let hex = |parts: &[&[u8]]| {
        let digits: String = parts.concat().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("0x{digits}")
    };
    Some(match community {
        TransitiveTwoOctetAs(c) if let Some(name) = name(c.subtype) => {
            format!("{name}:{}:{}", c.global_admin, u32::from_be_bytes(c.local_admin))
        }
        TransitiveIpv4Addr(c) if let Some(name) = name(c.subtype) => {
            format!("{name}:{}:{}", c.global_admin, u16::from_be_bytes(c.local_admin))
        }
        TransitiveFourOctetAs(c) if let Some(name) = name(c.subtype) => {
            format!("{name}:{}:{}", c.global_admin, u16::from_be_bytes(c.local_admin))
        }
        TransitiveTwoOctetAs(c) | NonTransitiveTwoOctetAs(c) => {
            let asn = c.global_admin.to_u32().to_be_bytes();
            let kind = u8::from(community.community_type());
            hex(&[&[kind, c.subtype], &asn[2..], &c.local_admin])
        }
        TransitiveIpv4Addr(c) | NonTransitiveIpv4Addr(c) => {
            let kind = u8::from(community.community_type());
            hex(&[&[kind, c.subtype], &c.global_admin.octets(), &c.local_admin])
        }
        TransitiveFourOctetAs(c) | NonTransitiveFourOctetAs(c) => {
            let asn = c.global_admin.to_u32().to_be_bytes();
            let kind = u8::from(community.community_type());
            hex(&[&[kind, c.subtype], &asn, &c.local_admin])
        }
        TransitiveOpaque(c) | NonTransitiveOpaque(c) => {
            hex(&[&[u8::from(community.community_type()), c.subtype], &c.value])
        }
        LinkBandwidth(c) => {
            let kind = u8::from(community.community_type());
            let bandwidth = c.bandwidth.to_be_bytes();
            hex(&[&[kind, 4], &c.global_admin.to_be_bytes(), &bandwidth])
        }
        Raw(bytes) => hex(&[bytes]),
        other => panic!("not in these files: {other:?}"),
    })
}

/// Compares every route and withdrawal of every file; returns how many files and how many lines there
/// are.
fn agree(data: &Path) -> (usize, usize) {
    let (mut files, mut lines) = (0, 0);
    for path in mrt_files(data) {
        let name = name(&path);
        if let Some((_, why)) = DIFFERENT.iter().find(|(part, _)| name.contains(part)) {
            println!("{name}: differs: {why}");
            continue;
        }
        let is_table = name.contains("bview") || name.contains("rib");
        let (_, bgp) = read_bgp(&path);
        let mut found: Vec<String> =
            bgp.events.iter().map(|event| ours(&bgp, event, is_table)).collect();
        let (_, reader) = decompress(std::fs::File::open(&path).unwrap()).unwrap();
        let mut wanted: Vec<String> = BgpkitParser::from_reader(reader)
            .into_iter()
            .map(|elem| theirs(&elem, is_table))
            .collect();
        // Within a message the two have their own orders.
        found.sort_unstable();
        wanted.sort_unstable();
        let first = found.iter().zip(&wanted).find(|(found, wanted)| found != wanted);
        println!("{name}: {} {}", found.len(), wanted.len());
        assert_eq!(first, None, "{name}");
        assert_eq!(found.len(), wanted.len(), "{name}");
        files += 1;
        lines += found.len();
    }
    (files, lines)
}

#[test]
fn every_route_of_every_file() {
    assert_eq!(agree(&cuts()), (19, 69_684));
}

#[test]
#[ignore = "real archives: ./dev check-data"]
fn every_route_of_every_archive() {
    let (files, lines) = agree(&archives());
    assert!(files >= 27 && lines >= 1_899_864, "{files} files, {lines} routes and withdrawals");
}

/// The routes of a file of mrtparse's samples, in order; `id`: with the path identifier.
fn routes(file: &str, id: bool) -> Vec<String> {
    let (_, bgp) = read_bgp(&cuts().join("mrt/mrtparse-samples").join(file));
    let line = |event: &Event| {
        let route: &Route = event.route.as_ref().expect("no withdrawals");
        let id = if id { event.path_id } else { 0 };
        format!("{} {id} {route:?}", event.prefix)
    };
    let mut routes: Vec<String> = bgp.events.iter().map(line).collect();
    routes.sort_unstable();
    routes
}

#[test]
fn one_table_in_three_forms() {
    let table = routes("openbgpd_rib_table", false);
    assert_eq!(table.len(), 31);
    assert_eq!(routes("openbgpd_rib_table-mp", false), table);
    assert_eq!(routes("openbgpd_rib_table-v2", false), table);
}

/// Routes that BIRD wrote in ordinary records before RFC 8050, and the same sessions in records that say that they have
/// path identifiers. Only the first have routes with large communities.
#[test]
fn path_identifiers_in_two_forms() {
    for (old, new) in [("bird_bgp", "bird-mrtdump_bgp"), ("bird6_bgp", "bird6-mrtdump_bgp")] {
        let (large, old): (Vec<_>, Vec<_>) =
            routes(old, true).into_iter().partition(|route| route.contains(":4294967295:"));
        assert_eq!(old, routes(new, true));
        assert_eq!((large.len(), old.len()), (2, 12), "{new}");
    }
}
