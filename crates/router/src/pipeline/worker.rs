//! A thread of the pipeline. Its parts determine its work: receiving halves, rings from receiving threads, a lookup
//! stage, rings from lookup threads, transmitting halves.

use std::sync::Arc;
use std::time::Duration;
use std::{hint, mem};

use rustix::event::{PollFd, PollFlags, Timespec};

use super::bell::Bell;
use super::counters::{Loss, WorkerCounters};
use super::exits::Exits;
use super::hold::Hold;
use super::renew::{Inbox, Letter};
use super::ring::{Receiver, Sender};
use super::source::{PAUSE, ReceiveQueue};
use super::spread::flow;
use super::stage::Stage;
use super::{Resolve, Shared};
use crate::forward::{Outcome, TOGETHER};
use crate::{Packet, Pool};

/// The lookup of a thread.
pub(super) struct Lookup<'p, 'r> {
    pub(super) stage: Box<dyn Stage + 'r>,
    pub(super) outcome: Outcome<'p>,
    pub(super) hold: Hold<'p>,
    pub(super) resolve: &'r Resolve<'r>,
    /// The latest time to retry packets that wait for neighbours.
    pub(super) retry_at: u64,
    /// The time of the stage's last renewal.
    pub(super) asked_at: u64,
}

/// Where packets go that this thread receives and another one looks up.
pub(super) struct Spread<'p> {
    /// To each lookup thread.
    pub(super) rings: Vec<Sender<'p>>,
    /// By flow; otherwise by queue.
    pub(super) by_flow: bool,
    /// Packets for each lookup thread.
    pub(super) sorted: Vec<Vec<Packet<'p>>>,
}

pub(super) struct Worker<'p, 'r> {
    pub(super) pool: &'p Pool,
    pub(super) shared: &'r Shared,
    pub(super) inbox: &'r Inbox<'p>,
    pub(super) bell: Arc<Bell>,
    pub(super) counters: Arc<WorkerCounters>,
    pub(super) sources: Vec<ReceiveQueue<'p>>,
    pub(super) spread: Spread<'p>,
    pub(super) inputs: Vec<Receiver<'p>>,
    pub(super) lookup: Option<Lookup<'p, 'r>>,
    pub(super) feeds: Vec<Receiver<'p>>,
    pub(super) exits: Exits<'p, 'r>,
    /// It has released the threads behind it.
    pub(super) only_sends: bool,
    /// Packets in a burst.
    pub(super) most: usize,
    /// How long it polls in vain before it waits, in nanoseconds.
    pub(super) spin: u64,
    /// Reused.
    pub(super) burst: Vec<Packet<'p>>,
    /// Reused: the packets for each of the exits, and the times when they were received.
    pub(super) leaving: Vec<Vec<Packet<'p>>>,
    pub(super) stamps: Vec<(u64, usize)>,
}

/// The longest wait of a thread with a lookup stage, which must renew its tables.
const LOOKUP_WAIT: u64 = 5_000_000;
/// The longest wait of other threads.
const WAIT: u64 = 100_000_000;
/// How long it waits for a receiving half without a descriptor while it has other things to look at.
const BLIND_WAIT: u64 = 1_000_000;
/// How often packets that wait for neighbours are tried again, whether something changed or not.
const RETRY: u64 = 100_000_000;

impl<'p> Worker<'p, '_> {
    /// Runs until nothing will ever come in again, or the pipeline is stopped; everything that was received is dealt
    /// with.
    pub(super) fn run(mut self) {
        self.exits.clock.now();
        let mut idle_since = None;
        while !self.has_ended() {
            self.work(&mut idle_since);
        }
        // Nothing more is made here: the threads behind this one end once they have everything.
        self.release();
        while !self.has_ended() {
            self.work(&mut idle_since);
        }
        self.inbox.close();
        self.exits.close();
    }

    /// Whether nothing more comes in: to be looked up, and once that has ended, to be sent.
    fn has_ended(&self) -> bool {
        if self.only_sends {
            return self.feeds.iter().all(Receiver::is_over);
        }
        let is_stopped = self.shared.is_stopped();
        let holds = self.lookup.as_ref().is_some_and(|lookup| !lookup.hold.is_empty());
        (is_stopped || self.sources.iter().all(ReceiveQueue::is_over))
            && self.inputs.iter().all(Receiver::is_over)
            && (is_stopped || !holds)
    }

    fn work(&mut self, idle_since: &mut Option<u64>) {
        let moved = self.round();
        self.stay_current(LOOKUP_WAIT);
        if moved > 0 {
            *idle_since = None;
            return;
        }
        let now = self.exits.clock.now();
        if now - *idle_since.get_or_insert(now) < self.spin {
            hint::spin_loop();
        } else {
            self.rest();
        }
    }

    /// Processes all waiting packets once. Returns their number.
    fn round(&mut self) -> usize {
        if self.inbox.has_mail() {
            self.renew();
        }
        let mut moved = 0;
        if !self.only_sends && !self.shared.is_stopped() {
            moved += self.receive();
        }
        for at in 0..self.inputs.len() {
            moved += self.take_in(at);
        }
        for at in 0..self.feeds.len() {
            moved += self.pass_on(at);
        }
        moved += self.exits.serve_hosts(self.most);
        self.try_again();
        self.exits.flush(false);
        moved
    }

    /// A burst of each receiving half: to be looked up here, or by other threads. Short bursts are looked up together,
    /// since a lookup takes less time in a larger batch; each port's packets keep their order.
    fn receive(&mut self) -> usize {
        let mut moved = 0;
        let mut burst = mem::take(&mut self.burst);
        // Read after the last burst, or later. Nothing in between takes long.
        let mut before = self.exits.clock.last();
        let log = (self.exits.events, self.exits.names);
        for at in 0..self.sources.len() {
            let (from, source) = (burst.len(), &mut self.sources[at]);
            source.receive(self.pool, &mut burst, self.most, before, &self.counters, log);
            let (count, port, number) = (burst.len() - from, source.port, source.number);
            if count > 0 {
                moved += count;
                let lost = self.sources.iter().filter(|source| source.port == port);
                let lost = lost.map(ReceiveQueue::lost).sum();
                self.counters.ports[usize::from(port)].lost_in.set(lost);
                if self.lookup.is_none() {
                    self.hand_out(&mut burst, number, before);
                    self.counters.receive.add(count, self.exits.clock.now() - before);
                    before = self.exits.clock.last();
                    continue;
                }
                self.counters.receive.add(count, 0);
            }
            let is_last = at + 1 == self.sources.len();
            if !burst.is_empty() && (is_last || burst.len() + self.most > TOGETHER) {
                self.exits.clock.begin();
                self.counters.receive.nanos.add(self.exits.clock.stage(before));
                self.look_up(&mut burst, before);
                before = self.exits.clock.last();
            }
        }
        self.burst = burst;
        moved
    }

    /// To the lookup threads: a flow always to the same one.
    fn hand_out(&mut self, burst: &mut Vec<Packet<'p>>, queue: usize, stamp: u64) {
        let Spread { rings, by_flow, sorted } = &mut self.spread;
        if !*by_flow || rings.len() == 1 {
            let ring = queue % rings.len();
            rings[ring].send(burst, stamp);
            self.exits.lose(Loss::LookupRing, burst);
            return;
        }
        for packet in burst.drain(..) {
            sorted[flow(&packet) as usize % rings.len()].push(packet);
        }
        for (ring, burst) in rings.iter_mut().zip(sorted).filter(|(_, burst)| !burst.is_empty()) {
            ring.send(burst, stamp);
            self.exits.lose(Loss::LookupRing, burst);
        }
    }

    /// A burst of a receiving thread's.
    fn take_in(&mut self, at: usize) -> usize {
        let mut burst = mem::take(&mut self.burst);
        let mut oldest = None;
        burst.extend(self.inputs[at].take(self.most).map(|item| {
            oldest.get_or_insert(item.stamp);
            item.packet
        }));
        let count = burst.len();
        if let Some(stamp) = oldest {
            self.exits.clock.begin();
            self.look_up(&mut burst, stamp);
        }
        self.burst = burst;
        count
    }

    /// Looks up packets that were received at that time. Reads the clock at the end.
    fn look_up(&mut self, burst: &mut Vec<Packet<'p>>, stamp: u64) {
        self.try_again();
        let Some(lookup) = &mut self.lookup else { return };
        let (count, before) = (burst.len(), self.exits.clock.last());
        let now = self.exits.clock.instant(before);
        lookup.stage.process(self.pool, now, burst, &mut lookup.outcome);
        self.counters.lookup.add(count, self.exits.clock.stage(before));
        self.deliver(stamp);
    }

    /// Sends the outcome of a lookup to where it belongs.
    fn deliver(&mut self, stamp: u64) {
        let Some(lookup) = &mut self.lookup else { return };
        let (outcome, exits) = (&mut lookup.outcome, &mut self.exits);
        let (ports, mut sent) = (exits.names.len(), 0);
        for (port, burst) in outcome.send.iter_mut().enumerate() {
            if burst.is_empty() {
            } else if port < ports {
                sent += exits.put(port, burst, stamp);
            } else {
                exits.lose(Loss::NoPort, burst);
            }
        }
        while let Some(first) = outcome.host.first() {
            let port = first.port;
            let mut burst: Vec<_> =
                outcome.host.extract_if(.., |packet| packet.port == port).collect();
            sent += exits.put(ports + usize::from(port), &mut burst, stamp);
        }
        exits.clock.now();
        if sent > 0 {
            exits.late(stamp, sent);
        }
        if !outcome.waiting.is_empty() {
            let now = exits.clock.last();
            let mut lost = Vec::new();
            for (waiting, packet) in outcome.waiting.drain(..) {
                (lookup.resolve)(waiting);
                lost.extend(lookup.hold.keep(waiting, packet, now));
            }
            exits.lose(Loss::HoldFull, &mut lost);
            self.counters.held.set(lookup.hold.len() as u64);
        }
        if !outcome.dropped.is_empty() {
            self.counters.dropped.add(outcome.dropped.len() as u64);
            self.pool.give(outcome.dropped.drain(..));
        }
    }

    /// Tries packets again that wait for a neighbour, before newer ones of their flows are looked up, and drops those
    /// that have waited for too long.
    fn try_again(&mut self) {
        let Some(lookup) = &mut self.lookup else { return };
        if lookup.hold.is_empty() {
            return;
        }
        let now = self.exits.clock.now();
        let instant = self.exits.clock.instant(now);
        let mut burst = mem::take(&mut self.burst);
        lookup.hold.give_up(now, &mut burst);
        if !burst.is_empty() {
            lookup.stage.fail(self.pool, instant, &mut burst, &mut lookup.outcome);
        }
        if lookup.stage.is_changed() || now >= lookup.retry_at {
            lookup.retry_at = now + RETRY;
            lookup.hold.wanted().for_each(lookup.resolve);
            lookup.hold.retry(&mut burst);
            lookup.stage.process(self.pool, instant, &mut burst, &mut lookup.outcome);
        }
        self.burst = burst;
        self.deliver(now);
        if let Some(lookup) = &mut self.lookup {
            lookup.hold.forget();
            self.counters.held.set(lookup.hold.len() as u64);
        }
    }

    /// A burst of a lookup thread's, to be sent.
    fn pass_on(&mut self, at: usize) -> usize {
        let (leaving, stamps) = (&mut self.leaving, &mut self.stamps);
        let mut count = 0;
        for item in self.feeds[at].take(self.most) {
            count += 1;
            match stamps.last_mut() {
                Some((stamp, count)) if *stamp == item.stamp => *count += 1,
                _ => stamps.push((item.stamp, 1)),
            }
            leaving[usize::from(item.packet.port)].push(item.packet);
        }
        if count == 0 {
            return 0;
        }
        self.exits.clock.begin();
        for (exit, burst) in leaving.iter_mut().enumerate().filter(|(_, burst)| !burst.is_empty()) {
            self.exits.put_own(exit, burst);
        }
        self.exits.clock.now();
        for (stamp, count) in stamps.drain(..) {
            self.exits.late(stamp, count);
        }
        count
    }

    /// Waits until packets may have come, and does the work of idle threads.
    fn rest(&mut self) {
        self.exits.flush(true);
        self.bell.sleep();
        if !self.has_input() && !self.inbox.has_mail() && !self.has_ended() {
            self.wait();
        }
        self.bell.wake();
        self.exits.clock.now();
        self.stay_current(0);
    }

    /// Takes the newest tables if the last time was longer ago: a worker with old tables blocks new ones. A change
    /// that is found here is not found when waiting packets are tried again, so they are tried at once.
    fn stay_current(&mut self, nanos: u64) {
        let now = self.exits.clock.last();
        if let Some(lookup) = &mut self.lookup
            && now.saturating_sub(lookup.asked_at) >= nanos
        {
            lookup.asked_at = now;
            if lookup.stage.is_changed() {
                lookup.retry_at = 0;
            }
        }
    }

    /// Replaces halves of ports.
    fn renew(&mut self) {
        for Letter { port, receive, transmit, .. } in self.inbox.take() {
            ReceiveQueue::renew(&mut self.sources, port as u16, receive);
            self.exits.renew(port, transmit);
        }
    }

    fn has_input(&self) -> bool {
        self.inputs.iter().chain(&self.feeds).any(|ring| !ring.is_empty())
    }

    fn wait(&mut self) {
        let now = self.exits.clock.now();
        let mut longest = if self.lookup.is_some() { LOOKUP_WAIT } else { WAIT };
        if self.sources.iter().any(|source| !source.is_ready(now) && !source.is_over()) {
            longest = longest.min(PAUSE);
        }
        let alone = self.sources.len() == 1 && self.inputs.is_empty() && self.feeds.is_empty();
        let blind = |source: &&mut ReceiveQueue<'p>| {
            source.is_ready(now) && source.half.descriptor().is_none()
        };
        if let Some(source) = self.sources.iter_mut().find(blind) {
            let longest = if alone { longest } else { longest.min(BLIND_WAIT) };
            let result = source.half.wait(Duration::from_nanos(longest));
            if result.is_err() {
                source.judge(result, now, (self.exits.events, self.exits.names));
            }
            // Whose turn it is to be waited for.
            self.sources.rotate_left(1);
            return;
        }
        let ready = self.sources.iter().filter(|source| source.is_ready(now));
        let hosts = self.exits.transmitters.iter().filter_map(|t| t.from_host.as_ref());
        let halves = ready.map(|source| &source.half).chain(hosts);
        let descriptors = halves.filter_map(|half| half.descriptor());
        let mut polled: Vec<PollFd<'_>> = descriptors
            .chain([self.bell.descriptor()])
            .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN))
            .collect();
        let timeout = Timespec { tv_sec: 0, tv_nsec: longest as _ };
        // An interrupted wait is a short one; other failures would be those of a half, which reports them when it
        // receives.
        let _ = rustix::event::poll(&mut polled, Some(&timeout));
    }

    /// Drops packets that wait for neighbours, and signals the end to all threads that get packets from this one.
    fn release(&mut self) {
        // With the stage go the tables that it holds.
        if let Some(mut lookup) = self.lookup.take() {
            let mut rest = Vec::new();
            lookup.hold.give_up(u64::MAX, &mut rest);
            self.exits.lose(Loss::Stopped, &mut rest);
            self.counters.held.set(0);
        }
        self.spread.rings.clear();
        self.exits.rings.clear();
        self.only_sends = true;
    }
}
