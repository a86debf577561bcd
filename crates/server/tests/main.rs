//! The integration tests of the crate, as one binary: linking takes longer than most of them run.

mod answers;
mod bulk;
mod changes;
mod common;
mod document;
mod endless;
mod filter;
mod health;
mod limits;
mod page;
mod refusals;
mod rpki;
mod search;
mod tls;
mod untaken;
mod whole;
