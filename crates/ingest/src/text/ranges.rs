//! Ranges that do not come as text.

use std::borrow::Cow;
use std::net::IpAddr;

use fibula_core::Value;

use super::key::range;
use super::layout::emit_key;
use super::overlap::Earlier;
use crate::Sink;

/// Turns the ranges of one source into prefixes, by the rule of the text formats: an address belongs to the narrowest
/// range that contains it, and of equally narrow ones to the last.
///
/// ```
/// use fibula_core::Value;
/// use fibula_ingest::{Collected, text::RangeFeed};
/// let mut sink = Collected::default();
/// let mut ranges = RangeFeed::default();
/// let mut add = |record, first: &str, last: &str| {
///     let (first, last) = (first.parse().unwrap(), last.parse().unwrap());
///     ranges.announce(record, first, last, &[Value::Int(record)], &mut sink)
/// };
/// add(1, "10.0.0.0", "10.0.0.2").unwrap();
/// assert_eq!(add(2, "10.0.0.2", "10.0.0.1").unwrap_err(), "the range ends before it starts");
/// assert_eq!(sink.lines, ["10.0.0.0/31 = 1", "10.0.0.2/32 = 1"]);
/// ```
#[derive(Default)]
pub struct RangeFeed {
    earlier: Earlier,
}

impl RangeFeed {
    /// Announces the prefixes of the addresses from `first` to `last`, both included, that belong to this range.
    ///
    /// # Errors
    /// If the ends are of different families or in the wrong order, or the range overlaps more earlier ones than is
    /// credible. Nothing is announced then.
    pub fn announce(
        &mut self,
        record: u64,
        first: IpAddr,
        last: IpAddr,
        values: &[Value<'_>],
        sink: &mut dyn Sink,
    ) -> Result<(), Cow<'static, str>> {
        let key = range(first, last).map_err(|error| error.text())?;
        emit_key(key, record, &mut self.earlier, values, sink)
    }
}
