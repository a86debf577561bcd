//! The alarms of the program around the server.

use std::sync::Arc;

use crate::api;
use crate::http::answer::{Answer, Refusal, json};
use crate::http::params::Params;
use crate::options::ActiveAlarms;
use crate::site::Site;

/// Default and maximum number of alarms in an answer.
const LIMIT: usize = 100;
pub(crate) const MOST: u64 = 1000;

pub(crate) fn alarms(site: &Arc<Site>, params: &Params) -> Answer {
    let Some(ActiveAlarms(all)) = &site.options.alarms else {
        let what = "there are no rules: its configuration has no [[alarm]], see docs/alarms.md";
        return Err(Refusal::not_found(what));
    };
    let limit = params.number("limit").map_or(LIMIT, |limit| limit as usize);
    let all = all();
    let newest = all.iter().rev().take(limit);
    json(&api::Alarms {
        active: all.len(),
        alarms: newest.map(|alarm| api::Alarm::from(&**alarm)).collect(),
    })
}
