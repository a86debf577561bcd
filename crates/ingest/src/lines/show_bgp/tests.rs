use std::fmt::Write;

use fibula_core::{Attributes, Change, Update};
use proptest::prelude::*;

use super::super::{decode, decoder};
use crate::{Collected, Damage, Format, PeerInfo, Sink, Tail};

const HEADER: &str = "   Network          Next Hop            Metric LocPrf Weight Path\n";
/// As Cisco's IOS and RouteViews' archives have it, then FRR's of today.
const CISCO: &str = "\
BGP table version is 12345, local router ID is 198.51.100.1
Status codes: s suppressed, d damped, h history, * valid, > best, i - internal,
              r RIB-failure, S Stale
Origin codes: i - IGP, e - EGP, ? - incomplete

   Network          Next Hop            Metric LocPrf Weight Path
*  0.0.0.0          192.0.2.1              100             0 64500 i
*> 10.0.0.0         192.0.2.2                0             0 64501 64502 i
*                   192.0.2.1       4294967295    100      7 64500 64502 {1,2} e
*                   192.0.2.1                              0 64500 64503 64502 ?
*>i172.16.0.0       192.0.2.9              100    200      0 64504 i
*> 192.168.1.0      0.0.0.0                  0         32768 i
r> 192.168.2.128/25 192.0.2.2                              0 64501 1.10 i
h  203.0.113.0      192.0.2.2                              0 64501 i
*> 203.0.113.128/255.255.255.128
*> 100.100.100.100/32
                    192.0.2.2                              0 64501 i
*> 2001:DB8:1234:5678::/64
                    2001:DB8:FFFF::1
                                             5             0 64501 (65001 65002) i

Total number of prefixes 9
router> exit
";
const FRR: &str = "\
BGP table version is 3, local router ID is 10.0.0.1, vrf id 0
Default local pref 100, local AS 64500
Status codes:  s suppressed, d damped, h history, u unsorted, * valid, > best, = multipath,
               i internal, r RIB-failure, S Stale, R Removed
Nexthop codes: @NNN nexthop's vrf id, < announce-nh-self

     Network          Next Hop            Metric LocPrf Weight Path
 *=  10.0.0.0/8       192.0.2.1@7<             0             0 64501 i
V*>                   192.0.2.2                              0 64502 i
N*>  2001:db8:100:200:300::/80
                    fe80::1                                0 64502 i
 *>i 2001:db8::/32    2001:db8::1(one)
                                             0    100      0 64503 ?

Displayed 3 routes and 4 total paths
";

#[test]
fn cisco() {
    let sink = decode(Format::ShowBgp, CISCO);
    assert_eq!(
        sink.lines,
        [
            "+ 0 0.0.0.0/0 192.0.2.1 64500",
            "+ 1 10.0.0.0/8 192.0.2.2 64502",
            "+ 0 10.0.0.0/8 192.0.2.1 none",
            "+ 0 10.0.0.0/8#1 192.0.2.1 64502",
            "+ 2 172.16.0.0/16 192.0.2.9 64504",
            "+ 3 192.168.1.0/24 none none",
            "+ 1 192.168.2.128/25 192.0.2.2 65546",
            "+ 1 100.100.100.100/32 192.0.2.2 64501",
            "+ 4 2001:db8:1234:5678::/64 2001:db8:ffff::1 64501",
        ]
    );
    let peers = [("192.0.2.1", 64500), ("192.0.2.2", 64501), ("192.0.2.9", 0)];
    let known = peers.map(|(ip, asn)| PeerInfo::new(ip.parse().ok(), asn, None));
    assert_eq!(sink.peers[..3], known);
    assert_eq!(sink.peers[3], PeerInfo::new(None, 0, None));
    // A mask in place of a length.
    assert_eq!((sink.damage.len(), sink.damage[0].record), (1, 15));
    assert_eq!(sink.ignored, 1);
}

#[test]
fn frr() {
    let sink = decode(Format::ShowBgp, FRR);
    assert_eq!(
        sink.lines,
        [
            "+ 0 10.0.0.0/8 192.0.2.1 64501",
            "+ 1 10.0.0.0/8 192.0.2.2 64502",
            "+ 2 2001:db8:100:200:300::/80 fe80::1 64502",
            "+ 3 2001:db8::/32 2001:db8::1 64503",
        ]
    );
    assert_eq!(sink.damage, []);
}

#[test]
fn only_what_the_router_chose() {
    let mut sink = Collected::default();
    let taken =
        decoder(Format::ShowBgp, false).unwrap().decode(CISCO.as_bytes(), Tail::End, &mut sink);
    assert_eq!(taken, Ok(CISCO.len()));
    assert_eq!(sink.lines.len(), 6);
    assert_eq!(sink.ignored, 4);
}

#[test]
fn vpns_are_tables_of_their_own() {
    let rows = "\
Route Distinguisher: 64500:1 (default for vrf blue)
*> 10.0.0.0         192.0.2.2                0             0 64501 i
Route Distinguisher: 64500:2
*> 10.0.0.0         192.0.2.2                0             0 64501 i
";
    let sink = decode(Format::ShowBgp, &format!("{HEADER}{rows}"));
    let route = "+ 0 10.0.0.0/8 192.0.2.2 64501 of";
    assert_eq!(sink.lines, [format!("{route} 1"), format!("{route} 2")]);
    assert_eq!(sink.vrfs, ["1 = 64500:1", "2 = 64500:2"]);
    assert_eq!(sink.damage, []);
}

#[test]
fn damage() {
    for (rows, what) in [
        (
            "*                   192.0.2.1                              0 64500 i\n",
            "without a prefix above",
        ),
        ("*> 10.1.0.0         192.0.2.1                              0 64500 i\n", "not a prefix"),
        ("*> 240.0.0.0        192.0.2.1                              0 64500 i\n", "not a prefix"),
        ("*> 10.0.0.0/33      192.0.2.1                              0 64500 i\n", "not a prefix"),
        ("*> [2]:[0]:[48]     192.0.2.1                              0 64500 i\n", "not a prefix"),
        (
            "*> 10.0.0.0         router                                 0 64500 i\n",
            "not a next hop",
        ),
        (
            "*> 10.0.0.0   192.0.2.1                                    0 64500 i\n",
            "no next hop in its",
        ),
        ("*> 10.0.0.0         192.0.2.1                0               64500 i\n", "in no column"),
        ("*> 10.0.0.0         192.0.2.1                0  \n", "no weight"),
        ("*> 10.0.0.0         192.0.2.1        4294967296             0 64500 i\n", "not a number"),
        ("*> 10.0.0.0         192.0.2.1                              0 64500\n", "no origin code"),
        (
            "*> 10.0.0.0         192.0.2.1                              0 64500 x i\n",
            "not an AS path",
        ),
        (
            "*> 10.0.0.0         192.0.2.1                              0 4294967296 i\n",
            "not an AS path",
        ),
        (
            "*> 10.0.0.0         192.0.2.1                              0 64500 \u{e9} i\n",
            "not ASCII",
        ),
        (" --More-- \n", "not a prefix"),
        (
            "*> 10.0.0.0\n*> 11.0.0.0         192.0.2.1                0             0 64500 i\n",
            "breaks off",
        ),
        ("*> 10.0.0.0\n", "last row breaks off"),
        ("*> 10.0.0.0         192.0.2.1\n", "last row breaks off"),
        ("*> 10.0.0.0\nTotal number of prefixes 1\n", "breaks off"),
    ] {
        let text = format!("{HEADER}{rows}");
        let sink = decode(Format::ShowBgp, &text);
        let found: Vec<_> = sink.damage.iter().map(|damage| damage.what.as_ref()).collect();
        assert!(found.len() == 1 && found[0].contains(what), "{rows}: {found:?}");
        assert!(sink.lines.len() < 2, "{rows}");
    }
}

/// A path, as printed.
#[derive(Clone, Debug)]
struct Given {
    prefix: String,
    next_hop: String,
    metric: Option<u32>,
    local_pref: Option<u32>,
    weight: u16,
    as_path: String,
    origin: u8,
    is_best: bool,
}

fn given() -> impl Strategy<Value = Given> {
    let v4 = (any::<u32>(), 0..=32u8).prop_map(|(ip, len)| {
        let ip = if len == 0 { 0 } else { ip >> (32 - len) << (32 - len) };
        (format!("{}/{len}", std::net::Ipv4Addr::from(ip)), "192.0.2.1".to_owned())
    });
    let v6 = (any::<u128>(), 1..=128u8, any::<u128>()).prop_map(|(ip, len, hop)| {
        let ip = std::net::Ipv6Addr::from(ip >> (128 - len) << (128 - len));
        (format!("{ip}/{len}"), std::net::Ipv6Addr::from(hop | 1).to_string())
    });
    let asns = proptest::collection::vec(any::<u32>().prop_map(|asn| asn.max(1)), 0..6);
    let numbers = (any::<Option<u32>>(), proptest::option::of(0..1_000_000u32), any::<u16>());
    (prop_oneof![v4, v6], numbers, asns, 0..3u8, any::<bool>()).prop_map(
        |((prefix, next_hop), (metric, local_pref, weight), asns, origin, is_best)| {
            let as_path = asns.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
            Given { prefix, next_hop, metric, local_pref, weight, as_path, origin, is_best }
        },
    )
}

/// As Quagga prints a table; `lead` is the place of the prefixes.
fn print(rows: &[Given], lead: usize) -> String {
    let number = |number: Option<u32>| number.map(|n| n.to_string()).unwrap_or_default();
    let names = "Network          Next Hop            Metric LocPrf Weight Path";
    let mut text = format!("{:lead$}{names}\n", "");
    let mut last = "";
    for row in rows {
        let prefix = if row.prefix == last { "" } else { &row.prefix };
        last = &row.prefix;
        let _ = write!(text, "{:lead$}{prefix}", if row.is_best { "*>" } else { "*" });
        let indent = |text: &mut String, by: usize| {
            let _ = write!(text, "\n{:by$}", "");
        };
        match prefix.len() {
            len @ ..17 => text.extend(std::iter::repeat_n(' ', 17 - len)),
            _ => indent(&mut text, 17 + lead),
        }
        text.push_str(&row.next_hop);
        match row.next_hop.len() {
            len @ ..16 => text.extend(std::iter::repeat_n(' ', 16 - len)),
            _ => indent(&mut text, 33 + lead),
        }
        let (metric, local_pref) = (number(row.metric), number(row.local_pref));
        let origin = ["i", "e", "?"][usize::from(row.origin)];
        let between = if row.as_path.is_empty() { "" } else { " " };
        let Given { weight, as_path, .. } = row;
        let _ = writeln!(text, "{metric:>10}{local_pref:>7}{weight:>7} {as_path}{between}{origin}");
    }
    text
}

/// Prints the updates of a sink as they were given.
#[derive(Default)]
struct Printed(Vec<String>);

impl Sink for Printed {
    fn update(&mut self, update: &Update<'_>) {
        let Change::Announce(Attributes::Bgp(bgp)) = update.change else { panic!("{update:?}") };
        self.0.push(format!(
            "{} {:?} {:?} {:?} {} {:?} {:?}",
            update.prefix, bgp.next_hop, bgp.med, bgp.local_pref, bgp.as_path, bgp.origin, bgp.best
        ));
    }
    fn damage(&mut self, damage: &Damage) -> std::ops::ControlFlow<()> {
        panic!("{damage}");
    }
}

proptest! {
    #[test]
    fn what_was_printed_is_read(rows in proptest::collection::vec(given(), 1..20), lead in 3..6usize) {
        let text = print(&rows, lead);
        let mut found = Printed::default();
        let taken = decoder(Format::ShowBgp, true).unwrap().decode(text.as_bytes(), Tail::End, &mut found);
        prop_assert_eq!(taken, Ok(text.len()));
        let wanted: Vec<String> = rows
            .iter()
            .map(|row| {
                let next_hop = row.next_hop.parse::<std::net::IpAddr>().ok();
                let (med, origin, best) = (row.metric, Some(row.origin), Some(row.is_best));
                let Given { prefix, local_pref, as_path, .. } = row;
                format!("{prefix} {next_hop:?} {med:?} {local_pref:?} {as_path} {origin:?} {best:?}")
            })
            .collect();
        prop_assert_eq!(found.0, wanted, "{}", text);
    }

    #[test]
    fn any_text_is_read(rows in "[ *>hi0-9./:a-f?{}(),\n]{0,300}") {
        decode(Format::ShowBgp, &format!("{HEADER}{rows}"));
    }
}
