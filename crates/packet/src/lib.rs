//! Parses the bytes of a frame into its headers and its flow key.
//!
//! ```text
//! bytes   0           12    14    16    18                38        46
//!         | MAC, MAC  | 8100| tag | 0800| IPv4 ...        | UDP     | payload ... | padding
//!         ^                             ^                 ^                       ^
//!         link                 network_at()      transport_at()         end by the packet's length
//!                      tags()           ipv4()            segment(): from here to there
//! ```
//!
//! [`Frame::parse`] walks the headers once and stores offsets; the methods of [`Frame`] read fields in place. No
//! method panics or allocates, whatever the bytes are. A header that is cut or malformed ends the walk, and the
//! headers before it remain available. [`Frame::fault`] names the header, its offset and the error.
//!
//! ```
//! use fibula_packet::{Frame, Length, LinkType};
//!
//! // A VLAN-tagged UDP datagram from 192.0.2.1 port 53 to 198.51.100.2 port 4096.
//! let frame = [
//!     &b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02"[..],                       // MACs
//!     b"\x81\0\xa0\x07\x08\0",                                        // tag, EtherType
//!     b"\x45\xb8\0\x1e\x12\x34\x40\0\x40\x11\x3b\xac\xc0\0\x02\x01\xc6\x33\x64\x02", // IPv4
//!     b"\0\x35\x10\0\0\x0a\0\0hi",                                    // UDP and two bytes
//!     b"\0\0",                                                        // padding
//! ]
//! .concat();
//! let parsed = Frame::parse(LinkType::Ethernet, &frame);
//!
//! let tag = parsed.tags().next().unwrap();
//! assert_eq!((tag.vid(), tag.priority(), parsed.ether_type()), (7, 5, Some(0x0800)));
//! assert_eq!((parsed.network_at(), parsed.transport_at()), (Some(18), Some(38)));
//! let ip = parsed.ipv4().unwrap();
//! assert!(ip.ttl() == 64 && ip.dont_fragment() && !ip.has_options());
//! assert_eq!(parsed.ports(), Some((53, 4096)));
//! assert_eq!(parsed.segment().unwrap().len(), 10);
//! assert_eq!(parsed.flow_key().dscp(), Some(46));
//! assert_eq!((parsed.fault(), parsed.length()), (None, Some(Length::Whole)));
//! assert_eq!(parsed.check_forward(), Ok(()));
//!
//! // The capture kept 40 bytes: addresses are there, ports are not, and no field lies.
//! let cut = Frame::parse_captured(LinkType::Ethernet, &frame[..40], frame.len());
//! assert_eq!((cut.ends(), cut.ports()), (parsed.ends(), None));
//! assert_eq!(cut.length(), Some(Length::Cut));
//! assert_eq!(cut.fault().unwrap().to_string(), "header of protocol 17 at byte 38: cut by the capture");
//! // A frame that had only these bytes on the wire lies about its length.
//! let short = Frame::parse(LinkType::Ethernet, &frame[..40]);
//! assert_eq!(short.length(), Some(Length::Beyond));
//! ```
//!
//! The methods of [`Frame`] read the fields of all headers that the bytes contain. [`Frame::flow_key`] gives the flow,
//! from the bytes of the packet only, without padding. [`Frame::check_forward`] returns whether a router may forward
//! the packet: it makes the tests of RFC 1812 and RFC 8200, and names the one that failed.
//!
//! The parser follows any number of VLAN tags, LLC with SNAP, MPLS labels, PPPoE sessions and PPP, then
//! one IPv4 or IPv6 header with all its extension headers. It does not look into tunnels.
//!
//! [`capture`] reads and writes the files that packets are stored in.
//!
//! The crate is `no_std` and has no dependencies and no `unsafe` code. Only a pcapng file's list of interfaces is
//! allocated.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod capture;

#[cfg(test)]
extern crate std;

mod bytes;
pub mod checksum;
mod fault;
mod flow;
mod forward;
mod frame;
mod ip;
mod ipv4;
mod ipv6;
mod link;
mod transport;

pub use fault::{Fault, FaultKind, HeaderKind};
pub use flow::{FlowKey, Fragmentation};
pub use forward::Refusal;
pub use frame::{Frame, Length};
pub use ipv4::Ipv4;
pub use ipv6::{Extension, Extensions, Fragment, Ipv6, Ipv6Payload, number as extension};
pub use link::{LinkType, Network, Tag, Tags, ether_type};
pub use transport::{Tcp, Udp, has_ports, icmp, ports, protocol};

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
