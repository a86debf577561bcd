//! Agreement with bgpdump, line by line: `bgpdump -m` prints
//! `type|time|A|peer|AS|prefix|[path id|]path|origin|next hop|local pref|MED|...`.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use fibula_core::AnyPrefix;

use crate::common::{Bgp, Event, archives, cuts, mrt_files, name, read_bgp, text};

/// The cuts that bgpdump cannot read, and why.
const UNREAD: [(&str, &str); 6] = [
    ("bview.20000111", "it prints the first of the entries of a batch only"),
    (
        "rrc00_2000.01_updates",
        "withdrawn in BGP records, it prints the peer's address as the prefix",
    ),
    ("bird_bgp", "it takes path identifiers in ordinary records for prefixes"),
    ("bird6_bgp", "it takes path identifiers in ordinary records for prefixes"),
    ("openbgpd_rib_table-mp", "it does not know BGP4MP_ENTRY"),
    ("_3samples", "it gives no routes without a table of peers"),
];

const ARCHIVES: [&str; 8] = [
    "bview.20020722.2337.gz",
    "bview.ipv4_unicast_add_path.gz",
    "bview.ipv6_unicast_add_path.gz",
    "updates.20020722.2238.gz",
    "updates.20071015.1505.gz",
    "updates.20100722.2015.gz",
    "updates.20160811.1600.gz",
    "updates.nlri_mask_trailing_bits.gz",
];

/// MRT files and bgpdump's output for them.
fn cut_files() -> Vec<(PathBuf, PathBuf)> {
    let mrt = mrt_files(&cuts()).into_iter();
    mrt.filter(|path| !UNREAD.iter().any(|(part, _)| name(path).contains(part)))
        .map(|path| {
            let text = cuts().join(format!("mrt/expect/{}.bgpdump.xz", name(&path)));
            (path, text)
        })
        .collect()
}

fn archive_files() -> Vec<(PathBuf, PathBuf)> {
    let mrt = archives().join("mrt");
    let pair = |name: &str| {
        let text = mrt.join(format!("expect/ripencc-bgpdump-{name}.bgp.gz"));
        (mrt.join(format!("ripencc-bgpdump-{name}")), text)
    };
    ARCHIVES.map(pair).into()
}

/// OpenBGPD wrote an aggregator of four-byte AS into a dump with two-byte ones, which bgpdump does not expect.
const MISREAD: (&str, &str) = ("0 253.232.192.168", "65000 192.168.0.15");

/// The line that bgpdump should have printed, up to the MED, from its letter on, and the aggregator.
fn line(bgp: &Bgp, event: &Event, like: &Line<'_>) -> String {
    let peer = &bgp.peers[event.peer as usize];
    let address = peer.address.expect("known");
    let kind = match (&event.route, like.kind.starts_with("TABLE_DUMP")) {
        (None, _) => "W",
        (_, true) => "B",
        _ => "A",
    };
    let micros = match like.kind {
        "BGP4MP_ET" => format!(".{:06}", event.time % 1_000_000),
        _ => String::new(),
    };
    let time = event.time / 1_000_000;
    let head = format!("{time}{micros}|{kind}|{address}|{}|{}", peer.asn, event.prefix);
    let Some(route) = &event.route else { return head };
    let id = if like.has_path_id() { format!("|{}", event.path_id) } else { String::new() };
    let origin = ["IGP", "EGP", "INCOMPLETE"][usize::from(route.origin.unwrap_or(2))];
    // bgpdump's output if there is no next hop: the dump of IPv6 ADD-PATH routes has none.
    let next_hop = route.next_hop.unwrap_or(IpAddr::from([255; 4]));
    format!(
        "{head}{id}|{}|{origin}|{next_hop}|{}|{}|{}",
        route.as_path,
        route.local_pref.unwrap_or(0),
        route.med.unwrap_or(0),
        route.aggregator,
    )
}

/// A route or a withdrawal, as bgpdump printed it.
struct Line<'a> {
    kind: &'a str,
    rest: &'a str,
}

impl<'a> Line<'a> {
    /// Those of a text.
    fn all(text: &'a str) -> impl Iterator<Item = Self> {
        text.lines().filter(|line| !line.contains("|STATE|")).map(|line| {
            let (kind, rest) = line.split_once('|').expect("fields");
            Self { kind, rest }
        })
    }

    fn has_path_id(&self) -> bool {
        self.kind.ends_with("_AP")
    }

    /// The fields that are compared.
    fn compared(&self) -> String {
        let fields: Vec<String> = self.rest.split('|').map(normal).collect();
        if self.rest.contains("|W|") {
            return fields[..5].join("|");
        }
        // Between the MED and the aggregator are communities, if it prints some, and ATOMIC_AGGREGATE.
        let med = 9 + usize::from(self.has_path_id());
        let atomic = fields.iter().rposition(|field| matches!(&**field, "AG" | "NAG"));
        let aggregator = &fields[atomic.expect("of a route") + 1];
        let aggregator = if aggregator == MISREAD.0 { MISREAD.1 } else { aggregator };
        format!("{}|{aggregator}", fields[..=med].join("|"))
    }
}

/// An address or a prefix as this library writes it: older C libraries shorten a single zero group, and
/// bgpdump leaves the bits beyond the length as they came.
fn normal(field: &str) -> String {
    if let Ok(address) = field.parse::<IpAddr>() {
        return address.to_string();
    }
    let prefix = field.split_once('/').and_then(|(address, len)| {
        AnyPrefix::masked(address.parse().ok()?, len.parse().ok()?).ok()
    });
    prefix.map_or(field.to_owned(), |prefix| prefix.to_string())
}

/// Compares every route and withdrawal; returns how many there are.
fn agree(mrt: &Path, expected: &Path) -> usize {
    let name = name(mrt);
    let (report, bgp) = read_bgp(mrt);
    let text = text(expected);
    let mut wanted = Line::all(&text);
    for (i, event) in bgp.events.iter().enumerate() {
        let Some(wanted) = wanted.next() else { panic!("{name}: too many, {event:?}") };
        assert_eq!(line(&bgp, event, &wanted), wanted.compared(), "{name}, update {}", i + 1);
    }
    let left = wanted.next().map(|line| line.rest);
    assert_eq!(left, None, "{name}: too few");
    println!("{name}: {} updates, {:?}", report.updates, report.ignored);
    bgp.events.len()
}

#[test]
fn every_line_of_bgpdump() {
    let files = cut_files();
    assert_eq!(files.len(), 18);
    let lines: usize = files.iter().map(|(mrt, expected)| agree(mrt, expected)).sum();
    assert_eq!(lines, 59_738);
}

#[test]
#[ignore = "real archives: ./dev check-data"]
fn every_line_of_bgpdump_of_the_archives() {
    let files = archive_files();
    let lines: usize = files.iter().map(|(mrt, expected)| agree(mrt, expected)).sum();
    assert_eq!(lines, 176_212);
}

/// The text of bgpdump has the same content as its MRT file. Returns the number of updates.
fn text_agrees(mrt: &Path, text: &Path) -> usize {
    let ((_, mrt), (report, text)) = (read_bgp(mrt), read_bgp(text));
    assert_eq!((report.format, report.damaged), ("bgpdump", 0), "{:?}", text.damage);
    let owned = |bgp: &Bgp, event: &Event| {
        let peer = &bgp.peers[event.peer as usize];
        let mut event = Event { peer: 0, ..event.clone() };
        if let Some(route) = &mut event.route {
            // Values that it does not distinguish from none.
            route.local_pref = route.local_pref.filter(|&n| n > 0);
            route.med = route.med.filter(|&n| n > 0);
            route.origin = route.origin.or(Some(2));
            route.communities.clear();
            route.extended_communities.clear();
            route.aggregator = route.aggregator.replace(MISREAD.0, MISREAD.1);
        }
        (peer.address, peer.asn, event)
    };
    assert_eq!(mrt.events.len(), text.events.len());
    for (wanted, found) in mrt.events.iter().zip(&text.events) {
        assert_eq!(owned(&text, found), owned(&mrt, wanted));
    }
    let down = |bgp: &Bgp| -> Vec<_> {
        let seconds =
            |&(peer, time): &(u32, u64)| (bgp.peers[peer as usize].address, time / 1_000_000);
        bgp.down.iter().map(seconds).collect()
    };
    assert_eq!(down(&text), down(&mrt));
    text.events.len()
}

#[test]
fn the_text_of_bgpdump_is_read_as_its_file() {
    let updates: usize = cut_files().iter().map(|(mrt, text)| text_agrees(mrt, text)).sum();
    assert_eq!(updates, 59_738);
}

/// Compares the ends of sessions; returns how many there are.
fn agree_on_ends(mrt: &Path, expected: &Path) -> usize {
    let (_, bgp) = read_bgp(mrt);
    let text = text(expected);
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
    assert_eq!(found, wanted, "{}", name(mrt));
    found.len()
}

#[test]
fn every_session_that_ended() {
    let ends: usize = cut_files().iter().map(|(mrt, expected)| agree_on_ends(mrt, expected)).sum();
    assert_eq!(ends, 8);
}

#[test]
#[ignore = "real archives: ./dev check-data"]
fn every_session_of_the_archives_that_ended() {
    let ends: usize =
        archive_files().iter().map(|(mrt, expected)| agree_on_ends(mrt, expected)).sum();
    assert_eq!(ends, 22);
}
