//! Which pairs of columns can be ranges.

use super::cells::{cross, is_wide};
use super::guess::{Guess, MAX_FIELDS};
use super::key::{Key, parse_range};
use super::layout::shell_word;
use super::roles::{AddressColumns, SampleRow};

impl Guess<'_> {
    /// Whether any two columns of addresses have ranges in nine of ten rows, also where a column stands between them.
    pub(super) fn have_ranges(&self, addresses: &[usize]) -> bool {
        /// Columns of addresses that are compared with each other.
        const COMPARED: usize = 16;
        let addresses = &addresses[..addresses.len().min(COMPARED)];
        let is_range = |start: usize, end: usize| {
            let in_order = |row: &&SampleRow| range_in(row, start, end, false).is_some();
            start != end && self.rows.iter().filter(in_order).count() * 10 >= self.rows.len() * 9
        };
        addresses.iter().any(|&start| addresses.iter().any(|&end| is_range(start, end)))
    }

    /// Whether nine of ten rows of a pair that nothing calls a range have one that is credible: not very wide, and not
    /// crossing an earlier one.
    pub(super) fn are_likely_ranges(&self, start: usize, end: usize, decimal: bool) -> bool {
        let ranges: Vec<Key> =
            self.rows.iter().filter_map(|row| range_in(row, start, end, decimal)).collect();
        let is_likely = |i: usize| {
            !is_wide(ranges[i]) && !ranges[..i].iter().any(|&earlier| cross(earlier, ranges[i]))
        };
        (0..ranges.len()).filter(|&i| is_likely(i)).count() * 10 >= ranges.len() * 9
    }

    pub(super) fn unlikely(&self, start: usize, end: usize) -> String {
        let shown =
            |at: usize| match self.names.get(at).filter(|name| self.named && !name.is_empty()) {
                Some(name) => name.clone(),
                None => (at + 1).to_string(),
            };
        let (start, end) = (shown(start), shown(end));
        format!(
            "columns {start} and {end} could be ranges, but these are very wide or cross each other: \
             --key {} takes them as ranges, --key {} takes the addresses of one column",
            shell_word(&format!("{start},{end}")),
            shell_word(&start)
        )
    }

    /// Finds the columns of ranges, which the caller has requested.
    pub(super) fn ranges(&self) -> AddressColumns {
        let pairs = 0..self.width.saturating_sub(1).min(MAX_FIELDS);
        for decimal in [false, true] {
            let fits =
                |at: &usize| self.mostly(|row| range_in(row, *at, at + 1, decimal).is_some());
            if let Some(start) = pairs.clone().find(fits) {
                return AddressColumns::Two { start, end: start + 1, decimal };
            }
        }
        AddressColumns::One(0)
    }
}

/// Whether all rows begin with two integers in order, as IP2Location's and Tor's do.
pub(crate) fn is_decimal_ranges(rows: &[SampleRow]) -> bool {
    let body = if rows.len() > 1 { &rows[1..] } else { rows };
    body.iter().all(|row| row.len() > 2 && parse_range(&row[0], &row[1], true).is_ok())
        && !body.is_empty()
}

pub(super) fn range_in(row: &SampleRow, start: usize, end: usize, decimal: bool) -> Option<Key> {
    parse_range(row.get(start)?, row.get(end)?, decimal).ok()
}
