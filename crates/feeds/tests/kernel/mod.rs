//! The kernel's tables: the protocol by itself, and beside what `ip route` prints, in a network namespace
//! that the test makes.

mod namespace;
mod protocol;
mod shown;
