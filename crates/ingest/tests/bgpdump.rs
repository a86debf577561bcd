//! Agreement with bgpdump, line by line: `bgpdump -m` prints
//! `type|time|A|peer|AS|prefix|[path id|]path|origin|next hop|local pref|MED|...`.

mod common;

use std::net::IpAddr;

use fibula_core::AnyPrefix;

use common::{Bgp, Event, gunzip, read_bgp, shared};

const FILES: [&str; 8] = [
    "bview.20020722.2337.gz",
    "bview.ipv4_unicast_add_path.gz",
    "bview.ipv6_unicast_add_path.gz",
    "updates.20020722.2238.gz",
    "updates.20071015.1505.gz",
    "updates.20100722.2015.gz",
    "updates.20160811.1600.gz",
    "updates.nlri_mask_trailing_bits.gz",
];

/// The line that bgpdump should have printed, up to the MED; `kind` is its type and letter.
fn line(bgp: &Bgp, event: &Event, is_table: bool, add_path: bool) -> String {
    let peer = &bgp.peers[event.peer as usize];
    let address = peer.address.expect("known");
    let kind = match (&event.route, is_table) {
        (None, _) => "W",
        (_, true) => "B",
        _ => "A",
    };
    let head = format!("{}|{kind}|{address}|{}|{}", event.time / 1_000_000, peer.asn, event.prefix);
    let Some(route) = &event.route else { return head };
    let id = if add_path { format!("|{}", event.path_id) } else { String::new() };
    let origin = ["IGP", "EGP", "INCOMPLETE"][usize::from(route.origin.unwrap_or(2))];
    // What bgpdump prints where there is no next hop: the dump of IPv6 ADD-PATH routes has none.
    let next_hop = route.next_hop.unwrap_or(IpAddr::from([255; 4]));
    format!(
        "{head}{id}|{}|{origin}|{next_hop}|{}|{}",
        route.as_path,
        route.local_pref.unwrap_or(0),
        route.med.unwrap_or(0),
    )
}

/// Strips what is not compared.
fn expected(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter(|line| !line.contains("|STATE|")).map(|line| {
        let (kind, rest) = line.split_once('|').expect("fields");
        let fields = match (kind, rest.contains("|W|")) {
            (_, true) => 5,
            ("TABLE_DUMP2_AP", _) => 11,
            _ => 10,
        };
        rest.split('|').take(fields).map(normal).collect::<Vec<_>>().join("|")
    })
}

/// An address or a prefix as this library writes it: older C libraries shorten a single zero group.
fn normal(field: &str) -> String {
    if let Ok(address) = field.parse::<IpAddr>() {
        return address.to_string();
    }
    field.parse::<AnyPrefix>().map_or(field.to_owned(), |prefix| prefix.to_string())
}

#[test]
fn every_line_of_bgpdump() {
    let Some(data) = shared() else { return };
    for name in FILES {
        let (report, bgp) = read_bgp(&data.join(format!("mrt/ripencc-bgpdump-{name}")));
        // The last file's list of prefixes breaks off after the first, which bgpdump prints.
        let damaged = usize::from(name.contains("trailing_bits"));
        assert_eq!(bgp.damage.len(), damaged, "{name}: {:?}", bgp.damage);
        let text = gunzip(&data.join(format!("mrt/expect/ripencc-bgpdump-{name}.bgp.gz")));
        let is_table = name.starts_with("bview");
        let add_path = text.starts_with("TABLE_DUMP2_AP");
        let mut wanted = expected(&text);
        for (i, event) in bgp.events.iter().enumerate() {
            let found = line(&bgp, event, is_table, add_path);
            assert_eq!(Some(&found), wanted.next().as_ref(), "{name}, update {}", i + 1);
        }
        assert_eq!(wanted.next(), None, "{name}");
        println!("{name}: {} updates, {:?}", report.updates, report.ignored);
    }
}

#[test]
fn every_session_that_ended() {
    let Some(data) = shared() else { return };
    for name in FILES {
        let (_, bgp) = read_bgp(&data.join(format!("mrt/ripencc-bgpdump-{name}")));
        let text = gunzip(&data.join(format!("mrt/expect/ripencc-bgpdump-{name}.bgp.gz")));
        let wanted: Vec<String> = text
            .lines()
            .filter_map(|line| line.split_once("|STATE|"))
            .filter(|(_, rest)| rest.contains("|6|") && !rest.ends_with("|6"))
            .map(|(head, rest)| {
                let (_, time) = head.split_once('|').expect("time");
                let mut peer = rest.split('|');
                format!("{time} {} {}", peer.next().unwrap(), peer.next().unwrap())
            })
            .collect();
        let found: Vec<String> = bgp
            .down
            .iter()
            .map(|&(peer, time)| {
                let peer = &bgp.peers[peer as usize];
                format!("{} {} {}", time / 1_000_000, peer.address.unwrap(), peer.asn)
            })
            .collect();
        assert_eq!(found, wanted, "{name}");
    }
}
