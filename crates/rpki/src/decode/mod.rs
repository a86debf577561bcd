//! Decodes VRPs and ASPAs. The decoders do no I/O, and accept a file completely or not at all.
//!
//! | format | written by |
//! |---|---|
//! | JSON, an object with a list `roas` | routinator (`json`, `jsonext`), rpki-client (`json`) |
//! | CSV with columns `ASN`, `IP Prefix`, `Max Length` | routinator (`csv`, `csvcompat`, `csvext`), rpki-client (`csv`), RIPE's archive |
//!
//! ASPAs are in the JSON. They are decoded on request only, so a damaged one does no harm to those who want VRPs.

mod csv;
mod json;

use fibula_core::{AnyPrefix, PrefixError};

use crate::{Aspa, BadVrps, Vrp};

/// The contents of a file of VRPs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// The VRPs, in the order of the file.
    pub vrps: Vec<Vrp>,
    /// When VRPs expire, in seconds since 1970, for VRPs with this field: rpki-client writes it, and routinator in
    /// `csvext`.
    pub expiries: Vec<u64>,
    /// When the validator wrote the file, in seconds since 1970, if the file has this field.
    pub generated: Option<u64>,
    /// `json` or `csv`.
    pub format: &'static str,
}

/// The ASPAs of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecodedAspas {
    /// The ASPAs, in the order of the file.
    pub aspas: Vec<Aspa>,
    /// When ASPAs expire, in seconds since 1970, for those with this field: rpki-client writes it.
    pub expiries: Vec<u64>,
    /// When the validator wrote the file, in seconds since 1970, if the file has this field.
    pub generated: Option<u64>,
}

/// Decodes the decompressed contents of a file of VRPs. A file that begins with a brace or a bracket is JSON, any
/// other is CSV.
///
/// # Errors
/// [`BadVrps`] at the first entry that is not a VRP.
pub fn decode(bytes: &[u8]) -> Result<Decoded, BadVrps> {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match text.trim_ascii_start().first() {
        Some(b'{' | b'[') => json::decode(text),
        _ => csv::decode(text),
    }
}

/// Decodes the ASPAs of a file, which is JSON and decompressed. Its VRPs are not looked at.
///
/// ```
/// let file = br#"{"aspas": [{"customer": "AS64500", "providers": ["AS64501", "AS64502"]}]}"#;
/// let decoded = fibula_rpki::decode_aspas(file)?;
/// assert_eq!((decoded.aspas[0].customer, &*decoded.aspas[0].providers), (64500, &[64501, 64502][..]));
/// # Ok::<(), fibula_rpki::BadVrps>(())
/// ```
///
/// # Errors
/// [`BadVrps`] at the first entry that is not an ASPA, or if there is no list of them.
pub fn decode_aspas(bytes: &[u8]) -> Result<DecodedAspas, BadVrps> {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match text.trim_ascii_start().first() {
        Some(b'{' | b'[') => json::decode_aspas(text),
        _ => {
            let what = "not JSON: only JSON has ASPAs".to_owned();
            Err(BadVrps { line: 1, column: 0, what })
        }
    }
}

/// Parses a prefix as validators write it.
fn prefix(text: &str) -> Result<AnyPrefix, String> {
    text.parse().map_err(|error| match error {
        PrefixError::HostBits => format!("{text:?} has bits beyond its length"),
        PrefixError::Length { max, .. } => format!("the length of {text:?} is above {max}"),
        _ => format!("{:?} is no prefix", shortened(text)),
    })
}

/// Shortens a text for an error message, as a field may be very long.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Parses `2026-11-23T07:00:00Z` and `2026-11-23 07:00:00`, both UTC, to seconds since 1970.
fn parse_time(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, time) = text.split_once(['T', ' '])?;
    let three = |text: &str, by| {
        let mut parts = text.splitn(3, by).map(|part| part.parse::<u64>().ok());
        Some([parts.next()??, parts.next()??, parts.next()??])
    };
    let ([year, month, day], [hour, minute, second]) = (three(date, '-')?, three(time, ':')?);
    let is_sound =
        (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_sound || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Days since 1 March of year 0. The year begins in March so that a leap day is its last day.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    Some((days - 719_468) * 86_400 + hour * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(parse_time("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(parse_time("2000-02-28 23:59:59"), Some(951_782_399));
        assert_eq!(parse_time("2000-02-29T00:00:00Z"), Some(951_782_400));
        assert_eq!(parse_time("2026-09-23T04:35:31Z"), Some(1_790_138_131));
        for text in [
            "",
            "N/A",
            "2026-13-01 00:00:00",
            "1969-12-31 00:00:00",
            "2026-01-01",
            "2026-01-01T24:00:00Z",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
