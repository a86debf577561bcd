//! The positions of routes in sources without peers, and the routes that replaced others.

use fibula_core::AnyPrefix;

use super::tags::Tagged;
use crate::replaced::Mention;
use crate::{Replacement, SourceRecord};

/// A source, counted from 1, and its record; 0 where that is not known.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RecordRef {
    pub(super) source: u32,
    pub(super) record: u32,
}

/// The records of the prefixes of a family in sources without peers, by the prefixes' numbers.
#[derive(Default)]
pub(super) struct Local {
    places: Vec<RecordRef>,
    pub(super) tagged: Tagged,
}

impl Local {
    /// Sets the record of the prefix, and returns the one before.
    pub(super) fn put(&mut self, prefix: u32, place: RecordRef) -> Option<RecordRef> {
        let at = prefix as usize;
        if self.places.len() <= at {
            self.places.resize(at + 1, RecordRef::default());
        }
        Some(std::mem::replace(&mut self.places[at], place)).filter(|before| before.source > 0)
    }

    pub(super) fn get(&self, prefix: u32) -> RecordRef {
        self.places.get(prefix as usize).copied().unwrap_or_default()
    }
}

/// The sources, and which of their routes replaced others.
#[derive(Default)]
pub(super) struct Sources {
    pub(super) records: Vec<SourceRecord>,
    /// Whether a source has BGP peers.
    peers: Vec<bool>,
    pub(super) replaced: Vec<Replacement>,
    /// Number of entries of `replaced` within one source.
    repeated: usize,
    /// The first repetition of the current source.
    pub(super) first_repeated: Option<Replacement>,
}

impl Sources {
    pub(super) fn begin(&mut self, record: SourceRecord, peers: bool) {
        self.records.push(record);
        self.peers.push(peers);
        self.first_repeated = None;
    }

    pub(super) fn current(&mut self) -> Option<&mut SourceRecord> {
        self.records.last_mut()
    }

    /// A place in the current source.
    pub(super) fn place(&self, record: u32) -> RecordRef {
        RecordRef { source: self.records.len() as u32, record }
    }

    /// Notes that a record replaces another one with the same prefix. With `takes`, a replacement within a source is
    /// intended.
    pub(super) fn note_replacement(
        &mut self,
        prefix: AnyPrefix,
        earlier: RecordRef,
        later: RecordRef,
        takes: bool,
    ) {
        let is_repeated = earlier.source == later.source;
        let are_known = earlier.record > 0 && later.record > 0;
        if is_repeated && (takes || !are_known || earlier == later) {
            return;
        }
        let Some(record) = self.records.get_mut(later.source as usize - 1) else { return };
        let named = if is_repeated {
            record.repeated += 1;
            self.repeated
        } else {
            record.replaced += 1;
            self.replaced.len() - self.repeated
        };
        let is_first = is_repeated && self.first_repeated.is_none();
        if named >= Replacement::NAMED && !is_first {
            return;
        }
        let mention = |place: RecordRef| match self.records.get(place.source as usize - 1) {
            Some(source) => Mention::new(&source.name, &source.format, place.record),
            None => Mention::default(),
        };
        let prefix = prefix.to_string();
        let found = Replacement { prefix, earlier: mention(earlier), later: mention(later) };
        if is_first {
            self.first_repeated = Some(found.clone());
        }
        if named < Replacement::NAMED {
            self.replaced.push(found);
            self.repeated += usize::from(is_repeated);
        }
    }

    /// The prefix is in this record, and in routes of peers of later sources, or of earlier ones.
    pub(super) fn beside_peers(
        &mut self,
        prefix: AnyPrefix,
        place: RecordRef,
        peers_are_later: bool,
    ) {
        if place.source == 0 {
            return;
        }
        let at = place.source as usize - 1;
        // The first possible source: the actual one is not stored.
        let found = match peers_are_later {
            true => (at..self.peers.len()).find(|&source| self.peers[source]),
            false => (0..=at).rev().find(|&source| self.peers[source]),
        };
        let Some(found) = found.filter(|&found| found != at) else { return };
        let peers = RecordRef { source: found as u32 + 1, record: 0 };
        let (earlier, later) = if peers_are_later { (place, peers) } else { (peers, place) };
        self.note_replacement(prefix, earlier, later, false);
    }
}
