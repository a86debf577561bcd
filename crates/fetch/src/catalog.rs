//! Named sources: data in `catalog.toml`, and those of the user's configuration.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use fibula_rib::Moment;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::clock::{DAY, fill, is_dated, newest, parse_duration};
use crate::fetcher::SourceFile;
use crate::url::shown_name;
use crate::{FetchError, Url};

/// The sources that come with the program.
const BUILTIN: &str = include_str!("catalog.toml");

/// What a file is used as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileUse {
    /// A table, in any format that tables have.
    #[default]
    Table,
    /// Validated ROA payloads.
    Vrps,
    /// Anything: it is not looked into.
    Any,
}

/// The definition of a source.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[non_exhaustive]
pub struct NamedSource {
    /// What it is.
    #[serde(default)]
    pub about: String,
    /// The URLs of its files, which are merged, with placeholders.
    #[serde(deserialize_with = "one_or_several")]
    pub url: Vec<String>,
    /// The URLs of the table of a time; none if there are no such tables.
    #[serde(default, deserialize_with = "one_or_several")]
    pub at: Vec<String>,
    /// How often there is a new one, as text: `8h`.
    #[serde(default)]
    pub every: Option<String>,
    /// What it is used as.
    #[serde(default, rename = "use")]
    pub file_use: FileUse,
    /// The names of all columns, for text without a header.
    #[serde(default)]
    pub names: Vec<String>,
    /// Who may use it for what.
    #[serde(default)]
    pub terms: String,
    /// With a time in `url`: how many of the newest times are tried.
    #[serde(default)]
    pub tries: Option<u64>,
}

/// Reads a text or a list of texts: `#[serde(deserialize_with = "one_or_several")]`.
///
/// # Errors
/// If it is anything else.
pub fn one_or_several<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    struct Texts;
    impl<'de> Visitor<'de> for Texts {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text or a list of texts")
        }

        fn visit_str<E>(self, text: &str) -> Result<Vec<String>, E> {
            Ok(vec![text.to_owned()])
        }

        fn visit_seq<S: SeqAccess<'de>>(self, texts: S) -> Result<Vec<String>, S::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(texts))
        }
    }
    from.deserialize_any(Texts)
}

/// The sources by name.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    sources: BTreeMap<String, NamedSource>,
}

/// A source that was found by its name.
#[derive(Clone, Debug)]
pub struct FoundSource {
    /// The name that was given, without a time.
    name: String,
    /// What it is used as.
    pub file_use: FileUse,
    /// The names of all columns, for text without a header.
    pub names: Vec<String>,
    patterns: Vec<String>,
    at: Option<Moment>,
    every: Duration,
    tries: u64,
}

impl Catalog {
    /// The sources that come with the program.
    ///
    /// # Panics
    /// Never: a test parses them.
    pub fn builtin() -> Self {
        Self { sources: toml::from_str(BUILTIN).expect("a test parses the catalogue") }
    }

    /// Adds sources, which replace those of the same name.
    ///
    /// # Errors
    /// If a definition is invalid.
    pub fn add(&mut self, sources: BTreeMap<String, NamedSource>) -> Result<(), FetchError> {
        for (name, source) in sources {
            check(&name, &source)?;
            self.sources.insert(name, source);
        }
        Ok(())
    }

    /// The sources in the order of their names.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &NamedSource)> {
        self.sources.iter().map(|(name, source)| (name.as_str(), source))
    }

    /// The source of a name such as `aws`, `ris/rrc00` or `ris/rrc00@2026-11-28T08:00`.
    ///
    /// # Errors
    /// If there is no such source, or it has no tables of other times.
    pub fn find(&self, name: &str) -> Result<FoundSource, FetchError> {
        let (name, time) = match name.split_once('@') {
            Some((name, time)) => (name, Some(time)),
            None => (name, None),
        };
        let wrong = |what: String| FetchError::Name { name: name.to_owned(), what };
        let at = time.map(str::parse::<Moment>).transpose();
        let at = at.map_err(|forms| wrong(format!("behind @ is a time: {forms}")))?;
        let (source, replaced) = self.of_name(name).ok_or_else(|| wrong(self.similar(name)))?;
        let fill_word = |pattern: &String| match replaced {
            Some((word, part)) => pattern.replace(&format!("{{{word}}}"), part),
            None => pattern.clone(),
        };
        let is_dated_url = source.url.iter().any(|pattern| is_dated(pattern));
        let patterns = match at {
            None => &source.url,
            Some(_) if !source.at.is_empty() => &source.at,
            Some(_) if is_dated_url => &source.url,
            Some(_) => return Err(wrong("it has no tables of other times".to_owned())),
        };
        let every = source.every.as_deref().map_or(Ok(Duration::from_secs(DAY)), parse_duration);
        let every = every.map_err(|what| wrong(what.to_owned()))?;
        Ok(FoundSource {
            name: name.to_owned(),
            file_use: source.file_use,
            names: source.names.clone(),
            patterns: patterns.iter().map(fill_word).collect(),
            at,
            every,
            tries: source.tries.unwrap_or(6).clamp(1, 100),
        })
    }

    /// The definition of a name, and the word of its name with the part that replaces it.
    fn of_name<'a>(
        &'a self,
        name: &'a str,
    ) -> Option<(&'a NamedSource, Option<(&'a str, &'a str)>)> {
        if let Some(source) = self.sources.get(name) {
            return has_no_word(name).then_some((source, None));
        }
        let (head, part) = name.split_once('/')?;
        let is_plain = crate::url::plain(part) == part && !part.is_empty();
        let (defined, source) = self.sources.iter().find(|(defined, _)| {
            defined.split_once('/').is_some_and(|(first, word)| first == head && is_word(word))
        })?;
        let (_, word) = defined.split_once('/')?;
        is_plain.then_some((source, Some((word, part))))
    }

    /// Names that a wrong one may stand for.
    fn similar(&self, name: &str) -> String {
        let head = name.split(['/', '-']).next().unwrap_or_default();
        let near: Vec<_> = self.sources.keys().filter(|known| known.starts_with(head)).collect();
        match (&*near, head.is_empty()) {
            ([], _) | (_, true) => "no source has this name".to_owned(),
            (near, false) => {
                let near: Vec<&str> = near.iter().map(|name| name.as_str()).collect();
                format!("no source has this name; there is {}", near.join(", "))
            }
        }
    }
}

impl FoundSource {
    /// Number of its files.
    pub fn len(&self) -> usize {
        self.patterns.len()
    }

    /// Whether it has no file.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// One of its files, as the cache keeps it: of a time by its URL, else by its name and definition.
    pub fn file(&self, file: usize) -> SourceFile {
        match self.patterns.get(file) {
            Some(pattern) if self.at.is_none() => {
                SourceFile { name: self.name.clone(), definition: pattern.clone() }
            }
            _ => SourceFile::default(),
        }
    }

    /// The possible URLs of a file, the newest first.
    ///
    /// # Errors
    /// If the definition gives something else than URLs.
    pub fn candidates(&self, file: usize) -> Result<Vec<Url>, FetchError> {
        let pattern = self.patterns.get(file).map_or("", String::as_str);
        let times: Vec<Moment> = match self.at {
            Some(at) => vec![at],
            None if is_dated(pattern) => {
                newest(crate::clock::now(), self.every.as_secs(), self.tries).collect()
            }
            None => vec![Moment::from_unix(0)],
        };
        let mut urls: Vec<Url> = Vec::new();
        for at in times {
            let url = Url::parse(&fill(pattern, at))?;
            if !urls.contains(&url) {
                urls.push(url);
            }
        }
        Ok(urls)
    }
}

/// Whether the part of a name is a word in capitals, which stands for a part that the user gives.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase())
}

fn has_no_word(name: &str) -> bool {
    !name.split('/').any(is_word)
}

/// Checks a definition.
fn check(name: &str, source: &NamedSource) -> Result<(), FetchError> {
    let fail = |what: String| Err(FetchError::Definition { name: name.to_owned(), what });
    let (head, part) = name.split_once('/').unwrap_or((name, ""));
    let is_plain = |text: &str| crate::url::plain(text) == text;
    if head.is_empty() || !is_plain(head) || !is_plain(part) || is_word(head) {
        return fail(
            "a name has letters, digits, hyphens and at most one /: mine, mine/REGION".to_owned(),
        );
    }
    if let Some(Err(forms)) = source.every.as_deref().map(parse_duration) {
        return fail(format!("every: {forms}"));
    }
    let word = format!("{{{part}}}");
    if source.url.is_empty() {
        return fail("url: there is none".to_owned());
    }
    for pattern in source.url.iter().chain(&source.at) {
        if is_word(part) && !pattern.contains(&word) {
            let shown = shown_name(pattern);
            return fail(format!("{shown}: it has no {word}, which its name has"));
        }
        let filled = fill(&pattern.replace(&word, "x"), Moment::from_unix(0));
        match Url::parse(&filled) {
            Ok(_) if filled.contains(['{', '}']) => {
                return fail(
                    "url: {year} {month} {day} {hour} {minute} are replaced, and nothing else"
                        .to_owned(),
                );
            }
            Ok(_) => {}
            Err(error) => return fail(error.to_string()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_builtin_sources_are_valid() {
        let catalog = Catalog::builtin();
        let mut copy = Catalog::default();
        copy.add(catalog.sources.clone()).unwrap();
        assert!(catalog.sources().count() > 20);
        for (name, source) in catalog.sources() {
            let whole =
                !source.about.is_empty() && !source.terms.is_empty() && source.every.is_some();
            assert!(whole, "{name}");
            let used = name.replace("COLLECTOR", "rrc00");
            let found = catalog.find(&used).unwrap();
            for file in 0..found.len() {
                let urls = found.candidates(file).unwrap();
                assert!(urls.iter().all(Url::is_secure), "{name}");
            }
        }
    }

    #[test]
    fn names_with_parts_and_times() {
        let catalog = Catalog::builtin();
        let urls = |name: &str| -> Vec<String> {
            let found = catalog.find(name).unwrap();
            (0..found.len())
                .flat_map(|file| found.candidates(file).unwrap())
                .map(|url| url.shown())
                .collect()
        };
        assert_eq!(urls("ris/rrc00"), ["https://data.ris.ripe.net/rrc00/latest-bview.gz"]);
        assert_eq!(
            urls("ris/rrc00@2026-11-28T08:00"),
            ["https://data.ris.ripe.net/rrc00/2026.11/bview.20261128.0800.gz"]
        );
        assert_eq!(
            urls("routeviews/route-views6@2026-01-02"),
            [
                "https://archive.routeviews.org/route-views6/bgpdata/2026.01/RIBS/rib.20260102.0000.bz2"
            ]
        );
        assert_eq!(urls("cloudflare").len(), 2);
        assert_eq!(urls("routeviews").len(), 6);
        assert!((2..=3).contains(&urls("dbip-asn").len()));
        for name in [
            "ris/COLLECTOR",
            "ris/",
            "ris/../x",
            "ris/a/b",
            "ris",
            "nothing",
            "",
            "aws@2026-01-01",
            "ris/a@x",
        ] {
            assert!(catalog.find(name).is_err(), "{name}");
        }
        let near = catalog.find("google-clouds").unwrap_err().to_string();
        assert!(near.contains("google-cloud"), "{near}");
    }

    #[test]
    fn wrong_definitions_are_refused() {
        let add = |text: &str| {
            let sources: BTreeMap<String, NamedSource> = toml::from_str(text).unwrap();
            Catalog::builtin().add(sources)
        };
        assert!(add("[mine]\nurl = 'https://h/{year}.csv'").is_ok());
        assert!(add("['mine/REGION']\nurl = 'https://h/{REGION}.csv'").is_ok());
        for text in [
            "[mine]\nurl = 'file:///etc/passwd'",
            "[mine]\nurl = 'https://h/{nothing}'",
            "[mine]\nurl = []",
            "['../x']\nurl = 'https://h/'",
            "['mine/REGION']\nurl = 'https://h/a.csv'",
            "[mine]\nurl = 'https://h/'\nevery = 'soon'",
        ] {
            assert!(add(text).is_err(), "{text}");
        }
    }
}
