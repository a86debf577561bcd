//! Decodes the exports of flows that routers and probes send: NetFlow v5 and v9, IPFIX, sFlow v5.
//!
//! ```text
//! datagram + sender -> FlowDecoder -> FlowSink::flow(&FlowRecord, &FlowSource) for each flow
//!                        |
//!                        exporter (address) -> domain (protocol, port, number) -> templates, rates, names
//! ```
//!
//! A [`FlowDecoder`] keeps what exporters announce: templates, sampling rates, names of interfaces and VRFs, start
//! times. All of it is bounded by [`FlowLimits`], and belongs to one sender's observation domain. One [`FlowRecord`]
//! has the fields of all protocols. [`ExportCounts`] says what was decoded, lost by the sequence numbers, held back and
//! dropped.
//!
//! - A template is compiled into moves of integers when it is defined; a record of fixed length is read without a
//!   decision for each field.
//! - A datagram whose sets or samples do not fit it is refused whole. A fault inside a set ends that set; what was
//!   delivered before stands. No bytes make a method panic.
//! - Sets without a template wait for it, within a limit.
//! - Biflows (RFC 5103) are one record with both directions. Fields of enterprises are skipped.
//! - [`FlowDecoder::save`] and [`FlowDecoder::load`] keep templates over a restart.
//!
//! A [`NfcapdDecoder`] gives the same records out of the files of nfdump's collectors.
//!
//! The example is at [`FlowDecoder`]. The crate has no `unsafe` code, does no I/O and has no clock.
#![forbid(unsafe_code)]

mod bytes;
mod counts;
mod decoder;
mod elements;
mod fault;
mod ipfix;
mod limits;
mod nfcapd;
mod options;
mod protocol;
mod record;
mod saved;
mod sequence;
mod sets;
mod sflow;
mod state;
mod template;
mod times;
mod v5;
mod v9;

pub use counts::ExportCounts;
pub use decoder::{FlowDecoder, FlowSink, FlowSource};
pub use fault::{ExportFault, ExportFaultKind};
pub use limits::FlowLimits;
pub use nfcapd::{
    NFCAPD_BLOCK_LIMIT, NfcapdDecoder, NfcapdFault, NfcapdFaultKind, NfcapdSource, NfcapdStep,
};
pub use protocol::{ExportProtocol, ipfix_len};
pub use record::FlowRecord;
pub use saved::SavedFault;

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
