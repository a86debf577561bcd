//! The decoder, and what it gives to its sink.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use crate::bytes::u16_at;
use crate::counts::ExportCounts;
use crate::fault::{ExportFault, ExportFaultKind};
use crate::limits::FlowLimits;
use crate::protocol::ExportProtocol;
use crate::record::FlowRecord;
use crate::state::{Domain, DomainKey, Exporter, least_used};

/// Takes what the decoder reads.
pub trait FlowSink {
    /// A record of a flow, or a sampled packet. It is valid until the method returns.
    fn flow(&mut self, record: &FlowRecord, source: &FlowSource<'_>);

    /// A fault of the datagram.
    fn fault(&mut self, fault: &ExportFault) {
        let _ = fault;
    }
}

/// Where a record comes from, and the names that its exporter has announced.
#[derive(Clone, Copy, Debug)]
pub struct FlowSource<'a> {
    pub(crate) exporter: IpAddr,
    pub(crate) key: DomainKey,
    pub(crate) time_ms: Option<u64>,
    pub(crate) domain: &'a Domain,
}

impl FlowSource<'_> {
    /// The address that sent the datagram.
    #[must_use]
    pub fn exporter(&self) -> IpAddr {
        self.exporter
    }

    /// The address of sFlow's agent, which differs from the sender's if datagrams are relayed.
    #[must_use]
    pub fn agent(&self) -> Option<IpAddr> {
        self.key.agent
    }

    /// The port that sent the datagram.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.key.port
    }

    /// The protocol.
    #[must_use]
    pub fn protocol(&self) -> ExportProtocol {
        self.key.protocol
    }

    /// The observation domain of IPFIX, the source id of NetFlow v9, engine type and number of NetFlow v5
    /// (`type * 256 + number`), the sub-agent of sFlow.
    #[must_use]
    pub fn domain(&self) -> u32 {
        self.key.id
    }

    /// When the datagram was exported, in milliseconds since 1970, by the exporter's clock; sFlow has no such time.
    #[must_use]
    pub fn export_ms(&self) -> Option<u64> {
        self.time_ms
    }

    /// The name of an interface.
    #[must_use]
    pub fn interface_name(&self, number: u32) -> Option<&str> {
        self.domain.interfaces.get(&number).map(|name| &**name)
    }

    /// The name of a VRF.
    #[must_use]
    pub fn vrf_name(&self, number: u32) -> Option<&str> {
        self.domain.vrfs.get(&number).map(|name| &**name)
    }

    /// What was counted of this domain before this datagram.
    #[must_use]
    pub fn counts(&self) -> &ExportCounts {
        &self.domain.counts
    }
}

/// Decodes the datagrams of exporters and keeps their templates. It does no I/O and has no clock.
///
/// Templates belong to the address and port that sent them, and there to an observation domain: no datagram changes how
/// another sender's are read. Give port 0 for all datagrams of an exporter whose ports do not matter.
///
/// ```
/// use fibula_flows::{FlowDecoder, FlowRecord, FlowSink, FlowSource};
///
/// #[derive(Default)]
/// struct Bytes(u64);
///
/// impl FlowSink for Bytes {
///     fn flow(&mut self, record: &FlowRecord, _: &FlowSource<'_>) {
///         self.0 += record.bytes().unwrap_or_default();
///     }
/// }
///
/// // IPFIX: template 256 has destinationIPv4Address and octetDeltaCount in two bytes; then a record.
/// let message = [
///     &b"\0\x0a\0\x2e\x65\0\0\0\0\0\0\0\0\0\0\x01"[..],
///     b"\0\x02\0\x10\x01\0\0\x02\0\x0c\0\x04\0\x01\0\x02",
///     b"\x01\0\0\x0e\xc0\0\x02\x01\x05\xdc\0\0\0\0",
/// ]
/// .concat();
/// let (mut decoder, mut sink) = (FlowDecoder::default(), Bytes::default());
/// let counts = decoder.decode("192.0.2.9:4739".parse()?, &message, &mut sink);
/// assert_eq!((counts.flows, counts.templates, sink.0), (1, 1, 1500));
/// // Another exporter has not sent the template.
/// let data = [&b"\0\x0a\0\x1e\x65\0\0\0\0\0\0\0\0\0\0\x01"[..], &message[32..]].concat();
/// let counts = decoder.decode("192.0.2.8:4739".parse()?, &data, &mut sink);
/// assert_eq!((counts.flows, counts.held), (0, 1));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Debug, Default)]
pub struct FlowDecoder {
    pub(crate) limits: FlowLimits,
    pub(crate) exporters: HashMap<IpAddr, Exporter>,
    pub(crate) tick: u64,
    bytes: usize,
    record: Box<FlowRecord>,
    totals: ExportCounts,
}

/// What decoding a datagram needs.
pub(crate) struct Work<'a, S> {
    pub(crate) exporter: IpAddr,
    pub(crate) key: DomainKey,
    pub(crate) domain: &'a mut Domain,
    pub(crate) record: &'a mut FlowRecord,
    pub(crate) limits: &'a FlowLimits,
    pub(crate) tick: u64,
    /// The sampling rate of the session's domain 0, which is that of the whole exporter (RFC 7011, section 3.1).
    pub(crate) session_rate: Option<u32>,
    pub(crate) counts: ExportCounts,
    pub(crate) sink: &'a mut S,
}

impl<S: FlowSink> Work<'_, S> {
    pub(crate) fn fault(&mut self, at: usize, kind: ExportFaultKind) {
        self.counts.faults += 1;
        self.sink.fault(&ExportFault::new(at, kind));
    }

    /// Gives the record to the sink.
    #[inline]
    pub(crate) fn deliver(&mut self, time_ms: Option<u64>) {
        let source =
            FlowSource { exporter: self.exporter, key: self.key, time_ms, domain: self.domain };
        self.sink.flow(self.record, &source);
        self.counts.flows += 1;
    }
}

impl FlowDecoder {
    /// A decoder with other limits than the usual ones.
    #[must_use]
    pub fn new(limits: FlowLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Decodes a datagram and gives its records to the sink. Returns what was counted.
    pub fn decode<S: FlowSink>(
        &mut self,
        sender: SocketAddr,
        datagram: &[u8],
        sink: &mut S,
    ) -> ExportCounts {
        let counts = match key(sender.port(), datagram) {
            Ok(key) => self.in_domain(sender.ip().to_canonical(), key, datagram, sink),
            Err(fault) => {
                sink.fault(&fault);
                ExportCounts { datagrams: 1, faults: 1, ..ExportCounts::default() }
            }
        };
        self.totals.add(&counts);
        counts
    }

    fn in_domain<S: FlowSink>(
        &mut self,
        address: IpAddr,
        key: DomainKey,
        datagram: &[u8],
        sink: &mut S,
    ) -> ExportCounts {
        let Self { limits, exporters, tick, bytes, record, .. } = self;
        *tick += 1;
        let mut forgotten = 0;
        if exporters.len() >= limits.exporters.max(1) && !exporters.contains_key(&address) {
            forgotten += forget(exporters, &address, bytes);
        }
        let before = exporters.get(&address).map_or(0, Exporter::cost);
        let exporter = exporters.entry(address).or_default();
        exporter.used = *tick;
        let session = DomainKey { id: 0, ..key };
        let session_rate = exporter.domains.get(&session).and_then(Domain::common_rate);
        let domain = exporter.domains.entry(key).or_default();
        let domain_before = if domain.used == 0 { 0 } else { domain.cost() };
        domain.used = *tick;
        let mut work = Work {
            exporter: address,
            key,
            domain,
            record,
            limits,
            tick: *tick,
            session_rate,
            counts: ExportCounts { datagrams: 1, ..ExportCounts::default() },
            sink,
        };
        match key.protocol {
            ExportProtocol::NetflowV5 => crate::v5::decode(&mut work, datagram),
            ExportProtocol::NetflowV9 => crate::v9::decode(&mut work, datagram),
            ExportProtocol::Ipfix => crate::ipfix::decode(&mut work, datagram),
            ExportProtocol::Sflow => crate::sflow::decode(&mut work, datagram),
        }
        let mut counts = work.counts;
        domain.counts.add(&counts);
        exporter.bytes += domain.cost();
        exporter.bytes -= domain_before;
        counts.forgotten += forgotten + exporter.trim(&key, limits);
        *bytes += exporter.cost();
        *bytes -= before;
        while *bytes > limits.bytes && exporters.len() > 1 {
            counts.forgotten += forget(exporters, &address, bytes);
        }
        counts
    }

    /// Changes what is kept of a domain. One that the limits have removed already is changed for nothing.
    pub(crate) fn change_domain<T>(
        &mut self,
        address: IpAddr,
        key: DomainKey,
        change: impl FnOnce(&mut Domain) -> T,
    ) -> T {
        let exporter = self.exporters.get_mut(&address);
        let domain = exporter.and_then(|exporter| {
            let domain = exporter.domains.get_mut(&key)?;
            Some((domain, &mut exporter.bytes))
        });
        let Some((domain, bytes)) = domain else { return change(&mut Domain::default()) };
        let before = domain.cost();
        let result = change(domain);
        for sum in [bytes, &mut self.bytes] {
            *sum += domain.cost();
            *sum -= before;
        }
        result
    }

    pub(crate) fn set_totals(&mut self, totals: ExportCounts) {
        self.totals = totals;
    }

    /// What was counted of all datagrams.
    #[must_use]
    pub fn totals(&self) -> &ExportCounts {
        &self.totals
    }

    /// Every domain that is kept: its exporter, port, protocol and number, and what was counted of it.
    pub fn sources(&self) -> impl Iterator<Item = FlowSource<'_>> {
        self.exporters.iter().flat_map(|(exporter, state)| {
            state.domains.iter().map(|(key, domain)| FlowSource {
                exporter: *exporter,
                key: *key,
                time_ms: None,
                domain,
            })
        })
    }

    /// What the state takes in memory, about, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.bytes
    }
}

/// Forgets the exporter other than `current` that was not used for the longest time.
fn forget(exporters: &mut HashMap<IpAddr, Exporter>, current: &IpAddr, bytes: &mut usize) -> u64 {
    let oldest = least_used(exporters, current, |exporter| exporter.used);
    let Some(old) = oldest.and_then(|oldest| exporters.remove(&oldest)) else { return 0 };
    *bytes -= old.cost();
    1
}

/// The domain of a datagram whose header and sets fit it.
fn key(port: u16, datagram: &[u8]) -> Result<DomainKey, ExportFault> {
    let fault = ExportFault::new;
    let Some(protocol) = ExportProtocol::of_version(datagram) else {
        return Err(match u16_at(datagram, 0) {
            Some(version) => fault(0, ExportFaultKind::Version(version)),
            None => fault(0, ExportFaultKind::Header),
        });
    };
    let (id, agent) = match protocol {
        ExportProtocol::NetflowV5 => (crate::v5::domain(datagram)?, None),
        ExportProtocol::NetflowV9 => (crate::v9::domain(datagram)?, None),
        ExportProtocol::Ipfix => (crate::ipfix::domain(datagram)?, None),
        ExportProtocol::Sflow => crate::sflow::domain(datagram)?,
    };
    Ok(DomainKey { protocol, port, agent, id })
}
