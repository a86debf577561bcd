//! What was received, and what became of it.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use fibula_flows::{ExportCounts, ExportFault};

/// Counts of an exporter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExporterCounts {
    /// What was decoded.
    pub exports: ExportCounts,
    /// Datagrams that were received and dropped, because too many waited to be decoded.
    pub dropped: u64,
}

impl ExporterCounts {
    /// The counts that say what became of its exports: the name of each, what it is, and its value.
    #[must_use]
    pub fn named(&self) -> [(&'static str, &'static str, u64); 12] {
        let exports = &self.exports;
        [
            ("datagrams", "Datagrams that were decoded.", exports.datagrams),
            ("flows", "Flows, or sampled packets.", exports.flows),
            (
                "dropped",
                "Datagrams that were dropped because too many waited to be decoded.",
                self.dropped,
            ),
            (
                "lost",
                "Missing by sequence numbers: flows (NetFlow v5, IPFIX) or exports (NetFlow v9, sFlow).",
                exports.lost,
            ),
            (
                "lost_samples",
                "Samples of sFlow that are missing by their sequence numbers.",
                exports.lost_samples,
            ),
            ("late", "Exports that came late or twice.", exports.late),
            ("restarts", "Starts of the exporter.", exports.restarts),
            ("templates", "Templates that were defined, again or anew.", exports.templates),
            (
                "without_template",
                "Sets of records whose template was not known when they came.",
                exports.held,
            ),
            (
                "dropped_sets",
                "Sets that were dropped because too many waited for their template.",
                exports.dropped,
            ),
            ("faults", "Faults in datagrams.", exports.faults),
            (
                "forgotten",
                "Templates, domains or exporters that were forgotten because of a limit.",
                exports.forgotten,
            ),
        ]
    }
}

/// Counts of a collector since its start.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CollectCounts {
    /// Datagrams that were received.
    pub datagrams: u64,
    /// Datagrams of senders that are not allowed.
    pub refused: u64,
    /// Datagrams that were dropped because too many waited to be decoded.
    pub dropped: u64,
    /// Datagrams that the system dropped because a socket's buffer was full, or that had a wrong checksum.
    pub dropped_by_system: u64,
    /// What was decoded.
    pub exports: ExportCounts,
    /// Exporters that are kept, with their counts. When the decoder forgets one, its counts begin anew.
    pub exporters: BTreeMap<IpAddr, ExporterCounts>,
    /// Rows that were given to the output.
    pub rows: u64,
    /// Flows that were sent on.
    pub forwarded: u64,
    /// Flows that could not be sent on.
    pub unsent: u64,
    /// Addresses that were looked up.
    pub addresses: u64,
    /// Addresses with a route.
    pub matched: u64,
    /// Files that were completed.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// About how many bytes of memory the decoders keep of exporters.
    pub memory: usize,
    /// The last datagram that could not be decoded: its sender, and what was wrong.
    pub last_fault: Option<(SocketAddr, ExportFault)>,
}
