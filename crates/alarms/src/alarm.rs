//! What is reported.

use std::fmt;
use std::sync::Arc;

use fibula_core::AnyPrefix;

/// A route that is not as a rule wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// Its number. The event of its end has the same one.
    pub id: u64,
    /// The rule's name.
    pub rule: Arc<str>,
    /// The rule's kind, as [`AlarmKind::name`](crate::AlarmKind::name) has it.
    pub kind: &'static str,
    /// The table's name.
    pub table: Arc<str>,
    /// The prefix of the route.
    pub prefix: AnyPrefix,
    /// What the rule wants, such as `origin AS64500`.
    pub expected: String,
    /// What was seen instead when the alarm began.
    pub seen: String,
    /// The peer of the route; of a withdrawn one, the peer of its last path. Empty if unknown.
    pub peer: String,
    /// The AS path of the route, or the last one; empty if it has none. Long paths are cut, and end in `...` then.
    pub as_path: String,
    /// When it began, in microseconds since 1970: the time of the change, or the time at which a withdrawn route was
    /// not back.
    pub begin: u64,
    /// The time at which the route was right again or gone, in microseconds since 1970; `None` while it is not.
    pub end: Option<u64>,
}

/// The beginning or the end of an alarm: the end if [`Alarm::end`] is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlarmEvent {
    /// The alarm.
    pub alarm: Arc<Alarm>,
}

impl AlarmEvent {
    /// Whether the alarm begins.
    pub fn is_begin(&self) -> bool {
        self.alarm.end.is_none()
    }
}

/// One line, without times.
impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, kind, table, prefix, expected, seen, peer, as_path, .. } = self;
        write!(f, "{rule} ({kind}): {table} {prefix}: expected {expected}, seen {seen}")?;
        if !peer.is_empty() {
            write!(f, ", by {peer}")?;
        }
        if !as_path.is_empty() {
            write!(f, ", path {as_path}")?;
        }
        Ok(())
    }
}
