//! From whom the routes of each neighbour are received.

use std::collections::HashMap;
use std::path::Path;

use crate::read::contents;
use crate::{BadVrps, ReceivedFrom, RpkiError, parse_asn};

/// From whom routes are received, by the AS of the neighbour.
///
/// ```
/// use fibula_rpki::{ReceivedFrom, Relations};
/// let text = "# ours\nAS64500 provider\n64501,customer\n";
/// let relations = Relations::parse(text.as_bytes(), ReceivedFrom::Peer)?;
/// assert_eq!(relations.of(Some(64500)), ReceivedFrom::Provider);
/// assert_eq!(relations.of(Some(64502)), ReceivedFrom::Peer);
/// assert_eq!(relations.of(None), ReceivedFrom::Peer);
/// # Ok::<(), fibula_rpki::BadVrps>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relations {
    others: ReceivedFrom,
    by_as: HashMap<u32, ReceivedFrom>,
}

impl Relations {
    /// All routes are received from this one.
    pub fn all(from: ReceivedFrom) -> Self {
        Self { others: from, by_as: HashMap::new() }
    }

    /// From lines with an AS and [`ReceivedFrom::name`], separated by spaces, a tab or a comma. Empty lines and those
    /// that begin with `#` are skipped. `others` is for ASes that no line names.
    ///
    /// # Errors
    /// [`BadVrps`] at the first line that is not one of these, or that says something else of an AS than a line before.
    pub fn parse(text: &[u8], others: ReceivedFrom) -> Result<Self, BadVrps> {
        let mut relations = Self::all(others);
        for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let fail = |what: String| BadVrps { line: number + 1, column: 0, what };
            let line = std::str::from_utf8(line).map_err(|_| fail("not UTF-8".to_owned()))?.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let words = line.split([',', ' ', '\t']).filter(|word| !word.is_empty());
            let words: Vec<&str> = words.take(3).collect();
            let &[asn, from] = &words[..] else {
                return Err(fail("not an AS and a relation, as in 64500 provider".to_owned()));
            };
            let asn = parse_asn(asn).ok_or_else(|| {
                fail(format!("{:?} is no AS number", crate::decode::shortened(asn)))
            })?;
            let from: ReceivedFrom = from.parse().map_err(|names| {
                fail(format!("{:?} is no relation: {names}", crate::decode::shortened(from)))
            })?;
            let known = *relations.by_as.entry(asn).or_insert(from);
            if known != from {
                return Err(fail(format!("AS{asn} is {known} in a line before, and {from} here")));
            }
        }
        Ok(relations)
    }

    /// Reads these lines from a file, `-` for standard input. gz, bz2, xz and zstd are decompressed.
    ///
    /// # Errors
    /// If it cannot be read or has more than [`fibula_ingest::LONGEST_WHOLE`] bytes;
    /// [`RpkiError::BadRelations`] as [`Relations::parse`].
    pub fn read(path: &Path, others: ReceivedFrom) -> Result<Self, RpkiError> {
        let (file, bytes) = contents(path)?;
        Self::parse(&bytes, others).map_err(|error| RpkiError::BadRelations { file, error })
    }

    /// From whom the routes of a neighbour with this AS are received; `None` if its AS is not known.
    pub fn of(&self, neighbour: Option<u32>) -> ReceivedFrom {
        neighbour.and_then(|asn| self.by_as.get(&asn)).copied().unwrap_or(self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_none() {
        for (text, what) in [
            ("64500\n", "line 1: not an AS and a relation, as in 64500 provider"),
            ("\n64500 provider peer\n", "line 2: not an AS and a relation, as in 64500 provider"),
            ("ASX,peer", "line 1: \"ASX\" is no AS number"),
            (
                "1 sibling",
                "line 1: \"sibling\" is no relation: customer, peer, route-server, provider or unknown",
            ),
            (
                "1 peer\n# and\nAS1\tprovider\n",
                "line 3: AS1 is peer in a line before, and provider here",
            ),
            ("\u{0}\n", "line 1: not an AS and a relation, as in 64500 provider"),
        ] {
            let error = Relations::parse(text.as_bytes(), ReceivedFrom::Unknown).unwrap_err();
            assert_eq!(error.to_string(), what);
        }
        let error = Relations::parse(b"1 peer\n\xff", ReceivedFrom::Unknown).unwrap_err();
        assert_eq!(error.to_string(), "line 2: not UTF-8");
        let twice = Relations::parse(b"1 peer\r\nAS1, peer", ReceivedFrom::Unknown).unwrap();
        assert_eq!(twice.of(Some(1)), ReceivedFrom::Peer);
    }
}
