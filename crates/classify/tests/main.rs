//! Tests of the crate from outside.

mod common;
mod flow;
mod rules;
mod slow;
