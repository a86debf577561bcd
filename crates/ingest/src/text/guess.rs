//! Finds the address columns of a text from its first rows.

use fibula_core::AnyPrefix;

use super::fields::Delimiter;
use super::key::{Key, KeyError, parse_ip, parse_key, parse_mask, parse_network, parse_range};
use super::layout::{KeyAt, parse_int};
use super::names::{END_NAMES, LENGTH_NAMES, PREFIX_NAMES, START_NAMES, rank};
use super::options::KeyColumns;
use crate::{Format, HostBits};

/// Fields that are looked at for a key; rows may have more.
pub(crate) const MAX_FIELDS: usize = 256;

/// See [`Sink::noted`](crate::Sink::noted).
const NETWORKS: &str = "pairs of columns that could be addresses with values, taken as networks with lengths \
                        (--key COLUMN takes the addresses alone)";
const ADDRESSES: &str = "pairs of columns that could be networks with lengths, taken as addresses with values \
                         (--key COLUMN,COLUMN takes both)";

const RANGES: &str = "pairs of columns that could be addresses with values, taken as ranges (--key COLUMN takes the \
                      addresses alone)";
const NO_RANGES: &str = "pairs of columns that could be ranges, taken as addresses with values (--key COLUMN,COLUMN \
                         takes both)";

const BESIDE: &str = "columns of prefixes beside pairs of columns that are other ranges, which are taken \
                      (--key COLUMN takes the prefixes)";

pub(crate) type Row = Vec<Vec<u8>>;

/// Guesses the key from rows and names.
pub(crate) struct Guess<'a> {
    /// Without the first, if that may be a header.
    pub(crate) rows: &'a [Row],
    /// The row that may be a header.
    pub(crate) first: Option<&'a Row>,
    pub(crate) names: &'a [String],
    /// Whether the user gave the names.
    pub(crate) named: bool,
    pub(crate) widest: usize,
    pub(crate) delimiter: Delimiter,
    pub(crate) format: Format,
}

/// A key, and the note about it if the columns could be read in another way.
#[derive(Clone, Copy)]
pub(crate) struct Guessed {
    pub(crate) key: KeyAt,
    pub(crate) note: Option<&'static str>,
}

impl From<KeyAt> for Guessed {
    fn from(key: KeyAt) -> Self {
        Self { key, note: None }
    }
}

/// The numbers of rows in which a column of addresses and the next column can be networks with netmasks or lengths.
#[derive(Default)]
struct Networks {
    rows: usize,
    /// Valid rows with a significant length: neither 0 nor that of an address.
    blocks: usize,
    /// Rows that would be damaged.
    wrong: usize,
    /// Rows with a valid length, whatever the address.
    lengths: usize,
}

impl Guess<'_> {
    pub(crate) fn key(&self, wanted: &KeyColumns) -> Result<Guessed, String> {
        let find = |name: &str| {
            find(self.names, name, self.widest)
                .ok_or_else(|| format!("no column {name:?}; there are: {}", self.names.join(", ")))
        };
        Ok(match wanted {
            KeyColumns::Prefix(name) => KeyAt::One(find(name)?).into(),
            KeyColumns::Range(start, end) => self.two(find(start)?, find(end)?).into(),
            KeyColumns::Auto => match self.by_name() {
                Some(guessed) => guessed,
                None => self.by_content()?,
            },
        })
    }

    /// A network between two columns, or a range, whose ends are decimal if no row has addresses there.
    fn two(&self, addr: usize, other: usize) -> KeyAt {
        let networks = self.networks(addr, other);
        let is_address = |row: &Row| row.get(other).is_some_and(|f| parse_ip(f).is_some());
        // No range ends in a length, so most rows decide, right or wrong.
        let lengths = networks.lengths * 2 > networks.rows && !self.mostly(is_address);
        if lengths || self.has_masks(other) || networks.blocks > networks.wrong {
            return KeyAt::Net { addr, len: other };
        }
        let decimal = self.mostly(|row| parse_row(row, addr, other, true))
            && !self.mostly(|row| parse_row(row, addr, other, false));
        KeyAt::Two { start: addr, end: other, decimal }
    }

    /// Whether at least half of the rows are so, and one at least.
    fn half(&self, test: impl Fn(&Row) -> bool) -> bool {
        let fitting = self.rows.iter().filter(|row| test(row)).count();
        fitting > 0 && fitting * 2 >= self.rows.len()
    }

    /// Whether more than half of the rows are so.
    fn mostly(&self, test: impl Fn(&Row) -> bool) -> bool {
        self.rows.iter().filter(|row| test(row)).count() * 2 > self.rows.len()
    }

    fn mostly_holds(&self, at: usize, test: fn(&[u8]) -> bool) -> bool {
        self.mostly(|row| row.get(at).is_some_and(|f| test(f)))
    }

    /// Whether a column holds netmasks. They are recognised without the other columns: as ranges they would reach from
    /// 10.0.0.0 to 255.0.0.0.
    fn has_masks(&self, at: usize) -> bool {
        // The last address ends ranges, too.
        let is_mask = |field: &Vec<u8>| {
            field.starts_with(b"255.") && field != b"255.255.255.255" && parse_mask(field).is_some()
        };
        let masks = self.rows.iter().filter(|row| row.get(at).is_some_and(is_mask)).count();
        masks > 0 && masks * 2 >= self.rows.len()
    }

    /// Lengths look like other numbers, so the addresses must match them: few addresses happen to end in as many zero
    /// bits as a number next to them requires.
    fn networks(&self, addr: usize, len: usize) -> Networks {
        let mut found = Networks::default();
        for row in self.rows {
            found.rows += 1;
            let field = |at: usize| row.get(at).map(Vec::as_slice).unwrap_or_default();
            let network = |bits| parse_network(field(addr), field(len), bits);
            found.lengths += usize::from(network(HostBits::Mask).is_ok());
            match network(HostBits::Refuse) {
                Ok(network) => found.blocks += usize::from(is_block(network)),
                Err(_) => found.wrong += 1,
            }
        }
        found
    }

    /// The columns with such names, the likeliest first.
    fn named(&self, wanted: &[&str]) -> Vec<usize> {
        let mut found: Vec<(usize, usize)> = self
            .names
            .iter()
            .enumerate()
            .filter_map(|(i, n)| Some((rank(n, wanted)?, i)))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, at)| at).collect()
    }

    fn by_name(&self) -> Option<Guessed> {
        let (starts, ends) = (self.named(START_NAMES), self.named(END_NAMES));
        let mut pairs = starts.iter().flat_map(|&start| ends.iter().map(move |&end| (start, end)));
        let is_ip = |row: &Row, at: usize| row.get(at).is_some_and(|f| parse_ip(f).is_some());
        // The names say that these are ranges, also in rows whose ends are the wrong way round: such rows are damage.
        let addresses = |row: &Row, (start, end)| is_ip(row, start) && is_ip(row, end);
        if let Some((start, end)) =
            pairs.clone().find(|&pair| self.half(|row| addresses(row, pair)))
        {
            let note = self.has_other_prefixes(start, end).then_some(BESIDE);
            return Some(Guessed { key: self.two(start, end), note });
        }
        let named = self.named(PREFIX_NAMES);
        let mut holding = named.into_iter().filter(|&at| self.mostly_holds(at, is_key));
        let Some(at) = holding.next() else {
            // Integers are times as often as addresses: these only if there is nothing else.
            if (0..self.widest.min(MAX_FIELDS)).any(|at| self.mostly_holds(at, is_key)) {
                return None;
            }
            let decimal =
                pairs.find(|&(start, end)| self.mostly(|row| parse_row(row, start, end, true)));
            return decimal.map(|(start, end)| self.two(start, end).into());
        };
        // A column `cidr` may hold networks or lengths.
        let is_length = |len: &usize| {
            let networks = self.networks(at, *len);
            *len != at && networks.lengths > 0 && networks.lengths * 2 >= networks.rows
        };
        if let Some(len) = self.named(LENGTH_NAMES).into_iter().find(is_length) {
            return Some(KeyAt::Net { addr: at, len }.into());
        }
        if self.mostly_holds(at, is_spelled) {
            return Some(KeyAt::One(at).into());
        }
        if let Some(at) = holding.find(|&at| self.mostly_holds(at, is_spelled)) {
            return Some(KeyAt::One(at).into());
        }
        let networks = self.networks(at, at + 1);
        let note = (networks.blocks > networks.wrong).then_some(ADDRESSES);
        Some(Guessed { key: KeyAt::One(at), note })
    }

    /// Whether a column that is called as prefixes are holds others than those of the ranges.
    fn has_other_prefixes(&self, start: usize, end: usize) -> bool {
        let mut named = self.named(PREFIX_NAMES).into_iter();
        let Some(at) = named.find(|&at| self.mostly_holds(at, is_spelled)) else { return false };
        let is_other = |row: &Row| {
            let range = parse_range(row.get(start)?, row.get(end)?, false).ok()?;
            let Ok(Key::Prefix(prefix)) = parse_key(row.get(at)?, HostBits::Refuse) else {
                return None;
            };
            Some(range != range_of(prefix))
        };
        self.rows.iter().any(|row| is_other(row).unwrap_or(false))
    }

    fn by_content(&self) -> Result<Guessed, String> {
        if self.format == Format::Ranges {
            return Ok(self.ranges().into());
        }
        let columns = 0..self.widest.min(MAX_FIELDS);
        if let Some(at) = columns.clone().find(|&at| self.mostly_holds(at, is_spelled)) {
            return Ok(KeyAt::One(at).into());
        }
        if let Some(at) = columns.clone().find(|&at| self.mostly_holds(at, is_key)) {
            return Ok(self.of_addresses(at));
        }
        let decimal = KeyAt::Two { start: 0, end: 1, decimal: true };
        match self.names {
            _ if !is_decimal_ranges(self.rows) => Ok(KeyAt::One(0).into()),
            [start, end, ..] if self.has_names(decimal) => Err(format!(
                "columns {start} and {end} have integers in order, which could be ranges, but no such names; \
                 --key {start},{end} takes them as ranges, --key COLUMN gives the column of the addresses"
            )),
            _ => Ok(decimal.into()),
        }
    }

    /// The meaning of a column of addresses with the next one.
    fn of_addresses(&self, at: usize) -> Guessed {
        let networks = self.networks(at, at + 1);
        let key = KeyAt::Net { addr: at, len: at + 1 };
        if self.has_masks(at + 1) {
            return key.into();
        }
        if networks.blocks > networks.wrong {
            let doubtful = networks.wrong > 0 || self.has_names(key);
            return Guessed { key, note: doubtful.then_some(NETWORKS) };
        }
        let fitting = self.rows.iter().filter(|row| parse_row(row, at, at + 1, false)).count();
        // Of addresses that have nothing to do with each other half are in order.
        let is_range = fitting > 0 && fitting * 10 >= self.rows.len() * 9;
        let listed = matches!(self.delimiter, Delimiter::Byte(b) if b != b'\t');
        if is_range && (self.widest > 2 || listed) {
            let key = KeyAt::Two { start: at, end: at + 1, decimal: false };
            let doubtful = fitting < self.rows.len() || self.has_names(key);
            return Guessed { key, note: doubtful.then_some(RANGES) };
        }
        let key = KeyAt::One(at);
        let note = match networks.lengths * 2 > networks.rows {
            true => (!self.has_names(key)).then_some(ADDRESSES),
            false => (fitting * 2 > self.rows.len()).then_some(NO_RANGES),
        };
        Guessed { key, note }
    }

    /// Whether the columns have names at all.
    fn has_names(&self, key: KeyAt) -> bool {
        self.named || self.first.is_some_and(|row| is_header(row, key, false, self.format))
    }

    /// Finds the columns of ranges, which the caller has requested.
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

/// Whether a field is meant as an address, a prefix or a range, be it a wrong one.
pub(crate) fn is_key(field: &[u8]) -> bool {
    parse_key(field, HostBits::Refuse) != Err(KeyError::Syntax)
}

/// Whether a field is meant as a prefix or a range, not as one address.
fn is_spelled(field: &[u8]) -> bool {
    is_key(field) && parse_ip(field).is_none()
}

fn range_of(prefix: AnyPrefix) -> Key {
    match prefix {
        AnyPrefix::V4(prefix) => Key::RangeV4(prefix.first(), prefix.last()),
        AnyPrefix::V6(prefix) => Key::RangeV6(prefix.first(), prefix.last()),
    }
}

/// Whether the prefix is neither a single address nor the whole space. Only such lengths are significant: a column with
/// other values may have 32, too.
fn is_block(network: AnyPrefix) -> bool {
    match network {
        AnyPrefix::V4(prefix) => !matches!(prefix.len(), 0 | 32),
        AnyPrefix::V6(prefix) => !matches!(prefix.len(), 0 | 128),
    }
}

/// Whether all rows begin with two integers in order, as IP2Location's and Tor's do.
pub(crate) fn is_decimal_ranges(rows: &[Row]) -> bool {
    let body = if rows.len() > 1 { &rows[1..] } else { rows };
    body.iter().all(|row| row.len() > 2 && parse_range(&row[0], &row[1], true).is_ok())
        && !body.is_empty()
}

/// Finds a column by its name, else its number.
fn find(names: &[String], wanted: &str, width: usize) -> Option<usize> {
    let exact = names.iter().position(|name| name == wanted);
    exact
        .or_else(|| names.iter().position(|name| name.eq_ignore_ascii_case(wanted)))
        .or_else(|| wanted.parse::<usize>().ok()?.checked_sub(1).filter(|&at| at < width))
}

fn parse_row(row: &Row, start: usize, end: usize, decimal: bool) -> bool {
    match (row.get(start), row.get(end)) {
        (Some(start), Some(end)) => parse_range(start, end, decimal).is_ok(),
        _ => false,
    }
}

/// Whether the first row names the columns: words stand in all columns, and no address and no number
/// in any. A line that is damaged is none.
pub(crate) fn is_header(row: &Row, key: KeyAt, alone: bool, format: Format) -> bool {
    let Some(field) = row.get(key.start()) else { return false };
    let is_word = field.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_')
        && !field.contains(&b':')
        // `l0.0.0.0/8` is a mistake; `ip.src` and `IP/Mask` are names.
        && field.iter().filter(|b| b.is_ascii_digit()).count() * 2 < field.len();
    let is_datum =
        |field: &Vec<u8>| is_key(field) || parse_int(field).is_some_and(|_| !field.is_empty());
    // A single line of a list that is no address is more likely a wrong line than a name.
    is_word && !row.iter().any(is_datum) && (!alone || matches!(format, Format::Csv | Format::Tsv))
}
