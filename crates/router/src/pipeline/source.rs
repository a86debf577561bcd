//! The receiving halves of a thread.

use std::io;
use std::mem;
use std::sync::Arc;

use super::counters::WorkerCounters;
use super::event::{Event, Events};
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
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Works,
    /// It failed, and is tried again at this time.
    Fails(u64),
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
        Self { port, queue, number, half, state: State::Works }
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
            State::Over => false,
        }
    }
}
