//! Templates, rates and names as bytes, to keep them over a restart.
//!
//! Templates are stored as the messages that define them, so that they are checked as those of exporters are:
//!
//! ```text
//! "fibula flows 1\n"
//! for each domain: protocol, port, number, address of the exporter; then
//!     'T' length message | 'R' rate | 'I' interface's name | 'V' VRF's name | 'S' start | 'E' the end
//! checksum (FNV-1a, 64 bits) of all before it
//! ```

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::bytes::Cursor;
use crate::decoder::{FlowDecoder, FlowSink, FlowSource};
use crate::sequence::Sequence;
use crate::state::{Domain, DomainKey, RateKey};
use crate::template::Spec;
use crate::{ExportCounts, ExportProtocol, FlowRecord};

const MAGIC: &[u8] = b"fibula flows 1\n";

/// The bytes are not what [`FlowDecoder::save`] wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedFault {
    at: usize,
    reason: &'static str,
}

impl SavedFault {
    /// The offset of the fault.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }
}

impl fmt::Display for SavedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "saved templates: at byte {}: {}", self.at, self.reason)
    }
}

impl std::error::Error for SavedFault {}

/// Messages of templates have no flows.
struct Nothing;

impl FlowSink for Nothing {
    fn flow(&mut self, _: &FlowRecord, _: &FlowSource<'_>) {}
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

impl FlowDecoder {
    /// Writes templates, sampling rates and names of NetFlow v9 and IPFIX domains. Sequence numbers, counts and sets
    /// that wait are not included.
    ///
    /// ```
    /// use fibula_flows::FlowDecoder;
    ///
    /// let bytes = FlowDecoder::default().save();
    /// let mut decoder = FlowDecoder::default();
    /// decoder.load(&bytes)?;
    /// assert_eq!(decoder.load(&bytes[1..]).unwrap_err().at(), 0);
    /// # Ok::<(), fibula_flows::SavedFault>(())
    /// ```
    #[must_use]
    pub fn save(&self) -> Vec<u8> {
        self.save_domains(|_| true)
    }

    /// Like [`FlowDecoder::save`], without the domains whose datagrams have not been decoded since
    /// [`FlowDecoder::load`]. For several decoders that loaded the same bytes, of which each exporter uses one.
    #[must_use]
    pub fn save_used(&self) -> Vec<u8> {
        self.save_domains(|domain| domain.counts.datagrams > 0)
    }

    fn save_domains(&self, wanted: impl Fn(&Domain) -> bool) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        // In order of their last use: a decoder with smaller limits keeps the latest.
        let mut domains: Vec<_> = self
            .exporters
            .iter()
            .flat_map(|(address, exporter)| {
                exporter.domains.iter().map(move |(key, domain)| (address, key, domain))
            })
            .filter(|(_, key, domain)| key.agent.is_none() && wanted(domain))
            .collect();
        domains.sort_by_key(|(address, key, domain)| (domain.used, **address, **key));
        for (address, key, domain) in domains {
            let protocol = match key.protocol {
                ExportProtocol::NetflowV9 => 9,
                ExportProtocol::Ipfix => 10,
                ExportProtocol::NetflowV5 | ExportProtocol::Sflow => continue,
            };
            let address = match address {
                IpAddr::V4(address) => address.to_ipv6_mapped(),
                IpAddr::V6(address) => *address,
            };
            out.push(protocol);
            out.extend(key.port.to_be_bytes());
            out.extend(key.id.to_be_bytes());
            out.extend(address.octets());
            save_domain(protocol == 10, key.id, domain, &mut out);
        }
        out.extend(checksum(&out).to_be_bytes());
        out
    }

    /// Adds what [`FlowDecoder::save`] wrote, within the limits. This is for a decoder that has decoded nothing yet.
    ///
    /// # Errors
    ///
    /// The bytes are damaged or written by something else. If the checksum is wrong, nothing is added.
    pub fn load(&mut self, saved: &[u8]) -> Result<(), SavedFault> {
        let fault = |at, reason| SavedFault { at, reason };
        if !saved.starts_with(MAGIC) {
            return Err(fault(0, "they do not begin as saved templates do"));
        }
        let Some((body, sum)) = saved.split_last_chunk::<8>().filter(|_| saved.len() >= 23) else {
            return Err(fault(saved.len(), "they are cut"));
        };
        if checksum(body) != u64::from_be_bytes(*sum) {
            return Err(fault(body.len(), "the checksum does not match: the bytes are damaged"));
        }
        let mut cursor = Cursor::new(body, MAGIC.len());
        while cursor.left() > 0 {
            let at = cursor.at;
            self.load_domain(&mut cursor).ok_or(fault(at, "a domain is malformed"))?;
        }
        Ok(())
    }

    fn load_domain(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let protocol = match cursor.u8()? {
            9 => ExportProtocol::NetflowV9,
            10 => ExportProtocol::Ipfix,
            _ => return None,
        };
        let (port, id) = (cursor.u16()?, cursor.u32()?);
        let address = Ipv6Addr::from(*cursor.take(16)?.first_chunk::<16>()?).to_canonical();
        let key = DomainKey { protocol, port, agent: None, id };
        // An empty message makes the domain, and at the end applies the limits.
        let empty = message(protocol == ExportProtocol::Ipfix, id, &[]);
        self.define(address, key, &empty);
        loop {
            match cursor.u8()? {
                b'T' => {
                    let len = usize::from(cursor.u16()?);
                    self.define(address, key, cursor.take(len)?);
                }
                b'E' => break,
                tag => {
                    let limit = self.limits.names;
                    self.change_domain(address, key, |domain| {
                        load_item(tag, cursor, domain, limit)
                    })?;
                }
            }
        }
        self.define(address, key, &empty);
        Some(())
    }

    /// Decodes a message of templates alone. It is none of the exporter's: it changes neither counts nor numbers.
    fn define(&mut self, address: IpAddr, key: DomainKey, message: &[u8]) {
        let totals = *self.totals();
        self.decode(SocketAddr::new(address, key.port), message, &mut Nothing);
        self.set_totals(totals);
        self.change_domain(address, key, |domain| {
            domain.sequence = Sequence::default();
            domain.counts = ExportCounts::default();
        });
    }
}

/// Reads a rate, a name or a start time.
fn load_item(tag: u8, cursor: &mut Cursor<'_>, domain: &mut Domain, limit: usize) -> Option<()> {
    match tag {
        b'R' => {
            let (kind, number, rate) = (cursor.u8()?, cursor.u64()?, cursor.u32()?);
            let key = match kind {
                0 => RateKey::All,
                1 => RateKey::Sampler(number),
                2 => RateKey::Interface(number.try_into().ok()?),
                _ => return None,
            };
            domain.set_rate(key, rate, limit);
        }
        b'I' | b'V' => {
            let number = cursor.u32()?;
            let len = usize::from(cursor.u16()?);
            let name = cursor.take(len)?;
            match tag {
                b'I' => domain.name_interface(number, name, limit),
                _ => domain.name_vrf(number, name, limit),
            }
        }
        b'S' => domain.system_init = Some(cursor.u64()?),
        _ => return None,
    }
    Some(())
}

fn save_domain(ipfix: bool, id: u32, domain: &Domain, out: &mut Vec<u8>) {
    let mut templates: Vec<_> = domain.templates.iter().collect();
    templates.sort_by_key(|(number, template)| (template.used, **number));
    for (number, template) in templates {
        let set = template_set(ipfix, *number, &template.specs, template.scopes);
        let message = message(ipfix, id, &set);
        // The limit of fields keeps a template below a datagram, in which it came.
        let Ok(len) = u16::try_from(message.len()) else { continue };
        out.push(b'T');
        out.extend(len.to_be_bytes());
        out.extend(message);
    }
    for (key, rate) in &domain.rates {
        let (kind, number) = match key {
            RateKey::All => (0, 0),
            RateKey::Sampler(number) => (1, *number),
            RateKey::Interface(number) => (2, u64::from(*number)),
        };
        out.extend([b'R', kind]);
        out.extend(number.to_be_bytes());
        out.extend(rate.to_be_bytes());
    }
    for (tag, names) in [(b'I', &domain.interfaces), (b'V', &domain.vrfs)] {
        let mut names: Vec<_> = names.iter().collect();
        names.sort();
        for (number, name) in names {
            out.push(tag);
            out.extend(number.to_be_bytes());
            out.extend((name.len() as u16).to_be_bytes());
            out.extend(name.as_bytes());
        }
    }
    if let Some(start) = domain.system_init {
        out.push(b'S');
        out.extend(start.to_be_bytes());
    }
    out.push(b'E');
}

/// The set that defines a template.
fn template_set(ipfix: bool, number: u16, specs: &[Spec], scopes: Option<u16>) -> Vec<u8> {
    let mut body = number.to_be_bytes().to_vec();
    let fields = specs.len() as u16;
    match (scopes, ipfix) {
        (None, _) => body.extend(fields.to_be_bytes()),
        (Some(scopes), true) => body.extend([fields.to_be_bytes(), scopes.to_be_bytes()].concat()),
        (Some(scopes), false) => {
            let lengths = [scopes * 4, (fields - scopes) * 4];
            body.extend(lengths.map(u16::to_be_bytes).concat());
        }
    }
    for spec in specs {
        let enterprise = if spec.enterprise == 0 { 0 } else { 0x8000 };
        body.extend((spec.number | enterprise).to_be_bytes());
        body.extend(spec.len.to_be_bytes());
        if enterprise != 0 {
            body.extend(spec.enterprise.to_be_bytes());
        }
    }
    let set: u16 = if ipfix { 2 } else { 0 } + u16::from(scopes.is_some());
    [&set.to_be_bytes()[..], &(body.len() as u16 + 4).to_be_bytes(), &body].concat()
}

/// A message with a set, without times and sequence numbers.
fn message(ipfix: bool, id: u32, set: &[u8]) -> Vec<u8> {
    let (version, len): (u16, usize) = if ipfix { (10, 16) } else { (9, 20) };
    let mut out = version.to_be_bytes().to_vec();
    // IPFIX has the length here, NetFlow v9 a number of records.
    out.extend(if ipfix { (len + set.len()) as u16 } else { 1 }.to_be_bytes());
    out.resize(len - 4, 0);
    out.extend(id.to_be_bytes());
    out.extend(set);
    out
}
