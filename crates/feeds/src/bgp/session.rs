//! A neighbour's session over its connections: their beginning, their end, and timers.

use std::net::IpAddr;
use std::time::Duration;

use fibula_rib::{Listener, Peer};

use super::agreed::{Agreed, Fatal, Refresh};
use super::link::{Link, Phase};
use super::neighbour::Neighbour;
use super::notification::{CEASE, Notification, SHUTDOWN};
use crate::peer_mapper::Peers;
use crate::{ConnectionRefusal, Event, FeedError, Figures, Protocol, SourceState};

/// The session of one neighbour, over connections that it opens; see the [module](super).
pub struct BgpSession {
    pub(super) neighbour: Neighbour,
    pub(super) link: Option<Link>,
    pub(super) peers: Peers,
    /// The neighbour as a peer of the table; `None` until a session was established.
    pub(super) peer: Option<Peer>,
    /// Our address, to which the neighbour connected.
    pub(super) local_address: Option<IpAddr>,
    /// The time when the routes of a lost session are removed.
    expires: Option<Duration>,
    /// The time until which the neighbour is refused, because it exceeded its limit.
    pub(super) refused_until: Option<Duration>,
    /// An upper bound of the neighbour's routes in each family: the table's last count plus the announcements since.
    pub(super) at_most: usize,
    pub(super) events: Box<dyn Fn(Event) + Send>,
}

/// The reason why a connection ends.
pub(super) enum End {
    /// We sent a NOTIFICATION.
    Ours(Fatal),
    /// The neighbour sent a NOTIFICATION; `None` if it is malformed.
    Theirs(Option<Notification>),
    /// The table cannot go on.
    Table(FeedError),
}

impl From<Fatal> for End {
    fn from(fatal: Fatal) -> Self {
        Self::Ours(fatal)
    }
}

impl From<FeedError> for End {
    fn from(error: FeedError) -> Self {
        Self::Table(error)
    }
}

impl BgpSession {
    /// A neighbour without a connection.
    pub fn new(neighbour: Neighbour) -> Self {
        Self {
            neighbour,
            link: None,
            peers: Peers::default(),
            peer: None,
            local_address: None,
            expires: None,
            refused_until: None,
            at_most: usize::MAX,
            events: Box::new(|_| {}),
        }
    }

    /// Receives events for the operator.
    #[must_use]
    pub fn with_events(mut self, events: impl Fn(Event) + Send + 'static) -> Self {
        self.events = Box::new(events);
        self
    }

    /// The neighbour.
    pub fn neighbour(&self) -> &Neighbour {
        &self.neighbour
    }

    /// The agreement of the OPEN messages, if the session is established.
    pub fn established(&self) -> Option<&Agreed> {
        match &self.link.as_ref()?.phase {
            Phase::Established(established) => Some(&established.agreed),
            _ => None,
        }
    }

    /// Ends the connection with this NOTIFICATION. The routes stay in use as after a lost connection. To remove the
    /// neighbour, also call [`Protocol::end`]; to end the process, do not.
    pub fn shutdown(&mut self, now: Duration, why: &Notification, out: &mut Vec<u8>) {
        if self.link.is_some() {
            self.lose(now);
            out.extend(why.encode());
        }
    }

    fn refusal(&self, subcode: u8, why: &str) -> ConnectionRefusal {
        let why = format!("neighbour {}: {why}", self.neighbour.address);
        ConnectionRefusal { farewell: Notification::new(CEASE, subcode).encode(), why }
    }

    /// Whether the neighbour exceeded its limit and is still refused.
    fn paused(&self, now: Duration) -> Option<ConnectionRefusal> {
        self.refused_until
            .filter(|&until| now < until)
            .map(|_| self.refusal(5, "it exceeded its limit of routes a short while ago"))
    }

    /// Drops the connection; its routes stay in use. Returns how long they stay, if there was a session.
    fn lose(&mut self, now: Duration) -> Option<Duration> {
        let Phase::Established(established) = self.link.take()?.phase else { return None };
        let restart = established.agreed.graceful.and_then(|graceful| graceful.time);
        let hold = restart.unwrap_or(self.neighbour.hold);
        self.expires = Some(now.saturating_add(hold));
        Some(hold)
    }

    /// Routes of an earlier session no longer expire.
    pub(super) fn revive(&mut self) {
        self.expires = None;
    }

    /// Ends the connection, with the reason as a sentence.
    fn end_link(
        &mut self,
        now: Duration,
        end: End,
        (to, out): (&mut dyn Listener, &mut Vec<u8>),
    ) -> FeedError {
        let hold = self.lose(now);
        let (notification, what) = match end {
            End::Ours(Fatal { notification, why }) => (Some(notification), why),
            End::Theirs(Some(why)) => (None, format!("it ended the session: {why}")),
            End::Theirs(None) => {
                (None, "it ended the session with a NOTIFICATION that makes no sense".to_owned())
            }
            End::Table(error) => {
                // The table keeps the neighbour's routes, as for any lost connection.
                out.extend(Notification::new(CEASE, 8).encode());
                return error;
            }
        };
        let mut text = format!("neighbour {}: {what}", self.neighbour.address);
        if let Some(notification) = &notification {
            out.extend(notification.encode());
            text += &format!(" (sent: {notification})");
        }
        // Silence (Hold Timer Expired) is a lost connection. After any other NOTIFICATION, of ours or of
        // theirs, the session has ended, and its routes with it (RFC 4271, 8.2.2; RFC 4724, 4.2).
        match hold {
            Some(hold) if notification.is_some_and(|n| n.code == 4) => {
                text += &format!("; its routes serve for {} s", hold.as_secs());
            }
            Some(_) => {
                self.expires = None;
                if let Err(error) = self.peers.end(to) {
                    return error;
                }
            }
            None => {}
        }
        FeedError::Ended(text)
    }
}

impl Protocol for BgpSession {
    /// RFC 4271, 6.8, for a speaker that opens no connections; see the [module](super).
    fn admit(&mut self, now: Duration, out: &mut Vec<u8>) -> Result<(), ConnectionRefusal> {
        if let Some(refusal) = self.paused(now) {
            return Err(refusal);
        }
        if self.established().is_some_and(|agreed| agreed.graceful.is_none()) {
            if let Some(link) = &mut self.link {
                // If the neighbour has restarted, its system resets that connection now, and its next attempt is
                // accepted.
                link.keep_alive(now, out);
            }
            return Err(self.refusal(7, "it has an established session already"));
        }
        Ok(())
    }

    fn local_address(&mut self, address: IpAddr) {
        self.local_address = Some(address);
    }

    fn connected(
        &mut self,
        now: Duration,
        _: &mut dyn Listener,
        out: &mut Vec<u8>,
    ) -> Result<(), FeedError> {
        self.lose(now);
        self.peers.figures.connections += 1;
        if let Some(refusal) = self.paused(now) {
            out.extend(refusal.farewell);
            return Err(FeedError::Ended(refusal.why));
        }
        self.link = Some(Link::new(&self.neighbour, now));
        let open = self.neighbour.open().encode();
        out.extend(open.map_err(|fault| FeedError::Ended(fault.to_string()))?);
        Ok(())
    }

    fn bytes(
        &mut self,
        now: Duration,
        bytes: &[u8],
        to: &mut dyn Listener,
        out: &mut Vec<u8>,
    ) -> Result<(), FeedError> {
        let Some(link) = &mut self.link else { return Ok(()) };
        self.peers.figures.bytes += bytes.len() as u64;
        let mut pending = std::mem::take(&mut link.pending);
        let is_pending = !pending.is_empty();
        if is_pending {
            pending.extend(bytes);
        }
        let input = if is_pending { &pending } else { bytes };
        let mut taken = 0;
        loop {
            match self.message(now, &input[taken..], (&mut *to, out)) {
                Ok(0) => break,
                Ok(len) => taken += len,
                Err(end) => return Err(self.end_link(now, end, (to, out))),
            }
        }
        let rest = match is_pending {
            true => {
                pending.drain(..taken);
                pending
            }
            false => bytes[taken..].to_vec(),
        };
        if let Some(link) = &mut self.link {
            link.pending = rest;
        }
        Ok(())
    }

    fn disconnected(&mut self, now: Duration) {
        self.lose(now);
    }

    fn tick(
        &mut self,
        now: Duration,
        to: &mut dyn Listener,
        out: &mut Vec<u8>,
    ) -> Result<(), FeedError> {
        if let Some(link) = &mut self.link {
            if link.is_dead(now) {
                let why = "it was silent for longer than its hold time";
                let fatal = Fatal::new(Notification::new(4, 0), why);
                return Err(self.end_link(now, End::Ours(fatal), (to, out)));
            }
            if link.must_keep_alive(now) {
                link.keep_alive(now, out);
            }
            if link.resync_deadline(&self.neighbour).is_some_and(|deadline| now >= deadline) {
                self.complete(to)?;
            }
        }
        if self.expires.is_some_and(|expires| now >= expires) {
            self.expires = None;
            let peers = self.peers.all.len();
            self.peers.end(to)?;
            (self.events)(Event::Expired { peers });
        }
        Ok(())
    }

    fn deadline(&self) -> Option<Duration> {
        let link = self.link.as_ref().and_then(|link| link.deadline(&self.neighbour));
        [link, self.expires].into_iter().flatten().min()
    }

    fn refresh(
        &mut self,
        _: Duration,
        _: &mut dyn Listener,
        out: &mut Vec<u8>,
    ) -> Result<bool, FeedError> {
        let Some(agreed) = self.established() else { return Ok(false) };
        if agreed.refresh == Refresh::None {
            return Ok(false);
        }
        agreed.families.iter().for_each(|family| super::message::write_refresh(out, *family, 0));
        Ok(true)
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if self.link.is_some() {
            out.extend(Notification::shutdown(SHUTDOWN, "fibula ends").encode());
        }
    }

    fn end(&mut self, to: &mut dyn Listener) -> Result<(), FeedError> {
        self.link = None;
        self.expires = None;
        self.peers.end(to)
    }

    fn adopt(&mut self, peer: u32, now: Duration) {
        self.peers.all.insert(peer);
        if self.established().is_none() {
            self.expires = Some(now.saturating_add(self.neighbour.hold));
        }
    }

    fn state(&self) -> SourceState {
        match self.link.as_ref().map(|link| &link.phase) {
            Some(Phase::Established(established)) => match established.resync {
                Some(_) => SourceState::Resync,
                None => SourceState::Up,
            },
            _ if self.expires.is_some() => SourceState::Lost,
            _ => SourceState::Idle,
        }
    }

    fn expires(&self) -> Option<Duration> {
        self.expires
    }

    fn figures(&self) -> Figures {
        self.peers.figures.clone()
    }
}
