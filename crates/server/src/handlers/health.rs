//! Whether the server works, and whether at least one of its tables is complete and none lacks a damaged file.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hyper::StatusCode;

use super::tables;
use crate::api;
use crate::http::answer::{Answer, Refusal, json};
use crate::http::params::Params;
use crate::options::Obstacle;
use crate::site::Site;
use crate::table::TableName;

pub(crate) fn healthz(site: &Arc<Site>, _: &Params) -> Answer {
    match trouble(site) {
        Some(sentence) => Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, sentence)),
        None => ok(),
    }
}

pub(crate) fn readyz(site: &Arc<Site>, _: &Params) -> Answer {
    let not_ready = |why: String| Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, why));
    if let Some(why) = site.damaged() {
        return not_ready(why);
    }
    if !is_ready(site) {
        return not_ready("no table is complete so far".to_owned());
    }
    match site.options.obstacle.as_ref().and_then(|Obstacle(ask)| ask()) {
        Some(why) => not_ready(why),
        None => ok(),
    }
}

/// Whether some table has been complete since the server began.
fn is_ready(site: &Arc<Site>) -> bool {
    if site.was_ready.load(Ordering::Relaxed) {
        return true;
    }
    let is_ready = tables::all(Arc::clone(site)).flatten().any(|table| table.complete);
    if is_ready && !site.was_ready.swap(true, Ordering::Relaxed) {
        tracing::info!("the first table is complete: ready");
    }
    is_ready
}

fn ok() -> Answer {
    json(&api::Health { status: "ok".to_owned() })
}

/// The fault. A wrong answer of an engine is a fault of the program, so it is reported until the program is restarted,
/// although the table was rebuilt at once.
fn trouble(site: &Site) -> Option<String> {
    let longest = site.options.longest_lag;
    for vrf in site.live.followed() {
        let name = || site.live.with_rib(|rib| TableName::of(rib, vrf));
        let lag = site.live.lag::<u32>(vrf).max(site.live.lag::<u128>(vrf)).unwrap_or_default();
        if lag > longest {
            let (lag, longest) = (lag.as_secs_f64(), longest.as_secs_f64());
            return Some(format!(
                "table {}: the oldest change waits for {lag:.1} s, more than {longest} s",
                name()
            ));
        }
        let differences = tables::differences(site, vrf);
        if differences > 0 {
            return Some(format!(
                "table {}: the audit found {differences} answers that were not those of the RIB",
                name()
            ));
        }
    }
    None
}
