//! Routes of past times, from the history in files.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fibula_core::AnyPrefix;
use fibula_history::{
    HistoryAnswer, HistoryError, HistoryGap, HistoryQuestion, HistoryReader, PastChanges,
    RouteRecord, RouteThen, TableThen,
};
use fibula_rib::{Moment, ValueNames};
use hyper::StatusCode;

use crate::api;
use crate::convert::{attributes, peer_name};
use crate::http::answer::{Answer, Refusal, json};
use crate::http::params::{Params, prefix, shown};
use crate::http::time::{micros, rfc3339};
use crate::options::HistoryOnDisk;
use crate::site::{self, Site};

/// Default and maximum number of changes in an answer.
const LIMIT: usize = 100;
pub(crate) const MOST: u64 = 1000;
/// The most changes of one time that a cursor may skip.
const SKIPPED: usize = 100_000;
/// The parameters of lists of changes.
const OF_LISTS: [&str; 4] = ["from", "to", "limit", "after"];

pub(crate) fn history(site: &Arc<Site>, params: &Params) -> Answer {
    let Some(HistoryOnDisk(reader)) = &site.options.history else {
        let what =
            "no history is kept in files: its configuration has no [history], see docs/history.md";
        return Err(Refusal::not_found(what));
    };
    let reader = reader().map_err(|why| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, why))?;
    let names = site.live.with_rib(|rib| rib.value_names().clone());
    let mut answer = api::RouteHistory {
        prefix: match params.rest.parse::<IpAddr>() {
            Ok(address) => address.to_string(),
            Err(_) => prefix(&params.rest)?.to_string(),
        },
        at: None,
        tables: Vec::new(),
        changes: Vec::new(),
        next: None,
        gaps: Vec::new(),
    };
    let at = time(params, "at")?;
    if let Some(at) = at {
        let found = routes(params, &reader, at).map_err(|error| refusal(site, params, &error))?;
        answer.at = Some(text(at));
        answer.tables = found.tables.iter().map(|then| table(then, &names)).collect();
        answer.gaps.extend(found.gaps.iter().map(gap));
    }
    if at.is_none() || OF_LISTS.into_iter().any(|name| params.text(name).is_some()) {
        let asked = Listed::new(params)?;
        let found = asked.find(params, &reader).map_err(|error| refusal(site, params, &error))?;
        answer.changes = found.changes.iter().map(|of| change(of, &names)).collect();
        answer.next = found.next.map(|(time, skip)| format!("{time}-{skip}"));
        answer.gaps.extend(found.gaps.iter().map(gap));
        answer.gaps.sort();
        answer.gaps.dedup();
    }
    json(&answer)
}

fn routes(params: &Params, reader: &HistoryReader, at: u64) -> Result<HistoryAnswer, HistoryError> {
    let question = match (params.rest.parse::<IpAddr>(), prefix(&params.rest)) {
        (Err(_), Ok(prefix)) => HistoryQuestion::Prefix(prefix),
        (Ok(address), _) => HistoryQuestion::Address(address),
        (Err(_), Err(_)) => return Ok(HistoryAnswer::default()),
    };
    reader.at(question, at, params.text("table"))
}

/// The changes that are requested.
struct Listed {
    prefix: AnyPrefix,
    times: RangeInclusive<u64>,
    skip: usize,
    limit: usize,
}

impl Listed {
    fn new(params: &Params) -> Result<Self, Refusal> {
        let from = time(params, "from")?.unwrap_or(0);
        let mut until = time(params, "to")?.unwrap_or(u64::MAX);
        let mut skip = 0;
        if from > until {
            return Err(Refusal::bad("the parameter from is later than to"));
        }
        if let Some(text) = params.text("after") {
            let cursor = text.split_once('-').and_then(|(time, skip)| {
                let skip = skip.parse().ok().filter(|skip| *skip <= SKIPPED)?;
                Some((time.parse::<u64>().ok()?, skip))
            });
            let cursor = cursor.filter(|(time, _)| (from..=until).contains(time));
            (until, skip) = cursor.ok_or_else(|| {
                Refusal::bad("the parameter after is not the value of next of an earlier answer")
            })?;
        }
        let limit = params.number("limit").map_or(LIMIT, |limit| limit as usize);
        Ok(Self { prefix: prefix(&params.rest)?, times: from..=until, skip, limit })
    }

    fn find(&self, params: &Params, reader: &HistoryReader) -> Result<PastChanges, HistoryError> {
        let Self { prefix, times, skip, limit } = self;
        reader.changes(*prefix, params.text("table"), times, *skip, *limit)
    }
}

/// The microseconds since 1970 of a parameter that is a time.
fn time(params: &Params, name: &str) -> Result<Option<u64>, Refusal> {
    let Some(text) = params.text(name) else { return Ok(None) };
    // With parts of a second, as answers have them, or in the forms that dates of tables have.
    let moment = || {
        let seconds = text.parse::<Moment>().map_err(|what| {
            Refusal::bad(format_args!("the parameter {name} is {}: {what}", shown(text)))
        });
        Ok(u64::try_from(seconds?.unix()).unwrap_or(0).saturating_mul(1_000_000))
    };
    micros(text).map_or_else(moment, Ok).map(Some)
}

fn text(micros: u64) -> String {
    rfc3339(site::time(micros))
}

/// Why there is no answer, with the times that there are answers for.
fn refusal(site: &Site, params: &Params, error: &HistoryError) -> Refusal {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    match error {
        HistoryError::Before { oldest } => {
            let oldest = text(*oldest);
            Refusal::not_found(format_args!("the history begins at {oldest}"))
        }
        HistoryError::After { .. }
            if time(params, "at").is_ok_and(|at| u128::from(at.unwrap_or(0)) > now.as_micros()) =>
        {
            Refusal::bad("the time is in the future")
        }
        HistoryError::After { newest } => {
            let newest = text(*newest);
            Refusal::not_found(format_args!("the history reaches until {newest} so far"))
        }
        HistoryError::Missing(HistoryGap { from, until, why }) => {
            let (from, until, why) = (text(*from), text(*until), why.reason());
            Refusal::not_found(format_args!(
                "changes from {from} to {until} are not in the history: {why}"
            ))
        }
        HistoryError::NoTable { .. } => {
            let name = shown(params.text("table").unwrap_or_default());
            Refusal::not_found(format_args!("the history has no table {name} until then"))
        }
        HistoryError::Tables { count } => Refusal::bad(format_args!(
            "the history has {count} tables: name one with the parameter table"
        )),
        HistoryError::Empty => Refusal::not_found(error),
        _ => {
            site.logs.failed_history.line(|| tracing::error!("history: {error}"));
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error)
        }
    }
}

fn gap(gap: &HistoryGap) -> api::HistoryGap {
    let HistoryGap { from, until, why } = gap;
    api::HistoryGap { from: text(*from), until: text(*until), why: why.reason().to_owned() }
}

fn table(then: &TableThen, names: &ValueNames) -> api::TableHistory {
    let covering: Vec<_> = then.routes.iter().filter_map(|then| route(then, names)).collect();
    let (since, until) = then.absent.unwrap_or((None, None));
    api::TableHistory {
        table: then.table.to_string(),
        found: covering.first().cloned(),
        covering,
        since: since.map(text),
        until: until.map(text),
    }
}

fn route(then: &RouteThen, names: &ValueNames) -> Option<api::PastRoute> {
    let record = &then.record;
    Some(api::PastRoute {
        prefix: then.prefix.to_string(),
        peer: record.peer.as_deref().map(peer),
        attributes: attributes(record.best.as_ref()?, names),
        since: text(record.time),
        or_before: record.is_found,
        until: then.until.map(text),
    })
}

fn change((table, record): &(Arc<str>, RouteRecord), names: &ValueNames) -> api::PastChange {
    api::PastChange {
        time: text(record.time),
        table: table.to_string(),
        peer: record.peer.as_deref().map(peer),
        attributes: record.best.as_ref().map(|set| attributes(set, names)),
        or_before: record.is_found,
    }
}

fn peer(peer: &fibula_rib::Peer) -> api::PastPeer {
    api::PastPeer {
        name: match peer {
            // Its number at that time is not known.
            fibula_rib::Peer { address: None, asn: 0, source: None } => "unknown".to_owned(),
            peer => peer_name(0, peer),
        },
        address: peer.address,
        asn: peer.asn,
        source: peer.source.as_deref().map(str::to_owned),
    }
}
