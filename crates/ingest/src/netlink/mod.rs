//! rtnetlink: the messages of Linux and FRR about routes and next hops.
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
//! - **Next-hop objects.** A route that refers to one is announced with the object's next hops at that time, and
//!   again when the object is replaced. When the object is deleted, its routes are withdrawn, because the kernel
//!   deletes them. For this the decoder keeps the object number of each such route (8 bytes for IPv4, 20 for IPv6,
//!   about twice that with the overhead of the hash table). Routes with inline next hops cost nothing.
//! - **Metrics.** A kernel can have several routes of a prefix with different metrics (RTA_PRIORITY), and uses the
//!   lowest. The metric becomes [`Update::path_id`](fibula_core::Update::path_id), of which a RIB also prefers the
//!   lowest. [FPM](crate::fpm) has one route for a prefix, and its path is 0.
//! - **Replacement.** RTM_DELROUTE directly followed by RTM_NEWROUTE of the same route is one replacement:
//!   the withdrawal is [held back](Decoder::is_holding).
//! - **Next hops whose interface is down** (RTNH_F_DEAD) get no packets and are left out. A route without other next
//!   hops is withdrawn. Next hops without a carrier (RTNH_F_LINKDOWN) are kept, because the kernel uses them unless
//!   its `ignore_routes_with_linkdown` is set.
//! - **Byte order.** Numbers are read in the byte order of this machine, which the kernel uses. FRR sends FPM in the
//!   byte order of its own machine.
//!
//! # Missing notifications The kernel does not report every change, so [`NetlinkDecoder::take_notices`] reports when
//! another dump is needed. A dump may have been interrupted by a change ([`Notices::interrupted`]). When an interface
//! goes up or down or an address is removed, the kernel changes IPv4 routes and next-hop objects without notifications
//! ([`Notices::links`], [`Notices::addresses`]). When one of several routes with the same prefix and metric changes,
//! another of them may come into use ([`Notices::unsure`]); until the dump the route is as it was. A new route is one
//! of several if its message has NLM_F_CREATE without NLM_F_EXCL: an IPv4 route stands first, or last with
//! NLM_F_APPEND; an IPv6 route with a next-hop object or without a gateway stands last. IPv6 routes with inline
//! gateways become one set, and the message has all of it; that such a set stands behind a route without a gateway is
//! seen only in a dump. Some next hops of an IPv6 route can be deleted separately; the decoder keeps the sets of such
//! routes for this.
//!
//! We do not use the crate netlink-packet-route, although it is well kept: it does not know RTM_NEWNEXTHOP, allocates
//! for each message and each attribute, and would be a large dependency for four messages and ten attributes.

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

pub use decoder::{Link, NetlinkDecoder, Notices, Reply};
pub use links::{
    Interface, InterfaceAddress, LinkDump, LinkMessage, LinkNews, Neighbour, NeighbourState,
    ask_for_neighbour,
};

pub(crate) use table::Table;
pub(crate) use wire::{HEADER, Header, padded};

#[cfg(doc)]
use crate::Decoder;
