//! The integration tests of the crate, as one binary: linking takes longer than most of them run.

mod build;
mod house_rules;
mod option_names;
mod release;
mod words;
