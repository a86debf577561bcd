//! What sources leave behind in a live table: engines of tables without routes, those tables, and peers.

use std::collections::BTreeMap;
use std::time::Duration;

use fibula_core::Vrf;
use fibula_rib::Live;

use crate::Clock;

/// The interval of looks, and a shorter one for short hold times. Engines end after two looks.
const LOOK: Duration = Duration::from_secs(5);
const SHORT: Duration = Duration::from_millis(20);

/// What may be given up, and since when.
#[derive(Default)]
pub(crate) struct Leftovers {
    /// How long peers and tables stay; `None` if they stay for ever.
    hold: Option<Duration>,
    peers: BTreeMap<u32, Duration>,
    vrfs: BTreeMap<Vrf, Duration>,
    /// Whether something happened since the last look, or that left something to see.
    is_due: bool,
    next: Option<Duration>,
}

impl Leftovers {
    /// Of a table that begins now: its peers without paths are nobody's until a source names them.
    pub(crate) fn of(live: &Live, hold: Duration, now: Duration) -> Self {
        let peers = live.with_rib(|rib| {
            let is_left = |number| rib.paths_of::<u32>(number) + rib.paths_of::<u128>(number) == 0;
            let numbers = rib.peers().iter().map(|(number, _)| number);
            numbers.filter(|&number| is_left(number)).map(|number| (number, now)).collect()
        });
        Self { hold: Some(hold), peers, is_due: true, ..Self::default() }
    }

    /// Something may have left something behind.
    pub(crate) fn look_again(&mut self) {
        self.is_due = true;
    }

    pub(crate) fn released(&mut self, peer: u32, now: Duration) {
        if self.hold.is_some() {
            self.peers.insert(peer, now);
            self.is_due = true;
        }
    }

    pub(crate) fn came_back(&mut self, peer: u32) {
        self.peers.remove(&peer);
    }

    /// Gives up what is due. Returns the time until the next look, if there is something to see.
    pub(crate) fn look(&mut self, live: &Live, clock: &impl Clock) -> Option<Duration> {
        if !self.is_due {
            return None;
        }
        let now = clock.now();
        let interval = self.hold.map_or(LOOK, |hold| hold.clamp(SHORT, LOOK));
        let mut next = *self.next.get_or_insert(now + interval);
        if next <= now {
            let has_engines = live.tidy();
            self.give_up(live, now);
            self.is_due = has_engines || !self.peers.is_empty() || !self.vrfs.is_empty();
            next = now + interval;
            self.next = self.is_due.then_some(next);
        }
        self.next.map(|next| next - now)
    }

    fn give_up(&mut self, live: &Live, now: Duration) {
        let Some(hold) = self.hold else { return };
        let is_over = |since: Duration| since.saturating_add(hold) <= now;
        self.peers.retain(|&peer, &mut since| {
            let is_over = is_over(since);
            if is_over {
                live.forget_peer(peer);
            }
            !is_over
        });
        let empty = live.empty_vrfs().into_iter();
        self.vrfs = empty.map(|vrf| (vrf, self.vrfs.get(&vrf).copied().unwrap_or(now))).collect();
        self.vrfs.retain(|&vrf, &mut since| !(is_over(since) && live.forget_vrf(vrf)));
    }
}
