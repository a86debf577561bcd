//! Rules on the changes of routes, and the alarms that they raise.
//!
//! ```text
//!   change {time, table, prefix, best route} ─► RuleIndex: the rules of the prefix
//!                                                   │ each judges the route
//!                                                   ▼
//!                       Alarms: an entry for each (rule, table, prefix) that is not as it should be
//!                                                   │ when that begins, and when it ends
//!                                                   ▼
//!                                              AlarmEvents
//! ```
//!
//! The crate has no I/O and no clock: its owner passes in changes with their times. `fibula serve` does so with the
//! history of its live table, `fibula watch --until` with the changes that a server sends.
//!
//! - **State, not messages.** An alarm is a state of a route. It begins when the route is wrong, ends when the route is
//!   right or gone, and each of the two is reported once, however often the route changes in between.
//! - **Quiet while a table is resent.** When a session starts over, its routes come again, in any order. What changes
//!   meanwhile ([`Occasion::Resent`]) is not flapping, and is judged after the session has sent its whole table
//!   ([`Alarms::settle`]), or after [`AlarmLimits::quiet`].
//! - **Bounded.** Entries and counters have limits ([`AlarmLimits`]). What is not kept is counted
//!   ([`Alarms::forgotten`]).
//!
//! ```
//! use fibula_alarms::{AlarmKind, AlarmRule, Alarms, AlarmLimits, Occasion, RouteChange, WatchedRoute};
//!
//! let kind = AlarmKind::UnexpectedOrigin { origins: vec![64500] };
//! let rule = AlarmRule::new("ours", kind).on(["192.0.2.0/24".parse()?]);
//! let mut alarms = Alarms::new(vec![rule], AlarmLimits::default(), 1);
//!
//! let hijack = WatchedRoute::bgp("AS64501 (192.0.2.1)", Some(64666), "64501 64666");
//! let change = RouteChange {
//!     time: 1_000_000,
//!     table: "bgp",
//!     prefix: "192.0.2.0/24".parse()?,
//!     session: None,
//!     route: Some(hijack),
//!     occasion: Occasion::Live,
//! };
//! let mut events = Vec::new();
//! alarms.change(&change, &mut events);
//! alarms.change(&change, &mut events);
//! assert_eq!(events.len(), 1);
//! assert_eq!((&*events[0].alarm.seen, events[0].alarm.end), ("origin AS64666", None));
//!
//! // The hijacker's route is gone.
//! alarms.change(&RouteChange { time: 2_000_000, route: None, ..change }, &mut events);
//! assert_eq!(events[1].alarm.end, Some(2_000_000));
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```
#![forbid(unsafe_code)]

mod alarm;
mod alarms;
mod change;
mod entry;
mod index;
mod judge;
mod path;
mod rule;

pub use alarm::{Alarm, AlarmEvent};
pub use alarms::{AlarmCounts, AlarmLimits, Alarms};
pub use change::{Occasion, RouteChange, WatchedRoute};
pub use rule::{AlarmKind, AlarmRule};
