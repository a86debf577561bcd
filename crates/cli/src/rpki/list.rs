//! Prints routes with their validity, one a line.

use std::io::{BufWriter, StdoutLock, Write};

use fibula_core::{Addr, AnyPrefix, Hop, Routes, Value};
use fibula_rib::{Columns, Pod, Table};
use fibula_rpki::{VALIDITY, Validity, Vrp, Vrps};
use serde_json::{Value as Json, json};

use crate::failure::Failure;
use crate::output::{self, Grid};

/// Maximum number of routes that are aligned together.
const ROWS: usize = 4096;

/// The validities of one `--list` value.
#[derive(Clone, Debug)]
pub struct Listed(pub Vec<Validity>);

/// Prints routes: as JSON lines, aligned on a terminal, otherwise separated by tabs.
pub struct Printer {
    out: BufWriter<StdoutLock<'static>>,
    style: Style,
}

enum Style {
    Json,
    Tsv,
    Aligned(Grid),
}

impl Printer {
    /// Prints the column names.
    pub fn new(is_json: bool) -> Result<Self, Failure> {
        let mut out = output::stdout();
        let heads = ["prefix", "origin", "rpki", "vrps"];
        let style = match (is_json, output::is_terminal()) {
            (true, _) => Style::Json,
            (_, true) => Style::Aligned(Grid::new(&heads)),
            _ => {
                writeln!(out, "{}", heads.join("\t"))?;
                Style::Tsv
            }
        };
        Ok(Self { out, style })
    }

    /// Prints a route. The origin is printed as it is in the table.
    pub fn route(
        &mut self,
        prefix: AnyPrefix,
        origin: Option<&str>,
        validity: Validity,
        vrps: &Vrps,
    ) -> Result<(), Failure> {
        let covering = vrps.covering(prefix);
        if let Style::Json = self.style {
            let vrp = |vrp: Vrp| {
                json!({
                    "prefix": vrp.prefix().to_string(), "max_length": vrp.max_len(), "asn": vrp.asn(),
                })
            };
            // An AS is a number in JSON, as in other commands.
            let number = origin.and_then(fibula_rpki::parse_asn).map(Json::from);
            let object = json!({
                "prefix": prefix.to_string(),
                "origin": number.or_else(|| origin.map(Json::from)),
                "rpki": validity.name(),
                "vrps": covering.map(vrp).collect::<Vec<Json>>(),
            });
            serde_json::to_writer(&mut self.out, &object)?;
            return Ok(writeln!(self.out)?);
        }
        let vrps: Vec<String> = covering.map(|vrp| vrp.to_string()).collect();
        let text = |text: &str| match text {
            "" => "-".to_owned(),
            text => text.replace(['\t', '\n', '\r'], " "),
        };
        let origin = text(origin.unwrap_or_default());
        let cells = [prefix.to_string(), origin, validity.to_string(), text(&vrps.join(";"))];
        match &mut self.style {
            Style::Aligned(grid) => {
                grid.row(cells);
                if grid.len() >= ROWS {
                    grid.write_rows(&mut self.out)?;
                }
            }
            _ => writeln!(self.out, "{}", cells.join("\t"))?,
        }
        Ok(())
    }

    /// Prints the routes that are still buffered.
    pub fn finish(mut self) -> Result<(), Failure> {
        if let Style::Aligned(grid) = &mut self.style {
            grid.write_rows(&mut self.out)?;
        }
        Ok(self.out.flush()?)
    }
}

/// Prints a table's routes that have one of these validities.
pub fn print(
    table: &Table,
    origin: &str,
    vrps: &Vrps,
    wanted: &[Validity],
    printer: &mut Printer,
) -> Result<(), Failure> {
    fn family<A: Addr + Pod>(
        table: &Table,
        column: Option<usize>,
        vrps: &Vrps,
        wanted: &[Validity],
        printer: &mut Printer,
    ) -> Result<(), Failure> {
        for route in table.routes::<A>().iter() {
            let validity = validity(&table.columns, route.hop);
            let Some(validity) = validity.filter(|validity| wanted.contains(validity)) else {
                continue;
            };
            let value = column.zip(route.hop.index());
            let origin = value.and_then(|(at, row)| text(table.columns.value(at, row)));
            printer.route(A::any(route.prefix), origin.as_deref(), validity, vrps)?;
        }
        Ok(())
    }
    let column = table.columns.find(origin);
    family::<u32>(table, column, vrps, wanted, printer)?;
    family::<u128>(table, column, vrps, wanted, printer)
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
