//! What a loop owns: everything that has a descriptor or waits for a time, each under a number, which is its
//! token in the poll.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::door::Door;
use super::farewell::Farewell;
use super::folder::Reader;
use super::link::Link;
use crate::SourceState;

pub(super) enum Thing {
    Door(Box<Door>),
    Link(Box<Link>),
    Folder(Box<Reader>),
    Farewell(Farewell),
}

impl Thing {
    /// The time when it has work to do.
    fn deadline(&self) -> Option<Duration> {
        match self {
            Self::Door(door) => door.pause,
            Self::Link(link) => link.deadline(),
            Self::Folder(folder) => folder.deadline(),
            Self::Farewell(farewell) => Some(farewell.until),
        }
    }
}

pub(super) struct Slot {
    pub(super) thing: Thing,
    /// The source that it belongs to.
    pub(super) source: Arc<str>,
    /// Its state on the board.
    pub(super) shown: Option<SourceState>,
    is_queued: bool,
    timer: Option<Duration>,
}

/// The things, the queue of things with work to do, and the deadlines of the others.
#[derive(Default)]
pub(super) struct Slots {
    slots: BTreeMap<usize, Slot>,
    next: usize,
    ready: VecDeque<usize>,
    timers: BTreeSet<(Duration, usize)>,
}

/// A deadline that has passed and is still there after the tick is looked at again after this time, whatever
/// a protocol says.
const SOON: Duration = Duration::from_millis(1);

impl Slots {
    /// A number that was never used, so that a late event finds nothing.
    pub(super) fn number(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    pub(super) fn insert(&mut self, key: usize, source: Arc<str>, thing: Thing) {
        self.slots.insert(key, Slot { thing, source, shown: None, is_queued: false, timer: None });
    }

    pub(super) fn get(&self, key: usize) -> Option<&Slot> {
        self.slots.get(&key)
    }

    pub(super) fn get_mut(&mut self, key: usize) -> Option<&mut Slot> {
        self.slots.get_mut(&key)
    }

    pub(super) fn remove(&mut self, key: usize) -> Option<Slot> {
        let slot = self.slots.remove(&key)?;
        if let Some(timer) = slot.timer {
            self.timers.remove(&(timer, key));
        }
        Some(slot)
    }

    pub(super) fn keys(&self) -> Vec<usize> {
        self.slots.keys().copied().collect()
    }

    pub(super) fn farewells(&self) -> usize {
        let is_farewell = |slot: &&Slot| matches!(slot.thing, Thing::Farewell(_));
        self.slots.values().filter(is_farewell).count()
    }

    pub(super) fn folders(&self) -> Vec<usize> {
        let is_folder = |(_, slot): &(&usize, &Slot)| matches!(slot.thing, Thing::Folder(_));
        self.slots.iter().filter(is_folder).map(|(&key, _)| key).collect()
    }

    /// Queues the thing for one turn, after those that wait already.
    pub(super) fn queue(&mut self, key: usize) {
        if let Some(slot) = self.slots.get_mut(&key)
            && !slot.is_queued
        {
            slot.is_queued = true;
            self.ready.push_back(key);
        }
    }

    /// Number of things that wait for their turn.
    pub(super) fn waiting(&self) -> usize {
        self.ready.len()
    }

    /// The next thing in the queue.
    pub(super) fn pop(&mut self) -> Option<usize> {
        let key = self.ready.pop_front()?;
        if let Some(slot) = self.slots.get_mut(&key) {
            slot.is_queued = false;
        }
        Some(key)
    }

    /// Notes its deadline, which may have changed.
    pub(super) fn time(&mut self, key: usize, now: Duration) {
        let Some(slot) = self.slots.get_mut(&key) else { return };
        let deadline = slot.thing.deadline();
        // An overdue time is not postponed by events meanwhile.
        let is_overdue = deadline.is_some_and(|at| at <= now);
        if slot.timer == deadline || (is_overdue && slot.timer.is_some_and(|at| at <= now + SOON)) {
            return;
        }
        if let Some(timer) = slot.timer.take() {
            self.timers.remove(&(timer, key));
        }
        if let Some(deadline) = deadline {
            let at = if is_overdue { now + SOON } else { deadline };
            slot.timer = Some(at);
            self.timers.insert((at, key));
        }
    }

    /// The first deadline.
    pub(super) fn first_timer(&self) -> Option<Duration> {
        self.timers.first().map(|&(at, _)| at)
    }

    /// Something whose time has come.
    pub(super) fn due(&mut self, now: Duration) -> Option<usize> {
        let &(at, key) = self.timers.first()?;
        if at > now {
            return None;
        }
        self.timers.remove(&(at, key));
        if let Some(slot) = self.slots.get_mut(&key) {
            slot.timer = None;
        }
        Some(key)
    }
}
