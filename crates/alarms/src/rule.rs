//! The rules.

use std::sync::Arc;
use std::time::Duration;

use fibula_core::{AnyPrefix, Prefix};

/// A rule: which routes it judges, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlarmRule {
    /// Its name in alarms.
    pub name: Arc<str>,
    /// How it judges.
    pub kind: AlarmKind,
    /// The prefixes whose routes it judges; those inside them as [`AlarmKind`] says.
    pub prefixes: Vec<AnyPrefix>,
    /// The tables whose routes it judges, with those below them: `bmp` is also `bmp/post-policy`. If empty, all.
    pub tables: Vec<String>,
}

/// The kinds of rules. A kind that looks only at a route as it is now needs an arm in `judge.rs`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AlarmKind {
    /// A route of exactly one of the prefixes has another origin, or no single one.
    UnexpectedOrigin {
        /// The origins that it may have.
        origins: Vec<u32>,
    },
    /// There is a route inside one of the prefixes that is longer and is not itself listed.
    MoreSpecific {
        /// Up to this length, routes of one of the origins are as they should be; `None`: no longer route is.
        max_len: Option<u8>,
        /// The origins of such routes; if empty, all.
        origins: Vec<u32>,
    },
    /// A route of one of the prefixes, or inside them, became invalid by the RPKI.
    NewlyInvalid,
    /// The route of exactly one of the prefixes was withdrawn and is not back after a while.
    Withdrawn {
        /// This long.
        after: Duration,
    },
    /// The best route of one of the prefixes, or of one inside them, changes often.
    Flapping {
        /// The number of changes (0 counts as 1), withdrawals among them, of which the first and the last are ...
        changes: usize,
        /// ... less than this apart. The alarm ends when there was none for as long.
        within: Duration,
    },
    /// The path of a route of one of the prefixes, or inside them, is invalid by the ASPAs: the route leaked, or the
    /// path is forged.
    Leak {
        /// Only routes that one of these ASes originates; if empty, all.
        origins: Vec<u32>,
    },
    /// The path of a route of one of the prefixes, or inside them, has one of these ASes.
    PathThrough {
        /// The ASes.
        ases: Vec<u32>,
        /// Only routes that one of these ASes originates; if empty, all.
        origins: Vec<u32>,
    },
    /// The path of a route of one of the prefixes, or inside them, has none of these ASes.
    PathWithout {
        /// The ASes.
        ases: Vec<u32>,
        /// Only routes that one of these ASes originates; if empty, all.
        origins: Vec<u32>,
    },
}

impl AlarmRule {
    /// A rule on all prefixes of all tables.
    pub fn new(name: impl Into<Arc<str>>, kind: AlarmKind) -> Self {
        let prefixes = vec![AnyPrefix::V4(Prefix::ALL), AnyPrefix::V6(Prefix::ALL)];
        Self { name: name.into(), kind, prefixes, tables: Vec::new() }
    }

    /// The same on these prefixes.
    #[must_use]
    pub fn on(self, prefixes: impl IntoIterator<Item = AnyPrefix>) -> Self {
        Self { prefixes: prefixes.into_iter().collect(), ..self }
    }

    /// The same in these tables, and those below them.
    #[must_use]
    pub fn of_tables(self, tables: impl IntoIterator<Item = String>) -> Self {
        Self { tables: tables.into_iter().collect(), ..self }
    }

    /// Whether it judges the routes of this table.
    pub(crate) fn is_of(&self, table: &str) -> bool {
        let is_below = |rest: &str| rest.is_empty() || rest.starts_with('/');
        let is_of = |name: &String| table.strip_prefix(&**name).is_some_and(is_below);
        self.tables.is_empty() || self.tables.iter().any(is_of)
    }
}

impl AlarmKind {
    /// Its name in alarms and configurations.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::UnexpectedOrigin { .. } => "unexpected-origin",
            Self::MoreSpecific { .. } => "more-specific",
            Self::NewlyInvalid => "newly-invalid",
            Self::Withdrawn { .. } => "withdrawn",
            Self::Flapping { .. } => "flapping",
            Self::Leak { .. } => "leak",
            Self::PathThrough { .. } => "path-through",
            Self::PathWithout { .. } => "path-without",
        }
    }

    /// Whether it judges the routes of its prefixes alone, and none inside them.
    pub(crate) const fn is_exact(&self) -> bool {
        matches!(self, Self::UnexpectedOrigin { .. } | Self::Withdrawn { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_names_those_below_it() {
        let rule = AlarmRule::new("r", AlarmKind::NewlyInvalid).of_tables(["bmp".to_owned()]);
        assert!(rule.is_of("bmp") && rule.is_of("bmp/pre-policy"));
        assert!(!rule.is_of("bmp2") && !rule.is_of("bgp") && !rule.is_of(""));
        assert!(AlarmRule::new("r", AlarmKind::NewlyInvalid).is_of("bgp"));
    }
}
