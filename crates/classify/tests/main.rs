//! Tests of the crate from outside.

mod changes;
mod classifier;
mod common;
mod extract;
mod flow;
mod ipv6;
mod rules;
mod search;
mod sets;
mod shared;
mod slow;
mod text;
mod threads;
