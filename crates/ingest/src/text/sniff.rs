//! Detects the layout of a text from its beginning.

use super::cells::is_key;
use super::fields::Delimiter;
use super::guess::{Guess, MAX_FIELDS};
use super::header::{self, is_header, without_header};
use super::key::{Key, parse_key};
use super::layout::{Column, Layout, has_leading_zeros, is_missing, parse_int};
use super::options::{HeaderLine, TextOptions};
use super::ranges::is_decimal_ranges;
use super::roles::{AddressColumns, Roles, SampleRow};
use super::rows::Rows;
use crate::{ColumnDecl, ColumnKind, Format, HostBits, ScalarType};

/// Rows from which delimiter, header, key and the number of fields are found. A row below with more fields more likely
/// has a delimiter without quotes than its own column.
const SAMPLE: usize = 100;

/// Detects the layout. The error names the option that does not fit.
pub(crate) fn sniff(head: &[u8], format: Format, options: &TextOptions) -> Result<Layout, String> {
    let delimiter = delimiter(head, format, options);
    let layout = layout(head, delimiter, true, format, options);
    if delimiter != Delimiter::Byte(b';') {
        return layout;
    }
    // A row whose first field is empty begins like a comment. It is none if the address may stand behind.
    match &layout {
        Ok(found) if found.key.start() == 0 => layout,
        _ => self::layout(head, delimiter, false, format, options),
    }
}

/// The layout with this delimiter. `semicolons`: lines that begin with `;` are comments.
fn layout(
    head: &[u8],
    delimiter: Delimiter,
    semicolons: bool,
    format: Format,
    options: &TextOptions,
) -> Result<Layout, String> {
    let (rows, first_line) = sample(head, delimiter, semicolons);
    let width = rows.iter().map(Vec::len).max().unwrap_or(1);
    let body = match options.header {
        HeaderLine::Present if rows.len() > 1 => &rows[1..],
        HeaderLine::Present | HeaderLine::Absent => &rows,
        HeaderLine::Auto => without_header(&rows),
    };
    let above = match options.header {
        HeaderLine::Auto => header::fields_comment(head, &rows),
        HeaderLine::Present | HeaderLine::Absent => None,
    };
    let is_named = |addresses: usize| match (options.header, rows.first()) {
        (_, None) | (HeaderLine::Absent, _) => false,
        _ if above.is_some() => false,
        (HeaderLine::Present, _) => true,
        (HeaderLine::Auto, Some(row)) => is_header(row, addresses, rows.len() == 1, format),
    };
    let header = rows.first().map(|first| header::names(first_line, first, body, delimiter));
    let (first, mut misfit) = match header {
        Some(names) => (names.clone().unwrap_or_default(), names.is_none()),
        None => (Vec::new(), false),
    };
    let given = !options.names.is_empty() || above.is_some();
    let names = match &above {
        _ if !options.names.is_empty() => &options.names,
        Some(above) => above,
        None => &first,
    };
    let body = if above.is_some() { &rows } else { body };
    // The columns that may have the addresses: there a header has words.
    let addresses = (0..width).find(|&at| {
        body.iter().filter(|row| row.get(at).is_some_and(|field| is_key(field))).count() * 2
            > body.len()
    });
    let named = given || (body.len() < rows.len() && !misfit && is_named(addresses.unwrap_or(0)));
    let guess = Guess { rows: body, names, named, width, delimited: is_delimited(delimiter) };
    let Roles { key, mut notes } = guess.of(format, &options.key)?;
    let header = is_named(key.start());
    misfit &= header && !given;
    if misfit {
        notes.push(header::MISFIT);
    }
    let names: &[String] = if given || header { names } else { &[] };
    let named = &rows[usize::from(header)..];
    let width = if misfit { named.iter().map(Vec::len).max().unwrap_or(1) } else { width };
    let mut fields = self::width(named, key, delimiter, width);
    if !options.names.is_empty() && !rows.is_empty() {
        let rows = Rows::new(delimiter, MAX_FIELDS).with_semicolons(semicolons);
        fields = named_fields(head, rows, fields, &options.names)?;
    }
    let columns = columns(names, key, fields, options);
    let ranges = matches!(key, AddressColumns::Two { .. } | AddressColumns::Counted { .. });
    let mut layout = Layout { delimiter, semicolons, fields, header, key, notes, ranges, columns };
    look_at_all(head, options, &mut layout);
    Ok(layout)
}

/// The first rows, and the line of the first one.
fn sample(head: &[u8], delimiter: Delimiter, semicolons: bool) -> (Vec<SampleRow>, &[u8]) {
    let (mut rows, mut first) = (Vec::new(), 0..0);
    Rows::new(delimiter, MAX_FIELDS).with_semicolons(semicolons).for_each(head, |at, fields| {
        if rows.is_empty() {
            first = at..head.len();
        }
        rows.push(fields.iter().map(|field| field.to_vec()).collect());
        rows.len() < SAMPLE
    });
    (rows, head[first].split(|&byte| byte == b'\n').next().unwrap_or_default())
}

/// Whether each field certainly is one value.
fn is_delimited(delimiter: Delimiter) -> bool {
    matches!(delimiter, Delimiter::Byte(byte) if byte != b'\t')
}

/// The delimiter at which most rows have a field that is an address.
fn delimiter(head: &[u8], format: Format, options: &TextOptions) -> Delimiter {
    match options.delimiter {
        Some(b' ') => return Delimiter::Blank,
        Some(byte) => return Delimiter::Byte(byte),
        None => {}
    }
    if format == Format::Tsv {
        return Delimiter::Byte(b'\t');
    }
    let fits = |byte: &u8| {
        let (rows, _) = sample(head, Delimiter::Byte(*byte), true);
        let body = without_header(&rows);
        let fitting = body.iter().filter(|row| {
            let holds_key = || match format {
                // Whatever is in it, a CSV file is cut at its commas.
                Format::Csv => true,
                Format::Ranges => row.iter().any(|f| is_number_or_key(f)),
                _ => row.iter().any(|f| is_key(f)),
            };
            row.len() > 1 && holds_key()
        });
        fitting.count() * 2 > body.len() || (format == Format::Text && is_decimal_ranges(&rows))
    };
    let order: &[u8] = if format == Format::Csv { b",;\t|" } else { b"\t,;|" };
    match order.iter().find(|byte| fits(byte)) {
        Some(&byte) => Delimiter::Byte(byte),
        None if format == Format::Csv => Delimiter::Byte(b','),
        None => Delimiter::Blank,
    }
}

fn is_number_or_key(field: &[u8]) -> bool {
    is_key(field) || (!field.is_empty() && field.iter().all(u8::is_ascii_digit))
}

/// How many fields a row has.
fn width(rows: &[SampleRow], key: AddressColumns, delimiter: Delimiter, widest: usize) -> usize {
    let last = key.start().max(key.second().unwrap_or(0));
    match delimiter {
        Delimiter::Byte(_) => widest.max(last + 1),
        // Blanks also occur within free text: the rest after the fields that all rows have belongs to the last one.
        // Rows with only a key are not counted for this.
        Delimiter::Blank => {
            let full = rows.iter().map(Vec::len).filter(|&len| len > last + 1);
            full.min().unwrap_or(last + 1)
        }
    }
}

/// How many fields a row has if its columns are named: names show where free text begins, and which columns only rows
/// have that come later.
fn named_fields(
    head: &[u8],
    mut rows: Rows,
    fields: usize,
    names: &[String],
) -> Result<usize, String> {
    if names.len() <= fields {
        return Ok(fields);
    }
    let mut widest = fields;
    rows.for_each(head, |_, row| {
        widest = widest.max(row.len());
        widest < names.len()
    });
    if widest >= names.len() {
        return Ok(names.len());
    }
    let (count, s) = (names.len(), if widest == 1 { "" } else { "s" });
    Err(format!(
        "{count} names for {widest} column{s}: {}; --names takes one for each column of the file, in its order",
        names.join(", ")
    ))
}

/// The value columns, all of text as yet.
pub(crate) fn columns(
    names: &[String],
    key: AddressColumns,
    fields: usize,
    options: &TextOptions,
) -> Vec<Column> {
    let values: Vec<usize> = (0..fields).filter(|&at| !key.has(at)).collect();
    let mut all: Vec<Column> = Vec::new();
    for (i, &field) in values.iter().enumerate() {
        let given = names.get(field).map(|name| name.trim()).filter(|name| !name.is_empty());
        let base = match given {
            Some(name) => name.to_owned(),
            None if values.len() == 1 => "value".to_owned(),
            None => format!("value{}", i + 1),
        };
        let taken = |name: &str| all.iter().any(|column| column.decl.name == name);
        let name = (1..)
            .map(|n| if n == 1 { base.clone() } else { format!("{base}_{n}") })
            .find(|name| !taken(name))
            .unwrap_or(base.clone());
        let decl = ColumnDecl { name, kind: ColumnKind::Str };
        all.push(Column { field, decl, scalar: None, is_declared: false });
    }
    match &options.columns {
        None => all,
        Some(wanted) => wanted.iter().filter_map(|name| pick(&all, name)).collect(),
    }
}

/// The value column of this name or, failing that, of this number in the file.
fn pick(all: &[Column], name: &str) -> Option<Column> {
    let by_name = all.iter().find(|column| column.decl.name == name);
    let number = name.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
    by_name.or_else(|| all.iter().find(|column| Some(column.field) == number)).cloned()
}

/// Sets the properties that all rows of the head share: each column's kind, as the user set it, else integers if all
/// values are; and whether there are ranges.
fn look_at_all(head: &[u8], options: &TextOptions, layout: &mut Layout) {
    let mut rows = layout.rows();
    let Layout { header, key, ranges, columns, .. } = layout;
    let mut first = *header;
    let is_range = |field: &&[u8]| {
        let may_be = field.iter().any(|byte| matches!(byte, b'-' | b' '));
        let key = may_be.then(|| parse_key(field, HostBits::Mask));
        matches!(key, Some(Ok(Key::RangeV4(..) | Key::RangeV6(..))))
    };
    let mut seen = vec![Seen::default(); columns.len()];
    rows.for_each(head, |_, row| {
        if !std::mem::take(&mut first) {
            for (column, seen) in columns.iter().zip(&mut seen) {
                seen.value(row.get(column.field).copied().unwrap_or_default());
            }
            if let AddressColumns::One(at) = *key {
                *ranges |= row.get(at).is_some_and(is_range);
            }
        }
        true
    });
    for (column, seen) in columns.iter_mut().zip(seen) {
        column.set_kind(options, seen.found());
    }
}

/// The types of a column's values.
#[derive(Clone)]
struct Seen {
    any: bool,
    ints: bool,
    floats: bool,
    bools: bool,
}

impl Default for Seen {
    fn default() -> Self {
        Self { any: false, ints: true, floats: true, bools: true }
    }
}

impl Seen {
    fn value(&mut self, text: &[u8]) {
        if is_missing(text) {
            return;
        }
        self.any = true;
        self.ints = self.ints && is_plain_int(text);
        self.floats = self.floats && is_plain_float(text);
        self.bools = self.bools && matches!(text, b"true" | b"false");
    }

    fn found(&self) -> (ColumnKind, Option<ScalarType>) {
        match self {
            Self { any: false, .. } => (ColumnKind::Str, None),
            Self { ints: true, .. } => (ColumnKind::Int, None),
            Self { floats: true, .. } => (ColumnKind::Str, Some(ScalarType::Double)),
            Self { bools: true, .. } => (ColumnKind::Str, Some(ScalarType::Bool)),
            Self { .. } => (ColumnKind::Str, None),
        }
    }
}

/// A number that is written as a program would write it: `1.10` may be a version.
fn is_plain_float(text: &[u8]) -> bool {
    let text = std::str::from_utf8(text).unwrap_or_default();
    text.parse::<f64>().is_ok_and(|number| number.is_finite() && number.to_string() == text)
}

/// An integer that is written as a number would be: `007` is a name.
fn is_plain_int(text: &[u8]) -> bool {
    parse_int(text).is_some() && !has_leading_zeros(text)
}
