//! The routes of a prefix: every peer's path, and why the best one is.

use std::sync::Arc;

use fibula_core::{Addr, AnyPrefix, Prefix};
use fibula_rib::{Decision, Rib};

use super::tables;
use crate::api;
use crate::convert::Names;
use crate::http::answer::{Answer, Refusal, json};
use crate::http::asked::{Asked, prefix};
use crate::site::{self, Site};

/// Prefixes of a table in an answer, and the most that may be asked for.
pub(crate) const LIMIT: usize = 100;
pub(crate) const MOST: u64 = 1000;

pub(crate) const VIEWS: &[&str] = &["exact", "covering", "covered"];

pub(crate) fn routes(site: &Arc<Site>, asked: &Asked) -> Answer {
    let prefix = prefix(&asked.rest)?;
    let view = asked.text("view").unwrap_or(VIEWS[0]);
    let limit = asked.number("limit").map_or(LIMIT, |limit| limit as usize);
    let table = asked.text("table");
    let tables = match prefix {
        AnyPrefix::V4(prefix) => of_family(site, prefix, view, limit, table)?,
        AnyPrefix::V6(prefix) => of_family(site, prefix, view, limit, table)?,
    };
    json(&api::Routes { prefix: prefix.to_string(), view: view.to_owned(), tables })
}

/// The decisions of a table, and whether there are more.
struct Decisions<A> {
    table: String,
    found: Vec<(Prefix<A>, Decision)>,
    truncated: bool,
}

fn of_family<A: Addr>(
    site: &Site,
    prefix: Prefix<A>,
    view: &str,
    limit: usize,
    table: Option<&str>,
) -> Result<Vec<api::TableRoutes>, Refusal> {
    let (tables, names) = site.live.with_rib(|rib| look(rib, prefix, view, limit, table))?;
    let of_table = |Decisions { table, found, truncated }: Decisions<A>| {
        let routes = found.iter().map(|(prefix, why)| names.paths(prefix, why)).collect();
        api::TableRoutes { table, routes, truncated }
    };
    Ok(tables.into_iter().map(of_table).collect())
}

fn look<A: Addr>(
    rib: &Rib,
    prefix: Prefix<A>,
    view: &str,
    limit: usize,
    table: Option<&str>,
) -> Result<(Vec<Decisions<A>>, Names), Refusal> {
    let of_table = |vrf| {
        // One more than asked for tells whether there are more.
        let mut prefixes: Vec<Prefix<A>> = match view {
            "covering" => rib.covering(vrf, prefix).into_iter().map(|(found, _)| found).collect(),
            "covered" => {
                let found = rib.covered(vrf, prefix).map(|(found, _)| found);
                found.take(limit + 1).collect()
            }
            _ => vec![prefix],
        };
        let truncated = prefixes.len() > limit;
        prefixes.truncate(limit);
        let explain = |prefix| Some((prefix, rib.explain(vrf, prefix)?));
        let found = prefixes.into_iter().filter_map(explain).collect();
        Decisions { table: site::name(rib, vrf).into_owned(), found, truncated }
    };
    let tables: Vec<_> = tables(rib, table)?.into_iter().map(of_table).collect();
    let decisions = tables.iter().flat_map(|table| &table.found).map(|(_, why)| why);
    let peers = decisions.flat_map(|why| why.paths()).map(|(path, _)| path.peer);
    let names = Names::of(rib, peers);
    Ok((tables, names))
}
