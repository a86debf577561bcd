//! The table inside the binary: which country an address is registered in.
//!
//! The ranges are those of the crate `tor-geoip-db`, made from the location database of the IPFire
//! project (<https://location.ipfire.org/>), whose data are licensed under CC BY-SA 4.0. The crate
//! gives the first address of each range; a range ends where the next one begins.

use std::ops::Range;

use fibula_core::{Addr, AnyPrefix, Attributes, Change, Hop, Prefix, Route, Routes, Update, Value};
use fibula_rib::{ColumnKind, ColumnsBuilder, SourceRecord, Table, TableBuilder};

use crate::sources::SourceError;

/// The name of the table as a source.
pub const NAME: &str = "embedded";

/// The one column: ISO 3166-1 codes of two letters.
const COLUMN: &str = "country";

/// When IPFire generated the database, as the crate's documentation says: 2026-09-23 04:35:31 UTC.
const DATE: u64 = 1_790_138_131;

/// A country code as the crate stores it: two letters, the first in the low byte.
type Code = Option<std::num::NonZeroU16>;

/// Adds the table to `builder` as a source.
pub fn feed(builder: &mut TableBuilder) {
    let columns = [(COLUMN.to_owned(), ColumnKind::Str)];
    builder.begin_source(NAME, FORMAT, &columns, false, Some(DATE));
    feed_family(builder, v4());
    feed_family(builder, v6());
}

/// The name of the format in the sources of a table.
const FORMAT: &str = "ranges";

/// The first addresses of ranges, and the value of each range.
type Ranges<A> = (&'static [A], &'static [Code]);

fn v4() -> Ranges<u32> {
    (tor_geoip_db::ipv4s(), tor_geoip_db::ipv4c())
}

fn v6() -> Ranges<u128> {
    (tor_geoip_db::ipv6s(), tor_geoip_db::ipv6c())
}

/// The prefixes of the ranges with these numbers, and the two letters of their countries.
fn prefixes<A: Addr>(
    (starts, codes): Ranges<A>,
    numbers: Range<usize>,
) -> impl Iterator<Item = (Prefix<A>, [u8; 2])> {
    numbers
        .filter_map(move |at| {
            let letters = codes.get(at)?.as_ref()?.get().to_le_bytes();
            let next = starts.get(at + 1);
            let last = next.map_or(A::MAX, |next| next.predecessor().unwrap_or(A::MIN));
            Some(Prefix::split_range(*starts.get(at)?, last).map(move |prefix| (prefix, letters)))
        })
        .flatten()
}

fn feed_family<A: Addr>(builder: &mut TableBuilder, ranges: Ranges<A>) {
    for (prefix, letters) in prefixes(ranges, 0..ranges.0.len()) {
        let Ok(country) = std::str::from_utf8(&letters) else { continue };
        let values = [Value::Str(country)];
        let change = Change::Announce(Attributes::Values(&values));
        builder.apply(&Update::new(prefix.into(), change));
    }
}

/// The embedded table by itself, without a builder, because its ranges are sorted and do not overlap. With `asked`,
/// it has only the routes of ranges that share an address with one of these prefixes. For a few lookups this takes
/// microseconds instead of tens of milliseconds.
///
/// ```
/// let asked = ["193.0.6.139/32".parse()?];
/// let table = fibula::sources::embedded(Some(&asked))?;
/// assert!(table.v4.len() < 62 && table.v6.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The embedded data cause none. [`SourceError::Table`] is possible only with 2^32 countries.
pub fn embedded(asked: Option<&[AnyPrefix]>) -> Result<Table, SourceError> {
    let (mut asked4, mut asked6) = (Vec::new(), Vec::new());
    for prefix in asked.unwrap_or(&[AnyPrefix::V4(Prefix::ALL), AnyPrefix::V6(Prefix::ALL)]) {
        match prefix.unmapped() {
            AnyPrefix::V4(prefix) => asked4.push(prefix),
            AnyPrefix::V6(prefix) => asked6.push(prefix),
        }
    }
    let mut rows = ColumnsBuilder::new(&[(COLUMN, ColumnKind::Str)]);
    let v4 = family(v4(), &asked4, &mut rows)?;
    let v6 = family(v6(), &asked6, &mut rows)?;
    let mut table = Table { v4, v6, columns: rows.finish()?, ..Table::default() };
    table.provenance.sources.push(SourceRecord {
        name: NAME.to_owned(),
        format: FORMAT.to_owned(),
        date: Some(DATE),
        announced: (table.v4.len() + table.v6.len()) as u64,
        ..SourceRecord::default()
    });
    Ok(table)
}

fn family<A: Addr>(
    ranges: Ranges<A>,
    asked: &[Prefix<A>],
    rows: &mut ColumnsBuilder,
) -> Result<Routes<A>, SourceError> {
    let (starts, _) = ranges;
    let mut numbers: Vec<Range<usize>> = Vec::new();
    for prefix in asked {
        // The range that holds the first address begins at it or before.
        let begin = starts.partition_point(|start| *start <= prefix.first()).saturating_sub(1);
        let end = starts.partition_point(|start| *start <= prefix.last());
        numbers.push(begin..end);
    }
    numbers.sort_by_key(|numbers| numbers.start);
    let (mut routes, mut next) = (Vec::new(), 0);
    // Neighbours often have the same country.
    let mut known = ([0; 2], Hop::NONE);
    for Range { start, end } in numbers {
        for (prefix, letters) in prefixes(ranges, start.max(next)..end) {
            if known.0 != letters {
                let Ok(country) = std::str::from_utf8(&letters) else { continue };
                known = (letters, Hop::new(rows.intern(&[Value::Str(country)])?));
            }
            routes.push(Route { prefix, hop: known.1 });
        }
        next = next.max(end);
    }
    Ok(Routes::from_unsorted(routes)) // they are sorted
}

#[cfg(test)]
mod any_isa {
    use super::*;
    use fibula_rib::BuilderOptions;

    #[test]
    fn ranges_are_sorted_and_coded() {
        fn check<A: Addr>(starts: &[A], codes: &[Code], at_least: usize) {
            assert!(starts.len() == codes.len() && starts.len() > at_least);
            assert!(starts.is_sorted_by(|a, b| a < b));
            let letters = codes.iter().flatten().flat_map(|code| code.get().to_le_bytes());
            assert!(
                letters
                    .into_iter()
                    .all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit())
            );
        }
        check(tor_geoip_db::ipv4s(), tor_geoip_db::ipv4c(), 400_000);
        check(tor_geoip_db::ipv6s(), tor_geoip_db::ipv6c(), 300_000);
    }

    /// Routes with their countries.
    fn countries<A: Addr>(table: &Table, routes: &Routes<A>) -> Vec<(Prefix<A>, String)> {
        let country = |route: Route<A>| match table.columns.value(0, route.hop.index().unwrap()) {
            Value::Str(text) => (route.prefix, text.to_owned()),
            other => panic!("{other:?} is no country"),
        };
        routes.iter().map(country).collect()
    }

    /// Without a builder it is the same table, and of questions the routes that matter.
    #[test]
    fn the_table_is_that_of_the_builder() {
        let mut builder = TableBuilder::new(BuilderOptions::default());
        feed(&mut builder);
        let built = builder.finish().unwrap();
        let whole = embedded(None).unwrap();
        let v4 = countries(&built, &built.v4);
        assert!(countries(&whole, &whole.v4) == v4);
        assert!(countries(&whole, &whole.v6) == countries(&built, &built.v6));
        let announced = |table: &Table| table.provenance.sources[0].clone();
        assert_eq!(announced(&whole), announced(&built));
        for asked in [
            &["193.0.6.139/32", "8.8.8.0/24", "8.8.0.0/16"][..],
            &["0.0.0.0/0"],
            &["0.0.0.0/32", "255.255.255.255/32", "193.0.0.0/8", "193.0.0.0/12"],
            &["::ffff:193.0.6.139/128"],
            &["2001:67c:2e8::/48"],
            &[],
        ] {
            let asked: Vec<AnyPrefix> = asked.iter().map(|p| p.parse().unwrap()).collect();
            let part = embedded(Some(&asked)).unwrap();
            let overlaps = |prefix: &Prefix<u32>| {
                asked.iter().any(|asked| match asked.unmapped() {
                    AnyPrefix::V4(asked) => asked.covers(*prefix) || prefix.covers(asked),
                    AnyPrefix::V6(_) => false,
                })
            };
            let expected: Vec<_> =
                v4.iter().filter(|(prefix, _)| overlaps(prefix)).cloned().collect();
            let found = countries(&part, &part.v4);
            let is_in = |route: &(Prefix<u32>, String)| overlaps(&route.0);
            assert!(found.iter().filter(|route| is_in(route)).eq(&expected), "{asked:?}");
            // Others are of the same ranges, of which each has 62 prefixes at most.
            assert!(found.len() <= expected.len() + 2 * 62 * asked.len(), "{asked:?}");
            assert!(found.iter().all(|route| v4.binary_search(route).is_ok()), "{asked:?}");
            assert_eq!(
                part.v6.is_empty(),
                !asked.iter().any(|p| matches!(p.unmapped(), AnyPrefix::V6(_)))
            );
        }
    }

    #[test]
    fn well_known_addresses() {
        let table = embedded(None).unwrap();
        let country = |addr: &str| {
            let addr: std::net::Ipv4Addr = addr.parse().unwrap();
            let covers = |route: &Route<u32>| route.prefix.contains(addr.into());
            let route = table.v4.iter().filter(covers).last()?;
            Some(table.columns.value(0, route.hop.index()?))
        };
        // RIPE NCC in Amsterdam, and nobody's: private space.
        assert_eq!(country("193.0.6.139"), Some(Value::Str("NL")));
        assert_eq!(country("10.0.0.1"), None);
        assert!(table.v6.len() > 300_000);
    }
}
