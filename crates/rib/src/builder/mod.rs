//! Builds a table from updates: the final routes and their attributes.

mod attributes;
mod finish;
mod peers;
mod records;
mod store;
mod table;
mod tags;

use std::net::IpAddr;

use fibula_core::{AnyPrefix, Attributes, Change, ScalarType, Update, Value};

use crate::{ColumnKind, Replacement, SourceRecord, Table, TableError};
use attributes::AttributeSets;
use peers::Peers;
use records::{RecordRef, Sources};
use store::{LOCAL, Store, TooMany};
use tags::Tags;

/// The BGP peers whose routes become the table. If there are several, the best path of each prefix is taken, by the
/// decision of a [`Rib`](crate::Rib) with its default [`Preference`](crate::Preference).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PeerChoice {
    /// All peers.
    #[default]
    Best,
    /// All peers, like [`PeerChoice::Best`], and the column of [`BuilderOptions::tags`] lists the values of all paths
    /// of all peers. It is an error if there is no such column.
    All,
    /// The peer with the most routes; among several, the first.
    Most,
    /// The peer with this index in the first source that has peers.
    Index(u32),
    /// The peers with this address.
    Address(IpAddr),
    /// The peers in this AS.
    As(u32),
}

/// Options of a [`TableBuilder`].
#[derive(Clone, Debug, Default)]
pub struct BuilderOptions {
    /// The BGP peers whose routes are taken. If peers are named, routes of other peers are dropped as they arrive and
    /// need no memory.
    pub peer: PeerChoice,
    /// Keep only these columns, in this order; `None` keeps all.
    pub columns: Option<Vec<String>>,
    /// Keep AS paths as text, in the column `as_path`.
    pub as_path: bool,
    /// Keep communities as text, in the column `communities`.
    pub communities: bool,
    /// The column that lists the values of all routes of a prefix, each once, in order of appearance, instead of only
    /// the last route's value: `drop;botnet`. The column is text, with values separated by semicolons, and a value
    /// with semicolons is itself such a list. For a source without the column, the value is its name without folder
    /// and suffix. Values of BGP peers come last: the value of the best path, or of all paths ([`PeerChoice::All`]).
    /// The column is kept even if `columns` does not have it.
    pub tags: Option<String>,
}

/// Collects the updates of one or more sources and builds a [`Table`].
///
/// - Sources are merged in order: for the same prefix, a later source replaces an earlier one with all its columns.
///   The table has the columns of all sources, united by name; a route has nulls in columns that its own source does
///   not have. A column that is text in one source is text in the table. If a source without peers has a prefix
///   twice, the later route is used. [`Provenance`](crate::Provenance) counts the replaced routes and names the
///   first. One column may list the values of all routes ([`BuilderOptions::tags`]).
/// - BGP sources have peers, which are the same across sources if address and AS are the same: a dump
///   followed by the updates of the same collector gives the table after the updates. The routes of
///   some or all peers are taken ([`PeerChoice`]). Of several paths for a prefix, of several peers or of one
///   (ADD-PATH), the best is taken: highest local preference, shortest AS path, lowest origin, the
///   peer that appeared first, lowest MED, lowest path identifier.
/// - A table made from peers' routes can be a source ([`TableBuilder::add_table`]): following updates replace and
///   withdraw its routes.
/// - BGP routes have the columns `next_hop`, `origin_as`, `as_path_len`, `peer` and, on request,
///   `as_path` and `communities`.
/// - Routes of a forwarding table ([`Attributes::NextHops`]) have the columns `next_hop`, `interface`, `weight` and
///   `kind` (`unicast`, `blackhole`, ...). `interface` and `weight` are numbers. For several next hops, the first
///   three columns are texts such as `192.0.2.1 192.0.2.9`, in the same order, with `-` for a missing value.
/// - A table has one VRF: the builder does not distinguish VRFs, so the caller passes only routes of one.
///
/// Hops of the result number the distinct combinations of attributes, in order of first appearance in the sorted
/// table (IPv4 first). The same routes give the same table in whatever order they arrive.
///
/// Memory: a prefix costs 20 to 40 bytes once, each peer that announces it 4 bytes more (in pages of
/// 256 prefixes), a source without peers 12, and each distinct attribute set about 50.
pub struct TableBuilder {
    options: BuilderOptions,
    sources: Sources,
    tags: Option<Tags>,
    current: Current,
    peers: Peers,
    attributes: AttributeSets,
    v4: Store<u32>,
    v6: Store<u128>,
    /// Number of announcements of peers that were not chosen.
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
    /// The positions of its values in the order of the table's columns.
    order: Vec<Option<usize>>,
    /// The current record, and whether it may replace prefixes of earlier ones.
    record: u32,
    takes: bool,
    /// The types of the texts in the source's columns.
    types: Vec<(String, ScalarType)>,
    /// The value for the column of tags if the source lacks it.
    stand_in: Option<String>,
}

impl TableBuilder {
    /// Makes an empty builder.
    pub fn new(mut options: BuilderOptions) -> Self {
        if let (Some(tags), Some(columns)) = (&options.tags, &mut options.columns)
            && !columns.contains(tags)
        {
            columns.push(tags.clone());
        }
        Self {
            tags: options.tags.as_deref().map(Tags::new),
            attributes: AttributeSets::new(&options),
            peers: Peers::new(options.peer.clone()),
            options,
            sources: Sources::default(),
            current: Current::default(),
            v4: Store::default(),
            v6: Store::default(),
            left_out: 0,
            failed: None,
        }
    }

    /// Begins a source, to which the following updates belong. `columns` are the columns of [`Attributes::Values`],
    /// `bgp` is whether it has peers, and `date` is in seconds since 1970.
    pub fn begin_source(
        &mut self,
        name: &str,
        format: &str,
        columns: &[(String, ColumnKind)],
        bgp: bool,
        date: Option<u64>,
    ) {
        if !self.sources.records.is_empty() && bgp != self.current.bgp {
            self.current.segment += 1;
        }
        self.current.bgp = bgp;
        self.current.record = 0;
        self.current.order = self.attributes.order(columns);
        let types = std::mem::take(&mut self.current.types);
        let of = |name: &str| types.iter().find(|(known, _)| known == name).map(|(_, of)| *of);
        self.attributes.types(columns, of);
        if bgp {
            self.attributes.bgp_columns();
            self.peers.begin_source();
        }
        self.begin_tags(name, columns, bgp);
        let (name, format) = (name.to_owned(), format.to_owned());
        self.sources.begin(SourceRecord { name, format, date, ..SourceRecord::default() }, bgp);
    }

    fn begin_tags(&mut self, source: &str, columns: &[(String, ColumnKind)], bgp: bool) {
        if let Some(tags) = &mut self.tags {
            let names = columns.iter().map(|(name, _)| name.as_str());
            self.current.stand_in = tags.begin(source, names, bgp);
            self.attributes.column(tags.column(), ColumnKind::Str);
        }
    }

    /// Sets the types of text columns of the next source, by name; see
    /// [`Columns::scalar_type`](crate::Columns::scalar_type).
    pub fn types_of_next(&mut self, types: &[(String, ScalarType)]) {
        self.current.types = types.to_vec();
    }

    /// Sets the value of the column of [`BuilderOptions::tags`] for the current source, which does not have that
    /// column. The value is the source's name.
    pub fn stand_in(&self) -> Option<&str> {
        self.current.stand_in.as_deref()
    }

    /// Sets the record of the following updates in the current source: a line, counted from 1. A prefix in two
    /// records of a source without peers is repeated, unless the later record `takes` prefixes from others, as nested
    /// ranges do.
    pub fn at_record(&mut self, record: u64, takes: bool) {
        self.current.record = u32::try_from(record).unwrap_or(u32::MAX);
        self.current.takes = takes;
    }

    /// The first prefix that the current source repeats.
    pub fn first_repeated(&self) -> Option<&Replacement> {
        self.sources.first_repeated.as_ref()
    }

    /// Declares the current source's peer number `index`. An undeclared peer is treated as a separate peer.
    pub fn add_peer(&mut self, index: u32, address: Option<IpAddr>, asn: u32) {
        self.peers.add(index, address, asn);
    }

    /// Ends the session with this peer of the current source, and removes its routes.
    pub fn peer_down(&mut self, index: u32) {
        if let Some(speaker) = self.peers.speaker(index) {
            self.v4.forget(speaker);
            self.v6.forget(speaker);
        }
    }

    /// Adds one update of the current source.
    pub fn apply(&mut self, update: &Update<'_>) {
        if let Some(source) = self.sources.current() {
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
        let values = match update.change {
            Change::Announce(Attributes::Values(values)) => values,
            _ => &[],
        };
        let value = |at: usize| values.get(at).copied().unwrap_or(Value::Null);
        self.set(speaker, update.prefix, update.path_id, attributes, value);
    }

    /// The peer announces this set for the prefix; `None` withdraws. `value` gives the values of the source's columns.
    fn set<'v>(
        &mut self,
        speaker: u32,
        prefix: AnyPrefix,
        path_id: u32,
        attributes: Option<u32>,
        value: impl FnOnce(usize) -> Value<'v>,
    ) {
        let (number, local) = match prefix {
            AnyPrefix::V4(prefix) => {
                (self.v4.set(speaker, prefix, path_id, attributes), &mut self.v4.local)
            }
            AnyPrefix::V6(prefix) => {
                (self.v6.set(speaker, prefix, path_id, attributes), &mut self.v6.local)
            }
        };
        let number = match number {
            Err(TooMany) => return self.fail("prefixes"),
            Ok(None) => return,
            Ok(Some(number)) => number,
        };
        if attributes.is_none() {
            if speaker == LOCAL {
                local.put(number, RecordRef::default());
                local.tagged.forget(number);
            }
            return;
        }
        if speaker == LOCAL {
            let Current { record, takes, .. } = self.current;
            let later = self.sources.place(record);
            if let Some(earlier) = local.put(number, later) {
                self.sources.note_replacement(prefix, earlier, later, takes);
            }
        }
        if let Some(tags) = &mut self.tags
            && tags.note(&mut local.tagged, number, value).is_none()
        {
            self.fail("values in a column");
        }
    }

    /// Finishes the table.
    ///
    /// # Errors
    /// [`TableError::NoPeer`] and [`TableError::NoColumn`] if a requested peer or column is in no source;
    /// [`TableError::AllPeers`] if all peers are requested without a column that lists their values;
    /// [`TableError::Limit`] if a number exceeds 32 bits.
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
