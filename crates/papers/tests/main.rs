//! The papers' experiments, on tiny tables.

mod bloomfwd;
mod hpbf;
mod planb;
