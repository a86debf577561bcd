//! Tests with the same result for any `FIBULA_ISA`: they build the engines with each instruction set by themselves.

mod answers;
mod conformance;
mod exhaustive;
mod persistence;
mod real_tables;
