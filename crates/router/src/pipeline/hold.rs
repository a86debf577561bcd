//! Packets that wait for the MAC address of a neighbour (RFC 1122, section 2.3.2.2).

use std::collections::{HashMap, VecDeque};

use crate::Packet;
use crate::forward::Waiting;

/// Limits of waiting packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldOptions {
    /// Packets for one neighbour; a new packet replaces the oldest.
    pub each: usize,
    /// Packets for all neighbours, shared equally among the lookup threads. Beyond it, new packets are dropped.
    pub all: usize,
    /// How long the first packet waits before all packets for its neighbour are dropped, in nanoseconds.
    pub nanos: u64,
}

impl Default for HoldOptions {
    fn default() -> Self {
        Self { each: 3, all: 1000, nanos: 1_000_000_000 }
    }
}

/// Packets of one lookup thread.
pub(super) struct Hold<'p> {
    options: HoldOptions,
    neighbours: HashMap<Waiting, Neighbour<'p>>,
    count: usize,
}

struct Neighbour<'p> {
    since: u64,
    packets: VecDeque<Packet<'p>>,
}

impl<'p> Hold<'p> {
    pub(super) fn new(options: HoldOptions) -> Self {
        Self { options, neighbours: HashMap::new(), count: 0 }
    }

    /// Keeps a packet. Gives back the one that has no room: it, or an older one.
    pub(super) fn keep(
        &mut self,
        waiting: Waiting,
        packet: Packet<'p>,
        now: u64,
    ) -> Option<Packet<'p>> {
        let known = self.neighbours.get(&waiting).map_or(0, |known| known.packets.len());
        let is_full = self.count >= self.options.all || self.options.each == 0;
        if is_full && known == 0 {
            return Some(packet);
        }
        let neighbour = self
            .neighbours
            .entry(waiting)
            .or_insert_with(|| Neighbour { since: now, packets: VecDeque::new() });
        neighbour.packets.push_back(packet);
        if is_full || known >= self.options.each {
            return neighbour.packets.pop_front();
        }
        self.count += 1;
        None
    }

    /// Takes all packets out, for another attempt, each neighbour's in their order. Packets that are kept again
    /// afterwards count as waiting since they first came. Call [`Hold::forget`] then.
    pub(super) fn retry(&mut self, burst: &mut Vec<Packet<'p>>) {
        burst.extend(self.neighbours.values_mut().flat_map(|known| known.packets.drain(..)));
        self.count = 0;
    }

    /// Forgets neighbours for which nothing waits.
    pub(super) fn forget(&mut self) {
        self.neighbours.retain(|_, neighbour| !neighbour.packets.is_empty());
    }

    /// Takes the packets out that have waited too long.
    pub(super) fn give_up(&mut self, now: u64, burst: &mut Vec<Packet<'p>>) {
        let (nanos, count) = (self.options.nanos, &mut self.count);
        self.neighbours.retain(|_, neighbour| {
            let is_late = now.saturating_sub(neighbour.since) >= nanos;
            if is_late {
                *count -= neighbour.packets.len();
                burst.extend(neighbour.packets.drain(..));
            }
            !is_late
        });
    }

    /// The neighbours for which something waits.
    pub(super) fn wanted(&self) -> impl Iterator<Item = Waiting> {
        self.neighbours.keys().copied()
    }

    /// How many packets wait.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pool;

    fn of(port: u16) -> Waiting {
        Waiting { port, next_hop: [192, 0, 2, 1].into() }
    }

    fn names(packets: &[Packet<'_>]) -> Vec<u16> {
        packets.iter().map(|packet| packet.mark).collect()
    }

    /// The name of the packet that has no room.
    fn keep<'p>(
        pool: &'p Pool,
        hold: &mut Hold<'p>,
        port: u16,
        name: u16,
        now: u64,
    ) -> Option<u16> {
        let mut packet = pool.take().unwrap();
        packet.mark = name;
        hold.keep(of(port), packet, now).map(|packet| packet.mark)
    }

    #[test]
    fn a_bounded_number_waits_for_a_bounded_time() {
        let pool = Pool::new(16, 512);
        let mut hold = Hold::new(HoldOptions { each: 2, all: 3, nanos: 100 });
        assert_eq!(keep(&pool, &mut hold, 1, 10, 0), None);
        assert_eq!(keep(&pool, &mut hold, 1, 11, 1), None);
        assert_eq!(keep(&pool, &mut hold, 1, 12, 2), Some(10), "the neighbour's oldest");
        assert_eq!(keep(&pool, &mut hold, 2, 20, 50), None);
        assert_eq!(
            keep(&pool, &mut hold, 3, 30, 51),
            Some(30),
            "there is no room for another neighbour"
        );
        assert_eq!(keep(&pool, &mut hold, 2, 21, 52), Some(20), "nor for more of a known one");
        assert_eq!(hold.len(), 3);
        // Tried again, and not known yet: it has waited since it came first.
        let mut burst = Vec::new();
        hold.retry(&mut burst);
        assert!(hold.is_empty());
        let mut marks = names(&burst);
        marks.sort_unstable();
        assert_eq!(marks, [11, 12, 21]);
        for packet in burst.drain(..).filter(|packet| packet.mark < 20) {
            assert!(hold.keep(of(1), packet, 90).is_none());
        }
        hold.forget();
        assert_eq!(hold.wanted().collect::<Vec<_>>(), [of(1)]);
        hold.give_up(99, &mut burst);
        assert!(burst.is_empty());
        hold.give_up(100, &mut burst);
        assert_eq!(names(&burst), [11, 12]);
        assert!(hold.is_empty() && hold.wanted().next().is_none());
    }
}
