//! The receiving halves of a thread.

use std::io;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use super::counters::WorkerCounters;
use super::event::{Event, Events};
use super::renew::Closed;
use crate::port::Receive;
use crate::{Packet, Pool};

/// A receiving half.
pub(super) struct ReceiveQueue<'p> {
    /// The router's number of the port.
    pub(super) port: u16,
    pub(super) queue: usize,
    /// The number among all queues of all ports.
    pub(super) number: usize,
    pub(super) half: Box<dyn Receive<'p> + 'p>,
    /// Packets that earlier halves lost.
    lost_before: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Works,
    /// It failed, and is tried again at this time.
    Fails(u64),
    /// It was taken away, and may be replaced.
    Closed,
    Over,
}

/// How long a half that failed is left alone, in nanoseconds.
pub(super) const PAUSE: u64 = 100_000_000;

impl<'p> ReceiveQueue<'p> {
    pub(super) fn new(
        port: u16,
        queue: usize,
        number: usize,
        half: Box<dyn Receive<'p> + 'p>,
    ) -> Self {
        Self { port, queue, number, half, lost_before: 0, state: State::Works }
    }

    /// Replaces the halves of a port by these. A thread that had some and gets none keeps a closed one, so that it does
    /// not end.
    pub(super) fn renew(
        sources: &mut Vec<Self>,
        port: u16,
        halves: Vec<(usize, Box<dyn Receive<'p> + 'p>)>,
    ) {
        let of_port = || sources.iter().filter(|source| source.port == port);
        let Some(first) = of_port().next() else { return };
        let from = first.number - first.queue;
        let lost_before = of_port().map(Self::lost).sum();
        sources.retain(|source| source.port != port);
        let at = sources.len();
        for (queue, half) in halves {
            sources.push(Self::new(port, queue, from + queue, half));
        }
        if sources.len() == at {
            let mut closed = Self::new(port, 0, from, Box::new(Closed));
            closed.state = State::Closed;
            sources.push(closed);
        }
        sources[at].lost_before = lost_before;
    }

    /// Packets that the port lost before they came here.
    pub(super) fn lost(&self) -> u64 {
        self.lost_before + self.half.lost()
    }

    /// Appends the waiting packets to the burst, with the port's number.
    pub(super) fn receive(
        &mut self,
        pool: &'p Pool,
        burst: &mut Vec<Packet<'p>>,
        most: usize,
        now: u64,
        counters: &Arc<WorkerCounters>,
        (events, names): (&Events<'_>, &[String]),
    ) {
        if !self.is_ready(now) {
            return;
        }
        let from = burst.len();
        let result = self.half.receive(pool, burst, most).map(|_| ());
        let received = &mut burst[from..];
        if !received.is_empty() {
            let mut bytes = 0;
            for packet in &mut *received {
                packet.port = self.port;
                bytes += packet.bytes().len() as u64;
            }
            counters.ports[usize::from(self.port)].received.add(received.len(), bytes);
        }
        self.judge(result, now, (events, names));
    }

    /// Reports once that it fails, once that it works again, and once that it has ended.
    pub(super) fn judge(
        &mut self,
        result: io::Result<()>,
        now: u64,
        log: (&Events<'_>, &[String]),
    ) {
        let (events, names) = log;
        let port = || names[usize::from(self.port)].clone();
        let before = self.state;
        let mut last = None;
        match result {
            // A port that is gone may well have nothing to report.
            Ok(())
                if matches!(before, State::Fails(_)) && self.half.wait(Duration::ZERO).is_err() =>
            {
                self.state = State::Fails(now + PAUSE);
            }
            Ok(()) => {
                if matches!(mem::replace(&mut self.state, State::Works), State::Fails(_)) {
                    (events.to)(Event::Recovered { port: port() });
                }
            }
            Err(error) if self.half.is_over() => last = Some(error),
            Err(error) => {
                self.state = State::Fails(now + PAUSE);
                if before == State::Works {
                    (events.to)(Event::Failed { port: port(), error });
                }
            }
        }
        if self.half.is_over() {
            self.state = State::Over;
            (events.to)(Event::Over { port: port(), queue: self.queue, error: last });
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Whether to receive from it.
    pub(super) fn is_ready(&self, now: u64) -> bool {
        match self.state {
            State::Works => true,
            State::Fails(until) => now >= until,
            State::Closed | State::Over => false,
        }
    }
}
