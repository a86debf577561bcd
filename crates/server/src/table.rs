//! Determines the tables of a request, and their names.

use std::fmt;
use std::sync::Arc;

use fibula_core::Vrf;
use fibula_rib::Rib;

use crate::http::answer::Refusal;
use crate::http::params::shown;

/// The name of a table: that of the VRF, or its number. It is text only where it is displayed, which is not done under
/// the RIB's lock.
#[derive(Clone, Debug)]
pub(crate) enum TableName {
    Named(Arc<str>),
    Number(Vrf),
}

impl TableName {
    pub(crate) fn of(rib: &Rib, vrf: Vrf) -> Self {
        rib.vrf_name(vrf).map_or(Self::Number(vrf), |name| Self::Named(Arc::clone(name)))
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::Number(vrf) => vrf.fmt(f),
        }
    }
}

/// Maximum number of tables that an error lists.
const LISTED: usize = 20;

/// The reason why a request has no table. Its text is made after the RIB was unlocked.
pub(crate) enum NoTable<'t> {
    /// No table has this name; the existing ones are these.
    Unknown(&'t str, Vec<TableName>),
    /// One table is needed, and several have routes.
    Several(Vec<TableName>),
    /// One table is needed, and none has routes.
    Empty,
}

impl From<NoTable<'_>> for Refusal {
    fn from(reason: NoTable<'_>) -> Self {
        match reason {
            NoTable::Unknown(name, known) => {
                let (name, known) = (shown(name), list(&known));
                Self::not_found(format_args!("no table {name}; there are: {known}"))
            }
            NoTable::Several(several) => {
                let names = list(&several);
                Self::bad(format_args!("name one table with the parameter table: {names}"))
            }
            NoTable::Empty => Self::not_found("no table has a route so far"),
        }
    }
}

/// The tables of a request: the named one, or all with routes.
pub(crate) fn tables<'t>(rib: &Rib, params: Option<&'t str>) -> Result<Vec<Vrf>, NoTable<'t>> {
    let Some(name) = params else {
        return Ok(rib.vrfs().filter(|&vrf| has_routes(rib, vrf)).collect());
    };
    let nameless = |vrf: &Vrf| rib.vrf_name(*vrf).is_none() && rib.vrfs().any(|is| is == *vrf);
    match rib.find_vrf(name).or_else(|| number(name).filter(nameless)) {
        Some(vrf) => Ok(vec![vrf]),
        None => Err(NoTable::Unknown(name, names(rib, rib.vrfs()))),
    }
}

/// The single table of a request.
pub(crate) fn table<'t>(rib: &Rib, params: Option<&'t str>) -> Result<Vrf, NoTable<'t>> {
    match &*tables(rib, params)? {
        [] => Err(NoTable::Empty),
        [only] => Ok(*only),
        several => Err(NoTable::Several(names(rib, several.iter().copied()))),
    }
}

/// The number of a VRF, as [`TableName`] displays it.
fn number(text: &str) -> Option<Vrf> {
    text.parse().ok().filter(|number: &Vrf| number.to_string() == text)
}

fn has_routes(rib: &Rib, vrf: Vrf) -> bool {
    rib.len::<u32>(vrf) + rib.len::<u128>(vrf) > 0
}

/// The first names, one more than an error lists.
fn names(rib: &Rib, vrfs: impl Iterator<Item = Vrf>) -> Vec<TableName> {
    vrfs.take(LISTED + 1).map(|vrf| TableName::of(rib, vrf)).collect()
}

fn list(tables: &[TableName]) -> String {
    let mut names: Vec<String> = tables.iter().take(LISTED).map(TableName::to_string).collect();
    if names.is_empty() {
        return "none".to_owned();
    }
    if tables.len() > LISTED {
        names.push("and more".to_owned());
    }
    names.join(", ")
}
