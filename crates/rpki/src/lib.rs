//! RPKI route origin validation: may this AS announce this prefix?
//!
//! A *VRP* (validated ROA payload) says that an AS may announce a prefix, and longer ones inside it up to a maximum
//! length: [`Vrp`]. Validators such as routinator and rpki-client check the signed objects of the RPKI and write the
//! VRPs as JSON or CSV, which [`read()`] reads. [`Vrps`] is the set of them with an index, and [`Vrps::validity`] is
//! the answer of RFC 6811 for a prefix and the AS that originates it:
//!
//! | [`Validity`] | when |
//! |---|---|
//! | [`Valid`](Validity::Valid) | a VRP covers the prefix, its maximum length is at least the prefix's length, and its AS is the origin |
//! | [`NotFound`](Validity::NotFound) | no VRP covers the prefix |
//! | [`InvalidLength`](Validity::InvalidLength) | covered, not valid, and some covering VRP has the origin: its maximum length is too short |
//! | [`InvalidOrigin`](Validity::InvalidOrigin) | covered, not valid, and no covering VRP has the origin |
//!
//! RFC 6811 has one state `Invalid`; the two here give the reason. A VRP *covers* a prefix if its own prefix is equal
//! to it or contains it, whatever the maximum length. AS 0 is not an origin: a VRP with AS 0 matches no route (RFC
//! 6483, section 4), and a route with origin 0, or without an origin, is never valid.
//!
//! VRPs that change are [`LiveVrps`]: the module `rtr` (a feature) receives them from a validator, and a
//! [`Revalidator`] finds the routes of a live table whose validity changes with them.
//!
//! [`Aspas`] are the ASes that others attest as their providers, and verify the paths of routes. How, depends on from
//! whom a route was received: [`Relations`]. [`add_path_column`] stores the result in a table, and [`PathReport`]
//! counts it.
//!
//! [`add_columns`] stores the validity in a table, as columns, and [`ValidityReport`] counts it.
//!
//! ```
//! use fibula_rpki::{Validity, Vrps, decode};
//!
//! let file = b"ASN,IP Prefix,Max Length,Trust Anchor\nAS64500,192.0.2.0/23,24,ripe\nAS0,2001:db8::/32,32,ripe\n";
//! let vrps = Vrps::new(decode(file)?.vrps);
//! let prefix = "192.0.2.0/24".parse()?;
//! assert_eq!(vrps.validity(prefix, Some(64500)), Validity::Valid);
//! assert_eq!(vrps.validity(prefix, Some(64501)), Validity::InvalidOrigin);
//! assert_eq!(vrps.validity("192.0.2.0/25".parse()?, Some(64500)), Validity::InvalidLength);
//! assert_eq!(vrps.validity("192.0.0.0/16".parse()?, Some(64500)), Validity::NotFound);
//! assert_eq!(vrps.covering(prefix).next().unwrap().to_string(), "192.0.2.0/23-24 AS64500");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod aspa;
mod columns;
mod decode;
mod error;
mod live;
mod path_text;
mod paths;
mod read;
mod relations;
mod report;
#[cfg(feature = "rtr")]
pub mod rtr;
mod validity;
mod vrp;
mod vrps;

pub use aspa::{Aspa, Aspas, PathValidity, ReceivedFrom};
pub use columns::{ORIGIN, VALIDITY, VRPS, add_columns, parse_origin, renamed_columns};
pub use decode::{Decoded, DecodedAspas, decode, decode_aspas};
pub use error::{BadVrps, RpkiError};
pub use live::{
    CacheState, CacheStatus, LiveVrps, Revalidated, Revalidator, ValidityCounts, VrpGeneration,
};
pub use paths::{
    AS_PATH, PATH_VALIDITY, PathReport, PathStates, add_path_column, renamed_path_column,
};
pub use read::{AspaFile, VrpFile, read, read_all, read_all_aspas, read_aspas};
pub use relations::Relations;
pub use report::{FamilyCounts, OriginCounts, ValidityReport};
pub use validity::Validity;
pub use vrp::{Vrp, VrpError, parse_asn};
pub use vrps::Vrps;
