//! Finds the address columns of a table from its first rows.

use super::cells::{block, is_block, is_ip, is_key, is_spelled, range_of, spelled};
use super::key::{KeyError, mask_length, parse_counted, parse_ip, parse_network, parse_range};
use super::layout::shell_word;
use super::names::{LENGTH_NAMES, PREFIX_NAMES, Pair, SURE_LENGTH_NAMES, pairs, rank};
use super::options::KeyColumns;
use super::ranges::{is_decimal_ranges, range_in};
use super::roles::{AddressColumns, Roles, SampleRow};
use crate::{Format, HostBits};

/// Columns that are looked at for a key; tables may have more.
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
const PREFIXES: &str = "columns of prefixes that are taken in place of a column of single addresses (--key COLUMN \
                        takes another)";
const FURTHER: &str =
    "columns with prefixes that are values and not the key (--key COLUMN takes another)";
const FIRST: &str = "columns of addresses or prefixes with names that say no more, of which the first is taken (--key \
                     COLUMN takes another)";

/// Words that say something else about an address than that it is in the table.
const TURNING: &[&str] = &[
    "accept",
    "add",
    "allow",
    "and",
    "block",
    "del",
    "delete",
    "deny",
    "drop",
    "except",
    "exclude",
    "from",
    "no",
    "nomatch",
    "not",
    "or",
    "pass",
    "permit",
    "reject",
    "remove",
    "through",
    "thru",
    "to",
    "unless",
    "via",
    "w",
    "withdraw",
    "withdrawn",
    "!",
];

/// Guesses the key from rows and names.
pub(crate) struct Guess<'a> {
    /// Without the first, if that may be a header.
    pub(crate) rows: &'a [SampleRow],
    /// The names, which the first row may have without being a header.
    pub(crate) names: &'a [String],
    /// Whether the names are names for certain.
    pub(crate) named: bool,
    pub(crate) width: usize,
    pub(crate) delimited: bool,
}

/// The numbers of rows in which a column of addresses and another column can be networks with netmasks or lengths.
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
    /// The columns of a text of this format.
    pub(crate) fn of(&self, format: Format, wanted: &KeyColumns) -> Result<Roles, String> {
        let is_ranges =
            format == Format::Ranges && *wanted == KeyColumns::Auto && self.by_name().is_none();
        if is_ranges {
            Ok(Roles { key: self.ranges(), notes: Vec::new() })
        } else {
            self.roles(wanted)
        }
    }

    pub(crate) fn roles(&self, wanted: &KeyColumns) -> Result<Roles, String> {
        let find = |name: &str| {
            find(self.names, name, self.width).ok_or_else(|| match self.names {
                [] => format!(
                    "no column {name:?}: columns without names have numbers from 1 to {}",
                    self.width
                ),
                names => format!("no column {name:?}; there are: {}", names.join(", ")),
            })
        };
        let (key, note) = match wanted {
            KeyColumns::Prefix(name) => (AddressColumns::One(find(name)?), None),
            KeyColumns::Range(start, end) => (self.two(find(start)?, find(end)?), None),
            KeyColumns::Auto => match self.by_name() {
                Some(found) => found,
                None => self.by_content()?,
            },
        };
        if *wanted == KeyColumns::Auto && !self.named {
            self.refuse_words(key)?;
        }
        let further =
            (*wanted == KeyColumns::Auto && self.has_further_prefixes(key)).then_some(FURTHER);
        Ok(Roles { key, notes: note.into_iter().chain(further).collect() })
    }

    /// Refuses rows all of which have a word before or between the addresses that may change what they mean: one that
    /// is known to, or in a text separated by blanks the same one everywhere.
    fn refuse_words(&self, key: AddressColumns) -> Result<(), String> {
        let last = self.columns().rev().find(|&at| self.mostly_holds(at, is_key)).unwrap_or(0);
        let is_turning =
            |word: &[u8]| TURNING.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()));
        let is_word = |word: &[u8]| {
            word.len() > 1 && word.iter().all(|b| b.is_ascii_lowercase() || *b == b'-')
        };
        for at in (0..last).filter(|&at| !key.has(at)) {
            let mut words =
                self.rows.iter().map(|row| row.get(at).map(Vec::as_slice).unwrap_or_default());
            let Some(first) = words.clone().next() else { continue };
            let is_same = !self.delimited
                && self.rows.len() > 1
                && is_word(first)
                && words.clone().all(|word| word == first);
            if is_same || words.all(is_turning) {
                let (word, start) = (String::from_utf8_lossy(first), key.start() + 1);
                return Err(format!(
                    "each row has a word before or between the addresses, {word:?} in the first, which may change what \
                     the row means; --key {start} takes column {start} as addresses and the word as a value"
                ));
            }
        }
        Ok(())
    }

    fn columns(&self) -> std::ops::Range<usize> {
        0..self.width.min(MAX_FIELDS)
    }

    /// A network between two columns, or a range, whose ends are decimal if no row has addresses there.
    fn two(&self, addr: usize, other: usize) -> AddressColumns {
        if let Some(wildcard) = self.masks(addr, other) {
            return AddressColumns::Net { addr, len: other, wildcard };
        }
        let networks = self.networks(addr, other);
        // No range ends in a length, so most rows decide, right or wrong.
        let lengths = networks.lengths * 2 > networks.rows && !self.mostly_holds(other, is_ip);
        if lengths || networks.blocks > networks.wrong {
            return AddressColumns::Net { addr, len: other, wildcard: false };
        }
        let decimal = self.mostly(|row| range_in(row, addr, other, true).is_some())
            && !self.mostly(|row| range_in(row, addr, other, false).is_some());
        AddressColumns::Two { start: addr, end: other, decimal }
    }

    /// Whether at least half of the rows are so, and one at least.
    fn half(&self, test: impl Fn(&SampleRow) -> bool) -> bool {
        let fitting = self.rows.iter().filter(|row| test(row)).count();
        fitting > 0 && fitting * 2 >= self.rows.len()
    }

    /// Whether more than half of the rows are so.
    pub(super) fn mostly(&self, test: impl Fn(&SampleRow) -> bool) -> bool {
        self.rows.iter().filter(|row| test(row)).count() * 2 > self.rows.len()
    }

    fn mostly_holds(&self, at: usize, test: fn(&[u8]) -> bool) -> bool {
        self.mostly(|row| row.get(at).is_some_and(|f| test(f)))
    }

    /// Whether a column holds netmasks (`false`) or inverse ones (`true`), one of which at least can be nothing else:
    /// as a range it would reach from 10.0.0.0 to 255.0.0.0, or back to 0.0.0.255.
    fn masks(&self, addr: usize, at: usize) -> Option<bool> {
        let [mut masks, mut wildcards] = [(0, false); 2];
        for row in self.rows {
            let Some(mask) = row.get(at).and_then(|field| parse_ip(field)) else { continue };
            let text = &row[at];
            // The last address ends ranges, too.
            let is_upper = text.starts_with(b"255.") || text.starts_with(b"ffff:");
            let is_sure =
                is_upper && !mask_length(mask, false).is_some_and(|len| len == 32 || len == 128);
            if mask_length(mask, false).is_some() {
                masks = (masks.0 + 1, masks.1 | is_sure);
            }
            if mask_length(mask, true).is_some() {
                let order = parse_range(row.get(addr).map_or(&[][..], Vec::as_slice), text, false);
                let is_sure = order == Err(KeyError::Order) && mask_length(mask, false).is_none();
                wildcards = (wildcards.0 + 1, wildcards.1 | is_sure);
            }
        }
        let half = |(count, is_sure): (usize, bool)| is_sure && count * 2 >= self.rows.len();
        match (half(masks), half(wildcards)) {
            (true, _) => Some(false),
            (false, true) => Some(true),
            _ => None,
        }
    }

    /// Lengths look like other numbers, so the addresses must match them: few addresses happen to end in as many zero
    /// bits as a number next to them requires.
    fn networks(&self, addr: usize, len: usize) -> Networks {
        let mut found = Networks::default();
        let wildcard = self.masks(addr, len) == Some(true);
        for row in self.rows {
            found.rows += 1;
            let field = |at: usize| row.get(at).map(Vec::as_slice).unwrap_or_default();
            let network = |bits| parse_network(field(addr), field(len), wildcard, bits);
            found.lengths += usize::from(network(HostBits::Mask).is_ok());
            match network(HostBits::Refuse) {
                Ok(network) => found.blocks += usize::from(is_block(network)),
                Err(_) => found.wrong += 1,
            }
        }
        found
    }

    /// The columns with such names and the places of these, the likeliest first.
    fn named(&self, wanted: &[&str]) -> Vec<(usize, usize)> {
        let mut found: Vec<(usize, usize)> = self
            .names
            .iter()
            .enumerate()
            .filter_map(|(i, n)| Some((rank(n, wanted)?, i)))
            .collect();
        found.sort_unstable();
        found
    }

    fn by_name(&self) -> Option<(AddressColumns, Option<&'static str>)> {
        let pairs = pairs(self.names.iter().map(String::as_str));
        let has_ip = |row: &SampleRow, at: usize| row.get(at).is_some_and(|f| is_ip(f));
        // The names say that these are ranges, also in rows whose ends are the wrong way round: such rows are damage.
        let holds = |row: &SampleRow, pair: &Pair| match pair.counts {
            false => has_ip(row, pair.start) && has_ip(row, pair.end),
            true => row
                .get(pair.start)
                .zip(row.get(pair.end))
                .is_some_and(|(start, count)| parse_counted(start, count).is_ok()),
        };
        match pairs.iter().find(|&pair| self.half(|row| holds(row, pair))) {
            Some(&Pair { start, end: count, counts: true }) => {
                return Some((AddressColumns::Counted { start, count }, None));
            }
            Some(pair) => return Some((self.two(pair.start, pair.end), None)),
            None => {}
        }
        let named = self.named(PREFIX_NAMES);
        let mut holding =
            named.iter().map(|(_, at)| *at).filter(|&at| self.mostly_holds(at, is_key));
        let Some(at) = holding.next() else {
            // Integers are times as often as addresses: these only if there is nothing else.
            if self.columns().any(|at| self.mostly_holds(at, is_key)) {
                return None;
            }
            let decimal = pairs.iter().find(|pair| {
                !pair.counts
                    && self.mostly(|row| range_in(row, pair.start, pair.end, true).is_some())
            });
            return decimal.map(|pair| (self.two(pair.start, pair.end), None));
        };
        let is_single = self.mostly_holds(at, is_ip);
        // A column `cidr` may hold networks or lengths, and `length` anything.
        let is_length = |&(rank, len): &(usize, usize)| {
            let networks = self.networks(at, len);
            let is_sure = rank < SURE_LENGTH_NAMES && is_single;
            len != at && networks.lengths > 0 && (is_sure || networks.lengths * 2 >= networks.rows)
        };
        if let Some((_, len)) = self.named(LENGTH_NAMES).into_iter().find(is_length) {
            let wildcard = self.masks(at, len) == Some(true);
            return Some((AddressColumns::Net { addr: at, len, wildcard }, None));
        }
        if self.mostly_holds(at, is_spelled) {
            return Some((AddressColumns::One(at), None));
        }
        if let Some(other) = holding.find(|&at| self.mostly_holds(at, is_spelled)) {
            return Some((AddressColumns::One(other), None));
        }
        // A table of prefixes with an address of each, whatever the names.
        let blocks = |at: &usize| self.mostly_holds(*at, |field| block(field).is_some());
        if let Some(other) = self.columns().find(blocks) {
            return Some((AddressColumns::One(other), Some(PREFIXES)));
        }
        let networks = self.networks(at, at + 1);
        let note = (is_single && networks.blocks > networks.wrong).then_some(ADDRESSES);
        Some((AddressColumns::One(at), note))
    }

    /// Whether a column beside the key has prefixes or ranges that are not those of the key.
    fn has_further_prefixes(&self, key: AddressColumns) -> bool {
        let is_other = |row: &SampleRow| {
            let fields: Vec<&[u8]> = row.iter().map(Vec::as_slice).collect();
            let own = key.read(&fields, HostBits::Mask).ok().map(range_of);
            let values = row.iter().enumerate().filter(|(at, _)| !key.has(*at));
            let mut words = values.flat_map(|(_, field)| field.split(|b| b.is_ascii_whitespace()));
            words.any(|word| spelled(word).is_some_and(|key| own != Some(range_of(key))))
        };
        self.rows.iter().any(is_other)
    }

    fn by_content(&self) -> Result<(AddressColumns, Option<&'static str>), String> {
        let mut spelled = self.columns().filter(|&at| self.mostly_holds(at, is_spelled));
        if let Some(at) = spelled.next() {
            let note = (self.named && spelled.next().is_some()).then_some(FIRST);
            return Ok((AddressColumns::One(at), note));
        }
        // Masks may stand before the addresses that they belong to.
        let addresses: Vec<usize> =
            self.columns().filter(|&at| self.mostly_holds(at, is_key)).collect();
        let is_address = |&&at: &&usize| {
            !addresses.iter().any(|&addr| addr > at && self.masks(addr, at) == Some(false))
        };
        if let Some(&at) = addresses.iter().find(is_address).or(addresses.first()) {
            return self.of_addresses(at, &addresses);
        }
        let decimal = AddressColumns::Two { start: 0, end: 1, decimal: true };
        match self.names {
            _ if !is_decimal_ranges(self.rows) => {
                let mut other = self.rows.iter().flat_map(|row| row.iter().skip(1));
                let is_doubtful = self.named && other.any(|field| is_key(field));
                Ok((AddressColumns::One(0), is_doubtful.then_some(FIRST)))
            }
            [start, end, ..] if self.named => Err(format!(
                "columns {start} and {end} have integers in order, which could be ranges, but no such names; \
                 --key {} takes them as ranges, --key COLUMN gives the column of the addresses",
                shell_word(&format!("{start},{end}"))
            )),
            _ if !self.are_likely_ranges(0, 1, true) => Err(self.unlikely(0, 1)),
            _ => Ok((decimal, None)),
        }
    }

    /// The meaning of a column of addresses with the others.
    fn of_addresses(
        &self,
        at: usize,
        addresses: &[usize],
    ) -> Result<(AddressColumns, Option<&'static str>), String> {
        let fitting_mask = |&&len: &&usize| {
            let networks = self.networks(at, len);
            len != at
                && self.masks(at, len).is_some()
                && (len == at + 1 || networks.blocks > networks.wrong)
        };
        if let Some(&len) = addresses.iter().find(fitting_mask) {
            let wildcard = self.masks(at, len) == Some(true);
            let note = (len != at + 1 || wildcard).then_some(NETWORKS);
            return Ok((AddressColumns::Net { addr: at, len, wildcard }, note));
        }
        let networks = self.networks(at, at + 1);
        if networks.blocks > networks.wrong {
            let doubtful = networks.wrong > 0 || self.named;
            let key = AddressColumns::Net { addr: at, len: at + 1, wildcard: false };
            return Ok((key, doubtful.then_some(NETWORKS)));
        }
        let fitting =
            self.rows.iter().filter(|row| range_in(row, at, at + 1, false).is_some()).count();
        // Of addresses that have nothing to do with each other half are in order.
        let is_range = fitting > 0 && fitting * 10 >= self.rows.len() * 9;
        let is_table = self.width > 2 || self.delimited;
        if is_range && is_table {
            if !self.are_likely_ranges(at, at + 1, false) {
                return Err(self.unlikely(at, at + 1));
            }
            let key = AddressColumns::Two { start: at, end: at + 1, decimal: false };
            let doubtful = fitting < self.rows.len() || self.named;
            return Ok((key, doubtful.then_some(RANGES)));
        }
        let has_lengths = networks.lengths * 2 > networks.rows;
        let note = match self.named && addresses.len() > 1 {
            _ if has_lengths && !self.named => Some(ADDRESSES),
            _ if !has_lengths && fitting * 2 > self.rows.len() => Some(NO_RANGES),
            _ if !has_lengths && is_table && self.have_ranges(addresses) => Some(NO_RANGES),
            is_one_of_several => is_one_of_several.then_some(FIRST),
        };
        Ok((AddressColumns::One(at), note))
    }
}

/// Finds a column by its name, else its number.
fn find(names: &[String], wanted: &str, width: usize) -> Option<usize> {
    let exact = names.iter().position(|name| name == wanted);
    exact
        .or_else(|| names.iter().position(|name| name.eq_ignore_ascii_case(wanted)))
        .or_else(|| wanted.parse::<usize>().ok()?.checked_sub(1).filter(|&at| at < width))
}
