//! Tests of the crate from outside.

mod changes;
mod classifier;
mod common;
mod extract;
mod flow;
mod rules;
mod search;
mod sets;
mod slow;
mod text;
mod threads;
