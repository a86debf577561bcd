//! The ASes of a path that is given as text.

use crate::{Aspas, PathValidity, ReceivedFrom, parse_asn};

/// What verification needs of a path.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Ases {
    /// The ASes in order, the neighbour first. Those of sets and of confederations are left out.
    pub(crate) path: Vec<u32>,
    /// Whether it has an AS_SET.
    pub(crate) has_set: bool,
}

impl Ases {
    /// `None` if there is no AS.
    pub(crate) fn verify(&self, aspas: &Aspas, from: ReceivedFrom) -> Option<PathValidity> {
        match (self.has_set, self.path.is_empty()) {
            (true, _) => Some(PathValidity::Invalid),
            (false, true) => None,
            (false, false) => Some(aspas.verify(&self.path, from)),
        }
    }
}

/// The ASes of a text such as `64500 (64501 64502) 64503 {64504,64505}`; `None` if it is no path.
pub(crate) fn parse(text: &str) -> Option<Ases> {
    let mut ases = Ases::default();
    // The bracket at which the segment ends.
    let mut end = None;
    for mut word in text.split_ascii_whitespace() {
        let begins = |open| word.strip_prefix(open).filter(|_| end.is_none());
        if let Some(rest) = begins('{') {
            (word, end, ases.has_set) = (rest, Some('}'), true);
        } else if let Some(rest) = begins('(') {
            (word, end) = (rest, Some(')'));
        } else if let Some(rest) = begins('[') {
            (word, end) = (rest, Some(']'));
        }
        let Some(bracket) = end else {
            ases.path.push(parse_asn(word)?);
            continue;
        };
        if let Some(rest) = word.strip_suffix(bracket) {
            (word, end) = (rest, None);
        }
        if !word.split(',').all(|asn| asn.is_empty() || parse_asn(asn).is_some()) {
            return None;
        }
    }
    end.is_none().then_some(ases)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn segments() {
        for (text, path, has_set) in [
            ("", &[][..], false),
            ("64500", &[64500], false),
            ("AS64500  64501 4294967295", &[64500, 64501, u32::MAX], false),
            ("1 {2,3} 4", &[1, 4], true),
            ("1 {2}", &[1], true),
            ("{1, 2}", &[], true),
            ("1 {}", &[1], true),
            ("(9 8) 1 2", &[1, 2], false),
            ("(9) [7,8] 1", &[1], false),
            ("[7 8]", &[], false),
        ] {
            let ases = parse(text).unwrap_or_else(|| panic!("{text}: no path"));
            assert_eq!((&*ases.path, ases.has_set), (path, has_set), "{text}");
        }
        for text in [
            "IGP",
            "1,2",
            "1 {2",
            "1 2}",
            "(1 2",
            "1 {2)",
            "{1 x}",
            "-1",
            "4294967296",
            "1 {2}3",
            "{{1}}",
            "1.10",
            "(1) x",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
