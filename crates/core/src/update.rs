use core::net::{IpAddr, Ipv4Addr};

use crate::{AnyPrefix, NextHops};

/// A routing instance (VRF) by number; 0 is the global one.
pub type Vrf = u32;

/// One change to a routing table, as every decoder reports it.
///
/// An update borrows from the decoder's buffers, so the consumer copies the parts that it keeps. Decoders set the
/// fields that their format has and take the others from [`Update::new`]:
///
/// ```
/// use fibula_core::{Change, Update};
/// let withdrawal = Update::new("192.0.2.0/24".parse()?, Change::Withdraw);
/// let update = Update { peer: 7, ..withdrawal };
/// assert_eq!((update.vrf, update.peer, update.path_id, update.time), (0, 7, 0, 0));
/// # Ok::<(), fibula_core::PrefixError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Update<'a> {
    /// The routing instance whose table changes.
    pub vrf: Vrf,
    /// The prefix that changes.
    pub prefix: AnyPrefix,
    /// The peer that sent the change, as an index into the decoder's list of peers; 0 in formats without peers.
    pub peer: u32,
    /// The ADD-PATH identifier; 0 if the peer sends one path for each prefix.
    pub path_id: u32,
    /// Microseconds since 1970 (UTC); 0 if the format has no time.
    pub time: u64,
    /// The change of the prefix.
    pub change: Change<'a>,
}

impl<'a> Update<'a> {
    /// A change in the global VRF, from peer 0, without path identifier and time.
    pub fn new(prefix: AnyPrefix, change: Change<'a>) -> Self {
        Self { vrf: 0, prefix, peer: 0, path_id: 0, time: 0, change }
    }
}

/// The change that an [`Update`] makes to its prefix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change<'a> {
    /// The prefix is reachable with these attributes, which replace the peer's earlier ones.
    Announce(Attributes<'a>),
    /// The peer no longer reaches the prefix.
    Withdraw,
}

/// The attributes of a route.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Attributes<'a> {
    /// From BGP.
    Bgp(&'a BgpAttributes<'a>),
    /// One value for each column that the source declares, in the same order.
    Values(&'a [Value<'a>]),
    /// The next hops of a forwarding table.
    NextHops(&'a NextHops),
}

/// The BGP path attributes that fibula keeps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BgpAttributes<'a> {
    /// The next hop. Of an IPv6 pair (global, link-local), the global one.
    pub next_hop: Option<IpAddr>,
    /// The origin AS, which is the last of the path; `None` for an empty path or one that ends in a set (RFC 6811).
    pub origin_as: Option<u32>,
    /// Length of the AS path for BGP's decision process: a set counts once, confederations do not count.
    pub as_path_len: u32,
    /// The AS path as text, with sets in braces: `"64500 64501 {64502,64503}"`; empty unless requested.
    pub as_path: &'a str,
    /// LOCAL_PREF, if present.
    pub local_pref: Option<u32>,
    /// MULTI_EXIT_DISC, if present.
    pub med: Option<u32>,
    /// ORIGIN: 0 IGP, 1 EGP, 2 incomplete.
    pub origin: Option<u8>,
    /// Communities as text, `"64500:1 64500:2"`; empty unless requested.
    pub communities: &'a str,
    /// Extended communities as text, `"rt:64500:1 soo:192.0.2.1:7 0x030c000000000008"`; empty unless requested. Tables
    /// do not keep them.
    pub extended_communities: &'a str,
    /// AGGREGATOR, if present. Tables do not keep it.
    pub aggregator: Option<Aggregator>,
    /// Whether the router that printed its table has chosen this path; `None` if the source does not say.
    pub best: Option<bool>,
}

/// The router that has made one route of several (RFC 4271, 5.1.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aggregator {
    /// Its AS.
    pub asn: u32,
    /// Its address, or another number of 32 bits that identifies it.
    pub address: Ipv4Addr,
}

/// The kind of values in an attribute column. Any column may also hold [`Value::Null`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnKind {
    /// Unsigned integers.
    Int,
    /// Text.
    Str,
}

/// The original type of the texts in a column, from formats with more types than text and unsigned integers (mmdb).
/// Exports write the values back in this type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScalarType {
    /// `true` and `false`.
    Bool,
    /// A floating-point number of 32 bits.
    Float,
    /// A floating-point number of 64 bits.
    Double,
    /// A signed integer of 32 bits.
    Int,
    /// An unsigned integer of 128 bits.
    Wide,
}

/// A value of an attribute column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// An unsigned integer.
    Int(u64),
    /// Text.
    Str(&'a str),
}
