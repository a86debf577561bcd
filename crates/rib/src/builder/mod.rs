//! From updates to a table: which routes are there in the end, and what do they carry?

mod attributes;
mod finish;
mod peers;
mod store;
mod table;

use std::net::IpAddr;

use fibula_core::{AnyPrefix, Attributes, Change, Update};

use crate::{ColumnKind, SourceRecord, Table, TableError};
use attributes::AttributeSets;
use peers::Peers;
use store::{LOCAL, Store};

/// Which BGP peers' routes become the table. Of several the best path is taken for each prefix, by the
/// decision of a [`Rib`](crate::Rib) with its default [`Preference`](crate::Preference).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PeerChoice {
    /// Those of all peers.
    #[default]
    Best,
    /// Those of the peer with the most routes; of several such peers, of the first.
    Most,
    /// Those of the peer with this index in the first source that has peers.
    Index(u32),
    /// Those of the peers with this address.
    Address(IpAddr),
    /// Those of the peers in this AS.
    As(u32),
}

/// What a [`TableBuilder`] keeps.
#[derive(Clone, Debug, Default)]
pub struct BuilderOptions {
    /// The BGP peers whose routes are taken. Where they are named, the routes of others are dropped as they
    /// arrive and take no memory.
    pub peer: PeerChoice,
    /// Keep only these columns, in this order; `None` keeps all.
    pub columns: Option<Vec<String>>,
    /// Keep AS paths as text, in the column `as_path`.
    pub as_path: bool,
    /// Keep communities as text, in the column `communities`.
    pub communities: bool,
}

/// Collects the updates of one or more sources and makes a [`Table`] of them.
///
/// - Sources merge in order: for the same prefix a later source replaces an earlier one, with all its
///   columns. The table has the columns of all sources, united by name; a route has nulls in columns
///   that its own source does not have. A column that is text anywhere is text throughout.
/// - BGP sources have peers, which are the same across sources if address and AS are the same: a dump
///   followed by the updates of the same collector gives the table after the updates. The routes of
///   some or all peers are taken ([`PeerChoice`]). Of several paths for a prefix, of several peers or of one
///   (ADD-PATH), the best is taken: highest local preference, shortest AS path, lowest origin, the
///   peer that appeared first, lowest MED, lowest path identifier.
/// - A table that was made of peers' routes is one of their sources ([`TableBuilder::add_table`]): updates
///   that follow replace its routes and take them back.
/// - BGP routes have the columns `next_hop`, `origin_as`, `as_path_len`, `peer` and, if asked for,
///   `as_path` and `communities`.
/// - Routes of a forwarding table ([`Attributes::NextHops`]) have the columns `next_hop`, `interface`,
///   `weight` and `kind` (`unicast`, `blackhole`, ...). `interface` and `weight` are numbers; of several
///   next hops the first three columns are texts such as `192.0.2.1 192.0.2.9`, in the same order, with
///   `-` where one has none.
/// - A table has one VRF: routes of all of them are taken alike, so the caller passes those of one.
///
/// Hops of the result number the distinct combinations of attributes, in order of first appearance in
/// the sorted table (IPv4 first): the same routes give the same table, whatever order they came in.
///
/// Memory: a prefix costs 20 to 40 bytes once, each peer that announces it 4 bytes more (in pages of
/// 256 prefixes), and each distinct attribute set about 50.
pub struct TableBuilder {
    options: BuilderOptions,
    sources: Vec<SourceRecord>,
    current: Current,
    peers: Peers,
    attributes: AttributeSets,
    v4: Store<u32>,
    v6: Store<u128>,
    /// Announcements of peers that were not chosen.
    left_out: u64,
    /// The first limit that was exceeded, to be reported at the end.
    failed: Option<TableError>,
}

/// The source that is being read.
#[derive(Default)]
struct Current {
    bgp: bool,
    /// Counts the changes between BGP and other sources; see [`attributes`].
    segment: u32,
    /// Where its values stand in the order of the table's columns.
    order: Vec<Option<usize>>,
}

impl TableBuilder {
    /// A builder that has seen nothing.
    pub fn new(options: BuilderOptions) -> Self {
        Self {
            attributes: AttributeSets::new(&options),
            peers: Peers::new(options.peer.clone()),
            options,
            sources: Vec::new(),
            current: Current::default(),
            v4: Store::default(),
            v6: Store::default(),
            left_out: 0,
            failed: None,
        }
    }

    /// Updates from here on belong to this source. `columns` are the columns of
    /// [`Attributes::Values`], `bgp` says whether it has peers, `date` is in seconds since 1970.
    pub fn begin_source(
        &mut self,
        name: &str,
        format: &str,
        columns: &[(String, ColumnKind)],
        bgp: bool,
        date: Option<u64>,
    ) {
        if !self.sources.is_empty() && bgp != self.current.bgp {
            self.current.segment += 1;
        }
        self.current.bgp = bgp;
        self.current.order = self.attributes.order(columns);
        if bgp {
            self.attributes.bgp_columns();
            self.peers.begin_source();
        }
        let (name, format) = (name.to_owned(), format.to_owned());
        self.sources.push(SourceRecord { name, format, date, ..SourceRecord::default() });
    }

    /// The current source calls this peer `index`. A peer that is used without having been added
    /// counts as one of its own.
    pub fn add_peer(&mut self, index: u32, address: Option<IpAddr>, asn: u32) {
        self.peers.add(index, address, asn);
    }

    /// The session with this peer of the current source ended: its routes are gone.
    pub fn peer_down(&mut self, index: u32) {
        if let Some(speaker) = self.peers.speaker(index) {
            self.v4.forget(speaker);
            self.v6.forget(speaker);
        }
    }

    /// Takes one update of the current source.
    pub fn apply(&mut self, update: &Update<'_>) {
        if let Some(source) = self.sources.last_mut() {
            match update.change {
                Change::Announce(_) => source.announced += 1,
                Change::Withdraw => source.withdrawn += 1,
            }
        }
        let speaker = if self.current.bgp {
            match self.peers.speaker(update.peer) {
                Some(peer) => peer,
                None => {
                    self.left_out += u64::from(update.change != Change::Withdraw);
                    return; // not a peer that was chosen
                }
            }
        } else {
            LOCAL
        };
        let attributes = match update.change {
            Change::Withdraw => None,
            Change::Announce(attributes) => {
                let Some(id) = self.intern(&attributes) else {
                    return self.fail("attribute sets");
                };
                Some(id)
            }
        };
        let done = match update.prefix {
            AnyPrefix::V4(prefix) => self.v4.set(speaker, prefix, update.path_id, attributes),
            AnyPrefix::V6(prefix) => self.v6.set(speaker, prefix, update.path_id, attributes),
        };
        if done.is_none() {
            self.fail("prefixes");
        }
    }

    /// The table.
    ///
    /// # Errors
    /// [`TableError::NoPeer`] and [`TableError::NoColumn`] if what the options ask for is in no source;
    /// [`TableError::Limit`] if there is too much of anything for its 32-bit number.
    pub fn finish(self) -> Result<Table, TableError> {
        finish::finish(self)
    }

    fn intern(&mut self, attributes: &Attributes<'_>) -> Option<u32> {
        let segment = self.current.segment;
        match attributes {
            Attributes::Bgp(bgp) => self.attributes.bgp(segment, bgp),
            Attributes::NextHops(next_hops) => self.attributes.next_hops(segment, next_hops),
            Attributes::Values(values) => {
                self.attributes.values(segment, &self.current.order, values)
            }
        }
    }

    fn fail(&mut self, what: &'static str) {
        self.failed.get_or_insert(TableError::Limit { what });
    }
}
