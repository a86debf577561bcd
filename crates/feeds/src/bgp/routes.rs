use std::ops::ControlFlow;

use fibula_core::{AnyPrefix, Change, Update};
use fibula_ingest::bgp::AfiSafi;
use fibula_ingest::{Damage, Sink};

use super::agreed::Agreed;
use crate::peer_mapper::PeerMapper;

/// Between the decoder of UPDATE messages and the table: drops routes of families that were not negotiated.
pub(super) struct Routes<'a> {
    pub(super) mapper: PeerMapper<'a>,
    families: (bool, bool),
    /// Number of announced routes.
    pub(super) announced: usize,
}

impl<'a> Routes<'a> {
    pub(super) fn new(mapper: PeerMapper<'a>, agreed: &Agreed) -> Self {
        let has = |family| agreed.families.contains(&family);
        let families = (has(AfiSafi::IPV4), has(AfiSafi::IPV6));
        Self { mapper, families, announced: 0 }
    }
}

impl Sink for Routes<'_> {
    fn update(&mut self, update: &Update<'_>) {
        let is_agreed = match update.prefix {
            AnyPrefix::V4(_) => self.families.0,
            AnyPrefix::V6(_) => self.families.1,
        };
        // The decoder also reads routes of VPNs, of further routing instances.
        if !is_agreed || update.vrf != 0 {
            return self.mapper.ignored("routes of a family that the session is not about");
        }
        self.announced += usize::from(matches!(update.change, Change::Announce(_)));
        self.mapper.update(update);
    }

    fn damage(&mut self, damage: &Damage) -> ControlFlow<()> {
        self.mapper.damage(damage)
    }

    fn ignored(&mut self, what: &'static str) {
        self.mapper.ignored(what);
    }

    fn noted(&mut self, what: &'static str) {
        self.mapper.noted(what);
    }
}
