//! What is kept of a route and a rule.

use std::collections::VecDeque;
use std::sync::Arc;

use fibula_core::AnyPrefix;

use crate::path::shortened;
use crate::{Alarm, RouteChange};

/// A route of a table, as one rule judges it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) rule: u32,
    pub(crate) prefix: AnyPrefix,
    pub(crate) table: Arc<str>,
}

/// What is kept for a key while something is wrong with it, or could soon be.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) memory: Memory,
    /// What is wrong by the last change; nothing if the route is right.
    pub(crate) wrong: Option<Arc<Seen>>,
    /// The alarm that was reported and has not ended.
    pub(crate) alarm: Option<Arc<Alarm>>,
    /// Whether it was wrong from the first time that it was seen, which this kind does not report.
    pub(crate) is_silent: bool,
    /// Until when it is not judged, unless the session has sent its table before.
    pub(crate) held: Option<Held>,
    /// The last scan that found its route.
    pub(crate) scan: u64,
}

/// What a kind keeps beside.
#[derive(Debug)]
pub(crate) enum Memory {
    /// Nothing: it judges a route by itself.
    Route,
    /// Of [`AlarmKind::Withdrawn`](crate::AlarmKind::Withdrawn): the last path, and when it counts as not back.
    Withdrawn { last: Arc<Seen>, due: Option<u64> },
    /// Of [`AlarmKind::Flapping`](crate::AlarmKind::Flapping): the last changes, and when they no longer count.
    Flapping { times: VecDeque<u64>, calm: u64 },
}

/// A route that was seen, and what was wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) time: u64,
    pub(crate) session: Option<Arc<str>>,
    pub(crate) expected: String,
    pub(crate) seen: String,
    pub(crate) peer: String,
    pub(crate) as_path: String,
}

impl Seen {
    pub(crate) fn new(time: u64, change: &RouteChange<'_>, expected: String, seen: String) -> Self {
        let (peer, as_path) = change.route.map_or(("", ""), |route| (route.peer, route.as_path));
        Self {
            time,
            session: change.session.map(Arc::from),
            expected,
            seen,
            peer: peer.to_owned(),
            as_path: shortened(as_path),
        }
    }
}

/// What a judgement waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) session: Option<Arc<str>>,
    pub(crate) until: u64,
}

impl Entry {
    pub(crate) fn new(memory: Memory) -> Self {
        Self { memory, wrong: None, alarm: None, is_silent: false, held: None, scan: 0 }
    }

    /// When something happens to it by itself.
    pub(crate) fn due(&self) -> Option<u64> {
        match &self.memory {
            Memory::Route => None,
            Memory::Withdrawn { due, .. } => *due,
            Memory::Flapping { calm, .. } => Some(*calm),
        }
    }

    /// Whether its route would be missed if a scan did not find it.
    pub(crate) fn has_route(&self) -> bool {
        match self.memory {
            Memory::Route => self.wrong.is_some(),
            Memory::Withdrawn { due, .. } => due.is_none() && self.wrong.is_none(),
            Memory::Flapping { .. } => false,
        }
    }

    /// Whether nothing of it is needed any more.
    pub(crate) fn is_over(&self) -> bool {
        let is_plain = match &self.memory {
            Memory::Route => true,
            Memory::Withdrawn { .. } => false,
            Memory::Flapping { times, .. } => times.is_empty(),
        };
        is_plain && self.wrong.is_none() && self.alarm.is_none() && self.held.is_none()
    }
}
