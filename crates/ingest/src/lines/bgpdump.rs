//! Routes, withdrawals and session changes, a line for each, as four tools print them.
//!
//! ```text
//! TABLE_DUMP2|time|B|peer|peer AS|prefix|path|origin|next hop|local pref|MED|communities|AG|aggregator|      bgpdump -m
//! BGP4MP|time|A|the same
//! BGP4MP|time|W|peer|peer AS|prefix
//! BGP4MP|time|STATE|peer|peer AS|old state|new state
//! A|time|peer|peer AS|prefix|path|origin|next hop|local pref|MED|communities|...                             bgpkit-parser
//! U|A|time|project|collector|router|router IP|peer AS|peer|prefix|next hop|path|origin AS|communities|old|new    bgpreader
//! +|prefixes|path|next hop|origin|atomic|aggregator|communities|peer peer AS|time|...                           bgpscanner
//! ```
//! Types of bgpdump that end in `_AP` have a path identifier after the prefix. For a missing local preference or MED,
//! bgpdump prints 0, and for a missing next hop 255.255.255.255. These are read as missing. `dialects.rs` finds the
//! fields.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::IpAddr;

use fibula_core::{Aggregator, AnyPrefix, Attributes, BgpAttributes, Change, Update};

use super::dialects::{Action, Element, element};
use super::{Form, excerpt};
use crate::bgp::{PathFacts, RouteFacts};
use crate::{PeerInfo, PeerState, Sink, SourceInfo};

pub(super) use super::dialects::is_line;

#[derive(Default)]
pub(super) struct Bgpdump {
    peers: HashMap<PeerInfo, u32>,
    last: Option<(PeerInfo, u32)>,
}

impl Bgpdump {
    fn peer(&mut self, address: &str, asn: &str, sink: &mut dyn Sink) -> Option<u32> {
        let peer = PeerInfo::new(address.parse().ok(), asn.parse().ok()?, None);
        peer.address?;
        if let Some((last, number)) = &self.last
            && *last == peer
        {
            return Some(*number);
        }
        // Each takes a line: 2^32 of them do not occur.
        let next = self.peers.len() as u32;
        let number = *self.peers.entry(peer.clone()).or_insert_with(|| {
            sink.peer(next, &peer);
            next
        });
        self.last = Some((peer, number));
        Some(number)
    }
}

impl Form for Bgpdump {
    fn info(&self) -> SourceInfo {
        SourceInfo { format: "bgpdump", bgp: true, ..SourceInfo::default() }
    }

    fn line(&mut self, line: &str, sink: &mut dyn Sink) -> Result<(), Cow<'static, str>> {
        let Some(Element { time, peer, action }) = element(line)? else { return Ok(()) };
        // With microseconds, of records that have them.
        let (seconds, micros) = time.split_once('.').unwrap_or((time, "0"));
        let micros = micros.get(..6).unwrap_or(micros);
        let both = seconds.parse::<u32>().ok().zip(micros.parse::<u32>().ok());
        let (seconds, micros) = both.ok_or_else(|| format!("not a time: {}", excerpt(time)))?;
        let time = u64::from(seconds) * 1_000_000 + u64::from(micros);
        let number = self.peer(peer.0, peer.1, sink);
        let peer = number.ok_or_else(|| format!("not a peer: {}", excerpt(line)))?;
        let attributes;
        let (prefixes, path_id, change) = match action {
            Action::State(old, new) => {
                sink.peer_state(&PeerState { peer, time, old, new });
                return Ok(());
            }
            Action::Withdraw(prefixes, path_id) => (prefixes, path_id, Change::Withdraw),
            Action::Announce(prefixes, path_id, route) => {
                let number = |text: &str| text.parse().ok().filter(|&n: &u32| n > 0);
                let (origin_as, as_path_len, facts) = path_facts(route.path);
                // bgpscanner and bgpkit-parser print only what there is, and no address for none.
                let next_hop = route.next_hop.split(' ').next().and_then(|text| text.parse().ok());
                let next_hop = next_hop.filter(|ip| *ip != IpAddr::from([255; 4]));
                RouteFacts { path: Some(facts), next_hop }.note(None, sink);
                attributes = BgpAttributes {
                    next_hop,
                    origin_as,
                    as_path_len,
                    as_path: route.path,
                    local_pref: number(route.local_pref),
                    med: number(route.med),
                    origin: match route.origin {
                        "IGP" | "i" => Some(0),
                        "EGP" | "e" => Some(1),
                        "INCOMPLETE" | "?" => Some(2),
                        _ => None,
                    },
                    communities: route.communities,
                    aggregator: aggregator(route.aggregator),
                    ..BgpAttributes::default()
                };
                (prefixes, path_id, Change::Announce(Attributes::Bgp(&attributes)))
            }
        };
        let mut found = 0;
        for text in prefixes.split([' ', ',']).filter(|text| !text.is_empty()) {
            let masked = text
                .split_once('/')
                .and_then(|(ip, len)| AnyPrefix::masked(ip.parse().ok()?, len.parse().ok()?).ok());
            let prefix = masked.ok_or_else(|| format!("not a prefix: {}", excerpt(text)))?;
            found += 1;
            sink.update(&Update { peer, path_id, time, ..Update::new(prefix, change) });
        }
        if found == 0 { Err("not a prefix: \"\"".into()) } else { Ok(()) }
    }
}

fn aggregator((asn, address): (&str, &str)) -> Option<Aggregator> {
    Some(Aggregator { asn: asn.parse().ok()?, address: address.parse().ok()? })
}

/// The origin AS and the length of a path as text, in which a set counts once and confederations do not, and what the
/// rules look at.
pub(super) fn path_facts(path: &str) -> (Option<u32>, u32, PathFacts) {
    let (mut origin, mut len, mut confederation) = (None, 0, false);
    let mut facts = PathFacts { is_empty: true, ..PathFacts::default() };
    for part in path.split(' ').filter(|part| !part.is_empty()) {
        confederation |= part.starts_with(['(', '[']);
        facts.is_empty = false;
        facts.has_confederation |= confederation;
        let mut asns =
            part.split([',', '{', '}', '(', ')', '[', ']']).filter(|asn| !asn.is_empty());
        facts.has_empty_segment |= asns.clone().next().is_none();
        facts.has_as_0 |= asns.any(|asn| asn == "0");
        if !confederation {
            len += 1;
            origin = part.parse().ok(); // a set is no number, and no origin
        }
        confederation &= !part.ends_with([')', ']']);
    }
    (origin, len, facts)
}

#[cfg(test)]
mod tests {
    use super::super::decode;
    use super::path_facts;
    use crate::Format;

    #[test]
    fn routes_withdrawals_and_states() {
        let sink = decode(
            Format::Bgpdump,
            "TABLE_DUMP2|1277971199|B|192.0.2.9|2497|10.0.0.0/8|2497 64500|IGP|192.0.2.9|0|0||NAG||\n\
             BGP4MP|1445558400|W|192.0.2.9|2497|10.0.0.0/8\n\
             BGP4MP_ET|1445558400.000007|A|2001:db8::1|64501|2001:db8::/32|64501 {7,8}|EGP|2001:db8::1|100|5|1:2|NAG||\n\
             TABLE_DUMP2_AP|1|B|192.0.2.9|2497|10.1.0.0/16|36|2497|IGP|192.0.2.9|0|0||NAG||\n\
             BGP4MP|1445558401|STATE|192.0.2.9|2497|6|1\n",
        );
        assert_eq!(
            sink.lines,
            [
                "+ 0 10.0.0.0/8 192.0.2.9 64500",
                "- 0 10.0.0.0/8",
                "+ 1 2001:db8::/32 2001:db8::1 none",
                "+ 0 10.1.0.0/16#36 192.0.2.9 2497",
            ]
        );
        assert_eq!((sink.peers.len(), sink.states.len(), sink.damage.len()), (2, 1, 0));
        assert!(sink.states[0].is_down());
    }

    #[test]
    fn other_tools() {
        let routes = ["+ 0 10.0.0.0/8 192.0.2.1 64501", "- 0 10.0.0.0/8"];
        for text in [
            "A|1764115202|192.0.2.1|64500|10.0.0.0/8|64500 64501|IGP|192.0.2.1|0|7|64500:1|false||\n\
             W|1764115203.5|192.0.2.1|64500|10.0.0.0/8|||||||||\n",
            "type|timestamp|peer_ip|peer_asn|prefix|as_path|origin_asns|origin|next_hop|local_pref|med|communities|atomic|aggr_asn|aggr_ip|only_to_customer\n\
             A|1764115202|192.0.2.1|64500|10.0.0.0/8|64500 64501|64501|IGP|192.0.2.1|0|7|64500:1|false|||\n\
             W|1764115203|192.0.2.1|64500|10.0.0.0/8|||||||||||\n",
            "U|A|1764115202.000000|ris|rrc00|||64500|192.0.2.1|10.0.0.0/8|192.0.2.1|64500 64501|64501|64500:1||\n\
             U|W|1764115203.000000|ris|rrc00|||64500|192.0.2.1|10.0.0.0/8||||||\n",
            "R|A|1764115202|ris|rrc00|64500|192.0.2.1|10.0.0.0/8|192.0.2.1|64500 64501|64501|||\n\
             U|W|1764115203|ris|rrc00|64500|192.0.2.1|10.0.0.0/8||||||\n",
            "=|10.0.0.0/8|64500 64501|192.0.2.1|i|||64500:1|192.0.2.1 64500|1764115202|1\n\
             -|10.0.0.0/8|||||||192.0.2.1 64500|1764115203|1\n",
        ] {
            let sink = decode(Format::Bgpdump, text);
            assert_eq!(sink.lines, routes, "{text}");
            assert_eq!((sink.peers[0].asn, &*sink.damage), (64500, &[][..]), "{text}");
        }
        let several =
            decode(Format::Bgpdump, "+|10.0.0.0/8 11.0.0.0/8|1|192.0.2.1|i||||192.0.2.1 1|1|1\n");
        assert_eq!(several.lines.len(), 2);
        let states = "U|S|1764115203.000000|ris|rrc00|||64500|192.0.2.1||||||ESTABLISHED|IDLE\n";
        assert!(decode(Format::Bgpdump, states).states[0].is_down());
        let ends = "R|R|1764115203.000000|ris|rrc00|||64500|192.0.2.1|10.0.0.0/8|192.0.2.1|1|1|||\n\
                    U|E|1764115203.000000|ris|rrc00|||64500|192.0.2.1|||||||\n";
        assert_eq!(decode(Format::Bgpdump, ends).lines.len(), 1);
    }

    #[test]
    fn damage() {
        let sink = decode(
            Format::Bgpdump,
            "BGP4MP|1|W|192.0.2.9|1|10.0.0.0/8\nBGP4MP|x|W|192.0.2.9|1|10.0.0.0/8\n\
             BGP4MP|1|A|192.0.2.9|1|10.0.0.0/8|1|IGP\nBGP4MP|1|W|192.0.2.9|1|10.0.0.0/40\n\
             BGP4MP|1|W|router|1|10.0.0.0/8\nBGP4MP|1|Q|192.0.2.9|1|10.0.0.0/8\nBGP4MP\n",
        );
        assert_eq!((sink.lines.len(), sink.damage.len()), (1, 6));
    }

    #[test]
    fn paths() {
        let origin_and_length = |path| {
            let (origin, len, _) = path_facts(path);
            (origin, len)
        };
        assert_eq!(origin_and_length("1 2 {3,4}"), (None, 3));
        assert_eq!(origin_and_length("1 2 {3}"), (None, 3));
        assert_eq!(origin_and_length("(9 8) 1 2"), (Some(2), 2));
        assert_eq!(origin_and_length(""), (None, 0));
    }

    /// As of archives in other formats.
    #[test]
    fn doubtful_routes_are_counted() {
        const AS_0: &str = "AS paths with AS 0, kept as they are";
        const NO_HOST: &str = "next hops that are not the address of a host, kept as they are";
        let noted = |path: &str, next_hop: &str| {
            let line =
                format!("BGP4MP|1|A|192.0.2.9|1|10.0.0.0/8|{path}|IGP|{next_hop}|0|0||NAG||\n");
            decode(Format::Bgpdump, &line).noted
        };
        assert_eq!(noted("1 2 {3,4}", "192.0.2.9"), Vec::<&str>::new());
        assert_eq!(noted("1 10", "0.0.0.0"), [NO_HOST]);
        assert_eq!(noted("1 {0,2}", "224.0.0.5"), [AS_0, NO_HOST]);
        assert_eq!(
            noted("1 {}", "192.0.2.9"),
            ["AS paths with an empty segment, kept as they are"]
        );
        assert_eq!(noted("", "192.0.2.9"), ["empty AS paths, kept as they are"]);
        let confederation = "AS paths with a segment of a confederation, kept as they are";
        assert_eq!(noted("(9 8) 1", "192.0.2.9"), [confederation]);
        assert_eq!(noted("1", "255.255.255.255"), ["routes without a next hop, kept as they are"]);
    }
}
