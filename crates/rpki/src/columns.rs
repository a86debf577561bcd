//! Adds the validity of routes to a table, as columns.

use std::collections::HashMap;
use std::fmt::Write;

use fibula_core::{Addr, Hop, Route, Routes, Value};
use fibula_rib::{ColumnKind, Columns, ColumnsBuilder, Pod, Table, TableError};

use crate::{RpkiError, Validity, Vrps, parse_asn};

/// The column with the origin AS of routes, in tables of BGP routes.
pub const ORIGIN: &str = "origin_as";
/// The column with the validity: [`Validity::name`].
pub const VALIDITY: &str = "rpki";
/// The column with the VRPs that cover the prefix: `192.0.2.0/24-26 AS64500;192.0.0.0/16-24 AS64501`, in the order of
/// [`Vrps::covering`]; null if no VRP covers it.
pub const VRPS: &str = "rpki_vrps";

/// The table with the columns [`VALIDITY`] and [`VRPS`] for each route. The route's origin is taken from the column
/// `origin`. Columns that this function added before are replaced. Other columns of the table with these names keep
/// their values under a number ([`renamed_columns`]).
///
/// Validity depends on the prefix, so routes that shared a row of values may get different rows.
///
/// # Errors
/// If there is no such column, a value in it is not an origin (see [`parse_origin`]), or the table gets too many
/// different values.
pub fn add_columns(table: &Table, vrps: &Vrps, origin: &str) -> Result<Table, RpkiError> {
    table.check()?;
    let origins = origins(&table.columns, origin)?;
    let mut rows = Rows {
        origins: &origins,
        vrps,
        from: Vec::new(),
        added: ColumnsBuilder::new(&[(VALIDITY, ColumnKind::Str), (VRPS, ColumnKind::Str)]),
    };
    let v4 = rows.family::<u32>(table)?;
    let v6 = rows.family::<u128>(table)?;
    let own = table.columns.select(&rows.from).renamed(&names(&table.columns));
    let columns = own.with(rows.added.finish()?);
    Ok(Table { v4, v6, columns, provenance: table.provenance.clone() })
}

/// The columns of a table that [`add_columns`] renames, with their names afterwards.
///
/// ```
/// use fibula_core::Value;
/// use fibula_rib::{ColumnKind, ColumnsBuilder};
///
/// let mut columns = ColumnsBuilder::new(&[("origin_as", ColumnKind::Int), ("rpki", ColumnKind::Str)]);
/// columns.push(&[Value::Int(64500), Value::Str("checked by hand")])?;
/// let renamed = fibula_rpki::renamed_columns(&columns.finish()?);
/// assert_eq!(renamed, [("rpki".to_owned(), "rpki_2".to_owned())]);
/// # Ok::<(), fibula_rib::TableError>(())
/// ```
pub fn renamed_columns(columns: &Columns) -> Vec<(String, String)> {
    let both = columns.names().map(str::to_owned).zip(names(columns));
    both.filter(|(before, after)| before != after).collect()
}

/// The names of the table's columns beside the added ones.
fn names(columns: &Columns) -> Vec<String> {
    let own: &[&str] = if has_validity(columns) { &[] } else { &[VALIDITY, VRPS] };
    columns.names_beside(own)
}

/// Whether [`add_columns`] made two of the columns.
fn has_validity(columns: &Columns) -> bool {
    let (Some(validity), Some(_)) = (columns.find(VALIDITY), columns.find(VRPS)) else {
        return false;
    };
    let is_validity = |value| Validity::ALL.iter().any(|known| value == Value::Str(known.name()));
    (0..columns.distinct(validity) as u32).all(|code| is_validity(columns.decode(validity, code)))
}

/// The origin of each row.
pub(crate) fn origins(columns: &Columns, name: &str) -> Result<Vec<Option<u32>>, RpkiError> {
    let column = columns.find(name).ok_or_else(|| RpkiError::NoColumn {
        asked: name.to_owned(),
        columns: columns.names().map(str::to_owned).collect(),
    })?;
    let origin = |code| {
        parse_origin(columns.decode(column, code))
            .map_err(|value| RpkiError::NoOrigin { column: name.to_owned(), value })
    };
    let by_code: Vec<_> =
        (0..columns.distinct(column) as u32).map(origin).collect::<Result<_, _>>()?;
    let of_row = |row| columns.code(column, row).and_then(|code| by_code[code as usize]);
    Ok((0..columns.len()).map(of_row).collect())
}

/// The origin that a value stands for: an AS as a number or as `AS64500`. Null, AS 0 and a set of ASes
/// (`{64500,64501}`) give no origin.
///
/// ```
/// use fibula_core::Value;
/// use fibula_rpki::parse_origin;
/// assert_eq!(parse_origin(Value::Str("AS64500")), Ok(Some(64500)));
/// assert_eq!(parse_origin(Value::Str("{64500,64501}")), Ok(None));
/// assert_eq!(parse_origin(Value::Int(0)), Ok(None));
/// assert_eq!(parse_origin(Value::Str("CH")), Err("CH".to_owned()));
/// ```
///
/// # Errors
/// The value, if it is none of these.
pub fn parse_origin(value: Value<'_>) -> Result<Option<u32>, String> {
    let asn = match value {
        Value::Null => return Ok(None),
        Value::Int(int) => u32::try_from(int).map_err(|_| int.to_string())?,
        Value::Str(text) => match text.trim() {
            "" => return Ok(None),
            set if set.starts_with('{') && set.ends_with('}') => return Ok(None),
            name => parse_asn(name).ok_or_else(|| text.to_owned())?,
        },
    };
    Ok(Some(asn).filter(|&asn| asn != 0))
}

/// The rows of the new table.
struct Rows<'a> {
    origins: &'a [Option<u32>],
    vrps: &'a Vrps,
    /// For each new row, the row of the old table with the other values.
    from: Vec<u32>,
    /// The added values of each new row.
    added: ColumnsBuilder,
}

impl Rows<'_> {
    fn family<A: Addr + Pod>(&mut self, table: &Table) -> Result<Routes<A>, TableError> {
        // The longest covering VRP prefix determines all other covering VRPs, so its number stands for the whole
        // text.
        let mut known: HashMap<(u32, Option<usize>, Validity), u32> = HashMap::new();
        let mut text = String::new();
        let mut routes = Vec::with_capacity(table.routes::<A>().len());
        for Route { prefix, hop } in table.routes::<A>().iter() {
            let Some(old) = hop.index() else { continue }; // routes have hops
            let origin = self.origins.get(old as usize).copied().flatten();
            let (validity, longest) = self.vrps.of(prefix, origin);
            let row = match known.get(&(old, longest, validity)) {
                Some(&row) => row,
                None => {
                    text.clear();
                    for vrp in self.vrps.family::<A>().vrps(longest) {
                        let separator = if text.is_empty() { "" } else { ";" };
                        let _ = write!(text, "{separator}{vrp}");
                    }
                    let vrps = longest.map_or(Value::Null, |_| Value::Str(&text));
                    let row = self.added.push(&[Value::Str(validity.name()), vrps])?;
                    self.from.push(old);
                    known.insert((old, longest, validity), row);
                    row
                }
            };
            routes.push(Route { prefix, hop: Hop::new(row) });
        }
        Ok(routes.into_iter().collect())
    }
}
