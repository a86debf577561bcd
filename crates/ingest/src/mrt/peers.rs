//! Peers and their indices.

use std::collections::HashMap;
use std::net::IpAddr;

use crate::bgp::{Afi, AsWidth, Cursor, DecodeFault};
use crate::{PeerInfo, Sink};

/// More peers than all collectors have; a file that names more is hostile or garbled.
const MOST: usize = 1 << 18;
const TOO_MANY: &str = "there are too many peers";

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
    fn number(
        &mut self,
        peer: PeerInfo,
        at: &Cursor<'_>,
        sink: &mut dyn Sink,
    ) -> Result<u32, DecodeFault> {
        if let Some((last, number)) = &self.last
            && *last == peer
        {
            return Ok(*number);
        }
        let next = self.count();
        let number = match self.numbers.get(&peer) {
            Some(&number) => number,
            None if self.numbers.len() >= MOST => return Err(at.fault(TOO_MANY)),
            None => {
                sink.peer(next, &peer);
                self.numbers.insert(peer.clone(), next);
                next
            }
        };
        self.last = Some((peer, number));
        Ok(number)
    }

    /// The sender of the message that begins `at` this place.
    pub(super) fn speaker(
        &mut self,
        (address, asn): (IpAddr, u32),
        at: &Cursor<'_>,
        sink: &mut dyn Sink,
    ) -> Result<u32, DecodeFault> {
        self.number(PeerInfo::new(Some(address), asn, None), at, sink)
    }

    fn count(&self) -> u32 {
        // Both have a bound.
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
        // If this one cannot be read, the entries that follow are not of the peers of an earlier one.
        self.table = None;
        body.u32("collector's BGP identifier")?;
        let len = body.u16("view name's length")?;
        body.bytes(len.into(), "view name")?;
        let count = body.u16("peer count")?;
        let mut table = Vec::new();
        for _ in 0..count {
            let start = body;
            let kind = body.u8("peer type")?;
            let bgp_id = body.u32("peer's BGP identifier")?;
            let afi = if kind & 1 == 0 { Afi::V4 } else { Afi::V6 };
            let address = body.address(afi, "peer's address")?;
            let width = if kind & 2 == 0 { AsWidth::Two } else { AsWidth::Four };
            let asn = body.asn(width, "peer's AS number")?;
            let peer = PeerInfo::new(Some(address), asn, Some(bgp_id));
            table.push(self.number(peer, &start, sink)?);
        }
        self.table = Some(table);
        Ok(())
    }
}
