//! The text between objects that are not separated by lines: blanks, commas and brackets.

/// Checks commas and brackets: an array that lacks some of them is damaged, and one that is not closed was cut off.
///
/// Outside of arrays objects need no commas, but may have them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Between {
    /// The number of arrays that are open.
    depth: usize,
    last: Last,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Last {
    /// The input or an array has just begun.
    #[default]
    Nothing,
    Comma,
    Value,
}

impl Between {
    /// The number of valid bytes at the beginning of `text`, and the fault of the byte after them if it is a comma or a
    /// bracket. Such a byte counts as read, too.
    pub(super) fn pass(&mut self, text: &[u8]) -> (usize, Option<&'static str>) {
        for (at, byte) in text.iter().enumerate() {
            let wrong = match byte {
                b',' => self.comma(),
                b'[' => self.open(),
                b']' => self.close(),
                _ if byte.is_ascii_whitespace() => None,
                _ => return (at, None),
            };
            if wrong.is_some() {
                return (at, wrong);
            }
        }
        (text.len(), None)
    }

    /// Reads a value that is no array. Returns whether nothing is missing before it.
    pub(super) fn value(&mut self) -> bool {
        let before = std::mem::replace(&mut self.last, Last::Value);
        self.depth == 0 || before != Last::Value
    }

    /// Whether an array has begun that has not ended.
    pub(super) fn is_open(&self) -> bool {
        self.depth > 0
    }

    fn comma(&mut self) -> Option<&'static str> {
        let before = std::mem::replace(&mut self.last, Last::Comma);
        (before != Last::Value).then_some("a comma without a value before it")
    }

    fn open(&mut self) -> Option<&'static str> {
        let is_in_place = self.value();
        self.depth += 1;
        self.last = Last::Nothing;
        (!is_in_place).then_some("no comma before this array")
    }

    fn close(&mut self) -> Option<&'static str> {
        let before = std::mem::replace(&mut self.last, Last::Value);
        if self.depth == 0 {
            return Some("a bracket that closes no array");
        }
        self.depth -= 1;
        (before == Last::Comma).then_some("a comma without a value behind it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of faults, and whether an array is open at the end; `v` means a value.
    fn wrong(text: &str) -> (Vec<usize>, bool) {
        let (mut between, mut places, mut at) = (Between::default(), Vec::new(), 0);
        while at < text.len() {
            let (passed, wrong) = between.pass(&text.as_bytes()[at..]);
            at += passed;
            if at < text.len() {
                if wrong.is_some() || !between.value() {
                    places.push(at);
                }
                at += 1;
            }
        }
        (places, between.is_open())
    }

    #[test]
    fn one_comma_between_values() {
        for text in ["", "[]", "[v]", " [ v,\n v ]\n", "[[v],[]]", "[v]\n[v]", "v v", "v,\nv", "v,"]
        {
            assert_eq!(wrong(text), (vec![], false), "{text}");
        }
        for (text, places) in [
            ("[v v]", vec![3]),
            ("[v,,v]", vec![3]),
            ("[,v]", vec![1]),
            ("[v,]", vec![3]),
            ("[v[v]]", vec![2]),
            ("[v]]", vec![3]),
            (",v", vec![0]),
        ] {
            assert_eq!(wrong(text), (places, false), "{text}");
        }
        for text in ["[", "[v", "[v,", "[v,[v]", "[v]["] {
            assert_eq!(wrong(text), (vec![], true), "{text}");
        }
    }
}
