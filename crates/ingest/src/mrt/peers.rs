//! Peers and their indices.

use std::collections::HashMap;
use std::net::IpAddr;

use crate::bgp::{Afi, AsWidth, Cursor, DecodeFault};
use crate::{PeerInfo, Sink};

/// Numbers peers in the order in which they turn up. Indices of a PEER_INDEX_TABLE are mapped to
/// these, so that concatenated dumps do not mix their peers up.
#[derive(Debug, Default)]
pub(super) struct Peers {
    numbers: HashMap<PeerInfo, u32>,
    /// By index of the last PEER_INDEX_TABLE.
    table: Option<Vec<u32>>,
    /// By index, where a dump lacks its table.
    unknown: HashMap<u16, u32>,
    /// Messages come in runs of one peer.
    last: Option<(PeerInfo, u32)>,
}

impl Peers {
    /// The number of the peer, declared to the sink if it is new.
    pub(super) fn number(&mut self, peer: PeerInfo, sink: &mut dyn Sink) -> u32 {
        if let Some((last, number)) = &self.last
            && *last == peer
        {
            return *number;
        }
        let next = self.count();
        let number = *self.numbers.entry(peer.clone()).or_insert_with(|| {
            sink.peer(next, &peer);
            next
        });
        self.last = Some((peer, number));
        number
    }

    /// The sender of a message.
    pub(super) fn speaker(&mut self, address: IpAddr, asn: u32, sink: &mut dyn Sink) -> u32 {
        self.number(PeerInfo::new(Some(address), asn, None), sink)
    }

    fn count(&self) -> u32 {
        // Each takes at least six bytes of input: 2^32 of them do not occur.
        (self.numbers.len() + self.unknown.len()) as u32
    }

    /// The peer at `index` of the dump's table; `None` if the table has no such index.
    pub(super) fn indexed(&mut self, index: u16, sink: &mut dyn Sink) -> Option<u32> {
        if let Some(table) = &self.table {
            return table.get(usize::from(index)).copied();
        }
        let next = self.count();
        Some(*self.unknown.entry(index).or_insert_with(|| {
            sink.peer(next, &PeerInfo::new(None, 0, None));
            next
        }))
    }

    /// Whether a PEER_INDEX_TABLE was seen.
    pub(super) fn has_table(&self) -> bool {
        self.table.is_some()
    }

    /// Reads a PEER_INDEX_TABLE (RFC 6396, 4.3.1).
    pub(super) fn read_table(
        &mut self,
        mut body: Cursor<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), DecodeFault> {
        body.u32("collector's BGP identifier")?;
        let len = body.u16("view name's length")?;
        body.bytes(len.into(), "view name")?;
        let count = body.u16("peer count")?;
        let mut table = Vec::new();
        for _ in 0..count {
            let kind = body.u8("peer type")?;
            let bgp_id = body.u32("peer's BGP identifier")?;
            let afi = if kind & 1 == 0 { Afi::V4 } else { Afi::V6 };
            let address = body.address(afi, "peer's address")?;
            let width = if kind & 2 == 0 { AsWidth::Two } else { AsWidth::Four };
            let asn = body.asn(width, "peer's AS number")?;
            let peer = PeerInfo::new(Some(address), asn, Some(bgp_id));
            table.push(self.number(peer, sink));
        }
        self.table = Some(table);
        Ok(())
    }
}
