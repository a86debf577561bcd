//! What is judged.

use fibula_core::AnyPrefix;
use fibula_rpki::{PathValidity, Validity};

/// A change of the best route of a prefix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RouteChange<'a> {
    /// Its time, in microseconds since 1970. Times that go back count as the latest one.
    pub time: u64,
    /// The table's name.
    pub table: &'a str,
    /// The prefix.
    pub prefix: AnyPrefix,
    /// The session that it is of, as [`Alarms::settle`](crate::Alarms::settle) asks for it; `None` if unknown.
    pub session: Option<&'a str>,
    /// The best route from now on; `None` if the prefix has none any more.
    pub route: Option<WatchedRoute<'a>>,
    /// When it happened.
    pub occasion: Occasion,
}

/// A route, as far as rules judge it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WatchedRoute<'a> {
    /// A readable name of its peer.
    pub peer: &'a str,
    /// Whether it is a route of BGP. Rules on origins and paths judge no others.
    pub is_bgp: bool,
    /// The AS that originates it; `None` if it has no single one.
    pub origin_as: Option<u32>,
    /// Its AS path as text, sets in braces.
    pub as_path: &'a str,
    /// What the RPKI says about its origin; `None` if no VRPs are known.
    pub validity: Option<Validity>,
    /// What the ASPAs say about its path; `None` if none are known, or it has no path.
    pub path_validity: Option<PathValidity>,
}

impl<'a> WatchedRoute<'a> {
    /// A route of BGP without a known validity.
    pub const fn bgp(peer: &'a str, origin_as: Option<u32>, as_path: &'a str) -> Self {
        Self { peer, is_bgp: true, origin_as, as_path, validity: None, path_validity: None }
    }

    /// A route of another kind, such as one of the kernel.
    pub const fn other(peer: &'a str) -> Self {
        Self { is_bgp: false, ..Self::bgp(peer, None, "") }
    }
}

/// When a change happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// While the session is up and has sent its table before: it is news.
    Live,
    /// While the session sends its table again, or because it was lost: it does not count as flapping, and is judged
    /// when the session is up.
    Resent,
    /// While the session sends its table for the first time, or the table is read for the first time: like
    /// [`Occasion::Resent`], and routes that are invalid then are not newly so.
    First,
}
