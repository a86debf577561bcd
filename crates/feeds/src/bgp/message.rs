//! The effects of a neighbour's messages.

use std::time::Duration;

use fibula_ingest::bgp::{AfiSafi, Message, SessionRules, reset};
use fibula_ingest::{Damage, Sink};
use fibula_rib::{Listener, Peer};

use super::agreed::{Agreed, Fatal, Refresh};
use super::link::{Established, Link, Phase};
use super::neighbour::Neighbour;
use super::notification::{CEASE, HEADER, Notification, kind, write};
use super::resync::Resync;
use super::routes::Routes;
use super::session::{BgpSession, End};
use crate::peer_mapper::PeerMapper;
use crate::{Event, FeedError};

/// Maximum number of bytes that wait for a neighbour that sends requests and does not read.
const MOST_UNSENT: usize = 64 << 10;

/// The listener, and the buffer of bytes to send.
type Ends<'a> = (&'a mut dyn Listener, &'a mut Vec<u8>);

impl BgpSession {
    /// Processes the message at the front of `input` and returns its length; 0 if it is incomplete.
    pub(super) fn message(
        &mut self,
        now: Duration,
        input: &[u8],
        (to, out): Ends<'_>,
    ) -> Result<usize, End> {
        let Some(link) = &mut self.link else { return Ok(0) };
        let Some((kind, len)) = link.frame(input)? else { return Ok(0) };
        let message = &input[..len];
        link.message_received(now);
        match (&mut link.phase, kind) {
            (_, kind::NOTIFICATION) => {
                return Err(End::Theirs(Notification::decode(&message[HEADER..])));
            }
            (Phase::OpenSent, kind::OPEN) => {
                link.phase = Phase::OpenConfirm(Agreed::of(&self.neighbour, message)?);
                link.message_received(now);
                link.keep_alive(now, out);
            }
            (Phase::OpenConfirm(agreed), kind::KEEPALIVE) => {
                let agreed = agreed.clone();
                self.establish(now, agreed, (to, out))?;
            }
            (Phase::Established(_), kind::KEEPALIVE) => {}
            (Phase::Established(_), kind::UPDATE) => self.update(now, message, to)?,
            (Phase::Established(_), kind::ROUTE_REFRESH) => {
                self.refreshes(now, message, (to, out))?;
            }
            _ => return Err(link.unexpected(kind).into()),
        }
        if let Some(link) = &mut self.link {
            link.count += 1;
            link.offset += len as u64;
        }
        Ok(len)
    }

    fn establish(
        &mut self,
        now: Duration,
        agreed: Agreed,
        (to, out): Ends<'_>,
    ) -> Result<(), FeedError> {
        self.revive();
        self.at_most = usize::MAX;
        self.peers.start_over(to)?;
        let Neighbour { address, source, .. } = &self.neighbour;
        self.peer = Some(Peer { address: Some(*address), asn: agreed.asn, source: source.clone() });
        let has_ends = agreed.graceful.is_some();
        if has_ends {
            // We announce nothing, so the End-of-RIB follows at once.
            agreed.families.iter().for_each(|family| write_end(out, *family));
        }
        self.peers.figures.remarks.insert("session", agreed.to_string());
        (self.events)(Event::Established { address: *address, agreed: Box::new(agreed.clone()) });
        if let Some(link) = &mut self.link {
            let local_asn = self.neighbour.local_asn;
            link.messages.judge_by(SessionRules {
                local_asn,
                is_external: agreed.asn != local_asn,
                local_address: self.local_address,
            });
            let resync = Some(Resync::new(&agreed.families, has_ends, now));
            link.phase = Phase::Established(Box::new(Established { agreed, resync }));
        }
        Ok(())
    }

    fn update(&mut self, now: Duration, message: &[u8], to: &mut dyn Listener) -> Result<(), End> {
        let Self { link, peers, peer, events, neighbour, at_most, .. } = self;
        let (Some(link), Some(speaker)) = (link, peer) else { return Ok(()) };
        let Link { phase: Phase::Established(established), messages, count, offset, .. } = link
        else {
            return Ok(());
        };
        let Established { agreed, resync } = &mut **established;
        let is_resync = resync.is_some();
        if let Some(resync) = resync {
            resync.update_received(now);
        }
        let table = &neighbour.table;
        let mapper = PeerMapper::new(&mut *to, (peers, is_resync), (speaker, table), events);
        let mut routes = Routes::new(mapper, agreed);
        let decoded = messages.decode(message, agreed.speaker, 0, &mut routes);
        *at_most = at_most.saturating_add(routes.announced);
        let mut mapper = routes.mapper;
        let mut ended = None;
        match decoded {
            Ok(Message::EndOfRib { afi, safi }) => ended = Some(AfiSafi { afi, safi }),
            Ok(_) => {}
            Err(fault) => {
                if let Some(reset) = reset(message, agreed.speaker) {
                    let notification = Notification::with_data(3, reset.subcode, reset.data);
                    let why = format!("an UPDATE is malformed, {}", reset.fault);
                    return Err(Fatal::new(notification, why).into());
                }
                let what = format!("UPDATE of {speaker}: {fault}; its routes are withdrawn").into();
                let (file, record) = ("".into(), *count + 1);
                let _ = mapper.damage(&Damage { file, record, offset: *offset, what });
            }
        }
        if let Some(failed) = mapper.failed {
            return Err(End::Table(failed));
        }
        if let (Some(family), Some(resync)) = (ended, resync) {
            resync.end(family);
            if resync.is_complete() {
                self.complete(to)?;
            }
        }
        self.check_limit(now, to)
    }

    /// Ends the session if a family has more routes than its limit. The table counts its paths only when the upper
    /// bound exceeds the limit.
    fn check_limit(&mut self, now: Duration, to: &mut dyn Listener) -> Result<(), End> {
        let Some(most) = self.neighbour.most_routes else { return Ok(()) };
        if self.at_most <= most as usize {
            return Ok(());
        }
        let number = self.peers.indices.get(&0);
        let Some(counts) = number.and_then(|&number| to.paths_of(number)) else { return Ok(()) };
        self.at_most = counts.v4.max(counts.v6);
        let (family, name) = match most as usize {
            most if counts.v4 > most => (AfiSafi::IPV4, "IPv4"),
            most if counts.v6 > most => (AfiSafi::IPV6, "IPv6"),
            _ => return Ok(()),
        };
        let pause = self.neighbour.limit_pause;
        self.refused_until = Some(now.saturating_add(pause));
        // RFC 4486, 4: the family and the limit.
        let data = [&family.afi.to_be_bytes()[..], &[family.safi], &most.to_be_bytes()].concat();
        let pause = pause.as_secs();
        let why = format!("it has more than {most} {name} routes, and is refused for {pause} s");
        Err(Fatal::new(Notification::with_data(CEASE, 1, data), why).into())
    }

    /// A ROUTE-REFRESH: the neighbour requests routes, of which we have none, or marks the beginning or end of a
    /// refresh of its own (RFC 7313).
    fn refreshes(&mut self, now: Duration, message: &[u8], (to, out): Ends<'_>) -> Result<(), End> {
        let link = self.link.as_mut();
        let Some(Established { agreed, resync }) = link.and_then(Link::established) else {
            return Ok(());
        };
        let &[high, low, subtype, safi, ref more @ ..] = &message[HEADER..] else { return Ok(()) };
        let family = AfiSafi { afi: u16::from_be_bytes([high, low]), safi };
        if agreed.refresh != Refresh::Demarcated || !agreed.families.contains(&family) {
            return Ok(());
        }
        if matches!(subtype, 1 | 2) && !more.is_empty() {
            let why = format!("a ROUTE-REFRESH has a length of {} bytes", message.len());
            return Err(Fatal::new(Notification::with_data(7, 1, message), why).into());
        }
        match (subtype, resync) {
            (0, _) if out.len() > MOST_UNSENT => {
                let why = "it requests routes and does not read the answers";
                return Err(Fatal::new(Notification::new(CEASE, 8), why).into());
            }
            (0, _) => [1, 2].into_iter().for_each(|subtype| write_refresh(out, family, subtype)),
            (1, Some(resync)) => resync.begin_refresh(family),
            (1, resync @ None) => {
                let mut all = Resync::new(&agreed.families, true, now);
                all.begin_refresh(family);
                *resync = Some(all);
                // The table marks all families of a peer as stale, so the other families are requested as well.
                let others = agreed.families.iter().filter(|other| **other != family);
                others.for_each(|other| write_refresh(out, *other, 0));
                self.peers.start_over(to)?;
            }
            (2, Some(resync)) => {
                resync.end_refresh(family);
                if resync.is_complete() {
                    self.complete(to)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The neighbour has sent its whole table: routes that are still stale are removed.
    pub(super) fn complete(&mut self, to: &mut dyn Listener) -> Result<(), FeedError> {
        if let Some(established) = self.link.as_mut().and_then(Link::established) {
            established.resync = None;
        }
        self.peers.complete(to, &self.events)
    }
}

/// A ROUTE-REFRESH; subtype 0 is a request, 1 and 2 mark the beginning and end of an answer.
pub(super) fn write_refresh(out: &mut Vec<u8>, family: AfiSafi, subtype: u8) {
    let [high, low] = family.afi.to_be_bytes();
    write(out, kind::ROUTE_REFRESH, &[high, low, subtype, family.safi]);
}

/// An End-of-RIB (RFC 4724, 2).
fn write_end(out: &mut Vec<u8>, family: AfiSafi) {
    let [high, low] = family.afi.to_be_bytes();
    match family {
        AfiSafi::IPV4 => write(out, kind::UPDATE, &[0; 4]),
        _ => write(out, kind::UPDATE, &[0, 0, 0, 6, 0x80, 15, 3, high, low, family.safi]),
    }
}
