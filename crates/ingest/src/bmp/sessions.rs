//! A router's peers: the parameters of their sessions, and the state of their tables.

use std::collections::HashMap;
use std::net::IpAddr;

use super::header::{Key, PerPeer, View};
use crate::bgp::{AddPath, AfiSafi, Open, PeerEncoding, vrf_name};
use crate::{PeerInfo, PeerState, Sink};

/// More peers than a router has, each of its tables counted; a stream that names more is hostile or garbled.
const MOST: usize = 65_536;
/// The families whose routes are read; the place of each is its bit in a set.
const READ: [AfiSafi; 4] = [AfiSafi::IPV4, AfiSafi::IPV6, AfiSafi::VPN_IPV4, AfiSafi::VPN_IPV6];

const NEVER_UP: &str = "routes of a peer that never came up, read as their headers say";
const AFTER_DOWN: &str = "routes of a peer that went down, kept: it must have come up again";

/// Some of the families that are read.
type Families = u8;

fn set_of(family: AfiSafi) -> Families {
    READ.iter().position(|read| *read == family).map_or(0, |bit| 1 << bit)
}

/// All sessions of the router, and the peers' numbers.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    by_key: HashMap<Key, usize>,
    all: Vec<Session>,
    /// Messages come in runs of one peer.
    last: Option<(Key, usize)>,
    numbers: HashMap<PeerInfo, u32>,
}

#[derive(Debug)]
struct Session {
    /// AS number and BGP identifier.
    identity: (u32, u32),
    state: State,
    /// The router's address in the session, if that is known.
    local_address: Option<IpAddr>,
    /// The encoding of messages from the peer to the router.
    incoming: PeerEncoding,
    /// The encoding of messages from the router to the peer.
    outgoing: PeerEncoding,
    /// The families that both ends agreed on; none if that is not known.
    families: Families,
    tables: [Table; View::COUNT],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Neither Peer Up nor Peer Down was received; there may be routes.
    Unknown,
    Up,
    Down,
}

/// The state of one view of the peer's routes.
#[derive(Clone, Copy, Debug, Default)]
struct Table {
    /// Its number, once it was declared.
    peer: Option<u32>,
    /// It may have routes.
    is_up: bool,
    /// The families whose End-of-RIB marker was received.
    ended: Families,
    /// Whether the sink was notified that all of them were received.
    is_complete: bool,
}

/// More peers came than any router has.
#[derive(Debug)]
pub(super) struct TooMany;

impl Sessions {
    /// How the BGP message of a Route Monitoring message is encoded, and whose it is.
    pub(super) fn speaker(
        &mut self,
        of: &PerPeer,
        sink: &mut dyn Sink,
    ) -> Result<PeerEncoding, TooMany> {
        let at = self.find_or_add(of)?;
        let session = &mut self.all[at];
        let table = &mut session.tables[of.view as usize];
        if !table.is_up {
            match session.state {
                State::Up => {}
                State::Unknown => sink.noted(NEVER_UP),
                State::Down => {
                    sink.noted(AFTER_DOWN);
                    session.state = State::Unknown;
                }
            }
        }
        let peer = match table.peer {
            Some(peer) => peer,
            None => declare(&mut self.numbers, of, session.identity, sink)?,
        };
        table.peer = Some(peer);
        table.is_up = true;
        let encoding = if of.view.is_out() { session.outgoing } else { session.incoming };
        let (view, rd) = (of.view.name(), of.key.rd());
        Ok(PeerEncoding { peer, four_byte_asns: !of.has_two_byte_asns, view, rd, ..encoding })
    }

    /// The address at which the router receives the routes of this view.
    pub(super) fn receiver(&mut self, of: &PerPeer) -> Option<IpAddr> {
        let at = self.find(of)?;
        self.all[at].local_address.filter(|_| !of.view.is_out())
    }

    /// The session is up, with these OPENs from the router, which has this address, and from the peer.
    pub(super) fn up(
        &mut self,
        of: &PerPeer,
        local_address: Option<IpAddr>,
        (sent, received): (&Open, &Open),
        sink: &mut dyn Sink,
    ) -> Result<(), TooMany> {
        let at = self.find_or_add(of)?;
        let session = &mut self.all[at];
        let (incoming, outgoing) = match of.view {
            View::LocRib => {
                let encoding = of_own_table(sent, received);
                (encoding, encoding)
            }
            _ => (received.encoding_to(sent), sent.encoding_to(received)),
        };
        let families = families(of.view, sent, received);
        // If the previous session ended without Peer Down, the new one has another AS or identifier.
        if session.state == State::Up && session.identity == (of.asn, of.bgp_id) {
            // Some routers send one for each view or family: they add up.
            for family in READ.into_iter().filter(|family| families & set_of(*family) != 0) {
                session.incoming.set_add_path(family, incoming.add_path_of(family));
                session.outgoing.set_add_path(family, outgoing.add_path_of(family));
            }
            if families & !session.families != 0 {
                session.families |= families;
                session.tables.iter_mut().for_each(|table| table.is_complete = false);
            }
            return Ok(());
        }
        if session.identity != (of.asn, of.bgp_id) {
            session.report(of.time, false, sink);
            session.identity = (of.asn, of.bgp_id);
            session.tables = <[Table; View::COUNT]>::default();
        }
        session.local_address = local_address;
        (session.incoming, session.outgoing) = (incoming, outgoing);
        session.families = families;
        session.state = State::Up;
        for table in &mut session.tables {
            (table.ended, table.is_complete) = (0, false);
        }
        session.report(of.time, true, sink);
        Ok(())
    }

    /// The session is down, which ends the routes of all its tables. Returns whether that is news: some
    /// routers repeat it all the time.
    pub(super) fn down(&mut self, of: &PerPeer, sink: &mut dyn Sink) -> bool {
        let Some(at) = self.find(of) else { return false };
        let session = &mut self.all[at];
        let was_up = session.state != State::Down;
        session.state = State::Down;
        session.report(of.time, false, sink);
        was_up
    }

    /// Handles an End-of-RIB marker. Returns whether its family is read.
    ///
    /// The sink is notified when all families of the session have had one. The routes of an earlier connection are then
    /// removed in every family.
    pub(super) fn end_of_rib(
        &mut self,
        of: &PerPeer,
        family: AfiSafi,
        sink: &mut dyn Sink,
    ) -> Result<(), TooMany> {
        let at = self.find_or_add(of)?;
        let session = &mut self.all[at];
        let table = &mut session.tables[of.view as usize];
        table.ended |= set_of(family);
        let is_whole = session.families != 0 && session.families & !table.ended == 0;
        if session.state == State::Up && is_whole && !table.is_complete {
            let peer = match table.peer {
                Some(peer) => peer,
                // It has no routes; it may have had some on an earlier connection.
                None => declare(&mut self.numbers, of, session.identity, sink)?,
            };
            (table.peer, table.is_up, table.is_complete) = (Some(peer), true, true);
            sink.end_of_rib(peer);
        }
        Ok(())
    }

    fn find(&mut self, of: &PerPeer) -> Option<usize> {
        if let Some((last, at)) = self.last
            && last == of.key
        {
            return Some(at);
        }
        let at = *self.by_key.get(&of.key)?;
        self.last = Some((of.key, at));
        Some(at)
    }

    fn find_or_add(&mut self, of: &PerPeer) -> Result<usize, TooMany> {
        if let Some(at) = self.find(of) {
            return Ok(at);
        }
        if self.all.len() >= MOST {
            return Err(TooMany);
        }
        self.all.push(Session {
            identity: (of.asn, of.bgp_id),
            state: State::Unknown,
            local_address: None,
            incoming: PeerEncoding::unknown(0, AddPath::Unknown),
            outgoing: PeerEncoding::unknown(0, AddPath::Unknown),
            families: 0,
            tables: <[Table; View::COUNT]>::default(),
        });
        let at = self.all.len() - 1;
        self.by_key.insert(of.key, at);
        self.last = Some((of.key, at));
        Ok(at)
    }
}

impl Session {
    /// Reports the state of all tables whose state differs.
    fn report(&mut self, time: u64, is_up: bool, sink: &mut dyn Sink) {
        const ESTABLISHED: u16 = 6;
        const OPEN_CONFIRM: u16 = 5;
        const IDLE: u16 = 1;
        let (old, new) = if is_up { (OPEN_CONFIRM, ESTABLISHED) } else { (ESTABLISHED, IDLE) };
        for table in self.tables.iter_mut().filter(|table| table.is_up != is_up) {
            if let Some(peer) = table.peer {
                sink.peer_state(&PeerState { peer, time, old, new });
                table.is_up = is_up;
            }
        }
    }
}

/// The number of the peer's table, which the sink learns if it is new.
fn declare(
    numbers: &mut HashMap<PeerInfo, u32>,
    of: &PerPeer,
    (asn, bgp_id): (u32, u32),
    sink: &mut dyn Sink,
) -> Result<u32, TooMany> {
    let view = vrf_name((of.view.name(), of.key.rd()));
    let info = PeerInfo { view, ..PeerInfo::new(of.key.address(), asn, Some(bgp_id)) };
    if let Some(&number) = numbers.get(&info) {
        return Ok(number);
    }
    if numbers.len() >= MOST {
        return Err(TooMany);
    }
    let number = numbers.len() as u32;
    sink.peer(number, &info);
    numbers.insert(info, number);
    Ok(number)
}

/// The encoding of a router's own table: both OPENs are equal, and there is no other end (RFC 9069, 4.4).
fn of_own_table(sent: &Open, received: &Open) -> PeerEncoding {
    let mut speaker = PeerEncoding::default();
    for family in READ {
        let modes = [sent.add_path(family), received.add_path(family)];
        if modes.iter().any(|mode| mode.send || mode.receive) {
            speaker.set_add_path(family, AddPath::Present);
        }
    }
    speaker
}

/// The families that both ends take and that are read.
fn families(view: View, sent: &Open, received: &Open) -> Families {
    // FRR names no families for its own table, and shows several.
    if view == View::LocRib && !sent.names_families() && !received.names_families() {
        return 0;
    }
    let both = READ.into_iter().filter(|&f| sent.supports(f) && received.supports(f));
    both.map(set_of).sum()
}
