//! Streams of BMP that routers sent, read by us and by others.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use bgpkit_parser::models::{AsPathSegment, BgpElem, ElemType};
use bgpkit_parser::parser::bmp::messages::BmpMessageBody;
use bgpkit_parser::{Elementor, parse_bmp_msg};
use fibula_ingest::bgp::BgpOptions;
use fibula_ingest::bmp::BmpDecoder;
use fibula_ingest::{Decoder, Tail, decompress};

use crate::common::{Bgp, Event, cuts, files, name, read_bgp, text};

const ALL: BgpOptions = BgpOptions { as_path: true, communities: true, extended_communities: true };

fn streams() -> Vec<PathBuf> {
    let mut files = files(&cuts().join("bmp"));
    files.retain(|path| name(path).ends_with(".bmp.xz"));
    files
}

fn bytes(path: &Path) -> Vec<u8> {
    let (_, mut reader) = decompress(File::open(path).unwrap()).unwrap();
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    bytes
}

/// Every message of a stream.
fn messages(stream: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = stream;
    std::iter::from_fn(move || {
        let len = u32::from_be_bytes(*rest.get(1..)?.first_chunk()?) as usize;
        let (message, after) = rest.split_at_checked(len)?;
        rest = after;
        Some(message)
    })
}

/// Messages, peers, updates, damage, ignored messages, peers that were complete, peers that went down.
#[test]
fn what_is_in_the_streams() {
    let wanted = [
        ("frr-1", [1895, 4, 1862, 0, 0, 0, 0]),
        ("frr-2", [1021, 8, 962, 0, 0, 8, 8]),
        ("netgauze-evpn-1", [16, 2, 4, 0, 1, 0, 0]),
        ("netgauze-evpn-2", [140, 1, 138, 0, 1, 1, 0]),
        ("netgauze-path-marking", [5, 1, 3, 0, 0, 1, 0]),
        ("netgauze-peers-with-different-caps", [192, 6, 222, 0, 13, 4, 0]),
        ("netgauze-stateless-with-add-path", [30, 7, 15, 0, 0, 1, 0]),
        ("netgauze-upa-1", [9, 3, 3, 0, 0, 2, 0]),
        ("netgauze-upa-2", [20, 5, 10, 0, 0, 4, 0]),
        ("netgauze-upa-3", [15, 3, 9, 0, 0, 2, 0]),
        ("netgauze-vpnv4-stateless-with-withdraw", [15, 9, 15, 0, 0, 0, 0]),
        ("pmacct-200-huawei-locrib", [103, 2, 73, 0, 11, 1, 0]),
        ("pmacct-201-cisco-rd", [336, 42, 235, 0, 0, 36, 0]),
        ("pmacct-202-cisco-1", [87, 7, 37, 0, 0, 7, 0]),
        // The capture ends within a message.
        ("pmacct-202-cisco-2", [67, 1, 66, 1, 0, 0, 0]),
        ("pmacct-204-cisco-peer-down", [343, 7, 331, 0, 30, 5, 3]),
        // FRR 8.0.1 copies an AS path of two-byte numbers and does not mark it.
        ("pmacct-205-frr-peer-down", [509, 8, 439, 2, 0, 4, 4]),
    ];
    let found: Vec<_> = streams()
        .iter()
        .map(|path| {
            let (report, bgp) = read_bgp(path);
            assert_eq!(report.format, "bmp");
            let counts = [
                report.records as usize,
                bgp.peers.len(),
                bgp.events.len(),
                bgp.damage.len(),
                bgp.ignored as usize,
                bgp.complete.len(),
                bgp.down.len(),
            ];
            (name(path).trim_end_matches(".bmp.xz").to_owned(), counts)
        })
        .collect();
    let found: Vec<_> = found.iter().map(|(name, counts)| (name.as_str(), *counts)).collect();
    assert_eq!(found, wanted);
}

/// Our event as a line of `expect/*.pmbmpd.xz`, whose next hop is taken over where pmbmpd has none.
fn as_pmbmpd(bgp: &Bgp, event: &Event, theirs: &str) -> String {
    let address = bgp.peers[event.peer as usize].address;
    let address = address.map_or("-".to_owned(), |address| address.to_string());
    let Event { time, table, prefix, path_id, .. } = event;
    let head = format!("{time} {table} {address} {prefix} #{path_id}");
    let Some(route) = &event.route else { return format!("{head} W") };
    let mut communities: Vec<&str> = route.communities.split_whitespace().collect();
    communities.sort_unstable();
    let next_hop = match (route.next_hop, theirs.split(' ').nth(5)) {
        (None, _) | (_, Some("-")) => "-".to_owned(),
        (Some(next_hop), _) => next_hop.to_string(),
    };
    let (origin, med, pref) =
        (route.origin.unwrap(), route.med.unwrap_or(0), route.local_pref.unwrap_or(0));
    let (path, communities) = (&route.as_path, communities.join(" "));
    format!("{head} {next_hop} [{path}] {origin} {med} {pref} {communities}")
}

/// Every route of every stream, VPNs included, as pmacct's BMP daemon reads it. The differences: it has no next
/// hop for IPv4 routes of VPNs over IPv6, passes over peers that never came up, and does not read version 4.
#[test]
fn as_pmacct_reads_them() {
    let (mut compared, mut without_next_hop) = (0, 0);
    for path in streams() {
        let name = name(&path);
        let expect = name.replace(".bmp.xz", ".pmbmpd.xz");
        let expect = cuts().join("bmp/expect").join(expect);
        if !expect.exists() {
            assert!(name.contains("stateless") || name.contains("marking"), "{name}");
            continue;
        }
        let (_, mut bgp) = read_bgp(&path);
        // This peer never came up.
        let left_out = |event: &Event| name.contains("evpn-1") && event.peer == 0;
        let events = std::mem::take(&mut bgp.events);
        let theirs = text(&expect);
        let mut theirs: Vec<&str> = theirs.lines().collect();
        let mut ours: Vec<&Event> = events.iter().filter(|event| !left_out(event)).collect();
        assert_eq!(ours.len(), theirs.len(), "{name}");
        // Both in an order that does not need the next hop.
        let line = |event: &Event| as_pmbmpd(&bgp, event, "- - - - - -");
        let plain = |theirs: &str| {
            let mut fields: Vec<&str> = theirs.splitn(7, ' ').collect();
            if fields.len() == 7 {
                fields[5] = "-";
            }
            fields.join(" ")
        };
        ours.sort_by_cached_key(|event| line(event));
        theirs.sort_by_cached_key(|theirs| plain(theirs));
        for (event, theirs) in ours.iter().zip(theirs) {
            let ours = as_pmbmpd(&bgp, event, theirs);
            if ours.trim_end() != theirs.trim_end() {
                // pmbmpd takes a path of two-byte numbers for an empty one.
                let is_damaged = name.contains("205") && ours.ends_with(" W");
                assert!(is_damaged, "{name}\n ours  {ours}\n theirs {theirs}");
                continue;
            }
            let has = event.route.as_ref().is_some_and(|route| route.next_hop.is_some());
            without_next_hop += u32::from(has && theirs.split(' ').nth(5) == Some("-"));
            compared += 1;
        }
    }
    assert_eq!((compared, without_next_hop), (4387, 47));
}

/// A route or a withdrawal as one of bgpkit-parser.
fn as_bgpkit(bgp: &Bgp, event: &Event) -> String {
    let peer = &bgp.peers[event.peer as usize];
    // A router's own table has no peer's address.
    let address = peer.address.unwrap_or([0, 0, 0, 0].into());
    let head = format!("{:.6} {address} {} {}", event.time as f64 / 1e6, peer.asn, event.prefix);
    match &event.route {
        None => format!("{head} W"),
        Some(route) => {
            format!("{head} {:?} {:?} [{}]", route.next_hop, route.origin_as, route.as_path)
        }
    }
}

fn of_bgpkit(elem: &BgpElem) -> String {
    let prefix = elem.prefix.prefix.trunc();
    let head =
        format!("{:.6} {} {} {prefix}", elem.timestamp, elem.peer_ip, elem.peer_asn.to_u32());
    if elem.elem_type == ElemType::WITHDRAW {
        return format!("{head} W");
    }
    let segments = elem.as_path.as_ref().map_or(&[][..], |path| &path.segments);
    let asns: Vec<u32> = segments
        .iter()
        .flat_map(|segment| match segment {
            AsPathSegment::AsSequence(asns) => asns.iter().map(|asn| asn.to_u32()),
            other => panic!("no other segments are in these streams: {other:?}"),
        })
        .collect();
    let path: Vec<String> = asns.iter().map(u32::to_string).collect();
    format!("{head} {:?} {:?} [{}]", elem.next_hop, asns.last(), path.join(" "))
}

/// Message by message, compared with bgpkit-parser: the same messages are sound, and unicast routes are equal. (It
/// reads VPN routes as if they were unicast ones, and no version 4.)
#[test]
fn as_bgpkit_reads_them() {
    let (mut compared, mut routes) = (0, 0);
    for path in streams() {
        let stream = bytes(&path);
        let (mut decoder, mut bgp) = (BmpDecoder::new(ALL), Bgp::default());
        for (number, message) in messages(&stream).enumerate() {
            let at = format!("{} message {number}", name(&path));
            bgp.events.clear();
            let damage = bgp.damage.len();
            assert_eq!(decoder.decode(message, Tail::More, &mut bgp), Ok(message.len()), "{at}");
            if message[0] != 3 {
                continue;
            }
            // The peer has no instance (octets 8 to 15), but its routes do.
            let is_vpn = message.get(8..16) == Some(&[0; 8])
                && bgp.events.iter().any(|event| event.table.contains('/'));
            let Ok(theirs) = parse_bmp_msg(&mut message.to_vec().into()) else {
                let is_ignored = bgp.events.is_empty() && bgp.ignored > 0;
                assert!(is_vpn || is_ignored || bgp.damage.len() > damage, "{at}");
                continue;
            };
            compared += 1;
            let BmpMessageBody::RouteMonitoring(body) = theirs.message_body else { continue };
            if is_vpn || bgp.damage.len() > damage {
                continue;
            }
            let peer = theirs.per_peer_header.unwrap();
            let (address, asn) = (peer.peer_ip, peer.peer_asn);
            let elems = Elementor::bgp_to_elems(body.bgp_message, peer.timestamp, &address, &asn);
            let mut wanted: Vec<String> = elems.iter().map(of_bgpkit).collect();
            let mut found: Vec<String> =
                bgp.events.iter().map(|event| as_bgpkit(&bgp, event)).collect();
            wanted.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, wanted, "{at}");
            routes += found.len();
        }
    }
    assert_eq!((compared, routes), (4752, 3338));
}

/// bgpd's own table, all paths, when FRR had sent all of it: `prefix peer next-hop AS-path`.
#[test]
fn a_whole_table_of_frr() {
    let (_, bgp) = read_bgp(&cuts().join("bmp/frr-2.bmp.xz"));
    // The session's routes before it broke off at its end.
    let table: BTreeMap<(String, String), &Event> = bgp
        .events
        .iter()
        .map(|event| {
            let peer = bgp.peers[event.peer as usize].address.unwrap().to_string();
            ((event.prefix.clone(), peer), event)
        })
        .collect();
    let wanted = text(&cuts().join("bmp/frr-2.rib.xz"));
    let (mut routes, mut without_next_hop) = (0, 0);
    for line in wanted.lines() {
        let [prefix, peer, next_hop, path] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let event = table[&(prefix.to_owned(), peer.to_owned())];
        let route = event.route.as_ref().unwrap();
        assert_eq!(event.table, "post-policy");
        // FRR puts its own AS before the path, and leaves out an IPv6 next hop of an IPv4 route.
        assert_eq!(route.as_path, format!("65000 {}", path.replace('-', " ")), "{line}");
        match route.next_hop {
            Some(found) => assert_eq!(found.to_string(), next_hop, "{line}"),
            None => {
                assert!(next_hop.contains(':') && !prefix.contains(':'), "{line}");
                without_next_hop += 1;
            }
        }
        routes += 1;
    }
    assert_eq!((routes, table.len(), without_next_hop), (962, 962, 8));
}

/// The result does not depend on how a stream is cut into pieces.
#[test]
fn cuts_change_nothing() {
    let decode = |stream: &[u8], step: usize| {
        let (mut decoder, mut bgp) = (BmpDecoder::new(ALL), Bgp::default());
        let (mut start, mut end) = (0, 0);
        while end < stream.len() {
            end = (end + step).min(stream.len());
            start += decoder.decode(&stream[start..end], Tail::More, &mut bgp).unwrap();
        }
        decoder.decode(&stream[start..], Tail::Cut, &mut bgp).unwrap();
        (bgp.peers, bgp.events, bgp.tables, bgp.damage, bgp.complete, bgp.down, decoder.records())
    };
    for path in streams() {
        let stream = bytes(&path);
        let whole = decode(&stream, usize::MAX);
        assert!(!whole.1.is_empty());
        let steps: &[usize] = if stream.len() < 3000 { &[1, 2, 5, 47, 48] } else { &[7, 1000] };
        for &step in steps {
            assert_eq!(decode(&stream, step), whole, "{} in pieces of {step}", name(&path));
        }
    }
}

/// A stream that breaks off anywhere has the routes up to there, and a report that it broke off.
#[test]
fn streams_that_break_off() {
    let path = cuts().join("bmp/netgauze-upa-3.bmp.xz");
    let (stream, (_, whole)) = (bytes(&path), read_bgp(&path));
    let mut ends = vec![0];
    messages(&stream).for_each(|message| ends.push(ends.last().unwrap() + message.len()));
    for len in 0..=stream.len() {
        let mut bgp = Bgp::default();
        BmpDecoder::new(ALL).decode(&stream[..len], Tail::Cut, &mut bgp).unwrap();
        assert_eq!(bgp.events, whole.events[..bgp.events.len()]);
        assert_eq!(bgp.damage.is_empty(), ends.contains(&len), "{len}");
    }
}
