//! Selection of the peer, and numbering of the attribute rows.

use fibula_core::{Addr, Hop, Prefix, Route, Routes, Value};

use super::TableBuilder;
use super::attributes::{AttributeSets, PEER};
use super::peers::speaker;
use super::store::Store;
use crate::rib::names::{Places, SetTexts};
use crate::{ColumnKind, ColumnsBuilder, Preference, Provenance, SelectedPeer, Table, TableError};

pub(super) fn finish(builder: TableBuilder) -> Result<Table, TableError> {
    if let Some(error) = builder.failed {
        return Err(error);
    }
    let selected = select_peer(&builder)?;
    let TableBuilder { options, sources, attributes, v4, v6, peers, .. } = builder;
    let chosen = selected.as_ref().map(|(peer, _)| speaker(*peer));
    let peer_text = selected.as_ref().map(|(peer, _)| {
        let peer = &peers.peers[*peer];
        peer.address.map_or_else(|| format!("AS{}", peer.asn), |a| a.to_string())
    });

    let mut rows = Rows::new(&attributes, options.columns.as_deref(), peer_text)?;
    let v4 = rows.number(v4, chosen)?;
    let v6 = rows.number(v6, chosen)?;
    let columns = rows.columns.finish()?;
    let selected_peer = selected.map(|(_, peer)| peer);
    let provenance = Provenance { sources, selected_peer, ..Provenance::of_now() };
    Ok(Table { v4, v6, columns, provenance })
}

fn select_peer(builder: &TableBuilder) -> Result<Option<(usize, SelectedPeer)>, TableError> {
    let TableBuilder { peers, v4, v6, .. } = builder;
    let Some((at, routes)) = peers.select(|speaker| v4.count(speaker) + v6.count(speaker)) else {
        return match peers.asked() {
            None => Ok(None),
            Some(asked) => {
                let peers = peers.peers.iter().map(ToString::to_string).collect();
                Err(TableError::NoPeer { asked, peers })
            }
        };
    };
    let peer = &peers.peers[at];
    let of = peers.peers.len() as u32;
    let (index, address, asn) = (peer.index, peer.address, peer.asn);
    Ok(Some((at, SelectedPeer { index, address, asn, routes, of })))
}

/// Turns attribute sets into rows: sets that are equal in the columns that are kept become one row.
struct Rows<'a> {
    sets: &'a AttributeSets,
    places: Places,
    columns: ColumnsBuilder,
    /// The row of each set, `u32::MAX` while it has none.
    row_of: Vec<u32>,
    /// The peer that BGP routes are from, and the column that says so.
    peer: Option<(usize, String)>,
    width: usize,
}

impl<'a> Rows<'a> {
    fn new(
        sets: &'a AttributeSets,
        wanted: Option<&[String]>,
        peer: Option<String>,
    ) -> Result<Self, TableError> {
        let known = &sets.columns;
        let mut kinds: Vec<(&str, ColumnKind)> = Vec::new();
        match wanted {
            None => kinds.extend(known.iter().map(|c| (&*c.name, c.kind))),
            Some(wanted) => {
                for name in wanted {
                    let column = known.iter().find(|c| c.name == *name);
                    let column = column.ok_or_else(|| TableError::NoColumn {
                        asked: name.clone(),
                        columns: known.iter().map(|c| c.name.clone()).collect(),
                    })?;
                    if !kinds.iter().any(|(kept, _)| kept == name) {
                        kinds.push((&column.name, column.kind));
                    }
                }
            }
        }
        let names: Vec<&str> = kinds.iter().map(|(name, _)| *name).collect();
        let peer_place = names.iter().position(|&name| name == PEER);
        Ok(Self {
            sets,
            places: Places::new(&names, known.iter().map(|c| &c.name)),
            columns: ColumnsBuilder::new(&kinds),
            row_of: vec![u32::MAX; sets.len()],
            peer: peer_place.zip(peer),
            width: kinds.len(),
        })
    }

    /// The routes of a family, sorted, their sets turned into rows. Takes the store: its memory is
    /// free for the next step.
    fn number<A: Addr>(
        &mut self,
        store: Store<A>,
        peer: Option<u32>,
    ) -> Result<Routes<A>, TableError> {
        let preference = Preference::default();
        let mut found: Vec<(Prefix<A>, u32)> = store.routes(peer, self.sets, &preference).collect();
        drop(store);
        found.sort_unstable_by_key(|&(prefix, _)| prefix);
        let route = |(prefix, set)| Ok(Route { prefix, hop: Hop::new(self.row(set)?) });
        let routes: Vec<_> = found.into_iter().map(route).collect::<Result<_, _>>()?;
        Ok(Routes::from_unsorted(routes))
    }

    fn row(&mut self, number: u32) -> Result<u32, TableError> {
        let known = self.row_of[number as usize];
        if known != u32::MAX {
            return Ok(known);
        }
        let set = self.sets.get(number);
        let texts = SetTexts::of(set);
        let mut values = vec![Value::Null; self.width];
        self.places.fill(set, &texts, &mut values);
        if let Some((at, text)) = &self.peer
            && set.bgp().is_some()
        {
            values[*at] = Value::Str(text);
        }
        let row = self.columns.intern(&values)?;
        self.row_of[number as usize] = row;
        Ok(row)
    }
}
