//! Looks up one address.

use std::sync::Arc;

use fibula_core::{Addr, AnyPrefix, Prefix};
use fibula_rib::{Path, Rib};

use super::tables;
use crate::api;
use crate::convert::Names;
use crate::http::answer::{Answer, Refusal, json};
use crate::http::params::{Params, address};
use crate::site::{self, Site};

/// Routes, the longest first.
type Chain<A> = Vec<(Prefix<A>, Path)>;

/// The answers of all tables under one lock of the RIB.
struct Seen<A> {
    sequence: u64,
    names: Names,
    /// Name of a table, and the routes that cover the address.
    tables: Vec<(String, Chain<A>)>,
}

pub(crate) fn lookup(site: &Arc<Site>, params: &Params) -> Answer {
    let address = address(&params.rest)?;
    let tables = match AnyPrefix::host(address).unmapped() {
        AnyPrefix::V4(host) => of_family(site, host, params.text("table"))?,
        AnyPrefix::V6(host) => of_family(site, host, params.text("table"))?,
    };
    json(&api::Lookup { address, tables })
}

fn of_family<A: Addr>(
    site: &Site,
    host: Prefix<A>,
    table: Option<&str>,
) -> Result<Vec<api::TableLookup>, Refusal> {
    let Seen { sequence, names, tables } = site.live.with_rib(|rib| look(rib, host, table))?;
    let of_table = |(table, found): (String, Vec<(Prefix<A>, Path)>)| {
        let covering: Vec<_> =
            found.iter().map(|(prefix, path)| names.route(prefix, path)).collect();
        api::TableLookup { table, sequence, found: covering.first().cloned(), covering }
    };
    Ok(tables.into_iter().map(of_table).collect())
}

fn look<A: Addr>(rib: &Rib, host: Prefix<A>, table: Option<&str>) -> Result<Seen<A>, Refusal> {
    let tables: Vec<_> = tables(rib, table)?
        .into_iter()
        .map(|vrf| (site::name(rib, vrf).into_owned(), rib.covering(vrf, host)))
        .collect();
    let paths = tables.iter().flat_map(|(_, found)| found).map(|(_, path)| path.peer);
    Ok(Seen { sequence: rib.sequence(), names: Names::of(rib, paths), tables })
}
