//! What a router does with a burst of packets: check, look up, rewrite; or drop, answer, hand over.

mod addresses;
mod fast;
mod fragment;
mod hash;
mod icmp;
mod limit;
mod reason;
mod slow;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use fibula_core::{Addr, Lookup};

use crate::egress::{GroupId, Paths};
use crate::{Packet, Pool};

use icmp::Notice;
use limit::Bucket;
use reason::Tally;
pub use reason::{Counters, Reason};

/// The tables of one burst. Its owner pins them for as long as the burst lasts.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// Routes of IPv4.
    pub v4: Side<'a, u32>,
    /// Routes of IPv6.
    pub v6: Side<'a, u128>,
    /// What their groups mean.
    pub egress: &'a Paths,
}

/// The routes of a family.
#[derive(Clone, Copy)]
pub struct Side<'a, A: Addr> {
    /// The engine that finds the hop of an address.
    pub engine: &'a dyn Lookup<A>,
    /// The group of each hop: `groups[hop.index()]`. A hop beyond the slice is no route.
    pub groups: &'a [GroupId],
}

/// The next hop whose MAC address a packet waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Waiting {
    /// The router's number of the port that it is on.
    pub port: u16,
    /// The gateway's address, or the destination itself.
    pub next_hop: IpAddr,
}

/// What a burst became. The vectors are appended to; whoever sends empties and keeps them.
#[derive(Default)]
pub struct Outcome<'p> {
    /// By the router's number of the port: rewritten, ready to leave. At least as long as there are ports.
    pub send: Vec<Vec<Packet<'p>>>,
    /// For this machine, as they came in; [`Packet::port`] says where.
    pub host: Vec<Packet<'p>>,
    /// Those whose next hop has no known MAC address, as they came in. Once it is known, they are given to
    /// [`Forwarder::forward`] again; if it stays unknown, to [`Forwarder::fail`].
    pub waiting: Vec<(Waiting, Packet<'p>)>,
    /// To be given back to the pool. They are counted.
    pub dropped: Vec<Packet<'p>>,
}

/// What a forwarder does where there is a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardOptions {
    /// Whether ICMP and ICMPv6 errors are sent.
    pub icmp: bool,
    /// Errors a second that are sent by each port.
    pub icmp_rate: u32,
    /// Errors that may be sent at once by a port which has sent none for a while.
    pub icmp_burst: u32,
    /// Mixed into the hash of flows. Routers behind each other should have different ones.
    pub hash_seed: u64,
    /// What happens to IPv4 packets with a source routing option.
    pub source_routes: SourceRoutes,
}

/// What happens to IPv4 packets with a source routing option (RFC 7126, sections 4.3 and 4.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceRoutes {
    /// They are dropped. The default that the RFC asks for.
    #[default]
    Drop,
    /// They are forwarded by their destination address, as if the option was not there.
    Ignore,
}

impl Default for ForwardOptions {
    fn default() -> Self {
        Self {
            icmp: true,
            icmp_rate: 1000,
            icmp_burst: 100,
            hash_seed: 0,
            source_routes: SourceRoutes::Drop,
        }
    }
}

/// Forwards packets. Each worker has its own.
pub struct Forwarder {
    options: ForwardOptions,
    counters: Arc<Counters>,
    tally: Tally,
    /// Of errors, by port.
    buckets: Vec<Bucket>,
    /// Kept between bursts; taken out during one.
    chunk: Option<Box<fast::Chunk>>,
}

/// What stays the same during a burst.
struct Run<'a, 'p> {
    view: &'a View<'a>,
    pool: &'p Pool,
    now: Instant,
    outcome: &'a mut Outcome<'p>,
}

impl Forwarder {
    /// A forwarder whose counters are zero.
    pub fn new(options: ForwardOptions) -> Self {
        Self {
            options,
            counters: Arc::default(),
            tally: Tally::default(),
            buckets: Vec::new(),
            chunk: None,
        }
    }

    /// What it counted, up to the last burst. A clone of the `Arc` may be read by others at any time.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Takes all packets out of the burst and adds them to the outcome. [`Packet::port`] must be set. Fragments, and
    /// ICMP errors, take slots from the pool. The time is used for rate limits alone.
    pub fn forward<'p>(
        &mut self,
        view: &View<'_>,
        pool: &'p Pool,
        now: Instant,
        burst: &mut Vec<Packet<'p>>,
        outcome: &mut Outcome<'p>,
    ) {
        let mut run = Run::new(view, pool, now, outcome);
        self.fast(&mut run, burst);
        self.tally.flush(&self.counters);
    }

    /// The same, packet by packet, without the fast path for ordinary ones: to compare with.
    pub fn forward_one_by_one<'p>(
        &mut self,
        view: &View<'_>,
        pool: &'p Pool,
        now: Instant,
        burst: &mut Vec<Packet<'p>>,
        outcome: &mut Outcome<'p>,
    ) {
        let mut run = Run::new(view, pool, now, outcome);
        for packet in burst.drain(..) {
            self.slow(&mut run, packet);
        }
        self.tally.flush(&self.counters);
    }

    /// Gives up packets that waited for a neighbour which did not answer: their senders hear that the host is
    /// unreachable (RFC 1812, section 5.2.7.1; RFC 4443, section 3.1).
    pub fn fail<'p>(
        &mut self,
        view: &View<'_>,
        pool: &'p Pool,
        now: Instant,
        packets: &mut Vec<Packet<'p>>,
        outcome: &mut Outcome<'p>,
    ) {
        let mut run = Run::new(view, pool, now, outcome);
        for packet in packets.drain(..) {
            self.refuse(&mut run, packet, Reason::NoNeighbour, Notice::HostUnreachable);
        }
        self.tally.flush(&self.counters);
    }
}

impl<'a, 'p> Run<'a, 'p> {
    fn new(view: &'a View<'a>, pool: &'p Pool, now: Instant, outcome: &'a mut Outcome<'p>) -> Self {
        let ports = view.egress.told().ports.len();
        if outcome.send.len() < ports {
            outcome.send.resize_with(ports, Vec::new);
        }
        Self { view, pool, now, outcome }
    }
}
