//! The members of an object that hold its prefixes.

use std::collections::HashSet;
use std::net::IpAddr;

use fibula_core::{Family, Prefix};

use super::census::Census;
use super::node::{Member, Node};
use crate::HostBits;
use crate::text::{
    Key, KeyError, LENGTH_NAMES, PREFIX_NAMES, Pair, block, excerpt, pairs, parse_counted,
    parse_ip, parse_key, parse_network, parse_range, rank,
};

/// A key, or the reason why a text that looks like one is invalid.
pub(super) type Found = Result<Key, String>;

/// The keys of an object.
#[derive(Default)]
pub(super) struct Keys<'d> {
    /// The names of the members that they come from.
    pub(super) names: Vec<&'d str>,
    /// With the bytes where they stand.
    pub(super) found: Vec<(usize, Found)>,
    /// Whether they were found by their names. Then all other members are values that describe them.
    pub(super) is_named: bool,
    /// Whether a prefix under another name took the place of an address.
    pub(super) is_other: bool,
}

/// Whether the text looks like an address, a prefix or a range, even an invalid one.
pub(super) fn is_key(text: &str) -> bool {
    key(text, HostBits::Mask).is_some()
}

/// Parses a text as a key. Returns an error if it looks like one but is invalid.
pub(super) fn key(text: &str, host_bits: HostBits) -> Option<Found> {
    let is_likely = text.len() <= 100 && text.bytes().any(|b| matches!(b, b'.' | b':'));
    match is_likely.then(|| parse_key(text.trim().as_bytes(), host_bits))? {
        Ok(key) => Some(Ok(key)),
        Err(KeyError::Syntax) => None,
        Err(error) => Some(Err(format!("{}: {}", error.text(), excerpt(text.as_bytes())))),
    }
}

/// The message about a text that is no key.
pub(super) fn no_key(text: &str) -> String {
    format!("{}: {}", KeyError::Syntax.text(), excerpt(text.as_bytes()))
}

/// The members without those that a later one of the same name replaces. Two members that are called by the same prefix
/// both stay: they are two routes for it, which are counted as such.
pub(super) fn last_of_each<'d>(members: &'d [Member<'d>]) -> Vec<&'d Member<'d>> {
    let mut names = HashSet::new();
    let mut last: Vec<_> =
        members.iter().rev().filter(|(name, _)| names.insert(&**name) || is_key(name)).collect();
    last.reverse();
    last
}

/// The members that are a range by their names, with their texts.
pub(super) struct Ends<'d> {
    start: &'d Member<'d>,
    end: &'d Member<'d>,
    pub(super) first: &'d str,
    pub(super) last: &'d str,
    pub(super) counts: bool,
}

/// The likeliest members that are a range by their names; see [`pairs`].
pub(super) fn ends<'d>(members: &[&'d Member<'d>]) -> Option<Ends<'d>> {
    let Pair { start, end, counts } = *pairs(members.iter().map(|(name, _)| &**name)).first()?;
    let (start, end) = (members[start], members[end]);
    Some(Ends { start, end, first: start.1.words()?, last: end.1.words()?, counts })
}

impl Ends<'_> {
    /// Whether the texts are what the names say.
    pub(super) fn fit(&self) -> bool {
        let is_address = |text: &str| parse_ip(text.as_bytes()).is_some();
        match self.counts {
            true => parse_counted(self.first.as_bytes(), self.last.as_bytes()).is_ok(),
            false => is_address(self.first) && is_address(self.last),
        }
    }
}

/// Whether a member is the destination of a default route, as `ip -j route` writes it.
pub(super) fn is_default(name: &str, text: &str) -> bool {
    text == "default" && matches!(name, "dst" | "destination")
}

/// The default route of an object, by the rule of `ip route`: only IPv6 routes have `pref`, and only IPv4 routes a
/// gateway `via` the other family. Otherwise it is of the family of the gateway, or of the route before it, or IPv4.
fn default_route<'d>(members: &[&'d Member<'d>], before: Option<Family>) -> Key {
    let member = |wanted: &str| Some(&members.iter().find(|(name, _)| name == wanted)?.1);
    let gateway = || member("gateway")?.words()?.parse::<IpAddr>().ok();
    let is_v6 = match gateway() {
        _ if member("pref").is_some() => true,
        _ if member("via").is_some() => false,
        Some(gateway) => gateway.is_ipv6(),
        None => before == Some(Family::V6),
    };
    Key::Prefix(if is_v6 { Prefix::<u128>::ALL.into() } else { Prefix::<u32>::ALL.into() })
}

/// Finds the keys of objects.
pub(super) struct Finder<'c> {
    pub(super) census: &'c Census,
    pub(super) host_bits: HostBits,
}

impl Finder<'_> {
    /// `before` is the family of the route before the object.
    pub(super) fn keys<'d>(&self, members: &[&'d Member<'d>], before: Option<Family>) -> Keys<'d> {
        self.range(members)
            .or_else(|| self.named(members, before))
            .unwrap_or_else(|| self.spelled(members))
    }

    fn range<'d>(&self, members: &[&'d Member<'d>]) -> Option<Keys<'d>> {
        let ends = ends(members)?;
        if !(self.census.has_ranges() || ends.fit()) {
            return None;
        }
        let (first, last) = (ends.first.as_bytes(), ends.last.as_bytes());
        let range = match ends.counts {
            true => parse_counted(first, last),
            false => parse_range(first, last, false),
        };
        let range = range.map_err(|error| {
            let between = if ends.counts { "and number of addresses" } else { "to" };
            format!("{}: {} {between} {}", error.text(), excerpt(first), excerpt(last))
        });
        let names = vec![&*ends.start.0, &*ends.end.0];
        Some(Keys {
            names,
            found: vec![(ends.start.1.start, range)],
            is_named: true,
            is_other: false,
        })
    }

    /// The likeliest name counts, but a prefix comes before an address without a length.
    fn named<'d>(&self, members: &[&'d Member<'d>], before: Option<Family>) -> Option<Keys<'d>> {
        let rank = |(name, child): &&'d Member<'d>| {
            let rank = rank(name, PREFIX_NAMES).filter(|&rank| self.census.is_prefix(rank))?;
            child.words().map(|_| rank)
        };
        let mut candidates: Vec<_> =
            members.iter().filter_map(|member| Some((rank(member)?, *member))).collect();
        candidates.sort_by_key(|(rank, _)| *rank);
        let (mut alone, mut is_alone) = (None, false);
        for (_, (name, child)) in candidates {
            let text = child.words().unwrap_or_default();
            let one = |found: Found| Keys {
                names: vec![&**name],
                found: vec![(child.start, found)],
                is_named: true,
                is_other: false,
            };
            match key(text, self.host_bits) {
                None if is_default(name, text) => {
                    return Some(one(Ok(default_route(members, before))));
                }
                Some(found) if parse_ip(text.as_bytes()).is_some() => {
                    if alone.is_none() {
                        let network = self.network(members, name, child);
                        is_alone = network.is_none();
                        alone = Some(network.unwrap_or_else(|| one(found)));
                    }
                }
                Some(found) => return Some(one(found)),
                None if alone.is_some() || self.is_label(text, members) => {}
                None => return Some(one(Err(no_key(text)))),
            }
        }
        let blocks = |(_, child): &&&'d Member<'d>| {
            child.as_str().is_some_and(|text| block(text.trim().as_bytes()).is_some())
        };
        // As in text, a prefix comes before an address, whatever it is called.
        match members.iter().find(blocks) {
            Some((name, child)) if is_alone => {
                let found = key(child.as_str()?, self.host_bits)?;
                Some(Keys {
                    names: vec![&**name],
                    found: vec![(child.start, found)],
                    is_named: true,
                    is_other: true,
                })
            }
            _ => alone,
        }
    }

    /// The network of an address, if its netmask or length is a member, too.
    fn network<'d>(
        &self,
        members: &[&'d Member<'d>],
        name: &'d str,
        address: &'d Node<'d>,
    ) -> Option<Keys<'d>> {
        let is_length = |member: &&&'d Member<'d>| {
            let rank = rank(&member.0, LENGTH_NAMES).filter(|&rank| self.census.is_length(rank));
            rank.filter(|_| *member.0 != *name)
        };
        let length = members.iter().filter(|member| is_length(member).is_some());
        let (length, node) = length.min_by_key(is_length)?;
        let (addr, len) =
            (address.words()?.as_bytes(), node.words().unwrap_or_default().as_bytes());
        let network = parse_network(addr, len, self.census.has_wildcards(), self.host_bits);
        let network = network.map(Key::Prefix).map_err(|error| {
            format!("{}: {}, netmask or length {}", error.text(), excerpt(addr), excerpt(len))
        });
        let names = vec![name, &**length];
        Some(Keys { names, found: vec![(address.start, network)], is_named: true, is_other: false })
    }

    /// Whether a text under a name for prefixes is a label for the prefixes inside of the object:
    /// `{"network": "office", "subnets": [{"network": "10.0.0.0/8"}]}`.
    fn is_label(&self, text: &str, members: &[&Member<'_>]) -> bool {
        let is_meant = text.contains(['.', ':', '/']) && text.bytes().any(|b| b.is_ascii_digit());
        !is_meant && members.iter().any(|(_, child)| self.census.holds(child))
    }

    /// Addresses may be gateways, too: without a name only prefixes and ranges count.
    fn spelled<'d>(&self, members: &[&'d Member<'d>]) -> Keys<'d> {
        let mut keys = Keys::default();
        for (name, child) in members {
            if let Some(text) = child.as_str().filter(|text| text.contains(['/', '-', ' ']))
                && let Some(found) = key(text, self.host_bits)
            {
                keys.names.push(name);
                keys.found.push((child.start, found));
            }
        }
        keys
    }
}
