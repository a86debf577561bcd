//! From the verbs of one source to those of a table.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;

use fibula_core::Update;
use fibula_ingest::{Damage, PeerInfo, PeerState, Sink, SourceInfo};
use fibula_rib::Peer;

use crate::places::Places;
use crate::{Event, FeedError, Listener};

/// The peers of a source, and its columns.
#[derive(Default)]
pub(crate) struct Peers {
    /// Where the listener has the source's values.
    pub(crate) places: Places,
    /// The numbers of those that the connection, or the file, has named.
    pub(crate) indices: HashMap<u32, u32>,
    /// The numbers of all that have ever spoken.
    pub(crate) all: BTreeSet<u32>,
    /// Those that have not said everything on this connection, and whether they had said something on an
    /// earlier one, which is stale then.
    pub(crate) open: BTreeMap<u32, bool>,
}

/// Between a decoder and a listener: a decoder counts the peers of its source, a listener those of the
/// table.
pub(crate) struct Told<'a> {
    pub(crate) to: &'a mut dyn Listener,
    pub(crate) peers: &'a mut Peers,
    /// Peers that appear have not said everything.
    pub(crate) is_resync: bool,
    /// Who speaks where the format has no peers.
    pub(crate) speaker: &'a Peer,
    pub(crate) events: &'a dyn Fn(Event),
    /// The first failure; what comes behind it is not told.
    pub(crate) failed: Option<FeedError>,
}

impl Told<'_> {
    fn number(&mut self, index: u32) -> u32 {
        match self.peers.indices.get(&index) {
            Some(&number) => number,
            None => self.name(index, self.speaker),
        }
    }

    /// The source calls the peer so.
    fn name(&mut self, index: u32, peer: &Peer) -> u32 {
        let number = self.to.peer(peer);
        self.peers.indices.insert(index, number);
        self.peers.all.insert(number);
        if self.is_resync {
            self.peers.open.entry(number).or_insert(false);
        }
        number
    }

    fn tell(&mut self, what: impl FnOnce(&mut dyn Listener) -> Result<(), FeedError>) {
        if self.failed.is_none() {
            self.failed = what(self.to).err();
        }
    }
}

impl Sink for Told<'_> {
    fn begin(&mut self, info: &SourceInfo) {
        let columns = info.columns.iter().map(|column| column.name.as_str());
        self.peers.places = Places::of(columns, self.to);
    }

    fn peer(&mut self, index: u32, info: &PeerInfo) {
        // Without an address, the AS alone does not make two peers the same; the index has to.
        let asn = if info.address.is_none() && info.asn == 0 { index } else { info.asn };
        self.name(index, &Peer { address: info.address, asn });
    }

    fn peer_state(&mut self, state: &PeerState) {
        if state.is_down() {
            let peer = self.number(state.peer);
            self.peers.open.remove(&peer);
            self.tell(|to| to.down(peer));
        }
    }

    fn update(&mut self, update: &Update<'_>) {
        let peer = self.number(update.peer);
        if self.failed.is_none() {
            let update = Update { peer, ..*update };
            self.failed = self.peers.places.tell(&update, self.to).err();
        }
    }

    fn end_of_rib(&mut self, index: u32) {
        let peer = self.number(index);
        if self.peers.open.remove(&peer) == Some(true) {
            self.tell(|to| to.sweep(peer));
            (self.events)(Event::Swept { peer });
        }
    }

    fn damage(&mut self, damage: &Damage) -> ControlFlow<()> {
        (self.events)(Event::Damaged(damage.clone()));
        ControlFlow::Continue(())
    }
}
