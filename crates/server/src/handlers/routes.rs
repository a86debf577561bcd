//! The routes of a prefix: every peer's path, and the reason why the best path is best.

use std::sync::Arc;

use fibula_core::{Addr, AnyPrefix, Prefix};
use fibula_rib::{Decision, Rib};

use crate::api;
use crate::convert::Names;
use crate::http::answer::{Answer, Refusal, json};
use crate::http::params::{Params, prefix};
use crate::site::Site;
use crate::table::{NoTable, TableName, tables};

/// Default and maximum number of prefixes of a table in an answer.
pub(crate) const LIMIT: usize = 100;
pub(crate) const MOST: u64 = 1000;

pub(crate) const VIEWS: &[&str] = &["exact", "covering", "covered"];

pub(crate) fn routes(site: &Arc<Site>, params: &Params) -> Answer {
    let prefix = prefix(&params.rest)?;
    let view = params.text("view").unwrap_or(VIEWS[0]);
    let limit = params.number("limit").map_or(LIMIT, |limit| limit as usize);
    let table = params.text("table");
    let tables = match (prefix, params.prefix("after")?) {
        (AnyPrefix::V4(prefix), None) => of_family(site, (prefix, view), None, limit, table)?,
        (AnyPrefix::V6(prefix), None) => of_family(site, (prefix, view), None, limit, table)?,
        (AnyPrefix::V4(prefix), Some(AnyPrefix::V4(after))) => {
            of_family(site, (prefix, view), Some(after), limit, table)?
        }
        (AnyPrefix::V6(prefix), Some(AnyPrefix::V6(after))) => {
            of_family(site, (prefix, view), Some(after), limit, table)?
        }
        (prefix, Some(after)) => {
            let what =
                format_args!("the parameter after is {after}, of another family than {prefix}");
            return Err(Refusal::bad(what));
        }
    };
    json(&api::Routes { prefix: prefix.to_string(), view: view.to_owned(), tables })
}

/// The decisions of a table, and whether there are more.
struct Decisions<A> {
    table: TableName,
    found: Vec<(Prefix<A>, Decision)>,
    truncated: bool,
}

fn of_family<A: Addr>(
    site: &Site,
    view: (Prefix<A>, &str),
    after: Option<Prefix<A>>,
    limit: usize,
    table: Option<&str>,
) -> Result<Vec<api::TableRoutes>, Refusal> {
    let (tables, names) = site.live.with_rib(|rib| look(rib, view, after, limit, table))?;
    let of_table = |Decisions { table, found, truncated }: Decisions<A>| {
        let routes = found.iter().map(|(prefix, why)| names.paths(prefix, why)).collect();
        api::TableRoutes { table: table.to_string(), routes, truncated }
    };
    Ok(tables.into_iter().map(of_table).collect())
}

fn look<'t, A: Addr>(
    rib: &Rib,
    (prefix, view): (Prefix<A>, &str),
    after: Option<Prefix<A>>,
    limit: usize,
    table: Option<&'t str>,
) -> Result<(Vec<Decisions<A>>, Names), NoTable<'t>> {
    let of_table = |vrf| {
        // One more than the limit shows whether there are more.
        let mut prefixes: Vec<Prefix<A>> = match view {
            "covering" => rib.covering(vrf, prefix).into_iter().map(|(found, _)| found).collect(),
            "covered" => {
                let from = after.map_or(prefix, |after| after.max(prefix));
                let mut found = rib.part(vrf, from, limit + 2);
                found.retain(|&found| prefix.covers(found) && Some(found) != after);
                found
            }
            _ => vec![prefix],
        };
        let truncated = prefixes.len() > limit;
        prefixes.truncate(limit);
        let explain = |prefix| Some((prefix, rib.explain(vrf, prefix)?));
        let found = prefixes.into_iter().filter_map(explain).collect();
        Decisions { table: TableName::of(rib, vrf), found, truncated }
    };
    let tables: Vec<_> = tables(rib, table)?.into_iter().map(of_table).collect();
    let decisions = tables.iter().flat_map(|table| &table.found).map(|(_, why)| why);
    let peers = decisions.flat_map(|why| why.paths()).map(|(path, _)| path.peer);
    let names = Names::of(rib, peers);
    Ok((tables, names))
}
