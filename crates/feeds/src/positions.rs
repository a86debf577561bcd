use std::collections::BTreeMap;
use std::fmt;

/// How far sources have come, each in its own words, as a checkpoint stores it: for a folder of files, the
/// last one that was taken.
///
/// ```
/// use fibula_feeds::Positions;
/// let mut positions = Positions::default();
/// positions.set("mrt", "updates.20221122.1605.gz");
/// let stored = positions.to_string();
/// assert_eq!(Positions::read(&stored).get("mrt"), Some("updates.20221122.1605.gz"));
/// assert_eq!(Positions::read("").get("mrt"), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Positions {
    of: BTreeMap<String, String>,
}

impl Positions {
    /// Those of a checkpoint, as [`Restored::position`](fibula_rib::Restored::position) has them. Lines that are none are
    /// passed over: other feeds have other words.
    pub fn read(text: &str) -> Self {
        let pairs = text.lines().filter_map(|line| line.split_once('\t'));
        Self { of: pairs.map(|(source, at)| (source.to_owned(), at.to_owned())).collect() }
    }

    /// The source has come so far. Neither may have a tab or a line end in it.
    pub fn set(&mut self, source: &str, position: &str) {
        self.of.insert(source.to_owned(), position.to_owned());
    }

    /// How far the source has come.
    pub fn get(&self, source: &str) -> Option<&str> {
        self.of.get(source).map(String::as_str)
    }
}

impl fmt::Display for Positions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.of.iter().try_for_each(|(source, position)| writeln!(f, "{source}\t{position}"))
    }
}
