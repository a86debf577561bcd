//! Selection of the peer, and numbering of the attribute rows.

use fibula_core::{Addr, Hop, Prefix, Route, Routes, Value};

use hashbrown::HashMap;

use super::TableBuilder;
use super::attributes::{AttributeSets, PEER};
use super::peers::{Peer, peer_of, speaker};
use super::store::{Said, Store};
use crate::rib::names::{Places, SetTexts};
use crate::{
    ColumnKind, ColumnsBuilder, LeftOut, Preference, Provenance, SelectedPeer, Table, TableError,
};

pub(super) fn finish(builder: TableBuilder) -> Result<Table, TableError> {
    if let Some(error) = builder.failed {
        return Err(error);
    }
    let chosen = select_peers(&builder)?;
    let speakers: Vec<u32> = chosen.iter().map(|&peer| speaker(peer)).collect();
    let TableBuilder { options, sources, attributes, v4, v6, peers, left_out, .. } = builder;
    let prefixes = v4.left_out(&speakers) + v6.left_out(&speakers);
    let said = |speaker: u32| v4.count(speaker) + v6.count(speaker);
    let said: Vec<u64> = speakers.iter().map(|&speaker| said(speaker)).collect();

    let names = peers.peers.iter().map(Peer::text).collect();
    let mut rows = Rows::new(&attributes, options.columns.as_deref(), names)?;
    let v4 = rows.number(v4, &speakers)?;
    let v6 = rows.number(v6, &speakers)?;
    let Rows { columns, routes_of, .. } = rows;
    let of = peers.peers.len() as u32;
    let taken = |(&at, said): (&usize, u64)| {
        let Peer { index, address, asn, .. } = peers.peers[at];
        // Of one peer all that it said; of several what each gave to the table.
        let routes = if chosen.len() == 1 { said } else { routes_of[at] };
        SelectedPeer { index, address, asn, routes, of }
    };
    let peers: Vec<SelectedPeer> = chosen.iter().zip(said).map(taken).collect();
    let provenance = Provenance {
        sources,
        selected_peer: if let [only] = &*peers { Some(only.clone()) } else { None },
        peers,
        left_out: LeftOut { prefixes, announcements: left_out },
        ..Provenance::of_now()
    };
    Ok(Table { v4, v6, columns: columns.finish()?, provenance })
}

fn select_peers(builder: &TableBuilder) -> Result<Vec<usize>, TableError> {
    let TableBuilder { peers, v4, v6, .. } = builder;
    let selected = peers.select(|speaker| v4.count(speaker) + v6.count(speaker));
    match peers.asked() {
        Some(asked) if selected.is_empty() => {
            let peers = peers.peers.iter().map(ToString::to_string).collect();
            Err(TableError::NoPeer { asked, peers })
        }
        _ => Ok(selected),
    }
}

/// Turns attribute sets into rows: sets that are equal in the columns that are kept become one row.
struct Rows<'a> {
    sets: &'a AttributeSets,
    places: Places,
    columns: ColumnsBuilder,
    /// The row of each set, and of which speaker; `u32::MAX` while it has none.
    row_of: Vec<(u32, u32)>,
    /// The rows of sets that several speakers have.
    more: HashMap<(u32, u32), u32>,
    /// The names of all peers.
    peers: Vec<String>,
    /// The column that says which peer a BGP route is from.
    peer: Option<usize>,
    /// How many routes each peer gave to the table.
    routes_of: Vec<u64>,
    width: usize,
}

impl<'a> Rows<'a> {
    fn new(
        sets: &'a AttributeSets,
        wanted: Option<&[String]>,
        peers: Vec<String>,
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
        Ok(Self {
            sets,
            places: Places::new(&names, known.iter().map(|c| &c.name)),
            columns: ColumnsBuilder::new(&kinds),
            row_of: vec![(0, u32::MAX); sets.len()],
            more: HashMap::new(),
            routes_of: vec![0; peers.len()],
            peer: names.iter().position(|&name| name == PEER),
            peers,
            width: kinds.len(),
        })
    }

    /// The routes of a family, sorted, their sets turned into rows. Takes the store: its memory is
    /// free for the next step.
    fn number<A: Addr>(&mut self, store: Store<A>, peers: &[u32]) -> Result<Routes<A>, TableError> {
        let preference = Preference::default();
        let mut found: Vec<(Prefix<A>, Said)> =
            store.routes(peers, self.sets, &preference).collect();
        drop(store);
        found.sort_unstable_by_key(|&(prefix, _)| prefix);
        let route = |(prefix, said)| Ok(Route { prefix, hop: Hop::new(self.row(said)?) });
        let routes: Vec<_> = found.into_iter().map(route).collect::<Result<_, _>>()?;
        Ok(Routes::from_unsorted(routes))
    }

    fn row(&mut self, Said { set: number, speaker }: Said) -> Result<u32, TableError> {
        if let Some(peer) = peer_of(speaker) {
            self.routes_of[peer] += 1;
        }
        match self.row_of[number as usize] {
            (known, row) if row != u32::MAX && known == speaker => return Ok(row),
            (_, row) if row != u32::MAX => {
                if let Some(&row) = self.more.get(&(number, speaker)) {
                    return Ok(row);
                }
            }
            _ => {}
        }
        let set = self.sets.get(number);
        let texts = SetTexts::of(set);
        let mut values = vec![Value::Null; self.width];
        self.places.fill(set, &texts, &mut values);
        if let (Some(place), Some(peer)) = (self.peer, peer_of(speaker))
            && set.bgp().is_some()
        {
            values[place] = Value::Str(&self.peers[peer]);
        }
        let row = self.columns.intern(&values)?;
        match &mut self.row_of[number as usize] {
            (known, free) if *free == u32::MAX => (*known, *free) = (speaker, row),
            _ => {
                self.more.insert((number, speaker), row);
            }
        }
        Ok(row)
    }
}
