//! The table inside the binary: which country an address is registered in.
//!
//! The ranges are those of the crate `tor-geoip-db`, made from the location database of the IPFire
//! project (<https://location.ipfire.org/>), whose data are licensed under CC BY-SA 4.0. The crate
//! gives the first address of each range; a range ends where the next one begins.

use fibula_core::{Addr, Attributes, Change, Prefix, Update, Value};
use fibula_rib::{ColumnKind, TableBuilder};

/// The name by which the table is asked for.
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
    builder.begin_source(NAME, "ranges", &columns, false, Some(DATE));
    feed_family(builder, tor_geoip_db::ipv4s(), tor_geoip_db::ipv4c());
    feed_family(builder, tor_geoip_db::ipv6s(), tor_geoip_db::ipv6c());
}

fn feed_family<A: Addr>(builder: &mut TableBuilder, starts: &[A], codes: &[Code]) {
    let ends = starts.iter().skip(1).map(|next| next.predecessor().unwrap_or(A::MIN));
    let ends = ends.chain(std::iter::once(A::MAX));
    for ((&first, last), code) in starts.iter().zip(ends).zip(codes) {
        let Some(letters) = code.map(|code| code.get().to_le_bytes()) else { continue };
        let Ok(country) = std::str::from_utf8(&letters) else { continue };
        let values = [Value::Str(country)];
        for prefix in Prefix::split_range(first, last) {
            let change = Change::Announce(Attributes::Values(&values));
            builder.apply(&Update::new(prefix.into(), change));
        }
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn well_known_addresses() {
        let mut builder = TableBuilder::new(BuilderOptions::default());
        feed(&mut builder);
        let table = builder.finish().unwrap();
        let country = |addr: &str| {
            let addr: std::net::Ipv4Addr = addr.parse().unwrap();
            let covers = |route: &fibula_core::Route<u32>| route.prefix.contains(addr.into());
            let route = table.v4.iter().filter(covers).last()?;
            Some(table.columns.value(0, route.hop.index()?))
        };
        // RIPE NCC in Amsterdam, and nobody's: private space.
        assert_eq!(country("193.0.6.139"), Some(Value::Str("NL")));
        assert_eq!(country("10.0.0.1"), None);
        assert!(table.v6.len() > 300_000);
    }
}
