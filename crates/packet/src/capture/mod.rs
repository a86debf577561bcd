//! Reads pcap and pcapng files, and writes pcap.
//!
//! We do not use one of the known parsers, because this must hold for any input: a packet costs no allocation, a
//! damaged block is distinguished from one that has not arrived in full (the known parsers request more data in both
//! cases), and lengths are checked before they are used.
//!
//! ```
//! use fibula_packet::capture::{Container, Step, header, record};
//!
//! let bytes = [&header(1)[..], &record(1_700_000_000, 999_999, 3), b"abc"].concat();
//! let mut capture = Container::recognise(&bytes).ok_or("not a capture")?;
//! assert_eq!(capture.next(&bytes, true), Step::Skip(24)); // the file's header
//! let Step::Packet(19, packet) = capture.next(&bytes[24..], false) else { panic!() };
//! assert_eq!(packet.data, b"abc");
//! # Ok::<(), &str>(())
//! ```

mod bytes;
mod container;
mod write;

pub use container::{Container, Interface, LIMIT, Packet, Step, Time};
pub use write::{header, record};
