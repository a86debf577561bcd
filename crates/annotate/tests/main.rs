//! The integration tests of the crate, as one binary: linking takes longer than most of them run.

mod captures;
mod chosen;
mod columns;
mod common;
mod damaged;
mod dated;
mod files;
mod formats;
mod nested;
mod streams;
