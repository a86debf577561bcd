//! The output of `bgpdump -m`: a line for each route, withdrawal and session change.
//!
//! ```text
//! TABLE_DUMP2|time|B|peer|peer AS|prefix|path|origin|next hop|local pref|MED|communities|AG|aggregator|
//! BGP4MP|time|A|the same
//! BGP4MP|time|W|peer|peer AS|prefix
//! BGP4MP|time|STATE|peer|peer AS|old state|new state
//! ```
//! Types that end in `_AP` have a path identifier after the prefix. For a missing local preference or MED, bgpdump
//! prints 0, and for a missing next hop 255.255.255.255. These are read as missing.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::IpAddr;

use fibula_core::{AnyPrefix, Attributes, BgpAttributes, Change, Update};

use super::{Form, excerpt};
use crate::{PeerInfo, PeerState, Sink, SourceInfo};

const KINDS: [&str; 5] = ["TABLE_DUMP", "TABLE_DUMP2", "BGP4MP", "BGP4MP_ET", "BGP"];

pub(super) fn is_line(line: &str) -> bool {
    let mut fields = line.split('|');
    let kind = fields.next().unwrap_or_default();
    KINDS.contains(&kind.strip_suffix("_AP").unwrap_or(kind))
        && fields.nth(1).is_some_and(|what| matches!(what, "A" | "B" | "W" | "STATE"))
}

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
        let wrong = |field: &str, text: &str| format!("{field}: {}", excerpt(text));
        let fields: Vec<&str> = line.split('|').collect();
        let [kind, time, what, address, asn, ref rest @ ..] = fields[..] else {
            return Err(wrong("not a line of bgpdump -m", line).into());
        };
        // With microseconds, of records that have them.
        let (seconds, micros) = time.split_once('.').unwrap_or((time, "0"));
        let time = seconds.parse::<u32>().ok().zip(micros.parse::<u32>().ok());
        let (seconds, micros) = time.ok_or_else(|| wrong("not a time", fields[1]))?;
        let time = u64::from(seconds) * 1_000_000 + u64::from(micros);
        let peer = self.peer(address, asn, sink).ok_or_else(|| wrong("not a peer", line))?;
        if what == "STATE" {
            let state = |at: usize| rest.get(at).and_then(|text| text.parse().ok());
            let (old, new) = state(0).zip(state(1)).ok_or_else(|| wrong("not two states", line))?;
            sink.peer_state(&PeerState { peer, time, old, new });
            return Ok(());
        }
        let [prefix, ref rest @ ..] = *rest else { return Err("no prefix".into()) };
        let masked = prefix
            .split_once('/')
            .and_then(|(ip, len)| AnyPrefix::masked(ip.parse().ok()?, len.parse().ok()?).ok());
        let prefix = masked.ok_or_else(|| wrong("not a prefix", prefix))?;
        let (path_id, rest) = match (kind.ends_with("_AP"), rest) {
            (true, [id, rest @ ..]) => {
                (id.parse().map_err(|_| wrong("not a path identifier", id))?, rest)
            }
            (true, []) => return Err("no path identifier".into()),
            (false, rest) => (0, rest),
        };
        let attributes;
        let change = match (what, rest) {
            ("W", _) => Change::Withdraw,
            ("A" | "B", [path, origin, next_hop, local_pref, med, communities, ..]) => {
                let number = |text: &str| text.parse().ok().filter(|&n: &u32| n > 0);
                let (origin_as, as_path_len) = path_facts(path);
                attributes = BgpAttributes {
                    next_hop: next_hop.parse().ok().filter(|ip| *ip != IpAddr::from([255; 4])),
                    origin_as,
                    as_path_len,
                    as_path: path,
                    local_pref: number(local_pref),
                    med: number(med),
                    origin: match *origin {
                        "IGP" => Some(0),
                        "EGP" => Some(1),
                        "INCOMPLETE" => Some(2),
                        _ => None,
                    },
                    communities,
                };
                Change::Announce(Attributes::Bgp(&attributes))
            }
            ("A" | "B", _) => return Err(wrong("fewer fields than a route has", line).into()),
            _ => return Err(wrong("none of A, B, W and STATE", what).into()),
        };
        sink.update(&Update { peer, path_id, time, ..Update::new(prefix, change) });
        Ok(())
    }
}

/// The origin AS and the length of a path as text: a set counts once, confederations not.
fn path_facts(path: &str) -> (Option<u32>, u32) {
    let (mut origin, mut len, mut confederation) = (None, 0, false);
    for part in path.split(' ').filter(|part| !part.is_empty()) {
        confederation |= part.starts_with(['(', '[']);
        if !confederation {
            len += 1;
            origin = part.parse().ok(); // a set is no number, and no origin
        }
        confederation &= !part.ends_with([')', ']']);
    }
    (origin, len)
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
        assert_eq!(path_facts("1 2 {3,4}"), (None, 3));
        assert_eq!(path_facts("1 2 {3}"), (None, 3));
        assert_eq!(path_facts("(9 8) 1 2"), (Some(2), 2));
        assert_eq!(path_facts(""), (None, 0));
    }
}
