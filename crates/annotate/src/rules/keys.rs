//! The flows of a block's rows.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fibula_classify::text::protocol;
use fibula_classify::{FiveTuple, Flow};
use fibula_simd::parse_v4;

use crate::Address;
use crate::block::NotAnAddress;
use crate::pipeline::keys::KeySink;

/// The flows of rows. The cells of a row are source, destination, protocol, and source and destination port unless
/// the input has no columns of ports.
#[derive(Debug, Default)]
pub(crate) struct FlowKeys {
    /// For each row its flow or its fault.
    pub(crate) flows: Vec<Result<Flow, String>>,
    /// The lengths of packets in bytes; rows have none.
    pub(crate) lengths: Vec<u32>,
    row: Row,
}

/// The cells of a row so far.
#[derive(Debug, Default)]
struct Row {
    cells: usize,
    ends: [Option<IpAddr>; 2],
    protocol: u8,
    ports: [Option<u16>; 2],
    wrong: Option<String>,
}

impl Row {
    /// The position of the next cell in the row.
    #[inline]
    fn next(&mut self) -> usize {
        self.cells += 1;
        self.cells - 1
    }

    #[inline]
    fn ip(&mut self, ip: IpAddr) {
        match self.next() {
            at @ 0..=1 => self.ends[at] = Some(ip),
            at => self.wrong(at, &ip.to_string()),
        }
    }

    /// Keeps the first error of the row.
    #[cold]
    fn wrong(&mut self, at: usize, text: &str) {
        let what = match at {
            0 | 1 => "is not an address",
            2 => "is no protocol: give its number",
            _ => "is not a port",
        };
        let text: String = text.chars().take(60).collect();
        self.wrong.get_or_insert_with(|| format!("{text:?} {what}"));
    }

    fn text(&mut self, text: &[u8]) {
        let text = text.trim_ascii();
        if let Some(v4) = parse_v4(text) {
            return self.ip(Ipv4Addr::from_bits(v4).into());
        }
        let Ok(text) = std::str::from_utf8(text) else {
            let at = self.next();
            return self.wrong(at, &String::from_utf8_lossy(text));
        };
        let at = self.next();
        let is_read = match at {
            0 | 1 => {
                self.ends[at] = text.parse::<Ipv6Addr>().ok().map(IpAddr::from);
                self.ends[at].is_some()
            }
            2 => {
                let read = protocol(text);
                self.protocol = read.unwrap_or_default();
                read.is_some()
            }
            3 | 4 if matches!(text, "" | "-") => true,
            3 | 4 => {
                self.ports[at - 3] = text.parse().ok();
                self.ports[at - 3].is_some()
            }
            _ => true,
        };
        if !is_read {
            self.wrong(at, text);
        }
    }

    fn flow(&self) -> Result<Flow, String> {
        if let Some(wrong) = &self.wrong {
            return Err(wrong.clone());
        }
        let [Some(src), Some(dst)] = self.ends else {
            return Err("an address is missing".to_owned());
        };
        let ports = match self.ports {
            [Some(from), Some(to)] => Some((from, to)),
            [None, None] => None,
            _ => return Err("\"\" is not a port".to_owned()),
        };
        let five = FiveTuple { src, dst, protocol: self.protocol, ports };
        Flow::try_from(&five).map_err(|error| error.to_string())
    }
}

impl FlowKeys {
    /// Adds the flow of a packet.
    #[inline]
    pub(crate) fn packet(&mut self, flow: Flow, length: u32) {
        self.flows.push(Ok(flow));
        self.lengths.push(length);
    }
}

impl KeySink for FlowKeys {
    fn clear(&mut self) {
        self.flows.clear();
        self.lengths.clear();
        self.row = Row::default();
    }

    fn v4(&mut self, _: u32, addr: u32) {
        self.row.ip(Ipv4Addr::from_bits(addr).into());
    }

    fn address(&mut self, _: u32, address: Address) {
        self.row.ip(address.into());
    }

    fn empty(&mut self, _: u32) {
        self.row.text(b"");
    }

    fn text(&mut self, _: u32, text: &[u8], _: bool) -> Result<(), NotAnAddress> {
        self.row.text(text);
        Ok(())
    }

    fn row(&mut self) {
        self.flows.push(self.row.flow());
        self.row = Row::default();
    }
}
