//! The best routes, or those of a peer, that a filter wants, in pages.

use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fibula_core::{Addr, AnyPrefix, Prefix, Vrf};
use fibula_rib::{AttributeSet, Rib};

use super::search::Cursor;
use crate::api;
use crate::convert::Names;
use crate::filter::PathFilter;
use crate::http::answer::{Answer, Refusal, json};
use crate::http::params::{Params, shown};
use crate::site::Site;
use crate::table::{TableName, tables};

/// Default and maximum number of routes in an answer.
const LIMIT: usize = 100;
pub(crate) const MOST: u64 = 1000;
/// Maximum number of routes that are read under one lock of the RIB, and of wanted ones.
const STEP: usize = 4096;
const WANTED: usize = 64;
/// The bytes of AS paths and communities after which an answer is long enough.
const BYTES: usize = 1 << 20;
/// How long routes are read for one answer.
const TIME: Duration = Duration::from_millis(300);

pub(crate) fn filter(site: &Arc<Site>, params: &Params) -> Answer {
    let origins = params.number("origin_as").and_then(|asn| u32::try_from(asn).ok());
    let communities = params.text("community").into_iter().flat_map(|list| list.split(','));
    let filter = PathFilter {
        origins: origins.into_iter().collect(),
        path: params.text("path_regex").map(|text| parsed("path_regex", text)).transpose()?,
        communities: communities.map(|one| parsed("community", one)).collect::<Result<_, _>>()?,
    };
    let peer = params.number("peer").map(|peer| peer as u32);
    if let Some(peer) = peer
        && site.live.with_rib(|rib| rib.peers().get(peer).is_none())
    {
        let what = format!("no peer has the number {peer}; /v1/peers has all of them");
        return Err(Refusal::not_found(what));
    }
    let limit = params.number("limit").map_or(LIMIT, |limit| limit as usize);
    let after = params.text("after").map(|text| Cursor::new(site, text)).transpose()?;
    let mut vrfs = site.live.with_rib(|rib| tables(rib, params.text("table")))?;
    vrfs.sort_unstable();
    let until = Instant::now() + TIME;
    let (routes, last) = (Vec::new(), None);
    let mut walk =
        Walk { site, filter: &filter, peer, limit, until, routes, bytes: 0, read: 0, last };
    let is_whole = walk.tables(&vrfs, after);
    let Walk { routes, read, last, .. } = walk;
    json(&api::Filtered { routes, read, next: last.filter(|_| !is_whole) })
}

fn parsed<T: FromStr>(name: &str, text: &str) -> Result<T, Refusal>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error| {
        Refusal::bad(format_args!("the parameter {name} is {}: {error}", shown(text)))
    })
}

/// The routes of tables, read in steps.
struct Walk<'a> {
    site: &'a Site,
    filter: &'a PathFilter,
    /// Whose routes are read, in place of the best ones.
    peer: Option<u32>,
    limit: usize,
    until: Instant,
    routes: Vec<api::TableRoute>,
    bytes: usize,
    read: u64,
    /// The cursor behind the last route that was read.
    last: Option<String>,
}

impl Walk<'_> {
    /// Reads the tables, and returns whether there is nothing more.
    fn tables(&mut self, vrfs: &[Vrf], after: Option<Cursor>) -> bool {
        for &vrf in vrfs {
            let (mut v4, mut v6) = (Some(None), None);
            match &after {
                Some(after) if after.vrf > vrf => continue,
                Some(after) if after.vrf == vrf => match after.prefix {
                    AnyPrefix::V4(prefix) => v4 = Some(Some(prefix)),
                    AnyPrefix::V6(prefix) => (v4, v6) = (None, Some(prefix)),
                },
                _ => {}
            }
            let table = self.site.live.with_rib(|rib| TableName::of(rib, vrf)).to_string();
            let is_whole = v4.is_none_or(|after| self.family::<u32>(vrf, &table, after))
                && self.family::<u128>(vrf, &table, v6);
            if !is_whole {
                return false;
            }
        }
        true
    }

    /// Whether the answer has all that it may have. It has at least one step.
    fn is_full(&self) -> bool {
        self.routes.len() == self.limit
            || self.bytes >= BYTES
            || (self.last.is_some() && self.until <= Instant::now())
    }

    /// Reads the routes of a family behind a prefix. Returns whether there are no more.
    fn family<A: Addr>(&mut self, vrf: Vrf, table: &str, mut after: Option<Prefix<A>>) -> bool {
        loop {
            if self.is_full() {
                return false;
            }
            // Expressions are matched without the lock.
            let part = self.site.live.with_rib(|rib| part(rib, vrf, after, self.peer));
            let is_last = part.len() < STEP;
            let new = part.iter().filter(|(prefix, _)| Some(*prefix) != after);
            let (mut wanted, mut last) = (Vec::new(), after);
            for (prefix, set) in new {
                if wanted.len() == WANTED.min(self.limit - self.routes.len()) {
                    break;
                }
                last = Some(*prefix);
                let Some(set) = set else { continue };
                self.read += 1;
                if self.wants(set) {
                    wanted.push(*prefix);
                }
            }
            let is_read = is_last && last == part.last().map(|(prefix, _)| *prefix).or(after);
            self.take(vrf, table, &wanted);
            self.last = last.map(|last| format!("{table},{}", A::any(last))).or(self.last.take());
            if is_read {
                return true;
            }
            after = last;
        }
    }

    /// Whether a route is one that is asked for. Of a peer, routes of other protocols are, unless BGP's attributes are
    /// asked for.
    fn wants(&self, set: &AttributeSet) -> bool {
        match set.bgp() {
            Some(bgp) => self.filter.matches(&bgp),
            None => self.peer.is_some() && self.filter.is_empty(),
        }
    }

    /// Adds the routes of these prefixes, if they still are wanted.
    fn take<A: Addr>(&mut self, vrf: Vrf, table: &str, wanted: &[Prefix<A>]) {
        let (names, found) = self.site.live.with_rib(|rib| {
            let route = |prefix: &Prefix<A>| match self.peer {
                None => Some((*prefix, rib.exact(vrf, *prefix)?, true)),
                Some(peer) => {
                    let mut paths = rib.paths(vrf, *prefix).into_iter().enumerate();
                    let (place, path) = paths.find(|(_, path)| path.peer == peer)?;
                    Some((*prefix, path, place == 0))
                }
            };
            let found: Vec<_> = wanted.iter().filter_map(route).collect();
            (Names::of(rib, found.iter().map(|(_, path, _)| path.peer)), found)
        });
        let names = self.site.validated(names);
        for (prefix, path, best) in found {
            if self.wants(&path.attributes) {
                let bgp = path.attributes.bgp();
                self.bytes += bgp.map_or(0, |bgp| bgp.as_path.len() + bgp.communities.len());
                let route = names.route(A::any(prefix), &path);
                self.routes.push(api::TableRoute { table: table.to_owned(), route, best });
            }
        }
    }
}

/// The next prefixes, with the attributes of their best paths or of this peer's.
fn part<A: Addr>(
    rib: &Rib,
    vrf: Vrf,
    after: Option<Prefix<A>>,
    peer: Option<u32>,
) -> Vec<(Prefix<A>, Option<AttributeSet>)> {
    let from = after.unwrap_or(Prefix::ALL);
    match peer {
        None => {
            let part = rib.part_with_attributes(vrf, from, STEP);
            part.map(|(prefix, set)| (prefix, Some(set.clone()))).collect()
        }
        Some(peer) => {
            let part = rib.part_of_peer(vrf, from, STEP, peer);
            part.map(|(prefix, set)| (prefix, set.cloned())).collect()
        }
    }
}
