use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use fibula_ingest::bgp::{AddPathMode, AfiSafi, BgpOptions, Capability, Open};

/// Number of the capability of RFC 7313, which has no value.
pub(super) const ENHANCED_REFRESH: Capability = Capability::Other { code: 70, value: Vec::new() };

/// A BGP speaker that may open a session, and the settings of that session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The address that it connects from. An IPv4 address also stands for its IPv4-mapped IPv6 address, which
    /// a socket of both families gives.
    pub address: IpAddr,
    /// Its AS. `None` accepts any AS in its OPEN.
    pub asn: Option<u32>,
    /// Our AS in the OPEN. If it is the same as the neighbour's, the session is internal.
    pub local_asn: u32,
    /// Our BGP identifier.
    pub router_id: Ipv4Addr,
    /// The hold time that we propose, in seconds: 0 (no supervision of connections), or 3 and more. The session uses
    /// the lower of both proposals.
    pub hold_time: u16,
    /// The families that we accept: [`AfiSafi::IPV4`], [`AfiSafi::IPV6`].
    pub families: Vec<AfiSafi>,
    /// Whether several paths for each prefix are accepted (RFC 7911), if the neighbour sends them.
    pub add_path: bool,
    /// The optional path attributes to keep.
    pub attributes: BgpOptions,
    /// The name of its table in [`Rib::vrf`](fibula_rib::Rib::vrf). Empty for the global one.
    pub table: String,
    /// The source name of the table's peer.
    pub source: Option<Arc<str>>,
    /// Routes of each family that it may have in the table, with ADD-PATH paths. One more ends the session.
    /// A listener that does not count ([`Listener::paths_of`](fibula_rib::Listener::paths_of)) has no limit.
    pub most_routes: Option<u32>,
    /// How long it is refused after it exceeded `most_routes`.
    pub limit_pause: Duration,
    /// How long the routes of a lost connection stay, if the neighbour has not announced a restart time.
    pub hold: Duration,
    /// A neighbour without End-of-RIB (no graceful restart) has sent everything when it sent no UPDATE for this long.
    pub quiet: Duration,
    /// A neighbour has sent everything after this time, with or without End-of-RIB.
    pub longest_resync: Duration,
}

impl Neighbour {
    /// A neighbour of any AS, with both families, a hold time of 90 s, without ADD-PATH and limits; the other
    /// times are those of a [`SessionOptions`](crate::SessionOptions).
    pub fn new(address: IpAddr, local_asn: u32, router_id: Ipv4Addr) -> Self {
        let times = crate::SessionOptions::default();
        Self {
            address,
            asn: None,
            local_asn,
            router_id,
            hold_time: 90,
            families: vec![AfiSafi::IPV4, AfiSafi::IPV6],
            add_path: false,
            attributes: BgpOptions { as_path: true, communities: true, ..BgpOptions::default() },
            table: String::new(),
            source: None,
            most_routes: None,
            limit_pause: Duration::from_secs(300),
            hold: times.hold,
            quiet: times.quiet,
            longest_resync: times.longest_resync,
        }
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence about the invalid setting.
    pub fn check(&self) -> Result<(), String> {
        let neighbour = self.address;
        let no = |what: &str| Err(format!("neighbour {neighbour}: {what}"));
        let is_known = |family: &AfiSafi| [AfiSafi::IPV4, AfiSafi::IPV6].contains(family);
        match self {
            _ if self.local_asn == 0 || self.asn == Some(0) => no("there is no AS 0"),
            _ if self.router_id.is_unspecified() => no("the router id must not be 0.0.0.0"),
            _ if matches!(self.hold_time, 1 | 2) => {
                no("the hold time must be 0 (none) or at least 3 seconds")
            }
            _ if self.families.is_empty() => no("no address family is taken"),
            _ if !self.families.iter().all(is_known) => {
                no("only IPv4 and IPv6 unicast can be taken")
            }
            _ => Ok(()),
        }
    }

    /// The families, each once.
    pub(super) fn families(&self) -> Vec<AfiSafi> {
        let mut families = self.families.clone();
        families.sort_unstable();
        families.dedup();
        families
    }

    /// Our OPEN.
    pub(super) fn open(&self) -> Open {
        let families = self.families();
        let mut ours: Vec<_> = families.iter().map(|f| Capability::Multiprotocol(*f)).collect();
        ours.extend([Capability::RouteRefresh, ENHANCED_REFRESH, Capability::ExtendedMessage]);
        if families.contains(&AfiSafi::IPV4) {
            ours.push(Capability::ExtendedNextHop(vec![(AfiSafi::IPV4, AfiSafi::IPV6.afi)]));
        }
        // No family and no time: we forward nothing that a restart could keep, but we know what End-of-RIB
        // and the restart of a neighbour are (RFC 4724, 3).
        ours.push(Capability::GracefulRestart {
            restarted: false,
            notification: false,
            time: 0,
            families: Vec::new(),
        });
        ours.push(Capability::FourByteAsn(self.local_asn));
        if self.add_path {
            let receive = AddPathMode { receive: true, send: false };
            ours.push(Capability::AddPath(families.iter().map(|f| (*f, receive)).collect()));
        }
        Open::new(self.local_asn, self.hold_time, self.router_id.into(), ours)
    }
}
