use std::fmt;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::time::SystemTime;

use fibula_core::{Addr, Family, FamilyType, PerFamily, Routes, Vrf, grouped};
use serde::{Deserialize, Serialize};

use crate::{Columns, FeedMark, Replacement};

/// A routing table with the attributes of its routes.
///
/// Hops are row numbers of [`Table::columns`], shared by both families.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The IPv4 routes.
    pub v4: Routes<u32>,
    /// The IPv6 routes.
    pub v6: Routes<u128>,
    /// The attributes, by row.
    pub columns: Columns,
    /// The sources of the table.
    pub provenance: Provenance,
}

impl Table {
    /// A table whose hops have no attributes: its only column is the integer `hop` with the hop's number.
    ///
    /// ```
    /// use fibula_core::{Hop, Prefix, Routes, Value};
    /// use fibula_rib::Table;
    /// let v4: Routes<u32> = [(Prefix::ALL, Hop::new(2))].into_iter().collect();
    /// let table = Table::from_routes(v4, Routes::default());
    /// assert_eq!(table.columns.value(0, 2), Value::Int(2));
    /// ```
    pub fn from_routes(v4: Routes<u32>, v6: Routes<u128>) -> Self {
        let rows = v4.hop_count().max(v6.hop_count());
        let columns = Columns::numbered("hop", rows);
        Self { v4, v6, columns, provenance: Provenance::default() }
    }

    /// The routes of a family.
    pub fn routes<A: Addr>(&self) -> &Routes<A> {
        let both = PerFamily::<Borrowed<'_>> { v4: &self.v4, v6: &self.v6 };
        both.get::<A>()
    }

    /// The BGP peer of the routes; `None` if there is none, or several.
    pub fn selected_peer(&self) -> Option<&SelectedPeer> {
        self.provenance.selected_peer.as_ref()
    }

    /// Checks that every hop is a row of the columns.
    ///
    /// # Errors
    /// [`TableError::Rows`] if a hop is not a row.
    pub fn check(&self) -> Result<(), TableError> {
        fn family<A: Addr>(routes: &Routes<A>, rows: u32) -> Result<(), TableError> {
            let needed = routes.hop_count();
            if needed > rows { Err(TableError::Rows { needed, rows }) } else { Ok(()) }
        }
        family(&self.v4, self.columns.len())?;
        family(&self.v6, self.columns.len())
    }
}

/// The routes of each family, borrowed.
struct Borrowed<'a>(PhantomData<&'a ()>);

impl<'a> FamilyType for Borrowed<'a> {
    type Of<A: Addr> = &'a Routes<A>;
}

/// The origin of a table. It is stored with the table and does not affect lookups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The program that wrote it, such as `fibula 0.1.0`.
    pub tool: String,
    /// When it was built, in seconds since 1970 (UTC); 0 if unknown.
    pub created: u64,
    /// The sources, in the order in which they were merged.
    pub sources: Vec<SourceRecord>,
    /// The BGP peer whose routes were taken, if it was only one.
    pub selected_peer: Option<SelectedPeer>,
    /// The BGP peers whose routes were taken, in order of appearance. Empty in files of older programs.
    #[serde(default)]
    pub peers: Vec<SelectedPeer>,
    /// The routes that were left out.
    #[serde(default)]
    pub left_out: LeftOut,
    /// The column whose values are lists of all values of a prefix
    /// ([`BuilderOptions::tags`](crate::BuilderOptions::tags)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<String>,
    /// The first prefixes repeated in a source, and the first that replaced a prefix of an earlier source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<Replacement>,
}

/// The announcements that were left out because other peers were chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Number of prefixes that only other peers have, as far as these were examined.
    pub prefixes: u64,
    /// Number of announcements dropped unexamined because other peers were named.
    pub announcements: u64,
}

impl Provenance {
    /// A text with the peers of a BGP table, and the number of routes left out; `None` without BGP.
    ///
    /// `192.0.2.1 AS64500, 577,703 routes, of 12 peers; 127 prefixes that only others have are left out`
    pub fn peers_text(&self) -> Option<String> {
        let mut text = match (&self.selected_peer, &*self.peers) {
            (Some(peer), _) => peer.to_string(),
            (None, []) => return None,
            (None, [first, ..]) => {
                let taken = grouped(self.peers.len() as u64);
                format!("the best paths of {taken} peers, of {}", first.of)
            }
        };
        let LeftOut { prefixes, announcements } = self.left_out;
        if prefixes > 0 {
            let count = grouped(prefixes);
            text += &format!("; {count} prefixes that only others have are left out");
        }
        if announcements > 0 {
            text += &format!("; {} announcements of others are left out", grouped(announcements));
        }
        Some(text)
    }
}

impl Default for Provenance {
    fn default() -> Self {
        Self {
            tool: concat!("fibula ", env!("CARGO_PKG_VERSION")).to_owned(),
            created: 0,
            sources: Vec::new(),
            selected_peer: None,
            peers: Vec::new(),
            left_out: LeftOut::default(),
            tags: None,
            replaced: Vec::new(),
        }
    }
}

impl Provenance {
    /// The provenance of a table that is built now, without sources.
    pub fn of_now() -> Self {
        // WebAssembly in a browser has no clock, and asking for the time panics there.
        if cfg!(all(target_family = "wasm", target_os = "unknown")) {
            return Self::default();
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self { created: now.map_or(0, |since| since.as_secs()), ..Self::default() }
    }
}

/// One source of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceRecord {
    /// Its name, usually the file's name.
    pub name: String,
    /// Its format, by the decoder's name.
    pub format: String,
    /// Its date in seconds since 1970 (UTC), if known.
    pub date: Option<u64>,
    /// Number of routes that it announced, from all peers.
    pub announced: u64,
    /// Number of routes that it withdrew, from all peers.
    pub withdrawn: u64,
    /// Number of repeated prefixes: each occurrence after the first counts, and the last one is used. Not counted for
    /// BGP peers, whose later routes are updates.
    #[serde(default)]
    pub repeated: u64,
    /// Number of prefixes of earlier sources that it replaced.
    #[serde(default)]
    pub replaced: u64,
}

/// A BGP peer whose routes became the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectedPeer {
    /// Its index in the first source with peers.
    pub index: u32,
    /// Its address, if the source has it.
    pub address: Option<IpAddr>,
    /// Its AS.
    pub asn: u32,
    /// Number of its routes, before other sources replaced any.
    pub routes: u64,
    /// Number of peers that could be chosen.
    pub of: u32,
}

impl fmt::Display for SelectedPeer {
    /// `192.0.2.1 AS64500, 577,703 routes, of 12 peers`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => write!(f, "{address} AS{}", self.asn)?,
            None => write!(f, "AS{}", self.asn)?,
        }
        let (routes, of) = (self.routes, self.of);
        let route = if routes == 1 { "route" } else { "routes" };
        let peer = if of == 1 { "peer" } else { "peers" };
        write!(f, ", {} {route}, of {of} {peer}", grouped(routes))
    }
}

/// The error of making a table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableError {
    /// The requested peer is not in the sources.
    NoPeer {
        /// The requested name.
        asked: String,
        /// The existing peers.
        peers: Vec<String>,
    },
    /// A requested column is in no source.
    NoColumn {
        /// The requested name.
        asked: String,
        /// The existing columns.
        columns: Vec<String>,
    },
    /// [`PeerChoice::All`](crate::PeerChoice::All) was chosen without a column that lists all values.
    AllPeers,
    /// A number exceeds its 32 bits.
    Limit {
        /// The items that are too many.
        what: &'static str,
    },
    /// The table's [`Limits`](crate::Limits) leave no room for another route.
    Full {
        /// The limit that is reached: routes in a table for a peer, or for all peers together.
        most: u64,
        /// Whether it is the limit of a peer.
        of_peer: bool,
    },
    /// The table's [`Limits`](crate::Limits) leave no room for another peer.
    Peers {
        /// The limit.
        most: usize,
        /// Number of peers of the source that has named another.
        own: usize,
    },
    /// The compiler of a live table panicked, so nothing more is published.
    Stopped {
        /// The VRF.
        vrf: Vrf,
        /// The family.
        family: Family,
    },
    /// The checkpoint is of another feed: the events of this feed differ from those in the checkpoint. The checkpoint
    /// is unchanged.
    OtherFeed {
        /// The position of the checkpoint in its feed.
        feed: FeedMark,
        /// Whether this feed ended before.
        is_short: bool,
    },
    /// Text in an integer column.
    Kind {
        /// The column.
        column: String,
    },
    /// The date of a table is not later than the date of the table before.
    Dates {
        /// The date of the table before.
        earlier: String,
        /// The date of this one.
        later: String,
    },
    /// The hop of a route is not a row of the columns.
    Rows {
        /// Number of rows that the routes need.
        needed: u32,
        /// Number of rows.
        rows: u32,
    },
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPeer { asked, peers } if peers.is_empty() => {
                write!(f, "no peer {asked}: the sources have no peers")
            }
            Self::NoPeer { asked, peers } => {
                write!(f, "no peer {asked}; there are: ")?;
                list(f, peers)
            }
            Self::NoColumn { asked, columns } if columns.is_empty() => {
                write!(f, "no column {asked}: the sources have no columns")
            }
            Self::NoColumn { asked, columns } => {
                write!(f, "no column {asked}; there are: ")?;
                list(f, columns)
            }
            Self::AllPeers => f.write_str(
                "all peers give a prefix several values: name the column that lists them (--tags origin_as), or \
                 take the best paths (--peer best)",
            ),
            Self::Limit { what } => write!(f, "more than 2^32 - 1 {what}"),
            Self::Full { most, of_peer: true } => {
                write!(f, "the peer has {most} routes of the family, which is the limit")
            }
            Self::Full { most, of_peer: false } => {
                write!(f, "all peers together have {most} routes, which is the limit")
            }
            Self::Peers { most, own } => {
                write!(f, "there are {most} peers, which is the limit, {own} of them of this source")
            }
            Self::OtherFeed { feed, is_short } => {
                write!(f, "the checkpoint has taken in {} events of ", grouped(feed.events))?;
                match &*feed.names {
                    [] => f.write_str("a feed")?,
                    names => f.write_str(&names.join(", "))?,
                }
                f.write_str(match is_short {
                    true => ", this feed has fewer",
                    false => ", the updates of this feed differ before that point",
                })
            }
            Self::Stopped { vrf, family } => write!(
                f,
                "the compiler of the IP{family} table of VRF {vrf} panicked, what serves is not changed any \
                 more; start the table again"
            ),
            Self::Kind { column } => write!(f, "text in the integer column {column}"),
            Self::Dates { earlier, later } => {
                write!(f, "the table of {later} does not come after that of {earlier}")
            }
            Self::Rows { needed, rows } => {
                write!(f, "routes need {needed} attribute rows, there are {rows}")
            }
        }
    }
}

/// At most 20 of the items: a collector can have hundreds of peers.
fn list(f: &mut fmt::Formatter<'_>, items: &[String]) -> fmt::Result {
    let shown = items.len().min(20);
    f.write_str(&items[..shown].join(", "))?;
    if shown < items.len() { write!(f, " and {} more", items.len() - shown) } else { Ok(()) }
}

impl std::error::Error for TableError {}
