use std::fmt;
use std::str::FromStr;

/// The validity of a route by RFC 6811. See the [crate's page](crate) for the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Validity {
    /// A VRP allows it.
    Valid,
    /// VRPs cover the prefix, and none of them has the route's origin.
    InvalidOrigin,
    /// VRPs cover the prefix, and some have the route's origin, but their maximum length is too short.
    InvalidLength,
    /// No VRP covers the prefix.
    NotFound,
}

impl Validity {
    /// All values.
    pub const ALL: [Self; 4] =
        [Self::Valid, Self::InvalidOrigin, Self::InvalidLength, Self::NotFound];

    /// `"valid"`, `"invalid-origin"`, `"invalid-length"` or `"not-found"`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::InvalidOrigin => "invalid-origin",
            Self::InvalidLength => "invalid-length",
            Self::NotFound => "not-found",
        }
    }

    /// Whether RFC 6811 calls the route invalid.
    pub const fn is_invalid(self) -> bool {
        matches!(self, Self::InvalidOrigin | Self::InvalidLength)
    }
}

impl fmt::Display for Validity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Validity {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|validity| validity.name() == text);
        found.ok_or("valid, invalid-origin, invalid-length or not-found")
    }
}
