//! The members of an object that hold its prefixes.

use std::collections::HashSet;

use super::census::Census;
use super::node::{Member, Node};
use crate::HostBits;
use crate::text::{
    END_NAMES, Key, KeyError, LENGTH_NAMES, PREFIX_NAMES, START_NAMES, excerpt, parse_ip,
    parse_key, parse_network, parse_range, rank,
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

/// The member with the likeliest of these names.
pub(super) fn likeliest<'d>(members: &[&'d Member<'d>], names: &[&str]) -> Option<&'d Member<'d>> {
    let ranked = members.iter().filter_map(|member| Some((rank(&member.0, names)?, *member)));
    ranked.min_by_key(|(rank, _)| *rank).map(|(_, member)| member)
}

/// Finds the keys of objects.
pub(super) struct Finder<'c> {
    pub(super) census: &'c Census,
    pub(super) host_bits: HostBits,
}

impl Finder<'_> {
    pub(super) fn keys<'d>(&self, members: &[&'d Member<'d>]) -> Keys<'d> {
        self.range(members).or_else(|| self.named(members)).unwrap_or_else(|| self.spelled(members))
    }

    fn range<'d>(&self, members: &[&'d Member<'d>]) -> Option<Keys<'d>> {
        let (start, end) = (likeliest(members, START_NAMES)?, likeliest(members, END_NAMES)?);
        let (first, last) = (start.1.words()?, end.1.words()?);
        let is_address = |text: &str| parse_ip(text.as_bytes()).is_some();
        if !(self.census.has_ranges() || is_address(first) && is_address(last)) {
            return None;
        }
        let range = parse_range(first.as_bytes(), last.as_bytes(), false).map_err(|error| {
            let (first, last) = (excerpt(first.as_bytes()), excerpt(last.as_bytes()));
            format!("{}: {first} to {last}", error.text())
        });
        let names = vec![&*start.0, &*end.0];
        Some(Keys { names, found: vec![(start.1.start, range)], is_named: true })
    }

    /// The likeliest name counts, but a prefix comes before an address without a length.
    fn named<'d>(&self, members: &[&'d Member<'d>]) -> Option<Keys<'d>> {
        let rank = |(name, child): &&'d Member<'d>| {
            let rank = rank(name, PREFIX_NAMES).filter(|&rank| self.census.is_prefix(rank))?;
            child.words().map(|_| rank)
        };
        let mut candidates: Vec<_> =
            members.iter().filter_map(|member| Some((rank(member)?, *member))).collect();
        candidates.sort_by_key(|(rank, _)| *rank);
        let mut alone = None;
        for (_, (name, child)) in candidates {
            let text = child.words().unwrap_or_default();
            let one = |found: Found| Keys {
                names: vec![&**name],
                found: vec![(child.start, found)],
                is_named: true,
            };
            match key(text, self.host_bits) {
                Some(found) if parse_ip(text.as_bytes()).is_some() => {
                    if alone.is_none() {
                        let network = self.network(members, name, child);
                        if network.is_some() {
                            return network;
                        }
                        alone = Some(one(found));
                    }
                }
                Some(found) => return Some(one(found)),
                None if alone.is_some() || self.is_label(text, members) => {}
                None => return Some(one(Err(no_key(text)))),
            }
        }
        alone
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
        let network = parse_network(addr, len, self.host_bits).map(Key::Prefix).map_err(|error| {
            format!("{}: {}, netmask or length {}", error.text(), excerpt(addr), excerpt(len))
        });
        let names = vec![name, &**length];
        Some(Keys { names, found: vec![(address.start, network)], is_named: true })
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
            if let Some(text) = child.as_str().filter(|text| text.contains(['/', '-']))
                && let Some(found) = key(text, self.host_bits)
            {
                keys.names.push(name);
                keys.found.push((child.start, found));
            }
        }
        keys
    }
}
