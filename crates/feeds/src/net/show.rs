//! The board: the states of the sources.

use std::time::{Duration, SystemTime};

use super::hub::Hub;
use super::slots::Thing;
use crate::{Clock, Figures, SourceState, SourceStatus};

impl Hub {
    /// Updates the outdated entries of the board.
    pub(super) fn write_board(&mut self) {
        let now = self.clock.now();
        self.write_at = None;
        // A door shows the sum of its sessions.
        let mains = self.dirty.iter().filter_map(|&key| {
            let source = &self.slots.get(key)?.source;
            self.sources.get(source).map(|running| running.main)
        });
        let keys: Vec<usize> =
            self.dirty.iter().copied().chain(mains.collect::<Vec<_>>()).collect();
        self.dirty.clear();
        for key in keys {
            if let Some(status) = self.status(key, now) {
                self.board.set(status);
            }
        }
    }

    /// Whether the state differs from the board's.
    pub(super) fn has_changed(&mut self, key: usize) -> bool {
        let Some(slot) = self.slots.get_mut(key) else { return false };
        let state = match &slot.thing {
            Thing::Link(link) => link.state(),
            Thing::Folder(folder) => folder.state,
            Thing::Door(_) | Thing::Farewell(_) => {
                return slot.shown.replace(SourceState::Idle).is_none();
            }
        };
        slot.shown.replace(state) != Some(state)
    }

    fn status(&mut self, key: usize, now: Duration) -> Option<SourceStatus> {
        let slot = self.slots.get_mut(key)?;
        match &mut slot.thing {
            Thing::Link(link) => Some(link.status(now)),
            Thing::Folder(folder) => Some(folder.status(now)),
            Thing::Farewell(_) => None,
            Thing::Door(door) => {
                let (address, accepted) = (door.address, door.accepted);
                let trouble = door.trouble.clone();
                let source = std::sync::Arc::clone(&slot.source);
                self.door_status(&source, (address.to_string(), accepted, trouble))
            }
        }
    }

    /// The state of a door is the best one of its sessions; each session has its own status too.
    fn door_status(
        &mut self,
        source: &str,
        (endpoint, accepted, trouble): (String, u64, Option<String>),
    ) -> Option<SourceStatus> {
        let running = self.sources.get_mut(source)?;
        let states = running.sessions.values().filter_map(|&key| {
            let Thing::Link(link) = &self.slots.get(key)?.thing else { return None };
            Some(link.state())
        });
        let rank = |state: &SourceState| match state {
            SourceState::Idle => 0,
            SourceState::Lost | SourceState::Damaged => 1,
            SourceState::Resync => 2,
            SourceState::Up => 3,
        };
        let state = states.max_by_key(rank).unwrap_or_default();
        if running.state.0 != state {
            running.state = (state, SystemTime::now());
        }
        Some(SourceStatus {
            name: source.to_owned(),
            kind: running.shown.kind,
            endpoint,
            table: running.shown.table.clone(),
            state,
            figures: Figures { connections: accepted, ..Figures::default() },
            since: running.state.1,
            until: None,
            last: None,
            trouble,
        })
    }
}
