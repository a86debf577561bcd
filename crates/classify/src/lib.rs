//! Packet classification by a megaflow cache, as Open vSwitch has one: which of many masked flows does a
//! packet belong to?
//!
//! A packet's header is a [`Flow`]: its fields in words of 64 bits, at places that [`Field`] defines. A
//! [`Mask`] says which bits count, and a [`Match`] is a flow under a mask. A [`Cache`] holds megaflows, each a
//! [`Match`] with a number; a [`Searcher`] finds those of a [`Batch`] of packets.
#![forbid(unsafe_code)]

mod batch;
mod cache;
mod classifier;
mod extract;
mod field;
mod flow;
mod form;
mod hash;
mod miniflow;
mod rules;
mod search;
mod slow;
mod subtable;
pub mod text;

pub use batch::Batch;
pub use cache::{Cache, MISS};
pub use classifier::{Classifier, ClassifierCounts, ClassifierOptions, Megaflow};
pub use extract::Context;
pub use field::{Field, WORDS};
pub use flow::{Flow, Mask, Match};
pub use form::Form;
pub use miniflow::Miniflow;
pub use rules::{Action, Condition, NoNumber, Range, Rule, RuleError, RuleId, Rules, Table};
pub use search::{Counts, EXACT, Searcher};
pub use slow::{Effort, Found, Scratch, SlowPath};
