//! Agreement with bgpkit-parser, an independent reader of the same formats.

mod common;

use std::net::IpAddr;

use bgpkit_parser::BgpkitParser;
use bgpkit_parser::models::{AsPathSegment, BgpElem, ElemType};
use common::{Bgp, Event, mrt_files, read_bgp, shared};
use fibula_ingest::decompress;

/// Where the two differ, and why we think that we are right. (`openbgpd_rib_table-mp` is compared with
/// `openbgpd_rib_table`, the same table in another form, below.)
const DIFFERENT: [(&str, &str); 5] = [
    ("openbgpd_rib_table-mp", "it does not know BGP4MP_ENTRY"),
    ("bird_bgp", "path identifiers in ordinary records"),
    ("bird6_bgp", "path identifiers in ordinary records"),
    ("_3samples", "it gives no routes without a table of peers"),
    ("trailing_bits", "it drops the message whose list of prefixes breaks off"),
];

fn ours(bgp: &Bgp, event: &Event, is_table: bool) -> String {
    let peer = &bgp.peers[event.peer as usize];
    let head = line_head(event.time as f64 / 1e6, is_table, peer.address.unwrap(), peer.asn);
    // They leave the path identifiers of tables out; bgpdump's text has them.
    let id = if is_table { 0 } else { event.path_id };
    match &event.route {
        None => format!("{head} W {} {id}", event.prefix),
        Some(route) => format!(
            "{head} A {} {id} {:?} {:?} [{}] {:?} {:?}",
            event.prefix,
            route.next_hop,
            route.origin_as,
            route.as_path,
            route.local_pref.unwrap_or(0),
            route.med.unwrap_or(0),
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
        AsPathSegment::AsSet(asns) if asns.len() == 1 => Some(asns[0].to_u32()),
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
    format!(
        "{head} A {prefix} {id} {:?} {origin:?} [{}] {:?} {:?}",
        elem.next_hop,
        path.join(" "),
        elem.local_pref.unwrap_or(0),
        elem.med.unwrap_or(0),
    )
}

#[test]
fn every_route_of_every_file() {
    let Some(data) = shared() else { return };
    for path in mrt_files(&data) {
        let name = path.file_name().unwrap().to_string_lossy();
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
    }
}

#[test]
fn one_table_in_two_forms() {
    let Some(data) = shared() else { return };
    let routes = |name: &str| {
        let (_, bgp) = read_bgp(&data.join("mrt/mrtparse-samples").join(name));
        let mut routes: Vec<String> = bgp
            .events
            .iter()
            .map(|event| format!("{} {:?}", event.prefix, event.route.as_ref().unwrap()))
            .collect();
        routes.sort_unstable();
        routes
    };
    assert_eq!(routes("openbgpd_rib_table-mp"), routes("openbgpd_rib_table"));
    assert_eq!(routes("openbgpd_rib_table-v2"), routes("openbgpd_rib_table"));
}
