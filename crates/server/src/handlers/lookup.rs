//! Looks up one address.

use std::sync::Arc;

use fibula_core::{Addr, AnyPrefix, Prefix};
use fibula_rib::{Path, Rib};

use crate::api;
use crate::convert::Names;
use crate::http::answer::{Answer, Refusal, json};
use crate::http::params::{Params, address};
use crate::site::Site;
use crate::table::{NoTable, TableName, tables};

/// Routes, the longest first.
type Chain<A> = Vec<(Prefix<A>, Path)>;

/// The answers of all tables under one lock of the RIB.
struct Seen<A> {
    sequence: u64,
    names: Names,
    /// The name of a table, and the routes that cover the address.
    tables: Vec<(TableName, Chain<A>)>,
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
    let names = site.validated(names);
    let of_table = |(table, found): (TableName, Chain<A>)| {
        let covering: Vec<_> =
            found.iter().map(|(prefix, path)| names.route(A::any(*prefix), path)).collect();
        let table = table.to_string();
        api::TableLookup { table, sequence, found: covering.first().cloned(), covering }
    };
    Ok(tables.into_iter().map(of_table).collect())
}

fn look<'t, A: Addr>(
    rib: &Rib,
    host: Prefix<A>,
    table: Option<&'t str>,
) -> Result<Seen<A>, NoTable<'t>> {
    let tables: Vec<_> = tables(rib, table)?
        .into_iter()
        .map(|vrf| (TableName::of(rib, vrf), rib.covering(vrf, host)))
        .collect();
    let paths = tables.iter().flat_map(|(_, found)| found).map(|(_, path)| path.peer);
    Ok(Seen { sequence: rib.sequence(), names: Names::of(rib, paths), tables })
}
