//! Packet classification by a megaflow cache, as Open vSwitch has one: which of many masked flows does a
//! packet belong to?
//!
//! A packet's header is a [`Flow`]: its fields in words of 64 bits, at places that [`Field`] defines. A
//! [`Mask`] says which bits count, and a [`Match`] is a flow under a mask.
#![forbid(unsafe_code)]

mod field;
mod flow;
mod rules;
mod slow;

pub use field::{Field, WORDS};
pub use flow::{Flow, Mask, Match};
pub use rules::{Action, Condition, NoNumber, Range, Rule, RuleError, RuleId, Rules, Table};
pub use slow::{Effort, Found, Scratch, SlowPath};
