//! MRT: the dumps of route collectors and routing daemons (RFC 6396, RFC 8050, and earlier forms).
//!
//! | type | subtypes | becomes |
//! |---|---|---|
//! | TABLE_DUMP (12) | IPv4, IPv6 | an announcement a record; batches of 1999 with short lengths too |
//! | TABLE_DUMP_V2 (13) | PEER_INDEX_TABLE; RIB for IPv4, IPv6, generic; each with ADD-PATH | an announcement a peer and path |
//! | BGP4MP (16), BGP4MP_ET (17) | MESSAGE with 2- and 4-byte AS, with ADD-PATH; ENTRY | announcements and withdrawals |
//! | | STATE_CHANGE | a [`PeerState`](crate::PeerState) |
//! | BGP (5) | UPDATE, STATE_CHANGE of 1999 | as BGP4MP |
//!
//! Multicast, labelled and other families, messages that the collector sent, OSPF and IS-IS are counted as ignored. The
//! path of a two-byte speaker is completed from its AS4_PATH. An UPDATE with malformed or missing attributes withdraws
//! its routes (RFC 7606). Of an UPDATE with a malformed list of prefixes, the prefixes before the error are kept, as in
//! bgpdump. Of a RIB record, only the malformed routes are lost. Path identifiers are also recognised in records that
//! are not of an ADD-PATH subtype (BIRD wrote such records). What is doubtful in a route is counted
//! ([`Sink::noted`]), by the rules of [`SessionRules`](crate::bgp::SessionRules).
//!
//! This reader does not parse all of BGP: it keeps only the data that a routing table needs (AS path, next hop, origin,
//! MED, local preference, AGGREGATOR, communities, large and extended communities; AIGP and all others are
//! passed over), borrows everything from the input and allocates nothing for a record.
//!
//! ```
//! use fibula_ingest::{Collected, Decoder, Tail, bgp::BgpOptions, mrt::MrtDecoder};
//!
//! // A BGP4MP_MESSAGE: AS 64500 at 192.0.2.1 announces 198.51.100.0/24.
//! let record = [
//!     &[0x56, 0x29, 0x78, 0x80, 0, 16, 0, 1, 0, 0, 0, 61][..], // time, type, subtype, length
//!     &[0xfb, 0xf4, 0xfd, 0xe8, 0, 0, 0, 1], // peer and local AS, interface, IPv4
//!     &[192, 0, 2, 1, 192, 0, 2, 2],         // peer, local address
//!     &[0xff; 16],
//!     &[0, 45, 2],                           // BGP: length, UPDATE
//!     &[0, 0, 0, 18],                        // nothing withdrawn, 18 bytes of attributes
//!     &[0x40, 1, 1, 0],                      // ORIGIN
//!     &[0x40, 2, 4, 2, 1, 0xfb, 0xf4],       // AS_PATH
//!     &[0x40, 3, 4, 192, 0, 2, 1],           // NEXT_HOP
//!     &[24, 198, 51, 100],
//! ]
//! .concat();
//! let mut sink = Collected::default();
//! MrtDecoder::new(BgpOptions::default()).decode(&record, Tail::End, &mut sink)?;
//! assert_eq!(sink.lines, ["+ 0 198.51.100.0/24 192.0.2.1 64500"]);
//! # Ok::<(), fibula_ingest::StopReason>(())
//! ```

mod bgp4mp;
mod frame;
mod peers;
mod table_dump;
mod table_dump_v2;
#[cfg(test)]
mod tests;

pub(crate) use frame::looks_like_mrt;

use frame::{Frame, HEADER, Header, Resync, kind};
use peers::Peers;

use crate::bgp::{BgpOptions, Cursor, DecodeFault, Out, Scratch};
use crate::position::each_record;
use crate::{Damage, Decoder, Sink, SourceInfo, StopReason, Tail};

/// Decodes MRT; see the [module](self).
#[derive(Debug, Default)]
pub struct MrtDecoder {
    options: BgpOptions,
    peers: Peers,
    scratch: Scratch,
    begun: bool,
    warned: bool,
    records: u64,
    offset: u64,
    time: Option<u32>,
    lost: Option<Lost>,
}

/// A stretch of input in which no record was found as yet.
#[derive(Debug)]
struct Lost {
    offset: u64,
    header: Header,
}

impl MrtDecoder {
    /// A decoder.
    pub fn new(options: BgpOptions) -> Self {
        Self { options, ..Self::default() }
    }

    fn begin(&mut self, date: Option<u32>, sink: &mut dyn Sink) {
        if !std::mem::replace(&mut self.begun, true) {
            let date = date.map(u64::from);
            sink.begin(&SourceInfo { format: "mrt", bgp: true, date, ..SourceInfo::default() });
        }
    }

    /// Decodes or skips the record at the beginning of `rest`. Returns its length, 0 if more input is needed.
    fn step(&mut self, rest: &[u8], tail: Tail, sink: &mut dyn Sink) -> Result<usize, StopReason> {
        if self.lost.is_some() {
            return self.search(rest, tail, sink);
        }
        match frame::next(rest, tail) {
            Frame::Need => Ok(0),
            Frame::Record(header, len) => {
                self.records += 1;
                self.time = Some(header.time);
                self.begin(self.time, sink);
                let record = &rest[..HEADER + len];
                if let Err(fault) = self.record(header, &record[HEADER..], sink) {
                    let place = HEADER + fault.at;
                    let what = format!("{} (byte {place} of the record)", fault.what);
                    self.report(self.offset, what, sink)?;
                }
                Ok(record.len())
            }
            Frame::Cut(header) => {
                self.records += 1;
                let what = match header {
                    None => "the last record's header is cut short".to_owned(),
                    Some(header) => format!(
                        "the last record is cut short: {} bytes of {}",
                        rest.len() - HEADER,
                        header.len
                    ),
                };
                self.report(self.offset, what, sink)?;
                Ok(rest.len())
            }
            Frame::Lost(header) => {
                self.records += 1;
                self.lost = Some(Lost { offset: self.offset, header });
                Ok(1)
            }
        }
    }

    /// Searches for the next record.
    fn search(
        &mut self,
        rest: &[u8],
        tail: Tail,
        sink: &mut dyn Sink,
    ) -> Result<usize, StopReason> {
        let (len, is_over) = match frame::resync(rest, self.time, tail) {
            Resync::Need(len) => (len, false),
            Resync::Found(len) => (len, true),
            Resync::Nothing => (rest.len(), true),
        };
        if is_over && let Some(Lost { offset, header }) = self.lost.take() {
            let skipped = self.offset + len as u64 - offset;
            let Header { kind, subtype, len: declared, .. } = header;
            let what = format!(
                "no record begins here (type {kind}, subtype {subtype}, length {declared}); \
                 {skipped} bytes skipped up to the next"
            );
            self.report(offset, what, sink)?;
            if len == 0 {
                return self.step(rest, tail, sink);
            }
        }
        Ok(len)
    }

    fn report(&self, offset: u64, what: String, sink: &mut dyn Sink) -> Result<(), StopReason> {
        match sink.damage(&Damage::new(self.records, offset, what)).is_break() {
            true => Err(StopReason::BySink),
            false => Ok(()),
        }
    }

    fn record(
        &mut self,
        header: Header,
        body: &[u8],
        sink: &mut dyn Sink,
    ) -> Result<(), DecodeFault> {
        let mut body = Cursor::new(body);
        let mut time = u64::from(header.time) * 1_000_000;
        if header.kind == kind::BGP4MP_ET {
            time += u64::from(body.u32("microseconds")?);
        }
        let had_table = self.peers.has_table();
        let peers = &mut self.peers;
        let Self { scratch, options, .. } = self;
        let (options, is_monitored, receiver, rules) = (*options, false, None, None);
        // A dump has one table; routes of VPNs would be mixed with those of the main one.
        let mut out =
            Out { sink, scratch, options, time, vrfs: None, is_monitored, receiver, rules };
        match header.kind {
            kind::TABLE_DUMP => table_dump::decode(body, header.subtype, peers, &mut out),
            kind::BGP4MP | kind::BGP4MP_ET => bgp4mp::decode(body, header.subtype, peers, &mut out),
            kind::BGP => bgp4mp::decode_legacy(body, header.subtype, peers, &mut out),
            kind::TABLE_DUMP_V2 => {
                table_dump_v2::decode(body, header.subtype, peers, &mut out)?;
                let is_orphan = !had_table && !self.peers.has_table();
                if is_orphan && !std::mem::replace(&mut self.warned, true) {
                    return Err(body.fault(
                        "no PEER_INDEX_TABLE comes before: the peers' addresses are unknown",
                    ));
                }
                Ok(())
            }
            _ => {
                out.sink.ignored("records of other protocols than BGP");
                Ok(())
            }
        }
    }
}

impl Decoder for MrtDecoder {
    fn decode(
        &mut self,
        input: &[u8],
        tail: Tail,
        sink: &mut dyn Sink,
    ) -> Result<usize, StopReason> {
        let at = each_record(input, |rest| {
            let taken = self.step(rest, tail, &mut *sink)?;
            self.offset += taken as u64;
            Ok(taken)
        })?;
        if tail.is_last() {
            if let Some(lost) = self.lost.take() {
                self.report(lost.offset, "no record begins in the last byte".to_owned(), sink)?;
            }
            self.begin(None, sink);
        }
        Ok(at)
    }

    fn records(&self) -> u64 {
        self.records
    }
}
