//! Selects the peer, and numbers the attribute rows.

use fibula_core::{Addr, AnyPrefix, Hop, Prefix, Route, Routes, Value};

use hashbrown::HashMap;

use super::attributes::{AttributeSets, PEER};
use super::peers::{Peer, peer_of, speaker};
use super::records::Sources;
use super::store::{Found, LOCAL, PeerSet, Store};
use super::tags::{Describe, Lists, Tags};
use super::{PeerChoice, TableBuilder};
use crate::rib::names::{SetColumns, SetTexts};
use crate::{
    ColumnKind, ColumnsBuilder, LeftOut, Preference, Provenance, SelectedPeer, Table, TableError,
};

pub(super) fn finish(builder: TableBuilder) -> Result<Table, TableError> {
    if let Some(error) = builder.failed {
        return Err(error);
    }
    if builder.options.peer == PeerChoice::All && builder.tags.is_none() {
        return Err(TableError::AllPeers);
    }
    let chosen = select_peers(&builder)?;
    let speakers: Vec<u32> = chosen.iter().map(|&peer| speaker(peer)).collect();
    let TableBuilder { options, sources, attributes, tags, v4, v6, peers, left_out, .. } = builder;
    let tagged = tags.as_ref().map(|tags| tags.column().to_owned());
    let prefixes = v4.left_out(&speakers) + v6.left_out(&speakers);
    let count = |speaker: u32| v4.count(speaker) + v6.count(speaker);
    let counts: Vec<u64> = speakers.iter().map(|&speaker| count(speaker)).collect();

    let names = peers.peers.iter().map(Peer::text).collect();
    let mut rows = Rows::new(&attributes, options.columns.as_deref(), names, sources)?;
    rows.list(tags, options.peer == PeerChoice::All);
    let v4 = rows.number(v4, &speakers)?;
    let v6 = rows.number(v6, &speakers)?;
    let Rows { columns, routes_of, sources, .. } = rows;
    let mut columns = columns.finish()?;
    for column in &attributes.columns {
        // Lists are text.
        let scalar = column.scalar.flatten().filter(|_| tagged.as_ref() != Some(&column.name));
        columns.set_scalar_type(&column.name, scalar);
    }
    let of = peers.peers.len() as u32;
    let taken = |(&at, count): (&usize, u64)| {
        let Peer { index, address, asn, .. } = peers.peers[at];
        // For a single peer all its routes; for several peers the routes that are used in the table.
        let routes = if chosen.len() == 1 { count } else { routes_of[at] };
        SelectedPeer { index, address, asn, routes, of }
    };
    let peers: Vec<SelectedPeer> = chosen.iter().zip(counts).map(taken).collect();
    let provenance = Provenance {
        sources: sources.records,
        replaced: sources.replaced,
        tags: tagged,
        selected_peer: if let [only] = &*peers { Some(only.clone()) } else { None },
        peers,
        left_out: LeftOut { prefixes, announcements: left_out },
        ..Provenance::of_now()
    };
    Ok(Table { v4, v6, columns, provenance })
}

fn select_peers(builder: &TableBuilder) -> Result<Vec<usize>, TableError> {
    let TableBuilder { peers, v4, v6, .. } = builder;
    let selected = peers.select(|speaker| v4.count(speaker) + v6.count(speaker));
    match peers.requested() {
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
    places: SetColumns,
    columns: ColumnsBuilder,
    /// The row of each set and the speaker of that row; `u32::MAX` while the set has no row.
    row_of: Vec<(u32, u32)>,
    /// The further rows of sets that several speakers have.
    more: HashMap<(u32, u32), u32>,
    /// The names of all peers.
    peers: Vec<String>,
    /// The column with the peer of a BGP route.
    peer: Option<usize>,
    /// Number of routes of each peer in the table.
    routes_of: Vec<u64>,
    width: usize,
    sources: Sources,
    /// The column that lists the values of all routes, if there is one.
    lists: Option<Lists>,
    /// Whether this column lists the values of all peers.
    all_peers: bool,
    /// The rows of sets with lists, by speaker, set and list.
    listed: HashMap<(u32, u32, u32), u32>,
}

impl<'a> Rows<'a> {
    fn new(
        sets: &'a AttributeSets,
        wanted: Option<&[String]>,
        peers: Vec<String>,
        sources: Sources,
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
            places: SetColumns::new(&names, known.iter().map(|c| &c.name)),
            columns: ColumnsBuilder::new(&kinds),
            row_of: vec![(0, u32::MAX); sets.len()],
            more: HashMap::new(),
            routes_of: vec![0; peers.len()],
            peer: names.iter().position(|&name| name == PEER),
            peers,
            width: kinds.len(),
            sources,
            lists: None,
            all_peers: false,
            listed: HashMap::new(),
        })
    }

    /// One column lists the values of all routes, and of all peers.
    fn list(&mut self, tags: Option<Tags>, all_peers: bool) {
        self.all_peers = all_peers;
        self.lists = tags.and_then(|tags| {
            let place = self.columns.position(tags.column())?;
            Some(Lists::new(tags, place))
        });
    }

    /// The routes of a family, sorted, their sets turned into rows. Consumes the store, so that its memory is free for
    /// the next step.
    fn number<A: Addr>(
        &mut self,
        mut store: Store<A>,
        peers: &[u32],
    ) -> Result<Routes<A>, TableError>
    where
        AnyPrefix: From<Prefix<A>>,
    {
        store.local.tagged.sort();
        let preference = Preference::default();
        let mut routes: Vec<(Prefix<A>, PeerSet, u32)> = Vec::new();
        for found in store.routes(peers, self.sets, &preference) {
            if let Some(other) = found.other {
                let place = store.local.get(found.number);
                let peers_are_later = other.speaker == LOCAL;
                self.sources.beside_peers(found.prefix.into(), place, peers_are_later);
            }
            let list = self.listed(&store, peers, &found)?;
            routes.push((found.prefix, found.path, list));
        }
        drop(store);
        routes.sort_unstable_by_key(|&(prefix, ..)| prefix);
        let route = |(prefix, path, list)| {
            let row = if self.lists.is_some() { self.row_with(path, list) } else { self.row(path) };
            Ok(Route { prefix, hop: Hop::new(row?) })
        };
        let routes: Vec<_> = routes.into_iter().map(route).collect::<Result<_, _>>()?;
        Ok(Routes::from_unsorted(routes))
    }

    /// The number of the list of a prefix's values; 0 without such a column.
    fn listed<A: Addr>(
        &mut self,
        store: &Store<A>,
        peers: &[u32],
        found: &Found<A>,
    ) -> Result<u32, TableError> {
        let Some(lists) = &mut self.lists else { return Ok(0) };
        let describe = Describe {
            sets: self.sets,
            places: &self.places,
            peers: &self.peers,
            width: self.width,
            is_peer: self.peer == Some(lists.place),
        };
        let best = [Some(found.path), found.other].into_iter().flatten();
        let paths: Vec<PeerSet> = match self.all_peers {
            true => store.paths(peers, found.number),
            false => best.filter(|path| path.speaker != LOCAL).collect(),
        };
        lists
            .list(&store.local.tagged, found.number, &paths, &describe)
            .ok_or(TableError::Limit { what: "lists of values" })
    }

    fn row(&mut self, path: PeerSet) -> Result<u32, TableError> {
        let PeerSet { set: number, speaker } = path;
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
        let row = self.make_row(path, None)?;
        match &mut self.row_of[number as usize] {
            (known, free) if *free == u32::MAX => (*known, *free) = (speaker, row),
            _ => {
                self.more.insert((number, speaker), row);
            }
        }
        Ok(row)
    }

    /// The row of a set with a list of values.
    fn row_with(&mut self, path: PeerSet, list: u32) -> Result<u32, TableError> {
        if let Some(peer) = peer_of(path.speaker) {
            self.routes_of[peer] += 1;
        }
        let key = (path.speaker, path.set, list);
        if let Some(&row) = self.listed.get(&key) {
            return Ok(row);
        }
        let listed = self.lists.as_ref().map(|lists| (lists.place, lists.text(list)));
        let listed = listed.as_ref().map(|(place, text)| (*place, text.as_str()));
        let row = self.make_row(path, listed)?;
        self.listed.insert(key, row);
        Ok(row)
    }

    fn make_row(
        &mut self,
        PeerSet { set: number, speaker }: PeerSet,
        listed: Option<(usize, &str)>,
    ) -> Result<u32, TableError> {
        let set = self.sets.get(number);
        let texts = SetTexts::of(set);
        let mut values = vec![Value::Null; self.width];
        self.places.fill(set, &texts, &mut values);
        if let (Some(place), Some(peer)) = (self.peer, peer_of(speaker))
            && set.bgp().is_some()
        {
            values[place] = Value::Str(&self.peers[peer]);
        }
        if let Some((place, text)) = listed {
            values[place] = if text.is_empty() { Value::Null } else { Value::Str(text) };
        }
        self.columns.intern(&values)
    }
}
