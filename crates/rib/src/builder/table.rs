//! Tables as sources. Routes that came from BGP peers are assigned to these peers again.

use fibula_core::{Addr, AnyPrefix, Attributes, BgpAttributes, Prefix, Routes, Value};

use super::TableBuilder;
use super::attributes::PEER;
use super::peers::Peer;
use super::store::LOCAL;
use crate::{Columns, SelectedPeer, SourceRecord, Table};

/// The peer of the routes of a row, and its attribute set.
type Row = (u32, u32);

impl TableBuilder {
    /// Adds the routes of a table, for example of a snapshot, as a source.
    ///
    /// Routes that came from BGP peers are assigned to these peers again, if the peers are chosen. The best path is
    /// used, and following updates replace and withdraw the routes. Of the attributes for ranking paths, a table has
    /// only the length of the AS path, unless that column was left out. Other routes have the values of their
    /// columns.
    pub fn add_table(&mut self, name: &str, format: &str, table: &Table) {
        // The table is one source for both its peers and its other routes: later than earlier sources, earlier than
        // later ones.
        self.current.segment += 1;
        let columns = &table.columns;
        let names = columns.names().enumerate();
        let kinds: Vec<_> = names.map(|(at, n)| (n.to_owned(), columns.kind(at))).collect();
        self.current.order = self.attributes.order(&kinds);
        let of = |name: &str| columns.find(name).and_then(|column| columns.scalar_type(column));
        self.attributes.types(&kinds, of);
        let peers = self.peers_of(table);
        self.begin_tags(name, &kinds, false);
        let (name, format) = (name.to_owned(), format.to_owned());
        let announced = (table.v4.len() + table.v6.len()) as u64;
        let record = SourceRecord { name, format, announced, ..SourceRecord::default() };
        self.sources.begin(record, !peers.is_empty());
        self.current.record = 0;

        let mut rows: Vec<Option<Row>> = vec![None; columns.len() as usize];
        let whole = self.take(&table.v4, columns, &peers, &mut rows).is_some()
            && self.take(&table.v6, columns, &peers, &mut rows).is_some();
        if !whole {
            self.fail("attribute sets");
        }
        self.current.segment += 1;
    }

    /// Adds the routes of a family; `None` when numbers have run out.
    fn take<A: Addr>(
        &mut self,
        routes: &Routes<A>,
        columns: &Columns,
        peers: &[(String, u32)],
        rows: &mut [Option<Row>],
    ) -> Option<()>
    where
        AnyPrefix: From<Prefix<A>>,
    {
        for route in routes.iter() {
            let at = route.hop.index()?;
            let known = rows.get_mut(at as usize)?;
            let (speaker, set) = match *known {
                Some(known) => known,
                None => *known.insert(self.table_row(columns, at, peers)?),
            };
            let value = |column| match speaker {
                LOCAL => columns.value(column, at),
                _ => Value::Null, // its path has it
            };
            self.set(speaker, route.prefix.into(), 0, Some(set), value);
        }
        Some(())
    }

    /// The chosen peers with routes in the table, by their names in its column.
    fn peers_of(&mut self, table: &Table) -> Vec<(String, u32)> {
        let provenance = &table.provenance;
        let peers: &[SelectedPeer] = match (&*provenance.peers, &provenance.selected_peer) {
            ([], Some(peer)) => std::slice::from_ref(peer), // an older program wrote it
            (peers, _) => peers,
        };
        // A list of several peers' values belongs to no single peer.
        if peers.is_empty() || provenance.tags.is_some() {
            return Vec::new();
        }
        self.peers.begin_source();
        let mut speakers = Vec::new();
        for (at, &SelectedPeer { index, address, asn, .. }) in (0..).zip(peers) {
            let index = if peers.len() == 1 { index } else { at };
            self.peers.add(index, address, asn);
            if let Some(speaker) = self.peers.speaker(index) {
                let name = Peer { address, asn, index, eligible: true }.text();
                speakers.push((name, speaker));
            }
        }
        speakers
    }

    /// Interns a row; `None` when numbers have run out.
    fn table_row(&mut self, columns: &Columns, row: u32, peers: &[(String, u32)]) -> Option<Row> {
        let value = |name: &str| columns.find(name).map(|column| columns.value(column, row));
        let speaker = match (value(PEER), peers) {
            (Some(Value::Str(name)), _) => peers.iter().find(|(peer, _)| peer == name),
            // The column of peers was left out: all routes belong to the selected peer, unless a column comes from
            // another source.
            (None, [only]) if columns.names().all(is_of_bgp) => Some(only),
            _ => None,
        };
        let segment = self.current.segment;
        let Some((_, speaker)) = speaker else {
            let values: Vec<_> = (0..columns.width()).map(|at| columns.value(at, row)).collect();
            let order = std::mem::take(&mut self.current.order);
            let set = self.attributes.values(segment, &order, &values);
            self.current.order = order;
            return Some((LOCAL, set?));
        };
        let int = |name| match value(name) {
            Some(Value::Int(number)) => u32::try_from(number).ok(),
            Some(Value::Str(text)) => text.parse().ok(), // the column is text elsewhere
            _ => None,
        };
        let text = |name| match value(name) {
            Some(Value::Str(text)) => text,
            _ => "",
        };
        let bgp = BgpAttributes {
            next_hop: text("next_hop").parse().ok(),
            origin_as: int("origin_as"),
            as_path_len: int("as_path_len").unwrap_or(0),
            as_path: text("as_path"),
            communities: text("communities"),
            ..BgpAttributes::default()
        };
        let set = self.attributes.encoded(segment, &Attributes::Bgp(&bgp))?;
        Some((*speaker, set))
    }
}

/// The columns that BGP routes have.
fn is_of_bgp(name: &str) -> bool {
    ["next_hop", "origin_as", "as_path_len", PEER, "as_path", "communities"].contains(&name)
}
