//! What the experiments have in common.
#![forbid(unsafe_code)]

pub mod forms;
pub mod out;
