//! Which paths are wanted: by origin, AS path and communities. `/v1/filter` and `fibula export --paths` take the same
//! words.

use std::net::Ipv4Addr;
use std::str::FromStr;

use fibula_core::BgpAttributes;
use regex::{Regex, RegexBuilder};

/// The longest text of a regular expression, in bytes, and the most memory that one may take.
const LONGEST: usize = 1000;
const MOST: usize = 1 << 20;

/// The paths that are wanted: those that fit each part which is given.
///
/// ```
/// use fibula_core::BgpAttributes;
/// use fibula_server::PathFilter;
///
/// let mut filter = PathFilter::default();
/// filter.path = Some("_64501_".parse()?);
/// filter.communities = vec!["64500:*".parse()?, "64500:1:*".parse()?];
/// let bgp = |as_path, communities| BgpAttributes { as_path, communities, ..Default::default() };
/// assert!(filter.matches(&bgp("64500 64501", "64500:77")));
/// assert!(!filter.matches(&bgp("64500 64501", "64502:77")));
/// assert!(!filter.matches(&bgp("64500 6450", "64500:77")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct PathFilter {
    /// One of these originates the route; empty for any.
    pub origins: Vec<u32>,
    /// The text of the AS path fits this.
    pub path: Option<PathPattern>,
    /// One of the communities fits one of these; empty for any.
    pub communities: Vec<CommunityPattern>,
}

impl PathFilter {
    /// Whether it wants all paths.
    pub fn is_empty(&self) -> bool {
        self.origins.is_empty() && self.path.is_none() && self.communities.is_empty()
    }

    /// Whether a path with these attributes is wanted.
    pub fn matches(&self, bgp: &BgpAttributes<'_>) -> bool {
        let Self { origins, path, communities } = self;
        (origins.is_empty() || bgp.origin_as.is_some_and(|of| origins.contains(&of)))
            && path.as_ref().is_none_or(|path| path.matches(bgp.as_path))
            && (communities.is_empty()
                || [bgp.communities, bgp.extended_communities]
                    .iter()
                    .flat_map(|text| text.split_ascii_whitespace())
                    .any(|found| communities.iter().any(|wanted| wanted.matches(found))))
    }
}

/// A regular expression for the text of an AS path, `64500 64501 {64502,64503}`. `_` is the beginning, the end, or what
/// is between two ASes. It is matched in time linear in the path.
///
/// ```
/// use fibula_server::PathPattern;
/// let pattern: PathPattern = "_64501$".parse()?;
/// assert!(pattern.matches("64500 64501") && !pattern.matches("64500 164501"));
/// assert!("(".parse::<PathPattern>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug)]
pub struct PathPattern(Regex);

impl PathPattern {
    /// Whether the text of a path fits.
    pub fn matches(&self, as_path: &str) -> bool {
        self.0.is_match(as_path)
    }
}

impl FromStr for PathPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > LONGEST {
            return Err(format!("a regular expression has at most {LONGEST} bytes"));
        }
        let built = RegexBuilder::new(&text.replace('_', "(?:^|[ {},]|$)"))
            .size_limit(MOST)
            .dfa_size_limit(MOST)
            .build();
        built.map(Self).map_err(|error| error.to_string())
    }
}

/// A pattern of communities, by the parts between colons: `64500:1`, `64500:*`, `64500:1:*`, `rt:64500:*`, and
/// `0x030c000000000008`.
///
/// ```
/// use fibula_server::CommunityPattern;
/// let pattern: CommunityPattern = "64500:*".parse()?;
/// assert!(pattern.matches("64500:77") && !pattern.matches("64500:1:2"));
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommunityPattern(Vec<String>);

impl FromStr for CommunityPattern {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_number = |part: &str| part == "*" || part.parse::<u32>().is_ok();
        let is_hex = |digits: &str| {
            matches!(digits.len(), 16 | 40) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        let text = text.to_ascii_lowercase();
        let parts: Vec<_> = text.split(':').collect();
        let is_community = match *parts {
            ["rt" | "soo", of, number] => {
                (is_number(of) || of.parse::<Ipv4Addr>().is_ok()) && is_number(number)
            }
            [bytes] => bytes.strip_prefix("0x").is_some_and(is_hex),
            _ => matches!(parts.len(), 2 | 3) && parts.iter().all(|part| is_number(part)),
        };
        match is_community {
            true => Ok(Self(parts.into_iter().map(str::to_owned).collect())),
            false => Err(
                "a community is 64500:1, 64500:1:2, rt:64500:1, soo:64500:1 or 0x and 16 or 40 digits; * is any \
                     part",
            ),
        }
    }
}

impl CommunityPattern {
    /// Whether the text of a community fits.
    pub fn matches(&self, community: &str) -> bool {
        let parts = community.split(':');
        // A part of an extended community is its kind, which is no number.
        let is_any = |part: &str, wanted: &str| wanted == "*" && !matches!(part, "rt" | "soo");
        parts.clone().count() == self.0.len()
            && parts.zip(&self.0).all(|(part, wanted)| part == wanted || is_any(part, wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn communities_by_part() {
        let matches =
            |pattern: &str, text| pattern.parse::<CommunityPattern>().unwrap().matches(text);
        assert!(matches("64500:1", "64500:1") && matches("64500:*", "64500:77"));
        assert!(matches("*:1:*", "2:1:3") && !matches("64500:*", "64500:1:2"));
        assert!(!matches("64500:1", "64500:11") && !matches("64500:*", "6450:1"));
        assert!(matches("rt:64500:*", "rt:64500:9") && matches("RT:*:9", "rt:192.0.2.1:9"));
        assert!(!matches("rt:64500:9", "soo:64500:9") && !matches("*:64500:9", "rt:64500:9"));
        assert!(!matches("rt:64500:9", "64500:9") && matches("soo:192.0.2.1:9", "soo:192.0.2.1:9"));
        assert!(matches("0x030C000000000008", "0x030c000000000008"));
        for bad in [
            "",
            "64500",
            "a:b",
            "1:2:3:4",
            "64500:",
            "64500:4294967296",
            "rt:1",
            "rt:1:2:3",
            "rt:1:192.0.2.1",
            "0x03",
            "0x030c00000000000g",
            "030c000000000008",
        ] {
            assert!(bad.parse::<CommunityPattern>().is_err(), "{bad}");
        }
    }

    #[test]
    fn underscores_stand_between_autonomous_systems() {
        let matches = |regex: &str, path| regex.parse::<PathPattern>().unwrap().matches(path);
        assert!(
            matches("_64501_", "64500 64501 64502") && matches("_64502_", "64500 {64501,64502}")
        );
        assert!(matches("^64500_", "64500 64501") && matches("_64501$", "64500 64501"));
        assert!(!matches("_6450_", "64500 64501") && !matches("^64501", "64500 64501"));
        assert!("(".parse::<PathPattern>().is_err());
        // Neither a long text nor a large machine is taken.
        assert!("a".repeat(1001).parse::<PathPattern>().is_err());
        assert!("(?:[0-9]{99}){999}".parse::<PathPattern>().is_err());
    }
}
