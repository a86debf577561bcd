//! The protocol: requests, notifications, and when to dump again.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fibula_ingest::netlink::{NetlinkDecoder, Notices};
use fibula_ingest::{Decoder, Sink, StopReason, Tail};

use super::request::Part;
use super::{KernelOptions, Overruns};
use fibula_rib::Listener;

use crate::peer_mapper::{PeerMapper, Peers};
use crate::{Event, FeedError, Figures, Protocol, SourceState};

/// Follows the kernel's tables; see the [module](super).
pub struct KernelProtocol {
    options: KernelOptions,
    overruns: Overruns,
    state: State,
    peers: Peers,
    events: Box<dyn Fn(Event) + Send>,
    /// The number of the last request.
    sequence: u32,
    /// The interfaces, and whether they were up.
    links: HashMap<u32, bool>,
    counts: Counts,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    dumps: u64,
    interrupted: u64,
}

enum State {
    Idle,
    Open(Box<Open>),
    /// The time when this state began.
    Lost(Duration),
}

/// The state while the socket is open.
struct Open {
    decoder: NetlinkDecoder,
    /// The part that is being dumped.
    part: Option<Part>,
    /// The time when the next dump is requested.
    again: Option<Duration>,
    /// Whether the table may differ from the kernel's.
    is_resync: bool,
    /// Whether the running dump was interrupted.
    is_interrupted: bool,
    /// The time of the last message or request.
    last: Duration,
}

impl KernelProtocol {
    /// A protocol without an open socket. `overruns` is the counter of its sockets.
    pub fn new(options: KernelOptions, overruns: Overruns) -> Self {
        Self {
            options,
            overruns,
            state: State::Idle,
            peers: Peers::default(),
            events: Box::new(|_| {}),
            sequence: 0,
            links: HashMap::new(),
            counts: Counts::default(),
        }
    }

    /// Receives events for the operator.
    #[must_use]
    pub fn with_events(mut self, events: impl Fn(Event) + Send + 'static) -> Self {
        self.events = Box::new(events);
        self
    }

    /// Requests a full dump: routes of before are stale until it ends.
    fn dump(
        &mut self,
        now: Duration,
        is_resync: bool,
        to: &mut dyn Listener,
        out: &mut Vec<u8>,
    ) -> Result<(), FeedError> {
        let first = self.sequence.wrapping_add(1);
        let last = self.sequence.wrapping_add(Part::COUNT);
        self.sequence = first;
        self.counts.dumps += 1;
        self.state = State::Open(Box::new(Open {
            decoder: NetlinkDecoder::new(Some(last)),
            part: Some(Part::NextHops),
            again: None,
            is_resync,
            is_interrupted: false,
            last: now,
        }));
        Part::NextHops.ask(first, out);
        let Peers { all, open, .. } = &mut self.peers;
        for &peer in &*all {
            to.mark_stale(peer)?;
            open.insert(peer, true);
        }
        Ok(())
    }

    /// Passes the decoder's updates to the listener.
    fn run_decoder<T>(
        &mut self,
        to: &mut dyn Listener,
        decode: impl FnOnce(&mut NetlinkDecoder, &mut dyn Sink) -> T,
    ) -> Result<Option<T>, FeedError> {
        let State::Open(open) = &mut self.state else { return Ok(None) };
        let KernelOptions { peer: speaker, table, .. } = &self.options;
        let peers = (&mut self.peers, open.part.is_some());
        let mut mapper = PeerMapper::new(to, peers, (speaker, table), &self.events);
        let done = decode(&mut open.decoder, &mut mapper);
        mapper.failed.map_or(Ok(Some(done)), Err)
    }

    /// Acts on the notices that come between the routes.
    fn apply_notices(
        &mut self,
        now: Duration,
        notices: Notices,
        out: &mut Vec<u8>,
    ) -> Result<(), FeedError> {
        let State::Open(open) = &mut self.state else { return Ok(()) };
        let mut is_doubtful = notices.addresses || notices.unsure;
        for link in &notices.links {
            is_doubtful |= self.links.insert(link.interface, link.is_up) != Some(link.is_up);
        }
        if notices.interrupted && !std::mem::replace(&mut open.is_interrupted, true) {
            self.counts.interrupted += 1;
        }
        for reply in notices.replies {
            let Some(part) = open.part.filter(|_| reply.sequence == self.sequence) else {
                continue;
            };
            // Kernels before 5.3 have no next-hop objects.
            if reply.error != 0 && part != Part::NextHops {
                let what = format!("the kernel does not dump its routes: error {}", reply.error);
                return Err(FeedError::Misfit(what));
            }
            open.part = part.next();
            if let Some(part) = open.part {
                self.sequence = self.sequence.wrapping_add(1);
                part.ask(self.sequence, out);
                continue;
            }
            open.is_resync = open.is_interrupted;
            let every = self.options.every.map(|every| now.saturating_add(every));
            open.again = earlier(open.again, every);
        }
        is_doubtful |= open.part.is_none() && std::mem::take(&mut open.is_interrupted);
        if is_doubtful {
            open.is_resync = true;
            open.again = earlier(open.again, Some(now.saturating_add(self.options.settle)));
        }
        Ok(())
    }

    /// The time when the next dump is requested; `None` while one is running.
    fn asks_at(open: &Open) -> Option<Duration> {
        open.again.filter(|_| open.part.is_none())
    }
}

/// The earlier of two times, of which either may be never.
fn earlier(a: Option<Duration>, b: Option<Duration>) -> Option<Duration> {
    a.into_iter().chain(b).min()
}

impl Protocol for KernelProtocol {
    fn connected(
        &mut self,
        now: Duration,
        to: &mut dyn Listener,
        out: &mut Vec<u8>,
    ) -> Result<(), FeedError> {
        self.peers.forget_names();
        self.peers.open.clear();
        self.peers.figures.connections += 1;
        self.links.clear();
        self.dump(now, true, to, out)
    }

    fn bytes(
        &mut self,
        now: Duration,
        bytes: &[u8],
        to: &mut dyn Listener,
        out: &mut Vec<u8>,
    ) -> Result<(), FeedError> {
        let State::Open(open) = &mut self.state else { return Ok(()) };
        open.last = now;
        self.peers.figures.bytes += bytes.len() as u64;
        let decoded = self.run_decoder(to, |decoder, sink| {
            let taken = decoder.decode(bytes, Tail::More, sink)?;
            Ok::<_, StopReason>((taken, decoder.take_notices()))
        })?;
        match decoded {
            None => Ok(()),
            Some(Err(stopped)) => Err(FeedError::Misfit(stopped.to_string())),
            Some(Ok((taken, _))) if taken < bytes.len() => {
                Err(FeedError::Misfit("a datagram of the kernel ends within a message".to_owned()))
            }
            Some(Ok((_, notices))) => self.apply_notices(now, notices, out),
        }
    }

    fn disconnected(&mut self, now: Duration) {
        if matches!(self.state, State::Open(_)) {
            self.state = State::Lost(now);
        }
    }

    fn tick(
        &mut self,
        now: Duration,
        to: &mut dyn Listener,
        out: &mut Vec<u8>,
    ) -> Result<(), FeedError> {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return Ok(());
        }
        let open = match &self.state {
            State::Idle => return Ok(()),
            State::Open(open) => open,
            State::Lost(_) => {
                let peers = self.peers.all.len();
                self.end(to)?;
                (self.events)(Event::Expired { peers });
                return Ok(());
            }
        };
        if open.part.is_some() && now >= open.last.saturating_add(self.options.patience) {
            return Err(FeedError::Misfit("the kernel does not answer".to_owned()));
        }
        let again = Self::asks_at(open).is_some_and(|at| at <= now);
        let is_resync = open.is_resync;
        self.run_decoder(to, |decoder, sink| decoder.flush(sink))?;
        if again { self.dump(now, is_resync, to, out) } else { Ok(()) }
    }

    fn deadline(&self) -> Option<Duration> {
        let options = &self.options;
        let open = match &self.state {
            State::Idle => return None,
            State::Lost(since) => return Some(since.saturating_add(options.hold)),
            State::Open(open) => open,
        };
        let after = |wait| open.last.saturating_add(wait);
        let held = open.decoder.is_holding().then(|| after(options.holding));
        let stuck = open.part.is_some().then(|| after(options.patience));
        earlier(earlier(held, stuck), Self::asks_at(open))
    }

    fn refresh(
        &mut self,
        now: Duration,
        to: &mut dyn Listener,
        out: &mut Vec<u8>,
    ) -> Result<bool, FeedError> {
        match &mut self.state {
            // One dump at a time.
            State::Open(open) if open.part.is_some() => open.again = Some(now),
            State::Open(_) => self.dump(now, true, to, out)?,
            State::Idle | State::Lost(_) => return Ok(false),
        }
        Ok(true)
    }

    fn end(&mut self, to: &mut dyn Listener) -> Result<(), FeedError> {
        self.state = State::Idle;
        self.peers.open.clear();
        while let Some(peer) = self.peers.all.pop_first() {
            to.down(peer)?;
        }
        Ok(())
    }

    fn adopt(&mut self, peer: u32, now: Duration) {
        self.peers.all.insert(peer);
        if matches!(self.state, State::Idle) {
            self.state = State::Lost(now);
        }
    }

    fn state(&self) -> SourceState {
        match &self.state {
            State::Idle => SourceState::Idle,
            State::Open(open) if open.is_resync => SourceState::Resync,
            State::Open(_) => SourceState::Up,
            State::Lost(_) => SourceState::Lost,
        }
    }

    fn expires(&self) -> Option<Duration> {
        match self.state {
            State::Lost(since) => Some(since.saturating_add(self.options.hold)),
            _ => None,
        }
    }

    fn figures(&self) -> Figures {
        let mut figures = self.peers.figures.clone();
        let Counts { dumps, interrupted } = self.counts;
        let overruns = self.overruns.load(Ordering::Relaxed);
        for (name, count) in
            [("dumps", dumps), ("interrupted", interrupted), ("overruns", overruns)]
        {
            figures.remarks.insert(name, count.to_string());
        }
        figures
    }
}
