//! Shared code of the experiments.
#![forbid(unsafe_code)]

pub mod forms;
pub mod out;
