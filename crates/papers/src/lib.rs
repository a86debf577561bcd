//! Shared code of the experiments.
#![forbid(unsafe_code)]

pub mod clock;
pub mod forms;
pub mod lookups;
pub mod out;

/// The program in the README of the repository compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
