//! Whether a route is as a rule wants it, by the route alone.

use fibula_core::AnyPrefix;
use fibula_rpki::{PathValidity, Validity};

use crate::path::ases;
use crate::{AlarmKind, WatchedRoute};

/// What is wrong with a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) expected: String,
    pub(crate) seen: String,
}

impl AlarmKind {
    /// What is wrong with the route of this prefix; `listed` is the longest of the rule's prefixes that covers it.
    /// Nothing, for kinds that judge more than one state of a route.
    pub(crate) fn judge(
        &self,
        listed: AnyPrefix,
        prefix: AnyPrefix,
        route: &WatchedRoute<'_>,
    ) -> Option<Wrong> {
        let seen_origin = || {
            route.origin_as.map_or("no single origin".to_owned(), |asn| format!("origin AS{asn}"))
        };
        let is_origin = |origins: &[u32]| route.origin_as.is_some_and(|asn| origins.contains(&asn));
        match self {
            Self::UnexpectedOrigin { origins } => {
                (route.is_bgp && !is_origin(origins)).then(|| Wrong {
                    expected: format!("origin {}", list(origins)),
                    seen: seen_origin(),
                })
            }
            Self::MoreSpecific { max_len, origins } => {
                if prefix == listed {
                    return None;
                }
                let length = length(prefix);
                let is_short = max_len.is_some_and(|max| length <= max);
                if is_short && (origins.is_empty() || is_origin(origins)) {
                    return None;
                }
                let expected = match max_len {
                    None => format!("no route inside {listed}"),
                    Some(max) if origins.is_empty() => {
                        format!("routes inside {listed} up to /{max}")
                    }
                    Some(max) => {
                        format!("routes inside {listed} up to /{max} of {}", list(origins))
                    }
                };
                let seen = match route.is_bgp {
                    true => format!("/{length}, {}", seen_origin()),
                    false => format!("/{length}"),
                };
                Some(Wrong { expected, seen })
            }
            Self::NewlyInvalid => {
                let validity = route.validity.filter(|validity| validity.is_invalid())?;
                let seen = match validity {
                    Validity::InvalidLength => format!("{validity}, {}", length_of(prefix)),
                    _ => format!("{validity}, {}", seen_origin()),
                };
                Some(Wrong { expected: "a route that is not invalid".to_owned(), seen })
            }
            Self::Leak { origins } => {
                let is_wrong = (origins.is_empty() || is_origin(origins))
                    && route.path_validity == Some(PathValidity::Invalid);
                is_wrong.then(|| Wrong {
                    expected: "a path that is not invalid by the ASPAs".to_owned(),
                    seen: format!("an invalid one, {}", seen_origin()),
                })
            }
            Self::PathThrough { ases: wanted, origins } => {
                if !route.is_bgp || !(origins.is_empty() || is_origin(origins)) {
                    return None;
                }
                let found = ases(route.as_path).find(|asn| wanted.contains(asn))?;
                let expected = format!("no path through {}", list(wanted));
                Some(Wrong { expected, seen: format!("AS{found}") })
            }
            Self::PathWithout { ases: wanted, origins } => {
                if !route.is_bgp || !(origins.is_empty() || is_origin(origins)) {
                    return None;
                }
                let is_through = ases(route.as_path).any(|asn| wanted.contains(&asn));
                (!is_through).then(|| Wrong {
                    expected: format!("a path through {}", list(wanted)),
                    seen: "a path without it".to_owned(),
                })
            }
            Self::Withdrawn { .. } | Self::Flapping { .. } => None,
        }
    }
}

/// The length of a prefix.
fn length(prefix: AnyPrefix) -> u8 {
    match prefix {
        AnyPrefix::V4(prefix) => prefix.len(),
        AnyPrefix::V6(prefix) => prefix.len(),
    }
}

fn length_of(prefix: AnyPrefix) -> String {
    format!("length {}", length(prefix))
}

/// Number of ASes that a text lists.
const LISTED: usize = 5;

/// `AS64500 or AS64501`.
fn list(ases: &[u32]) -> String {
    let mut names: Vec<String> = ases.iter().take(LISTED).map(|asn| format!("AS{asn}")).collect();
    if ases.len() > LISTED {
        names.push(format!("{} more", ases.len() - LISTED));
    }
    names.join(" or ")
}
