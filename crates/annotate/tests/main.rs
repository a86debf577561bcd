//! The integration tests of the crate, as one binary: linking takes longer than most of them run.

mod any_isa;
mod captures;
mod chosen;
mod columns;
mod common;
mod dated;
mod exports;
mod files;
mod formats;
mod nested;
mod streams;
