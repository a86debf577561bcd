//! The handlers of requests, one file for each kind.

pub(crate) mod bulk;
pub(crate) mod changes;
pub(crate) mod health;
pub(crate) mod lookup;
pub(crate) mod metrics;
pub(crate) mod page;
pub(crate) mod peers;
pub(crate) mod routes;
pub(crate) mod search;
pub(crate) mod tables;

use std::borrow::Cow;

use fibula_core::Vrf;
use fibula_rib::Rib;

use crate::http::answer::Refusal;
use crate::http::params::shown;
use crate::site;

/// Tables that an error lists.
const LISTED: usize = 20;

/// The tables that a request is about: the one that it names, or all that have routes.
pub(crate) fn tables(rib: &Rib, params: Option<&str>) -> Result<Vec<Vrf>, Refusal> {
    let Some(name) = params else {
        return Ok(rib.vrfs().filter(|&vrf| has_routes(rib, vrf)).collect());
    };
    match rib.find_vrf(name).or_else(|| rib.vrfs().find(|&vrf| site::name(rib, vrf) == name)) {
        Some(vrf) => Ok(vec![vrf]),
        None => Err(no_table(rib, name)),
    }
}

/// The one table that a request is about.
pub(crate) fn table(rib: &Rib, params: Option<&str>) -> Result<Vrf, Refusal> {
    match &*tables(rib, params)? {
        [] => Err(Refusal::not_found("no table has a route so far")),
        [only] => Ok(*only),
        several => {
            let names = list(several.iter().map(|&vrf| site::name(rib, vrf)));
            Err(Refusal::bad(format_args!("name one table with the parameter table: {names}")))
        }
    }
}

fn has_routes(rib: &Rib, vrf: Vrf) -> bool {
    rib.len::<u32>(vrf) + rib.len::<u128>(vrf) > 0
}

fn no_table(rib: &Rib, name: &str) -> Refusal {
    let known = list(rib.vrfs().map(|vrf| site::name(rib, vrf)));
    Refusal::not_found(format_args!("no table {}; there are: {known}", shown(name)))
}

fn list<'a>(names: impl Iterator<Item = Cow<'a, str>>) -> String {
    let mut names: Vec<_> = names.take(LISTED + 1).collect();
    if names.is_empty() {
        return "none".to_owned();
    }
    if names.len() > LISTED {
        names[LISTED] = "and more".into();
    }
    names.join(", ")
}
