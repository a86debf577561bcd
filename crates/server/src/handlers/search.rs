//! Finds the meaning of a text: an address, a prefix, an AS, a peer.

use std::net::IpAddr;
use std::sync::Arc;

use fibula_core::{Addr, AnyPrefix, Prefix, Vrf};
use fibula_rib::Rib;

use super::peers;
use crate::api;
use crate::http::answer::{Answer, Refusal, json};
use crate::http::params::{Params, prefix, shown};
use crate::site::Site;
use crate::table::{TableName, tables};

/// Default and maximum number of prefixes of all tables, and of peers, in an answer.
pub(crate) const LIMIT: usize = 100;
pub(crate) const MOST: u64 = 10_000;

/// Maximum number of prefixes that are read under one lock of the RIB.
const STEP: usize = 4096;

pub(crate) fn search(site: &Arc<Site>, params: &Params) -> Answer {
    let q = params.text("q").unwrap_or_default().trim();
    let limit = params.number("limit").map_or(LIMIT, |limit| limit as usize);
    let after = params.text("after").map(|text| Cursor::new(site, text)).transpose()?;
    json(&find(site, q, params.text("table"), limit, after)?)
}

fn find(
    site: &Arc<Site>,
    q: &str,
    table: Option<&str>,
    limit: usize,
    after: Option<Cursor>,
) -> Result<api::Search, Refusal> {
    let mut found = api::Search {
        q: q.to_owned(),
        is: "nothing".to_owned(),
        address: None,
        prefix: None,
        asn: None,
        origins: Vec::new(),
        peers: Vec::new(),
        truncated: false,
        next: None,
    };
    if let Some(asn) = asn(q) {
        (found.is, found.asn) = ("as".to_owned(), Some(asn));
        let is_first = after.is_none();
        let vrfs = site.live.with_rib(|rib| tables(rib, table))?;
        (found.origins, found.next) = origins(site, (vrfs, asn), after, limit);
        found.truncated = found.next.is_some();
        if is_first {
            find_peers(site, limit, &mut found, |peer| peer.asn == asn);
        }
        return Ok(found);
    }
    if after.is_some() {
        return Err(Refusal::bad("the parameter after is for the prefixes of an AS"));
    }
    if let Ok(address) = q.parse::<IpAddr>() {
        (found.is, found.address) = ("address".to_owned(), Some(address));
        return Ok(found);
    }
    if let Ok(prefix) = q.parse::<AnyPrefix>() {
        (found.is, found.prefix) = ("prefix".to_owned(), Some(prefix.unmapped().to_string()));
        return Ok(found);
    }
    let q = q.to_lowercase();
    find_peers(site, limit, &mut found, |peer| {
        let source = peer.source.as_deref().unwrap_or_default();
        peer.name.to_lowercase().contains(&q) || source.to_lowercase().contains(&q)
    });
    if !found.peers.is_empty() {
        found.is = "peer".to_owned();
    }
    Ok(found)
}

fn find_peers(
    site: &Arc<Site>,
    limit: usize,
    found: &mut api::Search,
    is_asked: impl Fn(&api::Peer) -> bool,
) {
    let all = peers::all(Arc::clone(site)).flatten();
    let mut peers = all.filter(|status| is_asked(&status.peer));
    found.peers = peers.by_ref().take(limit).collect();
    found.truncated |= peers.next().is_some();
}

/// The number in `AS64500`, `as64500`, `64500`, and in RFC 5396's `1.10`.
fn asn(text: &str) -> Option<u32> {
    let (head, rest) = text.split_at_checked(2).unwrap_or((text, ""));
    let digits = if head.eq_ignore_ascii_case("as") { rest.trim_start() } else { text };
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    match digits.split_once('.') {
        None => digits.parse().ok(),
        Some((high, low)) => {
            let (high, low): (u16, u16) = (high.parse().ok()?, low.parse().ok()?);
            Some(u32::from(high) << 16 | u32::from(low))
        }
    }
}

/// Where an answer continues: after a prefix of a table, in the order of the tables' numbers. As a text it is the
/// table's name, a comma, and the prefix.
pub(super) struct Cursor {
    pub(super) vrf: Vrf,
    pub(super) prefix: AnyPrefix,
}

impl Cursor {
    pub(super) fn new(site: &Site, text: &str) -> Result<Self, Refusal> {
        let Some((table, after)) = text.rsplit_once(',') else {
            return Err(Refusal::bad(format_args!(
                "the parameter after is {}; it is the value of `next` in the previous answer",
                shown(text)
            )));
        };
        let prefix = prefix(after)?;
        let found = site.live.with_rib(|rib| tables(rib, Some(table)))?;
        let vrf = found.first().copied().ok_or_else(|| Refusal::not_found("no such table"))?;
        Ok(Self { vrf, prefix })
    }
}

/// The prefixes whose routes the AS originates, table by table, and the text of the cursor if there are more.
fn origins(
    site: &Site,
    (mut vrfs, asn): (Vec<Vrf>, u32),
    after: Option<Cursor>,
    limit: usize,
) -> (Vec<api::Origins>, Option<String>) {
    vrfs.sort_unstable();
    let (mut all, mut left, mut next) = (Vec::new(), limit, None);
    let mut last = None;
    for vrf in vrfs {
        let (mut v4, mut v6) = (Some(None), Some(None));
        match &after {
            Some(after) if after.vrf > vrf => continue,
            Some(after) if after.vrf == vrf => match after.prefix {
                AnyPrefix::V4(prefix) => v4 = Some(Some(prefix)),
                AnyPrefix::V6(prefix) => (v4, v6) = (None, Some(Some(prefix))),
            },
            _ => {}
        }
        let mut prefixes: Vec<AnyPrefix> = Vec::new();
        let mut take = |prefix| {
            if left > 0 {
                left -= 1;
                prefixes.push(prefix);
            }
        };
        let ipv4 = v4.map_or(0, |after| of_table::<u32>(site, (vrf, asn), after, &mut take));
        let ipv6 = v6.map_or(0, |after| of_table::<u128>(site, (vrf, asn), after, &mut take));
        if ipv4 + ipv6 == 0 {
            continue;
        }
        let table = site.live.with_rib(|rib| TableName::of(rib, vrf)).to_string();
        let is_whole = ipv4 + ipv6 == prefixes.len() as u64;
        last = prefixes.last().map(|prefix| format!("{table},{prefix}")).or(last);
        if !is_whole && next.is_none() {
            next.clone_from(&last);
        }
        let prefixes = prefixes.iter().map(AnyPrefix::to_string).collect();
        all.push(api::Origins { table, routes: api::RouteCounts { ipv4, ipv6 }, prefixes });
    }
    (all, next)
}

/// Calls `take` with the prefixes of a table that the AS originates, in order, and returns their number. The RIB is
/// locked for a part of them at a time.
fn of_table<A: Addr>(
    site: &Site,
    (vrf, asn): (Vrf, u32),
    mut after: Option<Prefix<A>>,
    take: &mut impl FnMut(AnyPrefix),
) -> u64 {
    let (mut count, mut found) = (0, Vec::new());
    loop {
        let last = site.live.with_rib(|rib| part(rib, (vrf, asn), after, &mut found));
        count += found.len() as u64;
        found.drain(..).for_each(|prefix| take(AnyPrefix::from(prefix)));
        match last {
            Some(last) => after = Some(last),
            None => return count,
        }
    }
}

/// Adds those of the next prefixes that the AS originates. Returns the last prefix that was read, `None` at the end.
fn part<A: Addr>(
    rib: &Rib,
    (vrf, asn): (Vrf, u32),
    after: Option<Prefix<A>>,
    found: &mut Vec<Prefix<A>>,
) -> Option<Prefix<A>> {
    let from = after.unwrap_or(Prefix::ALL);
    let (mut last, mut read) = (None, 0);
    for (prefix, set) in rib.part_with_attributes(vrf, from, STEP) {
        read += 1;
        last = Some(prefix);
        let origin = set.bgp().and_then(|bgp| bgp.origin_as);
        if origin == Some(asn) && Some(prefix) != after {
            found.push(prefix);
        }
    }
    last.filter(|_| read == STEP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_numbers_have_several_forms() {
        for text in ["AS64500", "as64500", "64500", "As 64500", "0.64500"] {
            assert_eq!(asn(text), Some(64500), "{text}");
        }
        assert_eq!(asn("AS1.10"), Some(65546));
        for text in ["AS", "", "a", "AS4294967296", "64500x", "1.65536", "ASx", "é", "+1", "AS-1"]
        {
            assert_eq!(asn(text), None, "{text}");
        }
    }
}
