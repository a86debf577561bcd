//! Verification of AS paths by ASPAs: may these ASes have passed the route on to each other?

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use crate::{Relations, path_text};

/// From whom a route was received, which decides how its path is verified.
///
/// ```
/// use fibula_rpki::ReceivedFrom;
/// assert_eq!("route-server".parse(), Ok(ReceivedFrom::RouteServer));
/// assert_eq!(ReceivedFrom::default().to_string(), "unknown");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReceivedFrom {
    /// From a customer: each AS of the path passed the route to a provider.
    Customer,
    /// From a lateral peer, as from a customer.
    Peer,
    /// From a route server, or by one from its client; as from a customer.
    RouteServer,
    /// From a provider: the path may climb to providers, and then descend to customers.
    Provider,
    /// From one of these, but nobody said from which. A path is valid or invalid if it is so in either case, and
    /// otherwise unknown.
    #[default]
    Unknown,
}

impl ReceivedFrom {
    /// All values.
    pub const ALL: [Self; 5] =
        [Self::Customer, Self::Peer, Self::RouteServer, Self::Provider, Self::Unknown];

    /// `"customer"`, `"peer"`, `"route-server"`, `"provider"` or `"unknown"`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Customer => "customer",
            Self::Peer => "peer",
            Self::RouteServer => "route-server",
            Self::Provider => "provider",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for ReceivedFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ReceivedFrom {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|from| from.name() == text);
        found.ok_or("customer, peer, route-server, provider or unknown")
    }
}

/// Whether the ASPAs let a path be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathValidity {
    /// Every hop that has to be is one to a provider.
    Valid,
    /// A hop that has to be one to a provider is not, so the route leaked or its path is forged; or the path cannot be
    /// verified at all.
    Invalid,
    /// ASes on the path have no ASPA, and it could be either; or it depends on a relation that is not known.
    Unknown,
}

impl PathValidity {
    /// All values.
    pub const ALL: [Self; 3] = [Self::Valid, Self::Invalid, Self::Unknown];

    /// `"valid"`, `"invalid"` or `"unknown"`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Invalid => "invalid",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for PathValidity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PathValidity {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|validity| validity.name() == text);
        found.ok_or("valid, invalid or unknown")
    }
}

/// An ASPA: the ASes that may pass on the routes of a customer to everybody.
///
/// ```
/// use fibula_rpki::{Aspa, Aspas};
/// let aspas: Aspas = [Aspa { customer: 64500, providers: vec![64502, 64501] }].into_iter().collect();
/// assert_eq!(aspas.providers(64500), Some(&[64501, 64502][..]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Aspa {
    /// The AS that attests.
    pub customer: u32,
    /// The ASes that it names; AS 0 alone if it has no provider.
    pub providers: Vec<u32>,
}

/// What the ASPA of a customer says about another AS.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hop {
    Provider,
    NotProvider,
    /// There is no ASPA.
    NoAttestation,
}

/// The providers of customers, as their ASPAs attest (draft-ietf-sidrops-aspa-verification).
///
/// ```
/// use fibula_rpki::{Aspas, ReceivedFrom, PathValidity};
///
/// // AS64500 has the providers AS64501 and AS64502; AS64501 has none (AS 0).
/// let aspas: Aspas = [(64500, vec![64501, 64502]), (64501, vec![0])].into_iter().collect();
/// // The nearest AS is first, the origin last, as in BGP.
/// let verify = |path: &[u32]| aspas.verify(path, ReceivedFrom::Customer);
/// assert_eq!(verify(&[64501, 64500]), PathValidity::Valid);
/// assert_eq!(verify(&[64503, 64500]), PathValidity::Invalid); // AS64503 is no provider of AS64500
/// assert_eq!(verify(&[64503, 64502, 64500]), PathValidity::Unknown); // AS64502 has no ASPA
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aspas(HashMap<u32, Vec<u32>>);

impl FromIterator<(u32, Vec<u32>)> for Aspas {
    /// From customers and their providers. The providers of several ASPAs of a customer are taken together.
    fn from_iter<I: IntoIterator<Item = (u32, Vec<u32>)>>(all: I) -> Self {
        let mut of = HashMap::<u32, Vec<u32>>::new();
        for (customer, providers) in all {
            of.entry(customer).or_default().extend(providers);
        }
        for providers in of.values_mut() {
            providers.sort_unstable();
            providers.dedup();
        }
        Self(of)
    }
}

impl FromIterator<Aspa> for Aspas {
    /// As from customers and providers.
    fn from_iter<I: IntoIterator<Item = Aspa>>(all: I) -> Self {
        all.into_iter().map(|Aspa { customer, providers }| (customer, providers)).collect()
    }
}

impl Aspas {
    /// Number of customers.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no ASPAs.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The providers that a customer attests, ascending; AS 0 alone says that it has none. `None` without an ASPA.
    pub fn providers(&self, customer: u32) -> Option<&[u32]> {
        self.0.get(&customer).map(Vec::as_slice)
    }

    fn hop(&self, customer: u32, provider: u32) -> Hop {
        match self.0.get(&customer) {
            None => Hop::NoAttestation,
            Some(providers) if providers.binary_search(&provider).is_ok() => Hop::Provider,
            Some(_) => Hop::NotProvider,
        }
    }

    /// Verifies a path, whose first AS is the neighbour and whose last one the origin. ASes that are repeated count
    /// once. An empty path is invalid, as is one with AS 0; one with an AS_SET, which has no order, must not be given:
    /// the draft calls it invalid. O(length).
    ///
    /// Whether the first AS is the neighbour's is for the router that receives a route (RFC 4271, 6.3), and is not
    /// looked at here.
    pub fn verify(&self, path: &[u32], from: ReceivedFrom) -> PathValidity {
        let mut path = path.to_vec();
        path.dedup();
        if path.is_empty() || path.contains(&0) {
            return PathValidity::Invalid;
        }
        match from {
            ReceivedFrom::Customer | ReceivedFrom::Peer | ReceivedFrom::RouteServer => {
                self.by_ramps(&path, false)
            }
            ReceivedFrom::Provider => self.by_ramps(&path, true),
            ReceivedFrom::Unknown => {
                let (up, both) = (self.by_ramps(&path, false), self.by_ramps(&path, true));
                if up == both { up } else { PathValidity::Unknown }
            }
        }
    }

    /// Verifies a path that is given as text, as tables have it: `64500 64501 {64502,64503}`. A path with a set in
    /// braces is invalid. Segments of confederations, `(64500 64501)` and `[64500,64501]`, are left out: the ASes
    /// outside do not see them. `None` if there is no AS, which is the path of a route of the own AS, or if the text is
    /// no path.
    ///
    /// ```
    /// use fibula_rpki::{Aspas, PathValidity, ReceivedFrom};
    /// let aspas: Aspas = [(64500, vec![64501])].into_iter().collect();
    /// let verify = |text| aspas.verify_text(text, ReceivedFrom::Peer);
    /// assert_eq!(verify("64501 64500"), Some(PathValidity::Valid));
    /// assert_eq!(verify("64501 {64500}"), Some(PathValidity::Invalid));
    /// assert_eq!((verify(""), verify("IGP")), (None, None));
    /// ```
    pub fn verify_text(&self, text: &str, from: ReceivedFrom) -> Option<PathValidity> {
        path_text::parse(text)?.verify(self, from)
    }

    /// As [`Aspas::verify_text`], for a route that a peer with this AS sent. Without the peer's AS, it is the first one
    /// of the path.
    pub fn verify_route(
        &self,
        text: &str,
        peer: Option<u32>,
        relations: &Relations,
    ) -> Option<PathValidity> {
        let ases = path_text::parse(text)?;
        let first = ases.path.first().copied();
        ases.verify(self, relations.of(peer.or(first)))
    }

    /// Verifies a path without repeated ASes, by the hops up from the origin, and if it `may_descend` by those down to
    /// the neighbour, too.
    fn by_ramps(&self, path: &[u32], may_descend: bool) -> PathValidity {
        // How many ASes a ramp has: up from the origin, or seen the other way round, down to the neighbour. It ends
        // before the first hop of one of these kinds.
        let up =
            |ends: &[Hop]| ramp(path.windows(2).rev().map(|pair| self.hop(pair[1], pair[0])), ends);
        let down = |ends: &[Hop]| match may_descend {
            false => 0,
            true => ramp(path.windows(2).map(|pair| self.hop(pair[0], pair[1])), ends),
        };
        // Both ramps have all ASes between them: the hop from one to the other may be one between peers.
        let is_short = |ends: &[Hop]| up(ends) + down(ends) < path.len();
        if is_short(&[Hop::NotProvider]) {
            PathValidity::Invalid
        } else if is_short(&[Hop::NotProvider, Hop::NoAttestation]) {
            PathValidity::Unknown
        } else {
            PathValidity::Valid
        }
    }
}

/// The number of ASes that hops join before the first one of these kinds.
fn ramp(hops: impl Iterator<Item = Hop>, ends: &[Hop]) -> usize {
    1 + hops.take_while(|hop| !ends.contains(hop)).count()
}
