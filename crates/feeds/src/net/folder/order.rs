//! The order in which the files of a folder are read.

use std::cmp::Ordering;

/// A file's name, in the order of files; see [`Folder`](crate::net::Folder).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name(pub(super) String);

impl Name {
    /// The name of a file; `None` if files of this name are not read.
    pub(super) fn of(name: &str) -> Option<Self> {
        let is_unfinished = name.starts_with('.')
            || ["~", ".tmp", ".part"].iter().any(|ending| name.ends_with(ending))
            || name.contains(['\n', '\t']);
        (!is_unfinished).then(|| Self(name.to_owned()))
    }

    /// Whether the file is a table dump rather than updates.
    pub(super) fn is_dump(&self) -> bool {
        let is = |word: &str| {
            let rest = self.0.strip_prefix(word);
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphabetic()))
        };
        is("rib") || is("bview")
    }

    /// The time in the name, as text.
    fn time(&self) -> &str {
        // Exactly four digits: a collector's number may precede them.
        let digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
        let Some(begin) = self.0.as_bytes().windows(4).position(digits) else { return "" };
        let text = &self.0[begin..];
        let end = text.find(char::is_alphabetic).unwrap_or(text.len());
        text[..end].trim_end_matches(|c: char| !c.is_ascii_digit())
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.time().cmp(other.time()).then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_in_the_order_of_their_times() {
        let ordered = [
            "readme",
            "updates.20221122.1555.gz",
            // RIPE's dumps are compressed with gzip and the updates may be with bzip2, so suffixes do not affect the
            // order.
            "bview.20221122.1600.gz",
            "rib.20221122.1600.bz2",
            "updates.20221122.1600.bz2",
            "updates.20221122.1605.gz",
            "bview.20221122.2359",
            "updates.20221123-0000.gz",
            "rrc00-updates.20221124.gz",
        ];
        let names: Vec<Name> = ordered.iter().map(|name| Name::of(name).unwrap()).collect();
        assert!(names.is_sorted());
        let dumps: Vec<_> = names.iter().filter(|name| name.is_dump()).map(|n| &*n.0).collect();
        assert_eq!(dumps, [ordered[2], ordered[3], ordered[6]]);
        assert!(!Name::of("ribbon.20221122").unwrap().is_dump());
        assert_eq!(Name::of("rrc00-updates.20221122.1600.gz").unwrap().time(), "20221122.1600");
    }

    #[test]
    fn unfinished_files_are_left_alone() {
        for name in [".updates.2022.gz.Xy12", "updates.2022.gz.part", "a.tmp", "a~", "a\nb"] {
            assert_eq!(Name::of(name), None, "{name}");
        }
    }
}
