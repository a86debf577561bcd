//! rtnetlink: the messages in which Linux and FRR speak of routes and next hops.
//!
//! | message | attributes that are read |
//! |---|---|
//! | RTM_NEWROUTE, RTM_DELROUTE | RTA_DST, RTA_GATEWAY, RTA_VIA (a gateway of the other family, RFC 8950), RTA_OIF, RTA_MULTIPATH with weights, RTA_NH_ID, RTA_TABLE, RTA_PRIORITY |
//! | RTM_NEWNEXTHOP, RTM_DELNEXTHOP | NHA_ID, NHA_GATEWAY, NHA_OIF, NHA_BLACKHOLE, NHA_GROUP with weights |
//! | RTM_NEWLINK, RTM_NEWADDR, RTM_NEWNEIGH and their opposites, by [`LinkNews`] | IFLA_ADDRESS, IFLA_IFNAME, IFLA_MTU; IFA_ADDRESS, IFA_LOCAL; NDA_DST, NDA_LLADDR |
//!
//! Routes become [`Attributes::NextHops`](fibula_core::Attributes::NextHops): unicast and local ones with
//! their next hops, blackhole, unreachable and prohibit ones without. Counted as ignored: other families,
//! other types (multicast, anycast, broadcast, throw), routes for a source or a type of service, cached
//! routes. The main table (254) is VRF 0 without a name; others have their number as VRF and name.
//!
//! - **Next-hop objects.** A route that names one is announced with what it stands for at that time, and
//!   again when it is replaced; when it is deleted its routes are withdrawn, as the kernel deletes them.
//!   For that the decoder keeps the number of the object that each such route uses (8 bytes of IPv4, 20
//!   of IPv6, about twice that with what a hash table needs). Routes with inline next hops cost nothing.
//! - **Metrics.** A kernel has several routes of a prefix with different metrics (RTA_PRIORITY) and uses
//!   the lowest: the metric is [`Update::path_id`](fibula_core::Update::path_id), of which a RIB prefers
//!   the lowest too. [FPM](crate::fpm) has one route for a prefix, and its path is 0.
//! - **Replacement.** RTM_DELROUTE directly followed by RTM_NEWROUTE of the same route is one replacement:
//!   the withdrawal is [held back](Decoder::is_holding).
//! - **Next hops whose interface is down** (RTNH_F_DEAD) take no packets and are left out. A route that has
//!   no other is withdrawn. Those without a carrier (RTNH_F_LINKDOWN) are kept, as the kernel uses them unless
//!   its `ignore_routes_with_linkdown` is set.
//! - **Order of bytes.** Numbers are read in the byte order of this machine, as the kernel writes them; FRR
//!   sends FPM in that of its own.
//!
//! # What a kernel does not say
//! Notifications do not tell everything, so [`NetlinkDecoder::take_heard`] says when another dump is needed:
//! a dump was interrupted by a change ([`Heard::interrupted`]); an interface went up or down or an address
//! went, on which the kernel changes IPv4 routes and next-hop objects without a word ([`Heard::links`],
//! [`Heard::addresses`]); of several routes with the same prefix and metric one changed, and those behind it count now ([`Heard::unsure`]). An IPv4 route that `ip
//! route prepend` puts before another of the same metric looks like any new route: when it is deleted the
//! other one is missed until the next dump. A part of an IPv6 route's next hops can be deleted; the
//! decoder keeps the sets of such routes for this.
//!
//! This is a reader of our own because the crate netlink-packet-route, otherwise well kept, does not know
//! RTM_NEWNEXTHOP, allocates for each message and each attribute, and would be a dependency for four
//! messages of which ten attributes matter.

mod decoder;
mod links;
mod next_hop;
mod objects;
mod route;
mod table;
#[cfg(test)]
mod tests;
mod users;
mod wire;

pub use decoder::{Heard, Link, NetlinkDecoder, Reply};
pub use links::{
    Address, Interface, LinkDump, LinkNews, Neighbour, NeighbourState, Said, ask_for_neighbour,
};

pub(crate) use table::Table;
pub(crate) use wire::{HEADER, Header, padded};

#[cfg(doc)]
use crate::Decoder;
