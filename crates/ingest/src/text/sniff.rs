//! Detects the layout of a text from its beginning.

use fibula_core::AnyPrefix;

use super::fields::Delimiter;
use super::key::{Key, KeyError, parse_ip, parse_key, parse_mask, parse_network, parse_range};
use super::layout::{Column, KeyAt, Layout, parse_int};
use super::names::{END_NAMES, LENGTH_NAMES, PREFIX_NAMES, START_NAMES, rank};
use super::options::{Header, KeyColumns, TextOptions};
use super::rows::Rows;
use crate::{ColumnDecl, ColumnKind, Format, HostBits, ScalarType};

/// Rows from which delimiter, header and key are found.
const SAMPLE: usize = 100;
/// Fields that are looked at for a key; rows may have more.
const MAX_FIELDS: usize = 256;

type Row = Vec<Vec<u8>>;

/// Finds the layout out; the error says which option does not fit.
pub(crate) fn sniff(head: &[u8], format: Format, options: &TextOptions) -> Result<Layout, String> {
    let delimiter = delimiter(head, format, options);
    let rows = sample(head, delimiter);
    let widest = rows.iter().map(Vec::len).max().unwrap_or(1);
    let first: Vec<String> = rows.first().map(names_of).unwrap_or_default();
    let names = if options.names.is_empty() { &first } else { &options.names };
    let body = if rows.len() > 1 && options.header != Header::Absent { &rows[1..] } else { &rows };

    let guess = Guess { rows: body, first: rows.first(), names, widest, delimiter, format };
    let key = guess.key(&options.key)?;
    let header = match options.header {
        Header::Present => !rows.is_empty(),
        Header::Absent => false,
        Header::Auto => {
            rows.first().is_some_and(|row| is_header(row, key, rows.len() == 1, format))
        }
    };
    let names: &[String] = match (&*options.names, header) {
        ([], false) => &[],
        ([], true) => &first,
        (names, _) => names,
    };
    let mut fields = width(&rows[usize::from(header)..], key, delimiter, widest);
    if !options.names.is_empty() && !rows.is_empty() {
        fields = named_fields(head, delimiter, fields, &options.names)?;
    }
    let columns = columns(names, key, fields, options);
    let ranges = matches!(key, KeyAt::Two { .. });
    let mut layout = Layout { delimiter, fields, header, key, ranges, columns };
    look_at_all(head, options, &mut layout);
    Ok(layout)
}

fn sample(head: &[u8], delimiter: Delimiter) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    Rows::new(delimiter, MAX_FIELDS).for_each(head, |fields| {
        rows.push(fields.iter().map(|field| field.to_vec()).collect());
        rows.len() < SAMPLE
    });
    rows
}

/// The delimiter at which most rows have an address in a field of its own.
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
        let rows = sample(head, Delimiter::Byte(*byte));
        let body = if rows.len() > 1 { &rows[1..] } else { &rows };
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

/// Whether a field is meant as an address, a prefix or a range, be it a wrong one.
fn is_key(field: &[u8]) -> bool {
    parse_key(field, HostBits::Refuse) != Err(KeyError::Syntax)
}

fn is_number_or_key(field: &[u8]) -> bool {
    is_key(field) || (!field.is_empty() && field.iter().all(u8::is_ascii_digit))
}

/// Whether all rows begin with two integers in order, as IP2Location's and Tor's do.
fn is_decimal_ranges(rows: &[Row]) -> bool {
    let body = if rows.len() > 1 { &rows[1..] } else { rows };
    body.iter().all(|row| row.len() > 2 && parse_range(&row[0], &row[1], true).is_ok())
        && !body.is_empty()
}

fn names_of(row: &Row) -> Vec<String> {
    row.iter().map(|field| String::from_utf8_lossy(field).into_owned()).collect()
}

/// Finds a column by its name, else its number.
fn find(names: &[String], wanted: &str, width: usize) -> Option<usize> {
    let exact = names.iter().position(|name| name == wanted);
    exact
        .or_else(|| names.iter().position(|name| name.eq_ignore_ascii_case(wanted)))
        .or_else(|| wanted.parse::<usize>().ok()?.checked_sub(1).filter(|&at| at < width))
}

/// Guesses the key from rows and names.
struct Guess<'a> {
    /// Without the first, which may be a header.
    rows: &'a [Row],
    first: Option<&'a Row>,
    names: &'a [String],
    widest: usize,
    delimiter: Delimiter,
    format: Format,
}

impl Guess<'_> {
    fn key(&self, wanted: &KeyColumns) -> Result<KeyAt, String> {
        let find = |name: &str| {
            find(self.names, name, self.widest)
                .ok_or_else(|| format!("no column {name:?}; there are: {}", self.names.join(", ")))
        };
        match wanted {
            KeyColumns::Prefix(name) => find(name).map(KeyAt::One),
            KeyColumns::Range(start, end) => Ok(self.two(find(start)?, find(end)?)),
            KeyColumns::Auto => {
                Ok(self.by_name().or_else(|| self.by_content()).unwrap_or(KeyAt::One(0)))
            }
        }
    }

    /// A network between two columns, or a range, whose ends are decimal if no row has addresses there.
    fn two(&self, start: usize, end: usize) -> KeyAt {
        if self.is_network(start, end) {
            return KeyAt::Net { addr: start, len: end };
        }
        let decimal = self.mostly(|row| parse_row(row, start, end, true))
            && !self.mostly(|row| parse_row(row, start, end, false));
        KeyAt::Two { start, end, decimal }
    }

    /// Whether more than half of the rows are so.
    fn mostly(&self, test: impl Fn(&Row) -> bool) -> bool {
        self.rows.iter().filter(|row| test(row)).count() * 2 > self.rows.len()
    }

    /// Whether there are networks and their netmasks or lengths. Netmasks are seen by themselves, whatever
    /// stands beside them: as ranges they would reach from 10.0.0.0 to 255.0.0.0. Lengths are numbers like
    /// others, so every row has to fit.
    fn is_network(&self, addr: usize, len: usize) -> bool {
        // The last address ends ranges, too.
        let is_mask = |field: &Vec<u8>| {
            field.starts_with(b"255.") && field != b"255.255.255.255" && parse_mask(field).is_some()
        };
        let masks = self.rows.iter().filter(|row| row.get(len).is_some_and(is_mask)).count();
        if masks > 0 && masks * 2 >= self.rows.len() {
            return true;
        }
        let network =
            |row: &Row| parse_network(row.get(addr)?, row.get(len)?, HostBits::Refuse).ok();
        let is_telling = |row: &Row| {
            network(row).is_some_and(|network| match network {
                AnyPrefix::V4(prefix) => !matches!(prefix.len(), 0 | 32),
                AnyPrefix::V6(prefix) => !matches!(prefix.len(), 0 | 128),
            })
        };
        let fits = |row: &Row| network(row).is_some();
        let first_fits = self
            .first
            .is_none_or(|first| fits(first) || !first.get(addr).is_some_and(|field| is_key(field)));
        first_fits && self.rows.iter().all(fits) && self.rows.iter().any(is_telling)
    }

    fn by_name(&self) -> Option<KeyAt> {
        let named = |wanted: &[&str]| {
            let found =
                self.names.iter().enumerate().filter_map(|(i, n)| Some((rank(n, wanted)?, i)));
            found.min().map(|(_, index)| index)
        };
        if let (Some(start), Some(end)) = (named(START_NAMES), named(END_NAMES)) {
            let is_ip = |row: &Row, at: usize| row.get(at).is_some_and(|f| parse_ip(f).is_some());
            // The names say that these are ranges, also in rows whose ends are the wrong way round: such rows are damage.
            let addresses = self.mostly(|row| is_ip(row, start) && is_ip(row, end));
            if addresses || self.mostly(|row| parse_row(row, start, end, true)) {
                return Some(self.two(start, end));
            }
        }
        let at = named(PREFIX_NAMES)?;
        if let Some(len) = named(LENGTH_NAMES)
            && self.mostly(|row| {
                matches!((row.get(at), row.get(len)), (Some(addr), Some(len))
                if parse_network(addr, len, HostBits::Mask).is_ok())
            })
        {
            return Some(KeyAt::Net { addr: at, len });
        }
        self.mostly(|row| row.get(at).is_some_and(|f| is_key(f))).then_some(KeyAt::One(at))
    }

    fn by_content(&self) -> Option<KeyAt> {
        if self.format == Format::Ranges {
            return Some(self.ranges());
        }
        let columns = 0..self.widest.min(MAX_FIELDS);
        let holds = |at: usize, test: fn(&[u8]) -> bool| {
            self.mostly(|row| row.get(at).is_some_and(|f| test(f)))
        };
        let spelled = |f: &[u8]| is_key(f) && parse_ip(f).is_none();
        if let Some(at) = columns.clone().find(|&at| holds(at, spelled)) {
            return Some(KeyAt::One(at));
        }
        if let Some(at) = columns.clone().find(|&at| holds(at, is_key)) {
            if self.is_network(at, at + 1) {
                return Some(KeyAt::Net { addr: at, len: at + 1 });
            }
            let listed = matches!(self.delimiter, Delimiter::Byte(b) if b != b'\t');
            let is_range = (self.widest > 2 || listed)
                && self.rows.iter().all(|row| parse_row(row, at, at + 1, false));
            return Some(if is_range {
                KeyAt::Two { start: at, end: at + 1, decimal: false }
            } else {
                KeyAt::One(at)
            });
        }
        is_decimal_ranges(self.rows).then_some(KeyAt::Two { start: 0, end: 1, decimal: true })
    }

    /// The caller says that there are ranges: where?
    fn ranges(&self) -> KeyAt {
        let pairs = 0..self.widest.saturating_sub(1).min(MAX_FIELDS);
        for decimal in [false, true] {
            let fits = |at: &usize| self.mostly(|row| parse_row(row, *at, at + 1, decimal));
            if let Some(start) = pairs.clone().find(fits) {
                return KeyAt::Two { start, end: start + 1, decimal };
            }
        }
        KeyAt::One(0)
    }
}

fn parse_row(row: &Row, start: usize, end: usize, decimal: bool) -> bool {
    match (row.get(start), row.get(end)) {
        (Some(start), Some(end)) => parse_range(start, end, decimal).is_ok(),
        _ => false,
    }
}

/// Whether the first row names the columns: words stand in all columns, and no address and no number
/// in any. A line that is damaged is none.
fn is_header(row: &Row, key: KeyAt, alone: bool, format: Format) -> bool {
    let (KeyAt::One(at) | KeyAt::Two { start: at, .. } | KeyAt::Net { addr: at, .. }) = key;
    let Some(field) = row.get(at) else { return false };
    let is_word = field.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_')
        && !field.contains(&b':')
        // `l0.0.0.0/8` is a mistake; `ip.src` and `IP/Mask` are names.
        && field.iter().filter(|b| b.is_ascii_digit()).count() * 2 < field.len();
    let is_datum =
        |field: &Vec<u8>| is_key(field) || parse_int(field).is_some_and(|_| !field.is_empty());
    // A single line of a list that is no address is more likely a wrong line than a name.
    is_word && !row.iter().any(is_datum) && (!alone || matches!(format, Format::Csv | Format::Tsv))
}

/// How many fields a row has.
fn width(rows: &[Row], key: KeyAt, delimiter: Delimiter, widest: usize) -> usize {
    let (KeyAt::One(last) | KeyAt::Two { end: last, .. } | KeyAt::Net { len: last, .. }) = key;
    match delimiter {
        Delimiter::Byte(_) => widest.max(last + 1),
        // Blanks are also within free text: what comes after the fields that all rows have belongs to
        // the last. A row that is only a key says nothing about that.
        Delimiter::Blank => {
            let full = rows.iter().map(Vec::len).filter(|&len| len > last + 1);
            full.min().unwrap_or(last + 1)
        }
    }
}

/// How many fields a row has if its columns are named: names say where free text begins, and which columns only
/// rows have that come later.
fn named_fields(
    head: &[u8],
    delimiter: Delimiter,
    fields: usize,
    names: &[String],
) -> Result<usize, String> {
    if names.len() <= fields {
        return Ok(fields);
    }
    let mut widest = fields;
    Rows::new(delimiter, MAX_FIELDS).for_each(head, |row| {
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
fn columns(names: &[String], key: KeyAt, fields: usize, options: &TextOptions) -> Vec<Column> {
    let is_value = |at: &usize| match key {
        KeyAt::One(key) => *at != key,
        KeyAt::Two { start, end, .. } => *at != start && *at != end,
        KeyAt::Net { addr, len } => *at != addr && *at != len,
    };
    let values: Vec<usize> = (0..fields).filter(is_value).collect();
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
        all.push(Column { field, decl, scalar: None, told: false });
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

/// Sets what all rows of the head say: each column's kind, as told, else integers if all values are; and
/// whether there are ranges.
fn look_at_all(head: &[u8], options: &TextOptions, layout: &mut Layout) {
    let Layout { delimiter, fields, header, key, ranges, columns } = layout;
    let mut first = *header;
    let is_range = |field: &&[u8]| {
        let key = field.contains(&b'-').then(|| parse_key(field, HostBits::Mask));
        matches!(key, Some(Ok(Key::RangeV4(..) | Key::RangeV6(..))))
    };
    let mut seen = vec![Seen::default(); columns.len()];
    Rows::new(*delimiter, *fields).for_each(head, |row| {
        if !std::mem::take(&mut first) {
            for (column, seen) in columns.iter().zip(&mut seen) {
                seen.value(row.get(column.field).copied().unwrap_or_default());
            }
            if let KeyAt::One(at) = *key {
                *ranges |= row.get(at).is_some_and(is_range);
            }
        }
        true
    });
    for (column, seen) in columns.iter_mut().zip(seen) {
        let name = &column.decl.name;
        let number = (column.field + 1).to_string();
        let is_it = |told: &String| told == name || *told == number;
        let kind = options.kinds.iter().find(|(told, _)| is_it(told)).map(|(_, kind)| *kind);
        let scalar = options.types.iter().find(|(told, _)| is_it(told)).map(|(_, of)| *of);
        (column.decl.kind, column.scalar) = match (kind, scalar) {
            (_, Some(scalar)) => (ColumnKind::Str, Some(scalar)),
            (Some(kind), None) => (kind, None),
            (None, None) => seen.found(),
        };
        column.told = scalar.is_some();
    }
}

/// What the values of a column were.
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
        if text.is_empty() {
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
    parse_int(text).is_some() && (text.len() == 1 || text[0] != b'0')
}
