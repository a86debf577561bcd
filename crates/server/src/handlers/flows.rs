//! The top talkers among the flows of the program around the server.

use std::sync::Arc;

use crate::http::answer::{Answer, Refusal, json};
use crate::http::params::Params;
use crate::options::FlowTops;
use crate::site::Site;

/// Default and maximum number of values in an answer, and of minutes.
const LIMIT: usize = 20;
pub(crate) const MOST: u64 = 1000;
const MINUTES: u64 = 5;
pub(crate) const MOST_MINUTES: u64 = 30;

pub(crate) fn top(site: &Arc<Site>, params: &Params) -> Answer {
    let Some(FlowTops(top)) = &site.options.flows else {
        let what = "no flows are counted: its configuration has no [flows], or an empty list of \
                    flows.top, see docs/flow.md";
        return Err(Refusal::not_found(what));
    };
    let limit = params.number("limit").map_or(LIMIT, |limit| limit as usize);
    let minutes = params.number("minutes").unwrap_or(MINUTES);
    json(&top(params.text("by"), minutes, limit).map_err(Refusal::not_found)?)
}
