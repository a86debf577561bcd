//! The content of a message.

use std::fmt::Write;
use std::net::IpAddr;

use fibula_core::{Aggregator, AnyPrefix, Attributes, BgpAttributes, Change, Update};
use serde_json::Value as Json;

use crate::bgp::{BgpOptions, PathFacts, RouteFacts};
use crate::{PeerState, Sink};

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageKind {
    Update,
    State,
    Other,
}

/// A message with its fixed fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Data<'a> {
    json: &'a Json,
    pub(super) what: MessageKind,
    pub(super) address: IpAddr,
    pub(super) asn: u32,
    /// `rrc21`; empty if it is not given.
    pub(super) collector: &'a str,
    /// Microseconds since 1970.
    time: u64,
}

impl<'a> Data<'a> {
    pub(super) fn read(json: &'a Json) -> Result<Self, String> {
        let what = match json["type"].as_str() {
            Some("UPDATE") => MessageKind::Update,
            Some("RIS_PEER_STATE") => MessageKind::State,
            Some(_) => MessageKind::Other,
            None => return Err("the message's data has no type".to_owned()),
        };
        let address = json["peer"].as_str().and_then(|peer| peer.parse().ok());
        let asn = match &json["peer_asn"] {
            Json::String(text) => text.parse().ok(),
            number => asn(number),
        };
        let host = json["host"].as_str().unwrap_or_default();
        let time = json["timestamp"].as_f64().filter(|time| (0.0..1e12).contains(time));
        Ok(Self {
            json,
            what,
            address: address.ok_or_else(|| bad(json, "peer", "an address"))?,
            asn: asn.ok_or_else(|| bad(json, "peer_asn", "an AS number"))?,
            collector: host.strip_suffix(".ripe.net").unwrap_or(host),
            time: match time {
                Some(time) => (time * 1e6).round() as u64,
                None if json["timestamp"].is_null() => 0,
                None => return Err(bad(json, "timestamp", "a time in seconds")),
            },
        })
    }

    /// A change of the session, as an `old` and a `new` state of RFC 6396.
    pub(super) fn state(&self, peer: u32, sink: &mut dyn Sink) -> Result<(), String> {
        let (old, new) = match self.json["state"].as_str() {
            Some("connected") => (5, 6),
            Some("down") => (6, 1),
            _ => return Err(bad(self.json, "state", "connected or down")),
        };
        sink.peer_state(&PeerState { peer, time: self.time, old, new });
        Ok(())
    }

    /// Gives the sink all routes; the first fault.
    pub(super) fn update(
        &self,
        peer: u32,
        options: BgpOptions,
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        let mut first = None;
        let emit = |sink: &mut dyn Sink,
                    prefix: &Json,
                    change: Change<'_>,
                    first: &mut Option<String>| {
            let parsed = prefix.as_str().and_then(|prefix| prefix.parse::<AnyPrefix>().ok());
            match parsed {
                Some(prefix) => {
                    sink.update(&Update { peer, time: self.time, ..Update::new(prefix, change) });
                }
                None => drop(first.get_or_insert_with(|| format!("{prefix} is no prefix"))),
            }
        };
        for prefix in list(self.json, "withdrawals", &mut first) {
            emit(sink, prefix, Change::Withdraw, &mut first);
        }
        let announcements = list(self.json, "announcements", &mut first);
        if announcements.is_empty() {
            return first.map_or(Ok(()), Err);
        }
        let (attributes, fault) = match Read::attributes(self.json, options) {
            Ok(read) => (Some(read), None),
            Err(fault) => (None, Some(fault)),
        };
        first = first.or(fault);
        for announcement in announcements {
            let next_hop = next_hop(&announcement["next_hop"]);
            if next_hop.is_none() {
                first.get_or_insert_with(|| bad(announcement, "next_hop", "an address"));
            }
            let bgp = attributes.as_ref().filter(|_| next_hop.is_some());
            let bgp = bgp.map(|read| BgpAttributes { next_hop, ..read.borrow() });
            if let Some(read) = attributes.as_ref().filter(|_| next_hop.is_some()) {
                RouteFacts { path: Some(read.facts), next_hop }.note(None, sink);
            }
            let change = match &bgp {
                Some(bgp) => Change::Announce(Attributes::Bgp(bgp)),
                None => Change::Withdraw,
            };
            for prefix in list(announcement, "prefixes", &mut first) {
                emit(sink, prefix, change, &mut first);
            }
        }
        first.map_or(Ok(()), Err)
    }
}

/// The attributes that all announcements of a message have.
#[derive(Debug, Default)]
struct Read {
    as_path: String,
    as_path_len: u32,
    origin_as: Option<u32>,
    origin: Option<u8>,
    med: Option<u32>,
    communities: String,
    aggregator: Option<Aggregator>,
    facts: PathFacts,
}

impl Read {
    fn attributes(json: &Json, options: BgpOptions) -> Result<Self, String> {
        let mut read = Self::default();
        let path = json["path"].as_array().ok_or_else(|| bad(json, "path", "a list"))?;
        read.facts.is_empty = path.is_empty();
        for step in path {
            read.step(step, options.as_path)
                .ok_or_else(|| format!("{step} in the path is neither an AS number nor a list"))?;
        }
        read.origin = match json["origin"].as_str() {
            Some(origin) if origin.eq_ignore_ascii_case("igp") => Some(0),
            Some(origin) if origin.eq_ignore_ascii_case("egp") => Some(1),
            Some(origin) if origin.eq_ignore_ascii_case("incomplete") => Some(2),
            _ => return Err(bad(json, "origin", "igp, egp or incomplete")),
        };
        read.med = match &json["med"] {
            Json::Null => None,
            number => Some(asn(number).ok_or_else(|| bad(json, "med", "a number"))?),
        };
        if options.communities
            && let Json::Array(communities) = &json["community"]
        {
            for community in communities {
                let parts = community.as_array().map_or(&[][..], Vec::as_slice);
                let [Some(a), Some(b)] = [0, 1].map(|at| parts.get(at).and_then(asn)) else {
                    return Err(format!("{community} is no community"));
                };
                let between = if read.communities.is_empty() { "" } else { " " };
                let _ = write!(read.communities, "{between}{a}:{b}");
            }
        }
        // A malformed one is discarded (RFC 7606, 7.7).
        read.aggregator = json["aggregator"].as_str().and_then(aggregator);
        Ok(read)
    }

    /// Adds an AS, or a set.
    fn step(&mut self, step: &Json, with_text: bool) -> Option<()> {
        let (open, asns, close) = match step {
            Json::Array(set) => ("{", set.as_slice(), "}"),
            number => ("", std::slice::from_ref(number), ""),
        };
        let asns: Vec<u32> = asns.iter().map(asn).collect::<Option<_>>()?;
        self.facts.has_as_0 |= asns.contains(&0);
        self.facts.has_empty_segment |= asns.is_empty();
        // As in a path of BGP: an empty set is nothing, and no AS of a set is the origin.
        let [first, rest @ ..] = asns.as_slice() else { return Some(()) };
        self.as_path_len += 1;
        self.origin_as = open.is_empty().then_some(*first);
        if with_text {
            let between = if self.as_path.is_empty() { "" } else { " " };
            let _ = write!(self.as_path, "{between}{open}{first}");
            for asn in rest {
                let _ = write!(self.as_path, ",{asn}");
            }
            self.as_path.push_str(close);
        }
        Some(())
    }

    fn borrow(&self) -> BgpAttributes<'_> {
        BgpAttributes {
            next_hop: None,
            origin_as: self.origin_as,
            as_path_len: self.as_path_len,
            as_path: &self.as_path,
            local_pref: None,
            med: self.med,
            origin: self.origin,
            communities: &self.communities,
            aggregator: self.aggregator,
            ..BgpAttributes::default()
        }
    }
}

/// The list that the field is, none if it is missing.
fn list<'a>(json: &'a Json, field: &str, first: &mut Option<String>) -> &'a [Json] {
    match &json[field] {
        Json::Array(list) => list,
        Json::Null => &[],
        _ => {
            first.get_or_insert_with(|| bad(json, field, "a list"));
            &[]
        }
    }
}

/// The next hop, of an IPv6 pair the global one.
fn next_hop(json: &Json) -> Option<IpAddr> {
    let is_link_local =
        |ip: &IpAddr| matches!(ip, IpAddr::V6(ip) if ip.segments()[0] & 0xffc0 == 0xfe80);
    let all: Vec<IpAddr> = json
        .as_str()?
        .split(',')
        .map(|address| address.trim().parse().ok())
        .collect::<Option<_>>()?;
    all.iter().find(|ip| !is_link_local(ip)).or(all.first()).copied()
}

/// `64500:192.0.2.1`
fn aggregator(text: &str) -> Option<Aggregator> {
    let (asn, address) = text.split_once(':')?;
    Some(Aggregator { asn: asn.parse().ok()?, address: address.parse().ok()? })
}

fn asn(json: &Json) -> Option<u32> {
    json.as_u64().and_then(|asn| u32::try_from(asn).ok())
}

fn bad(json: &Json, field: &str, wanted: &str) -> String {
    /// Bytes of a value that are shown.
    const SHOWN: usize = 80;
    let mut value = json[field].to_string();
    value.truncate(value.floor_char_boundary(SHOWN));
    match json[field].is_null() {
        true => format!("{field} is missing, {wanted} is expected"),
        false => format!("{field} is {value}, {wanted} is expected"),
    }
}
