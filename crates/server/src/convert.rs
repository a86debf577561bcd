//! Converts the contents of a RIB to the types of answers.
//!
//! Under the RIB's lock, only references and numbers are copied ([`Names::of`],
//! [`TableName`](crate::table::TableName)). The text is made afterwards.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use fibula_core::{AnyPrefix, Value};
use fibula_rib::{AttributeSet, Path, Rib, Step, ValueNames};
use fibula_rpki::{Relations, VrpGeneration};

use crate::api;
use crate::http::time::rfc3339;

/// The most VRPs of a route that are listed.
const VRPS: usize = 64;

/// The data besides routes that answers need from a RIB, copied while the RIB was locked.
pub(crate) struct Names {
    peers: Vec<(u32, fibula_rib::Peer)>,
    values: ValueNames,
    vrps: Option<Arc<VrpGeneration>>,
    relations: Arc<Relations>,
}

impl Names {
    /// Copies the names of these peers.
    pub(crate) fn of(rib: &Rib, peers: impl IntoIterator<Item = u32>) -> Self {
        let mut numbers: Vec<u32> = peers.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        let peer = |n: u32| Some((n, rib.peers().get(n)?.clone()));
        let values = rib.value_names().clone();
        let peers = numbers.into_iter().filter_map(peer).collect();
        Self { peers, values, vrps: None, relations: Arc::default() }
    }

    /// With the validity of routes by these VRPs and ASPAs.
    pub(crate) fn validated(
        self,
        vrps: Option<Arc<VrpGeneration>>,
        relations: &Arc<Relations>,
    ) -> Self {
        Self { vrps, relations: Arc::clone(relations), ..self }
    }

    /// The validity of a route; `None` if no VRPs are known, or it is not of BGP.
    pub(crate) fn validity(&self, prefix: AnyPrefix, set: &AttributeSet) -> Option<String> {
        let vrps = self.vrps.as_ref()?.vrps.as_ref()?;
        Some(vrps.validity(prefix, set.bgp()?.origin_as).to_string())
    }

    fn rpki(&self, prefix: AnyPrefix, set: &AttributeSet) -> Option<api::OriginValidity> {
        let vrps = self.vrps.as_ref()?.vrps.as_ref()?;
        let validity = vrps.validity(prefix, set.bgp()?.origin_as);
        let covering = vrps.covering(prefix).take(VRPS);
        Some(api::OriginValidity {
            validity: validity.to_string(),
            vrps: covering.map(|vrp| vrp.to_string()).collect(),
        })
    }

    /// The validity of the path that this peer sent.
    pub(crate) fn aspa(&self, number: u32, set: &AttributeSet) -> Option<String> {
        let aspas = self.vrps.as_ref().map(|now| &now.aspas).filter(|aspas| !aspas.is_empty())?;
        let asn = self.known(number).map(|peer| peer.asn).filter(|&asn| asn != 0);
        let validity = aspas.verify_route(set.bgp()?.as_path, asn, &self.relations)?;
        Some(validity.to_string())
    }

    fn known(&self, number: u32) -> Option<&fibula_rib::Peer> {
        let at = self.peers.binary_search_by_key(&number, |(known, _)| *known).ok()?;
        Some(&self.peers[at].1)
    }

    pub(crate) fn peer(&self, number: u32) -> api::Peer {
        match self.known(number) {
            Some(known) => peer(number, known),
            None => {
                let name = format!("peer {number}");
                api::Peer { id: number, name, address: None, asn: 0, source: None }
            }
        }
    }

    pub(crate) fn attributes(&self, set: &AttributeSet) -> api::Attributes {
        attributes(set, &self.values)
    }

    pub(crate) fn route(&self, prefix: AnyPrefix, path: &Path) -> api::Route {
        api::Route {
            rpki: self.rpki(prefix, &path.attributes),
            aspa: self.aspa(path.peer, &path.attributes),
            prefix: prefix.to_string(),
            peer: self.peer(path.peer),
            path_id: path.path_id,
            attributes: self.attributes(&path.attributes),
        }
    }

    /// A path of the prefix, and the step by which it lost.
    pub(crate) fn path(&self, prefix: AnyPrefix, (path, lost): &(Path, Option<Step>)) -> api::Path {
        api::Path {
            rpki: self.rpki(prefix, &path.attributes),
            aspa: self.aspa(path.peer, &path.attributes),
            peer: self.peer(path.peer),
            path_id: path.path_id,
            attributes: self.attributes(&path.attributes),
            best: lost.is_none(),
            lost_by: lost.map(|step| step.to_string()),
        }
    }
}

/// The readable name of a peer with this number, as answers have it: `AS64500 (10.0.0.1)`.
pub fn peer_name(number: u32, peer: &fibula_rib::Peer) -> String {
    let fibula_rib::Peer { address, asn, source } = peer;
    match (address, asn, &source) {
        (Some(address), 0, _) => address.to_string(),
        (Some(address), asn, _) => format!("AS{asn} ({address})"),
        (None, 0, Some(source)) => source.to_string(),
        (None, 0, None) => format!("peer {number}"),
        (None, asn, _) => format!("AS{asn}"),
    }
}

/// A peer in the form of answers.
pub(crate) fn peer(number: u32, peer: &fibula_rib::Peer) -> api::Peer {
    let fibula_rib::Peer { address, asn, source } = peer;
    api::Peer {
        id: number,
        name: peer_name(number, peer),
        address: *address,
        asn: *asn,
        source: source.as_deref().map(str::to_owned),
    }
}

/// An alarm in the form of answers.
impl From<&fibula_alarms::Alarm> for api::Alarm {
    fn from(alarm: &fibula_alarms::Alarm) -> Self {
        let time = |micros| rfc3339(UNIX_EPOCH + Duration::from_micros(micros));
        Self {
            id: alarm.id,
            rule: alarm.rule.to_string(),
            kind: alarm.kind.to_owned(),
            table: alarm.table.to_string(),
            prefix: alarm.prefix.to_string(),
            expected: alarm.expected.clone(),
            seen: alarm.seen.clone(),
            peer: alarm.peer.clone(),
            as_path: alarm.as_path.clone(),
            begin: time(alarm.begin),
            end: alarm.end.map(time),
        }
    }
}

/// The names of BGP's origins, by number.
const ORIGINS: [&str; 3] = ["igp", "egp", "incomplete"];

/// Attributes in the form of answers; `names` are the names of values.
pub(crate) fn attributes(set: &AttributeSet, names: &ValueNames) -> api::Attributes {
    if let Some(bgp) = set.bgp() {
        return api::Attributes::Bgp(api::Bgp {
            next_hop: bgp.next_hop,
            as_path: bgp.as_path.to_owned(),
            as_path_len: bgp.as_path_len,
            origin_as: bgp.origin_as,
            local_pref: bgp.local_pref,
            med: bgp.med,
            origin: bgp.origin.map(|origin| match ORIGINS.get(usize::from(origin)) {
                Some(name) => (*name).to_owned(),
                None => origin.to_string(),
            }),
            communities: bgp.communities.to_owned(),
        });
    }
    if let Some(next_hops) = set.next_hops() {
        let hop = |hop: &fibula_core::NextHop| api::NextHop {
            gateway: hop.gateway,
            interface: hop.interface,
            weight: hop.weight,
        };
        return api::Attributes::NextHops(api::NextHops {
            route_type: next_hops.kind.to_string(),
            next_hops: next_hops.hops.iter().map(hop).collect(),
        });
    }
    let value = |value: Value<'_>| match value {
        Value::Null => serde_json::Value::Null,
        Value::Int(int) => int.into(),
        Value::Str(text) => text.into(),
    };
    let texts = set.texts();
    let named = set.named(&texts, names).into_iter();
    api::Attributes::Values {
        values: named.map(|(name, v)| (name.into_owned(), value(v))).collect(),
    }
}
