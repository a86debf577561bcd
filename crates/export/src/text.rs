//! Writes prefixes with their values, one on each line.

use std::io::{self, Write};

use fibula_core::{Addr, Hop, Prefix, Value};
use fibula_rib::{Columns, Pod, Table};

/// The format of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// Fields separated by tabs. Tabs and line ends inside a field become spaces.
    Tsv,
    /// Fields separated by commas, quoted as in RFC 4180.
    Csv,
    /// ClickHouse's `CSVWithNames`: like CSV, with `\N` for null.
    ClickHouse,
}

/// Writes all routes, IPv4 first, in address order, after a line with the column names. A column of the table that is
/// itself called `prefix` gets a number ([`Columns::names_beside`]).
///
/// ```
/// use fibula_core::{Hop, Routes};
/// use fibula_export::{TextFormat, text};
/// use fibula_rib::Table;
///
/// let v4: Routes<u32> = [("10.0.0.0/8".parse().unwrap(), Hop::new(1))].into_iter().collect();
/// let table = Table::from_routes(v4, Routes::default());
/// let mut out = Vec::new();
/// text(&table, TextFormat::Csv, &mut out)?;
/// assert_eq!(out, b"prefix,hop\n10.0.0.0/8,1\n");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If writing fails.
pub fn text(table: &Table, form: TextFormat, mut out: impl Write) -> io::Result<()> {
    let columns = &table.columns;
    let mut line = String::from("prefix");
    for name in columns.names_beside(&["prefix"]) {
        line.push(form.delimiter());
        form.field(&name, &mut line);
    }
    line.push('\n');
    out.write_all(line.as_bytes())?;
    // The values of a row are the same wherever it comes again.
    let mut rows: Vec<Option<Box<str>>> = vec![None; columns.len() as usize];
    routes::<u32>(table, form, &mut rows, &mut out)?;
    routes::<u128>(table, form, &mut rows, &mut out)?;
    out.flush()
}

fn routes<A: Addr + Pod>(
    table: &Table,
    form: TextFormat,
    rows: &mut [Option<Box<str>>],
    out: &mut impl Write,
) -> io::Result<()> {
    for route in table.routes::<A>().iter() {
        out.write_all(Prefix::to_string(&route.prefix).as_bytes())?;
        let row = route.hop.index().and_then(|row| rows.get_mut(row as usize));
        match row {
            Some(row) => {
                let values = row.get_or_insert_with(|| form.values(&table.columns, route.hop));
                out.write_all(values.as_bytes())?;
            }
            None => out.write_all(form.values(&table.columns, Hop::NONE).as_bytes())?,
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

impl TextFormat {
    const fn delimiter(self) -> char {
        match self {
            Self::Tsv => '\t',
            Self::Csv | Self::ClickHouse => ',',
        }
    }

    fn values(self, columns: &Columns, hop: Hop) -> Box<str> {
        let mut line = String::new();
        for column in 0..columns.width() {
            line.push(self.delimiter());
            match hop.index().map_or(Value::Null, |row| columns.value(column, row)) {
                Value::Null if self == Self::ClickHouse => line.push_str("\\N"),
                Value::Null => {}
                Value::Int(int) => line.push_str(&int.to_string()),
                Value::Str(text) => self.field(text, &mut line),
            }
        }
        line.into()
    }

    fn field(self, text: &str, line: &mut String) {
        match self {
            Self::Tsv => {
                // A quote at the beginning would open a field that ends at the next quote, lines further down.
                let quotes = text.starts_with('"');
                line.extend(quotes.then_some('"'));
                for c in text.chars() {
                    line.push(if matches!(c, '\t' | '\n' | '\r') { ' ' } else { c });
                    line.extend((quotes && c == '"').then_some('"'));
                }
                line.extend(quotes.then_some('"'));
            }
            // An empty text is no missing value, and `\N` is not one.
            _ if text.is_empty()
                || text.contains([',', '"', '\n', '\r', '\\'])
                || text.starts_with(' ')
                || text.ends_with(' ') =>
            {
                line.push('"');
                line.push_str(&text.replace('"', "\"\""));
                line.push('"');
            }
            _ => line.push_str(text),
        }
    }
}
