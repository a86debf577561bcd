//! Prints routes with their validity, one a line.

use fibula_core::{Addr, AnyPrefix, Hop, Routes, Value};
use fibula_rib::{Columns, Pod, Table};
use fibula_rpki::{VALIDITY, Validity, Vrp, Vrps};
use serde_json::{Value as Json, json};

use crate::failure::Failure;
use crate::output::{Records, cell};

/// The columns that are printed.
pub const COLUMNS: [&str; 4] = ["prefix", "origin", "rpki", "vrps"];

/// The validities of one `--list` value.
#[derive(Clone, Debug)]
pub struct Listed(pub Vec<Validity>);

/// Prints a route. The origin is printed as it is in the table.
pub fn route(
    records: &mut Records,
    prefix: AnyPrefix,
    origin: Option<&str>,
    validity: Validity,
    vrps: &Vrps,
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
        return records.object(&json!({
            "prefix": prefix.to_string(),
            "origin": number.or_else(|| origin.map(Json::from)),
            "rpki": validity.name(),
            "vrps": covering.map(vrp).collect::<Vec<Json>>(),
        }));
    }
    let vrps = covering.map(|vrp| vrp.to_string()).collect::<Vec<_>>().join(";");
    let text = |text: Option<&str>| cell(text.filter(|text| !text.is_empty()));
    records.row(vec![prefix.to_string(), text(origin), validity.to_string(), text(Some(&vrps))])
}

/// Prints a table's routes that have one of these validities.
pub fn print(
    table: &Table,
    origin: &str,
    vrps: &Vrps,
    wanted: &[Validity],
    records: &mut Records,
) -> Result<(), Failure> {
    fn family<A: Addr + Pod>(
        table: &Table,
        column: Option<usize>,
        vrps: &Vrps,
        wanted: &[Validity],
        records: &mut Records,
    ) -> Result<(), Failure> {
        for route in table.routes::<A>().iter() {
            let validity = validity(&table.columns, route.hop);
            let Some(validity) = validity.filter(|validity| wanted.contains(validity)) else {
                continue;
            };
            let value = column.zip(route.hop.index());
            let origin = value.and_then(|(at, row)| text(table.columns.value(at, row)));
            self::route(records, A::any(route.prefix), origin.as_deref(), validity, vrps)?;
        }
        Ok(())
    }
    let column = table.columns.find(origin);
    family::<u32>(table, column, vrps, wanted, records)?;
    family::<u128>(table, column, vrps, wanted, records)
}

/// A table's routes that have one of these validities.
pub fn only(table: &Table, wanted: &[Validity]) -> Table {
    fn family<A: Addr + Pod>(table: &Table, wanted: &[Validity]) -> Routes<A> {
        let is_wanted = |hop| validity(&table.columns, hop).is_some_and(|v| wanted.contains(&v));
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

fn text(value: Value<'_>) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Int(int) => Some(int.to_string()),
        Value::Str(text) => Some(text.to_owned()),
    }
}
