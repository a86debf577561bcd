//! Turns the events of one source into the events of a table.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;

use fibula_core::{Change, Update, Vrf};
use fibula_ingest::{Damage, PeerInfo, PeerState, Sink, SourceInfo};
use fibula_rib::{FeedEvent, Listener, PathCounts, Peer, SessionPaths, TableError};

use crate::column_map::ColumnMap;
use crate::{Event, FeedError, Figures};

/// The peers of a source, and its columns.
#[derive(Default)]
pub(crate) struct Peers {
    /// The positions of the source's columns in the listener.
    pub(crate) places: ColumnMap,
    /// The table's numbers of the peers that the connection, or the file, has declared.
    pub(crate) indices: HashMap<u32, u32>,
    /// The peer of the last call: the source's number and the table's.
    last_peer: Option<(u32, u32)>,
    /// The table's numbers of all peers of the source so far.
    pub(crate) all: BTreeSet<u32>,
    /// The routing instances that the connection, or the file, has named, and the table's numbers of them.
    vrfs: HashMap<Vrf, Instance>,
    /// The routing instance of the last update: the source's number and the table's.
    last_vrf: Option<(Vrf, Vrf)>,
    /// The table's count of instances that it gave up, when the numbers were last compared with it.
    given_up: u64,
    /// The counts so far.
    pub(crate) figures: Figures,
    /// The peers that have not sent everything on this connection, and whether they have stale routes of an earlier
    /// one.
    pub(crate) open: BTreeMap<u32, bool>,
}

/// A routing instance of the source. The table learns of it with its first route: sources name many without any.
struct Instance {
    name: String,
    /// The table's number, unless it has had no route since the table gave it up.
    number: Option<Vrf>,
}

impl Peers {
    /// A value that changes whenever a peer appears or ends, or a route arrives while a peer has not ended: the number
    /// of peers, of peers that have not ended, and of their routes. Once all peers have ended, routes are ordinary
    /// changes and do not show whether more peers follow.
    pub(crate) fn progress(&self) -> (usize, usize, u64) {
        let routes = match self.open.is_empty() {
            true => 0,
            false => self.figures.announced + self.figures.withdrawn,
        };
        (self.indices.len(), self.open.len(), routes)
    }

    /// From here on, the source's numbers of peers and routing instances are new.
    pub(crate) fn forget_names(&mut self) {
        (self.indices, self.vrfs) = (HashMap::new(), HashMap::new());
        (self.last_peer, self.last_vrf) = (None, None);
    }

    /// Drops the numbers of routing instances that the table has given up.
    fn renew_vrfs(&mut self, to: &dyn Listener) {
        let given_up = to.given_up();
        if std::mem::replace(&mut self.given_up, given_up) != given_up {
            self.last_vrf = None;
            for instance in self.vrfs.values_mut() {
                instance.number = instance.number.filter(|&number| to.is_vrf(number));
            }
        }
    }

    /// The source sends everything again from here on, under new names: the earlier routes are stale.
    pub(crate) fn start_over(&mut self, to: &mut dyn Listener) -> Result<(), FeedError> {
        self.forget_names();
        self.open = self.all.iter().map(|&peer| (peer, true)).collect();
        let all: Vec<u32> = self.all.iter().copied().collect();
        in_parts(&all, to, |part, to| to.event(FeedEvent::MarkAllStale(part)))?;
        Ok(())
    }

    /// All peers have sent their whole tables.
    pub(crate) fn complete(
        &mut self,
        to: &mut dyn Listener,
        events: &dyn Fn(Event),
    ) -> Result<(), FeedError> {
        let open = std::mem::take(&mut self.open).into_iter();
        let stale: Vec<u32> =
            open.filter(|(_, is_stale)| *is_stale).map(|(peer, _)| peer).collect();
        in_parts(&stale, to, |part, to| {
            to.event(FeedEvent::SweepAll(part))?;
            part.iter().for_each(|&peer| events(Event::Swept { peer }));
            Ok(())
        })?;
        self.release(to);
        Ok(())
    }

    /// Releases the peers of earlier connections that this one did not name and that have no routes left.
    fn release(&mut self, to: &mut dyn Listener) {
        if self.all.len() <= self.indices.len() {
            return;
        }
        let named: HashSet<u32> = self.indices.values().copied().collect();
        self.all.retain(|&peer| {
            let is_over =
                !named.contains(&peer) && to.paths_of(peer) == Some(PathCounts::default());
            if is_over {
                to.release(peer);
            }
            !is_over
        });
    }

    /// Removes the peers and their routes.
    pub(crate) fn end(&mut self, to: &mut dyn Listener) -> Result<(), FeedError> {
        self.open.clear();
        self.forget_names();
        let all: Vec<u32> = std::mem::take(&mut self.all).into_iter().collect();
        in_parts(&all, to, |part, to| {
            to.event(FeedEvent::DownAll(part))?;
            part.iter().for_each(|&peer| to.release(peer));
            Ok(())
        })?;
        Ok(())
    }
}

/// Calls `each` with parts of the peers: as many as one event may be about, because the table is locked meanwhile and
/// reads all its routes once.
pub(crate) fn in_parts(
    peers: &[u32],
    to: &mut dyn Listener,
    mut each: impl FnMut(&[u32], &mut dyn Listener) -> Result<(), TableError>,
) -> Result<(), TableError> {
    /// Number of paths after which a part ends, and maximum number of peers.
    const PATHS: usize = 1 << 18;
    const PEERS: usize = 4096;
    let mut rest = peers;
    while !rest.is_empty() {
        let mut paths = 0;
        let count = rest.iter().take(PEERS).take_while(|&&peer| {
            let is_part = paths < PATHS;
            let counts = to.paths_of(peer).unwrap_or_default();
            paths += counts.v4 + counts.v6;
            is_part
        });
        let (part, behind) = rest.split_at(count.count());
        each(part, to)?;
        rest = behind;
    }
    Ok(())
}

/// Translates between a decoder and a listener: a decoder numbers the peers of its source, a listener the peers of the
/// table.
pub(crate) struct PeerMapper<'a> {
    pub(crate) to: &'a mut dyn Listener,
    pub(crate) peers: &'a mut Peers,
    /// New peers have not sent their whole tables yet.
    pub(crate) is_resync: bool,
    /// The peer for formats without peers. For other formats, its source is that of all peers.
    pub(crate) speaker: &'a Peer,
    /// The name of the table; empty for the global one.
    pub(crate) table: &'a str,
    pub(crate) events: &'a dyn Fn(Event),
    /// The first failure; later events are not passed on.
    pub(crate) failed: Option<FeedError>,
}

impl<'a> PeerMapper<'a> {
    /// For one piece of the source's bytes: within it, the table's numbers stay. Peers that appear while `is_resync`
    /// have not sent their whole tables yet.
    pub(crate) fn new(
        to: &'a mut dyn Listener,
        (peers, is_resync): (&'a mut Peers, bool),
        (speaker, table): (&'a Peer, &'a str),
        events: &'a dyn Fn(Event),
    ) -> Self {
        peers.renew_vrfs(to);
        Self { to, peers, is_resync, speaker, table, events, failed: None }
    }
}

impl PeerMapper<'_> {
    fn number(&mut self, index: u32) -> u32 {
        if let Some((last, number)) = self.peers.last_peer
            && last == index
        {
            return number;
        }
        let number = match self.peers.indices.get(&index) {
            Some(&number) => number,
            None => self.name(index, self.speaker),
        };
        self.peers.last_peer = Some((index, number));
        number
    }

    /// The table's number for the source's number of a peer. If there are too many peers, the session ends, and none
    /// has the number that this gives.
    fn name(&mut self, index: u32, peer: &Peer) -> u32 {
        /// Number of peers that a source may have in spite of others that have many.
        const OWN: usize = 256;
        let own = self.peers.all.len();
        if own >= OWN
            && let Some(most) = self.to.is_full_for(peer)
        {
            self.failed.get_or_insert(TableError::Peers { most, own }.into());
            return u32::MAX;
        }
        let number = self.to.peer(peer);
        self.peers.indices.insert(index, number);
        self.peers.last_peer = None;
        self.peers.all.insert(number);
        if self.is_resync {
            self.peers.open.entry(number).or_insert(false);
        }
        number
    }

    /// Whether the routing instance has had no route: there is nothing to withdraw.
    fn is_unused(&self, index: Vrf) -> bool {
        self.peers.last_vrf.is_none_or(|(last, _)| last != index)
            && self.peers.vrfs.get(&index).is_some_and(|instance| instance.number.is_none())
    }

    /// The table's number of the source's routing instance.
    fn vrf(&mut self, index: Vrf) -> Vrf {
        if let Some((last, number)) = self.peers.last_vrf
            && last == index
        {
            return number;
        }
        let Self { to, peers, table, .. } = self;
        let number = match peers.vrfs.get_mut(&index) {
            Some(Instance { name, number }) => *number.get_or_insert_with(|| to.vrf(name)),
            // The source has not named this instance.
            None if table.is_empty() => index,
            None => to.vrf(table),
        };
        self.peers.last_vrf = Some((index, number));
        number
    }

    /// Removes the routes of the session that has the most in a table that is full, unless it is this peer's: then this
    /// session ends. All peers of a connection are one session.
    #[cold]
    fn make_room(&mut self, peer: u32) -> bool {
        let Some(largest) = self.to.largest_session(peer) else { return false };
        let down = |part: &[u32], to: &mut dyn Listener| to.event(FeedEvent::DownAll(part));
        if let Err(error) = in_parts(&largest.peers, self.to, down) {
            self.failed = Some(error.into());
            return false;
        }
        let SessionPaths { session, paths, .. } = largest;
        (self.events)(Event::CutOff { session, routes: paths });
        true
    }

    fn pass_on(&mut self, what: impl FnOnce(&mut dyn Listener) -> Result<(), TableError>) {
        if self.failed.is_none() {
            self.failed = what(self.to).err().map(FeedError::from);
        }
    }
}

impl Sink for PeerMapper<'_> {
    fn begin(&mut self, info: &SourceInfo) {
        let columns = info.columns.iter().map(|column| column.name.as_str());
        self.peers.places = ColumnMap::of(columns, self.to);
    }

    fn peer(&mut self, index: u32, info: &PeerInfo) {
        // Without an address, the AS alone does not make two peers the same; the index has to.
        let asn = if info.address.is_none() && info.asn == 0 { index } else { info.asn };
        let source = match (&self.speaker.source, &*info.view) {
            (source, "") => source.clone(),
            (None, view) => Some(view.into()),
            (Some(source), view) => Some(format!("{source} {view}").into()),
        };
        self.name(index, &Peer { address: info.address, asn, source });
    }

    fn vrf(&mut self, index: Vrf, name: &str) {
        let name = match (self.table, name) {
            ("", name) => name.to_owned(),
            (table, "") => table.to_owned(),
            (table, name) => format!("{table}/{name}"),
        };
        self.peers.vrfs.insert(index, Instance { name, number: None });
        self.peers.last_vrf = None;
    }

    fn remark(&mut self, key: &'static str, value: &str) {
        /// Bytes of a remark that are kept.
        const KEPT: usize = 1024;
        let end = value.floor_char_boundary(KEPT);
        self.peers.figures.remarks.insert(key, value[..end].to_owned());
    }

    fn ignored(&mut self, _: &'static str) {
        self.peers.figures.ignored += 1;
    }

    fn noted(&mut self, what: &'static str) {
        *self.peers.figures.noted.entry(what).or_default() += 1;
    }

    fn peer_state(&mut self, state: &PeerState) {
        if state.is_down() {
            let peer = self.number(state.peer);
            self.peers.open.remove(&peer);
            self.pass_on(|to| to.down(peer));
        }
    }

    fn update(&mut self, update: &Update<'_>) {
        if matches!(update.change, Change::Withdraw) && self.is_unused(update.vrf) {
            self.peers.figures.withdrawn += 1;
            return;
        }
        let (peer, vrf) = (self.number(update.peer), self.vrf(update.vrf));
        if self.failed.is_none() {
            let update = Update { peer, vrf, ..*update };
            match update.change {
                Change::Announce(_) => self.peers.figures.announced += 1,
                Change::Withdraw => self.peers.figures.withdrawn += 1,
            }
            let mut applied = self.peers.places.pass_on(&update, self.to);
            if let Err(TableError::Full { of_peer: false, .. }) = applied
                && self.make_room(peer)
            {
                applied = self.peers.places.pass_on(&update, self.to);
            }
            self.failed = applied.err().map(FeedError::from);
        }
    }

    fn end_of_rib(&mut self, index: u32) {
        let peer = self.number(index);
        if self.peers.open.remove(&peer) == Some(true) {
            self.pass_on(|to| to.sweep(peer));
            (self.events)(Event::Swept { peer });
        }
    }

    fn damage(&mut self, damage: &Damage) -> ControlFlow<()> {
        self.peers.figures.damaged += 1;
        (self.events)(Event::Damaged(damage.clone()));
        ControlFlow::Continue(())
    }
}
