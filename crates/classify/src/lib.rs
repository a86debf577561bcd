//! Packet classification: which of many rules do packets hit?
//!
//! [`Rules`] are conditions on fields with priorities and actions; [`text`] reads them. A [`Classifier`] answers for batches of
//! packets, and its rules may change between batches. As in Open vSwitch it has two halves: the [`SlowPath`] knows the rules and
//! finds for a packet the winning one with a *megaflow*, a mask under which every packet has the same answer; the [`Cache`] finds
//! megaflows fast.
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
mod five;
mod flow;
mod form;
mod hash;
mod miniflow;
#[cfg(test)]
mod model;
mod publish;
mod rules;
mod search;
mod slow;
pub mod steps;
mod subtable;
mod sync;
pub mod text;

pub use batch::Batch;
pub use cache::{Cache, MISS};
pub use classifier::{
    Classifier, ClassifierCounts, ClassifierOptions, ClassifierReader, Megaflow, SharedClassifier,
};
pub use extract::Context;
pub use field::{Field, WORDS};
pub use five::{FiveTuple, MixedFamilies};
pub use flow::{Flow, Mask, Match};
pub use form::Form;
pub use miniflow::Miniflow;
pub use publish::{Reader, Writer};
pub use rules::{Action, Condition, NoNumber, Range, Rule, RuleError, RuleId, Rules, Table};
pub use search::{Counts, EXACT, Searcher};
pub use slow::{Effort, Found, Scratch, SlowPath};

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
