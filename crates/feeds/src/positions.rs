use std::collections::BTreeMap;
use std::fmt;

/// The positions of sources, each in its own words, in the form stored in a checkpoint. The position in a folder of
/// files is the last file that was read.
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
    /// The positions in a checkpoint, from [`Restored::position`](fibula_rib::Restored::position). Lines in another
    /// format are ignored, because other feeds have other formats.
    pub fn read(text: &str) -> Self {
        let pairs = text.lines().filter_map(|line| line.split_once('\t'));
        Self { of: pairs.map(|(source, at)| (source.to_owned(), at.to_owned())).collect() }
    }

    /// Sets the position of a source. Neither text may contain a tab or a line end.
    pub fn set(&mut self, source: &str, position: &str) {
        self.of.insert(source.to_owned(), position.to_owned());
    }

    /// The position of the source.
    pub fn get(&self, source: &str) -> Option<&str> {
        self.of.get(source).map(String::as_str)
    }
}

impl fmt::Display for Positions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.of.iter().try_for_each(|(source, position)| writeln!(f, "{source}\t{position}"))
    }
}
