//! Finds the meaning of a text: an address, a prefix, an AS, a peer.

use std::net::IpAddr;
use std::sync::Arc;

use fibula_core::{Addr, AnyPrefix, Value};
use fibula_fib::Pod;

use super::peers;
use crate::api;
use crate::frozen::Frozen;
use crate::http::answer::{Answer, Refusal, json};
use crate::http::params::Params;
use crate::site::Site;

/// Maximum number of prefixes of a table, and of peers, in an answer.
pub(crate) const LIMIT: usize = 100;
pub(crate) const MOST: u64 = 10_000;

pub(crate) fn search(site: &Arc<Site>, params: &Params) -> Answer {
    let q = params.text("q").unwrap_or_default().trim();
    let limit = params.number("limit").map_or(LIMIT, |limit| limit as usize);
    json(&find(site, q, limit)?)
}

fn find(site: &Arc<Site>, q: &str, limit: usize) -> Result<api::Search, Refusal> {
    let mut found = api::Search {
        q: q.to_owned(),
        is: "nothing".to_owned(),
        address: None,
        prefix: None,
        asn: None,
        origins: Vec::new(),
        peers: Vec::new(),
        truncated: false,
    };
    if let Ok(address) = q.parse::<IpAddr>() {
        (found.is, found.address) = ("address".to_owned(), Some(address));
        return Ok(found);
    }
    if let Ok(prefix) = q.parse::<AnyPrefix>() {
        (found.is, found.prefix) = ("prefix".to_owned(), Some(prefix.unmapped().to_string()));
        return Ok(found);
    }
    let all = peers::all(site);
    let is_asked: Box<dyn Fn(&api::Peer) -> bool> = match asn(q) {
        Some(asn) => {
            (found.is, found.asn) = ("as".to_owned(), Some(asn));
            for frozen in site.frozen_tables()? {
                let origins = origins(&frozen, asn, limit);
                let count = origins.routes.ipv4 + origins.routes.ipv6;
                found.truncated |= count > origins.prefixes.len() as u64;
                if count > 0 {
                    found.origins.push(origins);
                }
            }
            Box::new(move |peer| peer.asn == asn)
        }
        None => {
            let q = q.to_lowercase();
            Box::new(move |peer| {
                let source = peer.source.as_deref().unwrap_or_default();
                peer.name.to_lowercase().contains(&q) || source.to_lowercase().contains(&q)
            })
        }
    };
    let mut peers = all.into_iter().filter(|status| is_asked(&status.peer));
    found.peers = peers.by_ref().take(limit).collect();
    found.truncated |= peers.next().is_some();
    if found.asn.is_none() && !found.peers.is_empty() {
        found.is = "peer".to_owned();
    }
    Ok(found)
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

/// The prefixes whose routes the AS originates.
fn origins(frozen: &Frozen, asn: u32, limit: usize) -> api::Origins {
    let columns = frozen.fib.columns();
    let wanted = Value::Int(asn.into());
    let is_of =
        |row| columns.find("origin_as").is_some_and(|column| columns.value(column, row) == wanted);
    let rows: Vec<bool> = (0..columns.len()).map(is_of).collect();
    let mut prefixes = Vec::new();
    let ipv4 = of_rows::<u32>(frozen, &rows, limit, &mut prefixes);
    let ipv6 = of_rows::<u128>(frozen, &rows, limit, &mut prefixes);
    let routes = api::RouteCounts { ipv4, ipv6 };
    api::Origins { table: frozen.table.clone(), routes, prefixes }
}

fn of_rows<A: Addr + Pod>(
    frozen: &Frozen,
    rows: &[bool],
    limit: usize,
    prefixes: &mut Vec<String>,
) -> u64 {
    let routes = frozen.fib.family::<A>().routes();
    let mut count = 0;
    for route in (0..routes.len()).map(|index| routes.get(index)) {
        if route.hop.index().is_some_and(|row| rows[row as usize]) {
            count += 1;
            if prefixes.len() < limit {
                prefixes.push(route.prefix.to_string());
            }
        }
    }
    count
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
