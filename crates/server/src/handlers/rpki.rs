//! The validator's caches, and what changes with their VRPs.

use std::sync::Arc;

use fibula_rpki::{CacheStatus, LiveVrps, Revalidated};

use crate::api;
use crate::http::answer::{Answer, Refusal, json};
use crate::http::params::Params;
use crate::http::time::rfc3339;
use crate::metrics_text::MetricsText as Text;
use crate::site::Site;
use crate::table::TableName;

/// Default and maximum number of changed routes in an answer.
const LIMIT: usize = 100;
pub(crate) const MOST: u64 = 1000;

pub(crate) fn status(site: &Arc<Site>, params: &Params) -> Answer {
    let Some(vrps) = &site.options.vrps else {
        let what = "no validator is followed: its configuration has no [rpki], see docs/rpki.md";
        return Err(Refusal::not_found(what));
    };
    let limit = params.number("limit").map_or(LIMIT, |limit| limit as usize);
    let (now, counts, found) = (vrps.current(), vrps.counts(), vrps.revalidated(limit));
    let [ipv4, ipv6] = by_family(&now);
    let tables: Vec<_> =
        site.live.with_rib(|rib| found.iter().map(|route| TableName::of(rib, route.vrf)).collect());
    json(&api::RpkiStatus {
        caches: vrps.caches().into_iter().map(cache).collect(),
        known: now.vrps.is_some(),
        vrps: api::RouteCounts { ipv4, ipv6 },
        aspas: now.aspas.len(),
        generation: now.number,
        validated: counts.validated,
        changed: counts.changed,
        newly_invalid: counts.newly_invalid,
        changes: found.iter().zip(tables).map(|(found, table)| change(found, &table)).collect(),
    })
}

fn by_family(now: &fibula_rpki::VrpGeneration) -> [u64; 2] {
    now.vrps.as_ref().map_or([0; 2], |vrps| vrps.by_family().map(|count| count as u64))
}

fn cache(status: CacheStatus) -> api::RpkiCache {
    api::RpkiCache {
        endpoint: status.endpoint,
        state: status.state.name().to_owned(),
        connections: status.connections,
        session: status.session.map(|(session, _)| session),
        serial: status.session.map(|(_, serial)| serial),
        vrps: status.vrps,
        aspas: status.aspas,
        updated: status.updated.map(rfc3339),
        expires: status.expires.map(rfc3339),
        updates: status.updates,
        resets: status.resets,
        ignored: status.ignored,
        trouble: status.trouble,
    }
}

fn change(found: &Revalidated, table: &TableName) -> api::RpkiChange {
    api::RpkiChange {
        time: rfc3339(found.time),
        table: table.to_string(),
        prefix: found.prefix.to_string(),
        origin_as: found.origin,
        before: found.before.map(|validity| validity.to_string()),
        after: found.after.map(|validity| validity.to_string()),
    }
}

/// Adds the metrics.
pub(crate) fn metrics(vrps: &LiveVrps, text: &mut Text) {
    let now = vrps.current();
    text.head("rpki_vrps", "gauge", "VRPs in use.");
    for (family, count) in ["ipv4", "ipv6"].into_iter().zip(by_family(&now)) {
        text.sample("rpki_vrps", &[("family", family)], count);
    }
    let aspas = now.aspas.len() as u64;
    text.one("rpki_aspas", "gauge", "ASes whose providers are known by ASPAs in use.", aspas);
    let known = u8::from(now.vrps.is_some());
    text.one("rpki_known", "gauge", "Whether VRPs are known and not expired.", known);
    text.one("rpki_generation", "counter", "Sets of VRPs so far.", now.number);
    let counts = vrps.counts();
    text.one(
        "rpki_validated_total",
        "counter",
        "Routes that were validated again because VRPs changed.",
        counts.validated,
    );
    text.one(
        "rpki_changed_total",
        "counter",
        "Routes whose validity changed with the VRPs.",
        counts.changed,
    );
    text.one(
        "rpki_newly_invalid_total",
        "counter",
        "Routes that became invalid with the VRPs.",
        counts.newly_invalid,
    );
    let caches = vrps.caches();
    text.head("rpki_cache_up", "gauge", "Whether the cache is connected and its VRPs are used.");
    for cache in &caches {
        let is_up = u8::from(cache.state == fibula_rpki::CacheState::Up);
        text.sample("rpki_cache_up", &[("cache", &cache.endpoint)], is_up);
    }
    text.head("rpki_cache_serial", "gauge", "The serial number of the cache's data.");
    for (cache, (_, serial)) in caches.iter().filter_map(|cache| Some((cache, cache.session?))) {
        text.sample("rpki_cache_serial", &[("cache", &cache.endpoint)], serial);
    }
}
