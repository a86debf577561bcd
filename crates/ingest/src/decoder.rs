//! The contract between decoders and those who use them.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::sync::Arc;

use fibula_core::{Attributes, Change, ColumnKind, ScalarType, Update, Value, Vrf};

/// What follows the bytes that a decoder is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// More may come: an incomplete record at the end is left for the next call.
    More,
    /// The input ends here, as its writer meant it to.
    End,
    /// The input breaks off here (a cut archive): an incomplete last record must not be trusted.
    /// In text this matters: `10.0.0.0/2` may be the beginning of `10.0.0.0/24`.
    Cut,
}

impl Tail {
    /// Whether no more input will come.
    pub fn is_last(self) -> bool {
        self != Self::More
    }
}

/// A push decoder: bytes in, calls on a [`Sink`] out. It does no I/O.
///
/// The caller keeps the bytes that were not consumed and offers them again with more behind them.
/// How the input is cut into calls never changes what the sink sees.
pub trait Decoder: Send {
    /// Decodes the whole records at the front of `input` and returns how many bytes they took. With
    /// [`Tail::More`] it may take none, and then needs more input; with the other two it takes all.
    ///
    /// # Errors
    /// [`Stopped`] if the sink asked to stop or the options do not fit; the decoder is then of no further
    /// use.
    fn decode(&mut self, input: &[u8], tail: Tail, sink: &mut dyn Sink) -> Result<usize, Stopped>;

    /// Records seen so far: lines of text, MRT records, networks of an mmdb file, FPM frames, netlink messages.
    fn records(&self) -> u64;

    /// Whether something was decoded that the sink has not seen: a withdrawal that the next record may turn
    /// into a replacement, so that no reader sees a hole between the two.
    fn is_holding(&self) -> bool {
        false
    }

    /// Gives the sink what was held back: nothing more will come for a while. After [`Tail::End`] or
    /// [`Tail::Cut`] nothing is held back.
    fn flush(&mut self, sink: &mut dyn Sink) {
        let _ = sink;
    }
}

/// Why a decoder stopped before the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The sink asked it to, by [`Sink::damage`].
    BySink,
    /// The options do not fit the input, which was not decoded, or a stream (BMP) has become unreadable: nothing
    /// tells where its next record begins. The text says why.
    Misfit(String),
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BySink => f.write_str("decoding was stopped"),
            Self::Misfit(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Stopped {}

/// Receives the output of a [`Decoder`], of [`read`](crate::read) or of [`bgp::Messages`](crate::bgp::Messages): the
/// verbs of one source. [`Sink::begin`] comes first, once, before any other call but [`Sink::damage`]; a
/// peer is declared before it is used.
pub trait Sink {
    /// What the input turned out to be.
    fn begin(&mut self, info: &SourceInfo) {
        let _ = info;
    }
    /// A BGP peer that the following updates may name by `index`.
    fn peer(&mut self, index: u32, peer: &PeerInfo) {
        let _ = (index, peer);
    }
    /// A routing instance that the following updates may name by `index` ([`Update::vrf`]), and its name; no
    /// other one of the source has it. A source with one table never calls this.
    fn vrf(&mut self, index: Vrf, name: &str) {
        let _ = (index, name);
    }
    /// What the source says of itself, and no route follows from: a router's name, a statistic.
    fn remark(&mut self, key: &'static str, value: &str) {
        let _ = (key, value);
    }
    /// The updates that follow are of this record, counted as [`Damage::record`] is, in sources without peers. If it
    /// `takes`, they may take prefixes from earlier records by a rule of the format, as a range does that lies
    /// in another; otherwise a prefix that was there before occurs twice.
    fn record(&mut self, record: u64, takes: bool) {
        let _ = (record, takes);
    }
    /// A change of a peer's session.
    fn peer_state(&mut self, state: &PeerState) {
        let _ = state;
    }
    /// A route comes or goes.
    fn update(&mut self, update: &Update<'_>);
    /// The peer has said all that it has to say for now (BGP's End-of-RIB, the end of a dump): routes of
    /// an earlier connection that it did not name again are gone.
    fn end_of_rib(&mut self, peer: u32) {
        let _ = peer;
    }
    /// Something could not be decoded and is skipped. [`ControlFlow::Break`] stops the decoder.
    fn damage(&mut self, damage: &Damage) -> ControlFlow<()>;
    /// Something sound that holds nothing for a unicast routing table was passed over.
    fn ignored(&mut self, what: &'static str) {
        let _ = what;
    }
    /// Something was read otherwise than it is written, or contradicts other parts; `what` says how that was
    /// decided.
    fn noted(&mut self, what: &'static str) {
        let _ = what;
    }
}

/// A part of the input that could not be decoded, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file, `-` for standard input; empty where a decoder is used without [`read`](crate::read).
    pub file: Arc<str>,
    /// The record, counted from 1: the line of a text file, the record of an MRT file, the network of
    /// an mmdb file, the frame of FPM, the message of netlink. 0 if the trouble lies in the archive around them.
    pub record: u64,
    /// Where the record begins, in bytes from the beginning of the *decompressed* input.
    pub offset: u64,
    /// What is wrong.
    pub what: Cow<'static, str>,
}

impl Damage {
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
            write!(f, "record {}, ", self.record)?;
        }
        write!(f, "byte {}: {}", self.offset, self.what)
    }
}

/// What a source turned out to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceInfo {
    /// The file's name, `-` for standard input; empty where a decoder is used alone.
    pub name: String,
    /// The format: `"text"`, `"mrt"`, `"bmp"`, `"ris"`, `"mmdb"`, `"json"`, `"delegated"`, `"bgpdump"`,
    /// `"routes"`, `"fpm"`, `"netlink"`.
    pub format: &'static str,
    /// The columns of [`Attributes::Values`], in order; empty if `bgp`.
    pub columns: Vec<ColumnDecl>,
    /// What the texts of a column are, by its name, where the format has more types than text and numbers.
    pub types: Vec<(String, ScalarType)>,
    /// Whether updates carry [`Attributes::Bgp`].
    pub bgp: bool,
    /// When the data was made, in seconds since 1970: the first MRT record's time, an mmdb file's
    /// build time; for text the file's modification time, if [`read`](crate::read) knows it.
    pub date: Option<u64>,
}

/// A column of values that a source declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnDecl {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: ColumnKind,
}

/// A BGP peer of the collector.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PeerInfo {
    /// Its address; `None` if the dump lacks its table of peers.
    pub address: Option<IpAddr>,
    /// Its AS number, 0 if unknown.
    pub asn: u32,
    /// Its BGP identifier, where the format tells it.
    pub bgp_id: Option<u32>,
    /// Which of its tables speaks, where a source has several of one peer (BMP's `pre-policy`): each is a
    /// peer of its own. Empty otherwise.
    pub view: String,
}

impl PeerInfo {
    /// A peer of which there is one table.
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
    /// The state before, numbered as RFC 6396 does: 1 Idle to 6 Established (Quagga adds 7 and 8).
    pub old: u16,
    /// The state after.
    pub new: u16,
}

impl PeerState {
    const ESTABLISHED: u16 = 6;

    /// Whether an established session ended: the peer's routes are gone.
    pub fn is_down(&self) -> bool {
        self.old == Self::ESTABLISHED && self.new != Self::ESTABLISHED
    }
}

/// A sink that keeps everything, updates as lines of text; for tests and examples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Collected {
    /// What [`Sink::begin`] said.
    pub info: Option<SourceInfo>,
    /// The peers, by index.
    pub peers: Vec<PeerInfo>,
    /// `prefix = value, value` or, for BGP, `+ peer prefix next-hop origin`, for a forwarding table
    /// `+ peer prefix next-hops`; `- peer prefix`; behind each ` of VRF`, if that is not 0.
    pub lines: Vec<String>,
    /// Session changes.
    pub states: Vec<PeerState>,
    /// What was damaged.
    pub damage: Vec<Damage>,
    /// How often something was ignored.
    pub ignored: u64,
    /// What [`Sink::noted`] said.
    pub noted: Vec<&'static str>,
    /// Routing instances, `number = name`.
    pub vrfs: Vec<String>,
    /// What [`Sink::remark`] said, `key: value`.
    pub remarks: Vec<String>,
    /// The peers that said everything.
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
