//! Changes of routes as they are stored.

use std::sync::Arc;

use fibula_core::AnyPrefix;
use fibula_rib::{AttributeSet, Peer};

/// A prefix of a table. Keys are ordered by the table's name, then by family and prefix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteKey {
    /// The table's name.
    pub table: Arc<str>,
    /// The prefix.
    pub prefix: AnyPrefix,
}

/// The best route of a prefix from a time on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteRecord {
    /// Since when, in microseconds since 1970.
    pub time: u64,
    /// The peer of the route; of a withdrawn route, that of its last path.
    pub peer: Option<Arc<Peer>>,
    /// The attributes; `None` if there is no route.
    pub best: Option<AttributeSet>,
    /// Whether it was found in the table, and may have been there before its time.
    pub is_found: bool,
    /// Whether it is the state at the beginning of a file, and not a change in it.
    pub(crate) is_base: bool,
}

impl RouteRecord {
    /// A change at this time.
    pub fn new(time: u64, peer: Option<Arc<Peer>>, best: Option<AttributeSet>) -> Self {
        Self { time, peer, best, is_found: false, is_base: false }
    }

    /// A route, or its absence, that was found at this time.
    pub fn found(time: u64, peer: Option<Arc<Peer>>, best: Option<AttributeSet>) -> Self {
        Self { is_found: true, ..Self::new(time, peer, best) }
    }

    /// Whether both are the same route.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.best == other.best && (self.best.is_none() || self.peer == other.peer)
    }

    /// About how many bytes of memory it takes.
    pub(crate) fn memory(&self) -> usize {
        64 + self.best.as_ref().map_or(0, |set| set.as_bytes().len())
    }
}

/// Why nothing was recorded before a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryBreak {
    /// It was recorded: the file before has it.
    None,
    /// The history begins.
    Begin,
    /// The program was not running, or the table was being read.
    Stopped,
    /// Changes came faster than they were recorded.
    Behind,
    /// The files could not be written.
    Unwritten,
    /// The clock of the machine was set back.
    Clock,
    /// Files were damaged.
    Damage,
}

impl HistoryBreak {
    pub(crate) const ALL: [Self; 7] = [
        Self::None,
        Self::Begin,
        Self::Stopped,
        Self::Behind,
        Self::Unwritten,
        Self::Clock,
        Self::Damage,
    ];

    /// The reason in words, such as `the server was not running`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::None => "it is in no file that is kept",
            Self::Begin => "the history was begun anew",
            Self::Stopped => "the server was not running, or read its table",
            Self::Behind => "changes came faster than they were recorded",
            Self::Unwritten => "the files could not be written",
            Self::Clock => "the clock was set back",
            Self::Damage => "files were damaged",
        }
    }
}

/// A time of which all changes are recorded, in microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Its beginning.
    pub from: u64,
    /// Its end.
    pub until: u64,
    /// Why nothing was recorded before.
    pub before: HistoryBreak,
}

/// A time of which changes are missing, in microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryGap {
    /// The end of what was recorded before.
    pub from: u64,
    /// The beginning of what was recorded afterwards.
    pub until: u64,
    /// Why.
    pub why: HistoryBreak,
}
