use std::fmt;
use std::str::FromStr;

/// What the VRPs say of a route, after RFC 6811. See the [crate's page](crate) for the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Validity {
    /// A VRP allows it.
    Valid,
    /// VRPs cover the prefix, and none of them has its origin.
    InvalidOrigin,
    /// VRPs cover the prefix, and those that have its origin allow no prefix as long.
    InvalidLength,
    /// No VRP covers the prefix.
    NotFound,
}

impl Validity {
    /// All of them.
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
