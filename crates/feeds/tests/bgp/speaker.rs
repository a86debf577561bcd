//! A speaker in a script: its messages and the expected output of the session are written in hex.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fibula_core::AnyPrefix;
use fibula_feeds::bgp::{BgpSession, Neighbour};
use fibula_feeds::{FeedError, Protocol, SourceState};
use fibula_rib::Rib;

/// Bytes of hex digits; white space between them is ignored.
pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    assert_eq!(digits.len() % 2, 0, "{text}");
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// A message with its marker and length, from its type and body.
pub fn message(text: &str) -> Vec<u8> {
    let body = hex(text);
    [&[0xff; 16][..], &(18 + body.len() as u16).to_be_bytes(), &body].concat()
}

/// Messages as `TYPE BODY` in hex.
pub fn split(mut bytes: &[u8]) -> Vec<String> {
    let mut messages = Vec::new();
    while !bytes.is_empty() {
        assert_eq!(bytes[..16], [0xff; 16]);
        let len = usize::from(u16::from_be_bytes([bytes[16], bytes[17]]));
        let digits: String = bytes[19..len].iter().map(|b| format!("{b:02x}")).collect();
        messages.push(format!("{:02x} {digits}", bytes[18]).trim_end().to_owned());
        bytes = &bytes[len..];
    }
    messages
}

pub const KEEPALIVE: &str = "04";
/// Parameters of an OPEN, a capability each: families, four-byte AS 64500, graceful restart of 120 s with
/// both families (their forwarding state not kept), route refresh with and without demarcation.
pub const IPV4: &str = "0206 0104 00010001";
pub const IPV6: &str = "0206 0104 00020001";
pub const FOUR: &str = "0206 4104 0000fbf4";
pub const RESTART: &str = "020c 400a 0078 00010100 00020100";
pub const AWARE: &str = "0204 4002 0000";
pub const REFRESH: &str = "0202 0200";
pub const ENHANCED: &str = "0202 4600";
/// AS 64500, hold time 90 s, identifier 192.0.2.9, and these parameters.
pub fn open(parameters: &[&str]) -> Vec<u8> {
    let all = parameters.concat();
    message(&format!("01 04 fbf4 005a c0000209 {:02x} {all}", hex(&all).len()))
}

/// ORIGIN IGP, AS_PATH 64500 64501, NEXT_HOP 192.0.2.9: 24 bytes.
pub const PATH: &str = "40010100 4002 0a 0202 0000fbf4 0000fbf5 4003 04 c0000209";
pub const END_V4: &str = "02 0000 0000";
pub const END_V6: &str = "02 0000 0006 800f03 000201";

/// An UPDATE that announces prefixes of IPv4 (hex) by these attributes.
pub fn update(attributes: &str, prefixes: &str) -> Vec<u8> {
    message(&format!("02 0000 {:04x} {attributes} {prefixes}", hex(attributes).len()))
}

/// An UPDATE that announces prefixes of IPv6 (hex), next hop 2001:db8::9.
pub fn update_v6(prefixes: &str) -> Vec<u8> {
    let reach = format!("0002 01 10 20010db8000000000000000000000009 00 {prefixes}");
    let len = hex(&reach).len();
    update(&format!("40010100 4002 06 0201 0000fbf4 800e {len:02x} {reach}"), "")
}

pub const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 9));

pub fn neighbour() -> Neighbour {
    Neighbour {
        asn: Some(64500),
        source: Some("bgp 192.0.2.9".into()),
        quiet: Duration::from_secs(5),
        longest_resync: Duration::from_secs(300),
        hold: Duration::from_secs(30),
        ..Neighbour::new(ADDRESS, 65000, Ipv4Addr::new(10, 0, 0, 1))
    }
}

pub fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A session, its table, and a clock.
pub struct Bench {
    pub session: BgpSession,
    pub rib: Rib,
    pub out: Vec<u8>,
    pub now: Duration,
    pub events: Arc<Mutex<Vec<String>>>,
}

impl Bench {
    pub fn new(neighbour: Neighbour) -> Self {
        neighbour.check().unwrap();
        let events = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&events);
        let session = BgpSession::new(neighbour)
            .with_events(move |event| log.lock().unwrap().push(event.to_string()));
        Self { session, rib: Rib::default(), out: Vec::new(), now: s(1000), events }
    }

    /// With an established session, whose first messages were removed from the output.
    pub fn established(neighbour: Neighbour, parameters: &[&str]) -> Self {
        let mut bench = Self::new(neighbour);
        bench.establish(parameters);
        bench
    }

    pub fn establish(&mut self, parameters: &[&str]) {
        self.connect();
        self.send(&open(parameters)).unwrap();
        self.send(&message(KEEPALIVE)).unwrap();
        assert!(self.session.established().is_some());
        self.out.clear();
    }

    pub fn connect(&mut self) {
        self.session.connected(self.now, &mut self.rib, &mut self.out).unwrap();
    }

    /// The error's text, if the connection ended.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        let result = self.session.bytes(self.now, bytes, &mut self.rib, &mut self.out);
        result.map_err(|error| match error {
            FeedError::Ended(why) => why,
            other => panic!("{other}"),
        })
    }

    pub fn tick(&mut self, seconds: u64) -> Result<(), String> {
        self.now += s(seconds);
        let result = self.session.tick(self.now, &mut self.rib, &mut self.out);
        result.map_err(|error| error.to_string())
    }

    /// The output since the last call.
    pub fn sent(&mut self) -> Vec<String> {
        split(&std::mem::take(&mut self.out))
    }

    pub fn state(&self) -> SourceState {
        self.session.state()
    }

    /// The prefixes that have a route.
    pub fn prefixes(&self) -> Vec<String> {
        fibula_feeds::prefixes(&self.rib, 0).iter().map(AnyPrefix::to_string).collect()
    }

    pub fn events(&self) -> Vec<String> {
        std::mem::take(&mut self.events.lock().unwrap())
    }
}
