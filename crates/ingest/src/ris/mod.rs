//! RIS Live: the updates that RIPE's route collectors receive, as lines of JSON
//! (<https://ris-live.ripe.net/manual/>).
//!
//! A line is a message of the service, `{"type": "ris_message", "data": {...}}`, or only the object under `data`:
//!
//! | `type` of the data | becomes |
//! |---|---|
//! | `UPDATE` | withdrawals, then announcements |
//! | `RIS_PEER_STATE` | a [`PeerState`](crate::PeerState); a peer that is not `connected` takes its routes along |
//! | `OPEN`, `KEEPALIVE`, `NOTIFICATION` | ignored; `RIS_PEER_STATE` reports a lost session |
//!
//! Errors of the service are [remarks](Sink::remark); its other messages are ignored. Address, AS and collector
//! together identify a peer: [`PeerInfo::view`] is the collector, `rrc21`. The service sends changes without tables,
//! so a peer is never complete.
//!
//! An invalid line is damage, with its number. Of an `UPDATE` with an invalid field, the prefixes are withdrawn, as
//! RFC 7606 requires for BGP itself.
//!
//! ```
//! use fibula_ingest::{Collected, Decoder, Tail, bgp::BgpOptions, ris::RisDecoder};
//!
//! let line = br#"{"type": "ris_message", "data": {"timestamp": 1717245600.25, "peer": "192.0.2.1",
//!     "peer_asn": "64500", "host": "rrc21.ripe.net", "type": "UPDATE", "path": [64500, 64501, [64502, 64503]],
//!     "origin": "IGP", "community": [[64500, 1]], "announcements": [{"next_hop": "2001:db8::1,fe80::1",
//!     "prefixes": ["2001:db8:1::/48"]}], "withdrawals": ["2001:db8:2::/48"]}}"#;
//! let line: Vec<u8> = line.iter().copied().filter(|&byte| byte != b'\n').collect();
//! let mut sink = Collected::default();
//! RisDecoder::new(BgpOptions::default()).decode(&line, Tail::End, &mut sink)?;
//! assert_eq!(sink.lines, ["- 0 2001:db8:2::/48", "+ 0 2001:db8:1::/48 2001:db8::1 none"]);
//! assert_eq!(sink.peers[0].view, "rrc21");
//! # Ok::<(), fibula_ingest::StopReason>(())
//! ```

mod message;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use memchr::memchr;
use serde_json::Value as Json;

use crate::bgp::BgpOptions;
use crate::{Damage, Decoder, PeerInfo, Sink, SourceInfo, StopReason, Tail};
use message::{Data, MessageKind};

/// More peers than all collectors have; a stream that names more is hostile or garbled.
const MOST_PEERS: usize = 65_536;

/// Whether a file that begins so has lines of RIS Live.
pub(crate) fn detect(head: &[u8]) -> bool {
    let line = head.trim_ascii_start().split(|&byte| byte == b'\n').next().unwrap_or_default();
    line.starts_with(b"{") && memchr::memmem::find(line, b"\"ris_message\"").is_some()
}

/// Decodes lines of RIS Live; see the [module](self).
#[derive(Debug, Default)]
pub struct RisDecoder {
    options: BgpOptions,
    peers: HashMap<PeerInfo, u32>,
    begun: bool,
    records: u64,
    offset: u64,
}

impl RisDecoder {
    /// A decoder.
    pub fn new(options: BgpOptions) -> Self {
        Self { options, ..Self::default() }
    }

    fn begin(&mut self, sink: &mut dyn Sink) {
        if !std::mem::replace(&mut self.begun, true) {
            sink.begin(&SourceInfo { format: "ris", bgp: true, ..SourceInfo::default() });
        }
    }

    fn line(&mut self, line: &[u8], sink: &mut dyn Sink) -> Result<(), StopReason> {
        self.records += 1;
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(());
        }
        self.begin(sink);
        match self.message(line, sink) {
            Ok(()) => Ok(()),
            Err(what) => self.report(what, sink),
        }
    }

    fn report(&self, what: String, sink: &mut dyn Sink) -> Result<(), StopReason> {
        match sink.damage(&Damage::new(self.records, self.offset, what)).is_break() {
            true => Err(StopReason::BySink),
            false => Ok(()),
        }
    }

    fn message(&mut self, line: &[u8], sink: &mut dyn Sink) -> Result<(), String> {
        let json: Json = serde_json::from_slice(line)
            .map_err(|error| format!("no JSON, at column {}: {error}", error.column()))?;
        let data = match (json["type"].as_str(), &json["data"]) {
            (Some("ris_message"), data) => data,
            (Some("ris_error"), data) => {
                let text = data["message"].as_str().unwrap_or("no message is given");
                sink.remark("error", text);
                return Ok(());
            }
            (Some("UPDATE" | "RIS_PEER_STATE" | "OPEN" | "KEEPALIVE" | "NOTIFICATION"), _) => &json,
            (Some(_), _) => {
                sink.ignored("messages of RIS Live about itself");
                return Ok(());
            }
            (None, _) => return Err("no message of RIS Live: it has no type".to_owned()),
        };
        let data = Data::read(data)?;
        let peer = self.peer(&data, sink)?;
        match data.what {
            MessageKind::Update => data.update(peer, self.options, sink),
            MessageKind::State => data.state(peer, sink),
            MessageKind::Other => {
                sink.ignored("messages of BGP other than UPDATE");
                Ok(())
            }
        }
    }

    /// The number of the peer, declared to the sink if it is new.
    fn peer(&mut self, data: &Data<'_>, sink: &mut dyn Sink) -> Result<u32, String> {
        let info = PeerInfo {
            view: data.collector.to_owned(),
            ..PeerInfo::new(Some(data.address), data.asn, None)
        };
        if let Some(&number) = self.peers.get(&info) {
            return Ok(number);
        }
        if self.peers.len() >= MOST_PEERS {
            return Err("there are too many peers".to_owned());
        }
        let number = self.peers.len() as u32;
        sink.peer(number, &info);
        self.peers.insert(info, number);
        Ok(number)
    }
}

impl Decoder for RisDecoder {
    fn decode(
        &mut self,
        input: &[u8],
        tail: Tail,
        sink: &mut dyn Sink,
    ) -> Result<usize, StopReason> {
        let mut at = 0;
        while let Some(len) = memchr(b'\n', &input[at..]) {
            self.line(&input[at..at + len], sink)?;
            at += len + 1;
            self.offset += len as u64 + 1;
        }
        let rest = &input[at..];
        match tail {
            Tail::More => return Ok(at),
            Tail::End => self.line(rest, sink)?,
            Tail::Cut if rest.trim_ascii().is_empty() => {}
            Tail::Cut => {
                self.records += 1;
                self.begin(sink);
                self.report("the last line is cut off".to_owned(), sink)?;
            }
        }
        self.offset += rest.len() as u64;
        self.begin(sink);
        Ok(input.len())
    }

    fn records(&self) -> u64 {
        self.records
    }
}
