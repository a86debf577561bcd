//! Tests of the crate from outside.

mod changes;
mod extract;
mod flow;
mod search;
mod sets;
mod threads;
