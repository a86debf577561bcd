use fibula_core::{AnyPrefix, Vrf};
use fibula_rib::{Peer, Rib};

/// The prefixes of a VRF that have a route, sorted.
pub fn prefixes(rib: &Rib, vrf: Vrf) -> Vec<AnyPrefix> {
    let v4 = rib.iter::<u32>(vrf).map(|(prefix, _)| prefix.into());
    v4.chain(rib.iter::<u128>(vrf).map(|(prefix, _)| prefix.into())).collect()
}

/// The peer for sources without peers.
pub(crate) const NOBODY: Peer = Peer::new(None, 0);
