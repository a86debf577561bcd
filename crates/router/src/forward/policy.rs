//! Verdicts before the lookup: packets can be dropped, marked, or looked up in another table.
//!
//! ```text
//!   burst ──► Policy::judge ──┬─ Drop ────────────────────────► Outcome::dropped, counted as Reason::Policy
//!                             ├─ Forward { table: 0, mark } ──► Forwarder with the view of table 0
//!                             └─ Forward { table: 1, mark } ──► Forwarder with the view of table 1 ...
//! ```
//!
//! It runs before the forwarder and independently of it, so a router without a policy does not get slower.
//! [`Guided`](crate::pipeline::Guided) is the stage that has one.

use std::time::Instant;

use super::{Forwarder, Outcome, Reason};
use crate::Packet;

/// The verdict on a received packet, before its destination is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is dropped, and counted as [`Reason::Policy`]. The sender gets no error.
    Drop,
    /// It is forwarded.
    Forward {
        /// The number of the table that it is looked up in, of those that the stage has. A packet for a table that is
        /// not there is dropped.
        table: u16,
        /// Its [`Packet::mark`] from here on, for the stages and ports behind; its fragments have it, too.
        mark: u16,
    },
}

impl Verdict {
    /// Forwarded by the first table, without a mark.
    pub const PASS: Self = Self::Forward { table: 0, mark: 0 };
}

/// Gives verdicts on packets: a classifier, or [`TableByPort`]. Each worker has its own.
///
/// It gets all received packets, including ARP and packets for this machine. Their headers have not been read yet:
/// `Frame::parse(LinkType::Ethernet, packet.bytes())` of the crate `packet` reads them, and its `flow_key()` has the
/// fields that rules need. A packet that waits for the MAC address of a neighbour is judged again each time it is
/// tried.
///
/// ```
/// use std::time::Instant;
/// use fibula_packet::{Frame, LinkType};
/// use fibula_router::Packet;
/// use fibula_router::forward::{Policy, Verdict};
///
/// /// No telnet.
/// struct NoTelnet;
///
/// impl Policy for NoTelnet {
///     fn judge(&mut self, _: Instant, burst: &[Packet<'_>], verdicts: &mut [Verdict]) {
///         for (packet, verdict) in burst.iter().zip(verdicts) {
///             let key = Frame::parse(LinkType::Ethernet, packet.bytes()).flow_key();
///             if key.protocol == Some(6) && key.ports.is_some_and(|(_, to)| to == 23) {
///                 *verdict = Verdict::Drop;
///             }
///         }
///     }
/// }
/// ```
pub trait Policy: Send {
    /// Gives a verdict on each packet of a burst. There is one verdict for each packet, in the same order, and all of
    /// them are initially [`Verdict::PASS`]. [`Packet::port`] is the port that received the packet.
    fn judge(&mut self, now: Instant, burst: &[Packet<'_>], verdicts: &mut [Verdict]);
}

/// Chooses the table by the port that received the packet: one router acts as several (VRF-lite).
#[derive(Clone, Debug)]
pub struct TableByPort(Vec<u16>);

impl TableByPort {
    /// The number of each port's table, by the router's number of the port. Others have table 0.
    pub fn new(tables: impl Into<Vec<u16>>) -> Self {
        Self(tables.into())
    }
}

impl Policy for TableByPort {
    fn judge(&mut self, _: Instant, burst: &[Packet<'_>], verdicts: &mut [Verdict]) {
        for (packet, verdict) in burst.iter().zip(verdicts) {
            let table = self.0.get(usize::from(packet.port)).copied().unwrap_or(0);
            *verdict = Verdict::Forward { table, mark: 0 };
        }
    }
}

/// A policy with its buffers.
pub(crate) struct Guide<P> {
    policy: P,
    verdicts: Vec<Verdict>,
}

impl<P: Policy> Guide<P> {
    pub(crate) fn new(policy: P) -> Self {
        Self { policy, verdicts: Vec::new() }
    }

    /// Takes all packets out of the burst. Those that are forwarded get their mark and are appended to those of their
    /// table, by its number, in their order; others are counted by the forwarder, and dropped.
    pub(crate) fn sort<'p>(
        &mut self,
        forwarder: &mut Forwarder,
        now: Instant,
        burst: &mut Vec<Packet<'p>>,
        (by_table, outcome): (&mut [Vec<Packet<'p>>], &mut Outcome<'p>),
    ) {
        let Self { policy, verdicts } = self;
        verdicts.clear();
        verdicts.resize(burst.len(), Verdict::PASS);
        policy.judge(now, burst, verdicts);
        for (mut packet, verdict) in burst.drain(..).zip(verdicts) {
            let to = match *verdict {
                Verdict::Drop => None,
                Verdict::Forward { table, mark } => {
                    packet.mark = mark;
                    by_table.get_mut(usize::from(table))
                }
            };
            match to {
                Some(packets) => packets.push(packet),
                None => {
                    forwarder.tally.one(Reason::Policy, packet.bytes().len());
                    outcome.dropped.push(packet);
                }
            }
        }
        forwarder.tally.flush(&forwarder.counters);
    }
}
