//! Which sessions send their tables.

use std::collections::{HashMap, HashSet};
use std::time::{SystemTime, UNIX_EPOCH};

use fibula_alarms::Occasion;
use fibula_feeds::{Board, SourceState};

/// The sessions' states at a moment, and which of them have sent their tables before.
#[derive(Default)]
pub struct Sessions {
    states: HashMap<String, State>,
    /// Sessions that have sent their tables, and whose routes were not lost since.
    known: HashSet<String>,
}

#[derive(Clone, Copy)]
struct State {
    state: SourceState,
    /// Since when, in microseconds since 1970.
    since: u64,
}

impl State {
    fn is_up(self) -> bool {
        matches!(self.state, SourceState::Up | SourceState::Damaged)
    }
}

impl Sessions {
    /// Reads the states. This is done after changes were read, so that a session that began to send its table before
    /// one of them is seen to do so.
    pub fn read(&mut self, board: &Board) {
        let micros = |since: SystemTime| {
            since.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64
        };
        let all = board.all().into_iter();
        self.states = all
            .map(|status| {
                let since = micros(status.since);
                (status.name, State { state: status.state, since })
            })
            .collect();
    }

    /// When a change of a session happened: `is_stale` says whether routes of its peer are still to come again, and
    /// `is_gone` whether a route was lost.
    pub fn occasion(
        &mut self,
        session: Option<&str>,
        time: u64,
        is_stale: bool,
        is_gone: bool,
    ) -> Occasion {
        // A peer without a session is of a file, which does not start over.
        let Some(session) = session else { return Occasion::Live };
        let state = self.states.get(session).copied();
        let is_settled = match state {
            Some(state) => state.is_up() && state.since <= time,
            // It is no source of the configuration, or was given up with its routes.
            None => !is_gone,
        };
        if is_settled && !is_stale {
            return Occasion::Live;
        }
        let was_known = self.known.contains(session);
        let is_lost =
            state.is_none_or(|state| !state.is_up() && state.state != SourceState::Resync);
        if is_gone && is_lost {
            // Its routes leave with it: its next table is as its first one.
            self.known.remove(session);
        }
        if was_known { Occasion::Resent } else { Occasion::First }
    }

    /// Whether it has not sent its whole table so far.
    pub fn is_resending(&self, session: &str) -> bool {
        self.states.get(session).is_some_and(|state| state.state == SourceState::Resync)
    }

    /// All changes until the last [`Sessions::read`] were passed in.
    pub fn passed(&mut self) {
        let Self { states, known } = self;
        known.retain(|session| states.contains_key(session));
        let up = states.iter().filter(|(_, state)| state.is_up());
        for (session, _) in up {
            if !known.contains(session) {
                known.insert(session.clone());
            }
        }
    }
}
