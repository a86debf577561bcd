//! The names of ASes, as a user's file gives them.

use std::collections::HashMap;
use std::fmt;

/// Maximum number of bytes of a name.
const LONGEST: usize = 256;

/// Names of ASes for the looking glass.
///
/// ```
/// use fibula_server::AsNames;
/// let names = AsNames::parse("asn,name,class\nAS64500,\"Example, Inc.\",Eyeball\n64501 EXAMPLE-NET - Example, DE\n")?;
/// assert_eq!(names.get(64500), Some("Example, Inc."));
/// assert_eq!(names.get(64501), Some("EXAMPLE-NET - Example, DE"));
/// assert_eq!(AsNames::parse("64500,One\nsixty,Two").unwrap_err().line, 2);
/// # Ok::<(), fibula_server::BadAsNames>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AsNames(HashMap<u32, Box<str>>);

/// A line of names that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadAsNames {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: &'static str,
}

impl fmt::Display for BadAsNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}; lines are 64500,NAME or 64500 NAME", self.line, self.what)
    }
}

impl std::error::Error for BadAsNames {}

impl AsNames {
    /// Reads lines: CSV with the AS and its name as the first two columns, or the AS, white space, and the name.
    /// Empty lines, and those that begin with `#`, are left out, as is a CSV header. Of an AS that occurs twice, the
    /// last name counts. O(length).
    ///
    /// # Errors
    /// The first line that is none of these, or whose name is empty or longer than 256 bytes.
    pub fn parse(text: &str) -> Result<Self, BadAsNames> {
        let mut names = HashMap::new();
        let mut is_first = true;
        for (at, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bad = |what| BadAsNames { line: at + 1, what };
            let end = line.find([',', ' ', '\t']).ok_or(bad("it has no name"))?;
            let asn = line[..end].trim_matches('"');
            let digits = asn.strip_prefix("AS").or(asn.strip_prefix("as")).unwrap_or(asn);
            let is_header = std::mem::take(&mut is_first) && line[end..].starts_with(',');
            let asn: u32 = match digits.parse() {
                Ok(asn) => asn,
                Err(_) if is_header && !digits.starts_with(|c: char| c.is_ascii_digit()) => {
                    continue;
                }
                Err(_) => return Err(bad("it does not begin with the number of an AS")),
            };
            let name = match line[end..].strip_prefix(',') {
                Some(rest) => field(rest).ok_or(bad("a quoted field has no end"))?,
                None => line[end..].trim().to_owned(),
            };
            match name.len() {
                0 => return Err(bad("the name is empty")),
                1..=LONGEST => names.insert(asn, name.into_boxed_str()),
                _ => return Err(bad("the name is longer than 256 bytes")),
            };
        }
        Ok(Self(names))
    }

    /// The name of an AS.
    pub fn get(&self, asn: u32) -> Option<&str> {
        self.0.get(&asn).map(|name| &**name)
    }

    /// How many ASes have a name.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no AS has a name.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The field of CSV at the beginning of a text; `None` if it is quoted without an end.
fn field(text: &str) -> Option<String> {
    let text = text.trim_start();
    let Some(mut rest) = text.strip_prefix('"') else {
        return Some(text.split(',').next().unwrap_or_default().trim().to_owned());
    };
    let mut field = String::new();
    loop {
        let (part, behind) = rest.split_once('"')?;
        field.push_str(part);
        // Two quotes are one.
        rest = match behind.strip_prefix('"') {
            Some(behind) => behind,
            None => return Some(field.trim().to_owned()),
        };
        field.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_both_forms() {
        let text = "# of somebody\n\nASN,Name\r\nAS1,\"A \"\"B\"\", Inc.\",x\r\n2, Two ,y\n\"3\",Three\n4\tFour, DE\nas5 Five\n2 Zwei\n";
        let names = AsNames::parse(text).unwrap();
        let found = [1, 2, 3, 4, 5, 6].map(|asn| names.get(asn));
        let expected = ["A \"B\", Inc.", "Zwei", "Three", "Four, DE", "Five"].map(Some);
        assert_eq!((&found[..5], found[5], names.len()), (&expected[..], None, 5));
        assert!(AsNames::parse("").unwrap().is_empty());
    }

    #[test]
    fn lines_that_are_none() {
        let long = format!("1,{}", "x".repeat(257));
        for (text, line, what) in [
            ("1,One\nasn,name\n", 2, "number of an AS"),
            ("4294967296,One", 1, "number of an AS"),
            ("# c\n\n1", 3, "no name"),
            ("1,\"One", 1, "no end"),
            ("1,", 1, "empty"),
            ("1, \"\",x", 1, "empty"),
            ("<html> <body>", 1, "number of an AS"),
            (&long, 1, "longer than 256 bytes"),
        ] {
            let bad = AsNames::parse(text).unwrap_err();
            assert!(bad.line == line && bad.to_string().contains(what), "{text}: {bad}");
        }
    }
}
