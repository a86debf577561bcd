//! Counts of what was decoded, and of what was not.

/// Counts of a datagram, a domain, or all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportCounts {
    /// Datagrams, also faulty ones.
    pub datagrams: u64,
    /// Records of flows, or sampled packets, that were delivered.
    pub flows: u64,
    /// Records of options.
    pub options: u64,
    /// Templates that were defined, again or anew.
    pub templates: u64,
    /// Templates that replaced another one of the same number with other fields.
    pub redefined: u64,
    /// Templates that the exporter withdrew.
    pub withdrawn: u64,
    /// Sets that wait for their template, now or earlier.
    pub held: u64,
    /// Sets that waited and were decoded. Their records are in `flows`.
    pub released: u64,
    /// Sets without a template that were dropped.
    pub dropped: u64,
    /// Samples of sFlow that are not of flows: counters, discarded packets, other enterprises' samples.
    pub other_samples: u64,
    /// Sampled packets of sFlow whose addresses are not known, because they are not IP or their header is cut. They are
    /// delivered and included in `flows`.
    pub without_addresses: u64,
    /// Faults.
    pub faults: u64,
    /// What is missing by the sequence numbers: flows of NetFlow v5, datagrams of NetFlow v9 and sFlow, records of
    /// IPFIX.
    pub lost: u64,
    /// Samples of sFlow that are missing by the sequence numbers of their sources.
    pub lost_samples: u64,
    /// Datagrams that came late or twice. What a late one has is in `lost`, too.
    pub late: u64,
    /// Starts of the exporter, found by its uptime or by a sequence number far behind the last one.
    pub restarts: u64,
    /// Templates, domains and exporters that were forgotten because of a limit.
    pub forgotten: u64,
}

impl ExportCounts {
    /// Adds other counts.
    pub fn add(&mut self, other: &Self) {
        for (sum, number) in [
            (&mut self.datagrams, other.datagrams),
            (&mut self.flows, other.flows),
            (&mut self.options, other.options),
            (&mut self.templates, other.templates),
            (&mut self.redefined, other.redefined),
            (&mut self.withdrawn, other.withdrawn),
            (&mut self.held, other.held),
            (&mut self.released, other.released),
            (&mut self.dropped, other.dropped),
            (&mut self.other_samples, other.other_samples),
            (&mut self.without_addresses, other.without_addresses),
            (&mut self.faults, other.faults),
            (&mut self.lost, other.lost),
            (&mut self.lost_samples, other.lost_samples),
            (&mut self.late, other.late),
            (&mut self.restarts, other.restarts),
            (&mut self.forgotten, other.forgotten),
        ] {
            *sum = sum.saturating_add(number);
        }
    }
}
