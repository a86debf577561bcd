//! The tables: their state, the lengths of their prefixes, and the part of IPv4 that they cover.

use std::collections::BTreeMap;
use std::iter::from_fn;
use std::sync::Arc;
use std::time::SystemTime;

use fibula_core::{Addr, Prefix, Vrf};
use fibula_fib::{Blocks, Pod, prefix_lengths};
use hyper::Response;

use crate::api;
use crate::frozen::Frozen;
use crate::http::answer::{Answer, JSON, in_parts, json, whole};
use crate::http::body::Payload;
use crate::http::params::Params;
use crate::http::parts::{elements, text};
use crate::http::time::rfc3339;
use crate::site::{Completeness, Site};
use crate::table::TableName;

/// Maximum number of tables that are read at once.
const PART: usize = 64;

pub(crate) fn tables(site: &Arc<Site>, _: &Params) -> Answer {
    let (version, started) = (env!("CARGO_PKG_VERSION"), rfc3339(site.started));
    let options = &site.options;
    let has = [options.flows.is_some(), options.as_names.is_some(), options.history.is_some()];
    let [flows, names, history] = has;
    let head = format!(
        "{{\"version\":\"{version}\",\"started\":\"{started}\",\"flows\":{flows},\"names\":{names},\
         \"history\":{history},\"tables\":["
    );
    let tables = elements(all(Arc::clone(site)));
    let held = site.tables().len() * size_of::<(Vrf, SystemTime)>() * 2;
    Ok(in_parts(JSON, held, text(head).chain(tables).chain(text("]}"))))
}

/// All tables by number, in parts.
pub(crate) fn all(site: Arc<Site>) -> impl Iterator<Item = Vec<api::TableStatus>> {
    let vrfs = site.tables();
    let newest = site.newest_changes(vrfs.len());
    let completeness = site.completeness();
    let mut rest = vrfs.into_iter();
    from_fn(move || {
        let part: Vec<Vrf> = rest.by_ref().take(PART).collect();
        (!part.is_empty()).then(|| statuses(&site, part, (&newest, &completeness)))
    })
}

fn statuses(
    site: &Site,
    vrfs: Vec<Vrf>,
    (newest, completeness): (&BTreeMap<Vrf, SystemTime>, &Completeness),
) -> Vec<api::TableStatus> {
    let seen: Vec<(Vrf, TableName, [usize; 2])> = site.live.with_rib(|rib| {
        let table = |vrf| {
            let routes = [rib.len::<u32>(vrf), rib.len::<u128>(vrf)];
            (vrf, TableName::of(rib, vrf), routes)
        };
        vrfs.into_iter().map(table).collect()
    });
    let status = |(vrf, name, [v4, v6]): (Vrf, TableName, [usize; 2])| {
        let name = name.to_string();
        api::TableStatus {
            complete: completeness.is_complete(&name, v4 + v6 > 0),
            newest_change: newest.get(&vrf).copied().map(rfc3339),
            ipv4: family::<u32>(site, vrf, v4),
            ipv6: family::<u128>(site, vrf, v6),
            name,
        }
    };
    seen.into_iter().map(status).collect()
}

fn family<A: Addr>(site: &Site, vrf: Vrf, routes: usize) -> Option<api::FamilyStatus> {
    let counters = site.live.counters::<A>(vrf)?;
    // The generation is held only while it is read.
    let generation = site.live.current::<A>(vrf)?;
    let audit =
        api::AuditStatus { probes: counters.probes.get(), differences: counters.differences.get() };
    Some(api::FamilyStatus {
        routes: routes as u64,
        engine: generation.engine_name().to_owned(),
        generation: generation.number(),
        sequence: generation.sequence(),
        memory_bytes: generation.engine().memory().total() as u64,
        changes: counters.changes.get(),
        rebuilds: counters.rebuilds.get(),
        patches: counters.patches.get(),
        failures: counters.failures.get(),
        audit,
    })
}

/// Number of answers of a table's engines that differed from the RIB's.
pub(crate) fn differences(site: &Site, vrf: Vrf) -> u64 {
    let v4 = site.live.counters::<u32>(vrf).map_or(0, |counters| counters.differences.get());
    v4 + site.live.counters::<u128>(vrf).map_or(0, |counters| counters.differences.get())
}

pub(crate) fn histogram(site: &Arc<Site>, params: &Params) -> Answer {
    let frozen = site.frozen_table(params.text("table"))?;
    json(&api::Histogram {
        table: frozen.table.clone(),
        ipv4: lengths::<u32>(&frozen),
        ipv6: lengths::<u128>(&frozen),
    })
}

fn lengths<A: Addr + Pod>(frozen: &Frozen) -> Vec<u64> {
    prefix_lengths(prefixes::<A>(frozen))
}

/// The prefixes of a family, in order.
fn prefixes<A: Addr + Pod>(frozen: &Frozen) -> impl Iterator<Item = Prefix<A>> + '_ {
    let routes = frozen.fib.family::<A>().routes();
    (0..routes.len()).map(move |index| routes.get(index).prefix)
}

/// For each block of 16 bits, in order, the share of its addresses that a prefix other than the default one covers.
pub(crate) fn hilbert(site: &Arc<Site>, params: &Params) -> Answer {
    let frozen = site.frozen_table(params.text("table"))?;
    let shares = Blocks::new(Prefix::<u32>::ALL, 16).coverage(prefixes(&frozen));
    let response: Response<Payload> = whole("application/octet-stream", shares);
    Ok(response)
}
