//! The registries' `delegated` files, plain and extended: the holders of address blocks.
//!
//! ```text
//! 2|apnic|20260101|86123|19830613|20251231|+1000                 version line
//! apnic|*|ipv4|*|52318|summary
//! apnic|AU|ipv4|1.0.0.0|256|20110811|assigned[|opaque-id]        addresses, not a length
//! apnic|JP|ipv6|2001:200::|35|19990813|allocated[|opaque-id]     a length
//! apnic|JP|asn|173|1|20020801|allocated                          no addresses: passed over
//! ```

use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};

use fibula_core::{AnyPrefix, Attributes, Change, ColumnKind, Prefix, Update, Value};

use super::{Form, excerpt};
use crate::{ColumnDecl, Sink, SourceInfo};

const REGISTRIES: [&str; 7] = ["apnic", "arin", "ripencc", "lacnic", "afrinic", "iana", "nro"];
const COLUMNS: [&str; 4] = ["registry", "country", "date", "status"];

pub(super) fn is_line(line: &str) -> bool {
    let fields: Vec<&str> = line.split('|').collect();
    match fields[..] {
        [version, registry, serial, ..] if version.starts_with('2') => {
            REGISTRIES.contains(&registry) && serial.bytes().all(|b| b.is_ascii_digit())
        }
        [registry, _, kind, _, _, ..] => {
            REGISTRIES.contains(&registry) && matches!(kind, "ipv4" | "ipv6" | "asn")
        }
        _ => false,
    }
}

pub(super) struct Delegated;

impl Form for Delegated {
    fn info(&self) -> SourceInfo {
        let decl = |name: &str| ColumnDecl { name: name.to_owned(), kind: ColumnKind::Str };
        let columns = COLUMNS.map(decl).to_vec();
        SourceInfo { format: "delegated", columns, ..SourceInfo::default() }
    }

    fn line(&mut self, line: &str, sink: &mut dyn Sink) -> Result<(), Cow<'static, str>> {
        let fields: Vec<&str> = line.split('|').collect();
        let (start, count, kind, values) = match fields[..] {
            [.., "summary"] => return Ok(()),
            [version, registry, _, _, ..]
                if version.starts_with('2') && REGISTRIES.contains(&registry) =>
            {
                return Ok(());
            }
            [registry, country, kind, start, count, date, status, ..] => {
                (start, count, kind, [registry, country, date, status])
            }
            _ => return Err(format!("not a line of a delegated file: {}", excerpt(line)).into()),
        };
        let values =
            values.map(|text| if text.is_empty() { Value::Null } else { Value::Str(text) });
        let wrong = || format!("no {kind} addresses: {}", excerpt(&format!("{start}|{count}")));
        let mut announce = |prefix: AnyPrefix| {
            let change = Change::Announce(Attributes::Values(&values));
            sink.update(&Update::new(prefix, change));
        };
        match kind {
            "ipv4" => {
                let first: Ipv4Addr = start.parse().map_err(|_| wrong())?;
                let count: u64 = count.parse().map_err(|_| wrong())?;
                let last =
                    count.checked_sub(1).and_then(|c| c.checked_add(u32::from(first).into()));
                let last = last.and_then(|last| u32::try_from(last).ok()).ok_or_else(wrong)?;
                Prefix::split_range(first.into(), last).for_each(|prefix| announce(prefix.into()));
            }
            "ipv6" => {
                let first: Ipv6Addr = start.parse().map_err(|_| wrong())?;
                let len: u8 = count.parse().map_err(|_| wrong())?;
                announce(AnyPrefix::new(first.into(), len).map_err(|_| wrong())?);
            }
            "asn" => sink.ignored("AS numbers"),
            other => return Err(format!("neither ipv4, ipv6 nor asn: {}", excerpt(other)).into()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::decode;
    use crate::Format;

    #[test]
    fn with_and_without_their_header() {
        let body = "apnic|AU|ipv4|1.0.0.0|256|20110811|assigned|A91\n\
                    apnic||ipv4|1.1.8.0|768||available\n\
                    apnic|JP|asn|173|1|20020801|allocated\n\
                    apnic|JP|ipv6|2001:200::|35|19990813|allocated\n";
        let header = "2.3|nro|20260101|4|19830613|20251231|+1000\napnic|*|ipv4|*|2|summary\n# x\n";
        for text in [body.to_owned(), header.to_owned() + body] {
            let sink = decode(Format::Delegated, &text);
            assert_eq!(
                sink.lines,
                [
                    "1.0.0.0/24 = apnic, AU, 20110811, assigned",
                    "1.1.8.0/23 = apnic, null, null, available",
                    "1.1.10.0/24 = apnic, null, null, available",
                    "2001:200::/35 = apnic, JP, 19990813, allocated",
                ]
            );
            assert_eq!((sink.damage.len(), sink.ignored), (0, 1));
        }
    }

    #[test]
    fn damage() {
        let sink = decode(
            Format::Delegated,
            "apnic|AU|ipv4|1.0.0.0|256|20110811|assigned\napnic|AU|ipv4|1.0.0.0|0||x\n\
             apnic|AU|ipv4|255.0.0.0|33554432||x\napnic|AU|ipv6|::1|64||x\napnic|AU|ipx|1|1||x\nprose\n",
        );
        assert_eq!((sink.lines.len(), sink.damage.len()), (1, 5));
    }
}
