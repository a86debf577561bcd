//! Forwards a burst of packets: checks, lookup, rewriting; or drops, ICMP errors, delivery to the host.
//!
//! ```text
//!                          ┌─ ordinary, a burst at a time (fast) ─────────────────────────┐
//!   burst ──► Forwarder ───┤                                                              ├──► Outcome::send, by port
//!                          └─ any other, one by one (slow): judge ──► Verdict ─┬─ Send ───┘      (fragments, errors, too)
//!                                                                              ├─ Host ─────► Outcome::host
//!                                                                              ├─ Wait ─────► Outcome::waiting
//!                                                                              └─ Drop ─────► Outcome::dropped
//! ```
//!
//! A [`Policy`] can be placed before it, which drops and marks packets, or chooses the table for their lookup.
//!
//! `judge` states the rules in readable code; it changes no packet. The fast path handles ordinary packets, and passes
//! the others on. Tests compare both with a model that was written separately.
//!
//! # What happens to a frame
//!
//! The first matching line decides. Each has its own [`Reason`].
//!
//! | frame | is |
//! |---|---|
//! | from a port that the egress table does not have; cut within link header or tags; for another MAC address | dropped |
//! | not IPv4 or IPv6 right after Ethernet and VLAN tags: ARP, LLC, MPLS, PPPoE ... | the host's |
//! | an invalid header: length, version, checksum ([`Frame::check_forward`](fibula_packet::Frame::check_forward)) | dropped |
//! | for a group, for 255.255.255.255, for fe80::/10, for an address of the router, by a route that is [`Group::Local`](crate::egress::Group::Local), whatever TTL and source are | the host's |
//! | TTL or hop limit 0 or 1 | time exceeded |
//! | unicast in a frame for a group; addresses that are not forwarded | dropped |
//! | malformed IPv4 options | parameter problem |
//! | an IPv4 source route | dropped, see [`SourceRoutes`] |
//! | no route; a route without a usable next hop; a prohibiting route | net unreachable; prohibited |
//! | a next hop without a known MAC address | waiting |
//! | larger than the MTU | fragments (IPv4 without DF), else fragmentation needed, packet too big |
//! | any other | sent on |
//!
//! All VLAN tags of a frame are removed, and the egress port's tag is written. Bytes after the IP packet in
//! its frame are cut off. IPv4 options other than source routes are unchanged: this is one of the settings that RFC
//! 7126 names for record route, timestamp and router alert. Extension headers of IPv6 are not read (RFC 8200, section
//! 4, allows this for hop-by-hop options, too), except for the length of jumbograms, the flow's hash, and to find out
//! whether a packet is an ICMPv6 error.
//!
//! Redirects are not sent, although a packet may leave by the port where it arrived. RFC 1812 (section 4.3.3.2)
//! requires a router to be able to send them, but a redirect needs the prefixes of links, which an egress table does
//! not have, and hosts that ignore redirects are safer.
//!
//! # Errors
//!
//! The messages follow RFC 792, RFC 1191, RFC 1812 (section 4.3) and RFC 4443. No error is sent about an ICMP error or
//! redirect, an ICMP packet that ends before its type, an IPv4 fragment except the first, a packet in a frame for or
//! from a group, or a packet whose source is not forwarded or is the router. RFC 4443 requires errors about later
//! fragments of IPv6, so they are sent, unless the fragment is one of ICMPv6. Multicasts are the host's, so the
//! exception for packet too big never arises. Errors quote as much of the packet as fits into 576 (IPv4) or 1,280 bytes
//! (IPv6), or into the port's MTU. They are limited for each port by a token bucket ([`ForwardOptions`]).
//!
//! An error leaves by the port that its packet came in by, to the MAC address that the frame came from, rather than by
//! a route to the packet's source. That neighbour forwards for the source, or is the source. So an error needs no route
//! and never waits for a neighbour, and it comes from an address of the port that it leaves by, as RFC 1812, section
//! 4.3.2.4, requires. The price: with asymmetric paths, errors take another path to the source than other packets. Its
//! address is the first of the port that may be forwarded, else the first of any port. Without one, nothing is sent
//! ([`Reason::IcmpNoAddress`]).
//!
//! # Example
//!
//! ```
//! use std::time::Instant;
//!
//! use fibula_core::{Engine, Hop, Routes};
//! use fibula_router::egress::{Adjacency, Egress, EgressPort, Group, Member, Paths};
//! use fibula_router::forward::{Reason, Side};
//! use fibula_router::{Forwarder, Outcome, Pool, View};
//! use fibula_testkit::Oracle;
//!
//! let port = EgressPort { mac: [2, 0, 0, 0, 0, 1], mtu: 1500, vlan: None, addresses: vec!["192.0.2.1".parse()?] };
//! let gateway = Adjacency { port: 0, gateway: "192.0.2.7".parse()?, mac: Some([2, 0, 0, 0, 0, 7]) };
//! let paths = Paths::new(Egress {
//!     groups: vec![Group::Forward(vec![Member::Gateway(0)])],
//!     adjacencies: vec![gateway],
//!     ports: vec![port],
//!     ..Egress::default()
//! });
//! let v4: Routes<u32> = [("198.51.100.0/24".parse()?, Hop::new(0))].into_iter().collect();
//! let (v4, v6) = (Oracle::build(&v4, &())?, Oracle::<u128>::build(&Routes::default(), &())?);
//! let view = View {
//!     v4: Side { engine: &v4, groups: &[0] },
//!     v6: Side { engine: &v6, groups: &[] },
//!     egress: &paths,
//! };
//!
//! let pool = Pool::new(64, 2048);
//! let mut packet = pool.take().ok_or("no slot")?;
//! packet.fill(
//!     b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x08\0\
//!       \x45\0\0\x1c\0\0\x40\0\x40\x11\x4e\x99\xc0\0\x02\x02\xc6\x33\x64\x02\0\x35\x10\0\0\x08\0\0",
//! );
//! let (mut burst, mut outcome) = (vec![packet], Outcome::default());
//! let mut forwarder = Forwarder::new(Default::default());
//! forwarder.forward(&view, &pool, Instant::now(), &mut burst, &mut outcome);
//! assert_eq!(outcome.send[0][0].bytes()[..6], [2, 0, 0, 0, 0, 7]);
//! assert_eq!(forwarder.counters().packets(Reason::ForwardedV4), 1);
//! pool.give(outcome.send[0].drain(..));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod addresses;
mod by_rules;
mod fast;
mod fragment;
mod hash;
mod headers;
mod icmp;
mod limit;
mod policy;
mod reason;
mod rule_set;
mod slow;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use fibula_core::{Addr, AnyEngine};
use fibula_simd::{Isa, Level};

use crate::egress::{GroupId, Paths};
use crate::{Packet, Pool};

pub use by_rules::ByRules;
pub(crate) use headers::CHUNK as TOGETHER;
use icmp::Notice;
use limit::Bucket;
pub(crate) use policy::Guide;
pub use policy::{Policy, TableByPort, Verdict};
use reason::Tally;
pub use reason::{Reason, ReasonCounters};
pub use rule_set::{RuleCounts, RuleSet, RulesHandle};

/// The tables for one burst. Their owner pins them as long as the burst lasts.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// Routes of IPv4.
    pub v4: Side<'a, u32>,
    /// Routes of IPv6.
    pub v6: Side<'a, u128>,
    /// The groups of the routes' hops.
    pub egress: &'a Paths,
}

/// The routes of a family.
#[derive(Clone, Copy)]
pub struct Side<'a, A: Addr> {
    /// The engine that finds the hop of an address.
    pub engine: &'a dyn AnyEngine<A>,
    /// The group of each hop: `groups[hop.index()]`. A hop beyond the slice is no route.
    pub groups: &'a [GroupId],
}

/// The unresolved next hop of a waiting packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Waiting {
    /// The router's number of the port that it is on.
    pub port: u16,
    /// The gateway's address, or the destination itself.
    pub next_hop: IpAddr,
}

/// The result for a burst. Packets are appended to the vectors; the caller sends them, and reuses the empty vectors.
#[derive(Default)]
pub struct Outcome<'p> {
    /// Packets to send, rewritten, by the router's number of the port. At least as long as the number of ports.
    pub send: Vec<Vec<Packet<'p>>>,
    /// Packets for this machine, unchanged; [`Packet::port`] is the port that received them.
    pub host: Vec<Packet<'p>>,
    /// Packets whose next hop has no known MAC address, unchanged. Pass them to [`Forwarder::forward`] again once it
    /// is known, or to [`Forwarder::fail`] if it stays unknown.
    pub waiting: Vec<(Waiting, Packet<'p>)>,
    /// Dropped packets, already counted, to return to the pool.
    pub dropped: Vec<Packet<'p>>,
}

/// Options of a forwarder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardOptions {
    /// Whether ICMP and ICMPv6 errors are sent.
    pub icmp: bool,
    /// Maximum rate of ICMP errors of each port, per second.
    pub icmp_rate: u32,
    /// Maximum burst of ICMP errors of a port.
    pub icmp_burst: u32,
    /// A seed for the hash of flows. Routers in series should have different ones.
    pub hash_seed: u64,
    /// The treatment of IPv4 packets with a source routing option.
    pub source_routes: SourceRoutes,
}

/// The treatment of IPv4 packets with a source routing option (RFC 7126, sections 4.3 and 4.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceRoutes {
    /// They are dropped. This is the default, as the RFC requires.
    #[default]
    Drop,
    /// They are forwarded by their destination address, and the option is ignored.
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
    counters: Arc<ReasonCounters>,
    tally: Tally,
    /// Of errors, by port.
    buckets: Vec<Bucket>,
    level: Level,
    /// Kept between bursts; taken out during one.
    headers: Option<Box<headers::Headers>>,
}

/// The values that are the same for all packets of a burst.
struct Run<'a, 'p> {
    view: &'a View<'a>,
    pool: &'p Pool,
    now: Instant,
    outcome: &'a mut Outcome<'p>,
}

impl Forwarder {
    /// Makes a forwarder with counters at zero.
    pub fn new(options: ForwardOptions) -> Self {
        Self {
            options,
            counters: Arc::default(),
            tally: Tally::default(),
            buckets: Vec::new(),
            level: Isa::detect().level(),
            headers: None,
        }
    }

    /// Its counters, up to the last burst. Other threads may read a clone of the `Arc` at any time.
    pub fn counters(&self) -> &Arc<ReasonCounters> {
        &self.counters
    }

    /// Forwards all packets of the burst and adds them to the outcome. [`Packet::port`] must be set. Fragments and
    /// ICMP errors take slots from the pool. The time is used only for rate limits.
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

    /// Like `forward`, but packet by packet, without the fast path for ordinary ones. For comparison in tests.
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

    /// Drops packets that waited for a neighbour without an answer. Their senders get the error "host unreachable" (RFC
    /// 1812, section 5.2.7.1; RFC 4443, section 3.1).
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
        let ports = view.egress.description().ports.len();
        if outcome.send.len() < ports {
            outcome.send.resize_with(ports, Vec::new);
        }
        Self { view, pool, now, outcome }
    }
}
