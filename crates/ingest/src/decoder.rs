//! The contract between decoders and their callers.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::sync::Arc;

use fibula_core::{Attributes, Change, ColumnKind, ScalarType, Update, Value, Vrf};

/// The state of the input after the bytes given to a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// More input may follow: an incomplete record at the end is left for the next call.
    More,
    /// The input ends here, as its writer intended.
    End,
    /// The input breaks off here (a truncated archive): an incomplete last record must not be used. This matters for
    /// text: `10.0.0.0/2` may be the beginning of `10.0.0.0/24`.
    Cut,
}

impl Tail {
    /// Whether no more input can follow.
    pub fn is_last(self) -> bool {
        self != Self::More
    }
}

/// A push decoder: it takes bytes and calls a [`Sink`]. It does no I/O.
///
/// The caller keeps the bytes that were not consumed, and passes them again with more bytes behind. The sink gets the
/// same calls however the input is split.
pub trait Decoder: Send {
    /// Decodes the complete records at the beginning of `input` and returns the number of bytes consumed. With
    /// [`Tail::More`] this may be 0, and then more input is needed. With the other two it is all of the input.
    /// # Errors
    /// [`StopReason`] if the sink asked to stop or the options do not fit. The decoder must not be used again.
    fn decode(
        &mut self,
        input: &[u8],
        tail: Tail,
        sink: &mut dyn Sink,
    ) -> Result<usize, StopReason>;

    /// Records seen so far: lines of text, MRT records, networks of an mmdb file, FPM frames, netlink messages.
    fn records(&self) -> u64;

    /// Whether the decoder holds back a decoded update: a withdrawal that the next record may turn into a
    /// replacement. Holding it back avoids a moment without a route between the two.
    fn is_holding(&self) -> bool {
        false
    }

    /// Passes held-back updates to the sink. Call it when no input is expected for a while. After [`Tail::End`] or
    /// [`Tail::Cut`] nothing is held back.
    fn flush(&mut self, sink: &mut dyn Sink) {
        let _ = sink;
    }
}

/// The reason why a decoder stopped before the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The sink asked to stop, by [`Sink::damage`].
    BySink,
    /// The options do not fit the input, which was not decoded; or a stream (BMP) has become unreadable, because the
    /// beginning of the next record cannot be found. The text gives the reason.
    Misfit(String),
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BySink => f.write_str("decoding was stopped"),
            Self::Misfit(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for StopReason {}

/// Receives the output of a [`Decoder`], of [`read`](crate::read) or of [`bgp::Messages`](crate::bgp::Messages), for
/// one source. [`Sink::begin`] is called once, before all other calls except [`Sink::damage`]. A peer is declared
/// before an update names it.
pub trait Sink {
    /// The format and columns of the input.
    fn begin(&mut self, info: &SourceInfo) {
        let _ = info;
    }
    /// A BGP peer that the following updates can refer to by `index`.
    fn peer(&mut self, index: u32, peer: &PeerInfo) {
        let _ = (index, peer);
    }
    /// A routing instance that the following updates can refer to by `index` ([`Update::vrf`]), and its name, which
    /// is unique in the source. Not called for a source with one table.
    fn vrf(&mut self, index: Vrf, name: &str) {
        let _ = (index, name);
    }
    /// Information about the source that affects no route: a router's name, a statistic.
    fn remark(&mut self, key: &'static str, value: &str) {
        let _ = (key, value);
    }
    /// The record of the following updates, counted like [`Damage::record`], in sources without peers. If `takes` is
    /// true, they may replace prefixes of earlier records by a rule of the format, as when one range lies inside
    /// another. Otherwise, a prefix that occurred before is a duplicate.
    fn record(&mut self, record: u64, takes: bool) {
        let _ = (record, takes);
    }
    /// A change of a peer's session.
    fn peer_state(&mut self, state: &PeerState) {
        let _ = state;
    }
    /// A route is announced or withdrawn.
    fn update(&mut self, update: &Update<'_>);
    /// The peer has sent all its routes (BGP's End-of-RIB, the end of a dump). Routes from an earlier connection that
    /// were not sent again are gone.
    fn end_of_rib(&mut self, peer: u32) {
        let _ = peer;
    }
    /// A part of the input cannot be decoded and is skipped. [`ControlFlow::Break`] stops the decoder.
    fn damage(&mut self, damage: &Damage) -> ControlFlow<()>;
    /// A valid part without a unicast route was skipped.
    fn ignored(&mut self, what: &'static str) {
        let _ = what;
    }
    /// A part was not read literally, or contradicts other parts; `what` describes how it was read.
    fn noted(&mut self, what: &'static str) {
        let _ = what;
    }
}

/// A part of the input that could not be decoded, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file, `-` for standard input; empty if a decoder is used without [`read`](crate::read).
    pub file: Arc<str>,
    /// The record, counted from 1: the line of a text file, the record of an MRT file, the network of an mmdb file,
    /// the frame of FPM, the message of netlink. 0 if the archive around them is damaged.
    pub record: u64,
    /// The position where the record begins, in bytes of the *decompressed* input; [`Damage::NO_OFFSET`] if records
    /// have no position, as the rows of Parquet.
    pub offset: u64,
    /// The error.
    pub what: Cow<'static, str>,
}

impl Damage {
    /// The offset of a row whose cells are in several parts of the file.
    pub const NO_OFFSET: u64 = u64::MAX;

    /// Damage of a row of a columnar file that the caller will name.
    pub(crate) fn row(row: u64, what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(row, Self::NO_OFFSET, what)
    }

    /// Damage in a file that the caller will name.
    pub(crate) fn new(record: u64, offset: u64, what: impl Into<Cow<'static, str>>) -> Self {
        Self { file: Arc::from(""), record, offset, what: what.into() }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}: ", self.file)?;
        }
        if self.record > 0 {
            let end = if self.offset == Self::NO_OFFSET { ": " } else { ", " };
            write!(f, "record {}{end}", self.record)?;
        }
        match self.offset {
            Self::NO_OFFSET => write!(f, "{}", self.what),
            offset => write!(f, "byte {offset}: {}", self.what),
        }
    }
}

/// The description of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceInfo {
    /// The file's name, `-` for standard input; empty if a decoder is used alone.
    pub name: String,
    /// The format: `"text"`, `"mrt"`, `"bmp"`, `"ris"`, `"mmdb"`, `"json"`, `"delegated"`, `"bgpdump"`,
    /// `"routes"`, `"fpm"`, `"netlink"`, `"parquet"`, `"arrow"`.
    pub format: &'static str,
    /// The columns of [`Attributes::Values`], in order; empty if `bgp`.
    pub columns: Vec<ColumnDecl>,
    /// The types of columns of text, by column name, in formats with more types than text and numbers.
    pub types: Vec<(String, ScalarType)>,
    /// Whether updates carry [`Attributes::Bgp`].
    pub bgp: bool,
    /// When the data were made, in seconds since 1970: the time of the first MRT record, the build time of an mmdb
    /// file, or the modification time of a text file, if [`read`](crate::read) knows it.
    pub date: Option<u64>,
}

/// A value column that a source declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnDecl {
    /// The name of the column.
    pub name: String,
    /// The kind of its values.
    pub kind: ColumnKind,
}

/// A BGP peer of the collector.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PeerInfo {
    /// The peer's address; `None` if the dump does not have its table of peers.
    pub address: Option<IpAddr>,
    /// The peer's AS number, 0 if unknown.
    pub asn: u32,
    /// The peer's BGP identifier, if the format has it.
    pub bgp_id: Option<u32>,
    /// The name of the peer's table, if a source has several tables of one peer (BMP's `pre-policy`): each is a peer
    /// of its own. Empty otherwise.
    pub view: String,
}

impl PeerInfo {
    /// A peer with one table.
    pub fn new(address: Option<IpAddr>, asn: u32, bgp_id: Option<u32>) -> Self {
        Self { address, asn, bgp_id, view: String::new() }
    }
}

/// A change of a peer's BGP session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerState {
    /// The peer.
    pub peer: u32,
    /// Microseconds since 1970.
    pub time: u64,
    /// The state before, with the numbers of RFC 6396: 1 Idle to 6 Established (Quagga adds 7 and 8).
    pub old: u16,
    /// The state after.
    pub new: u16,
}

impl PeerState {
    const ESTABLISHED: u16 = 6;

    /// Whether an established session ended, so that the peer's routes are gone.
    pub fn is_down(&self) -> bool {
        self.old == Self::ESTABLISHED && self.new != Self::ESTABLISHED
    }
}

/// A sink that keeps everything, with updates as lines of text, for tests and examples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Collected {
    /// The argument of [`Sink::begin`].
    pub info: Option<SourceInfo>,
    /// The peers, by index.
    pub peers: Vec<PeerInfo>,
    /// Updates: `prefix = value, value`; for BGP, `+ peer prefix next-hop origin`; for a forwarding table, `+ peer
    /// prefix next-hops`; for withdrawals, `- peer prefix`. Each is followed by ` of VRF`, unless that is 0.
    pub lines: Vec<String>,
    /// Session changes.
    pub states: Vec<PeerState>,
    /// The damaged parts.
    pub damage: Vec<Damage>,
    /// The number of ignored parts of each kind.
    pub ignored: u64,
    /// The number of [`Sink::noted`] calls of each kind.
    pub noted: Vec<&'static str>,
    /// Routing instances, `number = name`.
    pub vrfs: Vec<String>,
    /// The remarks of [`Sink::remark`], as `key: value`.
    pub remarks: Vec<String>,
    /// The peers that have sent all their routes.
    pub complete: Vec<u32>,
}

impl Sink for Collected {
    fn begin(&mut self, info: &SourceInfo) {
        self.info = Some(info.clone());
    }
    fn peer(&mut self, _index: u32, peer: &PeerInfo) {
        self.peers.push(peer.clone());
    }
    fn vrf(&mut self, index: Vrf, name: &str) {
        self.vrfs.push(format!("{index} = {name}"));
    }
    fn remark(&mut self, key: &'static str, value: &str) {
        self.remarks.push(format!("{key}: {value}"));
    }
    fn peer_state(&mut self, state: &PeerState) {
        self.states.push(*state);
    }
    fn end_of_rib(&mut self, peer: u32) {
        self.complete.push(peer);
    }
    fn update(&mut self, update: &Update<'_>) {
        let mut line = describe(update);
        if update.vrf != 0 {
            let _ = write!(line, " of {}", update.vrf);
        }
        self.lines.push(line);
    }
    fn damage(&mut self, damage: &Damage) -> ControlFlow<()> {
        self.damage.push(damage.clone());
        ControlFlow::Continue(())
    }
    fn ignored(&mut self, _what: &'static str) {
        self.ignored += 1;
    }
    fn noted(&mut self, what: &'static str) {
        self.noted.push(what);
    }
}

fn describe(update: &Update<'_>) -> String {
    let id = match update.path_id {
        0 => String::new(),
        id => format!("#{id}"),
    };
    let (prefix, peer) = (update.prefix, update.peer);
    match update.change {
        Change::Withdraw => format!("- {peer} {prefix}{id}"),
        Change::Announce(Attributes::Bgp(a)) => {
            let next_hop = a.next_hop.map_or("none".to_owned(), |ip| ip.to_string());
            let origin = a.origin_as.map_or("none".to_owned(), |asn| asn.to_string());
            format!("+ {peer} {prefix}{id} {next_hop} {origin}")
        }
        Change::Announce(Attributes::NextHops(hops)) => format!("+ {peer} {prefix}{id} {hops}"),
        Change::Announce(Attributes::Values(values)) => {
            let values: Vec<String> = values
                .iter()
                .map(|value| match value {
                    Value::Null => "null".to_owned(),
                    Value::Int(n) => n.to_string(),
                    Value::Str(s) => (*s).to_owned(),
                })
                .collect();
            if values.is_empty() {
                prefix.to_string()
            } else {
                format!("{prefix} = {}", values.join(", "))
            }
        }
    }
}
