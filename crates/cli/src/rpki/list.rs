//! Prints routes with their validity, one a line.

use fibula_core::{Addr, AnyPrefix, Hop, Routes, Value};
use fibula_rib::{Columns, Pod, Table};
use fibula_rpki::{AS_PATH, PATH_VALIDITY, PathValidity, VALIDITY, Validity, Vrp, Vrps};
use serde_json::{Value as Json, json};

use crate::failure::Failure;
use crate::output::{Records, cell};

/// The columns that are printed.
pub const COLUMNS: [&str; 4] = ["prefix", "origin", "rpki", "vrps"];
/// The columns that are printed if paths are verified.
pub const WITH_PATHS: [&str; 6] = ["prefix", "origin", "rpki", "vrps", "aspa", "as_path"];

/// The routes of `--list` values.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    pub validities: Vec<Validity>,
    pub paths: Vec<PathValidity>,
}

impl Listed {
    /// The routes of all values; all routes if there are none.
    pub fn all(list: &[Self]) -> Self {
        if list.is_empty() {
            return Self { validities: Validity::ALL.to_vec(), paths: Vec::new() };
        }
        Self {
            validities: list.iter().flat_map(|one| one.validities.iter().copied()).collect(),
            paths: list.iter().flat_map(|one| one.paths.iter().copied()).collect(),
        }
    }

    fn has(&self, columns: &Columns, hop: Hop) -> bool {
        validity(columns, hop).is_some_and(|validity| self.validities.contains(&validity))
            || path_validity(columns, hop).is_some_and(|validity| self.paths.contains(&validity))
    }
}

/// A route's path, and its validity.
pub struct PathCells<'a> {
    pub validity: Option<PathValidity>,
    pub path: Option<&'a str>,
}

/// Prints a route. The origin is printed as it is in the table.
pub fn route(
    records: &mut Records,
    prefix: AnyPrefix,
    origin: Option<&str>,
    validity: Validity,
    vrps: &Vrps,
    path: Option<PathCells<'_>>,
) -> Result<(), Failure> {
    let covering = vrps.covering(prefix);
    if records.is_json() {
        let vrp = |vrp: Vrp| {
            json!({
                "prefix": vrp.prefix().to_string(), "max_length": vrp.max_len(), "asn": vrp.asn(),
            })
        };
        // An AS is a number in JSON, as in other commands.
        let number = origin.and_then(fibula_rpki::parse_asn).map(Json::from);
        let mut object = json!({
            "prefix": prefix.to_string(),
            "origin": number.or_else(|| origin.map(Json::from)),
            "rpki": validity.name(),
            "vrps": covering.map(vrp).collect::<Vec<Json>>(),
        });
        if let Some(PathCells { validity, path }) = path {
            object["aspa"] = validity.map(PathValidity::name).into();
            object["as_path"] = path.into();
        }
        return records.object(&object);
    }
    let vrps = covering.map(|vrp| vrp.to_string()).collect::<Vec<_>>().join(";");
    let text = |text: Option<&str>| cell(text.filter(|text| !text.is_empty()));
    let mut row = vec![prefix.to_string(), text(origin), validity.to_string(), text(Some(&vrps))];
    if let Some(PathCells { validity, path }) = path {
        row.extend([text(validity.map(PathValidity::name)), text(path)]);
    }
    records.row(row)
}

/// Prints a table's routes that are wanted, with their paths if `has_paths`.
pub fn print(
    table: &Table,
    origin: &str,
    vrps: &Vrps,
    wanted: &Listed,
    has_paths: bool,
    records: &mut Records,
) -> Result<(), Failure> {
    let columns = &table.columns;
    let places = Places {
        origin: columns.find(origin),
        path: columns.find(AS_PATH).filter(|_| has_paths),
        has_paths,
    };
    family::<u32>(table, &places, vrps, wanted, records)?;
    family::<u128>(table, &places, vrps, wanted, records)
}

/// The columns of a table that are printed.
struct Places {
    origin: Option<usize>,
    path: Option<usize>,
    has_paths: bool,
}

fn family<A: Addr + Pod>(
    table: &Table,
    places: &Places,
    vrps: &Vrps,
    wanted: &Listed,
    records: &mut Records,
) -> Result<(), Failure> {
    let columns = &table.columns;
    for route in table.routes::<A>().iter() {
        let hop = route.hop;
        let Some(validity) = validity(columns, hop).filter(|_| wanted.has(columns, hop)) else {
            continue;
        };
        let cell = |at: Option<usize>| text(columns.value(at?, hop.index()?));
        let (origin, path) = (cell(places.origin), cell(places.path));
        let path = PathCells { validity: path_validity(columns, hop), path: path.as_deref() };
        let path = places.has_paths.then_some(path);
        self::route(records, A::any(route.prefix), origin.as_deref(), validity, vrps, path)?;
    }
    Ok(())
}

/// A table's routes that are wanted.
pub fn only(table: &Table, wanted: &Listed) -> Table {
    fn family<A: Addr + Pod>(table: &Table, wanted: &Listed) -> Routes<A> {
        let is_wanted = |hop| wanted.has(&table.columns, hop);
        table.routes::<A>().iter().filter(|route| is_wanted(route.hop)).collect()
    }
    Table {
        v4: family(table, wanted),
        v6: family(table, wanted),
        columns: table.columns.clone(),
        provenance: table.provenance.clone(),
    }
}

fn validity(columns: &Columns, hop: Hop) -> Option<Validity> {
    match columns.value(columns.find(VALIDITY)?, hop.index()?) {
        Value::Str(text) => text.parse().ok(),
        _ => None,
    }
}

fn path_validity(columns: &Columns, hop: Hop) -> Option<PathValidity> {
    match columns.value(columns.find(PATH_VALIDITY)?, hop.index()?) {
        Value::Str(text) => text.parse().ok(),
        _ => None,
    }
}

fn text(value: Value<'_>) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Int(int) => Some(int.to_string()),
        Value::Str(text) => Some(text.to_owned()),
    }
}
