//! Attribute sets of the builder: the bytes of `rib::set`, each distinct set once, after four bytes with the number
//! of its segment.
//!
//! The segment counts the changes between BGP and other sources. The routes of the chosen peers and of the other
//! sources are kept separate until the end, because a BGP withdrawal must not remove a route of a text file. Of two
//! routes, the one with the higher segment is the later one.
//!
//! The values of a set are in the order of the columns of all sources, so that sources with different columns need no
//! schema in the set. Values that no column keeps are left out, and sets that are then equal are merged.

use fibula_core::{Attributes, BgpAttributes, NextHops, ScalarType, Value};

use super::BuilderOptions;
use crate::ColumnKind;
use crate::intern::Interner;
use crate::rib::next_hops;
use crate::rib::set::{Encoded, encode, encode_values};

/// Bytes of the segment's number.
const SEGMENT: usize = 4;

/// The column that names the peer of a BGP route.
pub(super) const PEER: &str = "peer";

/// A column of the table, united from the sources.
pub(super) struct UnitedColumn {
    pub(super) name: String,
    pub(super) kind: ColumnKind,
    pub(super) kept: bool,
    /// The type of its texts in the sources so far: `None` before the first, then the type if all agree.
    pub(super) scalar: Option<Option<ScalarType>>,
}

/// The kept attributes of a BGP route, besides the numbers that rank it.
#[derive(Clone, Copy)]
struct KeptOfBgp {
    next_hop: bool,
    origin_as: bool,
    as_path: bool,
    communities: bool,
}

/// All attribute sets, and the columns that they fill.
pub(super) struct AttributeSets {
    sets: Interner<u8>,
    pub(super) columns: Vec<UnitedColumn>,
    /// The kept attributes of BGP routes; `None` until the columns include theirs.
    bgp: Option<KeptOfBgp>,
    /// The places of the columns of next hops, once the columns include them.
    next_hops: Option<[usize; next_hops::COLUMNS.len()]>,
    wanted: Option<Vec<String>>,
    as_path: bool,
    communities: bool,
    /// The set being encoded; kept to spare an allocation for each update.
    scratch: Vec<u8>,
}

impl AttributeSets {
    pub(super) fn new(options: &BuilderOptions) -> Self {
        Self {
            sets: Interner::default(),
            columns: Vec::new(),
            bgp: None,
            next_hops: None,
            wanted: options.columns.clone(),
            as_path: options.as_path,
            communities: options.communities,
            scratch: Vec::new(),
        }
    }

    /// The place of the column with this name, which is text if it is text anywhere.
    pub(super) fn column(&mut self, name: &str, kind: ColumnKind) -> usize {
        let at = match self.columns.iter().position(|c| c.name == name) {
            Some(at) => at,
            None => {
                let kept = self.wanted.as_ref().is_none_or(|w| w.iter().any(|w| w == name));
                let name = name.to_owned();
                self.columns.push(UnitedColumn { name, kind, kept, scalar: None });
                self.columns.len() - 1
            }
        };
        if kind == ColumnKind::Str {
            self.columns[at].kind = ColumnKind::Str;
        }
        at
    }

    /// Declares the columns of a source whose routes have values. The result has for each column of the
    /// table the place of its value; `None` where the source has none, or it is not kept.
    pub(super) fn order(&mut self, columns: &[(String, ColumnKind)]) -> Vec<Option<usize>> {
        let mut order = Vec::new();
        for (value, (name, kind)) in columns.iter().enumerate() {
            let column = self.column(name, *kind);
            if self.columns[column].kept {
                order.resize(order.len().max(column + 1), None);
                order[column] = Some(value);
            }
        }
        order
    }

    /// Declares the original types of the texts in these columns of a source; `None` for plain text.
    pub(super) fn types(
        &mut self,
        columns: &[(String, ColumnKind)],
        of: impl Fn(&str) -> Option<ScalarType>,
    ) {
        for column in &mut self.columns {
            if columns.iter().any(|(name, _)| *name == column.name) {
                let here = of(&column.name);
                column.scalar = Some(here.filter(|_| column.scalar.is_none_or(|so| so == here)));
            }
        }
    }

    /// Declares the columns of BGP routes.
    pub(super) fn bgp_columns(&mut self) {
        self.kept_of_bgp();
    }

    fn kept_of_bgp(&mut self) -> KeptOfBgp {
        if let Some(kept) = self.bgp {
            return kept;
        }
        let (has_path, has_communities) = (self.as_path, self.communities);
        let mut keeps = |name, kind| {
            let column = self.column(name, kind);
            self.columns[column].kept
        };
        let next_hop = keeps("next_hop", ColumnKind::Str);
        let origin_as = keeps("origin_as", ColumnKind::Int);
        // The length ranks the route, kept or not, and the peer is not in the set.
        keeps("as_path_len", ColumnKind::Int);
        keeps(PEER, ColumnKind::Str);
        let as_path = has_path && keeps("as_path", ColumnKind::Str);
        let communities = has_communities && keeps("communities", ColumnKind::Str);
        *self.bgp.insert(KeptOfBgp { next_hop, origin_as, as_path, communities })
    }

    /// The number of a set of BGP attributes; `None` when numbers have run out.
    pub(super) fn bgp(&mut self, segment: u32, bgp: &BgpAttributes<'_>) -> Option<u32> {
        let kept = self.kept_of_bgp();
        let bgp = BgpAttributes {
            next_hop: bgp.next_hop.filter(|_| kept.next_hop),
            origin_as: bgp.origin_as.filter(|_| kept.origin_as),
            as_path: if kept.as_path { bgp.as_path } else { "" },
            communities: if kept.communities { bgp.communities } else { "" },
            ..bgp.clone()
        };
        self.encoded(segment, &Attributes::Bgp(&bgp))
    }

    /// The number of a set of next hops; `None` when numbers have run out.
    pub(super) fn next_hops(&mut self, segment: u32, next_hops: &NextHops) -> Option<u32> {
        let places = match self.next_hops {
            Some(places) => places,
            None => next_hops::COLUMNS.map(|(name, kind)| self.column(name, kind)),
        };
        self.next_hops = Some(places);
        if next_hops.hops.len() > 1 {
            // Several next hops are lists, stored as text.
            places.iter().for_each(|&place| self.columns[place].kind = ColumnKind::Str);
        }
        self.encoded(segment, &Attributes::NextHops(next_hops))
    }

    /// The number of a set of values in this [order](Self::order); `None` when numbers have run out.
    pub(super) fn values(
        &mut self,
        segment: u32,
        order: &[Option<usize>],
        values: &[Value<'_>],
    ) -> Option<u32> {
        let value = |place: &Option<usize>| {
            place.and_then(|place| values.get(place)).copied().unwrap_or(Value::Null)
        };
        for (column, place) in self.columns.iter_mut().zip(order) {
            if let Value::Str(_) = value(place) {
                column.kind = ColumnKind::Str;
            }
        }
        self.intern(segment, |out| encode_values(order.iter().map(value), out))
    }

    /// The number of an encoded set whose columns were declared; `None` when numbers have run out.
    pub(super) fn encoded(&mut self, segment: u32, attributes: &Attributes<'_>) -> Option<u32> {
        self.intern(segment, |out| encode(attributes, out))
    }

    /// The number of a set; `None` when numbers have run out.
    fn intern(&mut self, segment: u32, encode: impl FnOnce(&mut Vec<u8>)) -> Option<u32> {
        self.scratch.clear();
        self.scratch.extend_from_slice(&segment.to_le_bytes());
        encode(&mut self.scratch);
        self.sets.intern(&self.scratch)
    }

    /// Number of sets.
    pub(super) fn len(&self) -> usize {
        self.sets.len()
    }

    /// The segment of a set.
    pub(super) fn segment(&self, set: u32) -> u32 {
        self.sets.get(set).first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    /// The set with this number.
    pub(super) fn get(&self, set: u32) -> Encoded<'_> {
        Encoded(&self.sets.get(set)[SEGMENT..])
    }
}
