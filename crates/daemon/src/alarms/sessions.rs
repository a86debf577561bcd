//! Which sessions send their tables.

use std::collections::{HashMap, HashSet};
use std::time::{SystemTime, UNIX_EPOCH};

use fibula_alarms::Occasion;
use fibula_feeds::{Board, SourceState};
use fibula_rib::Rib;

/// The sessions' states at a moment, and which of them have sent their tables before.
#[derive(Default)]
pub struct Sessions {
    states: HashMap<String, State>,
    /// Sessions that have sent their tables, and whose routes were not lost since.
    known: HashSet<String>,
    /// Peers that sessions named, or that lost their routes, while the session was up: routers report so (BMP).
    peers: HashMap<u32, PeerState>,
    /// The number of the next peer.
    next_peer: u32,
    /// The last changes of sessions that were neither up nor sending their tables.
    idle: HashMap<String, u64>,
}

/// How long such a session counts as one that sends its table: the first routes of a connection are there a moment
/// before its state is. In microseconds.
const MOMENT: u64 = 1_000_000;
/// How long a peer that a router reports as up is taken to send its table. In microseconds.
const PEER_TABLE: u64 = 60_000_000;
/// The most such peers that are kept.
const PEERS: usize = 65_536;

/// A peer of a session that is up.
#[derive(Clone, Copy)]
enum PeerState {
    /// Its routes were lost.
    Down,
    /// It sends its table until this time.
    Sends(u64),
}

/// A change, as far as it says when it happened.
#[derive(Clone, Copy)]
pub struct When<'a> {
    /// The number of the peer, and its session.
    pub peer: u32,
    pub session: Option<&'a str>,
    pub time: u64,
    /// Whether routes of the peer are still to come again.
    pub is_stale: bool,
    /// Whether the route was lost, and whether a peer's session took it.
    pub is_gone: bool,
    pub is_of_end: bool,
}

#[derive(Clone, Copy)]
struct State {
    state: SourceState,
    /// Since when, in microseconds since 1970.
    since: u64,
    /// Whether it was so already when the states were read before.
    is_old: bool,
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
        let before = std::mem::take(&mut self.states);
        let all = board.all().into_iter().map(|status| {
            let (state, since) = (status.state, micros(status.since));
            let is_old = before.get(&status.name).is_some_and(|before| before.since == since);
            (status.name, State { state, since, is_old })
        });
        self.states = all.collect();
    }

    /// Takes the peers that are new in the table.
    pub fn appeared(&mut self, rib: &Rib, now: u64) {
        for (number, peer) in rib.peers().range(self.next_peer..) {
            self.next_peer = number + 1;
            let state = peer.session().and_then(|session| self.states.get(session));
            if state.is_some_and(|state| state.is_up() && state.is_old) {
                self.keep(number, PeerState::Sends(now + PEER_TABLE));
            }
        }
    }

    fn keep(&mut self, peer: u32, state: PeerState) {
        if self.peers.len() >= PEERS {
            self.peers.clear();
        }
        self.peers.insert(peer, state);
    }

    /// When a change happened.
    pub fn occasion(&mut self, when: When<'_>) -> Occasion {
        let When { peer, session, time, is_stale, is_gone, is_of_end } = when;
        // A peer without a session is of a file, which does not start over.
        let Some(session) = session else { return Occasion::Live };
        let state = self.states.get(session).copied();
        let is_settled = match state {
            Some(state) => state.is_up() && state.since <= time,
            // It is no source of the configuration, or was given up with its routes.
            None => !is_gone,
        };
        if is_settled && !is_stale {
            return self.occasion_of_peer(peer, time, is_gone, is_of_end);
        }
        self.peers.remove(&peer);
        let was_known = self.known.contains(session);
        let is_lost =
            state.is_none_or(|state| !state.is_up() && state.state != SourceState::Resync);
        if is_lost {
            self.idle.insert(session.to_owned(), time);
        }
        if is_gone && is_lost {
            // Its routes leave with it: its next table is as its first one.
            self.known.remove(session);
        }
        if was_known { Occasion::Resent } else { Occasion::First }
    }

    /// The same for a session that is up.
    fn occasion_of_peer(
        &mut self,
        peer: u32,
        time: u64,
        is_gone: bool,
        is_of_end: bool,
    ) -> Occasion {
        if is_of_end {
            if is_gone {
                self.keep(peer, PeerState::Down);
            }
            return Occasion::Resent;
        }
        match self.peers.get(&peer).copied() {
            None => Occasion::Live,
            Some(PeerState::Down) => {
                self.keep(peer, PeerState::Sends(time + PEER_TABLE));
                Occasion::First
            }
            Some(PeerState::Sends(until)) if time < until => Occasion::First,
            Some(PeerState::Sends(_)) => {
                self.peers.remove(&peer);
                Occasion::Live
            }
        }
    }

    /// Whether it has not sent its whole table so far, at this time in microseconds since 1970.
    pub fn is_resending(&self, session: &str, now: u64) -> bool {
        let state = self.states.get(session);
        let is_up = state.is_some_and(|state| state.is_up());
        let is_new = || self.idle.get(session).is_some_and(|last| now < last + MOMENT);
        state.is_some_and(|state| state.state == SourceState::Resync) || (!is_up && is_new())
    }

    /// All changes that were there before the last [`Sessions::read`] were passed in, except those of the moment
    /// between the two: a session whose table ended in it is known the next time.
    pub fn passed(&mut self, now: u64) {
        let Self { states, known, idle, .. } = self;
        idle.retain(|_, last| now < *last + MOMENT);
        self.peers.retain(|_, state| !matches!(state, PeerState::Sends(until) if *until <= now));
        known.retain(|session| states.contains_key(session));
        let up = states.iter().filter(|(_, state)| state.is_up() && state.is_old);
        for (session, _) in up {
            if !known.contains(session) {
                known.insert(session.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fibula_feeds::{Figures, SourceStatus};

    use super::*;

    /// A board with the session `s` in this state since this second; without a state, it is not there.
    fn board(state: Option<SourceState>, second: u64) -> Board {
        let board = Board::default();
        if let Some(state) = state {
            board.set(SourceStatus {
                name: "s".to_owned(),
                kind: "bgp",
                endpoint: String::new(),
                table: "bgp".to_owned(),
                state,
                figures: Figures::default(),
                since: UNIX_EPOCH + Duration::from_secs(second),
                until: None,
                last: None,
                trouble: None,
            });
        }
        board
    }

    const OF_S: When<'static> = When {
        peer: 0,
        session: Some("s"),
        time: 0,
        is_stale: false,
        is_gone: false,
        is_of_end: false,
    };

    /// Peers of a router come and go while its session is up.
    #[test]
    fn a_peer_of_a_router_sends_its_table_when_it_is_up_again() {
        use Occasion::{First, Live, Resent};
        let mut sessions = Sessions::default();
        let up = board(Some(SourceState::Up), 1);
        let mut rib = Rib::default();
        let named = |rib: &mut Rib, asn| {
            rib.peer(fibula_rib::Peer {
                source: Some("s".into()),
                ..fibula_rib::Peer::new(None, asn)
            })
        };
        // One was there before the session was up.
        let first = named(&mut rib, 64500);
        sessions.read(&up);
        sessions.appeared(&rib, 2_000_000);
        sessions.passed(2_000_000);
        sessions.read(&up);
        let second = named(&mut rib, 64501);
        sessions.appeared(&rib, 100_000_000);
        let mut at = |peer, second: u64, is_gone, is_of_end| {
            let time = second * 1_000_000;
            sessions.occasion(When { peer, time, is_gone, is_of_end, ..OF_S })
        };
        assert_eq!([at(first, 101, false, false), at(first, 102, true, false)], [Live; 2]);
        assert_eq!([at(second, 101, false, false), at(second, 159, true, false)], [First; 2]);
        assert_eq!(at(second, 160, false, false), Live);
        // Its session with the router ends, and another peer's routes are the best then.
        assert_eq!(at(second, 200, true, true), Resent);
        assert_eq!(at(first, 200, false, true), Resent);
        assert_eq!(at(first, 201, false, false), Live);
        assert_eq!([at(second, 500, false, false), at(second, 559, false, false)], [First; 2]);
        assert_eq!(at(second, 560, false, false), Live);
    }

    #[test]
    fn a_session_goes_through_its_states() {
        let mut sessions = Sessions::default();
        let mut at = |state, second, time: u64, is_stale, is_gone| {
            sessions.read(&board(state, second));
            let change = When { time: time * 1_000_000, is_stale, is_gone, ..OF_S };
            let found = sessions.occasion(change);
            let now = (time + 1) * 1_000_000 - 1;
            sessions.passed(now);
            (found, sessions.is_resending("s", now))
        };
        use Occasion::{First, Live, Resent};
        use SourceState::{Idle, Lost, Resync, Up};
        // Its first table, of which the last changes are read when it is up.
        assert_eq!(at(Some(Resync), 1, 2, false, false), (First, true));
        assert_eq!(at(Some(Up), 3, 2, false, false), (First, false));
        assert_eq!(at(Some(Up), 3, 3, false, false), (Live, false));
        assert_eq!(at(Some(Up), 3, 9, false, true), (Live, false));
        // It is lost and comes back, and its routes stayed.
        assert_eq!(at(Some(Lost), 10, 11, false, false), (Resent, true), "for a moment");
        assert_eq!(at(Some(Resync), 12, 13, true, false), (Resent, true));
        assert_eq!(at(Some(Up), 14, 14, true, false), (Resent, false));
        assert_eq!(at(Some(Up), 14, 15, false, false), (Live, false));
        // It loses its routes: what it sends then is as at first.
        assert_eq!(at(Some(Idle), 20, 20, false, true), (Resent, true), "for a moment");
        assert_eq!(at(Some(Resync), 21, 22, false, false), (First, true));
        assert_eq!(at(Some(Up), 23, 24, false, false), (Live, false));
        assert_eq!(at(Some(Up), 23, 25, false, false), (Live, false));
        // It is given up.
        assert_eq!(at(None, 0, 30, false, true), (Resent, true), "for a moment");
        assert_eq!(at(None, 0, 31, false, false), (Live, false), "no source of ours");
        assert_eq!(sessions.occasion(When { session: None, ..OF_S }), Live, "a file");
        assert!(!sessions.is_resending("s", 31_000_000), "the moment is over");
    }

    /// A session whose table ended between two looks is not known before all of it was passed in.
    #[test]
    fn a_table_that_just_ended_may_have_changes_to_come() {
        let mut sessions = Sessions::default();
        let up = board(Some(SourceState::Up), 5);
        sessions.read(&up);
        sessions.passed(0);
        sessions.read(&up);
        assert_eq!(sessions.occasion(When { time: 4_000_000, ..OF_S }), Occasion::First);
        sessions.passed(0);
        sessions.read(&up);
        assert_eq!(sessions.occasion(When { time: 4_000_000, ..OF_S }), Occasion::Resent);
    }
}
