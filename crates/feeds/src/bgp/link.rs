//! One connection: its messages, its timers, and the state of its session.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use fibula_ingest::bgp::Messages;

use super::agreed::{Agreed, Fatal};
use super::neighbour::Neighbour;
use super::notification::{HEADER, Notification, kind, write};
use super::resync::Resync;

/// The same number for the same value, in this and in every process: jitter is no secret.
fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// How long a neighbour may take to send its OPEN (RFC 4271, 8: a large hold time).
const OPEN_TIME: Duration = Duration::from_secs(240);

/// A connection.
pub(super) struct Link {
    pub(super) phase: Phase,
    pub(super) messages: Messages,
    /// The received part of an incomplete message.
    pub(super) pending: Vec<u8>,
    /// Numbers of the messages and bytes before `pending`.
    pub(super) count: u64,
    pub(super) offset: u64,
    /// The times when the neighbour counts as gone and when the next KEEPALIVE is due.
    hold: Option<Duration>,
    keepalive: Option<Duration>,
    /// The random numbers for the times of KEEPALIVEs.
    seed: u64,
}

/// The states of RFC 4271, 8.2.2 that a connection has. OPEN is sent as it begins: there is no Connect.
pub(super) enum Phase {
    OpenSent,
    OpenConfirm(Agreed),
    Established(Box<Established>),
}

pub(super) struct Established {
    pub(super) agreed: Agreed,
    /// Set while the neighbour has not sent its whole table.
    pub(super) resync: Option<Resync>,
}

impl Link {
    pub(super) fn new(neighbour: &Neighbour, now: Duration) -> Self {
        Self {
            phase: Phase::OpenSent,
            messages: Messages::new(neighbour.attributes),
            pending: Vec::new(),
            count: 0,
            offset: 0,
            hold: Some(now.saturating_add(OPEN_TIME)),
            keepalive: None,
            seed: hash(&(neighbour.address, now)),
        }
    }

    pub(super) fn agreed(&self) -> Option<&Agreed> {
        match &self.phase {
            Phase::OpenSent => None,
            Phase::OpenConfirm(agreed) => Some(agreed),
            Phase::Established(established) => Some(&established.agreed),
        }
    }

    pub(super) fn established(&mut self) -> Option<&mut Established> {
        match &mut self.phase {
            Phase::Established(established) => Some(established),
            _ => None,
        }
    }

    /// The type and the length of the message at the front of `input`; `None` if it is incomplete.
    pub(super) fn frame(&self, input: &[u8]) -> Result<Option<(u8, usize)>, Fatal> {
        let refuse = |subcode, data: &[u8], why: String| {
            Err(Fatal::new(Notification::with_data(1, subcode, data), why))
        };
        if input.iter().take(16).any(|&byte| byte != 0xff) {
            return refuse(1, &[], "a message does not begin with the marker of BGP".to_owned());
        }
        let Some(&[.., high, low, kind]) = input.first_chunk::<HEADER>() else { return Ok(None) };
        let len = usize::from(u16::from_be_bytes([high, low]));
        let longest = self.agreed().map_or(4096, |agreed| agreed.longest_message);
        // OPEN and KEEPALIVE have no long form (RFC 8654, 4).
        let (least, most) = match kind {
            kind::OPEN => (29, 4096),
            kind::UPDATE | kind::ROUTE_REFRESH => (23, longest),
            kind::NOTIFICATION => (21, longest),
            kind::KEEPALIVE => (HEADER, HEADER),
            _ => (HEADER, longest),
        };
        if !(least..=most).contains(&len) {
            let why = format!("a message of type {kind} has a length of {len} bytes");
            return refuse(2, &[high, low], why);
        }
        if !(kind::OPEN..=kind::ROUTE_REFRESH).contains(&kind) {
            return refuse(3, &[kind], format!("a message is of type {kind}, which is unknown"));
        }
        Ok((input.len() >= len).then_some((kind, len)))
    }

    /// A message of this type has no place in this state (RFC 6608).
    pub(super) fn unexpected(&self, kind: u8) -> Fatal {
        let (subcode, state) = match self.phase {
            Phase::OpenSent => (1, "OpenSent"),
            Phase::OpenConfirm(_) => (2, "OpenConfirm"),
            Phase::Established(_) => (3, "Established"),
        };
        let why = format!("a message of type {kind} came in state {state}");
        Fatal::new(Notification::with_data(5, subcode, [kind]), why)
    }

    /// Restarts the hold timer after a message of the neighbour.
    pub(super) fn message_received(&mut self, now: Duration) {
        if let Some(agreed) = self.agreed() {
            self.hold = agreed.hold_time.map(|time| now.saturating_add(time));
        }
    }

    /// Sends a KEEPALIVE; the next one is due after a third of the hold time, or up to a quarter of that earlier: the
    /// sessions of a collector that began together would otherwise always send together (RFC 4271, 10).
    pub(super) fn keep_alive(&mut self, now: Duration, out: &mut Vec<u8>) {
        write(out, kind::KEEPALIVE, &[]);
        self.seed = hash(&self.seed);
        let time = self.agreed().and_then(|agreed| agreed.hold_time);
        // 769 to 1024 parts of 1024.
        let parts = 1024 - (self.seed % 256) as u32;
        self.keepalive = time.map(|time| now.saturating_add(time / 3 * parts / 1024));
    }

    pub(super) fn is_dead(&self, now: Duration) -> bool {
        self.hold.is_some_and(|hold| now >= hold)
    }

    pub(super) fn must_keep_alive(&self, now: Duration) -> bool {
        self.keepalive.is_some_and(|due| now >= due)
    }

    /// The time when the neighbour's table counts as complete.
    pub(super) fn resync_deadline(&self, neighbour: &Neighbour) -> Option<Duration> {
        let Phase::Established(established) = &self.phase else { return None };
        let resync = established.resync.as_ref()?;
        Some(resync.deadline(neighbour.quiet, neighbour.longest_resync))
    }

    pub(super) fn deadline(&self, neighbour: &Neighbour) -> Option<Duration> {
        let resync = self.resync_deadline(neighbour);
        [self.hold, self.keepalive, resync].into_iter().flatten().min()
    }
}
