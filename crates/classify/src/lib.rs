//! Packet classification: finds the rule that a packet hits, among many rules.
//!
//! [`Rules`] are conditions on fields with priorities and actions; [`text`] reads them from files. A [`Classifier`]
//! classifies batches of packets, and its rules may change between batches. As in Open vSwitch it has two halves. The
//! [`SlowPath`] knows the rules and finds the winning rule of a packet, with a *megaflow*: a mask under which every
//! packet has the same answer. The [`Cache`] finds megaflows fast.
//!
//! A packet's header is a [`Flow`]: its fields in words of 64 bits, at positions that [`Field`] defines. A [`Mask`]
//! selects bits, and a [`Match`] is a flow under a mask. A [`Cache`] holds megaflows, each a [`Match`] with a number,
//! and a [`Searcher`] finds the megaflows of a [`Batch`] of packets.
#![forbid(unsafe_code)]

mod batch;
mod cache;
mod classifier;
mod extract;
mod field;
mod five;
mod flow;
mod hash;
#[cfg(test)]
mod model;
mod publish;
mod rules;
mod search;
mod slow;
mod steps;
mod subtable;
pub mod text;

fibula_publish::sync!();

pub use batch::Batch;
pub use cache::{Cache, MISS};
pub use classifier::{
    Classifier, ClassifierCounts, ClassifierOptions, ClassifierReader, Megaflow, SharedClassifier,
};
pub use extract::{Context, words};
pub use field::{Field, WORDS};
pub use five::{FiveTuple, FiveTupleError};
pub use flow::{Flow, Mask, Match};
pub use publish::{Reader, Writer};
pub use rules::{Action, Condition, NoNumber, Range, Rule, RuleError, RuleId, Rules, Table};
pub use search::{Counts, EXACT, Parts, Searcher};
pub use slow::{Effort, Found, Scratch, SlowPath};
pub use steps::{Visit, repeat_hashes};

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
