//! CSV: `ASN,IP Prefix,Max Length,Trust Anchor` and, of rpki-client, `,Expires`.
//!
//! ```text
//! ASN,IP Prefix,Max Length,Trust Anchor              routinator csv
//! "ASN","IP Prefix","Max Length","Trust Anchor"      routinator csvcompat: quotes, AS numbers without AS
//! URI,ASN,IP Prefix,Max Length,Not Before,Not After  routinator csvext, RIPE's archive
//! ASN,IP Prefix,Max Length,Trust Anchor,Expires      rpki-client: seconds since 1970
//! ```
//!
//! Columns are found by name. Without a header (as in the output of `grep`), columns are in the order of the first
//! form. An empty maximum length, as in RIPE's archive, means the length of the prefix.

use super::{Decoded, parse_time, prefix, shortened};
use crate::{BadVrps, Vrp, parse_asn};

pub(super) fn decode(bytes: &[u8]) -> Result<Decoded, BadVrps> {
    let mut decoded = Decoded { format: "csv", ..Decoded::default() };
    let mut columns = None;
    let mut header = &b""[..];
    for (number, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let fail = |column: usize, what: String| BadVrps { line: number + 1, column, what };
        let line = line.trim_ascii();
        if line.is_empty() || line == header {
            continue; // a header in the middle: files one behind the other
        }
        let text = std::str::from_utf8(line)
            .map_err(|error| fail(error.valid_up_to() + 1, "not UTF-8, so no CSV".to_owned()))?;
        let fields = fields(text).map_err(|what| fail(0, what))?;
        let columns = match columns {
            Some(columns) => columns,
            None => match Columns::of(&fields) {
                Some(found) => {
                    columns = Some(found.map_err(|what| fail(0, what))?);
                    header = line;
                    continue;
                }
                None => *columns.insert(Columns::DEFAULT),
            },
        };
        let (vrp, expiry) = columns.vrp(&fields).map_err(|what| fail(0, what))?;
        decoded.vrps.push(vrp);
        decoded.expiries.extend(expiry);
    }
    Ok(decoded)
}

/// The positions of a VRP's fields.
#[derive(Clone, Copy)]
struct Columns {
    asn: usize,
    prefix: usize,
    max_len: usize,
    expiry: Option<usize>,
}

impl Columns {
    const DEFAULT: Self = Self { asn: 0, prefix: 1, max_len: 2, expiry: Some(4) };

    /// The positions from a header; `None` if the line is not a header.
    fn of(fields: &[&str]) -> Option<Result<Self, String>> {
        let at = |names: &[&str]| {
            let is = |field: &&str| names.iter().any(|name| name.eq_ignore_ascii_case(field));
            fields.iter().position(is)
        };
        let asn = at(&["ASN"])?;
        let expiry = at(&["Expires", "Not After"]);
        Some(match (at(&["IP Prefix", "Prefix"]), at(&["Max Length", "maxLength"])) {
            (Some(prefix), Some(max_len)) => Ok(Self { asn, prefix, max_len, expiry }),
            (None, _) => Err("the header has no column IP Prefix".to_owned()),
            (_, None) => Err("the header has no column Max Length".to_owned()),
        })
    }

    fn vrp(self, fields: &[&str]) -> Result<(Vrp, Option<u64>), String> {
        let field = |at: usize, name: &str| {
            let count = fields.len();
            let line = || shortened(&fields.join(","));
            fields
                .get(at)
                .copied()
                .ok_or_else(|| format!("no field {} ({name}) among {count}: {:?}", at + 1, line()))
        };
        let asn = field(self.asn, "ASN")?;
        let asn = parse_asn(asn).ok_or_else(|| format!("{:?} is no AS number", shortened(asn)))?;
        let of = prefix(field(self.prefix, "IP Prefix")?)?;
        let max_len = match field(self.max_len, "Max Length")? {
            "" => match of {
                fibula_core::AnyPrefix::V4(prefix) => prefix.len().into(),
                fibula_core::AnyPrefix::V6(prefix) => prefix.len().into(),
            },
            text if text.bytes().all(|byte| byte.is_ascii_digit()) => {
                text.parse().map_err(|_| format!("{:?} is no length", shortened(text)))?
            }
            text => return Err(format!("{:?} is no length", shortened(text))),
        };
        let expiry = self.expiry.and_then(|at| fields.get(at).copied());
        let expiry = match expiry {
            None | Some("" | "N/A") => None,
            Some(text) => match text.parse().ok().or_else(|| parse_time(text)) {
                Some(time) => Some(time),
                None => return Err(format!("{:?} is no time of expiry", shortened(text))),
            },
        };
        let vrp = Vrp::new(of, max_len, asn).map_err(|error| error.to_string())?;
        Ok((vrp, expiry))
    }
}

/// The fields of a line, without quotes and without spaces around them.
fn fields(line: &str) -> Result<Vec<&str>, String> {
    let mut fields = Vec::with_capacity(6);
    let mut rest = line;
    loop {
        let inside = rest.trim_start().strip_prefix('"');
        let (field, behind) = match inside {
            None => rest.split_once(',').map_or((rest, None), |(f, behind)| (f, Some(behind))),
            Some(inside) => {
                let (field, behind) = inside.split_once('"').ok_or("a quote is not closed")?;
                match behind.trim_start() {
                    "" => (field, None),
                    behind => match behind.strip_prefix(',') {
                        Some(behind) => (field, Some(behind)),
                        None => {
                            return Err(format!("text behind a quote: {:?}", shortened(behind)));
                        }
                    },
                }
            }
        };
        fields.push(field.trim());
        match behind {
            Some(behind) => rest = behind,
            None => return Ok(fields),
        }
    }
}

#[cfg(test)]
mod tests;
