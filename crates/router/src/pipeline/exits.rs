//! Where a thread's packets leave it: by its own transmitting halves, or by rings to the threads that have them.

use std::sync::Arc;

use hdrhistogram::Histogram;

use super::clock::Clock;
use super::counters::{Loss, WorkerCounters, histogram};
use super::event::{Event, Events};
use super::renew::Closed;
use super::ring::Sender;
use crate::port::{Receive, Transmit};
use crate::{Packet, Pool};

/// How packets reach an exit. Exits are numbered: the ports, and then the ports' hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExitPath {
    /// This thread's own transmitting half of this number.
    Own(usize),
    /// The ring of this number.
    Ring(usize),
    /// The kernel has them already.
    Shared,
    /// Nothing takes them.
    Nowhere,
}

/// A transmitting half that this thread owns.
pub(super) struct Transmitter<'p> {
    /// The router's number of the port.
    pub(super) port: usize,
    pub(super) queue: usize,
    /// It leads to this machine, not to the link.
    pub(super) to_host: bool,
    pub(super) half: Box<dyn Transmit<'p> + 'p>,
    /// The packets that this machine sends by the port.
    pub(super) from_host: Option<Box<dyn Receive<'p> + 'p>>,
    /// Packets that earlier halves lost.
    pub(super) lost_before: u64,
    pub(super) has_failed: bool,
    pub(super) is_dirty: bool,
}

pub(super) struct Exits<'p, 'r> {
    pub(super) pool: &'p Pool,
    pub(super) clock: Clock,
    pub(super) counters: Arc<WorkerCounters>,
    pub(super) events: &'r Events<'r>,
    pub(super) names: &'r [String],
    pub(super) ways: Vec<ExitPath>,
    pub(super) transmitters: Vec<Transmitter<'p>>,
    pub(super) rings: Vec<Sender<'p>>,
    latency: Histogram<u64>,
    published: u64,
    /// Packets that the machine sent.
    from_host: Vec<Packet<'p>>,
}

/// The interval at which latencies are published to readers, in nanoseconds.
const PUBLISH: u64 = 100_000_000;

impl<'p, 'r> Exits<'p, 'r> {
    pub(super) fn new(
        pool: &'p Pool,
        clock: Clock,
        counters: Arc<WorkerCounters>,
        events: &'r Events<'r>,
        names: &'r [String],
        ways: Vec<ExitPath>,
    ) -> Self {
        Self {
            pool,
            clock,
            counters,
            events,
            names,
            ways,
            transmitters: Vec::new(),
            rings: Vec::new(),
            latency: histogram(),
            published: 0,
            from_host: Vec::new(),
        }
    }

    /// Sends the whole burst by an exit, or drops and counts the packets that it does not accept. Returns the number of
    /// packets that a half of this thread accepted.
    pub(super) fn put(&mut self, exit: usize, burst: &mut Vec<Packet<'p>>, stamp: u64) -> usize {
        match self.ways.get(exit) {
            Some(&ExitPath::Own(at)) => {
                let count = burst.len();
                self.send(at, burst);
                return count;
            }
            Some(&ExitPath::Ring(at)) => {
                burst.iter_mut().for_each(|packet| packet.port = exit as u16);
                self.rings[at].send(burst, stamp);
                self.lose(Loss::TransmitRing, burst);
            }
            Some(ExitPath::Shared) => {
                self.counters.shared.add(burst.len() as u64);
                self.pool.give(burst.drain(..));
            }
            Some(ExitPath::Nowhere) => self.lose(Loss::NoHost, burst),
            None => self.lose(Loss::NoPort, burst),
        }
        0
    }

    /// Sends packets that another thread looked up, by an exit of this thread.
    pub(super) fn put_own(&mut self, exit: usize, burst: &mut Vec<Packet<'p>>) {
        match self.ways[exit] {
            ExitPath::Own(at) => self.send(at, burst),
            // Rings lead to the owner of the exit.
            way => unreachable!("exit {exit} is {way:?} where its ring leads to"),
        }
    }

    /// Sends by a half of this thread. Packets that it does not accept, even after a flush, are dropped.
    pub(super) fn send(&mut self, at: usize, burst: &mut Vec<Packet<'p>>) {
        let before = self.clock.last();
        let (count, total) = (burst.len(), bytes(burst));
        let (pool, transmitter) = (self.pool, &mut self.transmitters[at]);
        transmitter.is_dirty = true;
        let mut result = transmitter.half.transmit(pool, burst);
        if result.is_ok() && !burst.is_empty() {
            result =
                transmitter.half.flush(pool).and_then(|()| transmitter.half.transmit(pool, burst));
        }
        let port = &self.counters.ports[transmitter.port];
        let sent = if transmitter.to_host { &port.to_host } else { &port.sent };
        let left = if burst.is_empty() { 0 } else { bytes(burst) };
        sent.add(count - burst.len(), total - left);
        let has_failed = result.is_err();
        if has_failed {
            // It works again once packets were passed on to the system, which a flush does that has some.
            self.transmitters[at].is_dirty = false;
            self.judge(at, result.map(|_| ()));
        }
        self.lose(if has_failed { Loss::PortFailed } else { Loss::PortFull }, burst);
        self.counters.transmit.add(count, self.clock.stage(before));
    }

    /// Sends the packets that wait in the ports.
    pub(super) fn flush(&mut self, all: bool) {
        for at in 0..self.transmitters.len() {
            let transmitter = &mut self.transmitters[at];
            let is_dirty = std::mem::take(&mut transmitter.is_dirty);
            if is_dirty || all {
                let result = transmitter.half.flush(self.pool);
                // With nothing to hand over a port that is down may well succeed: that is no sign of life.
                if result.is_err() || is_dirty {
                    self.judge(at, result);
                }
            }
        }
    }

    pub(super) fn close(&mut self) {
        for at in 0..self.transmitters.len() {
            let result = self.transmitters[at].half.close(self.pool);
            self.judge(at, result);
        }
        self.publish();
    }

    /// Reports once that a port fails, and once that it works again.
    fn judge(&mut self, at: usize, result: std::io::Result<()>) {
        let transmitter = &mut self.transmitters[at];
        let has_failed = result.is_err();
        if std::mem::replace(&mut transmitter.has_failed, has_failed) != has_failed {
            let port = self.names[transmitter.port].clone();
            (self.events.to)(match result {
                Err(error) => Event::Failed { port, error },
                Ok(()) => Event::Recovered { port },
            });
        }
    }

    /// Replaces the halves of a port by these; those that are not among them are closed.
    pub(super) fn renew(
        &mut self,
        port: usize,
        mut halves: Vec<(usize, Box<dyn Transmit<'p> + 'p>)>,
    ) {
        let own = self.transmitters.iter_mut().filter(|half| half.port == port && !half.to_host);
        for transmitter in own {
            let found = halves.iter().position(|(queue, _)| *queue == transmitter.queue);
            transmitter.has_failed = found.is_none();
            transmitter.lost_before += transmitter.half.lost();
            transmitter.half = match found {
                Some(at) => halves.swap_remove(at).1,
                None => Box::new(Closed),
            };
        }
    }

    /// Sends the packets of this machine by the same port. Returns their number.
    pub(super) fn serve_hosts(&mut self, most: usize) -> usize {
        let mut moved = 0;
        for at in 0..self.transmitters.len() {
            let mut burst = std::mem::take(&mut self.from_host);
            let transmitter = &mut self.transmitters[at];
            if let Some(half) = &mut transmitter.from_host {
                // Failures of the host half are not reported: the port reports its own.
                let _ = half.receive(self.pool, &mut burst, most);
                if !burst.is_empty() {
                    moved += burst.len();
                    let counted = &self.counters.ports[transmitter.port].from_host;
                    counted.add(burst.len(), bytes(&burst));
                    self.send(at, &mut burst);
                }
            }
            self.from_host = burst;
        }
        moved
    }

    /// Counts the latency of packets that were received at that time and are sent now. The clock was just read.
    #[inline]
    pub(super) fn late(&mut self, stamp: u64, count: usize) {
        let now = self.clock.last();
        self.latency.saturating_record_n(now.saturating_sub(stamp).max(1), count as u64);
        if now.saturating_sub(self.published) > PUBLISH {
            self.publish();
        }
    }

    fn publish(&mut self) {
        self.published = self.clock.last();
        // A reader has it for some microseconds.
        if let Ok(mut shared) = self.counters.latency.lock() {
            shared.add(&self.latency).expect("equal bounds");
            self.latency.reset();
        }
        for (port, counted) in self.counters.ports.iter().enumerate() {
            let own = self.transmitters.iter().filter(|transmitter| transmitter.port == port);
            counted.lost_out.set(own.map(|own| own.lost_before + own.half.lost()).sum());
        }
    }

    /// Drops and counts.
    pub(super) fn lose(&self, loss: Loss, packets: &mut Vec<Packet<'p>>) {
        if !packets.is_empty() {
            self.counters.lose(loss, packets.len());
            self.pool.give(packets.drain(..));
        }
    }
}

pub(super) fn bytes(burst: &[Packet<'_>]) -> u64 {
    burst.iter().map(|packet| packet.bytes().len() as u64).sum()
}
